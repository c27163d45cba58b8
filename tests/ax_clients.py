"""Ax clients for tests: quiet, with the fast surrogate, and problems that several files share."""

from __future__ import annotations

import logging
import math

from ax.api.client import Client
from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig

from mondrian_bo.integrations.ax import mondrian_generation_strategy
from mondrian_bo.integrations.ax.engine import Engine

for _name in list(logging.root.manager.loggerDict):
    if _name.startswith("ax"):
        logging.getLogger(_name).setLevel(logging.CRITICAL)

SQUARE = [RangeParameterConfig(name, (-1.0, 1.0), "float") for name in "xy"]
"""The search space of `bowl`."""

MIXED = [
    RangeParameterConfig("x", (-2.0, 2.0), "float"),
    RangeParameterConfig("n", (1, 20), "int"),
    RangeParameterConfig("rate", (1e-5, 1.0), "float", scaling="log"),
    RangeParameterConfig("size", (1, 1000), "int", scaling="log"),
    RangeParameterConfig("step", (0.0, 1.0), "float", step_size=0.25),
    ChoiceParameterConfig("kind", ["a", "b", "c"], "str", is_ordered=False),
    ChoiceParameterConfig("power", [1, 2, 4, 8], "int", is_ordered=True),
    ChoiceParameterConfig("flag", [True, False], "bool", is_ordered=True),
]
"""The search space of `mixed`: one parameter of each kind."""

CONDITIONAL = [
    ChoiceParameterConfig(
        "family",
        ["ab", "cd"],
        "str",
        is_ordered=True,
        dependent_parameters={"ab": ["ab", "x", "y"], "cd": ["cd", "k", "z"]},
    ),
    ChoiceParameterConfig("ab", ["a", "b"], "str", is_ordered=True),
    ChoiceParameterConfig("cd", ["c", "d"], "str", is_ordered=True),
    RangeParameterConfig("x", (0.0, 1.0), "float"),
    RangeParameterConfig("y", (1e-5, 10.0), "float", scaling="log"),
    RangeParameterConfig("k", (1, 20), "int"),
    RangeParameterConfig("z", (-1.0, 1.0), "float"),
]
"""The search space of `conditional`: a choice between two pairs, each with a choice of a bowl.

Ax needs conditional spaces to be trees.
"""


def make_client(
    parameters=SQUARE,
    objective="-loss",
    constraints=(),
    outcome_constraints=(),
    **strategy,
):
    """Return a client with our strategy; the model is active from the fifth trial."""
    client = Client(random_seed=0)
    client.configure_experiment(parameters=parameters, parameter_constraints=list(constraints))
    client.configure_optimization(
        objective=objective, outcome_constraints=list(outcome_constraints)
    )
    settings = {"seed": 0, "initialization_budget": 4, "surrogate": "forest", **strategy}
    client.set_generation_strategy(mondrian_generation_strategy(**settings))
    return client


def run(client, function, n_trials):
    """Run trials one by one, with outcomes from `function`; return their parameterizations."""
    seen = []
    for _ in range(n_trials):
        for index, parameters in client.get_next_trials(1).items():
            seen.append(parameters)
            client.complete_trial(index, raw_data=function(parameters))
    return seen


def bowl(parameters):
    """Return a quadratic of two floats, 0 at (0.3, -0.2)."""
    return {"loss": (parameters["x"] - 0.3) ** 2 + (parameters["y"] + 0.2) ** 2}


def mixed(parameters):
    """Return a sum of one term for each parameter; its minimum is 0."""
    value = (parameters["x"] - 0.5) ** 2 + (parameters["n"] - 13) ** 2 / 100.0
    value += (math.log10(parameters["rate"]) + 3.0) ** 2 / 4.0
    value += (math.log10(parameters["size"]) - 1.0) ** 2 + abs(parameters["step"] - 0.75)
    value += (parameters["kind"] != "b") + 0.3 * abs(math.log2(parameters["power"]) - 2.0)
    return {"loss": value + 0.3 * (not parameters["flag"])}


def conditional(parameters):
    """Return the bowl of the active choice; the minimum is 0, under d."""
    if parameters["family"] == "ab":
        x, log_y = parameters["x"], math.log10(parameters["y"])
        if parameters["ab"] == "a":
            return {"loss": 0.05 + 0.5 * (x - 0.3) ** 2 + 0.02 * (log_y + 3) ** 2}
        return {"loss": 0.10 + 0.2 * (x - 0.8) ** 2 + 0.01 * log_y**2}
    k, z = parameters["k"], parameters["z"]
    if parameters["cd"] == "c":
        return {"loss": 0.02 + ((k - 5) / 20) ** 2 + (z + 0.5) ** 2}
    return {"loss": 4 * ((k - 13) / 20) ** 2 + 2 * (z - 0.3) ** 2}


def values(client):
    """Return the observed losses by trial."""
    frame = client._experiment.lookup_data().df
    return dict(zip(frame["trial_index"], frame["mean"], strict=True))


def engine_of(client) -> Engine:
    """Return the engine behind a client's suggestions."""
    return engine_of_strategy(client._generation_strategy)


def engine_of_strategy(strategy) -> Engine:
    """Return the engine behind the strategy's last node."""
    node = strategy._nodes[-1]
    if hasattr(node, "_engine"):
        return node._engine
    return node.generator_specs[0].fitted_adapter.generator._engine
