"""The measured tables behind the discrete problems, and the programs that measured them.

Each ``<name>.csv`` has one row per cell of a full grid: the grid columns, then the objective, then
the seconds the cell took. The ``<name>.json`` beside it records how it came about.
"""
