"""The machine and the package versions that measurements were made with."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from importlib.metadata import version
from typing import TypedDict

__all__ = ["Machine", "describe_machine", "machine_line"]


class Machine(TypedDict):
    """Architecture, number of cores, and versions of Python and packages by name."""

    machine: str
    cores: int | None
    versions: dict[str, str]


def describe_machine(packages: Sequence[str]) -> Machine:
    """Return the description that is saved with measurements.

    Parameters
    ----------
    packages : sequence of str
        Names of installed distributions.

    Returns
    -------
    Machine
        The description.
    """
    versions = {"Python": platform.python_version(), **{name: version(name) for name in packages}}
    return {"machine": platform.machine(), "cores": os.cpu_count(), "versions": versions}


def machine_line(machine: Machine) -> str:
    """Return the description as one line."""
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    return f"{machine['machine']}, {machine['cores']} cores; {versions}"
