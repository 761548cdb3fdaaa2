"""Near null vectors that users give: vectors that a smoother hardly changes, such as the rigid motions of a body."""
from __future__ import annotations

import numpy as np

from swell.core.arrays import host_array
from swell.core.errors import InputError

MOST = 32               # most near null vectors


def check_word(given, name: str):
    """Raise InputError if ``given`` is a text other than "constants"; ``name``: the settings' class, for the message.
    """
    if isinstance(given, str) and given != "constants":
        raise InputError(f"{name}(near_nullspace={given!r}): expected 'constants' or an array of shape (n,) or (n, k), "
                         "as swell.rigid_body_modes(points) gives")


def checked(given, n: int, name: str) -> np.ndarray:
    """Return the array ``given`` as a float64 host array of shape (n, k).

    ``name``: the settings' class, for messages.

    Raises
    ------
    InputError
        If it has another length, is not real and finite, or has dependent columns.
    """
    modes = host_array(given, f"{name}(near_nullspace)")
    modes = modes[:, None] if modes.ndim == 1 else modes
    if modes.ndim != 2 or modes.shape[0] != n or not 1 <= modes.shape[1] <= MOST:
        raise InputError(f"{name}(near_nullspace) has shape {modes.shape}: expected ({n}, k) with k from 1 to {MOST}")
    if modes.dtype.kind not in "iuf" or not np.isfinite(modes).all():
        raise InputError(f"{name}(near_nullspace) has complex or non-finite entries: expected real ones")
    modes = np.ascontiguousarray(modes, np.float64)
    rank = int(np.linalg.matrix_rank(modes / np.maximum(np.abs(modes).max(axis=0, initial=0), 1e-300)))
    if rank < modes.shape[1]:
        raise InputError(f"{name}(near_nullspace) has {modes.shape[1]} columns of rank {rank}: expected linearly "
                         "independent vectors")
    return modes
