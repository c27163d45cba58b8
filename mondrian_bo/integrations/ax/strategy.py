"""Generation strategies for ``Client.set_generation_strategy``."""

from __future__ import annotations

from typing import Any, Literal

from ax.adapter.registry import Generators
from ax.core.experiment_status import ExperimentStatus
from ax.core.trial_status import TrialStatus
from ax.generation_strategy.center_generation_node import CenterGenerationNode
from ax.generation_strategy.generation_node import GenerationNode
from ax.generation_strategy.generation_strategy import GenerationStrategy
from ax.generation_strategy.generator_spec import GeneratorSpec
from ax.generation_strategy.transition_criterion import MinTrials

from mondrian_bo.integrations.ax.engine import check_seed
from mondrian_bo.integrations.ax.node import MondrianGenerationNode
from mondrian_bo.integrations.ax.registry import MondrianGenerators
from mondrian_bo.shared.argument_checks import check_flag, is_integer

_NAME = "Mondrian"
"""Name of the search node; Ax saves it with generator runs."""


def mondrian_generation_strategy(
    seed: int | None = None,
    *,
    initialization: Literal["sobol", "center", "none"] = "sobol",
    initialization_budget: int = 10,
    predictive: bool = True,
    **settings: Any,
) -> GenerationStrategy:
    """Return a generation strategy that searches with :class:`mondrian_bo.MondrianOptimizer`.

    Parameters
    ----------
    seed : int or None, default=None
        Seed of all randomness; None takes entropy from the system.
    initialization : {"sobol", "center", "none"}, default="sobol"
        Source of the first trials: Ax's Sobol generator; the centre of the space, then Sobol; or
        the optimizer itself, which starts with its own quasi-random sequence.
    initialization_budget : int, default=10
        Number of first trials, including attached ones. At least half of them must be complete
        before the optimizer takes over.
    predictive : bool, default=True
        Whether the strategy predicts: ``Client.predict``, model plots, cross-validation and
        model-based best points. If not, suggestions are the same and faster, with two exceptions.
        They differ after the start-up trials with ``initialization="none"`` and more than one
        start-up trial. With several objectives they differ slightly: Ax predicts the outcomes of
        each suggestion, so the model is fitted at other moments.
    **settings
        Further arguments of :class:`mondrian_bo.MondrianOptimizer`: ``surrogate``, ``acquisition``,
        ``n_estimators``, ``n_candidates`` and ``n_startup_trials``, which is 1 by default unless
        `initialization` is "none".

    Returns
    -------
    ax.generation_strategy.generation_strategy.GenerationStrategy
        The strategy, for ``Client.set_generation_strategy``.

    Raises
    ------
    ValueError, TypeError
        If an argument is not as described.

    Examples
    --------
    >>> from ax.api.client import Client
    >>> from mondrian_bo.integrations.ax import mondrian_generation_strategy
    >>> client = Client()
    >>> client.set_generation_strategy(mondrian_generation_strategy(seed=0))
    """
    if initialization not in ("sobol", "center", "none"):
        raise ValueError(
            f"`initialization` must be 'sobol', 'center' or 'none', got {initialization!r}."
        )
    budget = initialization_budget
    if not is_integer(budget) or budget < 1:
        raise ValueError(
            f"`initialization_budget` must be a positive integer, got {initialization_budget!r}."
        )
    check_flag("predictive", predictive)
    seed = check_seed(seed)
    if initialization != "none":
        settings.setdefault("n_startup_trials", 1)
    nodes: list[GenerationNode] = [_search_node(seed, predictive, settings)]
    if initialization != "none":
        nodes.insert(0, _sobol_node(seed, int(budget)))
    if initialization == "center":
        nodes.insert(
            0,
            CenterGenerationNode(
                next_node_name=nodes[0].name, use_existing_trials_for_initialization=True
            ),
        )
    return GenerationStrategy(name="+".join(node.name for node in nodes), nodes=nodes)


def _search_node(seed: int | None, predictive: bool, settings: dict[str, Any]) -> GenerationNode:
    """Return the node that searches, by the predictive or by the candidate route."""
    node = MondrianGenerationNode(seed=seed, settings=settings, name=_NAME)
    if not predictive:
        return node
    # The candidate node has checked the settings; Ax would do so at the first trial only.
    spec = GeneratorSpec(
        generator_enum=MondrianGenerators.MONDRIAN,
        generator_kwargs={"seed": seed, "settings": settings},
    )
    return GenerationNode(
        name=_NAME,
        generator_specs=[spec],
        should_deduplicate=False,
        suggested_experiment_status=ExperimentStatus.OPTIMIZATION,
    )


def _sobol_node(seed: int | None, budget: int) -> GenerationNode:
    """Return the node of first trials: so many, half of which must be complete."""
    return GenerationNode(
        name="Sobol",
        generator_specs=[
            GeneratorSpec(generator_enum=Generators.SOBOL, generator_kwargs={"seed": seed})
        ],
        transition_criteria=[
            MinTrials(
                threshold=budget,
                transition_to=_NAME,
                use_all_trials_in_exp=True,
                not_in_statuses=[TrialStatus.FAILED, TrialStatus.ABANDONED],
            ),
            MinTrials(
                threshold=max(1, budget // 2),
                transition_to=_NAME,
                use_all_trials_in_exp=True,
                only_in_statuses=[TrialStatus.COMPLETED, TrialStatus.EARLY_STOPPED],
                count_only_trials_with_data=True,
            ),
        ],
        should_deduplicate=True,
        suggested_experiment_status=ExperimentStatus.INITIALIZATION,
    )
