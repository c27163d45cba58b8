"""What the density examples share."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from _figures import arguments, progress, save, say

__all__ = ["arguments", "progress", "save", "say"]
