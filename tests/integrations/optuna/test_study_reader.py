"""What the sampler reads of a study, and how often."""

from __future__ import annotations

import json
import math

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState, create_trial
from studies import bowl, conditional, make_study, mixed, optimize

from mondrian_bo.integrations.optuna.study.proposals import (
    PUBLISHED_KEY,
    note_replaced,
    publish,
    raw_running_values,
)
from mondrian_bo.integrations.optuna.study.study_reader import StudyReader

UNIT = {"x": FloatDistribution(0.0, 1.0)}


def random_study(objective, n_trials, **settings):
    return optimize(
        make_study(optuna.samplers.RandomSampler(seed=0), **settings), objective, n_trials
    )


def add(study, value, state=TrialState.COMPLETE, x=0.5, **arguments):
    study.add_trial(
        create_trial(state=state, value=value, params={"x": x}, distributions=UNIT, **arguments)
    )


def outcomes(study):
    reader = StudyReader()
    reader.read(study)
    return [trial.outcomes[0] for trial in reader.finished]


def test_reads_values_in_the_internal_representation():
    study = random_study(mixed, 12)
    reader = StudyReader()
    assert reader.read(study) == []
    trials = study.get_trials()
    assert [found.outcomes[0] for found in reader.finished] == [trial.value for trial in trials]
    for (internal, unasked, *_), trial in zip(reader.finished, trials, strict=True):
        assert unasked == {}
        assert set(internal) == set(trial.params)
        assert internal["kind"] == ["a", "b", None].index(trial.params["kind"])
        assert {n: internal[n] for n in ("x", "n", "rate")} == {
            n: trial.params[n] for n in ("x", "n", "rate")
        }
    assert reader.distributions == trials[0].distributions


def test_each_finished_trial_is_absorbed_once(monkeypatch):
    absorbed = []
    absorb = StudyReader._absorb

    def spy(self, trial, maximize):
        absorbed.append(trial.number)
        return absorb(self, trial, maximize)

    monkeypatch.setattr(StudyReader, "_absorb", spy)
    study = make_study()
    optimize(study, bowl, 15)
    # Nobody has asked since the last trial.
    assert absorbed == list(range(14))
    waiting = study.ask()
    assert waiting.suggest_float("x", -1.0, 1.0) is not None
    assert absorbed == list(range(15))
    # A trial that runs for long is read when it is done, in whatever order.
    optimize(study, bowl, 3)
    assert absorbed == [*range(15), 16, 17]
    study.tell(waiting, 1.0)
    optimize(study, bowl, 2)
    assert sorted(absorbed) == list(range(20))


def test_returns_the_running_trials():
    study = random_study(bowl, 3)
    running = [study.ask() for _ in range(3)]
    study.enqueue_trial({"x": 0.5})
    reader = StudyReader()
    assert [trial.number for trial in reader.read(study)] == [3, 4, 5]
    study.tell(running[1], 0.5)
    assert [trial.number for trial in reader.read(study)] == [3, 5]
    assert len(reader.finished) == 4
    assert study.ask().number == 6
    assert [trial.number for trial in reader.read(study)] == [3, 5, 6]


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_pruned_trials_are_no_better_than_the_median(direction):
    study = make_study(direction=direction)
    sign = 1.0 if direction == "minimize" else -1.0
    add(study, sign * 7.0, TrialState.PRUNED)
    for value in (4.0, 50.0, 1.0, 3.0, 2.0):
        add(study, sign * value)
    add(study, sign * 2.0, TrialState.PRUNED)
    add(study, sign * 9.0, TrialState.PRUNED)
    add(study, None, TrialState.PRUNED, intermediate_values={0: sign * 8.0, 3: sign * 5.0})
    # Without complete ones to compare with, the value counts; later, the median at least.
    assert outcomes(study) == [sign * v for v in (7.0, 4.0, 50.0, 1.0, 3.0, 2.0, 3.0, 9.0, 5.0)]


def test_the_last_report_is_that_of_the_last_step():
    """Reports may come in another order."""
    study = make_study()
    for value in (1.0, 2.0, 3.0):
        add(study, value)
    add(study, None, TrialState.PRUNED, intermediate_values={3: 5.0, 0: 8.0})
    assert outcomes(study)[-1] == 5.0


@pytest.mark.parametrize("intermediate", [{}, {0: math.nan}, {0: 1.0, 1: math.nan}])
def test_pruned_trials_without_a_value_count_as_the_median(intermediate):
    study = make_study()
    add(study, None, TrialState.PRUNED, intermediate_values=intermediate)
    for value in (1.0, 5.0, 2.0):
        add(study, value)
    add(study, None, TrialState.PRUNED, intermediate_values=intermediate)
    first, *others = outcomes(study)
    assert math.isnan(first)
    assert others == [1.0, 5.0, 2.0, 2.0]


def test_pruned_trials_without_a_value_tell_nothing_of_the_conditions():
    study = random_study(bowl, 5)
    add(study, None, TrialState.PRUNED)
    reader = StudyReader()
    reader.read(study)
    assert not reader.conditions.unexplained


def test_infinite_values_are_outcomes_like_others():
    study = make_study()
    for value in (math.inf, 1.0, -math.inf):
        add(study, value)
    add(study, 0.0, TrialState.PRUNED)
    assert outcomes(study) == [math.inf, 1.0, -math.inf, 1.0]


def test_failed_trials_have_no_outcome_and_tell_nothing_of_the_space():
    study = make_study()
    study.add_trial(
        create_trial(
            state=TrialState.FAIL,
            params={"x": 0.25, "c": "b"},
            distributions=UNIT | {"c": CategoricalDistribution(["a", "b"])},
        )
    )
    reader = StudyReader()
    reader.read(study)
    ((values, unasked, (outcome,), *_),) = reader.finished
    assert (values, unasked) == ({"x": 0.25, "c": 1}, {})
    assert math.isnan(outcome)
    assert reader.distributions == {}
    # It may have stopped before it asked for `y`: that is no condition.
    both = UNIT | {"y": FloatDistribution(0.0, 1.0)}
    study.add_trial(create_trial(value=1.0, params={"x": 0.5, "y": 0.5}, distributions=both))
    reader.read(study)
    assert set(reader.distributions) == {"x", "y"}
    assert not reader.conditions.unexplained


def test_constraints_are_read_by_name():
    study = make_study()
    add(study, 1.0)
    for constraints in ({"c": -1.0}, {"b": 2.0, "c": 0.5}, {}):
        study.add_trial(
            create_trial(value=1.0, params={"x": 0.5}, distributions=UNIT, constraints=constraints)
        )
    reader = StudyReader()
    reader.read(study)
    assert reader.constraints == ["c", "b"]
    found = [trial.constraints for trial in reader.finished]
    assert found == [{}, {"c": -1.0}, {"b": 2.0, "c": 0.5}, {}]


def test_trials_of_several_objectives():
    study = optuna.create_study(directions=["minimize", "maximize"])
    for state, values in (
        (TrialState.COMPLETE, [1.0, 2.0]),
        (TrialState.FAIL, None),
        (TrialState.PRUNED, None),
    ):
        study.add_trial(
            create_trial(state=state, values=values, params={"x": 0.5}, distributions=UNIT)
        )
    reader = StudyReader()
    reader.read(study)
    found = np.array([trial.outcomes for trial in reader.finished])
    assert np.array_equal(found[0], [1.0, 2.0])
    assert np.isnan(found[1:]).all()


def test_conditions_of_categories_and_small_integers():
    study = random_study(conditional, 80)
    reader = StudyReader()
    reader.read(study)
    found = {name: (c.parent, c.values) for name, c in reader.conditions.conditions.items()}
    assert found == {
        "leaves": ("model", (0,)),
        "layers": ("model", (1,)),
        "second": ("layers", (2, 3)),
        "slope": ("second", (0,)),
    }
    assert not reader.conditions.unexplained


def test_many_valued_integers_and_floats_explain_nothing():
    def objective(trial):
        n = trial.suggest_int("n", 0, 99)
        x = trial.suggest_float("x", 0.0, 1.0)
        y = trial.suggest_float("y", 0.0, 1.0) if n < 50 else 0.0
        return x + y

    reader = StudyReader()
    reader.read(random_study(objective, 60))
    assert reader.conditions.conditions == {}
    assert reader.conditions.unexplained


def test_parameters_of_a_single_value_are_not_modelled():
    def objective(trial):
        trial.suggest_float("fixed", 1.0, 1.0)
        trial.suggest_categorical("only", ["a"])
        return trial.suggest_int("n", 0, 5)

    reader = StudyReader()
    reader.read(random_study(objective, 5))
    assert reader.distributions == {"n": IntDistribution(0, 5)}


def test_constants_have_the_same_value_in_all_trials():
    study, reader = make_study(), StudyReader()
    for device, expected in (("cpu", {"device": "cpu", "n": 3}), ("gpu", {"n": 3})):
        distributions = {"device": CategoricalDistribution([device]), "n": IntDistribution(3, 3)}
        params = {"device": device, "n": 3}
        study.add_trial(create_trial(value=1.0, params=params, distributions=distributions))
        reader.read(study)
        assert reader.constants == expected


def test_the_latest_range_is_followed_until_it_keeps_changing():
    study = make_study()
    reader = StudyReader()
    assert reader.read(study) == []
    ranges = [(0.0, 1.0), (0.0, 1.0), (0.5, 0.9), (-3.0, 2.0), (0.0, 1.0), (4.0, 5.0), (0.0, 0.5)]
    for low, high in ranges:
        distribution = FloatDistribution(low, high)
        trial = create_trial(value=0.0, params={"x": low}, distributions={"x": distribution})
        study.add_trial(trial)
        reader.read(study)
        assert reader.distributions["x"] == distribution
    # From the sixth change on it is dynamic: covered as a whole.
    seen = [(0.0, 0.5)]
    for low, high in [(0.2, 0.3), (-9.0, 0.1), (0.2, 0.4), (1.0, 2.0)]:
        seen.append((low, high))
        study.add_trial(
            create_trial(
                value=0.0,
                params={"x": low},
                distributions={"x": FloatDistribution(low, high)},
            )
        )
        reader.read(study)
        assert reader.distributions["x"] == FloatDistribution(
            min(low for low, _ in seen), max(high for _, high in seen)
        )


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("kind", "ranges", "expected"),
    [
        (IntDistribution, [(0, 10, 2), (1, 11, 2)], (0, 11, 1)),
        (IntDistribution, [(0, 12, 4), (2, 14, 6)], (0, 14, 2)),
        (IntDistribution, [(1, 9, 1), (-3, 5, 1)], (-3, 9, 1)),
        (FloatDistribution, [(0.0, 1.0, 0.25), (0.0, 0.5, 0.25)], (0.0, 1.0, 0.25)),
        # Of grids that do not meet the latest.
        (FloatDistribution, [(0.0, 1.0, 0.5), (0.25, 1.25, 0.5)], (0.25, 1.25, 0.5)),
    ],
)
def test_grids_that_keep_changing(kind, ranges, expected):
    study, reader = make_study(), StudyReader()
    for low, high, step in ranges * 6:
        distribution = {"x": kind(low, high, step=step)}
        study.add_trial(create_trial(value=0.0, params={"x": low}, distributions=distribution))
    reader.read(study)
    low, high, step = expected
    assert reader.distributions["x"] == kind(low, high, step=step)


def test_another_study_in_the_place_of_a_deleted_one():
    """Relational storages give the ids of deleted studies and trials to new ones."""
    first, second = random_study(bowl, 6), random_study(mixed, 4)
    for n_more in (0, 5):
        reader = StudyReader()
        reader.read(first)
        old = reader.finished
        optimize(second, mixed, n_more)
        reader.read(second)
        assert len(reader.finished) == 4 + n_more
        assert reader.finished is not old
        assert set(reader.distributions) == {"x", "n", "rate", "kind"}
    # While trials were running, too.
    reader = StudyReader()
    running = make_study()
    for _ in range(3):
        running.ask()
    assert len(reader.read(running)) == 3
    assert reader.read(make_study()) == []


@pytest.mark.parametrize("n_parameters", [1, 40, 200])
@pytest.mark.parametrize("storage", [None, "sqlite"])
def test_published_parameters_are_read_back(tmp_path, storage, n_parameters):
    if storage is not None:
        storage = f"sqlite:///{tmp_path}/study.db"
    study = make_study(storage=storage)
    trial = study.ask()
    rng = np.random.default_rng(0)
    internal = {f"a parameter {i}": rng.normal() for i in range(n_parameters)}
    frozen = study.get_trials(deepcopy=False)[0]
    publish(study, frozen, internal)
    frozen = study.get_trials(deepcopy=False)[0]
    parts = [text for key, text in frozen.system_attrs.items() if key.startswith(PUBLISHED_KEY)]
    assert max(map(len, parts)) <= 2045
    assert (len(parts) > 1) == (n_parameters > 1 and len(json.dumps(internal)) > 2045)
    assert raw_running_values(frozen) == internal
    # What it has asked for counts for more.
    trial.suggest_float("a parameter 0", 0.25, 0.25)
    frozen = study.get_trials(deepcopy=False)[0]
    assert raw_running_values(frozen) == internal | {"a parameter 0": 0.25}


def test_what_a_trial_was_proposed_and_did_not_ask_for():
    study = make_study()
    trial = study.ask()
    publish(study, study.get_trials(deepcopy=False)[0], {"x": 0.25, "y": 0.75, "z": 0.5})
    trial.suggest_float("x", 0.125, 0.125)
    trial.suggest_float("z", 0.0, 1.0)
    study.tell(trial, 1.0)
    reader = StudyReader()
    reader.read(study)
    ((values, unasked, *_),) = reader.finished
    assert values == {"x": 0.125, "z": trial.params["z"]}
    assert unasked == {"y": 0.75}
    # It says nothing of what the objective asks for.
    assert set(reader.distributions) == {"z"}


def test_numbers_that_were_replaced_by_the_nearest_of_a_range():
    study = optuna.create_study()
    trial = study.ask(UNIT)
    for name in ("x", "y"):
        note_replaced(study, study.get_trials(deepcopy=False)[0], name, 7.0)
    study.tell(trial, 1.0)
    # Hundreds of them exceed an attribute.
    trial = study.ask(UNIT)
    for i in range(300):
        note_replaced(study, study.get_trials(deepcopy=False)[1], f"parameter {i}", 1.0)
    study.tell(trial, 1.0)
    reader = StudyReader()
    reader.read(study)
    first, second = (one.replaced for one in reader.finished)
    assert first == {"x": 7.0, "y": 7.0}
    assert 50 < len(second) < 300


def test_half_written_parameters_are_ignored():
    study = make_study()
    trial = study.ask()
    trial.suggest_float("x", 0.5, 0.5)
    study._storage.set_trial_system_attr(trial._trial_id, f"{PUBLISHED_KEY}:0", '{"x": 0.3, "y')
    assert raw_running_values(study.get_trials(deepcopy=False)[0]) == {"x": 0.5}


def test_a_later_reader_reads_in_the_order_in_which_trials_finished():
    """What a pruned trial is learnt with does not depend on when it is read."""
    study = make_study(optuna.samplers.RandomSampler(seed=0))
    early, rng = StudyReader(), np.random.default_rng(0)
    running: list[optuna.Trial] = []
    ended = []
    for number in range(40):
        trial = study.ask()
        trial.suggest_float("x", 0.0, 1.0 + number)
        running.append(trial)
        if len(running) < 4:
            continue
        trial = running.pop(int(rng.integers(4)))
        ended.append(trial.number)
        trial.report(float(rng.normal()), 0)
        if rng.random() < 0.6:
            study.tell(trial, float(rng.normal()))
        else:
            study.tell(trial, state=TrialState.PRUNED if rng.random() < 0.7 else TrialState.FAIL)
        early.read(study)
    assert ended != sorted(ended)
    late = StudyReader()
    late.read(study)
    assert str(late.finished) == str(early.finished)
    assert late.distributions == early.distributions
