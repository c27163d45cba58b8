"""Labels of plots tell choices and parameters apart, and leave room for the plot."""

from __future__ import annotations

import string
from collections.abc import Iterator

import matplotlib
import numpy as np
import optuna
import pytest

from mondrian_bo import plotting
from mondrian_bo.integrations.optuna.plots.labels import distinct_labels, shortened

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
        (["a" * 20 + end + "a" * 20 for end in "xyz"], ["…x…", "…y…", "…z…"]),
        # Texts of which one begins the other.
        (["a" * 30, "a" * 31], ["…", "…a"]),
        (["1", 1], ["'1'", "1"]),
        # Groups that have the same parts.
        (
            [one * 20 + end + one * 20 for one in "ab" for end in "xy"],
            ["…x… (1)", "…y… (1)", "…x… (2)", "…y… (2)"],
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
