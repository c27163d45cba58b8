import optuna
import pytest
from optuna.samplers import RandomSampler

from mondrian_bo.benchmarks.harness.samplers import (
    SAMPLERS,
    BenchmarkSampler,
    get_sampler,
    installed_samplers,
    split_names,
)
from mondrian_bo.benchmarks.problems import get_problem, suggest

MISSING = BenchmarkSampler(
    lambda seed: RandomSampler(seed=seed), "no_such_module", "pip install it"
)


@pytest.mark.parametrize("name", ["random", "tpe", "cmaes", "nsga2"])
def test_seed_decides_the_suggestions(name):
    pytest.importorskip(SAMPLERS[name].requires or "optuna")

    def points(seed):
        problem = get_problem("branin")
        study = optuna.create_study(sampler=get_sampler(name).factory(seed=seed))
        study.optimize(lambda trial: problem.function(suggest(trial, problem.space)), 15)
        return [trial.params for trial in study.trials]

    assert points(3) == points(3)
    assert points(3) != points(4)


def test_a_missing_sampler_is_left_out_with_a_notice(monkeypatch):
    monkeypatch.setitem(SAMPLERS, "absent", MISSING)
    notices = []
    assert installed_samplers(["random", "absent", "tpe"], notices.append) == ["random", "tpe"]
    assert notices == ["skipping absent: needs no_such_module (pip install it)"]


def test_nothing_left(monkeypatch):
    monkeypatch.setitem(SAMPLERS, "absent", MISSING)
    with pytest.raises(ValueError, match="none of the samplers"):
        installed_samplers(["absent"], lambda _: None)
    with pytest.raises(ValueError, match="no sampler is named"):
        installed_samplers([], lambda _: None)


def test_seeds_are_those_of_the_runs():
    with pytest.raises(ValueError, match="the seeds of runs are those of `--seeds`"):
        installed_samplers(["mondrian:seed=7"], lambda _: None)


def test_unknown_sampler():
    with pytest.raises(ValueError, match=r"unknown sampler 'tpo'; known: .*tpe"):
        installed_samplers(["random", "tpo"], lambda _: None)


def test_settings_reach_the_sampler(monkeypatch):
    given = {}
    monkeypatch.setitem(
        SAMPLERS, "spy", BenchmarkSampler(lambda seed, **settings: given.update(settings))
    )
    get_sampler("spy:a=1,b=2.5,c=True,d=None,e=ucb,f='x y'").factory(seed=0)
    assert given == {"a": 1, "b": 2.5, "c": True, "d": None, "e": "ucb", "f": "x y"}
    assert given["c"] is True

    multivariate = get_sampler("tpe:multivariate=False,group=False").factory(seed=3)
    assert not multivariate._multivariate


def test_names_with_settings_are_one_name():
    text = "tpe, mondrian:surrogate=amf,n_estimators=20,random,mondrian:acquisition=ucb"
    assert split_names(text) == [
        "tpe",
        "mondrian:surrogate=amf,n_estimators=20",
        "random",
        "mondrian:acquisition=ucb",
    ]
    assert split_names("tpe, random,") == ["tpe", "random"]


@pytest.mark.parametrize("name", ["tpe:multivariate", "tpe:=3", "tpe:n_startup_trials="])
def test_settings_without_a_value(name):
    with pytest.raises(ValueError, match="settings of a sampler are `key=value`"):
        get_sampler(name)


def test_a_setting_the_sampler_does_not_know():
    with pytest.raises(ValueError, match=r"'random:trees=3': .*trees"):
        installed_samplers(["random:trees=3"], lambda _: None)
