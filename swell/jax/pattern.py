"""Reading JAX's matrices: the pattern, once, on the host; and differentiable operations on the values.

A user's values are added to the entries of the pattern: two values of one place are summed, and padding belongs to no
entry. JAX differentiates this sum, so a gradient has the order of the user's values.
"""
from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import sparse

from swell.autodiff.pattern import Pattern, from_csr, from_entries, full
from swell.batch.pattern import ORDERED
from swell.core.errors import InputError
from swell.guests.jax import check_layout

MAX_ENTRIES = 2**31 - 1    # entries: JAX has indices of 32 bits unless its double precision is on


def arrange(pattern: Pattern, values):
    """Return the user's values, a JAX array, in the order of the pattern."""
    if pattern.place is None:
        return values.reshape(pattern.nnz)
    return jnp.zeros(pattern.nnz, values.dtype).at[pattern.place].add(values, mode="drop")


def product(pattern: Pattern, values, x):
    """Return A x by JAX's operations; ``values``: in the order of the pattern; x has the shape (n,) or (n, k)."""
    n = pattern.n
    if len(pattern.stored) == 2:
        return jnp.matmul(values.reshape(n, n), x, precision=jax.lax.Precision.HIGHEST)
    terms = values.reshape(pattern.nnz, *(1,) * (x.ndim - 1)) * x[pattern.indices]
    return jax.ops.segment_sum(terms, pattern.host.rows, n, indices_are_sorted=True)


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
    n = shape[0]
    if isinstance(A, sparse.JAXSparse):
        check_layout(A)
        _check_size(A.data.size)
        return _of_indices(A), A.data
    if sp.issparse(A):
        if A.format not in ORDERED:
            raise InputError(f"A is a SciPy matrix in format {A.format!r}: expected one of {', '.join(ORDERED)}; "
                             "convert it with A.tocsr()")
        _check_size(A.data.size)
        coo = A.tocoo()
        return from_entries(coo.row, coo.col, n, coo.data.shape), jnp.asarray(A.data.reshape(-1))
    if not isinstance(A, (jax.Array, np.ndarray)):
        raise InputError(f"A is a {type(A).__module__}.{type(A).__name__}: expected a BCOO or BCSR matrix, a dense "
                         "array of JAX or NumPy, or a SciPy matrix")
    _check_size(n * n)
    return full(n), jnp.asarray(A)


def _check_size(entries):
    if entries > MAX_ENTRIES:
        raise InputError(f"A has {entries} entries: expected at most {MAX_ENTRIES}; if A is dense, use "
                         "BCSR.fromdense(A)")


def _of_indices(A) -> Pattern:
    """Return the pattern of a BCOO or BCSR matrix."""
    arrays = (A.indptr, A.indices) if isinstance(A, sparse.BCSR) else (A.indices,)
    if any(isinstance(array, jax.core.Tracer) for array in arrays):
        raise InputError(
            "the indices of A are traced by a JAX transformation, such as jit with A as an argument: expected concrete "
            "indices. Close over them and pass the values: f = swell.jax.prepare(A) outside, then f(values, b)")
    if isinstance(A, sparse.BCSR):
        return from_csr(*map(np.asarray, arrays), A.data.shape, padded=True)
    return from_entries(*np.asarray(A.indices).T, A.shape[0], A.data.shape, padded=True)
