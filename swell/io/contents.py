"""The choice of one matrix or one vector from a file that holds several, each with a name.

In Matlab's files of the SuiteSparse collection the struct Problem has the matrix ``A``, perhaps its right-hand side
``b``, and facts on them: without a name these two are read.
"""
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from swell.core.encoding import printable
from swell.core.errors import InputError
from swell.core.settings import shown
from swell.io import files
from swell.io.canonical import canonical_csr, check_numeric, dense_to_csr

_LISTED = 20            # most names in a message
_MATRIX, _SIDE = "Problem.A", "Problem.b"


@dataclass(frozen=True)
class Stored:
    """One matrix or array of a file.

    Attributes
    ----------
    shape : tuple of int
    sparse : bool
    read : callable
        Without arguments; returns a SciPy matrix with valid indices, or a NumPy array.
    notes : tuple of str
        Sentences for the user, where the file is ambiguous.
    """

    shape: tuple[int, ...]
    sparse: bool
    read: Callable[[], Any]
    notes: tuple[str, ...] = ()

    @property
    def line(self):
        """True for a vector: one dimension, one column or one row."""
        return len(self.shape) == 1 or len(self.shape) == 2 and min(self.shape) == 1

    @property
    def scalar(self):
        """True for a single number."""
        return all(size == 1 for size in self.shape)

    @printable
    def __str__(self):
        return " x ".join(map(str, self.shape)) + (", sparse" if self.sparse else "")


def read_matrix(path, stored, name):
    """Read the matrix with this name; without a name, the only sparse matrix, or else the only dense one.

    Parameters
    ----------
    path : Path
        The file, for messages.
    stored : dict of str to Stored
    name : str or None

    Returns
    -------
    A, notes
        As `swell.io.read_matrix_with_notes` returns them.

    Raises
    ------
    InputError
        If the name is not there or not a matrix; without a name, if there is no matrix, or more than one.
    """
    if name is None and _MATRIX in stored:
        name = _MATRIX
    if name is not None:
        one = _named(path, stored, name)
        if len(one.shape) != 2:
            raise InputError(f"{path}: {name} has shape {one.shape}, expected a matrix. {_list(stored)}")
        return _matrix(path, one)
    matrices = {key: one for key, one in stored.items() if len(one.shape) == 2}
    return _matrix(path, _only(path, stored, "matrix", "matrices", [
        {key: one for key, one in matrices.items() if one.sparse and not one.line},
        {key: one for key, one in matrices.items() if not one.line},
        matrices]))


def read_vector(path, stored, name):
    """Read the array with this name; without a name, the only vector, or else the only dense array (n, k).

    Parameters and errors as for `read_matrix`."""
    if name is None and _MATRIX in stored:
        name = _SIDE
    if name is not None:
        return _dense(path, _named(path, stored, name))
    dense = {key: one for key, one in stored.items() if not one.sparse}
    return _dense(path, _only(path, stored, "vector", "vectors", [
        {key: one for key, one in stored.items() if one.line and not one.scalar},
        {key: one for key, one in dense.items() if not one.scalar},
        dense]))


def _matrix(path, one):
    """Read a `Stored` of two dimensions; return (CSR matrix, notes)."""
    A = one.read()
    check_numeric(path, A.dtype)
    if one.sparse:
        A, notes = canonical_csr(path, A.tocoo() if A.format == "dia" else A)     # the nnz of dia counts padding
    else:
        A, notes = dense_to_csr(path, A)
    return A, [*one.notes, *notes]


def _dense(path, one):
    """Read a `Stored` as an array."""
    if not one.sparse:
        return one.read()
    files.refuse_square(path, one.shape)
    files.check_memory(path, 16 * math.prod(one.shape), f"a dense array of shape {one.shape}")
    return one.read().toarray()


def _named(path, stored, name):
    if name not in stored:
        raise InputError(f"{path} holds no {shown(name)}. {_list(stored)}")
    return stored[name]


def _only(path, stored, what, several, groups):
    """Return the one member of the first group that has members; InputError if it has several, or all are empty."""
    group = next((group for group in groups if group), None)
    if group is None:
        raise InputError(f"{path} holds no {what}, sparse or dense. {_list(stored)}")
    if len(group) > 1:
        raise InputError(f"{path} holds several {several}: choose one with name=, on a command line as "
                         f"{path.name}:NAME. {_list(group)}")
    return next(iter(group.values()))


def _list(stored):
    """Return a sentence with the names and shapes in `stored`."""
    names = [f"{name} ({one})" for name, one in stored.items()]
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return f"It holds: {', '.join(names[:_LISTED])}{more}." if names else "It holds no array of numbers."
