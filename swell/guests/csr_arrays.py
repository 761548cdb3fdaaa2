"""The guest for a tuple (data, indices, indptr): the arrays of a square matrix in CSR, of any library."""
from swell.core.arrays import checked_dtype, host_array
from swell.core.errors import InputError
from swell.core.guests import Guest, guest_of

WHAT = "A is a tuple of three arrays, read as (data, indices, indptr) in CSR"


class CSRArrays(Guest):
    """A tuple of three one-dimensional arrays on one device."""

    def device_of(self, value):
        return guest_of(value[0]).device_of(value[0])

    def dtype_of(self, value, name):
        return guest_of(value[0]).dtype_of(value[0], name)

    def read_matrix(self, A):
        """Return the CSR matrix of SciPy or CuPy over the arrays' memory.

        Raises
        ------
        InputError
            If the arrays lie on different devices, or are not a square matrix in CSR.
        """
        where = [guest_of(part).device_of(part) for part in A]
        if len(set(where)) > 1:
            raise InputError(f"{WHAT}, and they lie on {', '.join(where)}: put them on one device")
        names = "data", "indices", "indptr"
        data, indices, indptr = (guest_of(part).read_vector(part, name) for part, name in zip(A, names))
        for name, part in (("indices", indices), ("indptr", indptr)):
            if part.dtype.kind not in "iu":
                raise InputError(f"{WHAT}: {name} has dtype {part.dtype}, expected integers")
        ends = (int(indptr[0]), int(indptr[-1])) if indptr.size else (0, 0)
        if not indptr.size or data.size != indices.size or ends != (0, data.size):
            raise InputError(f"{WHAT}: {data.size} values, {indices.size} indices, and {indptr.size} row pointers from "
                             f"{ends[0]} to {ends[1]} came, expected pointers from 0 to the number of values; for "
                             "(data, (row, col)) use scipy.sparse.coo_array")
        data = data.astype(checked_dtype(data.dtype, "data"), copy=False)
        if where[0] == "cpu":
            import scipy.sparse as sp
        else:
            import cupyx.scipy.sparse as sp
        return sp.csr_matrix((data, indices, indptr), shape=(indptr.size - 1,) * 2)

    def read_vector(self, v, name):
        return host_array(v, name)
