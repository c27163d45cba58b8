"""Writable copies of read-only arrays, as of files that are mapped into memory."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

Value = TypeVar("Value")
"""What holds arrays."""


def with_writable_arrays(value: Value) -> Value:
    """Replace read-only arrays by copies, at any depth.

    ``joblib.load(..., mmap_mode="r")`` gives such arrays, and so do engines that pass arguments to
    worker processes through shared memory, as Ray does. Online learning writes to the arrays, and
    numba compiles every function anew for read-only ones, which takes longer than a copy.

    Parameters
    ----------
    value : array, tuple, list, dict or object of this package
        What holds the arrays. A list, a dict or an object in it is changed.

    Returns
    -------
    as the parameter
        The same one, or a new tuple or array where that held read-only arrays.
    """
    result: Value = _own(value, {})
    return result


def _own(value: Any, known: dict[int, Any]) -> Any:
    """Return the value, or what replaces it; `known` has the replacement of each one met."""
    if id(value) in known:
        return known[id(value)][1]
    if isinstance(value, np.ndarray):
        # Keeps the value, too: the identifier of one that is deleted may be used again.
        known[id(value)] = value, value if value.flags.writeable else np.array(value)
    elif isinstance(value, tuple):
        items = [_own(item, known) for item in value]
        is_same = all(new is old for new, old in zip(items, value, strict=True))
        make = getattr(value, "_make", tuple)
        known[id(value)] = value, value if is_same else make(items)
    else:
        known[id(value)] = value, value
        if isinstance(value, list):
            value[:] = [_own(item, known) for item in value]
        else:
            attributes = value if isinstance(value, dict) else _attributes(value)
            for name, item in attributes.items():
                attributes[name] = _own(item, known)
    return known[id(value)][1]


def _attributes(value: Any) -> dict[str, Any]:
    """Return the attributes of an object of this package; none of other objects."""
    is_ours = type(value).__module__.partition(".")[0] == __name__.partition(".")[0]
    return getattr(value, "__dict__", {}) if is_ours else {}
