"""The Mondrian process on a box: its distribution, extension, restriction, evolution, pictures.

Statistical tests have significance level 1e-3.
"""

from __future__ import annotations

import functools
import itertools
import re

import numpy as np
import pytest
from scipy.stats import chisquare, expon, ks_2samp, kstest

from mondrian_bo.surrogates import MondrianPartition

LEVEL = 1e-3
N = 400
SMALL = np.array([[0.2, 0.6], [0.0, 0.5]])
LARGE = np.array([[0.0, 1.0], [-0.5, 0.75]])
RATES = np.array([1.0, 2.0])
LIFETIME = 1.5


@functools.cache
def _drawn(box, start, lifetime):
    bounds = {"small": SMALL, "large": LARGE}[box]
    return [
        MondrianPartition.sample(bounds, lifetime, rates=RATES, random_state=seed)
        for seed in range(start, start + N)
    ]


def _samples(bounds, start=0, lifetime=LIFETIME):
    """Return partitions that several tests share."""
    return _drawn("small" if bounds is SMALL else "large", start, lifetime)


@functools.cache
def _numbers_of_large():
    return _numbers(_samples(LARGE, start=N))


def _numbers(partitions):
    """Numbers that describe partitions: of cells, the times of cuts, where the first one is."""
    cuts = [partition.cuts() for partition in partitions]
    return {
        "cells": [partition.n_cells for partition in partitions],
        "first time": [c.time[0] if len(c.time) else LIFETIME for c in cuts],
        "mean time": [c.time.mean() if len(c.time) else LIFETIME for c in cuts],
        "first cut": [c.dimension[0] + c.threshold[0] if len(c.time) else 9.0 for c in cuts],
        "cuts of feature 0": [int((c.dimension == 0).sum()) for c in cuts],
        "second moment of volumes": [
            float((np.ptp(p.cells(), axis=2).prod(axis=1) ** 2).sum()) for p in partitions
        ],
    }


def _same_distribution(one, expected):
    for name, values in _numbers(one).items():
        assert ks_2samp(values, expected[name]).pvalue > LEVEL, name


def _equal(one, other):
    np.testing.assert_array_equal(one.bounds, other.bounds)
    assert one.lifetime == other.lifetime
    for first, second in zip(one.cuts(), other.cuts(), strict=True):
        np.testing.assert_array_equal(first, second)


# Distribution -------------------------------------------------------------------------------------


def test_first_cut():
    """Its time is exponential, its dimension in proportion to the rates, its location uniform."""
    cuts = [partition.cuts() for partition in _samples(LARGE, lifetime=3.0)]
    extents = RATES * np.ptp(LARGE, axis=1)
    times = np.array([c.time[0] for c in cuts])
    assert kstest(times, expon(scale=1.0 / extents.sum()).cdf).pvalue > LEVEL
    dimensions = np.array([c.dimension[0] for c in cuts])
    expected = N * extents / extents.sum()
    assert chisquare(np.bincount(dimensions, minlength=2), expected).pvalue > LEVEL
    for d in range(2):
        places = np.array([c.threshold[0] for c in cuts])[dimensions == d]
        assert kstest((places - LARGE[d, 0]) / np.ptp(LARGE[d]), "uniform").pvalue > LEVEL


def test_waiting_times_of_all_cells():
    """Times from the cut of a parent to the cut of a node are exponential; cells are censored."""
    residuals, events = 0.0, 0
    for partition in _samples(LARGE):
        nodes = partition.nodes
        parent_time = np.zeros(len(nodes.split_time))
        inner = nodes.dimension >= 0
        parent_time[nodes.children[inner]] = nodes.split_time[inner, None]
        rate = (RATES * np.ptp(nodes.box, axis=1)).sum(axis=1)
        residuals += (rate * (np.minimum(nodes.split_time, LIFETIME) - parent_time)).sum()
        events += inner.sum()
    # The compensated number of cuts is a martingale with this variance.
    assert abs(events - residuals) < 3.3 * np.sqrt(residuals)


def test_number_of_cells():
    numbers = np.array([partition.n_cells for partition in _samples(LARGE)])
    expected = np.prod(1.0 + LIFETIME * RATES * np.ptp(LARGE, axis=1))
    assert abs(numbers.mean() - expected) < 3.3 * numbers.std() / np.sqrt(N)


def test_restriction_is_the_process_on_the_smaller_box():
    restricted = [p.restrict(SMALL) for p in _samples(LARGE)]
    _same_distribution(restricted, _numbers(_samples(SMALL, start=N)))


def test_extension_is_the_process_on_the_larger_box():
    extended = [p.extend(LARGE, random_state=3 * N + i) for i, p in enumerate(_samples(SMALL))]
    _same_distribution(extended, _numbers_of_large())


def test_evolution_is_the_process_of_the_later_lifetime():
    early = _samples(LARGE, lifetime=0.4)
    later = [p.evolve(LIFETIME, random_state=3 * N + i) for i, p in enumerate(early)]
    _same_distribution(later, _numbers_of_large())


@pytest.mark.parametrize("steps", ["evolve", "evolve twice", "extend", "extend and evolve"])
def test_one_integer_for_all_steps(steps):
    """The steps of a sample do not repeat the random numbers of each other."""
    later = []
    for seed in range(N):
        bounds = SMALL if "extend" in steps else LARGE
        partition = MondrianPartition.sample(
            bounds, 0.4 if "evolve" in steps else LIFETIME, rates=RATES, random_state=seed
        )
        if "extend" in steps:
            partition = partition.extend(LARGE, random_state=np.int64(seed))
        if "twice" in steps:
            partition = partition.evolve(0.8, random_state=seed)
        later.append(partition.evolve(LIFETIME, random_state=seed))
        if seed < 40:
            _equal(partition.evolve(LIFETIME, random_state=seed), later[-1])
    _same_distribution(later, _numbers_of_large())


def test_two_points_share_a_cell_as_the_laplace_kernel_says():
    points = np.array([[0.1, 0.2], [0.4, 0.3]])
    together = [len(set(p.apply(points))) == 1 for p in _samples(LARGE)]
    expected = np.exp(-LIFETIME * (RATES * np.abs(points[0] - points[1])).sum())
    assert abs(np.mean(together) - expected) < 3.3 * np.sqrt(expected * (1.0 - expected) / N)


# What is kept -------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_round_trips(seed):
    partition = MondrianPartition.sample(SMALL, 4.0, rates=RATES, random_state=seed)
    _equal(partition.extend(LARGE, random_state=seed).restrict(SMALL), partition)
    _equal(partition.evolve(6.0, random_state=seed).at(4.0), partition)
    both = partition.extend(LARGE, random_state=seed).evolve(5.0, random_state=seed)
    _equal(both.at(4.0).restrict(SMALL), partition)
    _equal(both.restrict(SMALL).at(4.0), partition)
    _equal(partition.evolve(4.0), partition)
    assert partition.at(0.0).n_cells == 1


def test_cells_divide_the_box():
    partition = MondrianPartition.sample(LARGE, 4.0, random_state=0)
    cells = partition.cells()
    assert len(cells) == partition.n_cells == len(partition.cuts().time) + 1
    np.testing.assert_allclose(np.ptp(cells, axis=2).prod(axis=1).sum(), 1.25, rtol=1e-12)
    points = np.random.default_rng(0).uniform(*LARGE.T, size=(300, 2))
    inside = ((points[:, None] > cells[..., 0]) & (points[:, None] <= cells[..., 1])).all(axis=2)
    np.testing.assert_array_equal(inside.sum(axis=1), 1)
    np.testing.assert_array_equal(partition.apply(points), inside.argmax(axis=1))


def test_cells_of_a_later_time_refine_those_before():
    partition = MondrianPartition.sample(LARGE, 4.0, random_state=1)
    points = np.random.default_rng(0).uniform(*LARGE.T, size=(200, 2))
    early, late = partition.at(2.0).apply(points), partition.apply(points)
    for i, j in itertools.combinations(range(200), 2):
        assert early[i] == early[j] or late[i] != late[j]


def test_a_feature_without_rate_is_not_cut():
    partition = MondrianPartition.sample(LARGE, 9.0, rates=[0.0, 1.0], random_state=0)
    larger = partition.extend([[-1.0, 2.0], [-1.0, 1.0]], random_state=0)
    assert set(larger.cuts().dimension) == {1}


def test_same_seed_same_partition():
    _equal(*(MondrianPartition.sample(LARGE, 3.0, random_state=7) for _ in range(2)))


# Errors -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p: p.extend(SMALL), "must contain that of the partition"),
        (lambda p: p.restrict([[0.0, 2.0], [0.0, 0.5]]), "must be within that of the partition"),
        (lambda p: p.restrict([[0.0, 0.5]]), r"bounds must have shape \(2, 2\)"),
        (lambda p: p.extend(None), r"bounds must have shape \(2, 2\), got \(\)"),
        (lambda p: p.restrict(None), r"bounds must have shape \(2, 2\), got \(\)"),
        (lambda p: MondrianPartition.sample(None, 1.0), r"bounds must have shape \(n_features, 2"),
        (lambda p: p.evolve(1.0), r"at\(lifetime\) gives an earlier"),
        (lambda p: p.at(9.0), r"evolve\(lifetime\) samples a later"),
        (lambda p: p.evolve(np.inf), "lifetime must be finite"),
        (lambda p: p.apply([[0.0, 5.0]]), "outside of the box"),
        (lambda p: p.apply([0.0, 0.5]), "X must have shape"),
        (lambda p: MondrianPartition.sample([0.0, 1.0], 1.0), "bounds must have shape"),
        (lambda p: MondrianPartition.sample([[1.0, 0.0]], 1.0), "lower < upper"),
        (lambda p: MondrianPartition.sample([[0.0, 1.0]], np.nan), "lifetime must be finite"),
        (
            lambda p: MondrianPartition.sample(LARGE, 1.0, rates=[-1.0, 1.0]),
            "^rates must .* non-neg",
        ),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call(MondrianPartition.sample(LARGE, 2.0, random_state=0))


@pytest.mark.parametrize("lifetime", ["long", True, np.True_, None, np.complex128(1.0)])
def test_lifetimes_that_are_no_numbers(lifetime):
    message = re.escape(f"lifetime must be a number, got {lifetime!r}")
    partition = MondrianPartition.sample([[0, 1]], np.float32(0.5), random_state=0)
    for call in (partition.evolve, partition.at, lambda t: MondrianPartition.sample([[0, 1]], t)):
        with pytest.raises(TypeError, match=message):
            call(lifetime)


# Pictures -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_features", [1, 2])
def test_every_cut_is_drawn(n_features):
    pytest.importorskip("matplotlib").use("Agg")
    partition = MondrianPartition.sample(LARGE[:n_features], 3.0, random_state=0)
    axis = partition.draw(times=True, color="red")
    cuts = partition.cuts()
    assert len(axis.lines) == len(axis.texts) == len(cuts.time)
    for line, threshold, dimension in zip(axis.lines, cuts.threshold, cuts.dimension, strict=True):
        np.testing.assert_array_equal(line.get_data()[dimension], threshold)
        assert line.get_color() == "red"
    tree = partition.draw_tree()
    assert len(tree.lines) == len(cuts.time)
    heights = [line.get_ydata()[0] for line in tree.lines]
    np.testing.assert_array_equal(np.sort(heights), cuts.time)


def test_three_features_are_not_drawn():
    with pytest.raises(ValueError, match="only one or two features"):
        MondrianPartition.sample([[0, 1]] * 3, 1.0).draw()
