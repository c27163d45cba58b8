"""Learning from trials which choices activate which parameters.

In Optuna a conditional space is never declared: an objective asks for a parameter or does not. What
trials ask for tells the conditions, and with them one model can serve the whole space.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

from mondrian_bo.search_space import Condition

Pattern = tuple[tuple[str, ...], tuple[tuple[str, int], ...]]


class ConditionLearner:
    """Explains the absence of parameters by the value of one other parameter each.

    That other one is categorical, or an integer with few values such as a number of layers.

    Parameter p is taken to be active when q has one of certain values if, in all trials seen, p is
    present exactly where q is present with one of them. Of several such q the one that is present
    least often explains best: nested conditions become chains.
    """

    def __init__(self) -> None:
        self._n_patterns = 0
        self._present: Counter[str] = Counter()
        self._seen: set[Pattern] = set()
        self._with: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
        self._without: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
        self._orphans: set[tuple[str, str]] = set()
        self._choices: dict[str, int] = {}
        self.conditions: dict[str, Condition] = {}
        self.unexplained = False

    def learn(self, names: tuple[str, ...], choices: Mapping[str, int]) -> None:
        """Learn from one trial; free of cost if one like it has been seen.

        Parameters
        ----------
        names : tuple of str
            The parameters it has.
        choices : mapping of str to int
            Of those that may be parents: the index of the choice, or the integer.
        """
        pattern = (names, tuple(choices.items()))
        if pattern in self._seen:
            return
        self._seen.add(pattern)
        new = [name for name in names if name not in self._present]
        self._n_patterns += 1
        self._present.update(names)
        present = set(names)
        for q in (*self._choices, *(name for name in choices if name not in self._choices)):
            if q not in choices:
                self._orphans.update((p, q) for p in names)
                continue
            for p in self._present:
                side = self._with if p in present else self._without
                side[p, q].add(choices[q])
        self._catch_up(new, choices)
        self._explain()

    def _catch_up(self, new: list[str], choices: Mapping[str, int]) -> None:
        """Add to the tallies what earlier patterns, which lacked the new names, say of them."""
        for names, earlier in self._seen if new else ():
            known = dict(earlier)
            for p in new:
                if p in names:
                    continue
                for q, choice in known.items():
                    self._without[p, q].add(choice)
            for q in choices:
                if q in new and q not in known:
                    self._orphans.update((p, q) for p in names)
        self._choices.update(choices)

    def _explain(self) -> None:
        self.conditions = {}
        self.unexplained = False
        for p, count in self._present.items():
            if count == self._n_patterns:
                continue
            parents = [
                q
                for q in self._choices
                if self._present[q] > count
                and (p, q) not in self._orphans
                and not self._with[p, q] & self._without[p, q]
            ]
            if parents:
                parent = min(parents, key=lambda q: self._present[q])
                self.conditions[p] = Condition(parent, tuple(sorted(self._with[p, parent])))
            else:
                self.unexplained = True
