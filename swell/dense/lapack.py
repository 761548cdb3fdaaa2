"""Factors that LAPACK or cuSOLVER made elsewhere, as `DoolittleFactors`."""
from __future__ import annotations

import numpy as np

from swell.core.devices import make_space
from swell.core.errors import FactorisationError, InputError
from swell.core.guests import guest_of
from swell.core.settings import DTYPES
from swell.dense.factors import DoolittleFactors, Metrics, largest
from swell.dense.getrf import Getrf
from swell.dense.products import on_device


def from_lapack(lu, piv, space=None):
    """Return `DoolittleFactors` of (lu, piv); parameters as in `LUFactors.from_lapack`.

    Raises
    ------
    InputError
        If ``lu`` is not a finite square matrix, or ``piv`` has no n swaps counted from 0.
    FactorisationError
        If U has a zero on its diagonal.
    """
    lu = lu if hasattr(lu, "dtype") else np.asarray(lu)
    if lu.ndim != 2 or lu.shape[0] != lu.shape[1] or not lu.shape[0] or lu.dtype.name not in DTYPES:
        raise InputError(f"lu has shape {tuple(lu.shape)} and dtype {lu.dtype.name}: expected a square matrix of at "
                         f"least one row in one of {', '.join(DTYPES)}, such as scipy.linalg.lu_factor returns")
    n, space = len(lu), space or guest_of(lu).device_of(lu)
    space = make_space(space) if isinstance(space, str) else space
    piv = np.asarray(piv.get() if hasattr(piv, "get") else piv)
    if piv.shape != (n,) or piv.dtype.kind not in "iu":
        raise InputError(f"piv has shape {piv.shape} and dtype {piv.dtype}: expected {n} integers, a swap for each row")
    wrong = (piv < np.arange(n)) | (piv >= n)
    if wrong.any():
        j = int(wrong.argmax())
        raise InputError(f"piv[{j}] is {piv[j]}: expected a row from {j} to {n - 1}; swaps count from 0 here, and from "
                         "1 in LAPACK itself: subtract 1")
    with space.active(n):
        lu = on_device(space, lu)
        if not np.isfinite(largest(space, lu[None]))[0]:
            raise InputError("lu has entries that are not finite: expected finite factors")
        zero = space.to_host(lu.diagonal()) == 0  # sync
        if zero.any():
            raise FactorisationError(f"column {int(zero.argmax())} of U has a zero on the diagonal: the matrix is "
                                     "singular", True)
        order = list(range(n))
        for j, p in enumerate(piv.tolist()):
            order[j], order[p] = order[p], order[j]
        chosen = np.array([n], np.int64)
        return DoolittleFactors(lu, space.from_host(np.array(order, np.int64)), space, Getrf(), Metrics(n, chosen))
