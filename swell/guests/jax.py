"""The guest for JAX's arrays and sparse matrices, which are read on the host.

JAX pads its sparse formats up to a fixed number of entries: a padded entry has an index beyond the shape, or lies after
the last row. JAX ignores it in every sum, and so does this module.
"""
from __future__ import annotations

import numpy as np

from swell.core.arrays import checked_dtype, host_array
from swell.core.errors import InputError
from swell.core.guests import Guest


class JAX(Guest):
    """JAX's arrays, BCOO and BCSR matrices. x is returned as a NumPy array."""

    def read_matrix(self, A):
        """Return an array as a NumPy array, and a BCOO or BCSR matrix as SciPy's COO or CSR.

        Raises
        ------
        InputError
            For other sparse formats, and for batched or dense dimensions.
        """
        import scipy.sparse as sp
        from jax.experimental import sparse
        if not isinstance(A, sparse.JAXSparse):
            return host_array(A, "A")
        if not isinstance(A, (sparse.BCOO, sparse.BCSR)) or (A.n_batch, A.n_sparse, A.n_dense) != (0, 2, 0):
            raise InputError(f"A is a JAX {type(A).__name__} of shape {A.shape}: expected a BCOO or BCSR matrix with "
                             "two sparse dimensions and no other; convert it with BCOO.fromdense(A.todense())")
        checked_dtype(A.dtype, "A")
        data, indices = np.asarray(A.data), np.asarray(A.indices)
        if isinstance(A, sparse.BCSR):
            indptr = np.asarray(A.indptr)
            return sp.csr_array((data[:indptr[-1]], indices[:indptr[-1]], indptr), shape=A.shape)
        inside = (indices < A.shape).all(axis=1)
        return sp.coo_array((data[inside], tuple(indices[inside].T)), shape=A.shape)

    def read_vector(self, v, name):
        from jax.experimental import sparse
        return host_array(v.todense() if isinstance(v, sparse.JAXSparse) else v, name)
