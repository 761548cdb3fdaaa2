"""The products of a level across ranks: the rank multiplies its own columns while the ghost values arrive."""
from __future__ import annotations

from swell.core.operator import LinearOperator
from swell.distributed.amg.rows import parted
from swell.distributed.amg.window import Border, own_rows
from swell.distributed.halo import Halo
from swell.preconditioners.amg.balancing import interpolation, restriction, smoothing_matrix
from swell.preconditioners.amg.four_products import FourProducts
from swell.preconditioners.amg.shared_rows import stored


class RankProduct(LinearOperator):
    """Multiplies this rank's rows of a matrix with a distributed vector.

    Parameters
    ----------
    csr : CSRMatrix, shape (own rows, window.size)
    window : Window
        Of the columns.
    """

    def __init__(self, csr, window):
        super().__init__((csr.shape[0], window.rows), csr.dtype, csr.space)
        self._window = window
        local, self.boundary, self.rest, ghosts = parted(csr, window)
        self.halo = Halo(window.space, csr.space.to_host(ghosts), csr.dtype)
        self.local = stored(local)

    def apply(self, x, out, alpha=1, beta=0):
        self.halo.start(x)
        self.local.apply(x, out, alpha, beta)
        self.halo.finish_product(self.boundary, self.rest, out, alpha)

    def apply_plus(self, x, z, out):
        self.halo.start(x)
        self.local.apply_plus(x, z, out)
        self.halo.finish_product(self.boundary, self.rest, out, 1)

    def apply_sum(self, x, alpha, z, beta, w, gamma, out):
        """``out = alpha A x + beta z + gamma w``. ``out`` may be the same array as z or w, but not as x."""
        self.halo.start(x)
        self.local.apply_sum(x, alpha, z, beta, w, gamma, out)
        self.halo.finish_product(self.boundary, self.rest, out, alpha)

    def update(self, csr):
        """Take the values of ``csr``, of the same pattern."""
        local, _, rest, _ = parted(csr, self._window)
        self.local.update(local)
        self.rest.data[...] = rest.data
        self.rest.discard_adjoint()

    @property
    def nbytes(self):
        return self.local.nbytes + self.rest.nbytes + self.boundary.nbytes + self.halo.nbytes


class RankFourProducts(FourProducts):
    """One level of the cycle by four products across ranks. `complete` follows when the next level is known.

    Parameters
    ----------
    level : RankLevel
    fine : float64 array
        The diagonal of D of this rank's rows.
    dtype : numpy.dtype
    """

    def __init__(self, level, fine, dtype):
        self.level, self.fine, self.dtype, self.space = level, fine, dtype, level.A.space.local
        self.S = RankProduct(smoothing(level, fine, dtype), level.window)

    def complete(self, coarse):
        """Make P̃ and R̃; ``coarse``: the diagonal of D of this rank's rows of the next level."""
        self.coarse, self._coarse_border = coarse, Border(self.level.P.window)
        self.P = RankProduct(self._interpolation(), self.level.P.window)
        self.R = RankProduct(self._restriction(), self.level.window)
        self._make_vectors()

    @property
    def matrices(self):
        """The three products; `FourProducts` adds up their bytes."""
        return self.S, self.P, self.R

    def update(self):
        self.S.update(smoothing(self.level, self.fine, self.dtype))
        self.P.update(self._interpolation())
        self.R.update(self._restriction())

    def _interpolation(self):
        P = self.level.P
        coarse = P.window.around(self.coarse, self._coarse_border.values(self.coarse))
        return interpolation(P.csr, self.fine, coarse, self.dtype)

    def _restriction(self):
        level = self.level
        fine = level.window.around(self.fine, level.border.values(self.fine))
        return restriction(level.R, fine, self.coarse, self.dtype)


def smoothing(level, scale, dtype):
    """Return this rank's rows of S = I − D A D for a RankLevel, columns numbered by its window; ``scale``: this rank's
    part of D's diagonal."""
    scale = level.window.around(scale, level.border.values(scale))
    return own_rows(smoothing_matrix(level.extended.matrix, scale, dtype), level.window, level.extended.own)

