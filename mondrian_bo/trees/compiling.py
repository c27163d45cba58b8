"""How the functions that trees are grown with are compiled.

Numba counts the references to each array that a function is given, with atomic instructions: 22 of
them, some 100 ns, for each call with a :class:`mondrian_bo.trees.tree.Tree`. Functions that only
borrow their arrays do without (`BORROWING`). Those that make arrays or return them (views too) must
count (`COUNTING`), and say so: callees inherit the option from the first function that calls them,
and a view returned uncounted to a caller that counts would be freed once too often. So functions
that borrow call none that return arrays.

A call passes every array of a tree word by word, a hundred words in all, which takes longer than
most of these functions: what is called for each point or node is compiled into its callers
(`INLINED`).

What Python never calls needs no code that unpacks Python objects (`INNER`), which is half of the
compile time; to call it from Python would crash.
"""

from __future__ import annotations

from typing import Any

COUNTING: dict[str, Any] = {"cache": True, "nogil": True, "no_cfunc_wrapper": True, "_nrt": True}
BORROWING = COUNTING | {"_nrt": False}
INLINED = BORROWING | {"forceinline": True}
INNER = INLINED | {"no_cpython_wrapper": True}
INNER_COUNTING = COUNTING | {"no_cpython_wrapper": True}
