"""Harwell-Boeing and Rutherford-Boeing files: a matrix by columns, in fixed width, perhaps with right-hand sides.

Sources: I. Duff, R. Grimes, J. Lewis, Users' Guide for the Harwell-Boeing Sparse Matrix Collection, TR/PA/92/86 (1992);
The Rutherford-Boeing Sparse Matrix Collection, RAL-TR-97-031 (1997).

Line 1 is a title. Line 2 has the number of lines of the column pointers, row indices, values and, in Harwell-Boeing
files, right-hand sides. Line 3 has the type, three letters, and the sizes. Line 4 has each part's Fortran format.
The letters are: R real, C complex, I integer, P or Q pattern; S symmetric, U unsymmetric, H Hermitian, Z
skew-symmetric, R rectangular; A assembled, E by elements. SciPy's hb_read reads type RUA alone, and its hb_write puts
negative numbers beside their columns. So numbers are split at blanks if that gives as many as announced, else by width.
"""
import re
import warnings
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from swell.core import memory
from swell.core.errors import InputError
from swell.io import files
from swell.io.canonical import canonical_csr, check_indices, expand

AGAIN = "write it again as Matrix Market with scipy.io.mmwrite"
TEXT_COPIES = 6         # bytes of memory for each byte of text: lines, padded fields, numbers

_SYMMETRY = {"s": "symmetric", "u": "general", "r": "general", "h": "hermitian", "z": "skew-symmetric"}
_FORMAT = re.compile(r"(\d*)\(?([IEDFG])(\d+)", re.IGNORECASE)
_SCALE = re.compile(r"\d+P,?", re.IGNORECASE)       # 1P, a factor that changes nothing for numbers with an E
_SPELLING = bytes.maketrans(b"dD", b"EE")            # Fortran's exponent of double precision
_NO_LETTER = re.compile(rb"(\d)([+-]\d)")           # Fortran leaves out the E before 3 digits: 1.5-103


@dataclass(frozen=True)
class _File:
    """The header's type and sizes, and the lines of each part with its Fortran format."""

    scalars: str        # r, c, i, p
    symmetry: str
    rows: int
    cols: int
    entries: int
    parts: dict         # from "pointers", "indices", "values", "right-hand sides" to (lines, format)
    sides: str          # the line on right-hand sides, or ""


def read_matrix(path):
    """Read the matrix; see `swell.io.read_matrix_with_notes`."""
    with files.damage_explained(path, AGAIN):
        file = _read(path)
        indptr = _numbers(path, file, "pointers", file.cols + 1, np.int64) - 1
        index = _numbers(path, file, "indices", file.entries, np.int64) - 1
        if indptr[0] != 0 or indptr[-1] != file.entries:
            raise ValueError(f"the column pointers end at {indptr[-1]} and the header announces {file.entries} entries")
        pattern = file.scalars in "pq"
        values = np.ones(file.entries) if pattern else _scalars(path, file, "values", file.entries)
        A = sp.csc_matrix((values, index, indptr), shape=(file.rows, file.cols))
        check_indices(A)
    stored = A.tocoo()
    if file.symmetry != "general":
        if (stored.row < stored.col).any() and (stored.row > stored.col).any():
            raise InputError(f"{path}, line 3: the type says {file.symmetry}, which stores one triangle, but entries "
                             "lie in both. Write U as the second letter, or remove one triangle.")
        if file.symmetry == "skew-symmetric" and stored.data[stored.row == stored.col].any():
            raise InputError(f"{path}, line 3: the type says skew-symmetric, but the diagonal is not zero. Mend it.")
    A, notes = canonical_csr(path, stored)
    if pattern:
        notes.append("pattern matrix: every entry is 1")
    if file.symmetry != "general":
        A, _ = canonical_csr(path, expand(file.symmetry, A.tocoo()))
        notes.append(f"{file.symmetry} storage expanded to {A.nnz} entries")
    return A, notes


def read_vector(path):
    """Read the right-hand sides in the file, as columns."""
    with files.damage_explained(path, AGAIN):
        file = _read(path)
        if not file.sides:
            raise InputError(f"{path} holds a matrix and no right-hand side. Name another file.")
        if file.sides[:1].lower() != "f":
            raise InputError(f"{path}, line 5: the right-hand sides have type {file.sides[:3]!r}, expected F, full "
                             "vectors. Write them alone, as Matrix Market or text.")
        count = int(file.sides[3:].split()[0])
        return _scalars(path, file, "right-hand sides", count * file.rows).reshape(count, file.rows).T


def _read(path):
    """Read the text of the file; return the `_File`."""
    with files.opened(path) as stream:
        lines = [line.rstrip(b"\r\n") for line in files.lines(path, stream, memory.free() // TEXT_COPIES)]
    header = [line.decode("latin-1") for line in lines[:5]]
    counts = [int(word) for word in header[1].split()[1:]]
    kind = header[2][:3].lower()
    sizes = [int(word) for word in header[2][3:].split()]
    if kind[2] == "e":
        raise InputError(f"{path}, line 3: the type is {kind.upper()}, a matrix by elements that are not assembled, "
                         "expected one whose third letter is A. Assemble it first.")
    sides = counts[3] if len(counts) > 3 else 0
    formats = [header[3][first:last] for first, last in ((0, 16), (16, 32), (32, 52), (52, 72))]
    start, parts = 5 if sides else 4, {}
    for name, count, form in zip(("pointers", "indices", "values", "right-hand sides"), [*counts[:3], sides], formats):
        parts[name] = lines[start:start + count], form
        start += count
    needed = start - sides                       # programs count the lines of right-hand sides wrongly
    if needed > len(lines):
        raise InputError(f"{path} is truncated: line 2 announces {needed} lines for the matrix, and there are "
                         f"{len(lines)}. Fetch or copy it again.")
    rows, cols, entries = sizes[:3]
    return _File(kind[0], _SYMMETRY[kind[1]], rows, cols, entries, parts, header[4] if sides else "")


def _numbers(path, file, part, count, dtype):
    """Return the first `count` numbers of a part of the file."""
    lines, form = file.parts[part]
    text = b" ".join(lines).translate(_SPELLING)
    numbers = _split(text, dtype) if len(text.split()) == count else None
    if numbers is not None and numbers.size == count:
        return numbers
    parsed = _FORMAT.search(_SCALE.sub("", form))
    if parsed is None:
        raise InputError(f"{path}, line 4: the format of the {part} is {form.strip()!r}, expected one such as "
                         "(4E20.12). Mend line 4.")
    each, width = int(parsed[1] or 1), int(parsed[3])
    longest = max(map(len, lines), default=0)    # a format may announce wider lines than there are
    width = min(width, max(longest, 1))
    each = min(each, -(-longest // width))
    if count > each * len(lines):
        raise InputError(f"{path}: {count} {part} are announced, and {len(lines)} lines of {each} cannot hold them. "
                         "Mend the header, or fetch the file again.")
    files.check_memory(path, each * width * len(lines), f"{each} x {width} characters a line in line 4")
    text = b"".join(line[:each * width].ljust(each * width) for line in lines).translate(_SPELLING)
    fields = np.frombuffer(text, f"S{width}")[:count]
    try:
        return fields.astype(dtype)
    except ValueError:
        if dtype is not np.float64:
            raise
        return np.array([float(_NO_LETTER.sub(rb"\1E\2", field)) for field in fields.tolist()])


def _split(text, dtype):
    """Return the numbers in a text that blanks separate; None if it holds anything else."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")           # older releases of NumPy warn where newer ones raise
        try:
            return np.fromstring(text, dtype, sep=" ")
        except (DeprecationWarning, ValueError):
            return None


def _scalars(path, file, part, count):
    """Return the first `count` values of a part, real or complex as the matrix is."""
    if file.scalars == "c":
        return _numbers(path, file, part, 2 * count, np.float64).view(np.complex128)
    return _numbers(path, file, part, count, np.float64)
