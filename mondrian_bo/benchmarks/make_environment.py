"""Creates a virtual environment that runs a peer library or another benchmark's code.

``python -m mondrian_bo.benchmarks.make_environment onelearn DIR`` uses this interpreter and prints
how to name the environment to the benchmarks. The old versions in `RECIPES` need Python 3.11 or
older.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

__all__ = ["RECIPES", "Recipe", "main"]


class Recipe(NamedTuple):
    """What an environment has.

    Attributes
    ----------
    requirements : tuple of str
        Installed with their dependencies.
    last : tuple of str
        Options and requirements of a second call of pip, which installs no dependencies.
    usage : str
        How to name the environment's interpreter ``{python}`` to the benchmarks.
    """

    requirements: tuple[str, ...]
    last: tuple[str, ...]
    usage: str


RECIPES = {
    "onelearn": Recipe(
        ("numba==0.58.*", "numpy==1.26.*", "scikit-learn==1.3.*", "scipy", "tqdm"),
        # The declared requirements of onelearn conflict with each other.
        ("onelearn==0.3.0",),
        "--onelearn-python {python}",
    ),
    "bayesmark": Recipe(
        (
            "bayesmark==0.0.8",
            "numpy==1.23.5",
            "pandas==2.0.3",
            "scikit-learn==1.1.3",  # the last one with the Boston housing data
            "scipy==1.11.4",
            "xarray==2023.7.0",
        ),
        (),
        "MONDRIAN_BO_BAYESMARK_PYTHON={python}",
    ),
    "hebo": Recipe(
        (
            # Without these bounds pip builds old versions of matplotlib for many minutes.
            "GPy==1.13.2",
            "joblib<1.4",
            "matplotlib==3.7.5",
            "numpy==1.24.4",
            "pandas==2.0.3",
            "scikit-learn==1.3.2",
            "scipy==1.11.4",
            "catboost==1.2.7",
            "disjoint-set",
            "gpytorch==1.14",
            "torch==2.13.0",
            # What pymoo needs, and what compiles it.
            "Deprecated",
            "alive-progress",
            "autograd",
            "cma==3.2.2",
            "dill",
            "cython<3",
            "setuptools",
            "wheel",
        ),
        # HEBO needs two thirds of the time if pymoo's modules are compiled, by the cython above.
        (
            "--no-build-isolation",
            "--no-cache-dir",  # it may have an earlier build without compiled modules
            "--no-binary=pymoo",
            "pymoo==0.6.0",
            "hebo==0.3.6",
        ),
        "MONDRIAN_BO_HEBO_PYTHON={python}",
    ),
    "smac": Recipe(
        (
            "smac==2.4.1",
            "ConfigSpace==1.2.2",
            "numpy==2.4.6",
            "scikit-learn==1.9.1",  # SMAC's forest is a subclass of its forest
            "scipy==1.17.1",
        ),
        (),
        "MONDRIAN_BO_SMAC_PYTHON={python}",
    ),
}
"""Environments by name: the latest release of each library, with versions that it runs with."""


def main(argv: Sequence[str] | None = None) -> int:
    """Create the environment that the arguments ask for, and return 0 for success."""
    parser = argparse.ArgumentParser(description="Make an environment for a worker process.")
    parser.add_argument("name", choices=RECIPES, help="what the environment runs")
    parser.add_argument("directory", type=Path, help="where to make it, e.g. .venv-onelearn")
    arguments = parser.parse_args(argv)
    recipe, directory = RECIPES[arguments.name], arguments.directory
    if sys.version_info >= (3, 12):
        parser.error("the versions need Python 3.11 or older: run this with such an interpreter")
    venv.create(directory, with_pip=True)
    python = directory / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    pip = [str(python), "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, *recipe.requirements], check=True)
    if recipe.last:
        subprocess.run([*pip, "--no-deps", *recipe.last], check=True)
    print(recipe.usage.format(python=python.absolute()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
