"""Systems of dense blocks, and how preconditioners and triangular solves are built and applied in their tests."""
from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from swell.core.registry import resolve
from swell.formats.bsr import BSR
from swell.formats.csr import CSRMatrix


def blocked(s, dtype="float64", seed=1, count=30, dominance=4.0):
    """Full blocks of s, a pattern that is not symmetric, diagonals far from zero."""
    random = np.random.default_rng(seed)
    pattern = sp.random_array((count, count), density=0.12, rng=np.random.default_rng(5)) + sp.eye_array(count)
    A = sp.csr_array(sp.kron(sp.csr_array(pattern) != 0, np.ones((s, s)))).astype(dtype)
    A.sort_indices()
    values = random.standard_normal((A.nnz, 2)) @ [1, 1j]
    A.data = (values if A.dtype.kind == "c" else values.real).astype(dtype)
    return sp.csr_array(A + dominance * np.sqrt(5 * s) * sp.eye_array(A.shape[0], dtype=dtype))


def csr(A, space):
    A = sp.csr_array(A)
    A.sort_indices()
    return CSRMatrix.from_scipy(A, space)


def built(settings, A, space):
    return resolve("precond", settings).build(csr(A, space))


def vector(n, dtype="float64", seed=0):
    v = np.random.default_rng(seed).standard_normal((n, 2)) @ [1, 1j]
    return v.astype(dtype) if np.dtype(dtype).kind == "c" else v.real.astype(dtype)


def applied(M, x, adjoint=False):
    out = M.space.xp.full(x.size, np.nan, M.dtype)
    (M.apply_adjoint if adjoint else M.apply)(M.space.from_host(x.astype(M.dtype)), out)
    return M.space.to_host(out)


def near(a, b, rel=1e-12):
    return abs(a - b).max() <= rel * abs(b).max()


def growing(s, space, factor=3.0):
    """Block bidiagonal, its remainder grows ``factor`` times a sweep until it is gone after 40."""
    A = sp.csr_array(np.kron(np.eye(40) + factor * np.eye(40, k=-1), np.eye(s) + 0.1))
    return csr(A, space) if s == 1 else BSR(s).build(csr(A, space))


def singular_block():
    """Nonsingular; the diagonal block 4 of U, rows 8 and 9, has the rank 1."""
    A = np.kron(np.eye(6), np.array([[3.0, 1], [1, 2]]))
    A[8:10, 8:10] = [[1, 2], [2, 4]]
    A[8, 11], A[11, 8] = 1, 1
    A[9, 10], A[10, 9] = 1, -1
    A[8, 10] = A[9, 11] = A[10, 8] = A[11, 9] = 1e-300                       # blocks are full
    return sp.csr_array(A)
