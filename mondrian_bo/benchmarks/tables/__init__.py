"""The measured tables of the tabular problems, and the programs that measured them.

Each ``<name>.csv`` has one row per cell of a full grid: the grid columns, the objective, and the
seconds that the cell took. ``<name>.json`` records the command, versions and data.
"""
