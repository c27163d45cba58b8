"""Labels of plots tell choices and parameters apart, and leave room for the plot."""

from __future__ import annotations

import dataclasses
import itertools
import math
import string
import warnings
from collections.abc import Iterator
from typing import Any

import matplotlib
import numpy as np
import optuna
import pytest
from matplotlib.text import Text

from mondrian_bo import plotting
from mondrian_bo.integrations.optuna.plots.labels import distinct_labels, shortened
from mondrian_bo.integrations.optuna.plots.lines import view
from mondrian_bo.integrations.optuna.report import html_report

matplotlib.use("Agg")
optuna.logging.set_verbosity(optuna.logging.WARNING)
MODELS = [
    "sklearn.ensemble.RandomForestClassifier",
    "sklearn.ensemble.ExtraTreesClassifier",
    "linear",
]


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    yield
    from matplotlib import pyplot

    pyplot.close("all")


def test_the_middle_of_a_long_text_is_left_out() -> None:
    assert shortened("learning_rate", 13) == "learning_rate"
    assert shortened("learning_rate_of_the_head", 13) == "learni…e_head"
    for n in range(3, 30):
        text = string.ascii_letters[:25]
        assert len(shortened(text, n)) == min(n, 25)


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        (["a", None, 1.5, True], ["a", "None", "1.5", "True"]),
        (MODELS, ["…RandomF…ssifier", "…ExtraTr…ssifier", "linear"]),
        (
            ["a" * 20 + end + "a" * 20 for end in "xyz"],
            ["aaaaaa…x…aaaaaa", "aaaaaa…y…aaaaaa", "aaaaaa…z…aaaaaa"],
        ),
        # Texts of which one begins the other.
        (["a" * 30, "a" * 31], ["aaaaaaa…", "aaaaaa…a"]),
        (["1", 1], ["'1'", "1"]),
        # Differences that are too long for a label.
        (
            ["p" * 10 + ("r" * 20).join(digits) + "p" * 10 for digits in ("111", "121", "212")],
            ["…1rrrr…rrr1… (1)", "…1rrrr…rrr1… (2)", "…2rrrrrr…rrrrr2…"],
        ),
    ],
)
def test_labels(values: list[object], labels: list[str]) -> None:
    assert distinct_labels(values, 16) == labels


def test_labels_of_random_texts_differ() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        letters = list("ab._"[: rng.integers(2, 5)])
        size = int(rng.integers(2, 30))
        texts = {"".join(rng.choice(letters, rng.integers(0, 40))) for _ in range(size)}
        texts |= {"q" * 30 + one for one in list(texts)[:5]} | {"(1)", "… (1)"}
        labels = distinct_labels(sorted(texts), 10)
        assert len(set(labels)) == len(texts)
        assert max(map(len, labels)) <= 10
        # A text that fits is its own label, unless a label of another text is the same.
        kept = [a == b for a, b in zip(sorted(texts), labels, strict=True) if len(a) <= 10]
        assert np.mean(kept) > 0.9


def test_values_with_the_same_text_have_numbers() -> None:
    class Same:
        def __repr__(self) -> str:
            return "the same text"

    assert distinct_labels([Same(), "the same text", Same()], 16) == [
        "the sa… text (1)",
        "'the same text'",
        "the sa… text (2)",
    ]


@pytest.mark.parametrize("module", ["matplotlib", "plotly"])
def test_choices_with_a_common_start_have_different_labels(module: str) -> None:
    pytest.importorskip(module)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(
        lambda t: len(t.suggest_categorical("model", MODELS)) + t.suggest_float("x", 0, 1), 12
    )
    if module == "matplotlib":
        axes = plotting.plot_slice(study, "model")
        labels = [label.get_text() for label in axes.get_xticklabels()]
    else:
        from mondrian_bo.plotting import plotly

        labels = list(plotly.plot_slice(study, "model").layout.xaxis.ticktext)
    assert labels == ["…RandomF…ssifier", "…ExtraTr…ssifier", "linear"]


def _study(names: list[str]) -> optuna.Study:
    """Return a study of three parameters, the first the most important one."""
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))

    def objective(trial: optuna.Trial) -> float:
        x, y, z = (trial.suggest_float(name, 0.0, 1.0) for name in names)
        return x + 0.5 * x * y + 0.1 * z

    study.optimize(objective, n_trials=15)
    return study


PIPELINE = [
    "classifier__min_samples_leaf",
    "preprocessor__select_k_best__k",
    "classifier__max_features_fraction",
]
LONG = ["L" * 300, f"{'L' * 150}M{'L' * 150}", "$_{" * 100]


def _drawn_size(axes: Any) -> tuple[float, float]:
    """Return width and height of axes in inches after the layout; a warning is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        axes.figure.draw_without_rendering()
    box = axes.get_position()
    width, height = axes.figure.get_size_inches()
    return box.width * width, box.height * height


@pytest.mark.parametrize("names", [PIPELINE, LONG], ids=["pipeline", "long"])
def test_bars_have_room_beside_names(names: list[str]) -> None:
    axes = plotting.plot_importance(_study(names))
    labels = [label.get_text().replace("\\$", "$") for label in axes.get_yticklabels()]
    assert len(set(labels)) == 6
    if names == PIPELINE:
        assert set(names) < set(labels)
        assert f"{names[0]} \N{MULTIPLICATION SIGN}\n{names[1]}" in labels
    width, height = _drawn_size(axes)
    assert width > 2.0 and height > 1.5
    # In the width of a report, too.
    from matplotlib import pyplot

    own = pyplot.subplots(figsize=(5.0, 3.4), layout="constrained")[1]
    width, height = _drawn_size(plotting.plot_importance(_study(names), axes=own))
    assert width > 1.5 and height > 1.5


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_long_names_leave_room_in_all_plots() -> None:
    study = _study(LONG)
    study.set_metric_names(["N" * 300])
    x, y, _ = LONG
    for axes in (
        plotting.plot_slice(study, x),
        plotting.plot_map(study, x, y),
        plotting.plot_acquisition(study, x, y),
        plotting.plot_partition(study, x, y),
        plotting.plot_history(study),
        plotting.plot_importance(study),
    ):
        width, height = _drawn_size(axes)
        assert width > 2.0 and height > 1.5
        for label in filter(Text.get_text, (axes.xaxis.label, axes.yaxis.label)):
            box = label.get_window_extent()
            # Nothing is cut off at the edges of the figure.
            assert box.x0 >= 0.0 and box.x1 <= axes.figure.bbox.x1
            assert box.y0 >= 0.0 and box.y1 <= axes.figure.bbox.y1
    for axes in plotting.plot_pairs(study).axes[:9]:
        width, height = _drawn_size(axes)
        assert width > 0.7 and height > 0.7


def test_long_names_in_the_report() -> None:
    page = html_report(_study(LONG))
    assert "Not drawn" not in page
    assert page.count("<img") > 8


CHOICES = [f"choice number {k} & <b>" for k in range(120)]


@pytest.fixture(scope="module")
def many() -> optuna.Study:
    """Return a study with a parameter of 120 choices; number 77 is the best one."""
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.enqueue_trial({"c": CHOICES[77], "x": 0.0})
    study.optimize(
        lambda t: (
            abs(CHOICES.index(t.suggest_categorical("c", CHOICES)) - 77.0)
            + t.suggest_float("x", 0.0, 1.0)
        ),
        n_trials=30,
    )
    return study


def test_many_choices_have_few_ticks(many: optuna.Study) -> None:
    line = view(many).line("c")
    for best in range(120):
        values, labels = line.ticks(float(best)) or (np.empty(0), [])
        assert 8 <= len(values) <= 10
        assert np.diff(values).min() >= 12 and np.diff(values).max() < 24
        assert best in values
        assert labels == [f"…{int(k)} & <b>" for k in values]
    few = dataclasses.replace(line, values=line.values[:10], labels=list("abcdefghij"))
    assert few.ticks(3.0) == (pytest.approx(np.arange(10.0)), list("abcdefghij"))


def _overlaps(labels: list[Any]) -> bool:
    """Return whether turned labels are closer together than their height."""
    at = [label.get_transform().transform(label.get_position())[0] for label in labels]
    turn = math.radians(labels[0].get_rotation())
    longest = max(len(label.get_text()) for label in labels)
    size = labels[0].get_fontsize() * labels[0].figure.dpi / 72.0
    needed = size / math.sin(turn) if turn else 0.6 * size * longest
    return bool(np.diff(at).min() < needed)


def test_labels_of_many_choices_do_not_overlap(many: optuna.Study) -> None:
    best = "…77 & <b>"
    for axes in (plotting.plot_slice(many, "c"), plotting.plot_acquisition(many, "c", "x")):
        assert _drawn_size(axes)[1] > 1.5
        labels = axes.get_xticklabels()
        assert best in [label.get_text() for label in labels]
        assert len(labels) <= 10 and not _overlaps(labels)
    axes = plotting.plot_map(many, "x", "c")
    labels = axes.get_yticklabels()
    assert best in [label.get_text() for label in labels]
    _drawn_size(axes)
    boxes = [label.get_window_extent() for label in labels]
    assert all(low.y1 <= high.y0 for low, high in itertools.pairwise(boxes))
    figure = plotting.plot_pairs(many, ["c", "x"])
    assert min(min(_drawn_size(axes)) for axes in figure.axes[:4]) > 0.7
    assert not _overlaps(figure.axes[2].get_xticklabels())


def test_short_labels_are_not_turned() -> None:
    study = _study(["x", "y", "z"])
    study.optimize(lambda t: float(t.suggest_categorical("c", list("abc")) == "a"), n_trials=5)
    labels = plotting.plot_slice(study, "c").get_xticklabels()
    assert [label.get_rotation() for label in labels] == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    "names", [["2020-01-01", "2020-02-01", "2020-03-01"], ["0", "1", "2"], LONG]
)
def test_plotly_shows_names_as_they_are(names: list[str]) -> None:
    pytest.importorskip("plotly")
    from mondrian_bo.plotting import plotly

    figure = plotly.plot_importance(_study(names))
    assert figure.layout.yaxis.type == "category"
    (bars,) = figure.data
    assert len(set(bars.y)) == 6
    # The pointer shows whole names.
    assert set(names) < set(bars.hovertext)
    if names is not LONG:
        assert set(names) < set(bars.y)
    assert max(len(line) for one in bars.y for line in one.split("<br>")) <= 30


def test_plotly_has_few_ticks_and_room_for_them(many: optuna.Study) -> None:
    pytest.importorskip("plotly")
    from mondrian_bo.plotting import plotly

    for axis in (
        plotly.plot_slice(many, "c").layout.xaxis,
        plotly.plot_acquisition(many, "c").layout.xaxis,
        plotly.plot_map(many, "x", "c").layout.yaxis,
    ):
        assert "…77 &amp; &lt;b&gt;" in axis.ticktext
        assert len(axis.ticktext) == len(axis.tickvals) <= 10
        assert axis.automargin


def test_plotly_shortens_long_names() -> None:
    pytest.importorskip("plotly")
    from mondrian_bo.plotting import plotly

    study = _study(LONG)
    x, y, _ = LONG
    for figure in (plotly.plot_map(study, x, y), plotly.plot_partition(study, x, y)):
        for axis in (figure.layout.xaxis, figure.layout.yaxis):
            assert 10 < len(axis.title.text) < 50


def test_plots_of_many_choices_in_narrow_axes_and_parts_of_figures(many: optuna.Study) -> None:
    from matplotlib import pyplot

    narrow = pyplot.figure(figsize=(6.4, 4.8)).add_subplot(1, 8, 1)
    plotting.plot_slice(many, "c", axes=narrow)
    assert len(narrow.get_xticks()) >= 1
    _, right = pyplot.figure(figsize=(8.0, 4.0)).subfigures(1, 2)
    alone = pyplot.figure(figsize=(4.0, 4.0)).add_subplot()
    axes = right.add_subplot()
    for one in (axes, alone):
        plotting.plot_slice(many, "c", axes=one)
    ticks = [[label.get_text() for label in one.get_xticklabels()] for one in (axes, alone)]
    assert ticks[0] == ticks[1]
