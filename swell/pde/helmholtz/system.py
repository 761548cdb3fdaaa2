"""System: A(ω) = K − ω² M + iω B + Σ V(ω) on a device, from three arrays of values on one pattern, by one kernel.

The parts V that are no polynomial in ω come from the host for each frequency, and are added (varying.py)."""
import numpy as np

from swell.core.arrays import check_finite
from swell.core.errors import InputError
from swell.formats.csr import CSRMatrix
from swell.pde.helmholtz.varying import keys


class Values:
    """The values of K, M and B on the pattern of a CSR matrix A; `form` writes the values of A(ω) into A.

    Parameters
    ----------
    A : CSRMatrix
    K, M, B : host arrays, shape (nnz,)
        In the order of A's entries; K is real.
    places : list of (int array, int array)
        For each varying part: entry at[k] of A takes its entry number take[k].
    """

    def __init__(self, A, K, M, B, places=()):
        space, real = A.space, np.zeros(0, A.dtype).real.dtype
        self.A, kinds = A, (real, A.dtype, A.dtype)
        self.K, self.M, self.B = (space.from_host(v.astype(kind)) for v, kind in zip((K, M, B), kinds))
        self._places = [(take, space.from_host(at)) for take, at in places]
        self._kernels = space.kernels("swell.pde.helmholtz", "system", A.dtype)

    def form(self, omega, varying=()):
        """Write the values of A(ω) = K − ω² M + iω B + Σ V into the matrix A, for an angular frequency in 1/s;
        ``varying``: the values of each V at this frequency, host arrays."""
        scalar, space = self.A.dtype.type, self.A.space
        self._kernels.form(self.K, self.M, self.B, scalar(omega ** 2), scalar(1j * omega), self.A.data)
        for values, (take, at) in zip(varying, self._places, strict=True):
            self.A.data[at] += space.from_host(values[take].astype(self.A.dtype))
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
    varying : list of (Varying, scipy.sparse.csr_matrix)
        The other parts, each with its ``numbers`` restricted to the rows and columns of K.

    Attributes
    ----------
    A : CSRMatrix
        A(ω) of the last `form`.
    omega : float
        The angular frequency of the last `form`, 1/s.
    quadratic : bool
        True if A(ω) is a polynomial of degree 2 in ω.
    """

    def __init__(self, K, M, B, space, dtype, varying=()):
        if K.shape[0] != K.shape[1]:
            raise InputError(f"K has shape {K.shape}: expected a square matrix")
        indptr, indices, values, places = on_one_pattern(K, M, B, [numbers for _, numbers in varying])
        A = CSRMatrix(space, space.from_host(indptr), space.from_host(indices),
                      space.empty(len(indices), np.dtype(dtype)), K.shape)
        self._begin(A, [Values(A, *values, places)], varying)

    def _begin(self, A, parts, varying):
        """Set the attribute A and the list ``parts`` of `Values`, one for each CSR matrix of which A consists; the
        diagonal block's comes first. ``varying``: as in the constructor."""
        self.A, self.space, self.dtype, self._parts = A, A.space, A.dtype, parts
        self._varying, self.quadratic = [part for part, _ in varying], not varying
        self.omega, self._mass = 0.0, None

    def form(self, omega):
        """Write the values of A(ω) into the attribute A, for an angular frequency in 1/s."""
        varying = [part.values(omega) for part in self._varying]
        for part in self._parts:
            part.form(omega, varying)
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


def on_one_pattern(K, M, B, varying=()):
    """Put sparse K, M and B on the union of their patterns and others.

    Parameters
    ----------
    K, M, B : scipy.sparse matrices
    varying : list of scipy.sparse.csr_matrix
        Patterns whose entries hold their numbers, from 1 on.

    Returns
    -------
    indptr, indices : arrays
        The union, columns sorted.
    values : list of three arrays
    places : list of (int array, int array)
        For each pattern of ``varying``: the numbers of its entries, from 0 on, and their places in the union.

    Raises
    ------
    InputError
        For different shapes, a complex K, or values that are not finite.
    """
    import scipy.sparse as sp
    sorted_ones = []
    for name, A in zip("KMB", (K, M, B)):
        if A.shape != K.shape:
            raise InputError(f"{name} has shape {A.shape}: expected {K.shape}, as K has")
        A = sp.csr_matrix(A)
        if not A.has_canonical_format:
            A = A.copy()
            A.sum_duplicates()
        check_finite(name, A.data)
        sorted_ones.append(A)
    if np.iscomplexobj(sorted_ones[0].data):
        raise InputError("K is complex: expected a real stiffness matrix; put damping into M, as 1/(1 + iη)")
    others = [sp.csr_matrix(A) for A in varying]
    for A in others:
        A.sort_indices()
    patterns = [sp.csr_matrix((np.ones(A.nnz, np.int8), A.indices, A.indptr), A.shape)
                for A in (*sorted_ones, *others)]
    union = sum(patterns[1:], patterns[0]).tocsr()
    union.sort_indices()
    there = keys(union)
    values = []
    for A in sorted_ones:
        expanded = np.zeros(union.nnz, A.dtype)
        expanded[np.searchsorted(there, keys(A))] = A.data
        values.append(expanded)
    places = [(A.data.astype(np.int64) - 1, np.searchsorted(there, keys(A))) for A in others]
    return union.indptr, union.indices, values, places
