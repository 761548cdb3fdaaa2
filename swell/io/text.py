"""Vectors as plain text: one row a line, columns apart by white space, comments after ``#`` or ``%``."""
import numpy as np

from swell.core.errors import InputError
from swell.io import files


def read_numbers(path):
    """Read an array of shape (n, k) from text; complex numbers are written like ``1.5-2j``."""
    with files.opened(path) as stream:
        text = stream.read().decode("latin-1")
    lines = text.splitlines()
    if not any(line.replace("%", "#").partition("#")[0].strip() for line in lines):
        raise InputError(f"{path} holds no number. Expected one a line.")
    dtype = complex if "j" in text else float
    try:
        return np.loadtxt(lines, dtype=dtype, comments=("#", "%"), ndmin=2)
    except ValueError as error:
        reason = str(error).split(";")[0].rstrip(".")
        raise InputError(f"{path} is not a vector in plain text: {reason}. "
                         "Expected one number a line, or as many on every line.") from error


def write_numbers(stream, x):
    """Write an array of shape (n,) or (n, k) with 17 digits, which give every float64 back."""
    np.savetxt(stream, x, fmt="%.17g%+.17gj" if x.dtype.kind == "c" and x.ndim == 1 else "%.17g")
