"""`MondrianSampler(fidelity=...)`: studies with cheap trials, and bad input."""

from __future__ import annotations

import math
import pickle

import numpy as np
import optuna
import pytest
from studies import make_study, optimize, parameters

from mondrian_bo import MondrianSampler, best_at_target
from mondrian_bo.integrations.optuna.study.study_reader import StudyReader
from mondrian_bo.integrations.optuna.suggestions.study_fidelity import StudyFidelity


def sampler_of(**settings):
    return MondrianSampler(**{"seed": 0, "fidelity": "n", **settings})


def training(trial):
    """Return a loss on a conditional space, 0.02 at best with 50 epochs."""
    kind = trial.suggest_categorical("kind", ["sgd", "adam"])
    rate = trial.suggest_float("rate", 1e-4, 1.0, log=True)
    n = trial.suggest_int("n", 1, 50, log=True)
    loss = (np.log10(rate) + 2.0) ** 2 / 4.0 + 1.0 / n
    if kind == "sgd":
        loss += 0.1 + abs(trial.suggest_float("momentum", 0.0, 1.0) - 0.9)
    trial.set_user_attr("seconds", 3.0 * n + 5.0)
    return loss


def test_nothing_changes_without_a_fidelity():
    plain = optimize(make_study(MondrianSampler(seed=0)), training, 14)
    other = optimize(make_study(MondrianSampler(seed=0, fidelity=None, cost=None)), training, 14)
    assert parameters(plain) == parameters(other)


@pytest.mark.parametrize("seed", range(3))
def test_a_conditional_study_with_costs(seed):
    study = optimize(make_study(sampler_of(seed=seed, cost="seconds")), training, 45)
    epochs = [one["n"] for one in parameters(study)]
    # The first trial is drawn before the space is known, and is cheap all the same.
    assert epochs[0] == 1
    assert np.median(epochs[:10]) < 10 and 50 in epochs[:10]
    assert all(("momentum" in one) == (one["kind"] == "sgd") for one in parameters(study)[1:])
    best = best_at_target(study, "n")
    assert best.params["n"] == 50 and best.params["kind"] == "adam"
    assert best.value < 0.06
    # Less than half of what as many full trials cost.
    assert sum(one.user_attrs["seconds"] for one in study.trials) < 0.6 * 45 * 155.0
    (memory,) = study.sampler._memory[study._storage].values()
    costs = memory._optimizer._costs
    assert len(costs) == memory.n_told
    rows = memory._optimizer._search.trials.rows
    seconds = [3.0 * one.values["n"] + 5.0 for one in memory.reader.finished]
    np.testing.assert_allclose(costs.predict(rows), seconds, rtol=0.2)


def test_a_target_at_the_lower_end_and_a_study_that_is_maximised():
    def finite_elements(trial):
        width = trial.suggest_float("h", 0.05, 1.0, log=True)
        x = trial.suggest_float("x", 0.0, 1.0)
        return -((x - 0.7) ** 2) - 0.3 * width * x

    study = make_study(sampler_of(fidelity={"h": 0.05}), direction="maximize")
    optimize(study, finite_elements, 25)
    widths = [one["h"] for one in parameters(study)]
    assert widths[0] == 1.0 and min(widths) == 0.05
    best = best_at_target(study, {"h": 0.05})
    assert abs(best.params["x"] - 0.69) < 0.05
    at_target = [one.value for one in study.trials if one.params["h"] == 0.05]
    assert best.value == max(at_target)


def test_failed_pruned_enqueued_and_parallel_trials():
    def objective(trial):
        value = training(trial)
        trial.report(value, 0)
        if trial.number % 5 == 2:
            raise optuna.TrialPruned
        return float("nan") if trial.number % 7 == 3 else value

    study = make_study(sampler_of(cost="seconds"))
    study.enqueue_trial({"n": 50, "rate": 0.5})
    study.enqueue_trial({"n": 7})
    optimize(study, objective, 30, n_jobs=3)
    assert len(study.trials) == 30
    fixed = [one.params for one in study.trials if "fixed_params" in one.system_attrs]
    assert [one["n"] for one in fixed] == [50, 7]
    points = [tuple(sorted(one.items())) for one in parameters(study)]
    assert len(set(points)) == 30
    assert best_at_target(study, "n").params["n"] == 50


def test_valid_points_constraints_and_a_pickled_sampler():
    def objective(trial):
        n, x = trial.suggest_int("n", 1, 20), trial.suggest_float("x", 0.0, 1.0)
        trial.set_constraint("far", 0.4 - x)
        return x + 1.0 / n

    sampler = sampler_of(is_valid=is_small)
    copy = pickle.loads(pickle.dumps(sampler))
    studies = [optimize(make_study(one), objective, 22) for one in (sampler, copy)]
    assert parameters(studies[0]) == parameters(studies[1])
    assert all(one["x"] < 0.9 for one in parameters(studies[0]))
    best = best_at_target(studies[0], "n").params
    assert best["n"] == 20 and 0.4 <= best["x"] < 0.45


def is_small(params):
    return params["x"] < 0.9


def test_reading_a_study_has_the_fidelity_as_a_parameter():
    study = optimize(make_study(sampler_of()), training, 20)
    found = study.sampler.predict(study, [{"kind": "adam", "rate": 0.01, "n": n} for n in (1, 50)])
    assert found.mean[0] > found.mean[1] + 0.4


def test_the_best_trial_of_other_samplers():
    study = optimize(make_study(optuna.samplers.RandomSampler(seed=0)), training, 40)
    with pytest.raises(ValueError, match="no trial with the parameter 'epochs'"):
        best_at_target(study, "epochs")
    with pytest.raises(ValueError, match="no trial with the parameter 'epochs'"):
        best_at_target(study, {"epochs": 50})
    with pytest.raises(ValueError, match="suggest_int or suggest_float"):
        best_at_target(study, {"kind": 1})
    with pytest.raises(TypeError, match=r"`study` must be an optuna.Study, got None"):
        best_at_target(None, "n")
    with pytest.raises(ValueError, match="suggest_int or suggest_float"):
        best_at_target(study, "kind")
    with pytest.raises(ValueError, match="no complete feasible trial with 'n' at 51"):
        best_at_target(study, {"n": 51})
    at_one = [one for one in study.trials if one.params["n"] == 1]
    assert best_at_target(study, {"n": 1}) == min(at_one, key=lambda one: one.value)
    two = make_study(optuna.samplers.RandomSampler(seed=0), directions=["minimize"] * 2)
    with pytest.raises(ValueError, match="single objective"):
        best_at_target(two, "n")


def added(study, high, value, **params):
    """Add a complete trial whose `n`, if it has one, is up to `high`."""
    distributions = {"n": optuna.distributions.IntDistribution(1, high)} if params else {}
    study.add_trial(optuna.create_trial(params=params, distributions=distributions, value=value))


def test_the_target_is_the_end_of_the_latest_range():
    study = make_study(optuna.samplers.RandomSampler(seed=0))
    for high, value in ((10, 0.1), (50, 0.5)):
        added(study, high, value, n=high)
    assert best_at_target(study, "n").params["n"] == 50
    assert best_at_target(study, {"n": 10}).params["n"] == 10


FLOATS = [
    # Range, step, log, target, a value that is the target up to rounding, and others.
    (-0.3, 0.3, 0.1, False, 0.0, -0.3 + 3 * 0.1, [-0.1, 0.1]),
    (-1.0, 1.0, None, False, 0.0, 1e-17, [1e-6, -1e-6]),
    (0.0, 1e-12, None, False, 1e-12, 1e-12, [0.999999e-12]),
    (1e9, 1e9 + 1.0, None, False, 1e9 + 0.5, 1e9 + 0.5, [1e9, 1e9 + 0.4]),
    (1e-300, 1e308, None, True, 1e-300, 1e-300, [1.01e-300, 1e308]),
    (-1e308, 1e308, None, False, 1e308, 1e308, [0.0, 9.9e307]),
]


@pytest.mark.parametrize(("low", "high", "step", "log", "target", "same", "others"), FLOATS)
def test_floats_at_the_target(low, high, step, log, target, same, others):
    study = optuna.create_study()
    distribution = optuna.distributions.FloatDistribution(low, high, step=step, log=log)
    for k, value in enumerate([*others, same]):
        study.add_trial(
            optuna.trial.create_trial(
                params={"h": value}, distributions={"h": distribution}, value=float(k)
            )
        )
    assert best_at_target(study, {"h": target}).number == len(others)


def test_large_integers_at_the_target():
    study = optuna.create_study()
    distribution = optuna.distributions.IntDistribution(1, 2 * 10**9)
    for value in (1_999_999_999, 2_000_000_000):
        study.add_trial(
            optuna.trial.create_trial(
                params={"n": value}, distributions={"n": distribution}, value=float(value)
            )
        )
    assert best_at_target(study, "n").params["n"] == 2_000_000_000
    assert best_at_target(study, {"n": 1_999_999_999}).params["n"] == 1_999_999_999


def test_trials_without_the_parameter_are_at_the_target():
    """A branch of the objective without epochs has no cheap trials."""
    study = make_study(optuna.samplers.RandomSampler(seed=0))
    added(study, 50, 0.5, n=50)
    added(study, 50, 0.3)
    added(study, 50, 0.1, n=1)
    assert best_at_target(study, "n").value == 0.3


def test_costs_are_positive_numbers():
    study = make_study(optuna.samplers.RandomSampler(seed=0))
    for cost in (2.5, 0.0, -1.0, math.nan, "3", None, np.float32(4.0), True, False):
        trial = study.ask()
        trial.suggest_int("n", 1, 9)
        trial.set_user_attr("seconds", cost)
        study.tell(trial, 1.0)
    reader = StudyReader()
    reader.read(study)
    found = StudyFidelity("n", "seconds", False).costs_of(reader.finished, reader)
    np.testing.assert_array_equal(found, [2.5, *[math.nan] * 5, 4.0, math.nan, math.nan])


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"fidelity": None, "cost": "seconds"}, ValueError, "`cost` needs a `fidelity`"),
        ({"fidelity": ["n"]}, TypeError, "must be a name"),
        ({"fidelity": {"n": 1, "m": 2}}, ValueError, "exactly one name"),
        ({"fidelity": {"n": "all"}}, TypeError, "the target of 'n' must be a number, got 'all'"),
        ({"fidelity": {"n": True}}, TypeError, "must be a number"),
        ({"fidelity": {"n": math.nan}}, ValueError, "target of 'n' must be finite, got nan"),
        ({"fidelity": {"n": math.inf}}, ValueError, "target of 'n' must be finite, got inf"),
        ({"fidelity": {}}, ValueError, "exactly one name, got {}"),
        ({"fidelity": ""}, ValueError, "must be the name of a parameter, got ''"),
        ({"cost": 3.0}, TypeError, "name of a user attribute"),
    ],
)
def test_bad_arguments_are_refused(settings, error, message):
    with pytest.raises(error, match=message):
        sampler_of(**settings)


def test_bad_studies_are_refused():
    earlier = optimize(make_study(optuna.samplers.RandomSampler(seed=0)), training, 5)
    with pytest.raises(ValueError, match="combined with `warm_start`"):
        sampler_of(warm_start=[earlier])
    two = make_study(sampler_of(), directions=["minimize"] * 2)
    with pytest.raises(ValueError, match="one objective"):
        optimize(two, lambda trial: (trial.suggest_int("n", 1, 5), 0.0), 1)
    with pytest.raises(ValueError, match="suggest_int or suggest_float"):
        optimize(make_study(sampler_of(fidelity="kind")), training, 1)
    with pytest.raises(ValueError, match="the target 99 of 'n' is out of its range"):
        optimize(make_study(sampler_of(fidelity={"n": 99})), training, 1)


def test_misspelt_names_of_fidelity_and_cost_are_reported_once():
    wrong = make_study(sampler_of(fidelity="m", cost="minutes"))
    optimize(wrong, training, 9)
    with pytest.warns(UserWarning) as caught:
        optimize(wrong, training, 4)
    messages = [str(one.message) for one in caught if one.category is UserWarning]
    assert len(messages) == 2
    assert "no trial has the parameter 'm'" in messages[0] and "'rate'" in messages[0]
    assert (
        "no trial has the user attribute 'minutes'" in messages[1] and "['seconds']" in messages[1]
    )
    # Another study with a copy of the sampler, and with the sampler itself.
    for sampler in (pickle.loads(pickle.dumps(wrong.sampler)), wrong.sampler):
        with pytest.warns(UserWarning, match="no trial has the parameter 'm'"):
            optimize(make_study(sampler), training, 12)


@pytest.mark.filterwarnings("error:`fidelity`")
def test_a_constant_fidelity_is_not_reported():
    def objective(trial):
        return trial.suggest_int("n", 5, 5) * trial.suggest_float("x", 0.0, 1.0)

    optimize(make_study(sampler_of()), objective, 13)


@pytest.mark.parametrize("surrogate", ["gaussian_process", "forest"])
def test_earlier_trials_may_lack_parameters(surrogate):
    study = make_study(sampler_of(n_startup_trials=4, surrogate=surrogate))
    distribution = optuna.distributions.IntDistribution(1, 50, log=True)
    for n in (1, 50):
        study.add_trial(
            optuna.create_trial(params={"n": n}, distributions={"n": distribution}, value=1e-3 / n)
        )
    optimize(study, training, 14)
    assert best_at_target(study, "n").number == 1
    assert all({"kind", "rate", "n"} <= set(one) for one in parameters(study)[2:])


@pytest.mark.parametrize("target", [2.5, 51])
def test_a_target_that_is_no_value_is_refused_at_the_first_trial(target):
    study = make_study(sampler_of(fidelity={"n": target}))
    with pytest.raises(ValueError, match=r"the target (2\.5|51) of 'n' is"):
        study.optimize(training, n_trials=1)


def _raises(trial):
    raise RuntimeError("too few epochs")


def _is_pruned(trial):
    raise optuna.TrialPruned


@pytest.mark.parametrize("fail", [lambda trial: math.nan, _raises, _is_pruned])
@pytest.mark.parametrize("seed", range(2))
def test_a_cheapest_fidelity_that_always_fails_does_not_end_the_search(fail, seed):
    def objective(trial):
        x, n = trial.suggest_float("x", 0.0, 1.0), trial.suggest_int("n", 1, 50, log=True)
        return fail(trial) if n < 10 else (x - 0.3) ** 2 + 1.0 / n

    study = make_study(sampler_of(seed=seed))
    study.optimize(objective, n_trials=24, catch=RuntimeError)
    at_target = [trial for trial in study.trials if trial.params["n"] == 50]
    assert study.trials[3].params["n"] == 50
    assert len(at_target) >= 5
    assert abs(best_at_target(study, "n").params["x"] - 0.3) < 0.1


def test_an_integer_cost_too_large_for_a_float_is_unknown():
    def objective(trial):
        trial.set_user_attr("cost", 10**400)
        return trial.suggest_float("x", 0.0, 1.0) + 1.0 / trial.suggest_int("n", 1, 50, log=True)

    study = make_study(sampler_of(cost="cost"))
    study.optimize(objective, n_trials=14)
    assert best_at_target(study, "n").params["n"] == 50


def test_a_target_that_storages_round_is_found():
    def objective(trial):
        n = trial.suggest_int("n", 1, 2**53 + 1, log=True)
        return trial.suggest_float("x", 0.0, 1.0) + 1.0 / n

    study = make_study(sampler_of())
    study.optimize(objective, n_trials=14)
    assert best_at_target(study, "n").params["n"] >= 2**53
