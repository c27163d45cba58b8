"""The frame: a light import, the public names, the links at the root, the layers, the house rules.

Layers are read from the source (every import statement, wherever it stands), not from what happens
to be loaded.
"""

from __future__ import annotations

import ast
import importlib.metadata
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import mondrian_bo
from mondrian_bo.moved import MOVED

PACKAGE = Path(mondrian_bo.__file__).resolve().parent
ROOT = PACKAGE.parent
MODULES = sorted(PACKAGE.rglob("*.py"))
LINKS = ("acquisitions", "benchmarks", "surrogates")
MAX_LINES = 500


def _run(code: str) -> str:
    """Run code in a process of its own, so that nothing this process loaded is seen."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout


# The public face ----------------------------------------------------------------------------------


def test_version() -> None:
    assert mondrian_bo.__version__ == importlib.metadata.version("mondrian-bo")


def test_version_in_citation_and_changelog() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {mondrian_bo.__version__}\n" in citation
    assert mondrian_bo.__version__ in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_dir_lists_the_public_names() -> None:
    assert set(mondrian_bo.__all__) <= set(dir(mondrian_bo))
    assert {"MondrianSampler", "MondrianOptimizer", "SearchSpace", "__version__"} <= set(
        mondrian_bo.__all__
    )


@pytest.mark.parametrize("name", mondrian_bo.__all__)
def test_public_name_resolves(name: str) -> None:
    assert getattr(mondrian_bo, name) is not None


def test_unknown_attribute() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Mondriaan'"):
        mondrian_bo.Mondriaan  # noqa: B018


def test_moved_modules() -> None:
    """A former import works, warns, and gives the very objects of the present module."""
    lines = [
        f"import {former} as former, {present} as present; assert former is present"
        for former, present in MOVED.items()
    ]
    code = "\n".join(lines)
    done = subprocess.run(
        [sys.executable, "-W", "always", "-c", code], capture_output=True, text=True, check=True
    )
    for former, present in MOVED.items():
        assert f"DeprecationWarning: {former} is now {present}." in done.stderr


def test_typed() -> None:
    assert (PACKAGE / "py.typed").is_file()


# The house ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LINKS)
def test_root_link(name: str) -> None:
    link = ROOT / name
    assert link.is_symlink()
    target = link.readlink()
    assert not target.is_absolute()
    assert link.resolve() == PACKAGE / name
    assert link.is_dir()


def test_files_are_short() -> None:
    lengths = {
        path.relative_to(ROOT).as_posix(): len(path.read_text(encoding="utf-8").splitlines())
        for path in MODULES
    }
    offenders = {name: length for name, length in lengths.items() if length > MAX_LINES}
    assert not offenders, f"files of more than {MAX_LINES} lines: {offenders}"


def test_every_folder_is_a_package() -> None:
    folders = {path.parent for path in MODULES}
    assert [str(folder) for folder in folders if not (folder / "__init__.py").is_file()] == []


# Layers -------------------------------------------------------------------------------------------

OPTUNA_ALLOWED = ("mondrian_bo.integrations", "mondrian_bo.benchmarks")
RIVER_ALLOWED = (
    "mondrian_bo.integrations.river",
    "mondrian_bo.benchmarks.suites.streams.river_worker",
)
AX_ALLOWED = (
    "mondrian_bo.integrations.ax",
    "mondrian_bo.benchmarks.harness.ax_run",
    "mondrian_bo.benchmarks.suites.ax",
)
PEERS_ALLOWED = ("mondrian_bo.benchmarks.harness.peer_worker",)
BAYESMARK_ALLOWED = ("mondrian_bo.benchmarks.problems.bayesmark_worker",)

DESIGN = ROOT / "docs" / "design.md"


def _read_layers(text: str) -> list[list[str]]:
    """Rooms of the block that `docs/design.md` marks as layers, from the bottom up."""
    block = text.split("```layers\n")[1].split("```")[0]
    return [line.split("#")[0].split() for line in block.splitlines()]


LAYERS = _read_layers(DESIGN.read_text(encoding="utf-8"))
ROOMS = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}


def _room(module: str) -> str:
    """The room of a dotted name, by the longest prefix; empty for the package's face."""
    parts = module.split(".")[1:]
    prefixes = ["/".join(parts[:n]) for n in range(len(parts), 0, -1)]
    return next((prefix for prefix in prefixes if prefix in ROOMS), "")


def _dotted(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _within(name: str, prefixes: tuple[str, ...]) -> bool:
    return any(name == prefix or name.startswith(prefix + ".") for prefix in prefixes)


def _imports(module: str, tree: ast.AST, is_package: bool) -> set[str]:
    """Absolute dotted names that a module imports, relative imports resolved."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                keep = len(module.split(".")) - node.level + is_package
                base = ".".join([*module.split(".")[:keep], *([base] if base else [])])
            # "from mondrian_bo import optimizer" names a module too, so both forms are kept.
            found |= {base} | {f"{base}.{alias.name}" for alias in node.names}
    return found


@pytest.fixture(scope="module")
def trees() -> dict[Path, ast.Module]:
    """Return the parsed source of each module."""
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in MODULES}


@pytest.fixture(scope="module")
def imports(trees: dict[Path, ast.Module]) -> dict[str, set[str]]:
    return {
        _dotted(path): _imports(_dotted(path), tree, path.name == "__init__.py")
        for path, tree in trees.items()
    }


@pytest.mark.parametrize(
    ("module", "source", "is_package", "expected"),
    [
        ("a.b.c", "import x.y", False, {"x.y"}),
        ("a.b.c", "def f():\n    from ..d import e", False, {"a.d", "a.d.e"}),
        ("a.b", "from . import c", True, {"a.b", "a.b.c"}),
        ("a.b", "from .c import d", False, {"a.c", "a.c.d"}),
    ],
)
def test_imports_are_read(module: str, source: str, is_package: bool, expected: set[str]) -> None:
    assert _imports(module, ast.parse(source), is_package) == expected


def test_every_module_has_a_room() -> None:
    faces = {"mondrian_bo", "mondrian_bo.integrations"}
    assert [_dotted(path) for path in MODULES if not _room(_dotted(path))] == sorted(
        faces & {_dotted(path) for path in MODULES}
    )


def test_every_room_exists() -> None:
    assert [room for room in ROOMS if not list(PACKAGE.glob(f"{room}*"))] == []


def test_arrows_point_down(imports: dict[str, set[str]]) -> None:
    """A room imports from itself and from rooms of lower layers."""
    modules = set(imports)
    offenders = {
        (module, name)
        for module, names in imports.items()
        for name in names & modules
        if module != "mondrian_bo"
        and _room(name) != _room(module)
        and ROOMS.get(_room(name), -1) >= ROOMS.get(_room(module), len(LAYERS))
    }
    assert not offenders


def test_no_circles_between_files(imports: dict[str, set[str]]) -> None:
    faces = {"mondrian_bo", "mondrian_bo.surrogates"}
    arrows = {
        module: {name for name in names & set(imports) if name not in faces and name != module}
        for module, names in imports.items()
        if module not in faces
    }
    # A package that is named only because one of its modules is imported is no arrow.
    for module, names in arrows.items():
        arrows[module] = {
            name
            for name in names
            if not any(other.startswith(name + ".") for other in names)
            and not module.startswith(name + ".")
        }
    TopologicalSorter(arrows).prepare()


def test_the_face_of_the_package_is_imported_from_above(imports: dict[str, set[str]]) -> None:
    """It imports what it names, if only for type checkers: a module below would close a circle."""
    above = ("mondrian_bo.benchmarks", "mondrian_bo.cli")
    importers = [module for module, names in imports.items() if "mondrian_bo" in names]
    assert importers and not [module for module in importers if not _within(module, above)]


def test_trees_import_numpy_and_numba_alone(imports: dict[str, set[str]]) -> None:
    allowed = {"numpy", "numba"} | set(sys.stdlib_module_names)
    offenders = {
        (module, name)
        for module, names in imports.items()
        if _within(module, ("mondrian_bo.trees",))
        for name in names
        if name.partition(".")[0] not in allowed
        and not _within(name, ("mondrian_bo.trees", "mondrian_bo.shared.array_types"))
    }
    assert not offenders


@pytest.mark.parametrize(
    ("packages", "allowed"),
    [
        (("optuna",), OPTUNA_ALLOWED),
        (("ax",), AX_ALLOWED),
        (("torch",), (*AX_ALLOWED, *PEERS_ALLOWED)),
        (("hebo", "smac", "ConfigSpace"), PEERS_ALLOWED),
        (("bayesmark",), BAYESMARK_ALLOWED),
        (("river",), RIVER_ALLOWED),
    ],
)
def test_frameworks_stay_outside(
    packages: tuple[str, ...], allowed: tuple[str, ...], imports: dict[str, set[str]]
) -> None:
    offenders = {
        (module, name)
        for module, names in imports.items()
        if not module.startswith(allowed)
        for name in names
        if _within(name, packages)
    }
    assert not offenders


def _imported_early(module: str, tree: ast.Module) -> set[str]:
    """Absolute dotted names that a module imports outside of functions and of type checking."""
    waiting: list[ast.AST] = list(tree.body)
    found: set[str] = set()
    while waiting:
        node = waiting.pop()
        late = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or (
            isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        )
        if not late:
            waiting.extend(ast.iter_child_nodes(node))
            if isinstance(node, ast.Import | ast.ImportFrom):
                found |= _imports(module, node, False)
    return found


def test_optional_packages_are_imported_late(trees: dict[Path, ast.Module]) -> None:
    """No extra is needed to import a module: what is optional is imported inside functions."""
    optional = ("matplotlib", "pandas", "cmaes", "torch")
    offenders = {
        (_dotted(path), name)
        for path, tree in trees.items()
        if not _dotted(path).startswith(AX_ALLOWED)
        for name in _imported_early(_dotted(path), tree)
        if _within(name, optional)
    }
    assert not offenders


# Private attributes -------------------------------------------------------------------------------

FOREIGN_PRIVATE = {
    "_SubParsersAction",  # argparse: it has no public name for a type
    "_py_func",  # numba: the file that a cache belongs to
    "_best_parameter",  # COCO: the optimum of a problem
    "_storage",  # Optuna: a public study copies all trials at each call
    "_study_id",
    "_trial_id",
    "_fixed_params",  # Optuna: what a PartialFixedSampler fixes, and its base sampler
    "_base_sampler",
    "_fill_storage_url_template",  # Optuna: the URL that it opens
    "_DEPRECATION_WARNING_TEMPLATE",
    "_experiment",  # Ax: what a client has stored
    "_data_rows",
}
"""Private attributes of other packages, which have no public counterpart."""

NAMED_TUPLE = {"_asdict", "_fields", "_replace"}
"""Public attributes of any NamedTuple, in spite of their names."""


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def _foreign_private(tree: ast.AST) -> set[str]:
    """Private names that a module reads from other objects or modules and does not define."""
    defined: set[str] = set()
    found: set[str] = set()
    bases = {"self", "cls"}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            defined.add(node.name)
            bases |= {ast.unparse(base) for base in getattr(node, "bases", [])}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            defined.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            defined |= {node.attr} if ast.unparse(node.value) == "self" else set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mondrian_bo"):
            found |= {alias.name for alias in node.names if _is_private(alias.name)}
        elif isinstance(node, ast.Attribute) and _is_private(node.attr):
            owner = ast.unparse(node.value)
            if owner not in bases | {"super()"} and node.attr not in defined:
                found.add(node.attr)
    return found


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("class A:\n def f(self, b):\n  self._x = b._x", set()),
        ("class A:\n def f(self, b):\n  return self._y + b._x.z", {"_x"}),
        ("class A(B):\n x = B._y\n def f(self):\n  return super()._y", set()),
        ("def f(a):\n a._x = 1", {"_x"}),
        ("def f(a):\n return a.b._x, a.__class__", {"_x"}),
        ("from mondrian_bo.a import _x", {"_x"}),
    ],
)
def test_private_names_are_read(source: str, expected: set[str]) -> None:
    assert _foreign_private(ast.parse(source)) == expected


def test_private_attributes_stay_private(trees: dict[Path, ast.Module]) -> None:
    found = {
        (_dotted(path), name)
        for path, tree in trees.items()
        for name in _foreign_private(tree) - NAMED_TUPLE
    }
    assert not [(module, name) for module, name in found if name not in FOREIGN_PRIVATE]
    assert {name for _, name in found} == FOREIGN_PRIVATE, "an exception that is not needed"


# Signatures ---------------------------------------------------------------------------------------

MOST_POSITIONAL = 8


def test_signatures_are_short(trees: dict[Path, ast.Module]) -> None:
    """Settings that travel together are one object; keyword-only parameters do not count."""
    numbers = {
        (_dotted(path), node.name): len(node.args.posonlyargs)
        + len(node.args.args)
        - any(argument.arg in ("self", "cls") for argument in node.args.args[:1])
        for path, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
    }
    assert not {name: number for name, number in numbers.items() if number > MOST_POSITIONAL}


# Constants ----------------------------------------------------------------------------------------


def _undocumented(body: list[ast.stmt]) -> list[str]:
    """Return the constants of a module without a docstring; one may hold for a run of them."""
    missing: list[str] = []
    run: list[str] = []
    for statement in body:
        if isinstance(statement, ast.AugAssign):
            continue
        if isinstance(statement, ast.Assign | ast.AnnAssign):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            named = [one for one in targets if isinstance(one, ast.Name | ast.Tuple)]
            nodes = [node for one in named for node in ast.walk(one) if isinstance(node, ast.Name)]
            run += [node.id for node in nodes if node.id.isupper()]
            continue
        is_docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        missing += [] if is_docstring else run
        run = []
    return missing + run


def test_constants_have_docstrings(trees: dict[Path, ast.Module]) -> None:
    missing = {_dotted(path): _undocumented(tree.body) for path, tree in trees.items()}
    assert not {module: names for module, names in missing.items() if names}
