"""``LinearMap``: what swell has prepared, as the linear operator of SciPy, CuPy and PyAMG.

Their functions take an object with ``shape``, ``dtype``, ``matvec`` and ``rmatvec`` wherever they take a
``LinearOperator`` (`scipy.sparse.linalg.aslinearoperator`). One class serves all of them: vectors of any library come
in, and vectors of the same library go out, on the same device. It is no subclass of SciPy's class, whose ``matvec``
would convert vectors of a GPU to NumPy.
"""
from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from swell.core.errors import InputError
from swell.core.guests import guest_of

if TYPE_CHECKING:
    import numpy as np


class LinearMap(ABC):
    """A linear map of vectors of shape (n,) or (n, 1), and of their k columns, shape (n, k)."""

    A: Any                      # the prepared matrix
    __array_ufunc__ = None      # array @ map is a TypeError, and no array of objects

    @property
    def shape(self) -> tuple[int, int]:
        return self.A.shape

    @property
    def dtype(self) -> np.dtype:
        """The type that it computes in. A complex vector of a real map is mapped by parts."""
        return self.A.dtype

    @abstractmethod
    def _map(self, x, adjoint):
        """Return the image of x, shape (n,) or (n, k), by the map or its adjoint. x is complex only if the map is."""

    def matvec(self, x):
        """Return the image of a vector x, in its shape and its kind of array."""
        return self._by_parts(x, False)

    def rmatvec(self, x):
        """Return the image of a vector x by the adjoint (conjugate transpose)."""
        return self._by_parts(x, True)

    def matmat(self, X):
        """Return the images of the columns of X, shape (n, k)."""
        return self._by_parts(X, False)

    def rmatmat(self, X):
        """Return the images of the columns of X, shape (n, k), by the adjoint."""
        return self._by_parts(X, True)

    def __matmul__(self, x):
        return self.matmat(x) if getattr(x, "ndim", 1) == 2 else self.matvec(x)

    def _by_parts(self, x, adjoint):
        shape = getattr(x, "shape", None)
        if shape is None or len(shape) not in (1, 2) or shape[0] != self.shape[0]:
            n, came = self.shape[0], "" if shape is None else f" of shape {tuple(shape)}"
            raise InputError(f"a vector for {type(self).__name__} is {type(x).__name__}{came}: expected an array of "
                             f"shape ({n},) or ({n}, k)")
        single = x.reshape(-1) if len(shape) == 2 and shape[1] == 1 else x
        if guest_of(x).dtype_of(x, "x").kind == "c" and self.dtype.kind != "c":
            image = self._map(single.real, adjoint) + 1j * self._map(single.imag, adjoint)
        else:
            image = self._map(single, adjoint)
        return image.reshape(shape)
