"""Methods: a study has the sampler, the pruner and the name that they say."""

import pytest
from optuna.pruners import HyperbandPruner, NopPruner
from optuna.samplers import RandomSampler, TPESampler

from mondrian_bo import MondrianPruner, MondrianSampler
from mondrian_bo.benchmarks.harness import methods


@pytest.mark.parametrize(
    ("sampler", "kind"),
    [
        (methods.mondrian, MondrianSampler),
        (methods.tpe, TPESampler),
        (methods.random_search, RandomSampler),
    ],
)
def test_samplers_have_the_seed(sampler, kind):
    def drawn():
        study = methods.Method(sampler, None, "").new_study("some", 3, 5)
        assert isinstance(study.sampler, kind) and isinstance(study.pruner, NopPruner)
        assert study.study_name == "some-3"
        study.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0), n_trials=4)
        return [trial.params for trial in study.trials]

    assert drawn() == drawn()


def test_pruners_know_the_steps():
    study = methods.Method(methods.tpe, methods.hyperband, "").new_study("some", 0, 5)
    assert isinstance(study.pruner, HyperbandPruner) and study.pruner._max_resource == 5
    study = methods.Method(methods.tpe, methods.mondrian_pruner, "").new_study("some", 0, 5)
    assert isinstance(study.pruner, MondrianPruner)
