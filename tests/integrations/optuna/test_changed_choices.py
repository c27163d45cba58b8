"""Categorical parameters whose choices change between trials."""

from __future__ import annotations

from datetime import datetime

import numpy as np
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution
from optuna.pruners import HyperbandPruner
from optuna.trial import TrialState, create_trial
from studies import make_study, optimize, states

from mondrian_bo.integrations.optuna.robust_best import robust_best
from mondrian_bo.integrations.optuna.study.proposals import PUBLISHED_KEY
from mondrian_bo.integrations.optuna.study.study_reader import StudyReader


@pytest.mark.parametrize("later", [("c", "a", "b"), ("new", "a", "b", "c")])
def test_choices_in_another_order(later):
    """Choices are known by their values, not by their numbers."""
    study, values = make_study(), {"a": 5.0, "b": 0.0, "c": 2.0}
    for i in range(24):
        choices = ("a", "b", "c") if i < 20 else later
        kind = ("a", "b", "c")[i % 3]
        distributions = {
            "kind": CategoricalDistribution(choices),
            "x": FloatDistribution(0.0, 1.0),
        }
        params = {"kind": kind, "x": i / 24.0}
        study.add_trial(
            create_trial(params=params, distributions=distributions, value=values[kind] + i / 24.0)
        )
    where = [{"kind": kind, "x": 0.5} for kind in values]
    means = study.sampler.predict(study, where).mean
    np.testing.assert_allclose(means, [5.5, 0.5, 2.5], atol=0.3)
    assert robust_best(study, study.sampler).params["kind"] == "b"
    reader = StudyReader()
    reader.read(study)
    assert [trial.values["kind"] for trial in reader.finished] == [
        later.index(trial.params["kind"]) for trial in study.trials
    ]


def test_choices_that_change_back_and_in_brackets():
    """The latest trial decides, also of a batch; brackets show some of the trials."""
    first, second = ("a", "b", "c"), ("c", "b", "a")

    def add(study, choices, n_trials):
        for i in range(n_trials):
            kind = choices[i % 3]
            distributions = {
                "kind": CategoricalDistribution(choices),
                "x": FloatDistribution(0.0, 1.0),
            }
            params = {"kind": kind, "x": i / n_trials}
            study.add_trial(
                create_trial(
                    params=params,
                    distributions=distributions,
                    value=float("bac".index(kind)),
                    intermediate_values={0: 0.5, 3: 0.5},
                )
            )

    def objective(trial):
        kind = trial.suggest_categorical("kind", first)
        for step in range(9):
            trial.report(1.0 / (1.0 + step), step)
        return float("bac".index(kind)) + trial.suggest_float("x", 0.0, 1.0)

    for pruner in (None, HyperbandPruner(1, 9, 3)):
        study = make_study(pruner=pruner)
        for choices in (second, first, second, first):
            add(study, choices, 12)
            if choices == first:
                optimize(study, objective, 3)
        assert states(study) == {TrialState.COMPLETE: 54}


def test_choices_that_keep_changing():
    reader, study = StudyReader(), make_study()
    for i, choices in enumerate(["ab", "ba", "abc", "c", "bca"]):
        distribution = CategoricalDistribution(tuple(choices))
        params = {"kind": choices[0]}
        study.add_trial(
            create_trial(params=params, distributions={"kind": distribution}, value=float(i))
        )
        reader.read(study)
        late = StudyReader()
        late.read(study)
        assert reader.finished == late.finished
    assert reader.distributions == {"kind": distribution}
    assert [trial.values.get("kind") for trial in reader.finished] == [2.0, 0.0, 2.0, 1.0, 0.0]


def test_the_latest_choices_are_those_of_the_trial_that_finished_last():
    study = make_study()
    for choices, second in (("ab", 2), ("ba", 1)):
        distributions = {"kind": CategoricalDistribution(choices)}
        trial = create_trial(params={"kind": "a"}, distributions=distributions, value=0.0)
        trial.datetime_complete = datetime(2030, 1, 1, second=second)
        study.add_trial(trial)
    reader = StudyReader()
    reader.read(study)
    assert reader.distributions == {"kind": CategoricalDistribution("ab")}
    assert [trial.values["kind"] for trial in reader.finished] == [0.0, 0.0]


def test_proposals_of_choices_that_have_changed_are_dropped():
    """A proposal is the number of a choice, and the trial that did not ask for it has no list."""
    study, reader = make_study(), StudyReader()
    proposals = {f"{PUBLISHED_KEY}:0": '{"kind": 1.0, "y": 0.25}'}
    study.add_trial(create_trial(value=0.0, system_attrs=proposals))
    for choices, unasked in (("ab", {"kind": 1.0, "y": 0.25}), ("ba", {"y": 0.25})):
        distributions = {"kind": CategoricalDistribution(choices)}
        study.add_trial(create_trial(params={"kind": "a"}, distributions=distributions, value=0.0))
        reader.read(study)
        assert reader.finished[0].unasked == unasked
