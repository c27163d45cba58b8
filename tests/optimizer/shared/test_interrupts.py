"""A call of the optimizer that was interrupted has no effect, or its whole effect."""

from __future__ import annotations

import copy
import gc
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from interrupts import Interrupted, count_events, interrupt_after, interrupt_at

from mondrian_bo import Categorical, Condition, Float, Int, MondrianOptimizer, SearchSpace
from mondrian_bo.surrogates.gaussian_process_forest.surrogate import GaussianProcessForestSurrogate

# An exception in a finaliser is ignored, which pytest reports.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

NUMBERS = SearchSpace({"x": Float(-1.0, 2.0), "y": Float(0.0, 1.0)})
CONDITIONAL = SearchSpace(
    {
        "x": Float(-1.0, 2.0),
        "kind": Categorical(("a", "b", "c")),
        "n": Int(1, 9, condition=Condition("kind", ("a", "b"))),
    }
)
CASES = [
    ("gaussian_process", CONDITIONAL, "auto"),
    ("gaussian_process", NUMBERS, "thompson"),
    ("forest", CONDITIONAL, "auto"),
    ("amf", NUMBERS, "auto"),
    ("kernel", CONDITIONAL, "auto"),
]


def value_of(params):
    return (params["x"] - 0.5) ** 2 + 0.1 * params.get("n", 3) + params.get("y", 0.0)


def new_optimizer(surrogate, space, acquisition):
    return MondrianOptimizer(
        space,
        surrogate=surrogate,
        acquisition=acquisition,
        n_startup_trials=2,
        n_candidates=30,
        seed=5,
    )


def ask(optimizer, call):
    """Ask for two trials; an interruption after the last step of asking has no effect either."""
    before = len(optimizer.pending)
    try:
        return call(lambda: optimizer.ask(2))
    except Interrupted:
        return optimizer.pending[before:] or None


def tell(optimizer, params, call):
    before = optimizer.n_trials
    try:
        call(lambda: optimizer.tell(params, [value_of(one) for one in params]))
    except Interrupted:
        return optimizer.n_trials > before or None
    return True


def predict(optimizer, params, call):
    try:
        return call(lambda: optimizer.predict(params))
    except Interrupted:
        return None


def repeat(step, *arguments, calls):
    """Take a step, which interruptions make None, until it is done; return its result."""
    while (result := step(*arguments, next(calls))) is None:
        pass
    return result


def run(optimizer, n_rounds, calls):
    """Return all suggestions and predictions of a search that has two trials running."""
    results = []
    running = repeat(ask, optimizer, calls=calls)
    for _ in range(n_rounds):
        results.append(repeat(ask, optimizer, calls=calls))
        repeat(tell, optimizer, running, calls=calls)
        running = results[-1]
        mean, std = repeat(predict, optimizer, running, calls=calls)
        results += [mean.tolist(), std.tolist()]
        assert len(optimizer.pending) == 2
    return results


def undisturbed():
    while True:
        yield lambda function: function()


def random_events(rng, n_events):
    """Interrupt three of four calls at a random event."""
    while True:
        if rng.random() < 0.25:
            yield lambda function: function()
        else:
            # Early events are as likely as late ones.
            event = int(np.exp(rng.uniform(0.0, np.log(n_events))))
            event = event if rng.random() < 0.5 else int(rng.integers(1, n_events))
            yield lambda function, event=event: interrupt_at(event, function)


@pytest.mark.parametrize(("surrogate", "space", "acquisition"), CASES)
def test_interrupted_calls_change_nothing(surrogate, space, acquisition):
    expected, n_events = count_events(
        lambda: run(new_optimizer(surrogate, space, acquisition), 9, undisturbed())
    )
    calls = random_events(np.random.default_rng(0), n_events // 18)
    found = run(new_optimizer(surrogate, space, acquisition), 9, calls)
    assert found == expected


def test_after_a_restart_of_the_search():
    """Trials of a restarted search are undone with those of the whole."""

    def search(calls):
        optimizer = new_optimizer("gaussian_process", NUMBERS, "auto")
        rng = np.random.default_rng(1)
        results, n_restarted = [], 0
        for i in range(20):
            # Trials at the best point are in vain, and start a search of their own.
            point = {"x": 0.5, "y": 0.0} if i > 8 else {"x": rng.random(), "y": rng.random()}
            point["x"] += 1e-6 * rng.random()
            repeat(tell, optimizer, [point], calls=calls)
            n_restarted += optimizer._search.current is not optimizer._search.whole
        assert n_restarted > 0
        for _ in range(6):
            results.append(repeat(ask, optimizer, calls=calls))
            repeat(tell, optimizer, results[-1], calls=calls)
        return results

    expected = search(undisturbed())
    assert search(random_events(np.random.default_rng(2), 400)) == expected


def test_signals_change_nothing():
    def after(rng):
        while True:
            # Calls must end at times, however slow the machine is.
            yield lambda function: function()
            yield lambda function: interrupt_after(0.03 * rng.random() ** 2, function)

    for surrogate, space, acquisition in CASES[:3]:
        expected = run(new_optimizer(surrogate, space, acquisition), 12, undisturbed())
        calls = after(np.random.default_rng(3))
        assert run(new_optimizer(surrogate, space, acquisition), 12, calls) == expected


def test_an_error_of_an_acquisition_is_no_end():
    class Broken:
        fails = False

        def __call__(self, prediction, incumbent):
            if self.fails:
                raise RuntimeError("broken")
            return prediction.means.mean(axis=0)

    def search(n_failures):
        acquisition = Broken()
        optimizer = new_optimizer("gaussian_process", NUMBERS, acquisition)
        for _ in range(6):
            acquisition.fails = True
            for _ in range(n_failures if optimizer.n_trials > 2 else 0):
                with pytest.raises(RuntimeError, match="broken"):
                    optimizer.ask(3)
            acquisition.fails = False
            batch = optimizer.ask(3)
            optimizer.tell(batch[:2], [value_of(one) for one in batch[:2]])
        return optimizer.pending

    assert search(2) == search(0)


def test_an_interrupted_optimizer_can_be_copied():
    optimizer = new_optimizer("gaussian_process", CONDITIONAL, "auto")
    run(optimizer, 3, undisturbed())
    twin = copy.deepcopy(optimizer)
    with pytest.raises(Interrupted):
        interrupt_at(300, lambda: optimizer.ask(2))
    copies = [pickle.loads(pickle.dumps(optimizer)), copy.deepcopy(optimizer), optimizer]
    gc.collect()
    expected = twin.ask(2)
    assert [one.ask(2) for one in copies] == [expected] * 3


@pytest.mark.parametrize("surrogate", ["gaussian_process", "forest", "amf", "kernel"])
def test_threads_share_an_optimizer(surrogate):
    optimizer = new_optimizer(surrogate, CONDITIONAL, "auto")

    def work(_):
        for _ in range(3):
            params = optimizer.ask()
            optimizer.predict(params) if optimizer.n_trials else None
            optimizer.tell(params, value_of(params))
        return repr(optimizer)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert optimizer.n_trials == 24
    assert optimizer.pending == []
    rows = optimizer._search.trials.rows
    assert len(np.unique(rows, axis=0)) == 24


def test_interrupted_scores_are_undone(monkeypatch):
    rows = np.random.default_rng(0).random((40, 2))

    def new():
        optimizer = new_optimizer("gaussian_process", NUMBERS, "auto")
        optimizer.tell_rows(rows[:20], rows[:20].sum(axis=1))
        optimizer.ask()
        optimizer.tell_rows(rows[20:], rows[20:].sum(axis=1))
        return optimizer

    def learn_and_fail(self, *arguments):
        learn(self, *arguments)
        raise Interrupted

    optimizer, learn = new(), GaussianProcessForestSurrogate.learn
    with monkeypatch.context() as context:
        context.setattr(GaussianProcessForestSurrogate, "learn", learn_and_fail)
        with pytest.raises(Interrupted):
            optimizer.scores()
    assert optimizer.ask() == new().ask()
