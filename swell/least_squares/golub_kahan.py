"""Golub–Kahan bidiagonalisation of A, or of [A; damp I]; LSQR and LSMR share it.

    β₁ u₁ = b,   α₁ v₁ = Aᴴ u₁
    β_{k+1} u_{k+1} = A v_k − α_k u_k,   α_{k+1} v_{k+1} = Aᴴ u_{k+1} − β_{k+1} v_k

Golub and Kahan 1965; Paige and Saunders, LSQR, 1982, (3.1). A step: 1 product with A, 1 with Aᴴ, 2 reductions, no host
read. Vector traffic besides the products: 3 words a row and 3 a column. Storage: u and A v (rows), v and Aᴴ u
(columns), and the matrix a second time, as Aᴴ: a product with the stored Aᴴ needs no atomics.

Differs from the textbook: u and v are not scaled, but divided by their norms where they are used. For damping, the rows
damp·I are below A, and zeros are below b, so that the minimised function does not depend on a starting vector. With
scaled columns, A D replaces A, and x = D y.
"""
from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from swell.core.space import accumulator


class Stacked:
    """The matrix [A D; damp D] that the process bidiagonalises, and its adjoint.

    Parameters
    ----------
    A : CSRMatrix, shape (m, n)
    damp : float
    D : array, shape (n,), or None
        Real factors of the columns.

    Attributes
    ----------
    rows, columns : int
        Lengths of u and v.
    below : int
        First entry of u that belongs to damp; the entries between the rows of A and this one are zero.
    """

    def __init__(self, A, damp, D):
        self.space, self.dtype, self.D = A.space, A.dtype, D
        self.A = A if D is None else A.scaled(None, D)
        self.adjoint = self.A.transpose(conjugate=True)
        self.m, self.columns = A.shape
        self.below = self.space.padded(self.m) if damp else self.m
        self.rows = self.below + (self.columns if damp else 0)
        self.damp = None
        if damp:
            self.damp = self.space.empty(self.columns, self.dtype)
            self.damp[...] = damp if D is None else damp * D
            self.part = self.space.empty(self.columns, self.dtype)

    def multiply(self, v, out):
        """Set ``out = [A D; damp D] v``, in place; ``out`` has ``rows`` entries."""
        self.A.apply(v, out[:self.m])
        if self.damp is not None:
            self.space.copy(v, out[self.below:])
            self.space.multiply(self.damp, out[self.below:])

    def multiply_adjoint(self, u, out):
        """Set ``out = [A D; damp D]ᴴ u``, in place; ``out`` has ``columns`` entries."""
        self.adjoint.apply(u[:self.m], out)
        if self.damp is not None:
            self.space.copy(u[self.below:], self.part)
            self.space.multiply(self.damp, self.part)
            self.space.axpy(1, self.part, out)

    def norm_frobenius(self) -> float:
        """Return ‖A D‖_F, without damp."""
        return self.A.norm_frobenius()

    def x_of(self, y, x):
        """Set x = D y, in place; y is the solution for the scaled columns."""
        self.space.copy(y, x)
        if self.D is not None:
            self.space.multiply(self.D.astype(self.dtype), x)


@dataclass(frozen=True)
class LeastSquaresMethod(ABC):
    """Settings of a method for least squares."""

    problem = "any m × n matrix: min ‖b − A x‖² + damp² ‖x‖²"
    cost = "1 product and 1 with Aᴴ, 2 reductions"

    @abstractmethod
    def bind(self, system, workspace, loop) -> "Bidiagonalisation":
        """Return the iteration for one ``Stacked`` system, with vectors from the workspace and kernels for the loop."""


class Bidiagonalisation(ABC):
    """The process bound to a system, with arrays for y and for the scalars of a method.

    On entry to ``start``, u is the residual of the starting vector x₀; the solution is then x₀ + D y.
    """

    def __init__(self, system, workspace, loop, stem, slots):
        self.system, self.loop = system, loop
        self.u, self.Av = (workspace.array(name, system.rows, system.dtype) for name in ("u", "A v"))
        self.v, self.Au, self.y = (workspace.array(name, system.columns, system.dtype) for name in ("v", "Aᴴ u", "y"))
        self.s = workspace.array("scalars", len(slots), accumulator(system.dtype))
        self.process = loop.kernels("swell.least_squares", "golub_kahan", system.dtype)
        self.step = loop.kernels("swell.least_squares", stem, system.dtype)

    def first(self, limits):
        """Compute α₁, β₁ and v₁ from u, and set y = 0; store the two ``limits`` in the slots ALLOWED and NORMAL."""
        self.y.fill(0)
        self.v.fill(0)
        self.Av.fill(0)                                                        # the gap before damp's rows stays 0
        self.process.first(self.u, self.s, *limits)                            # β = ‖u‖
        self.system.multiply_adjoint(self.u, self.Au)                          # Aᴴ u
        self.process.right(self.Au, self.v, self.s)                            # v = Aᴴ u/β;  α = ‖v‖

    def advance(self):
        """Compute the next column of the bidiagonal matrix: the new u, v, β and α replace the old ones."""
        self.system.multiply(self.v, self.Av)                                  # A v
        self.process.left(self.Av, self.u, self.s)                             # u = A v/α − (α/β) u;  β' = ‖u‖
        self.system.multiply_adjoint(self.u, self.Au)                          # Aᴴ u
        self.process.right(self.Au, self.v, self.s)                            # v = Aᴴ u/β' − (β'/α) v;  α' = ‖v‖

    @abstractmethod
    def start(self, limits):
        """Set up the first step from u, and test u for convergence.

        ``limits``: (‖r‖ at which the equations count as solved, ‖Aᴴ r‖/‖r‖ at which the least-squares problem does).
        """

    @abstractmethod
    def body(self):
        """Do one iteration, in place in y, with its convergence test."""
