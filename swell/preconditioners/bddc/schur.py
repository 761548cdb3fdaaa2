"""The Schur complement of a subdomain's interior, S = A_ΓΓ − A_ΓI A_II⁻¹ A_IΓ, dense, by elimination in blocks.

The interior is cut into layers, by distance in its graph from one dof (of each piece), so that a layer is coupled to
the next and the one before alone; thin ones are put together. Layers are eliminated one after the other,

    D = L Lᵀ,  V = L⁻¹ W,  E = L⁻¹ Cᵀ:     S ← S − Vᵀ V,   W ← A_next,Γ − Eᵀ V,   D ← A_next − Eᵀ E

with D the layer's matrix, W its coupling to the interface, C that of the next layer to it: a block tridiagonal Cholesky
factorisation. Everything is a dense product or a triangular solve for many columns, on any device: 2 n_I n_Γ²
operations (half of them where BLAS sees the symmetry of Vᵀ V, as NumPy's does) at the speed of a matrix product, where
a sparse solver would solve for n_Γ right-hand sides, and memory little beyond S.
"""
from __future__ import annotations

import numpy as np

from swell.core.errors import FactorisationError

THIN = 200              # dofs up to which a layer is joined by the next: the update of S is worth a product


def schur(space, matrix, own):
    """S as an array of the space, in double precision.

    Parameters
    ----------
    space : Space
    matrix : scipy.sparse.csr_array, shape (n, n)
        Of a subdomain, symmetric.
    own : int array
        Its dofs on the interface, in the order of S.

    Raises
    ------
    FactorisationError
        If A_II is not positive definite.
    """
    if space.name == "cpu":
        from scipy.linalg import solve_triangular
    else:
        from cupyx.scipy.linalg import solve_triangular
    mask = np.ones(matrix.shape[0], bool)
    mask[own] = False
    inner, send, xp = np.flatnonzero(mask), space.from_host, space.xp
    S = send(matrix[own][:, own].toarray())
    if not inner.size:
        return S
    blocks = [inner[block] for block in layers(matrix[inner][:, inner])]
    D, W = (send(matrix[blocks[0]][:, columns].toarray()) for columns in (blocks[0], own))
    try:
        for here, there in zip(blocks, [*blocks[1:], None], strict=True):
            L = xp.linalg.cholesky(D)
            V = solve_triangular(L, W, lower=True, check_finite=False)
            S -= V.T @ V
            if there is not None:
                rows = matrix[there]
                E = solve_triangular(L, send(rows[:, here].toarray().T), lower=True, check_finite=False)
                W = send(rows[:, own].toarray()) - E.T @ V
                D = send(rows[:, there].toarray()) - E.T @ E
    except np.linalg.LinAlgError:
        S[...] = np.nan
    if not bool(xp.isfinite(S).all()):  # sync
        raise FactorisationError("BDDC: the interior of a subdomain is not positive definite, and so A is not")
    return S


def layers(A):
    """The rows of each layer, from thin ones together; A couples none but neighbours."""
    from scipy.sparse.csgraph import breadth_first_order, connected_components
    count, piece = connected_components(A, directed=False)
    distance = np.zeros(A.shape[0], np.int64)
    for k in range(count):
        start = int(np.argmax(piece == k))
        order, before = breadth_first_order(A, start, directed=False)
        for row in order[1:]:
            distance[row] = distance[before[row]] + 1
    sizes, ends, size = np.bincount(distance), [], 0
    for k, more in enumerate(sizes):
        size += more
        if size >= THIN or k == sizes.size - 1:
            ends.append(k)
            size = 0
    block = np.searchsorted(ends, distance)
    return np.split(np.argsort(block, kind="stable"), np.cumsum(np.bincount(block))[:-1])
