"""``python -m mondrian_bo``: the command ``mondrian-bo`` of the interpreter that runs it."""

from mondrian_bo.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
