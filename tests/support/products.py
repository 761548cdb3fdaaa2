"""Matrices in every format, and products checked against SciPy's: what the tests of formats share."""
from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from swell.core.registry import resolve
from swell.formats.csr import CSRMatrix


def build(A, format, space):
    """A SciPy matrix in a format of the registry."""
    A = sp.csr_array(A)
    A.sum_duplicates()
    with space.active():
        return resolve("format", format).build(CSRMatrix.from_scipy(A, space))


def vector(n, dtype, seed=0):
    """Random numbers of any type."""
    values = np.random.default_rng(seed).standard_normal((n, 2)) @ [1, 1j]
    return values.astype(dtype) if np.dtype(dtype).kind == "c" else values.real.astype(dtype)


def tolerance(dtype):
    return 50 * float(np.finfo(dtype).eps)


def product(M, x, **more):
    """M x on the host."""
    space = M.space
    with space.active():
        out = space.xp.full(M.shape[0], np.nan, M.dtype)         # beta = 0 must not read it
        M.apply(space.from_host(x), out, **more)
        return space.to_host(out)


def assert_product(M, A, dtype):
    x = vector(A.shape[1], dtype)
    size = abs(A).astype(np.float64) @ abs(x) + 1e-30
    assert (abs(product(M, x) - A @ x) <= tolerance(dtype) * size).all()


def random_matrix(n, density, dtype, seed=0):
    """Random pattern and values; some rows stay empty."""
    A = sp.random_array((n, n), density=density, rng=np.random.default_rng(seed), format="csr")
    A.data = vector(A.nnz, dtype, seed)
    return A
