"""A(ω) = K − ω² M + iω B on a device: three arrays of values on one pattern, combined by one kernel."""
from __future__ import annotations

import numpy as np

from swell.core.errors import InputError
from swell.formats.csr import CSRMatrix


class System:
    """The matrices of a problem where it is solved.

    Parameters
    ----------
    K, M, B : scipy.sparse matrices, n × n
        K real. Their patterns may differ: A has their union.
    space : Space
    dtype : {"complex64", "complex128"}

    Attributes
    ----------
    A : CSRMatrix
        Its values are those of the last `form`.
    omega : float
        The angular frequency of the last `form`, 1/s.
    """

    def __init__(self, K, M, B, space, dtype):
        self.space, self.dtype = space, np.dtype(dtype)
        indptr, indices, values = on_one_pattern(K, M, B)
        real = np.zeros(0, self.dtype).real.dtype
        self.K, self.M, self.B = (space.from_host(v.astype(kind)) for v, kind in
                                  zip(values, (real, self.dtype, self.dtype)))
        self.A = CSRMatrix(space, space.from_host(indptr), space.from_host(indices),
                           space.empty(len(indices), self.dtype), K.shape)
        self._kernels = space.kernels("swell.pde.helmholtz", "system", self.dtype)
        self.omega, self._mass = 0.0, None

    def form(self, omega):
        """Give A the values of an angular frequency (1/s)."""
        scalar = self.dtype.type
        self._kernels.form(self.K, self.M, self.B, scalar(omega ** 2), scalar(1j * omega), self.A.data)
        self.A.discard_adjoint()
        self.omega = float(omega)
        if self._mass is not None:
            self._form_mass()

    @property
    def mass(self):
        """ω²M on the pattern of A as a CSRMatrix, whose values follow those of `form` from its first use on."""
        if self._mass is None:
            self._mass = CSRMatrix(self.space, self.A.indptr, self.A.indices, self.space.empty(self.M.size, self.dtype),
                                   self.A.shape)
            self._form_mass()
        return self._mass

    def _form_mass(self):
        self.space.xp.multiply(self.M, self.dtype.type(self.omega ** 2), out=self._mass.data)

    @property
    def nbytes(self):
        return self.K.nbytes + self.M.nbytes + self.B.nbytes + self.A.nbytes


def on_one_pattern(*matrices):
    """(indptr, indices, the values of each matrix) on the union of their patterns, columns sorted.

    Raises
    ------
    InputError
        For shapes that differ or are not square, values that are not finite.
    """
    import scipy.sparse as sp
    n = matrices[0].shape[0]
    sorted_ones = []
    for name, A in zip("KMB", matrices):
        if A.shape != (n, n):
            raise InputError(f"{name} has shape {A.shape}: expected {(n, n)}, that of K, square")
        A = sp.csr_matrix(A)
        if not A.has_canonical_format:
            A = A.copy()
            A.sum_duplicates()
        if not np.isfinite(A.data).all():
            raise InputError(f"{name} contains NaN or Inf: look where it was assembled")
        sorted_ones.append(A)
    if np.iscomplexobj(sorted_ones[0].data):
        raise InputError("K is complex: expected a real stiffness matrix; put damping into M, as 1/(1 + iη)")
    patterns = [sp.csr_matrix((np.ones(A.nnz, np.int8), A.indices, A.indptr), A.shape) for A in sorted_ones]
    union = sum(patterns[1:], patterns[0]).tocsr()
    union.sort_indices()
    places = _keys(union)
    values = []
    for A in sorted_ones:
        found = np.zeros(union.nnz, A.dtype)
        found[np.searchsorted(places, _keys(A))] = A.data
        values.append(found)
    return union.indptr, union.indices, values


def _keys(A):
    """Places of a CSR matrix with sorted columns as ascending numbers."""
    return np.repeat(np.arange(A.shape[0], dtype=np.int64), np.diff(A.indptr)) * A.shape[1] + A.indices
