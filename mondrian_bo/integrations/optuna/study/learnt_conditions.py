"""The conditions of a space, learnt from trials.

Optuna's conditional spaces are never declared: an objective asks for a parameter or does not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TypeAlias

from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution

from mondrian_bo.search_space import Condition

_MANY_CHOICES = 16
"""Largest number of values of an integer parameter that can be a parent of others; our choice."""

Names: TypeAlias = tuple[str, ...]
"""Names of parameters."""

Pattern: TypeAlias = tuple[Names, Names, tuple[int, ...]]
"""The names of a trial's parameters, the possible parents among them, and the parents' choices."""


class ConditionLearner:
    """Explains the absence of each parameter by the value of one other parameter, its parent.

    A parent is categorical, or an integer with few values such as a number of layers. Parameter q
    is the parent of p if, in all trials so far, p is present exactly where q has one of certain
    values. Of several such q it is the one present least often: nested conditions become chains.

    Attributes
    ----------
    conditions : dict
        The conditions by parameter.
    unexplained : bool
        Whether some absences have no explanation.
    """

    def __init__(self) -> None:
        self._n_patterns = 0
        self._present: Counter[str] = Counter()
        self._seen: set[Pattern] = set()
        # One object of equal names: most trials have the same ones.
        self._names: dict[Names, Names] = {}
        # Of each possible parent, the choices of all patterns; in the order they were noticed.
        self._choices: dict[str, set[int]] = {}
        self._n_as_parent: Counter[str] = Counter()
        # Of each parameter that some pattern lacks, by possible parent: the parent's choices with
        # it, and those without.
        self._parents: dict[str, dict[str, tuple[set[int], set[int]]]] = {}
        self.conditions: dict[str, Condition] = {}
        self.unexplained = False

    def learn(
        self, values: Mapping[str, float], distributions: Mapping[str, BaseDistribution]
    ) -> None:
        """Learn from one trial; O(number of its parameters) if one like it has been seen.

        Otherwise the time is proportional to the number of parameters that some trial lacks and
        their possible parents, of which few are left soon.

        Parameters
        ----------
        values : mapping of str to float
            Optuna's internal values of the parameters that it has.
        distributions : mapping of str to BaseDistribution
            The distributions of these parameters.
        """
        choices = {n: int(value) for n, value in values.items() if _may_be_parent(distributions[n])}
        names, parents_here = (
            self._names.setdefault(some, some) for some in (tuple(values), tuple(choices))
        )
        pattern = names, parents_here, tuple(choices.values())
        if pattern in self._seen:
            return
        for p in [p for p, count in self._present.items() if count == self._n_patterns]:
            if p not in values:
                # All former patterns have it, so each parent that they have may explain it.
                self._parents[p] = {
                    q: (known.copy(), set())
                    for q, known in self._choices.items()
                    if q != p and self._n_as_parent[q] == self._n_patterns
                }
        for p in names:
            if p not in self._present and self._n_patterns > 0:
                # A parent is present wherever the parameter is; all former patterns are without it.
                self._parents[p] = {
                    q: (set(), self._choices.get(q, set()).copy()) for q in choices if q != p
                }
        self._seen.add(pattern)
        self._n_patterns += 1
        self._present.update(names)
        self._n_as_parent.update(choices.keys())
        for p, parents in self._parents.items():
            for q in list(parents):
                if q in choices:
                    sides = parents[q]
                    sides[0 if p in values else 1].add(choices[q])
                    if sides[0].isdisjoint(sides[1]):
                        continue
                elif p not in values:
                    continue
                del parents[q]
        for q, choice in choices.items():
            self._choices.setdefault(q, set()).add(choice)
        self._explain()

    def _explain(self) -> None:
        """Find the conditions anew, after another pattern has been seen."""
        self.conditions = {}
        self.unexplained = False
        order = {q: i for i, q in enumerate(self._choices)}
        for p, parents in self._parents.items():
            count = self._present[p]
            found = [q for q in parents if self._present[q] > count]
            if found:
                parent = min(found, key=lambda q: (self._present[q], order[q]))
                self.conditions[p] = Condition(parent, tuple(sorted(parents[parent][0])))
            else:
                self.unexplained = True


def _may_be_parent(distribution: BaseDistribution) -> bool:
    """Whether a parameter has few values, as a number of layers has."""
    if isinstance(distribution, IntDistribution):
        size = (distribution.high - distribution.low) // distribution.step + 1
        return size <= _MANY_CHOICES
    return isinstance(distribution, CategoricalDistribution)
