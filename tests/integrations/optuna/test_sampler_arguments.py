"""What the sampler refuses, and what its independent samples depend on."""

from __future__ import annotations

import pytest
from optuna.distributions import FloatDistribution
from optuna.samplers import RandomSampler
from studies import bowl, make_study, optimize

from mondrian_bo import MondrianSampler


def sampler(seed=0):
    return MondrianSampler(seed=seed, n_startup_trials=3)


def test_five_objectives_are_refused():
    study = make_study(sampler(), directions=["minimize"] * 5)
    with pytest.raises(ValueError, match="up to 4 objectives, and the study has 5"):
        study.optimize(lambda trial: [bowl(trial)] * 5, n_trials=1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seed": -1}, "`seed` must be a non-negative integer or None, got -1"),
        ({"seed": 1.5}, "`seed` must be a non-negative integer or None, got 1.5"),
        ({"seed": True}, "`seed` must be a non-negative integer or None, got True"),
        ({"surrogate": "gp"}, "`surrogate` must be one of .*got 'gp'"),
        ({"acquisition": "best"}, "`acquisition` must be one of .*got 'best'"),
        ({"n_startup_trials": -1}, "`n_startup_trials` must be at least 0"),
        ({"n_estimators": 0}, "`n_estimators` must be at least 1"),
        ({"n_candidates": 0.5}, "`n_candidates` must be an integer"),
    ],
)
def test_refused_settings(arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        MondrianSampler(**arguments)


def test_independent_samples_depend_on_seed_number_and_name():
    study = make_study(sampler())
    study.add_trials(optimize(make_study(RandomSampler(seed=0)), bowl, 4).trials)
    unit = FloatDistribution(0.0, 1.0)
    trials = study.get_trials(deepcopy=False)

    def drawn(seed, number, name):
        return sampler(seed).sample_independent(study, trials[number], name, unit)

    keys = [(seed, number, name) for seed in (0, 1) for number in (1, 2, 3) for name in "ab"]
    values = [drawn(*key) for key in keys]
    assert values == [drawn(*key) for key in keys]
    assert len(set(values)) == len(keys)
    # In any order of asking, with one sampler.
    one = sampler(1)
    backwards = [one.sample_independent(study, trials[k[1]], k[2], unit) for k in keys[:5:-1]]
    assert backwards == values[:5:-1]
