"""Sentences on the definiteness of a matrix, which is not factored for them."""
from __future__ import annotations

import numpy as np


def definiteness(A, facts) -> str:
    """Return a sentence on the definiteness of the CSRMatrix A, with the property from which it follows.

    ``facts``: ``A.facts()``."""
    if not facts.hermitian:
        if facts.dominant and facts.positive_diagonal:
            return "not Hermitian; its eigenvalues lie in the right half plane (positive diagonal, diagonally dominant)"
        return "not Hermitian, so cg does not apply"
    host = A.to_scipy()
    diagonal = host.diagonal().real
    if facts.empty_rows:
        return f"singular: {facts.empty_rows} rows are empty"
    if facts.zero_diagonal:
        return f"indefinite or singular: {facts.zero_diagonal} diagonal entries are zero"
    if (diagonal < 0).all():
        return "not positive definite: its diagonal is negative; −A may be positive definite"
    if (diagonal < 0).any():
        return f"indefinite: {int((diagonal < 0).sum())} diagonal entries are negative, the others positive"
    if facts.dominant:
        return _dominant(host, diagonal)
    rows = np.repeat(np.arange(A.shape[0]), np.diff(host.indptr))
    off = rows != host.indices
    with np.errstate(over="ignore"):
        minors = diagonal[rows] * diagonal[host.indices] - abs(host.data) ** 2
    negative = int((off & (minors < -1e-12 * abs(host.data) ** 2)).sum()) // 2
    if negative:
        return f"indefinite: {negative} of its 2 × 2 principal minors are negative, though its diagonal is positive"
    return ("perhaps positive definite: its diagonal and its 2 × 2 principal minors are positive; cg will tell")


def _dominant(host, diagonal) -> str:
    """Return the sentence on definiteness for a Hermitian, diagonally dominant matrix with positive diagonal.

    ``host``: the matrix in SciPy; ``diagonal``: its diagonal. It uses Gershgorin's theorem, and Taussky's where a
    circle reaches 0."""
    from scipy.sparse.csgraph import connected_components
    sums = np.asarray(abs(host).sum(axis=1)).ravel()
    strict = diagonal > (sums - diagonal) * (1 + 1e-12)
    parts, part = connected_components(host, directed=False)
    weak = parts - np.unique(part[strict]).size          # parts without a strict row
    if not weak:
        return "positive definite: diagonally dominant, strictly so in some row of each connected part"
    unbalanced = np.abs(np.asarray(host.sum(axis=1)).ravel()) > 100 * np.finfo(host.dtype).eps * sums
    floating = int((np.bincount(part, unbalanced | (sums == 0), parts) == 0).sum())
    if floating:
        where = "its rows" if parts == 1 else f"the rows of {floating} of {parts} connected parts"
        return f"positive semidefinite and singular: {where} sum to zero"
    return f"positive semidefinite at least (diagonally dominant, but nowhere strictly in {weak} connected parts)"
