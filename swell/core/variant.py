"""The variant of Numba's kernels that a thread calls (core/compiled.py); here, since few processes import Numba."""
from __future__ import annotations

import threading


class _Here(threading.local):
    """The choice of variant for the kernels that this thread calls."""

    small = False


here = _Here()
