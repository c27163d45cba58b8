"""A pause of the garbage collector while modules and compiled code load."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collections(module: str | None = None) -> Iterator[None]:
    """Switch the garbage collector off inside a ``with`` block, and on again where it was on.

    With the name of a `module`, nothing happens if it is loaded. Objects that are made at each call
    must stay in the youngest generation: otherwise only a full collection frees them.

    What loads stays: modules, classes, compiled code. The collector walks through it again and
    again, which is a tenth of the time to a process's first suggestion. At the end all objects
    become old: the next full collection is the first to look at them. Blocks may be nested, and
    threads may be inside at the same time: the first to leave switches the collector on.
    """
    if module in sys.modules:
        yield
        return
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            # A program that has frozen objects itself needs them frozen.
            if not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()
            gc.enable()
