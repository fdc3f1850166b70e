"""A machine's schematic.

`rows` arranges bodies and their joints in chains. `symbols` contains the drawings, and `cells`
places the drawings and their labels side by side on a row.
"""
