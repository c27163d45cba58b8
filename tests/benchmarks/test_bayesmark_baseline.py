"""Baselines of Bayesmark's tasks: random points of a problem whose losses are known."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from mondrian_bo.benchmarks import bayesmark_baseline
from mondrian_bo.benchmarks.bayesmark_baseline import Baseline, baselines, main, measure
from mondrian_bo.benchmarks.problems import SUITES, get_problem


@pytest.fixture
def problems(monkeypatch):
    """Stand-ins for two tasks: the squared distance from a corner, infinite beyond a line."""
    branin = get_problem("branin")

    def loss(params):
        return np.inf if params["x1"] > 8.0 else float(params["x1"] ** 2 + params["x2"])

    stand_in = SimpleNamespace(space=branin.space, instance=lambda seed: loss)
    monkeypatch.setattr(bayesmark_baseline, "get_problem", lambda name: stand_in)
    suite = SimpleNamespace(problems=("bayesmark_a", "bayesmark_b"))
    monkeypatch.setattr(bayesmark_baseline, "SUITES", {"two": suite})
    return branin.space, loss


def test_median_and_smallest_loss_of_random_points(problems):
    space, loss = problems
    rows = space.sample(41, np.random.default_rng(20))
    losses = sorted(loss(space.from_unit(row)) for row in rows)
    assert measure("bayesmark_a", 41) == Baseline(losses[20], losses[0])
    assert losses[-1] == np.inf


def test_only_missing_tasks_are_measured(problems, tmp_path):
    file = tmp_path / "baseline.json"
    file.write_text(json.dumps({"tasks": {"a": [3.0, 1.0]}}))
    main(["--suite", "two", "--file", str(file)])
    assert baselines(file) == {"a": Baseline(3.0, 1.0), "b": measure("bayesmark_b")}


def test_the_quick_tasks_have_baselines():
    known = baselines()
    quick = {name.removeprefix("bayesmark_") for name in SUITES["bayesmark_quick"].problems}
    assert quick <= known.keys()
    assert all(one.best < one.clip for one in known.values())
