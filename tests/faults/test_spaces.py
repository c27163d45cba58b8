"""Spaces that are wider, larger or less steady than usual."""

from __future__ import annotations

import math

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState
from studies import make_study, optimize, states
from worker_processes import check, new_sampler

MOST = 1.7e308
"""The ends of ranges whose width is no float."""


def test_ranges_wider_than_a_float():
    def objective(trial):
        wide = trial.suggest_float("wide", -MOST, MOST)
        return abs(wide / MOST) + trial.suggest_float("x", 0.0, 1.0)

    study = optimize(make_study(new_sampler()), objective, 30)
    assert states(study) == {TrialState.COMPLETE: 30}
    wide = [trial.params["wide"] for trial in study.trials]
    assert all(math.isfinite(value) for value in wide)
    assert min(wide) < -0.5 * MOST and max(wide) > 0.5 * MOST
    assert len(set(wide)) == 30
    # The other parameter is modelled.
    check(study, 30)
    assert study.best_trial.params["x"] < 0.05


@pytest.mark.parametrize("low", [-0.8e308, 5e-324])
def test_the_widest_ranges_that_are_modelled(low):
    def objective(trial):
        x = trial.suggest_float("x", low, 0.8e308, log=low > 0.0)
        return abs(x / 1e308)

    study = optimize(make_study(new_sampler()), objective, 10)
    check(study, 10)


def test_five_hundred_parameters():
    def objective(trial):
        return sum(trial.suggest_float(f"x{i}", 0.0, 1.0) for i in range(500))

    study = optimize(make_study(new_sampler()), objective, 6)
    check(study, 6)


@pytest.mark.parametrize("log", [False, True])
def test_a_range_that_changes_with_every_trial(log):
    def objective(trial):
        low = 1.0 / (1 + trial.number)
        x = trial.suggest_float("x", low, 2.0 + trial.number % 7, log=log)
        assert low <= x <= 2.0 + trial.number % 7
        return x + trial.suggest_int("n", 1 + trial.number, 4 + trial.number, log=log)

    study = optimize(make_study(new_sampler()), objective, 20)
    assert states(study) == {TrialState.COMPLETE: 20}
    check(study, 20)


@pytest.mark.parametrize("seeds", [[0] * 12, range(12)])
@pytest.mark.parametrize(
    "space",
    [
        {"a": IntDistribution(0, 11)},
        {"a": IntDistribution(0, 3), "b": CategoricalDistribution(("u", "v", None))},
        {
            "a": CategoricalDistribution((1, 2)),
            "b": FloatDistribution(0, 1, step=0.5),
            "c": IntDistribution(1, 2, log=True),
        },
    ],
)
def test_first_trials_differ_in_a_finite_space(space, seeds):
    """Twelve workers ask in step, each with a sampler of its own, before any trial has finished."""
    study = make_study()
    workers = [
        optuna.load_study(
            study_name=study.study_name, storage=study._storage, sampler=new_sampler(seed)
        )
        for seed in seeds
    ]
    trials = [worker.ask() for worker in workers]
    for name, distribution in space.items():
        for trial in trials:
            trial._suggest(name, distribution)
    assert len({tuple(trial.params.values()) for trial in trials}) == 12


def test_first_trials_are_those_of_a_study_with_one_worker():
    """The proposal is drawn as ever: others change it only where a trial has the same."""
    space = {"a": IntDistribution(0, 999), "b": IntDistribution(0, 999)}
    alone = [make_study(new_sampler()).ask(space).params for _ in range(2)]
    study = make_study(new_sampler())
    assert study.ask(space).params == alone[0] == alone[1]


def test_another_worker_publishes_the_same_first_value(monkeypatch):
    """It does so after this one has drawn, and before this one reads."""
    import mondrian_bo.integrations.optuna.suggestions.first_values as module

    study = make_study(new_sampler())
    study.ask()
    other = study.trials[-1]
    publish, proposals = module.publish, []

    def publish_both(study, trial, internal, n_before=0):
        if not proposals:
            publish(study, other, internal)
        proposals.append(internal)
        return publish(study, trial, internal, n_before)

    monkeypatch.setattr(module, "publish", publish_both)
    value = study.ask().suggest_int("a", 0, 3)
    assert len(proposals) == 2
    assert value == proposals[1]["a"] != proposals[0]["a"]


def test_a_trial_set_apart_by_its_first_values_publishes_no_others(monkeypatch):
    """Texts that grow with each of many parameters would take long to store."""
    import mondrian_bo.integrations.optuna.suggestions.first_values as module

    study, published = make_study(new_sampler(0)), []
    publish = module.publish

    def note(study, trial, internal, n_before=0):
        published.append(trial.number)
        return publish(study, trial, internal, n_before)

    monkeypatch.setattr(module, "publish", note)
    trials = [study.ask() for _ in range(3)]
    for name in (f"p{i}" for i in range(40)):
        for trial in trials:
            trial.suggest_int(name, 0, 9)
    assert [published.count(trial.number) for trial in trials] == [6] * 3
    # Two trials that have all these values in common still differ in the others.
    for _ in range(2):
        study.enqueue_trial({f"p{i}": 5 for i in range(40)})
    alike = [study.ask() for _ in range(2)]
    for name in (f"p{i}" for i in range(41)):
        for trial in alike:
            trial.suggest_int(name, 0, 1 if name == "p40" else 9)
    assert [trial.params["p39"] for trial in alike] == [5, 5]
    assert {trial.params["p40"] for trial in alike} == {0, 1}
