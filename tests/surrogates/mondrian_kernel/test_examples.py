"""The figures of kernel and grid in examples run, each in a folder of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from example_runs import EXAMPLES, run_example

FIGURES = sorted(
    script
    for folder in ("mondrian_kernel", "mondrian_grid")
    for script in (EXAMPLES / folder).glob("fig*.py")
)
ANIMATION = EXAMPLES / "mondrian_kernel" / "animation.py"


def test_figures_are_there() -> None:
    assert len(FIGURES) >= 8


@pytest.mark.parametrize("script", [*FIGURES, ANIMATION], ids=lambda script: script.stem)
def test_figure_is_drawn(script: Path, tmp_path: Path) -> None:
    run_example(script, "--quick", "--output", "pictures/figure.png", cwd=tmp_path)
    picture = (tmp_path / "pictures" / "figure.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 3000


def test_pictures_of_the_documentation_are_there_and_small() -> None:
    for script in FIGURES:
        folder = EXAMPLES.parent / "docs" / "images" / script.parent.name
        assert 3000 < (folder / f"{script.stem}.png").stat().st_size < 150_000
    animation = EXAMPLES.parent / "docs" / "images" / "mondrian_kernel" / "animation.png"
    assert b"acTL" in animation.read_bytes()[:100]  # the chunk of animated PNG
    assert animation.stat().st_size < 1_000_000
