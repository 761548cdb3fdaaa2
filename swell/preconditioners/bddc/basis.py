"""Local problems by a change of basis (Klawonn and Widlund 2006, section 4; Li and Widlund 2006): constraints become
unknowns.

For the constraints C of a subdomain let Q and Z be orthonormal bases of the range of Cᵀ and of the null space of C.
Then the local correction, the coarse basis and the coarse matrix are

    K = Z (Zᵀ S Z)⁻¹ Zᵀ,   Ψ = (I − K S) C⁺,   Σ = Ψᵀ S Ψ,   C⁺ = Cᵀ (C Cᵀ)⁻¹.

Zᵀ S Z is positive definite where the bordered matrix [S Cᵀ; C 0] is nonsingular, and has n − c rows instead of n + c for
n dofs and c constraints. Z is block diagonal, a block for each class: a QR factorisation of its constraints. Cost: two
products of S with these blocks, one inversion, and products for K.
"""
from __future__ import annotations

import numpy as np


def blocks_of(C):
    """Return a list of (dofs, Q⁺, Z) for the classes of a subdomain: the dofs that constraints C couple, int arrays,
    with the columns of C⁺ and of Z on these dofs; a dof without constraints is no class.

    C is a host array with a constraint a row. Rows of C that have common dofs belong to one class."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components
    some = csr_array(C != 0)
    found = []
    if not len(C):
        return found
    _, label = connected_components(some @ some.T, directed=False)
    for rows in (np.flatnonzero(label == k) for k in range(int(label.max()) + 1)):
        dofs = np.flatnonzero((C[rows] != 0).any(axis=0))
        Q, R = np.linalg.qr(C[np.ix_(rows, dofs)].conj().T, mode="complete")
        c = rows.size
        found.append((rows, dofs, np.linalg.solve(R[:c], Q[:, :c].conj().T).conj().T, Q[:, c:]))
    return found


def transformation(C):
    """Return host arrays (C⁺, Z) for the constraints ``C``, a host array with a constraint a row: C C⁺ = I, C Z = 0,
    Zᵀ Z = I."""
    c, n = C.shape
    plus, Z, first = np.zeros((n, c)), np.zeros((n, n - c)), 0
    free = np.ones(n, bool)
    for rows, dofs, of_rows, rest in blocks_of(C):
        plus[np.ix_(dofs, rows)] = of_rows
        Z[dofs, first:first + rest.shape[1]] = rest
        free[dofs] = False
        first += rest.shape[1]
    Z[np.flatnonzero(free), np.arange(first, n - c)] = 1
    return plus, Z
