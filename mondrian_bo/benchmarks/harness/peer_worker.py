"""A script that runs HEBO or SMAC, for the interpreter that has it.

It runs in another environment and imports nothing of this package. Each line of standard input is a
JSON object with ``task`` and its arguments. The task ``start`` begins a new run of ``library``, a
key of `STUDIES`; any other task is the name of a method of that study. The script answers with one
line of JSON: the method's result.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from contextlib import redirect_stdout
from math import isfinite
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any


class HeboStudy:
    """A run of HEBO on a space.

    Parameters
    ----------
    parameters : list of dict
        What HEBO's design space parses.
    seed : int
        Seed of the first points, which are a Sobol sequence, and of numpy and torch.
    n_trials : int
        Length of the run, which HEBO does not use.
    """

    def __init__(self, parameters: list[dict[str, Any]], seed: int, n_trials: int) -> None:
        import numpy as np
        import torch  # type: ignore[import-not-found,unused-ignore]
        from hebo.design_space.design_space import (  # type: ignore[import-not-found,unused-ignore]
            DesignSpace,
        )
        from hebo.optimizers.hebo import HEBO  # type: ignore[import-not-found,unused-ignore]

        np.random.seed(seed)  # noqa: NPY002, HEBO draws from this stream
        torch.manual_seed(seed)
        self._optimizer = HEBO(DesignSpace().parse(parameters), scramble_seed=seed)
        self._rows: list[Any] = []

    def suggest(self, n: int) -> list[dict[str, Any]]:
        """Return `n` suggestions; they are numbered in the order of all suggestions, from 0."""
        frame = self._optimizer.suggest(n)
        self._rows += [frame.iloc[[i]] for i in range(len(frame))]
        return [_plain(row) for row in frame.to_dict("records")]

    def observe(self, number: int, value: float) -> None:
        """Report the value of a suggestion. HEBO ignores values that are not finite."""
        import numpy as np

        self._optimizer.observe(self._rows[number], np.array([[value]]))


class SmacStudy:
    """A run of a facade of SMAC with its defaults on a space.

    Parameters
    ----------
    parameters : list of dict
        ``name`` and either ``n_choices`` or ``low``, ``high``, ``log`` and ``is_integer``. Where
        ``parent`` and ``values`` are present, the parameter exists for these values of its parent.
        The values of a parameter with choices are their positions.
    seed : int
        Seed of the scenario and of the space.
    n_trials : int
        Length of the run. SMAC starts with a design of at most a quarter of it.
    facade : str, default="HyperparameterOptimizationFacade"
        Name of SMAC's class, which chooses the model.
    **settings : object
        Further arguments of SMAC's scenario.
    """

    def __init__(
        self,
        parameters: list[dict[str, Any]],
        seed: int,
        n_trials: int,
        facade: str = "HyperparameterOptimizationFacade",
        **settings: object,
    ) -> None:
        import smac  # type: ignore[import-not-found,unused-ignore]

        # SMAC writes the scenario to a file.
        self._directory = TemporaryDirectory()
        scenario = smac.Scenario(
            _configuration_space(parameters, seed),
            deterministic=True,
            seed=seed,
            n_trials=n_trials,
            output_directory=Path(self._directory.name),
            **settings,
        )
        self._optimizer = getattr(smac, facade)(scenario, logging_level=False)
        self._trials: list[Any] = []
        self._largest = -float("inf")

    def suggest(self, n: int) -> list[Any]:
        """Return `n` suggestions, or fewer if SMAC has no further configuration.

        They are numbered in the order of all suggestions, from 0.
        """
        from smac.main.exceptions import (  # type: ignore[import-not-found,unused-ignore]
            ConfigurationSpaceExhaustedException,
        )

        suggestions = []
        for _ in range(n):
            try:
                self._trials.append(self._optimizer.ask())
            except (ConfigurationSpaceExhaustedException, StopIteration):
                break
            suggestions.append(self._answer(self._trials[-1]))
        return suggestions

    def observe(self, number: int, value: float) -> None:
        """Report the value of a suggestion.

        A value that is not finite is a crash, with the largest cost so far: SMAC's forest cannot
        learn its default, infinity.
        """
        from smac.runhistory import (  # type: ignore[import-not-found,unused-ignore]
            StatusType,
            TrialValue,
        )

        if isfinite(value):
            self._largest = max(self._largest, value)
            told = TrialValue(cost=value)
        else:
            cost = self._largest if isfinite(self._largest) else _FIRST_CRASH
            told = TrialValue(cost=cost, status=StatusType.CRASHED)
        self._optimizer.tell(self._trials[number], told, save=False)

    def _answer(self, trial: Any) -> Any:
        return _plain(dict(trial.config))


class SmacHyperbandStudy(SmacStudy):
    """A run of SMAC's `MultiFidelityFacade`, which is Hyperband, with its defaults.

    A suggestion is a pair of parameters and number of steps.

    Parameters
    ----------
    parameters : list of dict
        As of :class:`SmacStudy`.
    seed : int
        Seed of the scenario and of the space.
    n_steps : int
        Steps of a complete training. The smallest budget is one step.
    n_complete : float
        Length of the run in complete trainings. SMAC's own function turns it into trials.
    """

    def __init__(
        self, parameters: list[dict[str, Any]], seed: int, n_steps: int, n_complete: float
    ) -> None:
        from smac.intensifier.hyperband_utils import (  # type: ignore[import-not-found,unused-ignore]
            get_n_trials_for_hyperband_multifidelity,
        )

        n_trials = get_n_trials_for_hyperband_multifidelity(
            n_complete * n_steps, min_budget=1, max_budget=n_steps, print_summary=False
        )
        super().__init__(
            parameters, seed, n_trials, "MultiFidelityFacade", min_budget=1, max_budget=n_steps
        )

    def _answer(self, trial: Any) -> Any:
        # Rounded up to whole steps, as in SMAC's own example.
        return super()._answer(trial), int(-(-trial.budget // 1))


_FIRST_CRASH = 1e10
"""Cost of a crash before any finite value: larger than the values of the benchmarks."""

STUDIES = {"hebo": HeboStudy, "smac": SmacStudy, "smac_hyperband": SmacHyperbandStudy}
"""The runs by the names of their libraries."""


def _configuration_space(parameters: list[dict[str, Any]], seed: int) -> Any:
    from ConfigSpace import (  # type: ignore[import-not-found,unused-ignore]
        Categorical,
        ConfigurationSpace,
        Float,
        InCondition,
        Integer,
    )

    space = ConfigurationSpace(seed=seed)
    for one in parameters:
        if "n_choices" in one:
            space.add(Categorical(one["name"], list(range(one["n_choices"]))))
        else:
            kind = Integer if one["is_integer"] else Float
            space.add(kind(one["name"], (one["low"], one["high"]), log=one["log"]))
    space.add(
        [
            InCondition(space[one["name"]], space[one["parent"]], one["values"])
            for one in parameters
            if "parent" in one
        ]
    )
    return space


def _plain(params: dict[str, Any]) -> dict[str, Any]:
    """Return parameters with Python's numbers for numpy's, which JSON does not have."""
    return {
        name: getattr(value, "item", lambda value=value: value)() for name, value in params.items()
    }


def main() -> None:
    """Answer requests until standard input ends."""
    answers = sys.stdout
    study: Any = None
    # SMAC's forest asks for threads of all cores.
    os.environ["LOKY_MAX_CPU_COUNT"] = "1"
    logging.disable(logging.WARNING)
    # HEBO and pymoo print notices.
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):
        for line in sys.stdin:
            arguments = json.loads(line)
            task, result = arguments.pop("task"), None
            if task == "start":
                study = STUDIES[arguments.pop("library")](**arguments)
            else:
                result = getattr(study, task)(**arguments)
            print(json.dumps(result), file=answers, flush=True)


if __name__ == "__main__":
    main()
