"""A machine's schematic.

`rows` arranges bodies and what joins them in chains. `symbols` and `bodies` hold the drawings,
`labels` their texts, and `cells` puts drawings side by side on a row.
"""
