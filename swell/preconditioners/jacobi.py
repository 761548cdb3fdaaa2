"""Jacobi: M = D⁻¹, the inverse of the diagonal. Saad, Iterative Methods, section 10.2.

An application reads D⁻¹ and a vector and writes a vector (3 words a row), fused with the inner products that CG needs.
For CG on a Hermitian matrix ``scaling="jacobi"`` gives the same iterates at less cost: it scales the system once.
"""
from dataclasses import dataclass

import numpy as np

from swell.core.operator import LinearOperator
from swell.core.preconditioner import Preconditioner
from swell.formats.diagonal import nonzero_diagonal


@dataclass(frozen=True)
class Jacobi(Preconditioner):
    """The inverse of the diagonal."""

    problem = "any matrix with a diagonal without zeros"
    cost = "3 words a row"

    def build(self, A):
        return JacobiOperator(A)


class JacobiOperator(LinearOperator):
    """z = D⁻¹ r for one matrix.

    Raises
    ------
    InputError
        If a diagonal entry is zero.
    """

    def __init__(self, A):
        super().__init__(A.shape, A.dtype, A.space)
        self.inverse = A.space.empty(A.shape[0], A.dtype)
        self._conjugate = None
        self.update(A)
        self._kernels = A.space.kernels("swell.core", "vector", A.dtype)

    def update(self, A):
        """Invert the diagonal of a matrix of the same shape, into ``inverse``."""
        with np.errstate(over="ignore", invalid="ignore"):       # of denormal numbers: the iteration ends as NONFINITE
            self.inverse[...] = 1 / nonzero_diagonal(A, "the Jacobi preconditioner")
        if self._conjugate is not None:
            self._conjugate[...] = self.inverse.conj()

    def apply(self, x, out, alpha=1, beta=0):
        self._multiply(self.inverse, x, out, alpha, beta)

    def apply_adjoint(self, x, out, alpha=1, beta=0):
        if self._conjugate is None:              # made at the first use; later calls allocate nothing
            self._conjugate = self.inverse.conj()
        self._multiply(self._conjugate, x, out, alpha, beta)

    def _multiply(self, d, x, out, alpha, beta):
        """Write out = alpha diag(d) x + beta out."""
        kind = out.dtype.type
        self._kernels.multiply_add(d, x, out, kind(alpha), kind(beta))

    def apply_dots(self, x, out, w, dots):
        self._kernels.multiply_dots(self.inverse, x, out, w, dots)

    @property
    def nbytes(self):
        return self.inverse.nbytes

    def describe(self):
        return "Jacobi()"
