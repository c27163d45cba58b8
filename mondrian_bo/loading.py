"""Modules and compiled code load while the garbage collector waits."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collections() -> Iterator[None]:
    """Switch the garbage collector off inside a ``with`` block, and on again where it was on.

    What loads stays: modules, classes, compiled code. The collector walks through it again and
    again, which is a tenth of the time to a process's first suggestion. At the end all objects
    become old: the next full collection is the first to look at them. Blocks may be nested, and
    threads may be inside at the same time: the first to leave switches the collector on.
    """
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
