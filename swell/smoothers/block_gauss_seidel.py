"""Block Gauss–Seidel: slices of rows solve their blocks in turn, with the newest values of all other rows.

Section 4.3 of the paper that smoother.py names. For matrices with a diagonal without zeros, on a CPU: blocks wait for
one another, which leaves a GPU idle. With exact inner solves each sweep reduces the A-norm of the error for every SPD
matrix.

A sweep reads the matrix in modified SELL, b and x, and writes x, on one core. Storage: the matrix; "exact" also n ·
height scalars. ``block_jacobi.py`` describes the inner solvers.
"""
from __future__ import annotations

from dataclasses import dataclass, replace

from swell.core.errors import InputError
from swell.core.settings import one_of
from swell.smoothers.block_jacobi import INNER, Blocks, check_inner
from swell.smoothers.gauss_seidel import DIRECTIONS, REVERSED
from swell.smoothers.smoother import Smoother, SmootherOperator


@dataclass(frozen=True)
class BlockGaussSeidel(Smoother):
    """Gauss–Seidel across blocks of rows, on a CPU.

    Attributes
    ----------
    direction : str
        "forward", "backward", or "symmetric": forward, then backward, in one sweep.
    inner, height, inner_sweeps, inner_tolerance, omega
        See `BlockJacobiSmoother`.
    """

    direction: str = "symmetric"
    inner: str = "exact"
    height: int = 64
    inner_sweeps: int = 5
    inner_tolerance: float = 0.0
    omega: float = 1.0

    problem = "any matrix with a diagonal without zeros, on a CPU; converges for SPD ones with inner='exact'"
    cost = "a sweep: the matrix and 4 words a row, and the inner solves, on one core"

    def __post_init__(self):
        super().__post_init__()
        one_of(self, "direction", DIRECTIONS)
        check_inner(self)

    def build(self, A):
        """Return the BlockGaussSeidelOperator for a CSR matrix.

        Raises
        ------
        InputError
            On a GPU.
        """
        if A.space.name != "cpu":
            raise InputError("BlockGaussSeidel solves one block after the other, which leaves a GPU idle: use "
                             "BlockJacobiSmoother(asynchronous=True), which uses the newest values, or device='cpu'")
        return BlockGaussSeidelOperator(A, self)


class BlockGaussSeidelOperator(SmootherOperator):
    """Block Gauss–Seidel sweeps on one matrix; `Blocks` lists the errors that it can raise."""

    def __init__(self, A, settings):
        super().__init__(A, settings)
        self.blocks = Blocks(A, settings, "the block Gauss–Seidel smoother")
        self.variable = self.blocks.variable
        self.self_adjoint = settings.direction == "symmetric" and settings.inner == "exact"
        self._passes = {"forward": (True,), "backward": (False,), "symmetric": (True, False)}[settings.direction]
        self._kernels = A.space.kernels("swell.smoothers", "block_jacobi", A.dtype)

    def update(self, A):
        super().update(A)
        self.blocks.update(A)

    def _sweep(self, b, x):
        blocks, s = self.blocks, self.settings
        for upwards in self._passes:
            self._kernels.in_turn(*blocks.arrays(), blocks.inverse, b, x, s.omega, upwards, INNER.index(s.inner),
                                  s.inner_sweeps, s.inner_tolerance, blocks.width, s.height)

    def _build_adjoint(self, A):
        return replace(self.settings, direction=REVERSED[self.settings.direction]).build(A)

    def apply_adjoint(self, x, out, alpha=1, beta=0):
        self.blocks.check_adjoint()
        super().apply_adjoint(x, out, alpha, beta)

    @property
    def nbytes(self):
        return self.blocks.nbytes + self._y.nbytes

    def describe(self):
        return f"{self.blocks.describe()}, {self.settings.direction}, on one core"
