"""The version of the package, which `pyproject.toml` reads."""

__version__ = "0.1.0"
