"""Interruptions for tests: exceptions at random moments of a call."""

from __future__ import annotations

import gc
import signal
import sys

from llvmlite.binding import ffi
from numba.core.compiler_lock import global_compiler_lock


class Interrupted(BaseException):
    """What the tests raise, as Ctrl-C does with KeyboardInterrupt."""


_CHAINED = (RuntimeError, SystemError)
"""Errors with which an interrupted call may end: a wait for an event of a thread, and a call of
Python from compiled code."""


_DEAF = ("numba.", "numpy._core._internal", "numpy.core._internal")
"""Modules whose callers do not pass on an exception."""


def _raise_interrupted(error):
    """Raise `Interrupted` if it is what the error comes from, and the error otherwise."""
    source = error
    # Compiled code that calls Python may chain several errors.
    while isinstance(source, _CHAINED):
        source = source.__cause__ or source.__context__
    if not isinstance(source, Interrupted):
        raise error
    raise Interrupted from error


def is_compiling():
    """Tell whether this thread has a lock of numba or LLVM.

    Interrupted between taking such a lock and using it, they keep it, and other threads that
    compile or free compiled code wait for ever. That is not ours to mend.
    """
    return global_compiler_lock._lock._is_owned() or ffi.lib._lock._lock._is_owned()


def count_events(function):
    """Return a function's result and the number of its calls and returns, also in C."""
    n_events = 0

    def note(frame, event, argument):
        nonlocal n_events
        n_events += 1

    sys.setprofile(note)
    try:
        result = function()
    finally:
        sys.setprofile(None)
    return result, n_events


def interrupt_at(n_event, function):
    """Call a function; raise at the n-th call or return inside of it, if it takes so many.

    While code is compiled or loaded, where a lock is released, and inside of functions of numba or
    of those that numpy calls to compare structured arrays, the exception waits. Some releases of
    numba crash where the class of a tuple that a compiled function returns is looked up for the
    first time, and that raises. numpy replaces the exception by a TypeError.
    """
    n_left = n_event

    def count(frame, event, argument):
        nonlocal n_left
        n_left -= 1
        # No signal comes between the end of a `with` block and the release of its lock.
        is_release = event == "c_call" and argument.__name__ == "__exit__"
        is_deaf = frame.f_globals.get("__name__", "").startswith(_DEAF)
        if n_left <= 0 and not is_release and not is_deaf and not is_compiling():
            raise Interrupted

    # A collection calls finalizers, whose exceptions Python passes over.
    collects = gc.isenabled()
    gc.disable()
    sys.setprofile(count)
    try:
        return function()
    except _CHAINED as error:
        _raise_interrupted(error)
    finally:
        sys.setprofile(None)
        if collects:
            gc.enable()


def interrupt_after(seconds, function):
    """Call a function, with a signal after some time whose handler raises."""

    def stop(number, frame):
        if is_compiling():
            signal.setitimer(signal.ITIMER_REAL, 0.001)
        else:
            raise Interrupted

    former = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        result = function()
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        return result
    except _CHAINED as error:
        _raise_interrupted(error)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, former)
