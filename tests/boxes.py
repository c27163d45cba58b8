"""What tests need of the boxes of an acquisition that its scores do not."""

from __future__ import annotations

import numpy as np

from mondrian_bo.acquisitions import BoxDecomposition
from mondrian_bo.shared.array_types import FloatArray


def corners_of(boxes: BoxDecomposition) -> tuple[FloatArray, FloatArray]:
    """Return the lower and the upper corners, shape (b, K) each, in units of the front."""
    objectives = np.arange(len(boxes.coordinates))
    return boxes.coordinates[objectives, boxes.lower], boxes.coordinates[objectives, boxes.upper]
