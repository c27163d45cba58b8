"""Conditions learnt from trials, against the definition applied to all trials at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optuna.distributions import CategoricalDistribution, FloatDistribution

from mondrian_bo.integrations.optuna.study.learnt_conditions import ConditionLearner
from mondrian_bo.search_space import Condition


def by_definition(trials):
    """Conditions and whether an absence is unexplained, from the list of distinct trials.

    For each parameter: all equally good explanations.
    """
    order = list(dict.fromkeys((tuple(names), tuple(choices.items())) for names, choices in trials))
    trials = [(set(names), dict(choices)) for names, choices in order]
    every = {name for names, _ in trials for name in names}
    parents = {name for _, choices in trials for name in choices}

    def count(name):
        return sum(name in names for names, _ in trials)

    explanations, unexplained = {}, False
    for p in every:
        if count(p) == len(trials):
            continue
        found = {}
        for q in parents:
            active = {choices.get(q) for names, choices in trials if p in names}
            inactive = {choices[q] for names, choices in trials if p not in names and q in names}
            if None not in active and inactive and not active & inactive:
                found.setdefault(count(q), []).append(Condition(q, tuple(sorted(active))))
        if found:
            explanations[p] = found[min(found)]
        else:
            unexplained = True
    return explanations, unexplained


CHOICE, NUMBER = CategoricalDistribution(list("abcdefgh")), FloatDistribution(0.0, 1.0)


def tell(learner, names, choices):
    """Tell of a trial with some parameters, of which those in `choices` may be parents."""
    distributions = {name: CHOICE if name in choices else NUMBER for name in names}
    learner.learn({name: float(choices.get(name, 0.5)) for name in names}, distributions)


def learnt(trials):
    learner = ConditionLearner()
    for names, choices in trials:
        tell(learner, names, choices)
    return learner


def check(trials):
    learner = learnt(trials)
    explanations, unexplained = by_definition(trials)
    assert set(learner.conditions) == set(explanations)
    for name, condition in learner.conditions.items():
        assert condition in explanations[name]
    assert learner.unexplained == unexplained


def deep_trial(rng):
    """Names and choices of a conditional space of depth three."""
    names, choices = ["lr", "model"], {"model": int(rng.integers(3))}
    if choices["model"] == 0:
        names += ["leaves"]
    if choices["model"] in (0, 2):
        names += ["shared"]
    if choices["model"] == 1:
        names += ["layers", "act"]
        choices |= {"layers": int(rng.integers(1, 4)), "act": int(rng.integers(2))}
        if choices["layers"] >= 2:
            names += ["second"]
            choices["second"] = int(rng.integers(2))
            if choices["second"] == 0:
                names += ["slope"]
    if rng.random() < 0.5:
        names = names[::-1]
    return names, {name: choices[name] for name in names if name in choices}


@pytest.mark.parametrize("seed", range(5))
def test_recovers_a_tree_of_depth_three(seed):
    rng = np.random.default_rng(seed)
    learner = learnt(deep_trial(rng) for _ in range(150))
    assert learner.conditions == {
        "leaves": Condition("model", (0,)),
        "shared": Condition("model", (0, 2)),
        "layers": Condition("model", (1,)),
        "act": Condition("model", (1,)),
        "second": Condition("layers", (2, 3)),
        "slope": Condition("second", (0,)),
    }
    assert not learner.unexplained


@pytest.mark.parametrize("seed", range(20))
def test_is_the_definition_after_every_trial(seed):
    rng = np.random.default_rng(seed)
    trials = [deep_trial(rng) for _ in range(25)]
    for n in range(1, 26):
        check(trials[:n])


@st.composite
def any_trial(draw):
    names = draw(st.lists(st.sampled_from("abcxy"), min_size=1, unique=True))
    return names, {name: draw(st.integers(0, 2)) for name in names if name in "abc"}


@settings(derandomize=True, max_examples=300)
@given(trials=st.lists(any_trial(), min_size=1, max_size=8))
def test_is_the_definition_for_any_trials(trials):
    check(trials)


@settings(derandomize=True)
@given(
    trials=st.lists(any_trial(), min_size=2, max_size=6),
    order=st.randoms(use_true_random=False),
)
def test_the_order_of_the_trials_does_not_matter(trials, order):
    shuffled = list(trials)
    order.shuffle(shuffled)
    first, second = learnt(trials), learnt(shuffled)
    assert set(first.conditions) == set(second.conditions)
    assert first.unexplained == second.unexplained


def test_nothing_is_conditional_at_first():
    learner = ConditionLearner()
    assert (learner.conditions, learner.unexplained) == ({}, False)
    tell(learner, ("x", "c"), {"c": 1})
    tell(learner, ("x", "c"), {"c": 0})
    assert (learner.conditions, learner.unexplained) == ({}, False)


def test_absences_that_no_choice_explains():
    # `y` depends on the value of the number x: by the definition nothing explains it.
    learner = learnt([(("x", "c"), {"c": 0}), (("x", "c", "y"), {"c": 0})])
    assert (learner.conditions, learner.unexplained) == ({}, True)
    # What is explained stays so beside it.
    tell(learner, ("x", "c", "z"), {"c": 1})
    assert learner.conditions == {"z": Condition("c", (1,))}
    assert learner.unexplained


def test_an_explanation_is_given_up_when_it_fails():
    trials = [(("c",), {"c": 0}), (("c", "y"), {"c": 1})]
    learner = learnt(trials)
    assert learner.conditions == {"y": Condition("c", (1,))}
    tell(learner, ("c",), {"c": 1})
    assert (learner.conditions, learner.unexplained) == ({}, True)


def test_repeated_trials_cost_nothing(monkeypatch):
    learner = learnt([(("c",), {"c": 0}), (("c", "y"), {"c": 1})])
    conditions = learner.conditions

    def refuse(*_):
        raise AssertionError("It looked at a trial like those before.")

    monkeypatch.setattr(learner, "_explain", refuse)
    for _ in range(5):
        tell(learner, ("c", "y"), {"c": 1})
    assert learner.conditions is conditions
    with pytest.raises(AssertionError, match="like those before"):
        tell(learner, ("c", "y"), {"c": 2})


def test_earlier_trials_are_gone_through_only_for_new_names():
    """Many combinations of choices must not make each trial cost more than the one before."""

    class Counted(set):
        n_walks = 0

        def __iter__(self):
            self.n_walks += 1
            return super().__iter__()

    learner = ConditionLearner()
    learner._seen = Counted()
    rng = np.random.default_rng(0)
    names = tuple("abcdef")
    for _ in range(300):
        tell(learner, names, {name: int(rng.integers(5)) for name in names})
    assert len(learner._seen) > 250
    assert learner._seen.n_walks <= 1


def test_parameters_that_all_trials_have_cost_no_pairs():
    rng = np.random.default_rng(0)
    names = tuple(f"p{i}" for i in range(40))
    learner = ConditionLearner()
    for _ in range(50):
        tell(learner, names, {name: int(rng.integers(3)) for name in names})
    assert learner._parents == {}
    # The first absence compares with all trials before it: only p0 never had this choice.
    tell(learner, names[:-1], {name: 3 if name == "p0" else 0 for name in names[:-1]})
    assert learner.conditions == {"p39": Condition("p0", (0, 1, 2))}
    assert set(learner._parents) == {"p39"}
