"""Options of numba for the functions that trees are grown with.

Numba counts references to each array that a function is given, with atomic instructions: 22 of
them, about 100 ns, for each call with a :class:`mondrian_bo.trees.tree.Tree`. Functions that only
borrow their arrays can be compiled without (`BORROWING`). Functions that create or return arrays,
views included, must count references (`COUNTING`) and must say so: a function without the option
inherits it from the first function that calls it, and a view that was returned uncounted to a
caller that counts would be freed once too often. Therefore functions that borrow must not call
functions that return arrays.

A call passes every array of a tree word by word, about a hundred words, which takes longer than
most of these functions. Functions that are called for each point or node are therefore compiled
into their callers (`INLINED`).

Functions that are never called from Python need no wrapper that unpacks Python objects (`INNER`),
which is half of the compile time. Calling them from Python would crash.
"""

from __future__ import annotations

from typing import Any

COUNTING: dict[str, Any] = {"cache": True, "nogil": True, "no_cfunc_wrapper": True, "_nrt": True}
"""For functions that create or return arrays."""

BORROWING = COUNTING | {"_nrt": False}
"""For functions that only borrow arrays."""

INLINED = BORROWING | {"forceinline": True}
"""As `BORROWING`, and compiled into the callers."""

INNER = INLINED | {"no_cpython_wrapper": True}
"""As `INLINED`, for functions that are never called from Python."""

GENERIC: dict[str, Any] = {"nogil": True, "inline": "always"}
"""For functions that another function makes of compiled functions.

Numba writes their code into each kernel that calls them, before it compiles the kernel, and caches
it with the kernel. Compiled on their own, each layer would be compiled once more into the next one,
which takes three times as long. Compiled functions that are passed as arguments would keep the
kernel from being cached.
"""

INNER_COUNTING = COUNTING | {"no_cpython_wrapper": True}
"""As `COUNTING`, for functions that are never called from Python."""
