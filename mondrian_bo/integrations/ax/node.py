"""The candidate route: a generation node that asks the optimizer without an adapter."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from ax.core.arm import Arm
from ax.core.data import Data
from ax.core.experiment import Experiment
from ax.core.experiment_status import ExperimentStatus
from ax.core.generator_run import GeneratorRun
from ax.core.observation import ObservationFeatures
from ax.core.types import TParameterization
from ax.exceptions.core import UnsupportedError
from ax.generation_strategy.external_generation_node import ExternalGenerationNode
from ax.generation_strategy.transition_criterion import TransitionCriterion
from ax.storage.json_store.decoder import object_from_json
from ax.storage.json_store.registry import CORE_CLASS_DECODER_REGISTRY, CORE_DECODER_REGISTRY

from mondrian_bo.integrations.ax.engine import Engine, check_seed
from mondrian_bo.integrations.ax.goal import read_goal
from mondrian_bo.integrations.ax.observations import (
    ArmReader,
    baseline_outcomes,
    failed_arms,
    pending_arms,
)
from mondrian_bo.integrations.ax.space import TranslatedSpace


class MondrianGenerationNode(ExternalGenerationNode):
    """Generation node that searches with :class:`mondrian_bo.MondrianOptimizer`.

    It has less overhead than :class:`MondrianGenerator` and the same suggestions, but does not
    predict: ``Client.predict``, model plots and cross-validation need the generator.

    Parameters
    ----------
    seed, settings
        See :class:`MondrianGenerator`.
    name : str, default="Mondrian"
        Name of the node.
    suggested_experiment_status : ExperimentStatus, optional
        Status of the experiment while this node suggests; by default optimisation.
    should_deduplicate : bool, default=False
        Whether Ax rejects arms that it has seen. The optimizer suggests such arms only when
        nothing else is left; if they are rejected, Ax falls back to Sobol points.
    transition_criteria : sequence of TransitionCriterion, optional
        Criteria for another node to take over.

    Raises
    ------
    ValueError, TypeError
        If the seed or the settings are not what the optimizer takes.
    """

    def __init__(
        self,
        seed: int | None = None,
        settings: Mapping[str, Any] | None = None,
        name: str = "Mondrian",
        suggested_experiment_status: ExperimentStatus | None = ExperimentStatus.OPTIMIZATION,
        should_deduplicate: bool = False,
        transition_criteria: Sequence[TransitionCriterion] | None = None,
    ) -> None:
        started = time.monotonic()
        super().__init__(
            name=name,
            suggested_experiment_status=suggested_experiment_status,
            should_deduplicate=should_deduplicate,
            transition_criteria=transition_criteria,
        )
        self.seed = check_seed(seed)
        self.settings: dict[str, Any] = dict(settings or {})
        self._engine = Engine(seed, self.settings)
        self._reader = ArmReader()
        self._fixed: Mapping[str, Any] = {}
        self._n_trials = 0
        self._n_generated = 0
        self.fit_time_since_gen = time.monotonic() - started

    @classmethod
    def serialize_init_args(cls, obj: Any) -> dict[str, Any]:
        """Return the arguments that create an equal node."""
        return {
            "seed": obj.seed,
            "settings": obj.settings,
            "name": obj.name,
            "suggested_experiment_status": obj.suggested_experiment_status,
            "should_deduplicate": obj.should_deduplicate,
            "transition_criteria": list(obj.transition_criteria),
        }

    @classmethod
    def deserialize_init_args(
        cls,
        args: dict[str, Any],
        decoder_registry: Any = CORE_DECODER_REGISTRY,
        class_decoder_registry: Any = CORE_CLASS_DECODER_REGISTRY,
    ) -> dict[str, Any]:
        """Decode the arguments of `serialize_init_args`."""
        return {
            name: object_from_json(
                value,
                decoder_registry=decoder_registry,
                class_decoder_registry=class_decoder_registry,
            )
            for name, value in args.items()
        }

    def update_generator_state(self, experiment: Experiment, data: Data) -> None:
        """Learn the new observations of the experiment."""
        observations = self._reader.read(experiment, data)
        config = experiment.optimization_config
        baseline = baseline_outcomes(experiment, observations)
        self._engine.update(
            TranslatedSpace(experiment.search_space),
            None if config is None else read_goal(config, baseline),
            observations,
            self._reader.parameters,
            failed_arms(experiment),
        )
        if len(experiment.trials) != self._n_trials:
            self._n_trials = len(experiment.trials)
            self._n_generated = 0

    def get_next_candidate(self, pending_parameters: list[TParameterization]) -> TParameterization:
        """Suggest an arm; pending ones are imputed with values drawn from the model."""
        space = self._engine.space
        if space is None:
            raise UnsupportedError("The node must be updated before it can suggest.")
        pending = [space.encode(parameters) for parameters in pending_parameters]
        index = self._n_trials + self._n_generated
        self._n_generated += 1
        within = space.restricted(self._fixed)
        arm = space.decode(self._engine.suggest(pending, index, within))
        return space.with_fixed(arm, self._fixed)

    def _gen(
        self,
        experiment: Experiment,
        data: Data | None = None,
        n: int | None = None,
        pending_observations: dict[str, list[ObservationFeatures]] | None = None,
        fixed_features: ObservationFeatures | None = None,
        **generator_gen_kwargs: Any,
    ) -> GeneratorRun:
        """Generate arms like the base class, with fixed features."""
        if self._generator_spec_to_gen_from is not None:
            # Ax has fallen back to another generator.
            return super()._gen(
                experiment=experiment,
                data=data,
                n=n,
                pending_observations=pending_observations,
                fixed_features=fixed_features,
                **generator_gen_kwargs,
            )
        started = time.monotonic()
        features = experiment.search_space.get_disabled_parameter_fixed_features(fixed_features)
        self._fixed = {} if features is None else features.parameters
        pending = [dict(one) for one in pending_arms(pending_observations, experiment)]
        arms = []
        for _ in range(1 if n is None else n):
            candidate = self.get_next_candidate(pending)
            pending.append(candidate)
            arms.append(Arm(parameters=candidate))
        run = GeneratorRun(
            arms=arms,
            fit_time=self.fit_time_since_gen,
            gen_time=time.monotonic() - started,
            generator_key=self.name,
        )
        self.fit_time_since_gen = 0.0
        return run
