"""Approximations of the Schur complement S = A₂₂ − A₂₁ A₁₁⁻¹ A₁₂ of a matrix with two fields, for `FieldSplit`.

A saddle point has A = [F Bᵀ; B −C], and so −S = C + B F⁻¹ Bᵀ. Let D be the diagonal of A₁₁.

- A matrix of the user's in place of ±S. For Stokes: the pressure's mass matrix divided by the viscosity, which is
  spectrally equivalent to −S (Silvester and Wathen 1994).
- "diagonal": A₂₂ − A₂₁ D⁻¹ A₁₂, as in SIMPLE (Patankar and Spalding 1972). "l1": D has the sums |a| of A₁₁'s rows.
- "lsc": the least-squares commutator or BFBt (Elman 1999; Elman, Howle, Shadid, Shuttleworth and Tuminaro 2006,
  scaled by D), for A₂₂ = 0:  S⁻¹ ≈ −P⁻¹ (A₂₁ D⁻¹ A₁₁ D⁻¹ A₁₂) P⁻¹ with P = A₂₁ D⁻¹ A₁₂.

The inner preconditioner always gets a matrix with a positive trace: ±S, or ±P. ``sign`` is the sign of S, −1 for a
saddle point. It is found by (v, S v) for a random v.

Cost: the inner preconditioner; "lsc" applies it twice, with three products between.
"""
import numpy as np

from swell.core.errors import InputError, naming
from swell.core.guests import canonical_csr
from swell.core.operator import Composite, Wrapper
from swell.core.space import accumulator
from swell.formats.csr import CSRMatrix
from swell.formats.product import Product

KINDS = "diagonal", "l1", "lsc"
SEED = 1994


class Blocks:
    """The four blocks of a matrix with two fields, and D: the diagonal of A₁₁, or if ``l1`` the sums |a| of its rows.

    Attributes
    ----------
    A11, A12, A21, A22 : CSRMatrix
    sign : int
        The sign of S.
    inverse : array
        D⁻¹.
    """

    def __init__(self, A, fields, l1):
        self._blocks = [fields.block(A, i, fields.own(j)) for i in (0, 1) for j in (0, 1)]
        self.A11, self.A12, self.A21, self.A22 = (block.matrix for block in self._blocks)
        self._l1, self.sign = l1, 1
        self._measure()

    def update(self, A):
        """Take the values of A, which has the same pattern."""
        for block in self._blocks:
            block.update(A)
        self._measure()

    def _measure(self):
        """Set ``inverse`` and ``sign`` for the values that the blocks have."""
        F, space = self.A11, self.A11.space
        D = F.modulus_sums().astype(F.dtype) if self._l1 else F.diagonal()
        row, zeros = space.find_true(D == 0)  # sync
        if zeros:
            raise InputError(f"FieldSplit(schur): the first field's diagonal has {zeros} zeros, the first in its row "
                             f"{row}, and the Schur complement needs its inverse: choose the fields so that the first "
                             "has a diagonal, or give schur a matrix and see that the diagonal is not zero")
        self.inverse = 1 / D
        v, product = space.empty(self.A22.shape[0], F.dtype), space.empty(1, accumulator(F.dtype))
        space.random(SEED, v)
        space.dot(v, self.A22.times(v) - self.A21.times(self.inverse * self.A12.times(v)), product)
        self.sign = -1 if float(space.to_host(product)[0].real) < 0 else 1  # sync

    def scaled_rows(self, M):
        """Return the values of D⁻¹ M, a new array."""
        return M.data * self.inverse[M.rows()]

    def scaled_columns(self, M):
        """Return the values of M D⁻¹, a new array."""
        return M.data * self.inverse[M.indices]

    @property
    def nbytes(self):
        return sum(block.nbytes for block in self._blocks) + self.inverse.nbytes


class GivenMatrix(Wrapper):
    """|S|⁻¹ by an inner preconditioner of the user's matrix, which stays as it is when A has new values."""

    def __init__(self, blocks, S, inner):
        matrix = read_matrix(S, blocks.A22)
        super().__init__(matrix.shape, matrix.dtype, matrix.space)
        self.inner = inner.build(matrix)

    def update(self, blocks):
        """Do nothing: the matrix is the user's."""

    keep_for = update

    def describe(self):
        return f"of the given matrix: {self.inner.describe()}"


class DiagonalSchur(GivenMatrix):
    """|S|⁻¹ by an inner preconditioner of ±(A₂₂ − A₂₁ D⁻¹ A₁₂).

    One product forms the matrix: (−A₂₁ D⁻¹, I) (A₁₂; A₂₂)."""

    def __init__(self, blocks, kind, inner):
        self._kind, self._right = kind, stacked(blocks.A12, blocks.A22)
        self._left, self._places, self._ones = beside_identity(blocks.A21)
        self._fill(blocks)
        self._product = Product(self._left, self._right)
        super().__init__(blocks, self._product.C, inner)

    def _fill(self, blocks):
        """Write the values of both factors, with the sign of S."""
        self._left.data[self._places] = -blocks.sign * blocks.scaled_columns(blocks.A21)
        self._left.data[self._ones] = blocks.sign
        self._right.data[:blocks.A12.nnz], self._right.data[blocks.A12.nnz:] = blocks.A12.data, blocks.A22.data

    def update(self, blocks):
        """Recompute the matrix and the inner preconditioner, in place."""
        self._fill(blocks)
        self._product.update(self._left, self._right)
        self.inner.update(self._product.C)

    @property
    def nbytes(self):
        return self.inner.nbytes + self._product.C.nbytes + self._left.nbytes + self._right.nbytes

    def describe(self):
        return f"{self._kind}: {self.inner.describe()}"


class LeastSquaresCommutator(Composite):
    """|S|⁻¹ ≈ P⁻¹ (∓A₂₁ D⁻¹ A₁₁ D⁻¹ A₁₂) P⁻¹, with an inner preconditioner of P = ∓A₂₁ D⁻¹ A₁₂."""

    scratch = ("_p", "_q", "_u", "_w")

    def __init__(self, blocks, inner):
        super().__init__(blocks.A22.shape, blocks.A22.dtype, blocks.A22.space)
        self._check(blocks)
        self._F = blocks.A11
        self._G = blocks.A12.with_values(blocks.scaled_rows(blocks.A12))              # D⁻¹ A₁₂
        self._H = blocks.A21.with_values(-blocks.sign * blocks.scaled_columns(blocks.A21))     # ∓A₂₁ D⁻¹
        self._B = blocks.A21.with_values(-blocks.sign * blocks.A21.data)              # ∓A₂₁
        self._product = Product(self._B, self._G)
        self.inner = inner.build(self._product.C)
        self.self_adjoint = self.inner.self_adjoint
        self._p, self._q = (self.space.empty(self.shape[0], self.dtype) for _ in range(2))
        self._u, self._w = (self.space.empty(self._F.shape[0], self.dtype) for _ in range(2))

    def _check(self, blocks):
        """Raise InputError unless A₂₂ = 0."""
        _, entries = self.space.find_true(blocks.A22.data != 0)  # sync
        if entries:
            raise InputError(f"FieldSplit(schur='lsc') needs A₂₂ = 0, and the second field's block has {entries} "
                             "entries that are not zero: use schur='diagonal', or give a matrix")

    def update(self, blocks):
        """Recompute the matrices and the inner preconditioner, in place."""
        self._check(blocks)
        for matrix, values in ((self._G, blocks.scaled_rows(blocks.A12)),
                               (self._H, -blocks.sign * blocks.scaled_columns(blocks.A21)),
                               (self._B, -blocks.sign * blocks.A21.data)):
            matrix.data[...] = values
            matrix.discard_adjoint()
        self._product.update(self._B, self._G)
        self.inner.update(self._product.C)

    def apply(self, x, out, alpha=1, beta=0):
        self.inner.apply(x, self._p)                                           # p = P⁻¹ x
        self._G.apply(self._p, self._u)                                        # u = D⁻¹ A₁₂ p
        self._F.apply(self._u, self._w)                                        # w = A₁₁ u
        self._H.apply(self._w, self._q)                                        # q = ∓A₂₁ D⁻¹ w
        self.inner.apply(self._q, out, alpha, beta)                            # P⁻¹ q

    def apply_adjoint(self, x, out, alpha=1, beta=0):
        self.inner.apply_adjoint(x, self._q)
        self._H.apply_adjoint(self._q, self._w)
        self._F.apply_adjoint(self._w, self._u)
        self._G.apply_adjoint(self._u, self._p)
        self.inner.apply_adjoint(self._p, out, alpha, beta)

    @property
    def revision(self):
        return self.inner.revision + sum(matrix.revision for matrix in (self._F, self._G, self._H))

    @property
    def nbytes(self):
        return self.inner.nbytes + sum(M.nbytes for M in (self._G, self._H, self._B, self._product.C))

    def describe(self):
        return f"lsc: {self.inner.describe()}"


def schur_inverse(blocks, choice, inner):
    """Return the operator |S|⁻¹ for ``blocks``; ``choice`` is one of `KINDS` or the user's matrix, ``inner`` the
    settings of a preconditioner. Its ``update`` takes the blocks."""
    if not isinstance(choice, str):
        return GivenMatrix(blocks, choice, inner)
    return LeastSquaresCommutator(blocks, inner) if choice == "lsc" else DiagonalSchur(blocks, choice, inner)


def read_matrix(S, like):
    """Return the user's Schur complement as a CSRMatrix of the space, shape and type of ``like``, a CSRMatrix.

    Raises
    ------
    InputError
        For another shape or space, complex values in a real system, or entries that are NaN or Inf.
    """
    if tuple(S.shape) != like.shape:
        raise InputError(f"FieldSplit(schur) has shape {tuple(S.shape)}: expected {like.shape}, the second field's")
    if np.dtype(S.dtype).kind == "c" and like.dtype.kind != "c":
        raise InputError("FieldSplit(schur) is complex and the system is real: give real values")
    if isinstance(S, CSRMatrix):
        if S.space.device_name != like.space.device_name:
            raise InputError(f"FieldSplit(schur) is on {S.space.device_name} and A on {like.space.device_name}: "
                             "build it there")
        return S if S.dtype == like.dtype else S.astype(like.dtype)
    with naming("FieldSplit(schur)"):
        matrix = canonical_csr(S)
    if not np.isfinite(matrix.data).all():
        raise InputError("FieldSplit(schur) has entries that are NaN or Inf: expected finite numbers")
    return CSRMatrix.from_scipy(matrix.astype(like.dtype), like.space)


def stacked(upper, lower):
    """Return a new CSRMatrix (upper; lower); its values are uninitialised, upper's before lower's."""
    space, xp, nnz = upper.space, upper.space.xp, upper.nnz + lower.nnz
    indptr = xp.concatenate([upper.indptr.astype(np.int64), lower.indptr[1:].astype(np.int64) + upper.nnz])
    indices = xp.concatenate([upper.indices, lower.indices])
    shape = upper.shape[0] + lower.shape[0], upper.shape[1]
    return CSRMatrix(space, indptr, indices, space.empty(nnz, upper.dtype), shape)


def beside_identity(M):
    """Return (a new CSRMatrix with the pattern of (M, I); the places of M's values in its data; the places of I's)."""
    space, xp, (m, n) = M.space, M.space.xp, M.shape
    every = xp.arange(m + 1)
    places, ones = xp.arange(M.nnz) + M.rows(), M.indptr[1:] + every[:-1]
    indices = space.empty(M.nnz + m, np.int64)
    indices[places], indices[ones] = M.indices, n + every[:-1]
    return CSRMatrix(space, M.indptr + every, indices, space.empty(M.nnz + m, M.dtype), (m, n + m)), places, ones
