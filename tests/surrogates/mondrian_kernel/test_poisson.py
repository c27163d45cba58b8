"""In one dimension cuts are a Poisson process (Balog2016thesis, Lemma 1.9 and Theorem 1.10)."""

import numpy as np
import pytest
from scipy.stats import chisquare, expon, kstest, poisson

from mondrian_bo.surrogates.mondrian_kernel.forest import PartitionForest
from mondrian_bo.surrogates.shared.ensemble import Ensemble
from mondrian_bo.trees.layout import N_NODES, NONE

LIFETIME = 6.0


def grown(points, n_trees, seed):
    ensemble = Ensemble(n_trees, 1, np.random.SeedSequence(seed))
    forest = PartitionForest(ensemble, np.ones(1), LIFETIME)
    forest.build(points[None, :, None].copy(), np.zeros(len(points)))
    return forest


def cuts(forest, t):
    """Locations and times of the cuts of a tree, from left to right."""
    trees = forest.arrays
    inner = np.flatnonzero(trees.children[t, : trees.counters[t, N_NODES], 0] != NONE)
    places = trees.threshold[t, inner]
    order = np.argsort(places)
    return places[order], trees.split_time[t, inner][order]


@pytest.mark.parametrize("seed", [0, 1])
def test_number_of_cuts_is_poisson(seed):
    n_trees = 3000
    # So dense that two cuts between neighbours, which count once, are rare.
    forest = grown(np.linspace(0.0, 1.0, 4001), n_trees, seed)
    numbers = np.array([len(cuts(forest, t)[0]) for t in range(n_trees)])
    kinds = np.arange(13)
    observed = np.bincount(np.minimum(numbers, 12), minlength=13)
    probabilities = poisson.pmf(kinds, LIFETIME)
    probabilities[-1] = poisson.sf(11, LIFETIME)
    assert chisquare(observed, n_trees * probabilities).pvalue > 1e-3


def test_gaps_are_exponential():
    forest = grown(np.linspace(0.0, 20.0, 60001), 40, 0)
    gaps = np.concatenate([np.diff(cuts(forest, t)[0]) for t in range(40)])
    assert len(gaps) > 3000
    # Gaps below the distance of the points are met less often.
    assert kstest(gaps, expon(scale=1.0 / LIFETIME).cdf).pvalue > 1e-3


def test_first_cuts_between_neighbours_are_independent_exponential_clocks():
    points = np.array([0.0, 0.05, 0.3, 0.4])
    n_trees = 6000
    forest = grown(points, n_trees, 3)
    first = np.full((n_trees, 3), np.inf)
    for t in range(n_trees):
        places, times = cuts(forest, t)
        first[t, np.searchsorted(points, places) - 1] = times
    for gap, times in zip(np.diff(points), first.T, strict=True):
        rung = times[np.isfinite(times)]
        probability = -np.expm1(-LIFETIME * gap)
        assert abs(len(rung) / n_trees - probability) < 4.0 * np.sqrt(
            probability * (1.0 - probability) / n_trees
        )
        assert kstest(rung, lambda x, g=gap, c=probability: -np.expm1(-g * x) / c).pvalue > 1e-3
    correlations = np.corrcoef(np.isfinite(first).astype(float), rowvar=False)
    assert np.all(np.abs(correlations[np.triu_indices(3, 1)]) < 4.0 / np.sqrt(n_trees))
