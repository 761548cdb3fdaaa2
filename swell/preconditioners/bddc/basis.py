"""Local problems by a change of basis: constraints become unknowns (Klawonn and Widlund 2006, section 4; Li and Widlund
2006).

For the constraints C of a subdomain let the columns of Z be an orthonormal basis of the null space of C. Then the local
correction, the coarse bases and the coarse matrix are

    K = Z (Zᵀ S Z)⁻¹ Zᵀ,   Ψ = (I − K S) C⁺,   Φᵀ = (C⁺)ᵀ (I − S K),   Σ = Φᵀ S Ψ,   C⁺ = Cᵀ (C Cᵀ)⁻¹.

Zᵀ S Z has n − c rows for n dofs and c constraints; the bordered matrix [S Cᵀ; C 0] has n + c. It is definite where S
is semidefinite and the bordered matrix nonsingular. Z is block diagonal, a QR factorisation of the constraints of each
class. Cost: an inversion, and four products of an n × n matrix with these blocks.
"""
from __future__ import annotations

import numpy as np


class Basis:
    """Z and C⁺ for the constraints of one subdomain.

    Parameters
    ----------
    space : Space
    C : numpy.ndarray, shape (c, n)
        A constraint a row, from `Constraints.matrix`. Constraints with common dofs are independent.
    """

    def __init__(self, space, C):
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import connected_components
        self.space, (c, n) = space, C.shape
        self.rows, self._blocks, first, plus, free = n - c, [], 0, np.zeros((n, c)), np.ones(n, bool)
        some = csr_array(C != 0)
        count, label = connected_components(some @ some.T, directed=False) if c else (0, None)
        for rows in (np.flatnonzero(label == k) for k in range(count)):
            dofs = np.flatnonzero((C[rows] != 0).any(axis=0))
            Q, R = np.linalg.qr(C[np.ix_(rows, dofs)].T, mode="complete")
            plus[np.ix_(dofs, rows)] = np.linalg.solve(R[:rows.size], Q[:, :rows.size].T).T
            columns = slice(first, first + dofs.size - rows.size)
            self._blocks.append((space.from_host(dofs), columns, space.from_host(Q[:, rows.size:].copy())))
            free[dofs], first = False, columns.stop
        self._free, self._after, self.plus = space.from_host(np.flatnonzero(free)), first, space.from_host(plus)

    def times(self, S):
        """Return S Z, a new device array; S has n columns."""
        out = self.space.xp.empty((len(S), self.rows), S.dtype)
        for dofs, columns, Z in self._blocks:
            out[:, columns] = S[:, dofs] @ Z
        out[:, self._after:] = S[:, self._free]
        return out

    def times_transposed(self, X):
        """Return X Zᵀ, a new device array; X has n − c columns."""
        out = self.space.xp.zeros((len(X), len(self.plus)), X.dtype)
        for dofs, columns, Z in self._blocks:
            out[:, dofs] = X[:, columns] @ Z.T
        out[:, self._free] = X[:, self._after:]
        return out

    def reduced(self, S):
        """Return Zᵀ S Z, a new device array."""
        return self.times(self.times(S).T).T

    def parts(self, S, X):
        """Return (K, Ψ, Φᵀ, Σ), new device arrays, for the Schur complement S and X = (Zᵀ S Z)⁻¹."""
        K = self.times_transposed(self.times_transposed(X).T).T
        from_right, from_left = S @ self.plus, self.plus.T @ S
        basis = self.plus - K @ from_right
        return K, basis, self.plus.T - from_left @ K, from_left @ basis
