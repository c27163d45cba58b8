"""What makes the searches of an optimizer: plain ones, with a fidelity or earlier studies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from mondrian_bo.optimizer.search.search_factory import SearchFactory, SearchParts

if TYPE_CHECKING:
    from mondrian_bo.optimizer.earlier_studies.earlier_trials import EarlierTrials
    from mondrian_bo.optimizer.fidelities.cost_model import CostModel
    from mondrian_bo.optimizer.fidelities.fidelity import Fidelity, FidelityChoice
    from mondrian_bo.search_space import SearchSpace


def new_fidelity(space: SearchSpace, choice: FidelityChoice) -> tuple[Fidelity, CostModel]:
    """Return a fidelity, one parameter of a space, and the model of its costs."""
    # Loaded here: few searches have a fidelity.
    from mondrian_bo.optimizer.fidelities.cost_model import CostModel
    from mondrian_bo.optimizer.fidelities.fidelity import Fidelity

    fidelity = Fidelity(space, choice)
    return fidelity, CostModel(fidelity, space.n_choices)


def new_factory(
    parts: SearchParts,
    fidelity: tuple[Fidelity, CostModel] | None,
    earlier: Sequence[EarlierTrials],
    sequence: np.random.SeedSequence,
) -> SearchFactory:
    """Return what makes searches.

    Parameters
    ----------
    parts : SearchParts
        What all searches have in common.
    fidelity : tuple of Fidelity and CostModel, or None
        The fidelity and its costs, if there is one.
    earlier : sequence of EarlierTrials
        Earlier studies, larger values are better; none with a fidelity.
    sequence : numpy.random.SeedSequence
        Spawns the seed of earlier studies.

    Returns
    -------
    SearchFactory
        The factory.
    """
    # Loaded here: few searches have a fidelity or earlier studies.
    if fidelity is not None:
        from mondrian_bo.optimizer.fidelities.fidelity_search import FidelitySearchFactory

        return FidelitySearchFactory(parts, *fidelity)
    if not earlier:
        return SearchFactory(parts)
    from mondrian_bo.optimizer.earlier_studies.warm_search import WarmSearchFactory

    (earlier_seed,) = sequence.spawn(1)
    return WarmSearchFactory(parts, list(earlier), earlier_seed)
