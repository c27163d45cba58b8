"""Branches of conditional spaces, and regrets that count what each of them may gain."""

from __future__ import annotations

import numpy as np
import pytest

from mondrian_bo import Categorical, Condition, Float, Int, SearchSpace
from mondrian_bo.optimizer.maximization.valid_rows import ValidRows
from mondrian_bo.optimizer.models.outcome_model import OutcomeModel
from mondrian_bo.optimizer.row_optimizer import RowOptimizer
from mondrian_bo.optimizer.stopping.branches import branches
from mondrian_bo.optimizer.stopping.cautious_model import CAREFUL, Caution, roughened
from mondrian_bo.shared.array_types import FloatArray

TREE = SearchSpace(
    {
        "kind": Categorical(("line", "net", "none")),
        "free": Categorical(("p", "q")),
        "rate": Float(0.0, 1.0, condition=Condition("kind", ("line", "net"))),
        "layers": Int(1, 3, condition=Condition("kind", ("net",))),
        "width": Float(0.0, 1.0, condition=Condition("layers", (2, 3))),
    }
)
PAIR = SearchSpace(
    {
        "kind": Categorical(("a", "b")),
        "x": Float(0.0, 1.0, condition=Condition("kind", ("a",))),
        "y": Float(0.0, 1.0, condition=Condition("kind", ("b",))),
    }
)
POOLED = Caution(branches=False)


def test_branches_of_a_tree() -> None:
    """Against a grouping by parameters: kind, and whether there is a width."""
    tried = TREE.sample(40, np.random.default_rng(0))

    def label(row: FloatArray) -> tuple[str, bool]:
        params = TREE.from_unit(row)
        return params["kind"], "width" in params

    found = branches(TREE, tried, np.random.default_rng(1))
    labels = [label(row) for row in tried]
    # Numbers that vary: rate; rate, as layers are 1; rate, layers and width; none.
    least = {("line", False): 5, ("net", False): 5, ("net", True): 15, ("none", False): 1}
    assert len(found) == len(least)
    for branch in found:
        (own,) = {label(row) for row in branch.points}
        assert branch.trials.tolist() == [one == own for one in labels]
        assert branch.is_known == (labels.count(own) >= least[own])
        assert len(branch.points) > 300
    assert sum(branch.is_known for branch in found) == 3


def test_a_branch_without_numbers_is_known_from_its_first_trial_on() -> None:
    space = SearchSpace(
        {
            "kind": Categorical(("a", "b")),
            "x": Float(0.0, 1.0, condition=Condition("kind", ("a",))),
        }
    )
    tried = np.array([[0.0, 0.1 * k] for k in range(9)])
    for rows, expected in ((tried, [True, False]), (np.vstack([tried, [1.0, np.nan]]), [True] * 2)):
        found = branches(space, rows, np.random.default_rng(0))
        known = {space.from_unit(one.points[0])["kind"]: one.is_known for one in found}
        assert known == dict(zip("ab", expected, strict=True))


def test_no_branches_without_conditions() -> None:
    space = SearchSpace({"kind": Categorical(("a", "b")), "x": Float(0.0, 1.0)})
    tried = space.sample(9, np.random.default_rng(0))
    assert branches(space, tried, np.random.default_rng(1)) == []


def test_branches_without_a_valid_row_are_left_out() -> None:
    tried = TREE.sample(40, np.random.default_rng(0))
    tried = tried[tried[:, 0] != 1.0]
    valid = ValidRows(lambda params: params["kind"] != "net", TREE)
    found = branches(TREE, tried, np.random.default_rng(1), valid)
    kinds = [TREE.from_unit(branch.points[0])["kind"] for branch in found]
    assert sorted(kinds) == ["line", "none"]
    # One valid row is enough, and it may be a trial.
    trial = np.array([1.0, 0.0, 0.5, 0.0, np.nan])
    width = ValidRows(lambda params: params["kind"] != "net" or params["rate"] == 0.5, TREE)
    found = branches(TREE, np.vstack([tried, trial]), np.random.default_rng(1), width)
    kinds = [TREE.from_unit(branch.points[0])["kind"] for branch in found]
    assert sorted(kinds) == ["line", "net", "none"]


def test_a_branch_that_is_not_valid_is_no_unknown_one() -> None:
    """Such a branch never gets a trial: a search that waits for one would never stop."""
    rows = np.column_stack([np.zeros(12), np.linspace(0.0, 1.0, 12), np.full(12, np.nan)])
    known = []
    for is_valid in (None, lambda params: params["kind"] == "a"):
        optimizer = RowOptimizer(PAIR, seed=0, is_valid=is_valid)
        optimizer.tell_rows(rows, (rows[:, 1] - 0.4) ** 2)
        gain = optimizer.remaining_gain(20)
        assert gain is not None
        known.append(gain.is_known)
    assert known == [False, True]


def _pair(n_first: int, n_second: int) -> RowOptimizer:
    """Return a minimiser of a bowl in one branch; in the other one all trials are bad."""
    rng = np.random.default_rng(0)
    x, y = rng.random(n_first), rng.random(n_second)
    first = np.column_stack([np.zeros(n_first), x, np.full(n_first, np.nan)])
    second = np.column_stack([np.ones(n_second), np.full(n_second, np.nan), y])
    optimizer = RowOptimizer(PAIR, seed=0)
    values = np.concatenate([(x - 0.4) ** 2, 0.25 + 0.2 * np.sin(14.0 * y)])
    optimizer.tell_rows(np.concatenate([first, second]), values)
    return optimizer


def test_unknown_branch_may_gain_all() -> None:
    optimizer = _pair(40, 4)
    pooled, full = optimizer.remaining_gain(200, POOLED), optimizer.remaining_gain(200)
    assert pooled is not None and full is not None
    assert np.ptp(optimizer._search.trials.values) == pytest.approx(full.regrets.min())
    assert np.quantile(pooled.regrets, 0.95) < 0.5 * full.regrets.min()
    assert pooled.is_known and not full.is_known


def test_regrets_are_those_of_the_models_of_branches() -> None:
    """Against a brute force: independent draws from a model of each branch on a dense grid."""
    optimizer = _pair(30, 6)
    (model, _), *_ = optimizer._search.whole.arms
    (model,) = model.models
    pooled, full = optimizer.remaining_gain(4000, POOLED), optimizer.remaining_gain(4000)
    assert pooled is not None and full is not None
    value = float(model.transform.inverse(model.predict(full.row[None]).means[0, 0]))
    grid, nothing = np.linspace(0.0, 1.0, 201), np.full(201, np.nan)
    best = []
    for kind, columns in ((0.0, (grid, nothing)), (1.0, (nothing, grid))):
        trials = model.trials.chosen(model.trials.rows[:, 0] == kind)
        own = OutcomeModel(model.new_surrogate, trials)
        rows = np.column_stack([np.full(201, kind), *columns])
        draws = roughened(own, trials, CAREFUL.lengthscales).draw_at(
            rows, 4000, np.random.default_rng(5)
        )
        best.append(own.transform.inverse(draws).max(axis=1) - value)
    expected = np.maximum(np.maximum(*best), pooled.regrets)
    for tolerance in (0.02, 0.05, 0.1):
        # A few hundred candidates miss some of the grid's maxima.
        found, exact = np.mean(full.regrets > tolerance), np.mean(expected > tolerance)
        assert exact - 0.06 < found < exact + 0.03
    # The branch of bad trials matters: the model of all trials is certain.
    assert np.quantile(full.regrets, 0.9) > 3.0 * np.quantile(pooled.regrets, 0.9)
