"""What the figures of the papers share: their options, and small pictures."""

from __future__ import annotations

import argparse
from pathlib import Path

from PIL import Image

IMAGES = Path(__file__).parent.parent / "docs" / "images"
DPI = 80


def arguments(module, doc, picture=True, **defaults):
    """Parse --quick, --output and an option for each default; a list takes several values."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small data, as a test")
    if picture:
        script = Path(module)
        path = IMAGES / script.parent.name / f"{script.stem}.png"
        parser.add_argument("--output", type=Path, default=path, help="the picture to write")
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


def save(figure, path):
    """Write a small file: 128 colours are enough for these pictures."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=DPI)
    with Image.open(path) as image:
        few = image.convert("RGB").quantize(128, dither=Image.Dither.NONE)
    few.save(path, optimize=True)
    print(f"Picture in {path}")
