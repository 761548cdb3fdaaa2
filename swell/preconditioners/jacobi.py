"""Jacobi: M = D⁻¹, the inverse of the diagonal. Saad, Iterative Methods, section 10.2.

An application reads D⁻¹ and a vector and writes a vector (3 words a row), fused with the inner products that CG needs.
With CG on a Hermitian matrix the same iterates come cheaper from ``scaling="jacobi"``, which scales the system once.
"""
from __future__ import annotations

from dataclasses import dataclass

from swell.core.errors import InputError
from swell.core.operator import LinearOperator
from swell.preconditioners.preconditioner import Preconditioner


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
        """Take the diagonal of another matrix, in place."""
        self.inverse[...] = 1 / nonzero_diagonal(A, "the Jacobi preconditioner")
        if self._conjugate is not None:
            self._conjugate[...] = self.inverse.conj()

    def apply(self, x, out, alpha=1, beta=0):
        self._multiply(self.inverse, x, out, alpha, beta)

    def apply_adjoint(self, x, out, alpha=1, beta=0):
        if self._conjugate is None:              # at its first use, so that loops need not allocate
            self._conjugate = self.inverse.conj()
        self._multiply(self._conjugate, x, out, alpha, beta)

    def _multiply(self, d, x, out, alpha, beta):
        kind = out.dtype.type                    # one type, one compilation
        self._kernels.multiply_add(d, x, out, kind(alpha), kind(beta))

    def apply_dots(self, x, out, w, dots):
        self._kernels.multiply_dots(self.inverse, x, out, w, dots)

    @property
    def nbytes(self):
        return self.inverse.nbytes

    def describe(self):
        return "Jacobi()"


def nonzero_diagonal(A, owner):
    """The diagonal of A; an error that names ``owner`` and the first zero if there is one."""
    d = A.diagonal()
    xp = A.space.xp
    zeros = int(xp.count_nonzero(d == 0))
    if zeros:
        first = int(xp.argmax(d == 0))
        raise InputError(f"{owner} divides by the diagonal, and {zeros} of {d.size} diagonal entries are zero (the "
                         f"first in row {first}): use method='direct', or bring large entries onto the diagonal, by "
                         f"A[order] x = b[order] with order = swell.transversal(A)")
    return d
