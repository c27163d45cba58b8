"""A cluster of Ray on this machine: Ray Tune with the sampler, and the trees of an estimator."""

from __future__ import annotations

import pytest
from joblib_backends import check_same_forest
from optuna.trial import TrialState

from mondrian_bo import MondrianSampler

N_TRIALS = 16
"""The last six are suggestions of the surrogate."""


def space(trial):
    trial.suggest_float("x", -1.0, 1.0)
    if trial.suggest_categorical("kind", ["plain", "shifted"]) == "shifted":
        trial.suggest_float("shift", 1e-3, 1.0, log=True)


@pytest.fixture(scope="module")
def cluster():
    """A cluster of two workers, and its module."""
    ray = pytest.importorskip("ray", reason="needs Ray: pip install 'mondrian-bo[ray]'")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        ray.init(num_cpus=2, include_dashboard=False)
        yield ray
        ray.shutdown()


def test_trees_on_the_workers_are_the_same_forest(cluster):
    from ray.util.joblib import register_ray

    register_ray()
    check_same_forest("ray")


def test_ray_tune(cluster, tmp_path):
    from ray import tune
    from ray.tune.search import ConcurrencyLimiter
    from ray.tune.search.optuna import OptunaSearch

    # Workers of Ray cannot import test modules: a local function travels by value.
    def objective(config):
        return {"loss": (config["x"] - 0.3) ** 2 + config.get("shift", 0.1)}

    search = OptunaSearch(space, metric="loss", mode="min", sampler=MondrianSampler(seed=0))
    tuner = tune.Tuner(
        objective,
        tune_config=tune.TuneConfig(
            search_alg=ConcurrencyLimiter(search, max_concurrent=2), num_samples=N_TRIALS
        ),
        run_config=tune.RunConfig(storage_path=str(tmp_path), verbose=0),
    )
    results = tuner.fit()
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
