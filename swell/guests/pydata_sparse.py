"""The guest for the package sparse (pydata): COO, GCXS and DOK arrays, which are read as SciPy matrices."""
from swell.core.arrays import check_dense, host_array
from swell.core.errors import InputError
from swell.core.guests import Guest


class PydataSparse(Guest):
    """Sparse arrays of every format. x is returned as a NumPy array."""

    def read_matrix(self, A):
        """Return a sparse array as a CSR array of SciPy.

        Raises
        ------
        InputError
            For other than two dimensions, and for a fill value that is not zero.
        """
        if A.ndim != 2:
            raise InputError(f"A is a sparse.{type(A).__name__} of shape {A.shape}: expected two dimensions")
        if A.fill_value != 0:
            raise InputError(f"A is a sparse.{type(A).__name__} with fill value {A.fill_value}: expected 0 in every "
                             "place that is not stored; use A.todense()")
        return A.asformat("coo").tocsr()

    def read_vector(self, v, name):
        check_dense(name, v.shape, v.dtype.itemsize)
        return host_array(v.todense(), name)
