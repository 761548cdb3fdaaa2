"""Bands of frequencies, and the highest frequency that a mesh resolves."""
from __future__ import annotations

import math

import numpy as np

from swell.core.errors import InputError

EXAMPLE = "such as 20:600:5 (from, to, step in Hz), 100,200,300, or 440"
MAX_FREQUENCIES = 100_000
NODES = 10              # nodes a wavelength that the paper requires


def band(text: str) -> np.ndarray:
    """Parse a band; return its frequencies in Hz as an array.

    Parameters
    ----------
    text : str
        ``"FROM:TO:STEP"``, with TO included if the steps reach it; or a list ``"F1,F2,..."``.

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
    if (stop - start) / step >= MAX_FREQUENCIES:
        raise InputError(f"band {text!r}: this would be more than {MAX_FREQUENCIES} frequencies; take a larger step")
    return checked(start + step * np.arange(math.floor((stop - start) / step * (1 + 1e-12) + 1e-9) + 1))


def checked(frequencies) -> np.ndarray:
    """Return frequencies (a number or a sequence, Hz) as a float vector; raise InputError for negative or infinite
    ones."""
    try:
        hertz = np.atleast_1d(np.asarray(frequencies, float))
    except (TypeError, ValueError):
        raise InputError(f"frequencies={frequencies!r}: expected numbers in Hz, or a band {EXAMPLE}") from None
    if hertz.ndim != 1 or not hertz.size:
        raise InputError(f"frequencies have shape {hertz.shape}: expected one or more numbers in Hz")
    bad = ~(np.isfinite(hertz) & (hertz >= 0))
    if bad.any():
        raise InputError(f"a frequency of {hertz[np.argmax(bad)]:g} Hz: expected finite numbers, not negative; with "
                         "e^(+iωt) the response at −f is the conjugate of the response at f")
    return hertz


def finest(mesh, speeds, degree) -> float:
    """Return the frequency in Hz up to which every cell has `NODES` nodes a wavelength, by its mean edge length.

    Parameters
    ----------
    mesh : Mesh
    speeds : array, shape (cells,)
        Speed of sound in each cell.
    degree : int
        Degree of the elements; degree 2 doubles the nodes along an edge.
    """
    return float((degree * speeds / (NODES * mesh.mean_edges)).min())
