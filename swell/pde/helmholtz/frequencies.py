"""Bands of frequencies, and how fine a mesh must be for one."""
from __future__ import annotations

import math

import numpy as np

from swell.core.errors import InputError

EXAMPLE = "such as 20:600:5 (from, to, step in Hz), 100,200,300, or 440"
MOST = 100_000
NODES = 10              # a wavelength: the paper's rule


def band(text: str) -> np.ndarray:
    """The frequencies of a band, in Hz.

    Parameters
    ----------
    text : str
        ``"FROM:TO:STEP"``, both ends included where the step meets them; or a list ``"F1,F2,..."``.

    Examples
    --------
    >>> band("20:35:5").tolist()
    [20.0, 25.0, 30.0, 35.0]
    """
    parts = str(text).split(":")
    try:
        if len(parts) == 1:
            return checked([float(part) for part in parts[0].split(",")])
        start, stop, step = map(float, parts)
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"band {text!r}: expected numbers, {EXAMPLE}") from None
    if not all(map(math.isfinite, (start, stop, step))):
        raise InputError(f"band {text!r}: expected finite numbers, {EXAMPLE}")
    if step <= 0 or stop < start:
        raise InputError(f"band {text!r}: expected a step above 0 and an end not below the beginning, {EXAMPLE}")
    if (stop - start) / step >= MOST:
        raise InputError(f"band {text!r}: this would be more than {MOST} frequencies; take a larger step")
    return checked(start + step * np.arange(math.floor((stop - start) / step * (1 + 1e-12) + 1e-9) + 1))


def checked(frequencies) -> np.ndarray:
    """Frequencies as a vector of finite numbers, not negative."""
    try:
        found = np.atleast_1d(np.asarray(frequencies, float))
    except (TypeError, ValueError):
        raise InputError(f"frequencies={frequencies!r}: expected numbers in Hz, or a band {EXAMPLE}") from None
    if found.ndim != 1 or not found.size:
        raise InputError(f"frequencies have shape {found.shape}: expected one or more numbers in Hz")
    bad = ~(np.isfinite(found) & (found >= 0))
    if bad.any():
        raise InputError(f"a frequency of {found[np.argmax(bad)]:g} Hz: expected finite numbers, not negative; with "
                         "e^(+iωt) the response at −f is the conjugate of that at f")
    return found


def finest(mesh, speeds, degree) -> float:
    """The frequency in Hz up to which every cell has `NODES` nodes a wavelength, by the mean of its edges.

    Parameters
    ----------
    mesh : Mesh
    speeds : array, shape (cells,)
        Of sound in each cell.
    degree : int
        Of the elements: those of degree 2 have two nodes an edge.
    """
    return float((degree * speeds / (NODES * mesh.mean_edges)).min())
