"""What the examples share: options, progress bars, panels and small pictures."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from tqdm import tqdm

OUTPUT = Path("examples-output")
"""Default folder of pictures, in the working directory.

The pictures of the documentation are in docs/images and change only by ``--output``."""

DPI = 80
"""Dots per inch: pictures of the documentation stay below 150 kB."""


def say(text):
    """Print at once, above a progress bar where there is one."""
    tqdm.write(text)
    sys.stdout.flush()


def picture_path(script):
    """Return the default picture of a script: its folder and name in the output folder."""
    script = Path(script).resolve()
    parts = script.relative_to(Path(__file__).resolve().parent).with_suffix(".png").parts
    return OUTPUT.joinpath(*parts)


def arguments(script, doc, picture=True, quick=True, **defaults):
    """Parse --quick, --output and an option for each default; a list takes several values."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    if quick:
        parser.add_argument("--quick", action="store_true", help="small data, as a test")
    if picture:
        import matplotlib

        matplotlib.use("Agg")
        path = picture_path(script)
        parser.add_argument(
            "--output", type=Path, default=path, help=f"the picture to write (default: {path})"
        )
    for name, default in defaults.items():
        several = isinstance(default, list)
        kind = type(default[0] if several else default)
        parser.add_argument(
            f"--{name}",
            type=Path if default is None else kind,
            default=default,
            **({"nargs": "+"} if several else {}),
        )
    return parser.parse_args()


def progress(items, **options):
    """Show a progress bar over the items, on a terminal."""
    return tqdm(items, disable=None, leave=False, **options)


def mean_and_deviation(values):
    """Format the mean and the standard deviation of some numbers."""
    return f"{np.mean(values):.3f} ± {np.std(values):.3f}"


def panels_in_a_row(n_panels):
    """Make a figure of equal panels; return it and the panels."""
    import matplotlib.pyplot as plt

    size = (4.2 * n_panels, 3.4)
    figure, axes = plt.subplots(1, n_panels, figsize=size, layout="constrained", squeeze=False)
    return figure, axes[0]


def save(figure, path):
    """Write a small file: 128 colours are enough for these pictures."""
    from PIL import Image

    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=DPI)
    with Image.open(path) as image:
        few = image.convert("RGB").quantize(128, dither=Image.Dither.NONE)
    few.save(path, optimize=True)
    say(f"Picture in {path}")
