"""The guest for CuPy's arrays and sparse matrices, which are on a GPU already."""
from swell.core.guests import ArrayLibrary, Given


class CuPy(ArrayLibrary):
    """CuPy's arrays, and CuPyX's sparse matrices and operators."""

    def device_of(self, value):
        import cupy
        data = value if isinstance(value, cupy.ndarray) else getattr(value, "data", None)    # a sparse matrix's values
        return f"cuda:{cupy.cuda.Device().id if data is None else data.device.id}"

    def read_vector(self, v, name):
        return v

    def csr(self, A):
        import cupy
        from cupyx.scipy.sparse import csr_matrix, issparse
        if not issparse(A):
            csr = csr_matrix(cupy.asarray(A))
            return Given(csr, csr.nnz, shared=False)
        csr = A.tocsr()
        return Given(csr, A.nnz, shared=csr is A)

    def summed(self, csr):
        csr = csr.copy()
        csr.has_canonical_format = False
        csr.sum_duplicates()
        return csr
