"""Tests for A = Aᴴ and A = Aᵀ: exact for the entries of a CSR matrix; for other formats an estimate from two products
with real random vectors."""
from __future__ import annotations

import numpy as np

from swell.core.errors import InputError
from swell.core.space import accumulator

SEED = 20241


def asymmetry(A, conjugate=True) -> float:
    """‖A − Aᴴ‖ / ‖A‖ in the Frobenius norm; ‖A − Aᵀ‖ / ‖A‖ if ``conjugate`` is False.

    A is a SystemMatrix. Exact if its entries can be compared. Otherwise estimated by |(x, A y) − (A x, y)| for
    random x and y. The estimate has the right size with overwhelming probability, and is 0, to rounding, for a
    Hermitian matrix.
    """
    if not A.nnz:
        return 0.0
    exact, size = A.asymmetry(conjugate), A.norm_frobenius()
    if exact is not None:
        _check_range(exact + size)
        return exact / size if size else 0.0
    difference, _ = _mismatch(A, A.space, conjugate)
    _check_range(difference + size)
    return 3 * difference / size if size else 0.0                # E|xᵢ|² = E|yᵢ|² = 1/3


def estimated_asymmetry(M, space, conjugate=True) -> float:
    """Like `asymmetry`, for an operator of which nothing is known, from two applications; 0 or NaN if M gives 0 or NaN.

    ``space``: the space of the system, across ranks with this rank's rows, which M takes."""
    difference, size = _mismatch(M, space, conjugate)
    return np.sqrt(3) * difference / size if size else 0.0       # E‖M y‖² = ‖M‖²/3


def _mismatch(A, space, conjugate):
    """Return (|(x, A y) − (A x, y)|, ‖A y‖₂) for random real x and y; ``conjugate=False``: of A x, its conjugate."""
    x, y, ax, ay = (space.empty(space.ranks.local_rows(A.shape[0]), A.dtype) for _ in range(4))
    space.random(SEED, x)
    space.random(SEED + 1, y)
    A.apply(x, ax)
    A.apply(y, ay)
    dots = space.empty((2, 2), accumulator(A.dtype))
    space.dots(x, ay, dots[0])
    space.dots(ax, y, dots[1])
    space.ranks.allreduce(dots)
    other = dots[1, 0] if conjugate else dots[1, 0].conj()       # x and y are real, so (A x, y) = conj(yᵀ A x)
    return abs(complex(dots[0, 0] - other)), space.norms(ay)[0]


def _check_range(size):
    """Raise InputError if ``size``, made from sums of squares of A's entries, is infinite or NaN."""
    if not np.isfinite(size):
        raise InputError("A has entries whose squares leave the range of double precision, so its symmetry cannot be "
                         "tested: divide A and b by its largest entry")


def tolerance(A) -> float:
    """The largest `asymmetry` at which a matrix of A's type still counts as Hermitian: 1e-10, or 1e-4 in single."""
    return 1e-10 if np.finfo(A.dtype).eps < 1e-12 else 1e-4


def hermitian(A) -> bool:
    """True if A = Aᴴ, up to rounding errors of the assembly."""
    return asymmetry(A) <= tolerance(A)


def require_hermitian(A, owner):
    """Raise InputError unless A = Aᴴ, up to rounding. The message names the pair of entries that differs most.

    ``owner``: the caller's name, for the message."""
    if hermitian(A):
        return
    raise InputError(f"{owner} needs a Hermitian matrix, and A is not: {difference(A)}; use method='bicgstab' or "
                     "'gmres' with a preconditioner for general matrices")


def require_symmetric(A, owner):
    """Raise InputError unless A = Aᵀ, up to rounding. The message names the pair of entries that differs most.

    ``owner``: the caller's name, for the message."""
    if asymmetry(A, conjugate=False) <= tolerance(A):
        return
    raise InputError(f"{owner} needs a matrix that equals its transpose, A = Aᵀ, and A does not: "
                     f"{difference(A, conjugate=False)}; use method='bicgstab' or 'gmres', or 'cg' where A = Aᴴ")


def modulus_symmetric(A) -> bool:
    """True if |A| = |A|ᵀ, up to rounding, with |A| the matrix of the |aᵢⱼ|."""
    return hermitian(A.absolute())


def difference(A, conjugate=True) -> str:
    """Name the pair aᵢⱼ, aⱼᵢ that differs most, in words; for a matrix without CSR arrays, the estimated asymmetry.

    ``conjugate``: compare with Aᴴ; False: with Aᵀ."""
    if not hasattr(A, "indptr"):
        return f"‖A − A{'ᴴ' if conjugate else 'ᵀ'}‖ is about {asymmetry(A, conjugate):.1e} ‖A‖"
    i, j, here, there = worst_pair(A, conjugate)
    other = f"the conjugate of ({j}, {i})" if conjugate else f"({j}, {i})"
    return f"the entry ({i}, {j}) is {here:.6g} and {other} is {there:.6g}"


def worst_pair(A, conjugate=True):
    """Return (i, j, aᵢⱼ, conj(aⱼᵢ)) with the largest difference; ``conjugate=False``: (i, j, aᵢⱼ, aⱼᵢ)."""
    xp = A.space.xp
    other = A.transpose(conjugate)
    rows = xp.concatenate([A.rows(), other.rows()]).astype(np.int64)
    columns = xp.concatenate([A.indices, other.indices]).astype(np.int64)
    values = xp.concatenate([A.data, -other.data])
    order = xp.argsort(rows * A.shape[1] + columns, kind="stable")
    rows, columns, values = rows[order], columns[order], values[order]
    same = (rows[1:] == rows[:-1]) & (columns[1:] == columns[:-1])
    sums = values.copy()
    sums[:-1][same] += values[1:][same]
    sums[1:][same] = 0                                           # the preceding element holds the sum of the two
    at = int(xp.argmax(abs(sums)))
    i, j = int(rows[at]), int(columns[at])
    there = entry(A, j, i)
    return i, j, entry(A, i, j), np.conj(there) if conjugate else there


def entry(A, i, j):
    """Return the entry aᵢⱼ as a Python number; 0 if it is not stored."""
    first, last = int(A.indptr[i]), int(A.indptr[i + 1])
    columns = A.space.to_host(A.indices[first:last])
    places = np.flatnonzero(columns == j)
    return A.space.to_host(A.data[first:last])[places[0]].item() if places.size else 0.0
