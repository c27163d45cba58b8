"""The adapter between Ax's experiments and :class:`MondrianGenerator`."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from ax.adapter.base import GenResults, gen_arms
from ax.adapter.data_utils import ExperimentData, extract_experiment_data
from ax.adapter.torch import TorchAdapter
from ax.core.arm import Arm
from ax.core.data import Data
from ax.core.experiment import Experiment
from ax.core.generator_run import GeneratorRun, extract_arm_predictions
from ax.core.metric import Metric
from ax.core.observation import ObservationData, ObservationFeatures
from ax.core.optimization_config import OptimizationConfig
from ax.core.outcome_constraint import ComparisonOp, ObjectiveThreshold
from ax.core.search_space import SearchSpace
from ax.core.types import TModelPredictArm
from ax.exceptions.core import DataRequiredError, UnsupportedError
from ax.generators.types import TConfig
from pandas import DataFrame

from mondrian_bo.acquisitions.pareto import non_dominated
from mondrian_bo.integrations.ax.engine import Observation
from mondrian_bo.integrations.ax.generator import MondrianGenerator
from mondrian_bo.integrations.ax.goal import read_goal
from mondrian_bo.integrations.ax.observations import (
    ArmReader,
    Parameters,
    baseline_outcomes,
    failed_arms,
    pending_arms,
    read_experiment_data,
)
from mondrian_bo.integrations.ax.space import TranslatedSpace
from mondrian_bo.shared.array_types import FloatArray

_BEYOND_NADIR = 0.1
"""Distance of inferred thresholds from the Pareto front's worst values, as a share of its range;
BoTorch infers reference points in the same way."""


class MondrianAdapter(TorchAdapter):
    """Adapter that passes parameterizations to the generator without transforming them.

    Ax before 1.0 calls adapters model bridges. It adds no transforms to those of every adapter: the
    optimizer encodes parameters and transforms outcomes itself, and its encoding does not depend on
    data. Relative constraints refer to the observed outcomes of the status quo.
    """

    generator: MondrianGenerator
    _n_trials = 0
    _n_generated = 0
    _baseline: dict[str, float]
    _fixed: dict[str, Any]
    _learnt: Data | None = None
    """The data of the latest update; None if there was none since the adapter was created."""
    _has_frames = True
    """Whether Ax's frames of the latest data exist."""
    _optimization_config: OptimizationConfig | None
    _experiment_config: OptimizationConfig | None = None
    """The experiment's optimization config at the latest fit."""

    @cached_property
    def _reader(self) -> ArmReader:
        return ArmReader()

    def _process_and_transform_data(
        self, experiment: Experiment, data: Data | None = None
    ) -> tuple[ExperimentData, SearchSpace]:
        """Store new data without building their frames, which `_make_frames` does on demand.

        Building, copying and transforming frames of all trials would take half of the time of a
        trial; suggestions and predictions do not need them. The experiment's optimization config
        is read again, because it may have changed.
        """
        if self._optimization_config is self._experiment_config:
            self._optimization_config = experiment.optimization_config
        self._learnt = experiment.lookup_data() if data is None else data
        self._has_frames = (
            self._search_space != experiment.search_space or experiment.status_quo is not None
        )
        if self._has_frames:
            made: tuple[ExperimentData, SearchSpace] = super()._process_and_transform_data(
                experiment, data
            )
            return made
        return ExperimentData(DataFrame(), DataFrame()), self._model_space

    def _make_frames(self) -> None:
        """Build Ax's frames of the latest data, unless they exist."""
        if self._has_frames:
            return
        self._has_frames = True
        frames = extract_experiment_data(
            experiment=self._experiment,
            data_loader_config=self._data_loader_config,
            data=self._learnt,
        )
        self._set_and_filter_training_data(frames, self._model_space)

    def get_training_data(self, filter_in_design: bool = False) -> ExperimentData:
        """Return a copy of the training data; see the base class."""
        self._make_frames()
        return super().get_training_data(filter_in_design)

    @property
    def training_in_design(self) -> list[bool]:
        """Whether each row of the training data lies in the search space."""
        self._make_frames()
        in_design: list[bool] = super().training_in_design
        return in_design

    def _fit(
        self, search_space: SearchSpace, experiment_data: ExperimentData, **kwargs: Any
    ) -> None:
        observations: Mapping[Hashable, Observation]
        parameters: Mapping[Hashable, Parameters]
        if self._learnt is None:
            observations, parameters = read_experiment_data(self._experiment, experiment_data)
        else:
            observations = self._reader.read(self._experiment, self._learnt)
            parameters = self._reader.parameters
        metrics = {metric for seen in observations.values() for metric in seen.outcomes}
        if not self._has_frames:
            # Ax's property `metric_signatures` returns it.
            self._metric_signatures = metrics
        if self._fit_tracking_metrics:
            self.outcomes = sorted(metrics)
        self.parameters = list(self._search_space.parameters)
        config = self._optimization_config
        self._experiment_config = self._experiment.optimization_config
        self._baseline = baseline_outcomes(self._experiment, observations)
        self.generator.fit(
            TranslatedSpace(self._search_space),
            None if config is None else read_goal(config, self._baseline),
            observations,
            parameters,
            failed_arms(self._experiment),
        )

    def gen(
        self,
        n: int,
        search_space: SearchSpace | None = None,
        optimization_config: OptimizationConfig | None = None,
        pending_observations: dict[str, list[ObservationFeatures]] | None = None,
        fixed_features: ObservationFeatures | None = None,
        model_gen_options: TConfig | None = None,
    ) -> GeneratorRun:
        """Generate arms; see the base class."""
        # Transforms would add values to fixed features of spaces with dependent parameters.
        space = self._search_space if search_space is None else search_space
        features = space.get_disabled_parameter_fixed_features(fixed_features)
        self._fixed = {} if features is None else dict(features.parameters)
        if self._fixed:
            # Ax computes the derived parameters of fixed features, and fails without their inputs.
            TranslatedSpace(space).check_derived(self._fixed)
        return super().gen(
            n=n,
            search_space=search_space,
            optimization_config=optimization_config,
            pending_observations=pending_observations,
            fixed_features=fixed_features,
            model_gen_options=model_gen_options,
        )

    def _gen(
        self,
        n: int,
        search_space: SearchSpace,
        pending_observations: dict[str, list[ObservationFeatures]],
        fixed_features: ObservationFeatures | None,
        model_gen_options: TConfig | None = None,
        optimization_config: OptimizationConfig | None = None,
    ) -> GenResults:
        if len(self._experiment.trials) != self._n_trials:
            self._n_trials, self._n_generated = len(self._experiment.trials), 0
        known = search_space == self._search_space
        space = self.generator.space if known else TranslatedSpace(search_space)
        arms = self.generator.gen(
            n,
            pending_arms(pending_observations, self._experiment),
            self._n_trials + self._n_generated,
            space.restricted(self._fixed),
            None if optimization_config is None else read_goal(optimization_config, self._baseline),
        )
        arms = [space.with_fixed(arm, self._fixed) for arm in arms]
        self._n_generated += n
        best = self.generator.best_point()
        return GenResults(
            observation_features=[ObservationFeatures(parameters=arm) for arm in arms],
            weights=[1.0] * n,
            best_observation_features=None if best is None else ObservationFeatures(best),
        )

    def _predict(
        self,
        observation_features: list[ObservationFeatures],
        use_posterior_predictive: bool = False,
    ) -> list[ObservationData]:
        mean, variance = self.generator.predict(
            [one.parameters for one in observation_features], self.outcomes
        )
        return self._observation_data(mean, variance)

    def _cross_validate(
        self,
        search_space: SearchSpace,
        cv_training_data: ExperimentData,
        cv_test_points: list[ObservationFeatures],
        use_posterior_predictive: bool = False,
    ) -> list[ObservationData]:
        observations, parameters = read_experiment_data(self._experiment, cv_training_data)
        mean, variance = self.generator.cross_validate(
            observations, parameters, [one.parameters for one in cv_test_points], self.outcomes
        )
        return self._observation_data(mean, variance)

    def model_best_point(
        self,
        search_space: SearchSpace | None = None,
        optimization_config: OptimizationConfig | None = None,
        pending_observations: dict[str, list[ObservationFeatures]] | None = None,
        fixed_features: ObservationFeatures | None = None,
        model_gen_options: TConfig | None = None,
    ) -> tuple[Arm, TModelPredictArm | None] | None:
        """Return the observed arm with the best predicted objective, and its predictions."""
        best = self.generator.best_point()
        if best is None:
            return None
        features = ObservationFeatures(best)
        arms, _ = gen_arms([features], self._arms_by_signature)
        return arms[0], extract_arm_predictions(self.predict([features]), arm_idx=0)

    def infer_objective_thresholds(
        self,
        search_space: SearchSpace | None = None,
        optimization_config: OptimizationConfig | None = None,
        fixed_features: ObservationFeatures | None = None,
    ) -> list[ObjectiveThreshold]:
        """Infer thresholds of several objectives from the predicted Pareto front of the arms.

        Each is worse than the front's worst value by a tenth of the front's range.

        Raises
        ------
        ax.exceptions.core.UnsupportedError
            If there is only one objective, or an objective is scalarized.
        ax.exceptions.core.DataRequiredError
            If there are no data.
        """
        config = optimization_config or self._optimization_config
        if config is None or not config.is_moo_problem:
            raise UnsupportedError("Thresholds need several objectives.")
        objectives = read_goal(config, self._baseline).objectives
        if any(len(expression) != 1 for expression, _ in objectives):
            raise UnsupportedError("Thresholds of scalarized objectives are not inferred.")
        data = self.get_training_data(filter_in_design=True)
        _, parameters = read_experiment_data(self._experiment, data)
        if not parameters:
            raise DataRequiredError("There are no observations to infer thresholds from.")
        signs = np.array([sign for _, sign in objectives])
        metrics = [expression[0][0] for expression, _ in objectives]
        mean, _ = self.generator.predict(list(parameters.values()), metrics)
        values = mean * signs
        front = values[non_dominated(values)]
        worst, best = front.min(axis=0), front.max(axis=0)
        bounds = (worst - _BEYOND_NADIR * (best - worst)) * signs
        return [
            ObjectiveThreshold(
                metric=self._metric(metric),
                bound=float(bound),
                relative=False,
                op=ComparisonOp.GEQ if sign > 0 else ComparisonOp.LEQ,
            )
            for metric, bound, sign in zip(metrics, bounds, signs, strict=True)
        ]

    def _metric(self, signature: str) -> Metric:
        """Return the experiment's metric with a signature."""
        return next(m for m in self._experiment.metrics.values() if m.signature == signature)

    def _observation_data(self, mean: FloatArray, variance: FloatArray) -> list[ObservationData]:
        """Return predictions of all outcomes, both of shape (m, k), as Ax's observations."""
        return [
            ObservationData(list(self.outcomes), means, np.diag(variances))
            for means, variances in zip(mean, variance, strict=True)
        ]
