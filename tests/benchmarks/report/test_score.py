"""The score against loops in plain Python."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import rankdata, wilcoxon

from mondrian_bo.benchmarks.harness.results import ProblemFacts
from mondrian_bo.benchmarks.report.score import (
    bootstrap,
    compare,
    compare_all,
    pair,
)
from mondrian_bo.benchmarks.report.score_tables import score, score_sections
from mondrian_bo.benchmarks.report.summary import ProblemResults


def results_of(best, *, name="p", optimum=0.0, start=1.0, tolerance=1e-3, feasible=None):
    n_constraints = 0 if feasible is None else 2
    facts = ProblemFacts(name, "", "group", "development", optimum, tolerance, n_constraints)
    best = {s: {seed: np.array(c) for seed, c in runs.items()} for s, runs in best.items()}
    seconds = {
        s: {seed: np.full(len(c), 1e-3) for seed, c in runs.items()} for s, runs in best.items()
    }
    feasible = {
        s: {
            seed: np.full(len(c), True) if feasible is None else np.array(feasible[s][seed], bool)
            for seed, c in runs.items()
        }
        for s, runs in best.items()
    }
    return ProblemResults(facts, optimum, start, best, seconds, feasible)


def random_results(name, n_seeds, rng, n_trials=30, samplers="abc"):
    return results_of(
        {
            s: {
                seed: np.minimum.accumulate(rng.integers(1, 40, n_trials) + 0.1 * i)
                for seed in range(n_seeds)
            }
            for i, s in enumerate(samplers)
        },
        name=name,
        start=20.0,
    )


def test_regrets_and_ranks_are_paired_by_seed():
    results = results_of(
        {
            "a": {0: [4.0, 3.0, 2.0, 1e-9], 1: [9.0, 1.0, 1.0, 1.0], 7: [0.0] * 4},
            "b": {0: [8.0, 1.0, 1.0, 0.0], 1: [4.0, 4.0, 0.5, 0.5]},
        },
        start=2.0,
    )
    runs = pair(results, ["a", "b"])
    assert runs.seeds == (0, 1)
    # 1 % to 25 % of four trials is the first; at most 1; a billionth is nothing.
    assert runs.regrets[0, 0, [0, 24, 25, 49, 74, 99]].tolist() == [1, 1, 1, 1, 1, 0]
    assert runs.regrets[1, 1, [24, 49, 74, 99]].tolist() == [1, 1, 0.25, 0.25]
    # Ranks see what the limit of 1 hides, and ties share their mean. 26 % is the second trial.
    assert runs.ranks[:, 0, [24, 25, 49, 74, 99]].tolist() == [[1, 2, 2, 2, 1.5], [2, 1, 1, 1, 1.5]]
    assert runs.ranks[:, 1, [24, 49, 74, 99]].tolist() == [[2, 1, 2, 2], [1, 2, 1, 1]]


def test_no_common_seed_no_pair():
    assert pair(results_of({"a": {0: [1.0]}, "b": {1: [1.0]}}), ["a", "b"]) is None


def test_bootstrap_mean_and_interval():
    rng = np.random.default_rng(0)
    problems = [rng.normal(size=(2, n, 3)) for n in (20, 8)]
    estimate = bootstrap(problems)
    assert estimate.mean == pytest.approx(np.mean([p.mean(axis=1) for p in problems], axis=0))

    draws = []
    for _ in range(3000):
        means = [p[:, rng.integers(0, p.shape[1], p.shape[1])].mean(axis=1) for p in problems]
        draws.append(np.mean(means, axis=0))
    low, high = np.quantile(draws, [0.025, 0.975], axis=0)
    assert estimate.low == pytest.approx(low, abs=0.04)
    assert estimate.high == pytest.approx(high, abs=0.04)


def test_bootstrap_covers_the_mean_over_seeds():
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(100):
        estimate = bootstrap([rng.normal(size=(1, 20, 1)) for _ in range(4)])
        covered += bool(estimate.low[0, 0] <= 0.0 <= estimate.high[0, 0])
    assert covered >= 84  # percentile intervals of 20 seeds fall a little short of 95


@pytest.mark.parametrize("seed", range(5))
def test_compare_is_wilcoxon(seed):
    rng = np.random.default_rng(seed)
    own, other = rng.normal(size=16) ** 2, rng.normal(size=16) ** 2 + 0.3 * seed
    results = results_of(
        {name: {i: [x] for i, x in enumerate(xs)} for name, xs in (("a", own), ("b", other))}
    )
    expected = "tie"
    if wilcoxon(own, other).pvalue < 0.05:
        expected = "win" if wilcoxon(own, other, alternative="less").pvalue < 0.05 else "loss"
    assert compare(results, "a", "b", 100) == expected
    mirrored = {"win": "loss", "loss": "win", "tie": "tie"}[expected]
    assert compare(results, "b", "a", 100) == mirrored


@pytest.mark.parametrize("seed", range(6))
def test_compare_with_ties_enumerates_the_signs(seed):
    rng = np.random.default_rng(seed)
    difference = rng.integers(seed - 4, seed + 3, 8).astype(float)
    runs = {"a": {i: [x + 10] for i, x in enumerate(difference)}, "b": {i: [10] for i in range(8)}}

    nonzero = difference[difference != 0]
    ranks = rankdata(np.abs(nonzero))
    observed = np.sum(np.sign(nonzero) * ranks)
    sums = [np.sum(np.array(s) * ranks) for s in itertools.product((-1, 1), repeat=len(ranks))]
    p = 2 * min(np.mean(np.array(sums) <= observed), np.mean(np.array(sums) >= observed))
    expected = "tie" if p >= 0.05 else "loss" if observed > 0 else "win"
    assert compare(results_of(runs), "a", "b", 100) == expected


def test_compare_knows_wins_losses_and_when_it_cannot_tell():
    def outcome(own, other):
        runs = {n: {i: [x] for i, x in enumerate(xs)} for n, xs in (("a", own), ("b", other))}
        return compare(results_of(runs), "a", "b", 100)

    small, large = np.arange(1.0, 9.0), np.arange(11.0, 19.0)
    assert outcome(small, large) == "win"
    assert outcome(large, small) == "loss"
    assert outcome(small, small) == "tie"
    assert outcome(small[:5], large[:5]) == "tie"  # five seeds: p is 1/16 at best


def test_compare_at_a_share_of_the_budget():
    """After 25 %, 50 % and 100 % of three trials: the first, the second and the third."""
    runs = {
        "a": {seed: [20.0, 1.0 + 0.1 * seed, 1.0] for seed in range(8)},
        "b": {seed: [20.0, 10.0, 0.1 * seed] for seed in range(8)},
    }
    outcomes = [compare(results_of(runs), "a", "b", percent) for percent in (25, 50, 100)]
    assert outcomes == ["tie", "win", "loss"]


def test_compare_uses_all_seeds_that_both_have():
    """A third sampler with fewer runs changes nothing."""
    runs = {
        "a": {seed: [1.0 + seed] for seed in range(8)},
        "b": {seed: [11.0 + seed] for seed in range(9)},
        "c": {0: [5.0]},
    }
    assert compare(results_of(runs), "a", "b", 100) == "win"


@pytest.mark.parametrize("seed", range(4))
def test_corrected_tests_are_holms(seed):
    """A problem counts if every problem with a smaller p-value passes its own level."""
    rng = np.random.default_rng(seed)
    problems, p_values, signs = [], [], []
    for effect in rng.permutation([0.0, 0.3, -0.5, 0.7, 0.9, 2.0]):
        own, other = rng.normal(size=16) + 10 + effect, rng.normal(size=16) + 10
        runs = {n: {i: [x] for i, x in enumerate(xs)} for n, xs in (("a", own), ("b", other))}
        problems.append(results_of(runs))
        p_values.append(wilcoxon(own, other).pvalue)
        signs.append("loss" if wilcoxon(own, other, alternative="greater").pvalue < 0.5 else "win")
    expected = []
    for p_value, sign in zip(p_values, signs, strict=True):
        below = [p for p in p_values if p <= p_value]
        passed = all(p < 0.05 / sum(q >= p for q in p_values) for p in below)
        expected.append(sign if passed else "tie")
    assert compare_all(problems, "a", "b", 100) == expected
    uncorrected = [compare(problem, "a", "b", 100) for problem in problems]
    assert sum(o != "tie" for o in expected) <= sum(o != "tie" for o in uncorrected)


def test_feasible_trials_are_counted_after_the_first():
    runs = {s: {0: [3.0] * 5, 1: [3.0] * 5} for s in "ab"}
    feasible = {
        "a": {0: [0, 1, 1, 0, 1], 1: [1, 0, 0, 0, 0]},
        "b": {0: [0, 0, 0, 0, 0], 1: [0, 0, 0, 0, 1]},
    }
    overall = score([results_of(runs, feasible=feasible)], ["a", "b"])
    sections = {s.title: s.table for s in score_sections(overall)}
    # Two of three and none of four; b's only feasible trial has none after it.
    assert sections["Feasible trials"][1] == [["p", "33% (2/2, 2)", "- (1/2, 5)"]]
    unconstrained = score_sections(score([results_of(runs)], ["a", "b"]))
    assert "Feasible trials" not in [section.title for section in unconstrained]


def test_feasible_trials_are_those_of_the_common_seeds():
    runs = {"a": {0: [3.0] * 4, 1: [3.0] * 4}, "b": {0: [3.0] * 4}}
    feasible = {"a": {0: [0, 1, 1, 1], 1: [0, 0, 0, 0]}, "b": {0: [1, 0, 0, 0]}}
    overall = score([results_of(runs, feasible=feasible)], ["a", "b"])
    sections = {s.title: s.table for s in score_sections(overall)}
    assert sections["Feasible trials"][1] == [["p", "100% (1/1, 2)", "0% (1/1, 1)"]]


def test_sections_add_up():
    rng = np.random.default_rng(3)
    results = [random_results("first", 12, rng), random_results("second", 9, rng)]
    overall = score(results, ["a", "b", "c"], "b")
    sections = {section.title: section.table for section in score_sections(overall)}

    rows = {row[0]: row[1:] for row in sections["Mean rank over 2 problems, 9 to 12 seeds"][1]}
    final = {
        s: np.mean([p.ranks[i, :, 99].mean() for p in overall.paired]) for i, s in enumerate("abc")
    }
    assert sum(final.values()) == pytest.approx(6)
    for sampler in "abc":
        assert rows[sampler][2].startswith(f"{final[sampler]:.2f} [")
    assert rows["a"][5].startswith(f"{final['a'] - final['b']:+.2f} [")
    assert rows["b"][3:] == ["-", "-", "-"]

    tests = sections["Wins, ties, losses against b"][1]
    assert [row[0] for row in tests] == ["a", "c"]
    for row in tests:
        assert all(sum(map(int, cell.split(" / "))) == 2 for cell in row[1:])

    groups = {row[0]: row[1:] for row in sections["Mean rank by group and half, end of budget"][1]}
    assert groups["all (2)"] == groups["group (2)"] == [f"{final[s]:.3f}" for s in "abc"]

    compared = sections["Rank compared with b by group and half"][1]
    assert [row[:2] for row in compared[-2:]] == [["all (2)", "a"], ["all (2)", "c"]]
    assert compared[-2][2:] == rows["a"][3:] and compared[-1][2:] == rows["c"][3:]

    (solved, _) = sections["Solved"][1]
    assert solved == ["first", "0.001", "0/12", "0/12", "0/12"]
    assert [row[1:] for row in sections["Cost of a suggestion"][1]] == [["1", "1"]] * 3


def test_costs_are_those_of_the_whole_run_and_of_its_last_tenth():
    """A seed that waited for something else does not count."""
    runs = {s: {seed: [1.0] * 20 for seed in range(3)} for s in "ab"}
    seconds = {s: {seed: np.repeat([1e-3, 5e-3], [18, 2]) for seed in range(3)} for s in "ab"}
    seconds["b"][1] = np.ones(20)
    results = replace(results_of(runs), seconds=seconds)
    sections = {s.title: s.table for s in score_sections(score([results], ["a", "b"]))}
    assert sections["Cost of a suggestion"][1] == [["a", "1.4", "5"], ["b", "1.4", "5"]]


@pytest.mark.parametrize("optimum", [0.0, -7.0, 7.0])
def test_solved_shares_count_the_tolerance(optimum):
    regrets = {"a": [0.5, 0.09, 0.0], "b": [0.05, 2.0, 2.0]}
    runs = {s: {seed: [optimum + r] for seed, r in enumerate(rs)} for s, rs in regrets.items()}
    results = results_of(runs, optimum=optimum, tolerance=0.1)
    sections = {s.title: s.table for s in score_sections(score([results], ["a", "b"]))}
    assert sections["Solved"][1] == [["p", "0.1", "2/3", "1/3"]]


def test_a_reference_is_found_or_refused():
    results = [results_of({"x": {0: [1.0]}, "tpe": {0: [1.0]}})]
    assert score(results, ["x", "tpe"]).reference == "tpe"
    assert score(results, ["x", "tpe"], "x").reference == "x"
    assert score(results, ["x"]) is None
    with pytest.raises(ValueError, match="'y' is none of x, tpe"):
        score(results, ["x", "tpe"], "y")
