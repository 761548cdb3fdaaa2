"""A level of the V(1, 1) cycle by two products. With Q = S P̃ the cycle of a level is M = I + S + Q M_c Qᵀ:

    b_c = Qᵀ b,   (coarse levels: x_c),   x = b + S b + Q x_c.

Q has some three times the entries of P̃, but the level needs two dependent launches instead of four. On levels of some
ten thousand rows a GPU waits for latency of launches and memory, not for bandwidth. A warp has a row of the CSR
matrices.
"""
from __future__ import annotations

from swell.formats.transpose import transposed
from swell.preconditioners.amg.balancing import smoothed_interpolation, smoothing_matrix
from swell.preconditioners.amg.four_products import FourProducts


class TwoProducts:
    """One level of a V-cycle; see `FourProducts` for the parameters. ``hermitian``: A is, else A = Aᵀ."""

    scratch = "b_coarse", "x_coarse"

    def __init__(self, level, fine, coarse, dtype, hermitian):
        self.hermitian = hermitian
        self.level, self.fine, self.coarse, self.dtype = level, fine, coarse, dtype
        self._kernels = level.A.space.kernels("swell.preconditioners.amg", "cycle", dtype)
        self.S, self.Q = self._values()
        self.R, self._order = transposed(self.Q)
        if hermitian and self.Q.dtype.kind == "c":
            self._write_restriction()
        self.b_coarse, self.x_coarse = (level.A.space.empty(coarse.size, dtype) for _ in range(2))

    def _values(self):
        """Return S and Q, new matrices in CSR; balancing.py defines them."""
        return (smoothing_matrix(self.level.A, self.fine, self.dtype),
                smoothed_interpolation(self.level, self.fine, self.coarse, self.dtype))

    def update(self):
        """Recompute the stored matrices, in place, for new values of the `Level`, ``fine`` and ``coarse``."""
        for old, new in zip((self.S, self.Q), self._values()):
            old.data[...] = new.data
        self._write_restriction()

    def _write_restriction(self):
        """Write the values of Qᵀ; of Qᴴ for a Hermitian matrix, as P̃ is real."""
        values = self.Q.data[self._order]
        self.R.data[...] = values.conj() if self.hermitian and values.dtype.kind == "c" else values

    adjoint = FourProducts.adjoint

    def down(self, b, x, again):
        R = self.R
        self._kernels.rows_product(R.indptr, R.indices, R.data, 1, b, self.b_coarse)                   # b_c = Qᵀ b

    def up(self, b, x, again):
        S, Q = self.S, self.Q
        self._kernels.correct(S.indptr, S.indices, S.data, Q.indptr, Q.indices, Q.data, 1, b, self.x_coarse, x)

    @property
    def nbytes(self):
        matrices = self.S.data, self.Q.data, self.R, self._order
        return sum(part.nbytes for part in (*matrices, self.b_coarse, self.x_coarse))
