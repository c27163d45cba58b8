"""Any order of asking, telling, failing and pruning keeps what was learnt.

An example is a space and up to 20 calls. After each call the optimizer is compared with a plain
list of what it was told. The suite runs 20 examples of each kind, and `make properties` 10,000.
"""

from __future__ import annotations

import math
import os
import warnings
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import optuna
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState
from studies import make_study

from mondrian_bo import MondrianOptimizer, MondrianSampler
from mondrian_bo.search_space import Categorical, Condition, Float, Int, SearchSpace

N_EXAMPLES = int(os.environ.get("MONDRIAN_BO_EXAMPLES", "20"))
PROFILE = settings(
    max_examples=N_EXAMPLES,
    stateful_step_count=20,
    derandomize="MONDRIAN_BO_EXAMPLES" not in os.environ,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

SPACES = (
    SearchSpace({"x": Float(-1.0, 3.0), "y": Float(1e-4, 1.0, log=True)}),
    SearchSpace({"n": Int(0, 2), "kind": Categorical(("a", "b"))}),
    SearchSpace(
        {
            "model": Categorical(("tree", "net")),
            "depth": Int(1, 3, condition=Condition("model", ("tree",))),
            "rate": Float(0.0, 1.0, condition=Condition("model", ("net",))),
        }
    ),
    SearchSpace({"one": Float(2.0, 2.0), "step": Float(0.0, 1.0, step=0.25)}),
)
VALUES = st.floats(-1e3, 1e3) | st.sampled_from([math.inf, -math.inf, 1e308, -1e308, 0.0])


class AskAndTell(RuleBasedStateMachine):
    """A `MondrianOptimizer` beside the list of its trials."""

    @initialize(
        space=st.sampled_from(SPACES),
        surrogate=st.sampled_from(["gaussian_process", "forest"]),
        direction=st.sampled_from(["minimize", "maximize"]),
        seed=st.integers(0, 1000),
    )
    def start(self, space, surrogate, direction, seed):
        self.space, self.sign = space, 1.0 if direction == "minimize" else -1.0
        self.optimizer = MondrianOptimizer(
            space,
            surrogate=surrogate,
            direction=direction,
            n_startup_trials=2,
            n_candidates=30,
            n_estimators=3,
            seed=seed,
        )
        self.pending: list[bytes] = []
        self.seen: set[bytes] = set()
        self.values: list[float] = []

    def row(self, params):
        # Decoding and encoding a logarithm may differ by a rounding error.
        return np.round(self.space.to_unit(params), 12).tobytes()

    @rule(n=st.integers(1, 4))
    def ask(self, n):
        for params in self.optimizer.ask(n):
            row = self.row(params)
            if len(self.seen) < self.space.cardinality:
                assert row not in self.seen, "a trial is proposed again while others are left"
            self.pending.append(row)
            self.seen.add(row)

    @precondition(lambda self: self.pending)
    @rule(value=VALUES | st.just(math.nan), data=st.data())
    def tell_pending(self, value, data):
        row = data.draw(st.sampled_from(self.pending))
        self.pending.remove(row)
        self.tell(row, value)

    @rule(value=VALUES, data=st.data())
    def tell_own(self, value, data):
        rng = np.random.default_rng(data.draw(st.integers(0, 50)))
        row = self.row(self.space.from_unit(self.space.sample(1, rng)[0]))
        if row in self.pending:
            self.pending.remove(row)
        self.tell(row, value)

    def tell(self, row, value):
        self.seen.add(row)
        params = self.space.from_unit(np.frombuffer(row))
        for own in self.optimizer.pending:
            params = own if self.row(own) == row else params
        self.optimizer.tell(params, value)
        if not math.isnan(value):
            self.values.append(value)

    @rule(value=st.sampled_from(["no number", None, [1.0, 2.0]]), data=st.data())
    def tell_nonsense(self, value, data):
        params = self.space.from_unit(self.space.sample(1, np.random.default_rng(0))[0])
        try:
            self.optimizer.tell(params, value)
        except (TypeError, ValueError):
            return
        raise AssertionError(f"{value!r} was told")

    @rule()
    def save_and_load(self):
        with TemporaryDirectory() as folder:
            path = Path(folder) / "search.npz"
            self.optimizer.save(path)
            loaded = MondrianOptimizer.load(path)
        assert loaded.ask() == self.optimizer.ask()
        params = loaded.pending[-1]
        self.optimizer = loaded
        self.pending.append(self.row(params))
        self.seen.add(self.row(params))

    @precondition(lambda self: self.values)
    @rule()
    def predict(self):
        rows = self.space.sample(3, np.random.default_rng(1))
        mean, std = self.optimizer.predict([self.space.from_unit(row) for row in rows])
        assert np.isfinite(mean).all() and (std >= 0.0).all()

    @invariant()
    def nothing_is_lost(self):
        if not hasattr(self, "optimizer"):
            return
        assert self.optimizer.n_trials == len(self.values)
        assert Counter(self.row(params) for params in self.optimizer.pending) == Counter(
            self.pending
        )
        if self.values:
            assert self.sign * self.optimizer.best[1] == min(self.sign * v for v in self.values)


SPACE = {
    "x": FloatDistribution(-1.0, 1.0),
    "rate": FloatDistribution(1e-5, 1.0, log=True),
    "size": IntDistribution(1, 64, log=True),
    "kind": CategoricalDistribution(("a", "b", None)),
}


def suggest(trial):
    """Ask for parameters, one of which only some trials have."""
    kind = trial.suggest_categorical("kind", ("a", "b", None))
    trial.suggest_float("x", -1.0, 1.0)
    if kind is not None:
        trial.suggest_float("rate", 1e-5, 1.0, log=True)
    trial.suggest_int("size", 1, 64, log=True)


class Study(RuleBasedStateMachine):
    """A study with a `MondrianSampler`, whose trials end in any order and in any state."""

    @initialize(
        seed=st.integers(0, 1000), surrogate=st.sampled_from(["gaussian_process", "forest"])
    )
    def start(self, seed, surrogate):
        sampler = MondrianSampler(
            seed=seed, n_startup_trials=2, n_candidates=30, n_estimators=3, surrogate=surrogate
        )
        self.study = make_study(sampler)
        self.running: list[optuna.Trial] = []
        self.learnt = 0

    @rule()
    def ask(self):
        trial = self.study.ask()
        suggest(trial)
        others = [one.params for one in self.study.get_trials(deepcopy=False)[: trial.number]]
        assert trial.params not in others
        self.running.append(trial)

    @precondition(lambda self: self.running)
    @rule(value=st.floats(-1e3, 1e3) | st.just(math.inf), data=st.data())
    def complete(self, value, data):
        self.study.tell(self.take(data), value)
        self.learnt += 1

    @precondition(lambda self: self.running)
    @rule(reports=st.lists(st.floats(-10.0, 10.0) | st.just(math.nan), max_size=3), data=st.data())
    def prune(self, reports, data):
        trial = self.take(data)
        for step, value in enumerate(reports):
            trial.report(value, step)
        self.study.tell(trial, state=TrialState.PRUNED)

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def fail(self, data):
        self.study.tell(self.take(data), state=TrialState.FAIL)

    def take(self, data):
        trial = data.draw(st.sampled_from(self.running))
        self.running.remove(trial)
        return trial

    @rule(x=st.floats(-1.0, 1.0), kind=st.sampled_from(("a", "b", None)))
    def enqueue(self, x, kind):
        self.study.enqueue_trial({"x": x, "kind": kind}, skip_if_exists=True)
        trial = self.study.ask()
        suggest(trial)
        self.running.append(trial)

    @rule(value=st.floats(-1e3, 1e3), seed=st.integers(0, 50))
    def add_trial_of_another_sampler(self, value, seed):
        rng = np.random.default_rng(seed)
        params = {
            "x": float(rng.uniform(-1.0, 1.0)),
            "size": int(rng.integers(1, 65)),
            "kind": None,
        }
        distributions = {name: SPACE[name] for name in params}
        self.study.add_trial(
            optuna.create_trial(params=params, distributions=distributions, value=value)
        )
        self.learnt += 1

    @invariant()
    def complete_trials_are_learnt_once(self):
        if not hasattr(self, "study"):
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            trial = self.study.ask()
            suggest(trial)
            self.study.tell(trial, state=TrialState.FAIL)
        trials = self.study.get_trials(deepcopy=False)
        assert sum(one.state == TrialState.COMPLETE for one in trials) == self.learnt


TestAskAndTell = AskAndTell.TestCase
TestAskAndTell.settings = PROFILE
TestStudy = Study.TestCase
TestStudy.settings = PROFILE
