"""MondrianPruner in studies with a fidelity: trials are compared with those of the same one."""

from __future__ import annotations

import optuna
import pytest
from optuna.distributions import FloatDistribution, IntDistribution
from optuna.trial import TrialState, create_trial
from studies import make_study, optimize

from mondrian_bo import MondrianPruner, MondrianSampler, best_at_target
from mondrian_bo.integrations.optuna.plots.history import curves_data

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


@pytest.mark.parametrize("is_wrapped", [False, True])
def test_pruned_trials_are_predicted_from_trials_of_their_fidelity(is_wrapped) -> None:
    """Cheap curves go down to their ends, full ones stay: the sampler and the plot know it."""

    def add(n: int, level: float, n_steps: int, state=TrialState.COMPLETE) -> None:
        fall = 0.3 if n == 1 else 0.0
        reports = {step: level - fall * step / 9 for step in range(n_steps)}
        study.add_trial(
            create_trial(
                state=state,
                value=level - fall if state == TrialState.COMPLETE else None,
                params={"n": n, "x": level},
                distributions={"n": IntDistribution(1, FULL), "x": FloatDistribution(0, 2)},
                intermediate_values=reports,
            )
        )

    sampler = own = MondrianSampler(seed=0, fidelity="n")
    if is_wrapped:
        with pytest.warns(optuna.exceptions.ExperimentalWarning):
            sampler = optuna.samplers.PartialFixedSampler({}, own)
    study = make_study(sampler)
    for i in range(18):
        add(1, 0.1 + 0.05 * i, 10)
    for n_full in range(6):
        add(FULL, 0.3 + 0.08 * n_full, 10)
        if n_full in (1, 5):
            add(FULL, 0.5, 3, TrialState.PRUNED)
    early, late = [
        one.outcomes[0] for one in own.read_model(study).reader.finished if one.error > 0.0
    ]
    # Two full trials are too few, and all complete ones are taken.
    assert early < 0.4
    assert late == pytest.approx(0.5, abs=0.01)
    ends = [curve.end for curve in curves_data(study).curves if curve.kind == "pruned"]
    assert [end[1] for end in ends] == pytest.approx([late, late])
    memory = own._memory_of(study, "suggesting")
    memory.reader.read(study)
    assert [one.outcomes[0] for one in memory.reader.finished if one.error] == [early, late]


def test_a_sampler_says_what_its_fidelity_is() -> None:
    assert MondrianSampler(fidelity={"n": 3}).fidelity == {"n": 3}
    assert MondrianSampler().fidelity is None
