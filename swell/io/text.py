"""Vectors as plain text: one row a line, columns separated by white space, comments after ``#`` or ``%``."""
import numpy as np

from swell.core import memory
from swell.core.errors import InputError
from swell.io import files

TEXT_COPIES = 8         # bytes of memory for each byte of text: the lines as Python objects, and the numbers


def read_vector(path):
    """Read an array of shape (n, k) from text; complex numbers are written like ``1.5-2j``."""
    with files.opened(path) as stream:
        lines = [line.decode("latin-1") for line in files.lines(path, stream, memory.free() // TEXT_COPIES)
                 if line.replace(b"%", b"#").partition(b"#")[0].strip()]
    if not lines:
        raise InputError(f"{path} holds no number. Expected one a line.")
    dtype = complex if any("j" in line for line in lines) else float
    try:
        return np.loadtxt(lines, dtype=dtype, comments=("#", "%"), ndmin=2)
    except ValueError as error:
        reason = str(error).split(";")[0].rstrip(".")
        raise InputError(f"{path} is not a vector in plain text: {reason}. "
                         "Expected one number a line, or as many on every line.") from error


def write_numbers(stream, x):
    """Write x, of shape (n,) or (n, k), to the open `stream` with 17 digits, which restore every float64 exactly."""
    np.savetxt(stream, x, fmt="%.17g%+.17gj" if x.dtype.kind == "c" and x.ndim == 1 else "%.17g")
