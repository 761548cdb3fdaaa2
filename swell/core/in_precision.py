"""InPrecision: an operator that computes in a narrower precision than its vectors, between two scalings.

A product in single precision reads half the bytes; as part of a preconditioner it costs no extra iterations. The
entries of D A D, with D = diag(``scale``), must fit the narrower type: balanced by D they lie near 1. Vectors are
multiplied by a power of two that brings their norm near 1: a right-hand side of 1e-100 must not vanish. A solve sets
this factor by `expect` before it starts. The factor lies on the device, so that a captured graph uses a new one.

Cost of an application: 1 pass over 3 vectors before, and 1 after, fused with the inner products that CG needs.
"""
import numpy as np

from swell.core.columns import plain
from swell.core.operator import Wrapper


def bringing_near_one(norm):
    """Return the power of two that brings vectors of this norm near 1, as an array of shape (1,); 1 for norm 0 or
    infinity. For an array of k norms, of the columns of `Columns`, the shape is (k, 1)."""
    norm = np.asarray(norm, np.float64)
    ready = (norm > 0) & (norm < np.inf)
    return np.where(ready, np.ldexp(1.0, -np.frexp(np.where(ready, norm, 1.0))[1]), 1.0)[..., None]


class InPrecision(Wrapper):
    """D M D, where M is the operator ``inner`` of another precision and D = diag(``scale``).

    Parameters
    ----------
    inner : LinearOperator
        Its vectors are of the narrower type.
    scale : array of the space, shape (n,)
        Real, without zeros.
    dtype : numpy.dtype
        Type of the vectors x and out.
    """

    scratch = ("_x", "_y", "factor")

    def __init__(self, inner, scale, dtype):
        super().__init__(inner.shape, np.dtype(dtype), inner.space)
        self.inner, self.scale = inner, scale
        self._x, self._y = (self.space.empty(self.shape[0], inner.dtype) for _ in range(2))
        self.factor = self.space.empty(1, np.float64)
        self.expect(1.0)
        self._kernels = self.space.kernels("swell.core", "precision", self.dtype)

    def in_double_precision(self, why):
        return None                              # a subclass that can build its inner operator anew overrides this

    def expect(self, norm):
        self.space.from_host(bringing_near_one(norm), plain(self.factor))

    def _applied(self, x, adjoint):
        self._kernels.enter(x, self.scale, self.factor, 1, self._x)
        (self.inner.apply_adjoint if adjoint else self.inner.apply)(self._x, self._y)

    def apply(self, x, out, alpha=1, beta=0):
        kind = out.dtype.type
        self._applied(x, False)
        self._kernels.leave(self._y, self.scale, self.factor, 1, out, kind(alpha), kind(beta))

    def apply_adjoint(self, x, out, alpha=1, beta=0):
        kind = out.dtype.type
        self._applied(x, True)
        self._kernels.leave(self._y, self.scale, self.factor, 1, out, kind(alpha), kind(beta))

    def apply_dots(self, x, out, w, dots):
        self._applied(x, False)
        self._kernels.leave_dots(self._y, self.scale, self.factor, 1, out, w, dots)

    @property
    def nbytes(self):
        return self.inner.nbytes + self.scale.nbytes + self._x.nbytes + self._y.nbytes
