"""The interiors of all subdomains together: B ≈ A_II⁻¹, the couplings to the interface, and the extension from it.

    E = Z − B (A_IΓ + A_II Z)

extends values on the interface into the interiors. With B = A_II⁻¹ this is the discrete harmonic extension −A_II⁻¹ A_IΓ
for any Z. An approximate B begins at Z: the near null vectors of each subdomain that fit the values on its interface
best, for constants their mean. So a near null vector is extended exactly, as Dohrmann (2007) demands of approximate
interior solvers; from zero, B would leave it with the energy of its error. The same E and its adjoint serve on both
sides, so M is as symmetric as B, and positive definite with B.

An application: two interior solves; with an approximate B also two products with A_II, and small ones.

With B = A_II⁻¹ a Krylov method needs the first of the two once. M inverts the interior rows: (A M v)_I = v_I. So the
interior parts of all vectors that it gives to M are multiples of the first one's, r_I = γ q, and A_II⁻¹ r_I is γ times
a solution that is known. This is PCBDDC's "exact Dirichlet trick", found from the vectors instead of by a change of the
right-hand side. On a CPU each application looks whether it holds up to √eps of the vector, and else solves. A part that
is left out of y remains in the residual, so it is solved for once it counts.
"""
from __future__ import annotations

import numpy as np

from swell.core.columns import Columns
from swell.core.registry import resolve
from swell.formats.csr import CSRMatrix
from swell.preconditioners.bddc.renumbering import numbers, renumbered
from swell.preconditioners.bddc.subdomains import entries
from swell.preconditioners.bddc.symmetry import HERMITIAN, product
from swell.preconditioners.direct import Direct

RANK = 1e-10            # singular values of near null vectors on a subdomain's interface below this are zero
SHORT = 1e-3            # a new right-hand side of the interiors is kept if it is longer than this times the last one


class Interiors:
    """Interior dofs, and their couplings to the interface.

    Parameters
    ----------
    A : CSRMatrix
        The result of ``subdomains.part``.
    interface : Interface
    subdomains : Subdomains
    settings : str or settings object
        The ``interior`` of a BDDC.
    unknowns : Unknowns
    symmetry : Symmetry
    dtype : numpy.dtype

    Attributes
    ----------
    solver : LinearOperator or None
        B; None without interior dofs.
    size : int
        Number of interior dofs.
    by_factors : bool
        The caller sets ``solver``, by the factors that Schur complements need anyway.
    """

    scratch = ("_r", "_y", "_w", "_c", "_known", "_solution")

    def __init__(self, A, interface, subdomains, settings, unknowns, symmetry, dtype):
        self.space, self.dtype, space, size = A.space, dtype, A.space, interface.dofs.size
        here = interface.number[:A.shape[0]]
        inner, outer = np.flatnonzero(here < 0), np.flatnonzero(here >= 0)
        self.size, self._inner, self.outer = inner.size, space.from_host(inner), space.from_host(outer)
        self.place = slice(None) if outer.size == size else space.from_host(here[outer])
        to_inner, to_outer = numbers(space, inner, A.shape[1]), space.from_host(interface.number)
        self._out_of = self._into = self.solver = self._fit = self._A_II = self._c = None
        rows = A.rows() if inner.size else None
        if inner.size and size:
            self._into = renumbered(A, to_inner, to_outer, (inner.size, size), rows).astype(dtype)           # A_IΓ
            self._out_of = (self._into.transpose(symmetry is HERMITIAN) if symmetry.mirrors else              # A_ΓI
                            _from_subdomains(space, interface, subdomains, inner, A.shape[1]).astype(dtype))
        self.by_factors = settings == "blocks" or settings == "direct" and space.name == "cpu"
        if inner.size and not self.by_factors:
            A_II = renumbered(A, to_inner, to_inner, (inner.size,) * 2, rows).astype(dtype)
            choice = resolve("precond", settings).restricted(A, lambda array: array[inner])
            self.solver = choice.build(A_II)
            if size and not isinstance(choice, Direct):
                self._A_II = A_II
                self._fit, self._values = _lifting(space, interface, subdomains, unknowns, inner, dtype)
                self._c = space.empty(self._fit.shape[0], dtype)
                self._back, self._spread = self._fit.transpose(), self._values.transpose()
        self._r, self._y, self._w = (space.empty(inner.size, dtype) for _ in range(3))
        self._known, self._solution = (space.xp.zeros(inner.size, dtype) for _ in range(2))     # q and A_II⁻¹ q

    def reduce(self, x, g, adjoint):
        """Write g = x_Γ + Eᴴ x_I, or with the adjoint of A; only this rank's part of the sum."""
        r, y = self._r, self._y
        r[...] = x[self._inner]
        if self._into is None:
            g.fill(0)
        else:
            self._solve_first(x, r, y, adjoint)
            product(self._out_of, self._into, y, g, -1, 0, adjoint)           # −A_ΓI B r_I
            if self._A_II is not None:
                self._w[...] = r
                product(self._A_II, self._A_II, y, self._w, -1, 1, adjoint)
                self._spread.apply(self._w, self._c)
                self._back.apply(self._c, g, 1, 1)                             # + Zᵀ (r_I − A_II B r_I)
        if g.size:
            g[self.place] += x[self.outer]

    def extend(self, z, out, alpha, beta, adjoint):
        """Write out = α y + β out in the interiors, for y = B x_I + E z, and x of the last `reduce`."""
        r, y = self._r, self._y
        if self._into is not None:
            if self._A_II is not None:
                self._fit.apply(z, self._c)
                self._values.apply(self._c, self._w)                           # Z z
                product(self._A_II, self._A_II, self._w, r, -1, 1, adjoint)
            product(self._into, self._out_of, z, r, -1, 1, adjoint)
        if self.size:
            self._solve(r, y, adjoint)                                         # B (x_I − A_IΓ z − A_II Z z)
            if self._A_II is not None:
                y += self._w
            self.put(out, self._inner, y, alpha, beta)

    def put(self, out, places, z, alpha, beta):
        """Set out = α z + β out at ``places``."""
        if alpha != 1:
            z = z * self.dtype.type(alpha)
        out[places] = z if beta == 0 else z + out[places] * self.dtype.type(beta)

    def _solve_first(self, x, r, y, adjoint):
        """Write y = B r for r = x_I, or Bᴴ r; γ times the known solution if r = γ q."""
        if adjoint or self._A_II is not None or self.space.name != "cpu" or isinstance(x, Columns):
            return self._solve(r, y, adjoint)
        q, rest, norm = self._known, self._w, np.linalg.norm
        length, left_out, whole = norm(q), 0.0, norm(x)
        if length > 0:
            factor = np.vdot(q, r) / np.vdot(q, q)                   # exactly 1 for r = q
            np.multiply(q, factor, out=rest)
            np.subtract(r, rest, out=rest)
            left_out = norm(rest)
            if left_out <= np.sqrt(np.finfo(self.dtype).eps) * whole:
                np.multiply(self._solution, factor, out=y)
                return
        self._solve(r, y, adjoint)
        # A short remainder of q's own solve is not kept: a repeated solve must find q again, and give the same bits.
        if not length > 0 or norm(r) > SHORT * length or left_out > 0.5 * whole:
            q[...], self._solution[...] = r, y

    def _solve(self, r, y, adjoint):
        """Write y = B r, or Bᴴ r."""
        (self.solver.apply_adjoint if adjoint else self.solver.apply)(r, y)

    @property
    def nbytes(self):
        parts = (self.solver, self._into, self._out_of, self._A_II, self._fit)
        return sum(part.nbytes for part in parts if part is not None)


def _from_subdomains(space, interface, subdomains, inner, n):
    """Return A_ΓI as a new CSRMatrix, from the subdomain matrices: other ranks may have the rows of A. ``inner``: the
    interior dofs, of n."""
    import scipy.sparse as sp
    place = np.full(n, -1)
    place[inner] = np.arange(inner.size)
    data, (rows, columns) = entries(subdomains.matrices, subdomains.dofs)
    there = (interface.number[rows] >= 0) & (place[columns] >= 0)
    at = interface.number[rows[there]], place[columns[there]]
    return CSRMatrix.from_scipy(sp.coo_array((data[there], at), (interface.dofs.size, inner.size)).tocsr(), space)


def _lifting(space, interface, subdomains, unknowns, inner, dtype):
    """Return (fit, values), sparse matrices with Z = values fit: the coefficients of each subdomain's near null vectors
    that fit values on the interface best, and these vectors in the interior. ``inner``: the interior dofs."""
    modes = unknowns.at(subdomains.names(interface.dofs))[2]
    place = np.full(interface.number.size, -1)
    place[inner] = np.arange(inner.size)
    fits, values, first = [], [], 0
    for dofs, at, copies in zip(subdomains.dofs, interface.local, interface.copies, strict=True):
        inside = place[np.delete(dofs, at)]
        if not inside.size:
            continue
        here = unknowns.at(np.asarray(subdomains.name_of(inner[inside])))[2]
        fit = np.linalg.pinv(modes[copies], RANK)
        number = first + np.arange(len(fit))
        fits.append((fit, number[:, None], copies[None]))
        values.append((here, inside[:, None], number[None]))
        first += len(fit)
    shapes = (first, interface.dofs.size), (inner.size, first)
    return tuple(CSRMatrix.from_scipy(_summed(parts, shape).astype(dtype), space) for parts, shape in
                 zip((fits, values), shapes, strict=True))


def _summed(parts, shape):
    """Return a scipy.sparse.csr_array of ``shape``, the sum of dense ``parts``: (values, rows, columns)."""
    import scipy.sparse as sp
    data, rows, columns = zip(*((value.ravel(), *(np.broadcast_to(at, value.shape).ravel() for at in places))
                                for value, *places in parts), strict=True)
    A = sp.coo_array((np.concatenate(data), (np.concatenate(rows), np.concatenate(columns))), shape).tocsr()
    A.eliminate_zeros()
    return A
