"""Random streams and random functions of keys."""

import numpy as np
import pytest
from scipy import stats

from mondrian_bo.trees.random import (
    exponential,
    hashed_normal,
    hashed_uniform,
    make_streams,
    mix,
    uniform,
)

MASK = 2**64 - 1
SIGNIFICANCE = 1e-4  # the smallest of 30 p-values is 0.01
SEEDS = [0, 1, 2**40]


def splitmix64(state):
    """Steele, Lea and Flood's generator in plain integers: the next state and output."""
    state = (state + 0x9E3779B97F4A7C15) & MASK
    word = state
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & MASK
    return state, word ^ (word >> 31)


def test_published_outputs_of_splitmix64():
    # The first outputs for the seed 1234567, as published with the reference implementation.
    state = 1234567
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    stream = np.array([state], dtype=np.uint64)
    for word in expected:
        state, output = splitmix64(state)
        assert output == word
        assert uniform(stream) == (word >> 11) / 2**53
        assert int(stream[0]) == state


def test_mix_is_that_of_splitmix64():
    rng = np.random.default_rng(0)
    for _ in range(200):
        state = int(rng.integers(2**64, dtype=np.uint64))
        following, output = splitmix64(state)
        assert int(mix(np.uint64(following))) == output


@pytest.mark.parametrize("seed", SEEDS)
def test_uniform(seed):
    stream = make_streams(np.random.SeedSequence(seed), 1)[0]
    numbers = np.array([uniform(stream) for _ in range(20_000)])
    assert numbers.min() >= 0.0
    assert numbers.max() < 1.0
    assert numbers.mean() == pytest.approx(0.5, abs=4.5 * np.sqrt(1.0 / 12.0 / 20_000))
    assert numbers.var() == pytest.approx(1.0 / 12.0, abs=4.5 * np.sqrt(1.0 / 180.0 / 20_000))
    assert stats.kstest(numbers, "uniform").pvalue > SIGNIFICANCE
    # Neighbours are independent.
    cells = np.histogram2d(numbers[:-1:2], numbers[1::2], bins=8, range=[[0, 1], [0, 1]])[0]
    assert stats.chisquare(cells.ravel()).pvalue > SIGNIFICANCE


@pytest.mark.parametrize("seed", SEEDS)
def test_exponential(seed):
    stream = make_streams(np.random.SeedSequence(seed), 1)[0]
    numbers = np.array([exponential(stream) for _ in range(20_000)])
    assert np.all((numbers >= 0.0) & np.isfinite(numbers))
    assert stats.kstest(numbers, "expon").pvalue > SIGNIFICANCE


def test_streams_are_a_function_of_seed_and_index():
    streams = make_streams(np.random.SeedSequence(4), 100)
    assert streams.shape == (100, 1)
    assert streams.dtype == np.uint64
    assert len(np.unique(streams)) == 100
    for n in (1, 7):
        assert np.array_equal(make_streams(np.random.SeedSequence(4), n), streams[:n])
    others = make_streams(np.random.SeedSequence(5), 100)
    assert len(np.intersect1d(streams, others)) == 0


def test_streams_are_independent():
    streams = make_streams(np.random.SeedSequence(6), 300)
    numbers = np.array([[uniform(stream) for _ in range(60)] for stream in streams])
    # At each time across streams, and between neighbouring streams.
    assert stats.kstest(numbers[:, 0], "uniform").pvalue > SIGNIFICANCE
    assert stats.kstest(numbers[:, 59], "uniform").pvalue > SIGNIFICANCE
    assert stats.pearsonr(numbers[:-1].ravel(), numbers[1:].ravel()).pvalue > SIGNIFICANCE
    assert len(np.unique(numbers)) == numbers.size


@pytest.mark.parametrize("seed", SEEDS)
def test_hashed_numbers(seed):
    rng = np.random.default_rng(seed)
    keys = rng.integers(2**63, size=100, dtype=np.uint64)
    items = np.arange(200)
    flat = np.array([[hashed_uniform(key, item) for item in items] for key in keys])
    normal = np.array([[hashed_normal(key, item) for item in items] for key in keys])
    assert flat.min() > 0.0
    assert flat.max() < 1.0
    assert np.all(np.isfinite(normal))
    for table, distribution in ((flat, "uniform"), (normal, "norm")):
        assert stats.kstest(table.ravel(), distribution).pvalue > SIGNIFICANCE
        # Neither neighbouring items nor different keys are related.
        assert stats.pearsonr(table[:, :-1].ravel(), table[:, 1:].ravel()).pvalue > SIGNIFICANCE
        assert stats.pearsonr(table[:-1].ravel(), table[1:].ravel()).pvalue > SIGNIFICANCE
        assert len(np.unique(table)) == table.size


def test_hashed_numbers_are_functions():
    for key in (0, 3, 2**63, 2**64 - 1):
        for item in (0, 1, 2**31):
            word = np.uint64(key)
            assert hashed_uniform(word, item) == hashed_uniform(word, item)
            assert hashed_normal(word, item) == hashed_normal(word, item)
            expected = (splitmix64((key + item * 0x9E3779B97F4A7C15) & MASK)[1] >> 11) + 0.5
            assert hashed_uniform(word, item) == expected / 2**53
