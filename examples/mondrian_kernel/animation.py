"""An animated PNG of a Mondrian process that evolves, is extended, and is restricted.

The last part is Figure 2 of Balog2016: the cuts of a smaller box are those that cross it.
"""

from __future__ import annotations

import io

import matplotlib.pyplot as plt
import numpy as np
from _common import arguments, progress, say
from PIL import Image

from mondrian_bo.surrogates import MondrianPartition

SMALL = np.array([[0.3, 0.7], [0.25, 0.75]])
LARGE = np.array([[0.0, 1.0], [0.0, 1.0]])
MILLISECONDS = 120
"""Duration of a frame."""


def frames(seed, lifetime, n_steps):
    """Yield (partition, part of it that stands out, title) of each frame."""
    partition = MondrianPartition.sample(SMALL, 0.0, random_state=seed)
    for i, time in enumerate(np.linspace(0.0, lifetime, n_steps + 1)):
        partition = partition.evolve(time, random_state=seed + i)
        yield partition, partition, f"evolve: lifetime {time:.1f}"
    small = partition
    for i, share in enumerate(np.linspace(0.0, 1.0, n_steps + 1)):
        partition = partition.extend(SMALL + share * (LARGE - SMALL), random_state=seed + i)
        yield partition, small, "extend: the larger box, given the smaller one"
    for time in np.linspace(lifetime, 0.0, n_steps + 1):
        yield partition.at(time), small.at(time), f"restrict and go back: lifetime {time:.1f}"


def image(partition, inner, title):
    """Draw a frame."""
    figure, axis = plt.subplots(figsize=(4.2, 4.4), layout="constrained")
    partition.draw(axis, color="0.6")
    inner.draw(axis, color="C0")
    for box, colour in ((partition.bounds, "0.6"), (inner.bounds, "C0")):
        corner, sides = box[:, 0], np.ptp(box, axis=1)
        axis.add_patch(plt.Rectangle(corner, *sides, fill=False, edgecolor=colour, linewidth=2))
    axis.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xticks=[], yticks=[], title=title)
    stream = io.BytesIO()
    figure.savefig(stream, dpi=70)
    plt.close(figure)
    with Image.open(stream) as picture:
        return picture.convert("RGB").quantize(16, dither=Image.Dither.NONE)


def main():
    options = arguments(__file__, __doc__, seed=3, lifetime=6.0, steps=24)
    n_steps = 2 if options.quick else options.steps
    first, *others = [
        image(*frame) for frame in progress(list(frames(options.seed, options.lifetime, n_steps)))
    ]
    options.output.parent.mkdir(parents=True, exist_ok=True)
    first.save(
        options.output,
        format="png",
        save_all=True,
        append_images=others,
        duration=MILLISECONDS,
        loop=0,
        optimize=True,
    )
    say(f"Picture in {options.output}")
    say(f"{1 + len(others)} frames, {options.output.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
