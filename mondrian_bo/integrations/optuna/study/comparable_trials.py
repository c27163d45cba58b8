"""Which trials are compared with each other: those of one fidelity."""

from __future__ import annotations

from optuna.trial import FrozenTrial

_FEWEST = 3
"""Number of complete trials that a trial is compared with, at least, as in the model of curves."""


def fidelity_key(trial: FrozenTrial, fidelity: str | None) -> str | None:
    """Return the fidelity of a trial up to rounding errors; None if it has none.

    Parameters
    ----------
    trial : FrozenTrial
        The trial.
    fidelity : str or None
        Name of the parameter; None if all trials are comparable.
    """
    if fidelity is None or fidelity not in trial.params:
        return None
    return f"{trial.distributions[fidelity].to_internal_repr(trial.params[fidelity]):.9g}"


class ComparableTrials:
    """The complete trials of a study, by fidelity.

    Parameters
    ----------
    complete : list of FrozenTrial
        The complete trials so far. The caller appends to it.
    fidelity : str or None
        Name of the parameter; None if all trials are comparable.
    """

    def __init__(self, complete: list[FrozenTrial], fidelity: str | None) -> None:
        self._all = complete
        self._fidelity = fidelity
        self._n_read = 0
        self._groups: dict[str, list[FrozenTrial]] = {}

    def group_of(self, trial: FrozenTrial) -> tuple[str | None, list[FrozenTrial]]:
        """Return the trials that one without a value is compared with, and a key of this group.

        They are those of its own fidelity where there are three of them, else all. The list grows
        with the trials that are added later, at the next call.
        """
        for complete in self._all[self._n_read :]:
            key = fidelity_key(complete, self._fidelity)
            if key is not None:
                self._groups.setdefault(key, []).append(complete)
        self._n_read = len(self._all)
        key = fidelity_key(trial, self._fidelity)
        own = [] if key is None else self._groups.get(key, [])
        return (key, own) if len(own) >= _FEWEST else (None, self._all)
