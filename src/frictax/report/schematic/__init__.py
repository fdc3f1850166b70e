"""A machine's schematic.

`rows` arranges bodies and what joins them in chains. `symbols` holds the drawings, and `cells` puts
them with their labels side by side on a row.
"""
