"""Is M positive definite? A few steps of Lanczos' method on M A, in the inner product of A.

With exact local problems all eigenvalues of M A are at least 1 (Mandel and Dohrmann 2003). So a negative one, which
inexact local problems may cause and CG does not survive, lies apart, and few steps find it: the least Ritz value is
negative. Local inverses that are accurate for random vectors say less: on real elastic bodies M was indefinite with
local errors of 0.02. Cost: `STEPS` products with A and M, and as many pairs of vectors, for inexact decomposers only.
"""
from __future__ import annotations

import numpy as np

STEPS = 16
ROUNDING = 100          # times eps and the largest Ritz value: a Ritz value that is negative beyond rounding


def is_definite(A, M) -> bool:
    """Return False if M, a `Level` for the Hermitian matrix A, is found to be indefinite.

    True is no proof. If A itself is not positive definite the question has no answer, and the result is True. Across
    ranks all ranks call it and get the same answer."""
    space, n = A.space, A.space.ranks.local_rows(A.shape[0])
    xp = space.xp
    v = space.empty(n, A.dtype)
    space.random(0, v)
    V, AV = (xp.zeros((STEPS, n), A.dtype) for _ in range(2))
    T = np.zeros((STEPS, STEPS), np.result_type(A.dtype, np.float64))
    for k in range(STEPS):
        for _ in range(2 if k else 0):                                   # v −= V (A V)ᴴ v, twice
            v -= V[:k].T @ _sums(space, AV[:k].conj() @ v)
        Av = A.times(v)
        length2 = space.to_host(_sums(space, Av[None].conj() @ v))[0].real  # sync
        if not length2 > 0:
            k -= 1
            break                                # the Krylov space is exhausted, or A is not positive definite
        V[k], AV[k] = v / length2 ** 0.5, Av / length2 ** 0.5
        M.apply(AV[k].copy(), v)                                         # v = M A vₖ
        T[:k + 1, k] = space.to_host(_sums(space, AV[:k + 1].conj() @ v))  # sync
        if T[k, k].real <= 0:
            return False
    ritz = np.linalg.eigvalsh(T[:k + 1, :k + 1], UPLO="U")
    return not ritz.size or bool(ritz[0] > -ROUNDING * np.finfo(A.dtype).eps * abs(ritz).max())


def _sums(space, sums):
    """Return sums over all ranks of a device array, in place."""
    space.ranks.allreduce(sums)
    return sums
