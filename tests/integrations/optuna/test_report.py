"""The report: complete, self-contained, escaped, and readable in a browser."""

from __future__ import annotations

import base64
import re
import shutil
import subprocess
from pathlib import Path

import optuna
import pytest
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from mondrian_bo.cli import main
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
        "A Mondrian partition",
        "Calibration of past predictions",
    ]
    assert "a &lt;b&gt; &amp; study" in text
    for raw in ("<script", "<i>", "http://", "https://", "Not drawn"):
        assert raw not in text
    sources = re.findall(r'src="([^"]*)"', text)
    assert len(sources) == 1 + 1 + 1 + 3 + 6 + 1 + 1
    for source in sources:
        picture = base64.b64decode(source.removeprefix("data:image/png;base64,"))
        assert picture.startswith(b"\x89PNG")
    assert len(text) < 1_500_000


@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")
@pytest.mark.parametrize("width", [1280, 500])
def test_opens_in_a_browser(page: Path, tmp_path: Path, width: int) -> None:
    """All pictures are shown, and nothing is wider than the window."""
    check = (
        "<script>window.onload = () => { const root = document.documentElement;"
        "const shown = [...document.images].filter(i => i.complete && i.naturalWidth > 100);"
        "root.setAttribute('data-shown', shown.length);"
        "root.setAttribute('data-overflow', root.scrollWidth - root.clientWidth); }</script>"
    )
    copy = tmp_path / "page.html"
    text = page.read_text(encoding="utf-8")
    copy.write_text(text.replace("</body>", check + "</body>"), encoding="utf-8")
    assert CHROMIUM is not None
    done = subprocess.run(
        [
            CHROMIUM,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            f"--user-data-dir={tmp_path / 'profile'}",
            f"--window-size={width},900",
            "--dump-dom",
            copy.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert f'data-shown="{text.count("<img")}"' in done.stdout
    assert 'data-overflow="0"' in done.stdout


def test_several_objectives() -> None:
    study = optuna.create_study(directions=["minimize", "maximize"])
    study.optimize(
        lambda trial: (trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)), n_trials=8
    )
    titles = re.findall(r"<h2>([^<]*)</h2>", html_report(study))
    assert "Slices of value 0" in titles and "Slices of value 1" in titles
    assert "Calibration of past predictions" not in titles


def test_studies_without_a_model() -> None:
    empty = optuna.create_study()
    assert "no trials" in html_report(empty)
    failed = optuna.create_study()
    failed.optimize(lambda trial: float("nan"), n_trials=2)
    assert "2 fail" in html_report(failed)
    constant = optuna.create_study()
    constant.optimize(lambda trial: 1.0, n_trials=3)
    assert "There is no model" in html_report(constant)


def test_wrong_storage_or_study(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(tmp_path / "none.log"), "x"]) == 2
    assert "no journal file" in capsys.readouterr().err
    url = f"sqlite:///{tmp_path / 'studies.db'}"
    optuna.create_study(study_name="there", storage=url)
    assert main(["report", url, "x"]) == 2
    assert "['there']" in capsys.readouterr().err
