"""The report: complete, self-contained, escaped, and readable in a browser."""

from __future__ import annotations

import base64
import html
import re
import shutil
import subprocess
import sys
from pathlib import Path

import optuna
import pytest
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from mondrian_bo import MondrianSampler, plotting
from mondrian_bo.cli import main
from mondrian_bo.integrations.optuna import importance, report
from mondrian_bo.integrations.optuna.report import html_report

optuna.logging.set_verbosity(optuna.logging.WARNING)
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
NAME = "a <b> & study"


def _objective(trial: optuna.Trial) -> float:
    x = trial.suggest_float("x", -1.0, 1.0)
    value = x**2 + 0.1 * trial.suggest_int("<i>n", 1, 3)
    trial.report(value, 0)
    return value + 0.1 * trial.suggest_categorical("kind", ["<script>", "b"]).count("b")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    journal = folder / "studies.log"
    storage = JournalStorage(JournalFileBackend(str(journal)))
    study = optuna.create_study(
        study_name=NAME, storage=storage, sampler=optuna.samplers.RandomSampler(seed=0)
    )
    study.optimize(_objective, n_trials=20)
    out = folder / "report.html"
    assert main(["report", str(journal), NAME, "--out", str(out)]) == 0
    return out


def test_has_all_parts_and_needs_nothing_else(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    titles = re.findall(r"<h2>([^<]*)</h2>", text)
    assert titles == [
        "History",
        "Learning curves",
        "Importance",
        "Slices",
        "Maps",
        "Acquisition",
        "A Mondrian partition",
        "Calibration of past predictions",
    ]
    assert "a &lt;b&gt; &amp; study" in text
    for raw in ("<script", "<i>", "http://", "https://", "Not drawn"):
        assert raw not in text
    sources = re.findall(r'src="([^"]*)"', text)
    assert len(sources) == 1 + 1 + 1 + 3 + 6 + 2 + 1 + 1
    for source in sources:
        picture = base64.b64decode(source.removeprefix("data:image/png;base64,"))
        assert picture.startswith(b"\x89PNG")
    assert len(text) < 1_500_000


_MEASURE = """
window.addEventListener("load", () => {
  const outer = window.parent.document.documentElement, root = document.documentElement;
  const shown = [...document.images].filter(image => image.complete && image.naturalWidth > 100);
  const plots = [...document.querySelectorAll(".main-svg")].map(one => one.parentElement);
  const wide = [...shown, ...plots].filter(one => one.getBoundingClientRect().right > innerWidth);
  outer.setAttribute("data-shown", shown.length);
  outer.setAttribute("data-drawn", new Set(plots).size);
  outer.setAttribute("data-wide", wide.length + Math.max(root.scrollWidth - root.clientWidth, 0));
});
"""


def _measured(text: str, width: int, folder: Path) -> str:
    """Return the root element of a page in a browser: how much is shown, how much is too wide."""
    assert CHROMIUM is not None
    inner = html.escape(text.replace("</body>", f"<script>{_MEASURE}</script></body>"))
    page = folder / "page.html"
    # No window is narrower than 500 pixels, so a frame takes the part of the phone.
    frame = f'<iframe width="{width}" height="900" srcdoc="{inner}"></iframe>'
    page.write_text(f"<html><body>{frame}</body></html>", encoding="utf-8")
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1400,1000"]
    done = subprocess.run(
        [*command, f"--user-data-dir={folder / 'profile'}", "--dump-dom", page.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
    )
    return re.findall("<html[^>]*>", done.stdout)[0]


@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")
@pytest.mark.parametrize("width", [1280, 390])
def test_opens_in_a_browser(page: Path, tmp_path: Path, width: int) -> None:
    """All pictures are shown, and nothing is wider than the window of a computer or a phone."""
    text = page.read_text(encoding="utf-8")
    root = _measured(text, width, tmp_path)
    assert f'data-shown="{text.count("<img")}"' in root
    assert 'data-wide="0"' in root


@pytest.fixture(scope="module")
def interactive(page: Path) -> str:
    pytest.importorskip("plotly")
    out = page.with_name("interactive.html")
    journal = str(page.with_name("studies.log"))
    assert main(["report", journal, NAME, "--out", str(out), "--interactive"]) == 0
    return out.read_text(encoding="utf-8")


def test_interactive_report_needs_nothing_else(page: Path, interactive: str) -> None:
    still = page.read_text(encoding="utf-8")
    assert re.findall(r"<h2>[^<]*</h2>", interactive) == re.findall(r"<h2>[^<]*</h2>", still)
    assert interactive.count('role="img"') == still.count("<img")
    assert not re.findall(r"<(?:script|link|img)[^>]* (?:src|href)=", interactive)
    # Choices and names are no tags.
    assert "<i>n" not in interactive and 'label="<' not in interactive


@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")
@pytest.mark.parametrize("width", [1280, 390])
def test_interactive_report_opens_in_a_browser(
    interactive: str, tmp_path: Path, width: int
) -> None:
    root = _measured(interactive, width, tmp_path)
    assert f'data-drawn="{interactive.count("<figure><div")}"' in root
    assert 'data-wide="0"' in root


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compute what the pictures show, but draw none: that takes most of the time."""
    monkeypatch.setattr(report, "_picture", lambda data, size, text: f'<img alt="{text}">')


@pytest.mark.usefixtures("bare")
def test_the_only_study_needs_no_name(page: Path, tmp_path: Path) -> None:
    texts = []
    for name in ([NAME], []):
        out = tmp_path / "again.html"
        assert main(["report", str(page.parent / "studies.log"), *name, "--out", str(out)]) == 0
        texts.append(out.read_text(encoding="utf-8"))
    assert texts[0] == texts[1]


@pytest.mark.usefixtures("bare")
def test_several_objectives() -> None:
    study = optuna.create_study(directions=["minimize", "maximize"])
    study.optimize(
        lambda trial: (trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)), n_trials=8
    )
    titles = re.findall(r"<h2>([^<]*)</h2>", html_report(study))
    assert "Slices of value 0" in titles and "Slices of value 1" in titles
    assert "Calibration of past predictions" not in titles


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize(("n_trials", "n_shown"), [(7, 7), (30, 20)])
def test_a_large_front_is_shown_in_parts_over_its_whole_range(n_trials, n_shown) -> None:
    study = optuna.create_study(
        directions=["minimize"] * 2, sampler=optuna.samplers.RandomSampler(seed=0)
    )
    study.optimize(lambda trial: ((x := trial.suggest_float("x", 0, 1)), 1 - x), n_trials=n_trials)
    page = html_report(study)
    numbers = re.findall(r'<td>on the front</td><td class="number">(\d+)</td>', page)
    assert len(numbers) == n_shown
    shown = [study.trials[int(number)].values[0] for number in numbers]
    values = [trial.values[0] for trial in study.trials]
    assert shown == sorted(shown) and (shown[0], shown[-1]) == (min(values), max(values))
    assert ("20 of 30 trials on the front" in page) == (n_shown < n_trials)


@pytest.mark.usefixtures("bare")
def test_the_best_trial_at_the_target_of_a_fidelity_is_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def objective(trial):
        n_epochs = trial.suggest_int("n_epochs", 1, 50)
        return (trial.suggest_float("x", 0, 1) - 0.3) ** 2 + n_epochs / 50

    def bests(*options):
        out = tmp_path / "page.html"
        assert main(["report", storage, "s", "--out", str(out), *options]) == 0
        return re.findall(r'<tr><td>([^<]*)</td><td class="number">(\d+)', out.read_text())

    storage = f"sqlite:///{tmp_path / 'studies.db'}"
    sampler = MondrianSampler(seed=0, fidelity={"n_epochs": 40})
    study = optuna.create_study(storage=storage, study_name="s", sampler=sampler)
    study.enqueue_trial({"n_epochs": 1, "x": 0.4})
    study.enqueue_trial({"n_epochs": 50, "x": 0.2})
    study.optimize(objective, n_trials=2)
    plain = bests()
    assert plain[0] == ("best value", "0")
    assert bests("--fidelity", "n_epochs=40") == plain, "no trial at the target"
    assert bests("--fidelity", "n_epochs") == [("best at the target", "1"), *plain]
    study.enqueue_trial({"n_epochs": 40, "x": 0.4})
    study.optimize(objective, n_trials=1)
    assert bests("--fidelity", "n_epochs=40")[0] == ("best at the target", "2")
    assert main(["report", storage, "s", "--fidelity", "n_epochs=all"]) == 2
    assert "the target 'all' is no number" in capsys.readouterr().err


@pytest.mark.usefixtures("bare")
def test_one_decomposition_of_each_objective(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    original = importance._decompose_target
    monkeypatch.setattr(
        importance,
        "_decompose_target",
        lambda *arguments: calls.append(arguments) or original(*arguments),
    )
    for n_objectives in (1, 2):
        study = optuna.create_study(
            directions=["minimize"] * n_objectives, sampler=optuna.samplers.RandomSampler(seed=0)
        )
        study.optimize(
            lambda trial, n=n_objectives: [
                (k + 1) * trial.suggest_float("x", 0, 1) + trial.suggest_float("y", 0, 1)
                for k in range(n)
            ],
            n_trials=12,
        )
        calls.clear()
        assert "Importance" in html_report(study)
        assert len(calls) == n_objectives
        calls.clear()
        plotting.plot_importance(study)
        assert len(calls) == 1


@pytest.mark.usefixtures("bare")
def test_feasible_trials_are_counted() -> None:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    for number, violation in enumerate((-1.0, 0.0, 0.5)):
        trial = study.ask({"x": optuna.distributions.FloatDistribution(0, 1)})
        trial.set_constraint("c", violation)
        study.tell(trial, float(number))
    assert "2 of 3 complete trials are feasible" in html_report(study)


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize(
    "stored",
    [
        {"expected_gain": None, "n_trials": 3},
        {"expected_gain": 0.5},
        {"expected_gain": "<b>", "n_trials": 3},
        {"expected_gain": 0.5, "n_trials": "<b>"},
        {"expected_gain": float("nan"), "n_trials": 3},
        "expected_gain",
    ],
)
def test_a_foreign_estimate_is_left_out(stored: object) -> None:
    study = optuna.create_study()
    rest = {"satisfied_since": None, "patience": 20}
    stored = {**rest, **stored} if isinstance(stored, dict) else stored
    study.set_user_attr("mondrian:terminator", stored)
    page = html_report(study)
    assert "no trials" in page and "Expected gain" not in page
    study.set_user_attr("mondrian:terminator", {**rest, "expected_gain": 0.25, "n_trials": 3})
    assert "Expected gain of further trials after 3 trials: 0.25" in html_report(study)


def test_studies_without_a_model() -> None:
    empty = optuna.create_study()
    assert "no trials" in html_report(empty)
    failed = optuna.create_study()
    failed.optimize(lambda trial: float("nan"), n_trials=2)
    assert "2 fail" in html_report(failed)
    constant = optuna.create_study()
    constant.optimize(lambda trial: 1.0, n_trials=3)
    assert "There is no model" in html_report(constant)


def test_missing_folder_is_named_before_the_page_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path / 'studies.db'}"
    optuna.create_study(study_name="there", storage=url)
    monkeypatch.setattr("mondrian_bo.integrations.optuna.report.html_report", None)
    assert main(["report", url, "there", "--out", str(tmp_path / "none" / "page.html")]) == 2
    assert "there is no folder" in capsys.readouterr().err


def test_wrong_storage_or_study(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(tmp_path / "none.log"), "x"]) == 2
    assert "no journal file" in capsys.readouterr().err
    url = f"sqlite:///{tmp_path / 'studies.db'}"
    optuna.create_study(study_name="there", storage=url)
    assert main(["report", url, "x"]) == 2
    assert "['there']" in capsys.readouterr().err
    optuna.create_study(study_name="second", storage=url)
    assert main(["report", url]) == 2
    assert "name of a study is needed; the storage has ['second', 'there']" in (
        capsys.readouterr().err
    )
    file = tmp_path / "none.db"
    for driver in ("", "+pysqlite"):
        assert main(["report", f"sqlite{driver}:///{file}", "x"]) == 2
        assert f"There is no database '{file}'" in capsys.readouterr().err
        assert not file.exists()
    assert not file.exists()
    text = tmp_path / "text.py"
    text.write_text("import optuna\n\n\nprint(optuna)\n")
    assert main(["report", str(text), "x"]) == 2
    assert "is no journal file of Optuna" in capsys.readouterr().err
    for line in ("hello\n", "hello"):
        (tmp_path / "one.txt").write_text(line)
        assert main(["report", str(tmp_path / "one.txt"), "any"]) == 2
        error = capsys.readouterr().err
        assert "one.txt' is no journal file of Optuna (the first line is no record)" in error
    (tmp_path / "empty.log").write_text("")
    assert main(["report", str(tmp_path / "empty.log"), "any"]) == 2
    assert "The storage has no study." in capsys.readouterr().err
    for wrong, reason in [(f"sqlite:///{text}", "not a database"), ("nothing://x", "nothing")]:
        assert main(["report", wrong]) == 2
        error = capsys.readouterr().err
        assert "The storage cannot be read" in error and reason in error


@pytest.mark.usefixtures("bare")
def test_parameters_of_different_branches() -> None:
    def objective(trial: optuna.Trial) -> float:
        name = "x" if trial.suggest_categorical("kind", ["a", "b"]) == "a" else "y"
        return 5.0 * trial.suggest_float(name, 0.0, 1.0)

    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(objective, n_trials=15)
    with pytest.raises(ValueError, match="No complete trial has values of both 'x' and 'y'"):
        plotting.plot_partition(study, "x", "y")
    assert "Slices" in html_report(study)


def test_a_missing_matplotlib_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=3)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match="`pip install matplotlib`, or the extra `plot`"):
        html_report(study)
