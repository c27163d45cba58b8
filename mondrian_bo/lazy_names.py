"""Public names that are imported on first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

from mondrian_bo.shared.garbage_collection import without_collections


def lazy_names(
    package: str, homes: Mapping[str, str], names: list[str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package whose names are imported on first use.

    Parameters
    ----------
    package : str
        Dotted name of the package.
    homes : mapping
        Dotted name of the module that defines each lazy name.
    names : list of str
        All public names, which `dir` lists.

    Returns
    -------
    tuple of two functions
        The module-level functions of PEP 562.
    """

    def get_attribute(name: str) -> object:
        if name in homes:
            with without_collections(homes[name]):
                return getattr(import_module(homes[name]), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    def list_names() -> list[str]:
        return sorted(names)

    return get_attribute, list_names
