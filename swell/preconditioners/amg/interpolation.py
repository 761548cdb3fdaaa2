"""Interpolation from the coarse rows: P, at most ``pmax`` entries a row.

Extended+i in the form of matrix products (De Sterck, Falgout, Nolting and Yang 2008; Li, Sjögreen and Yang 2021). With
Cᵢˢ, Fᵢˢ the coarse and fine rows on which fine row i depends strongly, βⱼ = Σ aⱼₖ over k in Cⱼˢ, dᵢⱼ = βⱼ + aⱼᵢ, and γᵢ
the sum of weak links,

    θᵢ = aᵢᵢ + γᵢ + Σⱼ aᵢⱼ aⱼᵢ / dᵢⱼ,    wᵢₖ = −(aᵢₖ + Σⱼ aᵢⱼ aⱼₖ / dᵢⱼ) / θᵢ,    j in Fᵢˢ.

Strong fine neighbours give access to coarse rows at distance two. Strong links are negative, and a positive aⱼᵢ of a
nonsymmetric matrix counts as 0: so dᵢⱼ cannot cancel, and a neighbour that leads nowhere, dᵢⱼ = 0, is lumped to θᵢ. The
``pmax`` largest weights are kept and rescaled to the old sum. If the row of A sums to zero, the row of P then sums to
one, and P maps constants to constants on every level.

Direct interpolation (Stüben 2001) uses row i alone: wᵢₖ = −(Σ aᵢⱼ⁻ / Σ aᵢₖ) aᵢₖ / ãᵢᵢ, with positive entries lumped to
ãᵢᵢ. It replaces extended+i in a row whose θᵢ nearly cancels or whose weights exceed 10.

One pass forms and truncates the rows: full rows are never stored.
"""
from __future__ import annotations

import numpy as np

from swell.formats.csr import CSRMatrix
from swell.formats.matrix import index_type

# On a GPU a thread makes a row if there are at least this many rows, with at most 40 entries on average; else a warp.
MIN_ROWS_BY_THREADS, MAX_AVERAGE_BY_THREADS = 1 << 15, 40


def interpolation(A, mirror, strong, state, numbers, settings):
    """Return P as a CSRMatrix, with a column for each row of the next level.

    Parameters
    ----------
    A : CSRMatrix
        Real.
    mirror : float64 array, shape (nnz,)
        The result of `mirrored`: aⱼᵢ for each aᵢⱼ.
    strong, state : uint8 arrays
        The results of `strong_links` and `pmis`.
    numbers : int array, shape (n + 1,)
        The number of each coarse row on the next level; the last entry is the number of coarse rows.
    settings : AMG
    """
    space, n, most = A.space, A.shape[0], settings.pmax
    index = index_type(n, n, n * most)
    wide, values, lengths = space.empty(n * most, index), space.empty(n * most, A.dtype), space.empty(n, np.int32)
    _interpolate(A, mirror, strong, state, numbers, settings, space.empty(0, index), wide, values, lengths)
    indptr = space.empty(n + 1, index)
    space.prefix_sums(lengths, indptr)
    coarse, stored = space.last_entries(numbers, indptr)  # sync
    indices, data = space.empty(stored, index), space.empty(stored, A.dtype)
    _kernels(A).compact(most, wide, values, indptr, indices, data)
    return CSRMatrix(space, indptr, indices, data, (n, coarse))


def reinterpolate(A, mirror, strong, state, numbers, settings, P):
    """Overwrite the values of P for new values of A, on P's pattern; see `interpolation` for the other arguments."""
    _interpolate(A, mirror, strong, state, numbers, settings, P.indptr, P.indices, P.data, A.space.empty(0, np.int32))
    P.discard_adjoint()


def _interpolate(A, mirror, strong, state, numbers, settings, indptr, indices, data, lengths):
    """Write the rows of P to the last four arrays by the kernel `interpolate`; with an empty ``indptr`` P has no
    pattern yet."""
    space, kernels, n = A.space, _kernels(A), A.shape[0]
    counts, begins, sums = space.empty(n, np.int32), space.empty(n + 1, A.indptr.dtype), space.empty(n, A.dtype)
    kernels.coarse_lengths(A.indptr, A.indices, strong, state, counts)
    space.prefix_sums(counts, begins)
    columns, values = space.empty(A.nnz, A.indices.dtype), space.empty(A.nnz, A.dtype)      # fewer are used
    kernels.coarse_entries(A.indptr, A.indices, A.data, strong, state, numbers, begins, columns, values, sums)
    by_threads = n >= MIN_ROWS_BY_THREADS and A.nnz <= MAX_AVERAGE_BY_THREADS * n
    (kernels.interpolate if by_threads else kernels.interpolate_long)(
        A.indptr, A.indices, A.data, mirror, strong, state, numbers, begins, columns, values, sums,
        settings.interpolation == "extended", settings.pmax, bool(indptr.size), indptr, indices, data, lengths)


def _kernels(A):
    return A.space.kernels("swell.preconditioners.amg", "interpolation", A.dtype)
