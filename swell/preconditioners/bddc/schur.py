"""The Schur complement of a subdomain's interior, S = A_ΓΓ − A_ΓI A_II⁻¹ A_IΓ, dense, layer by layer.

With the factors and E of the interior's layers (elimination.py), which subdomains with equal interiors share,

    positive definite:  V = L⁻¹ W:   S ← S − Vᴴ V,   W ← A_next,Γ − Eᴴ V
    every other matrix: V = D⁻¹ W:   S ← S − X V,    W ← A_next,Γ − C V,   X ← A_Γ,next − X E

where W couples a layer to the interface, and X the interface to the layer, after the elimination of the layers before
it. If A equals its transpose or adjoint, X follows from W. All operations are dense products or solves for many
columns, on any device, in place on S and W. Interface dofs are ordered by the first layer that is coupled to them. So W
has only the leading columns, and its product changes only the leading rows and columns of S. For a cube this takes a
third of the 2 n_I n_Γ² operations with all columns. Of a symmetric or Hermitian S only the lower triangle is computed,
in panels, which takes a little more than half of that.
"""
from __future__ import annotations

import numpy as np

from swell.core.errors import FactorisationError
from swell.dense.products import subtract_product
from swell.preconditioners.bddc.elimination import INDEFINITE, Blocks
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
        The interior dofs, in the order of the layers.
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
    ends, met = ([0], np.zeros(boundary.size, np.int64)) if factors is None else \
        (factors.ends, _met(A, inner, boundary, factors))
    order = np.argsort(met, kind="stable")
    place = numbers(space, np.concatenate((inner, boundary[order])), n)
    A = renumbered(A, place, place, A.shape)
    blocks = Blocks(A, np.append(ends, n))
    last = len(ends) - 1
    S = blocks.dense(last, size, n)
    if factors is not None:
        active = size + np.searchsorted(met[order], np.arange(len(factors)), side="right")   # end of W's columns
        W = blocks.dense(0, size, active[0])
        X = None if symmetry.mirrors else blocks.dense(last, 0, ends[1])[:active[0] - size]
        for k, one in enumerate(factors.factors):
            here, keep = active[k] - size, None if factors.definite or X is not None else W.copy()
            V = one.left(W)
            left = V.conj().T if factors.definite else X if X is not None else symmetry.mirror(keep)
            for a, b in _panels(here):
                first = a if symmetry.mirrors else 0
                subtract_product(space, S[None, first:here, a:b], left[None, first:], V[None, :, a:b])  # S ← S − left V
            if k + 1 < len(factors):
                W = blocks.dense(k + 1, size, active[k + 1])
                subtract_product(space, W[None, :, :here], factors.C[k][None], V[None])
                if X is not None:
                    before, X = X, blocks.dense(last, *ends[k + 1:k + 3])[:active[k + 1] - size]
                    subtract_product(space, X[None, :here], before[None], factors.E[k][None])
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
