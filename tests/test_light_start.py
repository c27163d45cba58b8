"""What a user waits for: packages load when they are first needed.

Each test runs code in a process of its own and looks at the modules that it has loaded.
"""

from __future__ import annotations

import json
import subprocess
import sys


def _loaded_by(code: str) -> set[str]:
    """Return the names of the modules that are loaded once code has run."""
    code = f"{code}\nimport json, sys; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_import_is_light() -> None:
    loaded = _loaded_by("import mondrian_bo")
    assert "mondrian_bo" in loaded
    heavy = {"torch", "ax", "matplotlib", "sklearn", "numba", "optuna", "pandas", "scipy", "tqdm"}
    assert not heavy & loaded, f"loaded: {sorted(heavy & loaded)}"


def test_a_sampler_is_constructed_without_its_model() -> None:
    loaded = _loaded_by("from mondrian_bo import MondrianSampler; MondrianSampler(seed=0)")
    heavy = {"torch", "ax", "matplotlib", "sklearn", "numba", "pandas", "scipy"}
    assert not heavy & loaded, f"loaded: {sorted(heavy & loaded)}"


def test_a_suggestion_of_the_model_needs_few_packages() -> None:
    loaded = _loaded_by(
        "import optuna\n"
        "from mondrian_bo import MondrianSampler\n"
        "study = optuna.create_study(sampler=MondrianSampler(seed=0, n_startup_trials=3))\n"
        "study.optimize(lambda trial: trial.suggest_float('x', 0, 1), n_trials=5)"
    )
    assert "numba" in loaded
    heavy = {"torch", "matplotlib", "sklearn", "joblib", "pandas"}
    heavy |= {"scipy.stats", "scipy.optimize", "scipy.special"}
    assert not heavy & loaded, f"loaded: {sorted(heavy & loaded)}"
    # Trees are grown when the trials no longer fit into one leaf. Leaves need options of numba.
    trees = {name for name in loaded if name.startswith("mondrian_bo.trees")}
    assert trees <= {"mondrian_bo.trees", "mondrian_bo.trees.compiling"}
