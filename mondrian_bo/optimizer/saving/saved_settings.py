"""The arguments of an optimizer as JSON, and back."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mondrian_bo.acquisitions import ACQUISITIONS
from mondrian_bo.optimizer.search.portfolio import Arm, Portfolio
from mondrian_bo.search_space import Categorical, Condition, Float, Int, SearchSpace
from mondrian_bo.search_space.parameters import Parameter

_ACQUISITIONS: dict[str, Any] = {one.__name__: one for one in ACQUISITIONS.values()}
"""Acquisitions that a file may name, by class: those of the library."""

_PARAMETERS: dict[str, type[Parameter]] = {"Float": Float, "Int": Int, "Categorical": Categorical}
"""Parameters that a file may name."""


def encode_space(space: SearchSpace) -> list[dict[str, Any]]:
    """Return the parameters of a space in their order.

    Raises
    ------
    TypeError
        If a choice is not a string, a number, a bool or None, or a class is not the library's.
    """
    if type(space) is not SearchSpace:
        raise _refusal(space)
    encoded = []
    for name, parameter in space.items():
        kind = type(parameter).__name__
        if _PARAMETERS.get(kind) is not type(parameter):
            raise _refusal(parameter)
        one: dict[str, Any] = {"name": name, "type": kind}
        if isinstance(parameter, Categorical):
            one["choices"] = [_encode_value(choice) for choice in parameter.choices]
        else:
            one.update(low=parameter.low, high=parameter.high)
            one.update(log=bool(parameter.log), step=parameter.step)
        if parameter.condition is not None:
            # Numbers of numpy may stand for a numeric parent's values.
            values = [
                _encode_value(value.item() if isinstance(value, np.generic) else value)
                for value in parameter.condition.values
            ]
            one["condition"] = {"parent": parameter.condition.parent, "values": values}
        encoded.append(one)
    return encoded


def decode_space(encoded: Sequence[Mapping[str, Any]]) -> SearchSpace:
    """Return the space of `encode_space`."""
    parameters = {}
    for one in encoded:
        arguments = {name: one[name] for name in ("low", "high", "log", "step") if name in one}
        if "choices" in one:
            arguments["choices"] = tuple(_decode_value(choice) for choice in one["choices"])
        if "condition" in one:
            values = tuple(_decode_value(value) for value in one["condition"]["values"])
            arguments["condition"] = Condition(one["condition"]["parent"], values)
        parameters[one["name"]] = _PARAMETERS[one["type"]](**arguments)
    return SearchSpace(parameters)


def encode_params(params: Mapping[str, object]) -> dict[str, object]:
    """Return the parameters of a trial of a space that `encode_space` takes."""
    return {name: _encode_value(value) for name, value in params.items()}


def decode_params(encoded: Mapping[str, Any]) -> dict[str, Any]:
    """Return what `encode_params` was given."""
    return {name: _decode_value(value) for name, value in encoded.items()}


def encode_acquisition(acquisition: object) -> object:
    """Return an acquisition, its name, or a portfolio.

    Raises
    ------
    TypeError
        If it is not one of the library.
    """
    if isinstance(acquisition, str):
        return acquisition
    if type(acquisition) is Portfolio:
        arms = [_encode_arm(arm) for arm in acquisition.arms]
        rugged = None if acquisition.rugged is None else _encode_arm(acquisition.rugged)
        return {"arms": arms, "restarts": bool(acquisition.restarts), "rugged": rugged}
    kind = type(acquisition).__name__
    if _ACQUISITIONS.get(kind) is not type(acquisition):
        raise _refusal(acquisition)
    arguments = {name: _encode_value(value) for name, value in vars(acquisition).items()}
    return {"type": kind, "arguments": arguments}


def decode_acquisition(encoded: Any) -> Any:
    """Return what `encode_acquisition` was given."""
    if isinstance(encoded, str):
        return encoded
    if "type" in encoded:
        arguments = {name: _decode_value(one) for name, one in encoded["arguments"].items()}
        return _ACQUISITIONS[encoded["type"]](**arguments)
    arms = tuple(_decode_arm(one) for one in encoded["arms"])
    # Files of the first formats lack it.
    rugged = encoded.get("rugged")
    return Portfolio(arms, encoded["restarts"], None if rugged is None else _decode_arm(rugged))


def _encode_arm(arm: Arm) -> dict[str, Any]:
    return {
        "acquisitions": [encode_acquisition(one) for one in arm.acquisitions],
        "power": bool(arm.power),
        "options": {name: _encode_value(value) for name, value in arm.options.items()},
        "constrained": [encode_acquisition(one) for one in arm.constrained or ()],
        "many_constrained": [encode_acquisition(one) for one in arm.many_constrained or ()],
        "while_running": [encode_acquisition(one) for one in arm.while_running],
        "quadratic": float(arm.quadratic),
        "quadratic_after": int(arm.quadratic_after),
        "evolution": float(arm.evolution),
        "plateau": float(arm.plateau),
        "exploration": float(arm.exploration),
        "candidates": float(arm.candidates),
        "surrogate": arm.surrogate,
    }


def _decode_arm(encoded: Mapping[str, Any]) -> Arm:
    return Arm(
        _decode_acquisitions(encoded, "acquisitions"),
        encoded["power"],
        {name: _decode_value(value) for name, value in encoded["options"].items()},
        # Files of the first formats lack some of these.
        _decode_acquisitions(encoded, "constrained") or None,
        _decode_acquisitions(encoded, "many_constrained") or None,
        _decode_acquisitions(encoded, "while_running"),
        quadratic=encoded.get("quadratic", 0.0),
        quadratic_after=encoded.get("quadratic_after", 0),
        evolution=encoded.get("evolution", 0.0),
        plateau=encoded.get("plateau", 0.0),
        exploration=encoded.get("exploration", 0.0),
        candidates=encoded.get("candidates", 1.0),
        surrogate=encoded.get("surrogate"),
    )


def _decode_acquisitions(arm: Mapping[str, Any], name: str) -> tuple[Any, ...]:
    return tuple(decode_acquisition(acquisition) for acquisition in arm.get(name, ()))


def encode_seed(entropy: Any) -> Any:
    """Return the entropy of a seed, an integer or a sequence, as integers."""
    if isinstance(entropy, Sequence) or hasattr(entropy, "tolist"):
        entropy = entropy.tolist() if hasattr(entropy, "tolist") else entropy
        return [encode_seed(one) for one in entropy] if isinstance(entropy, Sequence) else entropy
    return int(entropy)


def _encode_value(value: object) -> object:
    """Return a value; JSON has no infinity and no NaN."""
    if type(value) is float and not math.isfinite(value):
        return {"float": str(value)}
    if value is None or type(value) in (str, bool, int, float):
        return value
    raise _refusal(value)


def _decode_value(encoded: Any) -> Any:
    return float(encoded["float"]) if isinstance(encoded, dict) else encoded


def _refusal(thing: object) -> TypeError:
    return TypeError(
        f"A saved file holds acquisitions of mondrian_bo, and choices that are a str, an int, a "
        f"float, a bool or None, and not {thing!r}. Between your own processes, move the optimizer "
        "with pickle."
    )
