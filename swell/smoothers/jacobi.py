"""Jacobi sweeps, damped: x ← x + ω D⁻¹ (b − A x). Equation (4.1) of the paper that smoother.py names, where ω = 1.

For matrices with a diagonal without zeros. For an SPD matrix A it converges in the A-norm if 2D/ω − A is SPD too.

A sweep: one launch, which reads the matrix (modified SELL: 12 bytes an off-diagonal, 8 a diagonal, double), b and x,
and writes x: 24 bytes a row besides the matrix. Storage: the matrix in modified SELL and two vectors.

Differs from the paper: slices have 32 rows, since nothing is shared inside a slice. Damping smooths oscillating errors,
which the undamped form does not. For a Laplacian in two dimensions 2/3 is between the best damping, 4/5, and the safe
one.
"""
from __future__ import annotations

from dataclasses import dataclass

from swell.core.errors import InputError
from swell.core.settings import real
from swell.formats.diagonal import nonzero_diagonal
from swell.formats.modified_sell import ModifiedSELL
from swell.smoothers.smoother import Smoother, TwoBufferOperator

HEIGHT = 32             # rows of a slice: a warp


@dataclass(frozen=True)
class JacobiSmoother(Smoother):
    """Jacobi sweeps, damped by ω.

    Attributes
    ----------
    omega : float
        Damping, above 0 and at most 2; 1 is the method of Jacobi.
    """

    omega: float = 1.0

    problem = "any matrix with a diagonal without zeros; converges if 2D/ω − A and A are SPD"
    cost = "a sweep: 1 launch, the matrix and 3 words a row"

    def __post_init__(self):
        super().__post_init__()
        if not real(self.omega) or not 0 < self.omega <= 2:
            raise InputError(f"JacobiSmoother(omega={self.omega!r}): expected a number above 0 and at most 2, such as "
                             "0.7")

    def build(self, A):
        return JacobiSmootherOperator(A, self)


class JacobiSmootherOperator(TwoBufferOperator):
    """Jacobi sweeps on one matrix.

    Raises
    ------
    InputError
        If a diagonal entry is zero.
    """

    self_adjoint = True

    def __init__(self, A, settings):
        super().__init__(A, settings)
        nonzero_diagonal(A, "the Jacobi smoother")
        self.matrix = ModifiedSELL(height=HEIGHT).build(A)
        self._omega = A.dtype.type(settings.omega)
        self._kernels = A.space.kernels("swell.smoothers", "pointwise", A.dtype)

    def update(self, A):
        super().update(A)
        nonzero_diagonal(A, "the Jacobi smoother")
        self.matrix.update(A)

    def _step(self, b, x, out, k, zero):
        m = self.matrix
        self._kernels.jacobi(m.slice_ptr, m.diag, m.entries, m.col_idx, b, x, out, self._omega, zero, HEIGHT)

    @property
    def nbytes(self):
        return self.matrix.nbytes + self._other.nbytes + self._y.nbytes

    def describe(self):
        return f"JacobiSmoother(sweeps={self.settings.sweeps}, omega={self.settings.omega:g})"
