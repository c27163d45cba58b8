"""`MondrianSampler(warm_start=...)`: studies over the same or a similar space, and bad input."""

from __future__ import annotations

import math
import pickle
import warnings

import optuna
import pytest

from mondrian_bo import MondrianSampler
from mondrian_bo.integrations.optuna.suggestions.earlier_studies import EarlierStudies


def objective(trial, kinds=("sgd", "adam"), low=1e-5):
    kind = trial.suggest_categorical("kind", kinds)
    rate = trial.suggest_float("rate", low, 1.0, log=True)
    value = (math.log10(rate) + 2.0) ** 2 + (kind != "adam")
    if kind == "sgd":
        value += (trial.suggest_float("momentum", 0.0, 1.0) - 0.9) ** 2
    return value


def study_of(function=objective, n_trials=25, sampler=None, **settings):
    study = optuna.create_study(
        sampler=sampler or optuna.samplers.RandomSampler(seed=0), **settings
    )
    study.optimize(function, n_trials)
    return study


def values_of(study):
    return [trial.value for trial in study.trials]


def weights_of(study):
    (memory,) = study.sampler._memory[study._storage].values()
    return memory._optimizer.earlier_weights


def test_no_earlier_study_changes_nothing():
    plain = study_of(n_trials=13, sampler=MondrianSampler(seed=0))
    other = study_of(n_trials=13, sampler=MondrianSampler(seed=0, warm_start=[]))
    assert [trial.params for trial in plain.trials] == [trial.params for trial in other.trials]


def test_a_similar_space_starts_well():
    earlier = study_of()

    def similar(trial):
        # A further choice, another range, and a new parameter.
        value = objective(trial, ("adam", "lamb", "sgd"), low=1e-3)
        return value + 0.05 * abs(trial.suggest_int("layers", 1, 5) - 3)

    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warm = study_of(similar, 12, MondrianSampler(seed=0, warm_start=[earlier]))
    best = earlier.best_trial.params
    assert {name: warm.trials[0].params[name] for name in best} == best
    assert weights_of(warm)[0] > 0.5
    cold = study_of(similar, 12, MondrianSampler(seed=0))
    assert sum(values_of(warm)[6:]) < 0.5 * sum(values_of(cold)[6:])
    # Predictions are those of this study alone.
    wanted = MondrianSampler(seed=0).predict(warm, best | {"layers": 3})
    assert warm.sampler.predict(warm, best | {"layers": 3}) == wanted


@pytest.mark.parametrize("seed", range(3))
def test_the_first_trials_from_an_earlier_study_are_apart(seed):
    """The third is not the point of the best prediction, next to the best value of the first."""

    def smooth(trial):
        x, y = (trial.suggest_float(name, 0.0, 1.0) for name in "xy")
        return (x - 0.3) ** 2 + (y - 0.6) ** 2

    earlier = study_of(smooth, 25, MondrianSampler(seed=seed))
    study = study_of(smooth, 3, MondrianSampler(seed=seed, warm_start=[earlier]))
    first, _, third = (trial.params for trial in study.trials)
    assert study.trials[0].value < 1e-3
    assert max(abs(first[name] - third[name]) for name in "xy") >= 0.1


def test_a_misleading_study_is_forgotten_within_20_trials():
    earlier = study_of(lambda trial: -objective(trial))
    warm = study_of(n_trials=21, sampler=MondrianSampler(seed=0, warm_start=[earlier]))
    assert weights_of(warm)[0] == 0.0


def test_first_trials_of_parallel_workers_are_different_earlier_ones():
    first, second = study_of(), study_of(lambda trial: trial.suggest_float("rate", 2, 3))
    sampler = MondrianSampler(seed=0, warm_start=[first, second])
    study = optuna.create_study(sampler=sampler)
    trials = [study.ask() for _ in range(5)]
    rates = [trial.suggest_float("rate", 1e-5, 1.0, log=True) for trial in trials]
    assert rates[0] == first.best_params["rate"]
    assert rates[2] == 1.0
    assert rates[4] in [trial.params["rate"] for trial in first.trials] and rates[4] != rates[0]
    assert rates[1] not in [trial.params["rate"] for trial in first.trials]
    # Values that the present parameter cannot have are drawn.
    assert trials[0].suggest_categorical("kind", ["lamb", "lion"]) in ["lamb", "lion"]
    assert trials[0].suggest_int("momentum", 3, 5) in [3, 4, 5]


def test_a_conflict_is_reported():
    earlier = study_of(
        lambda trial: float(trial.suggest_categorical("rate", ["low", "high"]) == "low")
    )
    with pytest.warns(UserWarning, match="'rate' of the earlier study 'former' is ignored.*'high'"):
        named = optuna.create_study(study_name="former")
        named.add_trials(earlier.trials)
        study_of(n_trials=3, sampler=MondrianSampler(seed=0, warm_start=[named]))


def two_objectives(trial):
    return trial.suggest_float("x", 0, 1), 0.0


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: study_of(), TypeError, "a list of studies"),
        (lambda: "former", TypeError, "a list of studies, got 'former'"),
        (lambda: "", TypeError, "a list of studies, got ''"),
        (lambda: 0, TypeError, "a list of studies, got 0"),
        (lambda: [study_of().trials], TypeError, "hold optuna studies"),
        (lambda: [optuna.create_study(study_name="empty")], ValueError, "'empty' has no complete"),
        (
            lambda: [study_of(two_objectives, 2, directions=["minimize"] * 2)],
            ValueError,
            "has 2 objectives",
        ),
    ],
)
def test_bad_input_is_refused(make, error, message):
    with pytest.raises(error, match=message):
        MondrianSampler(warm_start=make())


def test_studies_that_do_not_go_together_are_refused():
    sampler = MondrianSampler(warm_start=[study_of(n_trials=2)])
    with pytest.raises(ValueError, match=r"MINIMIZE.*MAXIMIZE"):
        study_of(n_trials=1, sampler=sampler, direction="maximize")
    with pytest.raises(ValueError, match="one objective"):
        study_of(two_objectives, 1, sampler, directions=["minimize"] * 2)


def test_failed_and_pruned_trials_are_left_out_and_the_sampler_is_pickled():
    def function(trial):
        x = trial.suggest_float("x", 0, 1)
        if trial.number % 3 == 1:
            raise optuna.TrialPruned
        return math.nan if trial.number % 3 == 2 else x

    earlier = study_of(function, 9, direction="maximize")
    read = EarlierStudies([earlier])._studies[0]
    assert read.values == sorted(
        (trial.value for trial in earlier.trials if trial.number % 3 == 0), reverse=True
    )
    sampler = MondrianSampler(seed=0, warm_start=[earlier])
    copied = pickle.loads(pickle.dumps(sampler))
    runs = [study_of(function, 8, one, direction="maximize") for one in (sampler, copied)]
    assert runs[0].trials[0].params == earlier.best_params
    assert [trial.params for trial in runs[0].trials] == [trial.params for trial in runs[1].trials]


def test_first_trials_are_feasible_trials_of_earlier_studies():
    """The best values are infeasible, far from the feasible ones."""

    def function(trial):
        x = trial.suggest_float("x", 0.0, 1.0)
        trial.set_constraint("c", 0.5 - x)
        return x

    earlier = study_of(function, 20)
    runs = [study_of(function, 6, MondrianSampler(seed=s, warm_start=[earlier])) for s in range(3)]
    for warm in runs:
        assert warm.trials[0].params == earlier.best_params
        assert warm.trials[2].params["x"] >= 0.5
    # Where no earlier trial is feasible, the best ones are all that is known.
    infeasible = study_of(_never_feasible, 8)
    warm = study_of(function, 2, MondrianSampler(seed=0, warm_start=[infeasible]))
    best = min(infeasible.trials, key=lambda trial: trial.value)
    assert warm.trials[0].params == best.params


def _never_feasible(trial):
    x = trial.suggest_float("x", 0.0, 1.0)
    trial.set_constraint("c", 1.0)
    return x


@pytest.mark.parametrize(
    ("suggest", "expected"),
    [
        (lambda trial: trial.suggest_float("x", -5, 5, step=0.5), 1.5),
        (lambda trial: trial.suggest_int("x", -5, 5), 1),
        (lambda trial: trial.suggest_float("x", -5, 1), 1.0),
    ],
)
def test_a_first_value_is_the_nearest_one_of_the_range(suggest, expected):
    earlier = optuna.create_study()
    for x in (1.4, -3.0, 4.5):
        distributions = {"x": optuna.distributions.FloatDistribution(-5, 5)}
        earlier.add_trial(
            optuna.create_trial(params={"x": x}, distributions=distributions, value=(x - 1.4) ** 2)
        )
    study = study_of(suggest, 1, MondrianSampler(seed=0, warm_start=[earlier]))
    assert study.trials[0].params["x"] == expected


def test_a_first_value_is_not_taken_from_a_range_far_away():
    """The parameter is ignored then, as a warning says."""
    earlier = study_of(lambda trial: trial.suggest_float("x", 100.0, 200.0), 8)
    plain = study_of(lambda trial: trial.suggest_float("x", 0.0, 1.0), 1, MondrianSampler(seed=0))
    with pytest.warns(UserWarning, match="'x' of the earlier study"):
        warm = study_of(
            lambda trial: trial.suggest_float("x", 0.0, 1.0),
            6,
            MondrianSampler(seed=0, warm_start=[earlier]),
        )
    assert warm.trials[0].params == plain.trials[0].params
    assert len({trial.params["x"] for trial in warm.trials}) == 6


@pytest.mark.parametrize(
    ("earlier", "present", "kind"),
    [
        (
            lambda trial: trial.suggest_int("x", 1, 9),
            lambda trial: trial.suggest_float("x", 0, 10),
            float,
        ),
        (
            lambda trial: trial.suggest_int("x", 1, 9),
            lambda trial: trial.suggest_float("x", 0, 10, step=1),
            float,
        ),
        (
            lambda trial: trial.suggest_float("x", 1, 9),
            lambda trial: trial.suggest_int("x", 0, 10),
            int,
        ),
    ],
)
def test_values_have_the_type_that_is_asked_for(earlier, present, kind):
    """In the objective, and when the study is read: also where an earlier study had another one."""
    seen = []

    def noted(trial):
        seen.append(present(trial))
        return abs(seen[-1] - 4)

    study = study_of(noted, 7, MondrianSampler(seed=0, warm_start=[study_of(earlier, 12)]))
    assert {type(one) for one in seen} == {kind}
    assert {type(trial.params["x"]) for trial in study.trials} == {kind}
