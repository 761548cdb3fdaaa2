"""The Schur complement of a subdomain's interior, S = A_ΓΓ − A_ΓI A_II⁻¹ A_IΓ, dense, front by front.

With the factors, C and E of the interior's fronts (elimination.py), which subdomains with equal interiors share,

    positive definite:  V = L⁻¹ W:   S ← S − Vᴴ V,   W_below ← W_below − Eᴴ V
    every other matrix: V = D⁻¹ W:   S ← S − X V,    W_below ← W_below − C V,   X_below ← X_below − X E

where W couples a front to the interface, and X the interface to the front, after the elimination of the fronts before
it. If A equals its transpose or adjoint, X follows from W. All operations are dense products or solves for many
columns, on any device. W has only the columns of interface dofs that are coupled to the front or to one before it in
its tree, so S is changed in these rows and columns only. In layers, on a GPU, these are the leading ones, since
interface dofs are ordered by the first layer that is coupled to them: for a cube this takes a third of the 2 n_I n_Γ²
operations with all columns. Of a symmetric or Hermitian S only the lower triangle is computed, on a GPU in panels.
"""
from __future__ import annotations

import numpy as np

from swell.core.errors import FactorisationError
from swell.dense.products import subtract_product
from swell.preconditioners.bddc.elimination import INDEFINITE, adjoint
from swell.preconditioners.bddc.fronts import Blocks, subtract
from swell.preconditioners.bddc.renumbering import numbers, renumbered
from swell.preconditioners.bddc.symmetry import HERMITIAN

PANEL = 2048            # columns of a panel of S: enough for a product at full speed


def schur(A, inner, boundary, factors, symmetry=HERMITIAN):
    """Return the Schur complement S = A_ΓΓ − A_ΓI A_II⁻¹ A_IΓ, a new device array of shape (own.size, own.size), in
    double precision.

    Parameters
    ----------
    A : CSRMatrix of float64 or complex128
        The matrix of a subdomain, its pattern symmetric.
    inner : int host array
        The interior dofs, in the order of the fronts.
    own : int host array
        The interface dofs, in the order of S.
    factors : Elimination or None
        The factors of the interior; None without interior dofs.
    symmetry : Symmetry

    Raises
    ------
    FactorisationError
        If S is not finite.
    """
    space, n, size = A.space, A.shape[0], inner.size
    met = np.zeros(boundary.size, np.int64)
    if factors is not None and space.name != "cpu":
        met = _met(A, inner, boundary, factors)
    order = np.argsort(met, kind="stable")
    place = numbers(space, np.concatenate((inner, boundary[order])), n)
    A = renumbered(A, place, place, A.shape)
    S = Blocks(A, [size, n]).dense(0, size, n)
    if factors is not None:
        _eliminate(S, A, factors, met[order], symmetry)
        if not space.finite(S):  # sync
            raise FactorisationError(INDEFINITE if factors.definite else
                                     "BDDC: the Schur complement of a subdomain overflows: its interior resonates")
    if symmetry.mirrors:
        for a, b in _panels(len(S)):
            S[a:b, b:] = symmetry.mirror(S[b:, a:b])
    if (order[1:] < order[:-1]).any():
        back = space.from_host(np.argsort(order))
        S = S[back][:, back]
    return S


def _eliminate(S, A, factors, met, symmetry):
    """Subtract A_ΓI A_II⁻¹ A_IΓ from S, in place; on a GPU the strict upper triangle of a symmetric or Hermitian S may
    be left out. The rows of A are in the order of the fronts, then of the interface; ``met``: of layers the first one
    that is coupled to each interface dof."""
    space, fronts, mirrors = A.space, factors.fronts, symmetry.mirrors
    sides = [fronts.couplings(side, met) for side in ((A,) if mirrors else (A, A.transpose()))]
    into, updates = [], [[] for _ in sides]      # of each front: to its parent's W, and Xᵀ
    for k, (one, *every) in enumerate(zip(factors.factors, *sides, strict=True)):
        s, (_, columns, places) = int(factors.ends[k + 1] - factors.ends[k]), every[0]
        into.append(places)
        both = [W for W, *_ in every]                                          # W, and Xᵀ
        for W, of in zip(both, updates, strict=True):
            for child in fronts.children[k]:
                subtract(space, W, fronts.into[child], into[child], of[child])
                of[child] = None
        X = both[1][:s].T if not mirrors else None if factors.definite else symmetry.mirror(both[0][:s].copy())
        V = one.left(both[0][:s])
        X = adjoint(V) if X is None else X
        if isinstance(columns, slice):
            for a, b in _panels(columns.stop):
                first = a if mirrors else 0
                subtract_product(space, S[None, first:columns.stop, a:b], X[None, first:], V[None, :, a:b])
        else:
            subtract(space, S, columns, columns, X @ V)
        for W, of, (C, right) in zip(both, updates, ((factors.C[k], V), (factors.E[k].T, X.T)), strict=False):
            update = C @ right
            update -= W[s:]
            of.append(update)


def _panels(n):
    """Return a list of (first, last + 1): the columns 0 to n − 1 cut into panels of `PANEL` columns."""
    return [(a, min(a + PANEL, n)) for a in range(0, n, PANEL)]


def _met(A, inner, boundary, factors):
    """Return the first layer that is coupled to each interface dof, an int host array; the number of layers if none is.
    Arguments as in `schur`."""
    space, n = A.space, A.shape[0]
    coupling = renumbered(A, numbers(space, boundary, n), numbers(space, inner, n), (boundary.size, inner.size))
    indptr, columns = space.to_host(coupling.indptr), space.to_host(coupling.indices)  # sync
    met = np.full(boundary.size, len(factors))
    some = np.flatnonzero(np.diff(indptr))
    met[some] = np.searchsorted(factors.ends, columns[indptr[some]], side="right") - 1     # columns are sorted
    return met
