"""Calls that happen completely or not at all, one after the other."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from mondrian_bo.shared.forks import HasLock

State = TypeVar("State")
"""What an object returns to after an interruption."""

Owner = TypeVar("Owner", bound="Transactional[Any]")
"""The class of a decorated method."""

Result = TypeVar("Result")
"""What a decorated method returns."""

Arguments = ParamSpec("Arguments")
"""The parameters of a decorated method."""


class Transactional(HasLock, Generic[State]):
    """An object whose changes are transactions: an exception may come at any moment.

    Methods that change it have the decorator :func:`transaction`. A subclass implements `_undo`,
    and its methods set `_before` to what `_undo` needs, before they change anything.
    """

    def __init__(self) -> None:
        self._is_changing = False
        self._before: State | None = None
        super().__init__()

    def renew_lock(self) -> None:
        """Make a lock that no transaction holds."""
        super().renew_lock()
        self._is_inside = False

    def _undo(self, before: State | None) -> None:
        """Undo the changes of a transaction that did not end.

        Parameters
        ----------
        before : object or None
            What the transaction set `_before` to. If this call is interrupted, another one follows
            with the same argument.
        """
        raise NotImplementedError


def transaction(
    method: Callable[Concatenate[Owner, Arguments], Result],
) -> Callable[Concatenate[Owner, Arguments], Result]:
    """Let a method run alone, and undo it at the next transaction if it does not end.

    An exception, such as that of Ctrl-C, may come between any two steps of a method. A transaction
    inside of another one is part of it.
    """

    @wraps(method)
    def run(self: Owner, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        with self._lock:
            is_part = self._is_inside
            if not is_part:
                if self._is_changing:
                    self._undo(self._before)
                self._before = None
                self._is_changing = True
            try:
                self._is_inside = True
                result = method(self, *args, **kwargs)
                if not is_part:
                    self._is_changing = False
                return result
            finally:
                self._is_inside = is_part

    return run
