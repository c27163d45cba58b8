"""MondrianPruner in studies with a fidelity: trials are compared with those of the same one."""

from __future__ import annotations

import optuna
import pytest
from optuna.distributions import IntDistribution
from optuna.trial import TrialState, create_trial
from studies import make_study, optimize

from mondrian_bo import MondrianPruner, MondrianSampler, best_at_target

FULL = 50


def _by_share(trial: optuna.Trial) -> float:
    """A loss that is smaller with less data, reported ten times."""
    rate, share = trial.suggest_float("rate", 0, 1), trial.suggest_int("n", 2, FULL, log=True)
    value = 1.0
    for epoch in range(10):
        value = (rate - 0.6) ** 2 + 0.5 * share / FULL + 0.6 ** (epoch + 1)
        trial.report(value, epoch)
        if trial.should_prune():
            raise optuna.TrialPruned
    return value


def _by_steps(trial: optuna.Trial) -> float:
    """A loss that rises after some epochs; the fidelity is their number."""
    rate, n_epochs = trial.suggest_float("rate", 0, 1), trial.suggest_int("n", 1, FULL, log=True)
    value = 1.0
    for epoch in range(n_epochs):
        value = (rate - 0.6) ** 2 + (1.0 - 0.3 * rate) ** (epoch + 1) + 0.01 * max(0, epoch - 8)
        trial.report(value, epoch)
        if trial.should_prune():
            raise optuna.TrialPruned
    return value


@pytest.mark.parametrize("objective", [_by_share, _by_steps])
@pytest.mark.parametrize("is_wrapped", [False, True])
def test_full_trials_are_not_compared_with_cheap_ones_that_are_better(
    objective, is_wrapped
) -> None:
    sampler = MondrianSampler(seed=0, fidelity="n")
    if is_wrapped:
        with pytest.warns(optuna.exceptions.ExperimentalWarning):
            sampler = optuna.samplers.PartialFixedSampler({}, sampler)
    study = optimize(make_study(sampler, pruner=MondrianPruner()), objective, 40)
    full = [trial for trial in study.trials if trial.params["n"] == FULL]
    assert study.best_trial.params["n"] < FULL
    n_complete = sum(trial.state == TrialState.COMPLETE for trial in full)
    assert 0.5 * len(full) < n_complete < len(full)
    assert abs(best_at_target(study, "n").params["rate"] - 0.6) < 0.05


def _ended(n: int, state: TrialState = TrialState.COMPLETE, value: float = 1.0):
    return create_trial(
        state=state,
        value=value if state == TrialState.COMPLETE else None,
        params={"n": n},
        distributions={"n": IntDistribution(1, FULL)},
        intermediate_values=dict.fromkeys(range(10), value),
    )


def test_patience_and_first_trials_count_for_each_fidelity() -> None:
    pruner = MondrianPruner(patience=3)
    study = make_study(MondrianSampler(seed=0, fidelity="n"), pruner=pruner)
    study.add_trials([_ended(1, value=0.1 * i) for i in range(10)])
    study.enqueue_trial({"n": FULL})
    trial = study.ask({"n": IntDistribution(1, FULL)})
    step = 0

    def is_pruned() -> bool:
        nonlocal step
        step += 1
        trial.report(20.0, step)
        return trial.should_prune()

    assert not is_pruned()
    study.add_trials([_ended(FULL, value=5.0 + 0.1 * i) for i in range(9)])
    assert is_pruned()
    # Complete cheap trials do not end a row of pruned full ones.
    study.add_trials([_ended(FULL, TrialState.PRUNED), _ended(1)] * 3)
    assert not is_pruned()
    study.add_trial(_ended(FULL, value=5.0))
    assert is_pruned()


def test_a_sampler_says_what_its_fidelity_is() -> None:
    assert MondrianSampler(fidelity={"n": 3}).fidelity_name == "n"
    assert MondrianSampler().fidelity_name is None
