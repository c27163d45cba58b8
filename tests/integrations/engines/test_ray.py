"""Ray Tune with the sampler: a conditional space on a cluster of this machine."""

from __future__ import annotations

import pytest
from optuna.trial import TrialState

from mondrian_bo import MondrianSampler

N_TRIALS = 16
"""The last six are suggestions of the surrogate."""


def space(trial):
    trial.suggest_float("x", -1.0, 1.0)
    if trial.suggest_categorical("kind", ["plain", "shifted"]) == "shifted":
        trial.suggest_float("shift", 1e-3, 1.0, log=True)


def test_ray_tune(tmp_path, monkeypatch):
    reason = "needs Ray: pip install 'mondrian-bo[ray]'"
    ray = pytest.importorskip("ray", reason=reason)
    tune = pytest.importorskip("ray.tune", reason=reason)
    from ray.tune.search import ConcurrencyLimiter
    from ray.tune.search.optuna import OptunaSearch

    # Workers of Ray cannot import test modules: a local function travels by value.
    def objective(config):
        return {"loss": (config["x"] - 0.3) ** 2 + config.get("shift", 0.1)}

    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    search = OptunaSearch(space, metric="loss", mode="min", sampler=MondrianSampler(seed=0))
    ray.init(num_cpus=2, include_dashboard=False)
    try:
        tuner = tune.Tuner(
            objective,
            tune_config=tune.TuneConfig(
                search_alg=ConcurrencyLimiter(search, max_concurrent=2), num_samples=N_TRIALS
            ),
            run_config=tune.RunConfig(storage_path=str(tmp_path), verbose=0),
        )
        results = tuner.fit()
    finally:
        ray.shutdown()
    assert results.num_errors == 0
    configs = [result.config for result in results]
    assert len({tuple(sorted(config.items())) for config in configs}) == N_TRIALS
    assert all(("shift" in config) == (config["kind"] == "shifted") for config in configs)
    trials = search._ot_study.trials
    assert [trial.state for trial in trials] == [TrialState.COMPLETE] * N_TRIALS
    # The values that Ray reports reach the study, so the surrogate knows the minimum.
    assert min(trial.value for trial in trials[10:]) < min(trial.value for trial in trials[:10])
    by_params = {tuple(sorted(trial.params.items())): trial.value for trial in trials}
    for result in results:
        assert result.metrics["loss"] == by_params[tuple(sorted(result.config.items()))]
