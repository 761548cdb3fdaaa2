"""Patterns: where the entries of A lie, read once on the host, and differentiable operations on their values.

swell's matrices are CSR with ascending columns. A user's values are added to the entries of that CSR matrix: two values
of one place are summed, and padding belongs to no entry. JAX differentiates this sum, so a gradient has the order of
the user's values.
"""
from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import sparse

from swell.batch.pattern import ORDERED
from swell.core.errors import InputError
from swell.guests.jax import check_layout

MOST = 2**31 - 1        # entries: JAX has indices of 32 bits unless its double precision is on


@dataclass(frozen=True, eq=False)
class Pattern:
    """The pattern of an n × n matrix in CSR, on the host. Patterns with equal contents are equal.

    Attributes
    ----------
    n : int
    indptr, indices : int32 arrays
        Columns ascend in each row.
    place : int32 array or None
        The entry to which each of the user's values is added, or their number for padding. None: one for one.
    stored : tuple of int
        The shape of the user's values; (n, n) for a dense matrix, which has all entries.
    """

    n: int
    indptr: np.ndarray
    indices: np.ndarray
    place: np.ndarray | None
    stored: tuple[int, ...]

    @property
    def nnz(self) -> int:
        """Number of entries."""
        return self.indices.size

    @cached_property
    def rows(self) -> np.ndarray:
        """The row of each entry."""
        return np.repeat(np.arange(self.n, dtype=np.int32), np.diff(self.indptr))

    @cached_property
    def digest(self) -> bytes:
        """A cryptographic hash of the contents."""
        found = hashlib.blake2b(repr((self.n, self.stored, self.place is None)).encode())
        for array in (self.indptr, self.indices, self.place):
            if array is not None:
                found.update(array)
        return found.digest()

    def __hash__(self):
        return hash(self.digest)

    def __eq__(self, other):
        return isinstance(other, Pattern) and self.digest == other.digest

    @cached_property
    def transposed(self) -> tuple[Pattern, np.ndarray]:
        """(The pattern of Aᵀ, the entry of A for each entry of Aᵀ)."""
        order = np.lexsort((self.rows, self.indices)).astype(np.int32)
        indptr = _pointers(self.indices, self.n)
        return Pattern(self.n, indptr, self.rows[order], None, (self.nnz,)), order

    @property
    def canonical(self) -> Pattern:
        """The same entries in the same order as in the CSR matrix."""
        return Pattern(self.n, self.indptr, self.indices, None, (self.nnz,))

    def arrange(self, values):
        """Return the user's values, a JAX array, in the order of the CSR matrix."""
        if self.place is None:
            return values.reshape(self.nnz)
        return jnp.zeros(self.nnz, values.dtype).at[self.place].add(values, mode="drop")

    def product(self, values, x):
        """Return A x by JAX's operations; ``values``: of the CSR matrix; x has the shape (n,) or (n, k)."""
        if len(self.stored) == 2:
            return jnp.matmul(values.reshape(self.n, self.n), x, precision=jax.lax.Precision.HIGHEST)
        terms = values.reshape(self.nnz, *(1,) * (x.ndim - 1)) * x[self.indices]
        return jax.ops.segment_sum(terms, self.rows, self.n, indices_are_sorted=True)


def read_matrix(A) -> tuple[Pattern, jax.Array]:
    """Return A's pattern and its values, which may be traced, as A stores them.

    Raises
    ------
    InputError
        For a traced pattern, an unsupported kind of matrix, and a shape that is not square.
    """
    import scipy.sparse as sp
    shape = tuple(getattr(A, "shape", ()))
    if len(shape) != 2 or shape[0] != shape[1] or not shape[0]:
        raise InputError(f"A is a {type(A).__name__} of shape {shape}: expected a square matrix (n, n); for several "
                         "matrices of one pattern use jax.vmap over their values")
    if isinstance(A, sparse.JAXSparse):
        check_layout(A)
        return _of_indices(A), A.data
    if sp.issparse(A):
        if A.format not in ORDERED:
            raise InputError(f"A is a SciPy matrix in format {A.format!r}: expected one of {', '.join(ORDERED)}; "
                             "convert it with A.tocsr()")
        coo = A.tocoo()
        return _pattern(shape[0], coo.row, coo.col), jnp.asarray(A.data.reshape(-1))
    if not isinstance(A, (jax.Array, np.ndarray)):
        raise InputError(f"A is a {type(A).__module__}.{type(A).__name__}: expected a BCOO or BCSR matrix, a dense "
                         "array of JAX or NumPy, or a SciPy matrix")
    n = shape[0]
    if n * n > MOST:
        raise InputError(f"A is dense with n = {n}: at most {MOST} entries; use BCSR.fromdense(A)")
    indptr, indices = np.arange(0, n * n + 1, n, dtype=np.int32), np.tile(np.arange(n, dtype=np.int32), n)
    return Pattern(n, indptr, indices, None, (n, n)), jnp.asarray(A)


def _of_indices(A) -> Pattern:
    """The pattern of a BCOO or BCSR matrix."""
    arrays = (A.indices, A.indptr) if isinstance(A, sparse.BCSR) else (A.indices,)
    if any(isinstance(array, jax.core.Tracer) for array in arrays):
        raise InputError(
            "the indices of A are traced by a JAX transformation, such as jit with A as an argument: expected concrete "
            "indices. Close over them and pass the values: f = swell.jax.prepare(A) outside, then f(values, b)")
    n, indices = A.shape[0], np.asarray(A.indices)
    if isinstance(A, sparse.BCOO):
        return _pattern(n, indices[:, 0], indices[:, 1])
    indptr = np.asarray(A.indptr)
    if indptr[0] != 0 or (np.diff(indptr) < 0).any() or indptr[-1] > indices.size:
        raise InputError(f"A.indptr is inconsistent: expected {n + 1} ascending integers from 0 to at most "
                         f"{indices.size}")
    rows = np.full(indices.size, n)              # what lies after the last row is padding
    rows[:indptr[-1]] = np.repeat(np.arange(n), np.diff(indptr))
    return _pattern(n, rows, indices)


def _pattern(n, rows, columns) -> Pattern:
    """The pattern of entries at these places. A place at or beyond n is padding."""
    if rows.size > MOST:
        raise InputError(f"A has {rows.size} entries: at most {MOST}")
    if rows.size and min(rows.min(), columns.min()) < 0:
        raise InputError(f"A has an index of {min(rows.min(), columns.min())}: expected 0 to {n - 1}")
    inside = (rows < n) & (columns < n)
    keys = np.where(inside, rows.astype(np.int64) * n + columns, np.int64(n) * n)      # padding comes last
    if inside.all() and (np.diff(keys) > 0).all():
        return Pattern(n, _pointers(rows, n), columns.astype(np.int32), None, (rows.size,))
    found, place = np.unique(keys, return_inverse=True)
    if not inside.all():
        found = found[:-1]
    return Pattern(n, _pointers(found // n, n), (found % n).astype(np.int32), place.astype(np.int32), (rows.size,))


def _pointers(rows, n):
    """The row pointers of entries in these rows."""
    return np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))]).astype(np.int32)
