"""A_II⁻¹ for all subdomains on a CPU, by the factors of fronts that Schur complements need anyway.

    r_below ← r_below − C D⁻¹ r,   r ← D⁻¹ r,    front after front; then backwards   z ← r − D⁻¹ C' z_below

D⁻¹ and D⁻¹ C' of each front are stored, (C D⁻¹)ᵀ as well unless it is the same array, as for real symmetric matrices.
Subdomains are independent: threads share them, and the bits do not depend on their number. Equal interiors are stored
once.

Storage: Σ s (s + b) over the fronts of every different interior, s rows with b below, in the precision of A; twice the
b part without symmetry. Cost: an application reads each number once, and the numbers of the b part twice.
"""
from __future__ import annotations

import numpy as np

from swell.core.operator import LinearOperator
from swell.preconditioners.bddc.symmetry import HERMITIAN, SYMMETRIC


class FrontInverses:
    """D⁻ᵀ, and the blocks beside it, of every front of an ``Elimination``, which can then be freed."""

    def __init__(self, factors, dtype, symmetry=HERMITIAN):
        self.ends, self.below, sizes = factors.ends, factors.fronts.below, np.diff(factors.ends)
        beside = sizes * [rows.size for rows in self.below]
        self.at, self.beside = (np.concatenate(([0], np.cumsum(of))) for of in (sizes ** 2, beside))
        shared = symmetry is SYMMETRIC or symmetry is HERMITIAN and dtype.kind == "f"
        self.D, self.up = np.empty(self.at[-1], dtype), np.empty(self.beside[-1], dtype)
        self.down = self.up if shared else np.empty_like(self.up)
        for k, (one, E) in enumerate(zip(factors.factors, factors.E, strict=True)):
            D = one.inverse(len(E)).T
            self.D[self.at[k]:self.at[k + 1]] = D.ravel()
            part = slice(self.beside[k], self.beside[k + 1])
            self.up[part] = one.back(E).ravel()
            if not shared:
                self.down[part] = self.up[part].conj() if symmetry is HERMITIAN else (D @ factors.C[k].T).ravel()


class FrontSolver(LinearOperator):
    """A_II⁻¹ for all subdomains.

    Parameters
    ----------
    space : Space
    inverses : list of FrontInverses
        One for every different interior.
    places : list of lists of int arrays
        For each interior and each of its subdomains: the places of its dofs among all interior dofs, in the order of
        the fronts.
    n : int
        Number of interior dofs of all subdomains.
    dtype : numpy.dtype
    spd : bool
        All interiors are positive definite.
    """

    scratch = ("_x",)

    def __init__(self, space, inverses, places, n, dtype, spd=True):
        super().__init__((n, n), np.dtype(dtype), space)
        self.spd, self._x, self.interiors = spd, space.empty(n, self.dtype), len(inverses)
        self._kernels = space.kernels("swell.preconditioners.bddc", "fronts", self.dtype)
        self._order = np.concatenate([place for of in places for place in of])
        trees, fronts, below, first, at, beside, row = [], [], [], 0, 0, 0, 0
        lists = 0
        for one, of in zip(inverses, places, strict=True):
            count, ptr = len(one.below), lists + np.cumsum([0] + [rows.size for rows in one.below])
            fronts.append(np.stack((one.ends[:-1], one.ends[1:], ptr[:-1], ptr[1:], at + one.at[:-1],
                                    beside + one.beside[:-1]), axis=1))
            below += one.below
            for place in of:
                trees.append((first, first + count, row))
                row += place.size
            first, lists, at, beside = first + count, int(ptr[-1]), at + one.D.size, beside + one.up.size
        self._trees, self._fronts, self._below = np.array(trees), np.concatenate(fronts), np.concatenate(below)
        self._D, self._up = (np.concatenate([getattr(one, name) for one in inverses]) for name in ("D", "up"))
        same = all(one.down is one.up for one in inverses)
        self._down = self._up if same else np.concatenate([one.down for one in inverses])

    def apply(self, x, out, alpha=1, beta=0, adjoint=False):
        self._x[...] = x[self._order]
        beside = (self._up, self._down) if adjoint else (self._down, self._up)
        self._kernels.solve(self._trees, self._fronts, self._below, self._D, *beside, self._x, adjoint)
        if beta == 0:
            out[self._order] = self._x if alpha == 1 else self.dtype.type(alpha) * self._x
        else:
            out *= self.dtype.type(beta)
            out[self._order] += self.dtype.type(alpha) * self._x

    def apply_adjoint(self, x, out, alpha=1, beta=0):
        self.apply(x, out, alpha, beta, adjoint=True)

    @property
    def nbytes(self):
        arrays = {id(array): array for array in (self._D, self._up, self._down, self._fronts, self._below, self._order)}
        return sum(array.nbytes for array in arrays.values())

    def describe(self):
        return (f"nested dissection, {self.interiors} different interiors, "
                f"{self._D.size + self._up.size} entries in their factors")
