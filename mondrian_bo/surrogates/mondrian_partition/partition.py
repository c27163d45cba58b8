"""The Mondrian process on a box, for study and pictures."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mondrian_bo.shared.argument_checks import is_integer, is_number
from mondrian_bo.shared.array_types import FloatArray, IntArray
from mondrian_bo.surrogates.estimators.validation import (
    check_bounds,
    check_feature_weights,
    seed_sequence,
)
from mondrian_bo.surrogates.mondrian_partition.drawing import draw_partition, draw_tree
from mondrian_bo.surrogates.mondrian_partition.nodes import (
    NO_NODES,
    PartitionCuts,
    PartitionNodes,
    grow,
    restricted,
)
from mondrian_bo.trees.layout import LEFT, LOWER, NONE, RIGHT, UPPER


@dataclass(eq=False, repr=False)
class MondrianPartition:
    """A sample of the Mondrian process on a box, up to a lifetime.

    A cell of extents e is cut at rate ``sum(rates * e)``, in a dimension with probability in
    proportion to ``rates * e``, at a uniform location (Balog2016, section 2.2). On average there
    are ``prod(1 + lifetime * rates * extents)`` cells. :meth:`sample` makes a partition; the other
    methods return new partitions and leave theirs as it is.

    Attributes
    ----------
    bounds : float64 array of shape (n_features, 2)
        Lower and upper end of each feature.
    lifetime : float
        The time at which the process ends.
    rates : float64 array of shape (n_features,)
        Rate of cuts for each unit of the extent of a feature.
    nodes : PartitionNodes
        The binary tree, a NamedTuple of arrays.

    Notes
    -----
    Any number of calls of `extend`, `restrict`, `evolve` and `at` leaves a sample of the Mondrian
    process on its box up to its lifetime: the process is projective and Markov (Balog2016, section
    2.3). All take O(number of nodes). The forests of this library do not use this class; their
    trees have only the cuts that separate data.

    Examples
    --------
    >>> from mondrian_bo.surrogates import MondrianPartition
    >>> partition = MondrianPartition.sample([[0, 1], [0, 1]], lifetime=3.0, random_state=0)
    >>> larger = partition.extend([[-1, 2], [0, 1]], random_state=1)
    >>> bool((larger.restrict([[0, 1], [0, 1]]).cuts().time == partition.cuts().time).all())
    True
    >>> later = partition.evolve(5.0, random_state=2)
    >>> later.at(3.0).n_cells == partition.n_cells <= later.n_cells
    True
    """

    bounds: FloatArray
    lifetime: float
    rates: FloatArray
    nodes: PartitionNodes

    @classmethod
    def sample(
        cls,
        bounds: ArrayLike,
        lifetime: float,
        *,
        rates: ArrayLike | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> MondrianPartition:
        """Sample the Mondrian process on a box.

        Parameters
        ----------
        bounds : array-like of shape (n_features, 2)
            Lower and upper end of each feature, finite, lower < upper.
        lifetime : float
            The time at which the process ends, finite and not negative.
        rates : array-like of shape (n_features,) or None, default=None
            Rate of cuts for each unit of the extent of a feature, not negative and not all zero.
            None is all ones.
        random_state : int, RandomState instance or None, default=None
            Seed of the cuts.

        Returns
        -------
        MondrianPartition
            The sample.

        Raises
        ------
        ValueError
            If an argument is not as described.
        """
        ends = _checked_bounds(bounds)
        lifetime = _checked_lifetime(lifetime)
        factors = check_feature_weights(rates, len(ends), "rates")
        own_rates = np.ones(len(ends)) if factors is None else factors
        nodes = grow(NO_NODES, ends.T.copy(), own_rates, (0.0, lifetime), _generator(random_state))
        return cls(ends, lifetime, own_rates, nodes)

    @property
    def n_features(self) -> int:
        """The number of features."""
        return len(self.bounds)

    @property
    def n_cells(self) -> int:
        """The number of cells."""
        return (len(self.nodes.split_time) + 1) // 2

    def extend(
        self, bounds: ArrayLike, random_state: int | np.random.RandomState | None = None
    ) -> MondrianPartition:
        """Sample the process on a larger box, given what it is on this one.

        This is the conditional Mondrian process (Balog2016thesis, section 1.3).

        Parameters
        ----------
        bounds : array-like of shape (n_features, 2)
            The larger box.
        random_state : int, RandomState instance or None, default=None
            Seed of the new cuts. They are independent of those of this partition, also if this one
            was made with the same integer.

        Returns
        -------
        MondrianPartition
            The partition of the larger box, whose restriction to this box is this partition.

        Raises
        ------
        ValueError
            If the box does not contain this one.
        """
        ends = _checked_bounds(bounds, self.n_features)
        if np.any(ends[:, 0] > self.bounds[:, 0]) or np.any(ends[:, 1] < self.bounds[:, 1]):
            raise ValueError(f"the box must contain that of the partition, {self.bounds.tolist()}")
        times = (self.lifetime, self.lifetime)
        rng = _generator(random_state, self, ends)
        nodes = grow(self.nodes, ends.T.copy(), self.rates, times, rng)
        return MondrianPartition(ends, self.lifetime, self.rates, nodes)

    def restrict(self, bounds: ArrayLike) -> MondrianPartition:
        """Return the partition of a smaller box that this one induces.

        Parameters
        ----------
        bounds : array-like of shape (n_features, 2)
            The smaller box.

        Returns
        -------
        MondrianPartition
            The partition of the smaller box, by the cuts that cross it.

        Raises
        ------
        ValueError
            If the box is not within this one.
        """
        ends = _checked_bounds(bounds, self.n_features)
        if np.any(ends[:, 0] < self.bounds[:, 0]) or np.any(ends[:, 1] > self.bounds[:, 1]):
            raise ValueError(
                f"the box must be within that of the partition, {self.bounds.tolist()}"
            )
        nodes = restricted(self.nodes, ends.T.copy(), self.lifetime)
        return MondrianPartition(ends, self.lifetime, self.rates, nodes)

    def evolve(
        self, lifetime: float, random_state: int | np.random.RandomState | None = None
    ) -> MondrianPartition:
        """Sample how the process goes on until a later lifetime.

        Parameters
        ----------
        lifetime : float
            The lifetime of the result, not less than that of this partition.
        random_state : int, RandomState instance or None, default=None
            Seed of the new cuts. They are independent of those of this partition, also if this one
            was made with the same integer.

        Returns
        -------
        MondrianPartition
            The later partition. It has all cuts of this one.

        Raises
        ------
        ValueError
            If the lifetime is earlier; :meth:`at` gives the partition then.
        """
        lifetime = _checked_lifetime(lifetime)
        if lifetime < self.lifetime:
            raise ValueError(
                f"the lifetime must be at least {self.lifetime:g}, got {lifetime:g}; "
                "at(lifetime) gives an earlier partition"
            )
        box, times = self.bounds.T.copy(), (self.lifetime, lifetime)
        rng = _generator(random_state, self, self.bounds)
        nodes = grow(self.nodes, box, self.rates, times, rng)
        return MondrianPartition(self.bounds, lifetime, self.rates, nodes)

    def at(self, lifetime: float) -> MondrianPartition:
        """Return the partition as it was at an earlier time.

        Parameters
        ----------
        lifetime : float
            The time, not later than the lifetime of this partition.

        Returns
        -------
        MondrianPartition
            The earlier partition, by the cuts up to that time.

        Raises
        ------
        ValueError
            If the time is later; :meth:`evolve` samples a later partition.
        """
        lifetime = _checked_lifetime(lifetime)
        if lifetime > self.lifetime:
            raise ValueError(
                f"the lifetime must be at most {self.lifetime:g}, got {lifetime:g}; "
                "evolve(lifetime) samples a later partition"
            )
        nodes = restricted(self.nodes, self.bounds.T.copy(), lifetime)
        return MondrianPartition(self.bounds, lifetime, self.rates, nodes)

    def cuts(self) -> PartitionCuts:
        """Return the cuts in the order of their times."""
        inner = np.flatnonzero(self.nodes.dimension != NONE)
        order = inner[np.argsort(self.nodes.split_time[inner])]
        return PartitionCuts(
            self.nodes.split_time[order],
            self.nodes.dimension[order],
            self.nodes.threshold[order],
            self.nodes.box[order].transpose(0, 2, 1),
        )

    def cells(self) -> FloatArray:
        """Return the cells as boxes, lower and upper ends, shape (n_cells, n_features, 2)."""
        cells = self.nodes.box[self.nodes.dimension == NONE]
        return np.ascontiguousarray(cells.transpose(0, 2, 1))

    def apply(self, X: ArrayLike) -> IntArray:
        """Return the cell of each point, O(depth) each.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points in the box.

        Returns
        -------
        int64 array of shape (n_samples,)
            Rows of :meth:`cells`.

        Raises
        ------
        ValueError
            If X has another number of features, or a point is outside of the box.
        """
        points = np.asarray(X, dtype=np.float64)
        if points.ndim != 2 or points.shape[1] != self.n_features:
            raise ValueError(
                f"X must have shape (n_samples, {self.n_features}), got {points.shape}"
            )
        if not np.all((points >= self.bounds[:, 0]) & (points <= self.bounds[:, 1])):
            raise ValueError("X has points outside of the box; extend the partition first")
        nodes = self.nodes
        number = np.cumsum(nodes.dimension == NONE) - 1
        found = np.zeros(len(points), dtype=np.int64)
        going = np.flatnonzero(nodes.dimension[found] != NONE)
        while len(going) > 0:
            at = found[going]
            left = points[going, nodes.dimension[at]] <= nodes.threshold[at]
            found[going] = nodes.children[at, np.where(left, LEFT, RIGHT)]
            going = going[nodes.dimension[found[going]] != NONE]
        return np.asarray(number[found], dtype=np.int64)

    def draw(self, axis: Any = None, *, times: bool = False, **line_options: Any) -> Any:
        """Draw the cuts of a partition in one or two dimensions, with matplotlib.

        In two dimensions cuts are lines in the box, earlier ones thicker. In one dimension the
        second axis is time, and a cut is a line from its time on.

        Parameters
        ----------
        axis : matplotlib Axes or None, default=None
            Where to draw. None makes a new figure.
        times : bool, default=False
            Whether to write the time of each cut beside it.
        **line_options : object
            Options of the lines, such as ``color``.

        Returns
        -------
        matplotlib Axes
            The axis.

        Raises
        ------
        ValueError
            If there are more than two features.
        ImportError
            If matplotlib is not installed.
        """
        return draw_partition(self.cuts(), self.bounds, self.lifetime, axis, times, line_options)

    def draw_tree(self, axis: Any = None, **line_options: Any) -> Any:
        """Draw the binary tree of the cuts over time, with matplotlib (Balog2016, Figure 1b).

        Parameters
        ----------
        axis : matplotlib Axes or None, default=None
            Where to draw. None makes a new figure.
        **line_options : object
            Options of the lines, such as ``color``.

        Returns
        -------
        matplotlib Axes
            The axis. Its y axis is time, downwards; leaves stand side by side.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        return draw_tree(self.nodes, self.lifetime, axis, line_options)


def _checked_bounds(bounds: ArrayLike, n_features: int | None = None) -> FloatArray:
    """Return the ends of the features, shape (n_features, 2)."""
    shape = np.shape(bounds)
    if len(shape) != 2 or shape[1] != 2 or shape[0] == 0 or n_features not in (None, shape[0]):
        raise ValueError(f"bounds must have shape ({n_features or 'n_features'}, 2), got {shape}")
    ends = check_bounds(bounds, int(shape[0]))
    assert ends is not None
    return np.stack([ends[LOWER], ends[UPPER]], axis=1)


def _checked_lifetime(lifetime: Any) -> float:
    if not is_number(lifetime) or np.iscomplexobj(lifetime):
        raise TypeError(f"lifetime must be a number, got {lifetime!r}")
    if not 0.0 <= float(lifetime) < math.inf:
        raise ValueError(f"lifetime must be finite and not negative, got {lifetime}")
    return float(lifetime)


def _generator(
    random_state: int | np.random.RandomState | None,
    former: MondrianPartition | None = None,
    bounds: FloatArray | None = None,
) -> np.random.Generator:
    """Return the random numbers of a sample, or of more cuts of a former one in a box.

    An integer that several calls share must not give them the same random numbers, as the cuts of
    one sample would depend on each other. The former partition and the box are mixed in.
    """
    seeds = seed_sequence(random_state)
    if former is None or bounds is None or not is_integer(random_state):
        return np.random.default_rng(seeds)
    state = np.array([former.lifetime, *former.bounds.flat, *bounds.flat])
    key = [len(former.nodes.split_time), *state.view(np.uint32).tolist()]
    return np.random.default_rng(np.random.SeedSequence(seeds.entropy, spawn_key=key))
