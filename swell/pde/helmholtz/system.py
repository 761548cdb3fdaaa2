"""System: A(ω) = K − ω² M + iω B on a device, from three arrays of values on one pattern, by one kernel."""
from __future__ import annotations

import numpy as np

from swell.core.arrays import check_finite
from swell.core.errors import InputError
from swell.formats.csr import CSRMatrix


class Values:
    """The values of K, M and B on the pattern of a CSR matrix A; `form` writes the values of A(ω) into A.

    Parameters
    ----------
    A : CSRMatrix
    K, M, B : host arrays, shape (nnz,)
        In the order of A's entries; K is real.
    """

    def __init__(self, A, K, M, B):
        space, real = A.space, np.zeros(0, A.dtype).real.dtype
        self.A, kinds = A, (real, A.dtype, A.dtype)
        self.K, self.M, self.B = (space.from_host(v.astype(kind)) for v, kind in zip((K, M, B), kinds))
        self._kernels = space.kernels("swell.pde.helmholtz", "system", A.dtype)

    def form(self, omega):
        """Write the values of A(ω) = K − ω² M + iω B into the matrix A, for an angular frequency in 1/s."""
        scalar = self.A.dtype.type
        self._kernels.form(self.K, self.M, self.B, scalar(omega ** 2), scalar(1j * omega), self.A.data)
        self.A.discard_adjoint()

    @property
    def nbytes(self):
        """Bytes of the values of K, M, B and of A."""
        return self.K.nbytes + self.M.nbytes + self.B.nbytes + self.A.nbytes


class System:
    """The matrices of a problem in a space.

    Parameters
    ----------
    K, M, B : scipy.sparse matrices, n × n
        K is real. Their patterns may differ; A has their union.
    space : Space
    dtype : {"complex64", "complex128"}

    Attributes
    ----------
    A : CSRMatrix
        A(ω) of the last `form`.
    omega : float
        The angular frequency of the last `form`, 1/s.
    """

    def __init__(self, K, M, B, space, dtype):
        if K.shape[0] != K.shape[1]:
            raise InputError(f"K has shape {K.shape}: expected a square matrix")
        indptr, indices, values = on_one_pattern(K, M, B)
        A = CSRMatrix(space, space.from_host(indptr), space.from_host(indices),
                      space.empty(len(indices), np.dtype(dtype)), K.shape)
        self._begin(A, [Values(A, *values)])

    def _begin(self, A, parts):
        """Set the attribute A and the list ``parts`` of `Values`, one for each CSR matrix of which A consists; the
        diagonal block's comes first."""
        self.A, self.space, self.dtype, self._parts = A, A.space, A.dtype, parts
        self.omega, self._mass = 0.0, None

    def form(self, omega):
        """Write the values of A(ω) = K − ω² M + iω B into the attribute A, for an angular frequency in 1/s."""
        for part in self._parts:
            part.form(omega)
        self.omega = float(omega)
        if self._mass is not None:
            self._form_mass()

    @property
    def mass(self):
        """ω²M as a CSRMatrix on the pattern of A; across ranks, of A's diagonal block.

        From its first use on, `form` updates its values."""
        if self._mass is None:
            block = self._parts[0].A
            self._mass = CSRMatrix(block.space, block.indptr, block.indices, block.space.empty(block.nnz, self.dtype),
                                   block.shape)
            self._form_mass()
        return self._mass

    def _form_mass(self):
        self.space.xp.multiply(self._parts[0].M, self.dtype.type(self.omega ** 2), out=self._mass.data)

    @property
    def nbytes(self):
        """Bytes of the values of K, M, B and A."""
        return sum(part.nbytes for part in self._parts)


def on_one_pattern(*matrices):
    """Put sparse K, M and B on the union of their patterns; return (indptr, indices, list of three arrays of values),
    columns sorted.

    Raises
    ------
    InputError
        For different shapes, a complex K, or values that are not finite.
    """
    import scipy.sparse as sp
    sorted_ones = []
    for name, A in zip("KMB", matrices):
        if A.shape != matrices[0].shape:
            raise InputError(f"{name} has shape {A.shape}: expected {matrices[0].shape}, as K has")
        A = sp.csr_matrix(A)
        if not A.has_canonical_format:
            A = A.copy()
            A.sum_duplicates()
        check_finite(name, A.data)
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
    """Return the number row · columns + column of each entry of a CSR matrix with sorted columns; they ascend."""
    return np.repeat(np.arange(A.shape[0], dtype=np.int64), np.diff(A.indptr)) * A.shape[1] + A.indices
