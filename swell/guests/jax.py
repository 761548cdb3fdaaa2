"""The guest for JAX's arrays and sparse matrices: read where they lie, on the host or on a CUDA GPU.

JAX pads its sparse formats up to a fixed number of entries: a padded entry has an index beyond the shape, or lies after
the last row. JAX ignores it in every sum, and so does this module.
"""
import numpy as np

from swell.core.arrays import check_dense, checked_dtype, host_array
from swell.core.errors import InputError
from swell.core.guests import Guest

CPU, CUDA = 1, 2        # devices of DLPack


class JAX(Guest):
    """JAX's arrays, BCOO and BCSR matrices. x is returned as a JAX array on the device of b."""

    def device_of(self, value):
        kind, number = _concrete(value).__dlpack_device__()
        if kind not in (CPU, CUDA):
            raise InputError(f"a JAX array lies on {_concrete(value).device}: expected a CPU or a CUDA GPU; move it "
                             "with jax.device_put(array, jax.devices('cpu')[0])")
        return "cpu" if kind == CPU else f"cuda:{number}"

    def dtype_of(self, value, name):
        _concrete(value, name)
        return value.dtype

    def read_matrix(self, A):
        """Return an array as one of NumPy or CuPy, and a BCOO or BCSR matrix as COO or CSR of SciPy or CuPy.

        Raises
        ------
        InputError
            For other sparse formats, and for batched or dense dimensions.
        """
        from jax.experimental import sparse
        if not isinstance(A, sparse.JAXSparse):
            return _read(A, "A")
        check_layout(A)
        if self.device_of(A) == "cpu":
            import scipy.sparse as sp
        else:
            import cupyx.scipy.sparse as sp
        data, indices = _read(A.data, "A"), _read(A.indices, "A.indices")
        if isinstance(A, sparse.BCSR):
            indptr = _read(A.indptr, "A.indptr")
            end = int(indptr[-1])
            return sp.csr_matrix((data[:end], indices[:end], indptr), shape=A.shape)
        inside = (indices[:, 0] < A.shape[0]) & (indices[:, 1] < A.shape[1])
        return sp.coo_matrix((data[inside], (indices[inside, 0], indices[inside, 1])), shape=A.shape)

    def read_vector(self, v, name):
        from jax.experimental import sparse
        if isinstance(v, sparse.JAXSparse):
            check_dense(name, v.shape, v.dtype.itemsize)
            v = v.todense()
        return _read(v, name)

    def give_back(self, x, like):
        """Return x as a JAX array on the device of ``like``; of x's type, even if JAX's double precision is off."""
        import jax
        try:
            from jax import enable_x64
        except ImportError:                      # before JAX 0.8
            from jax.experimental import enable_x64
        with enable_x64(True):
            (device,) = _concrete(like).devices()
            return jax.device_put(x if isinstance(x, np.ndarray) else jax.dlpack.from_dlpack(x), device)


def check_layout(A):
    """Raise InputError unless a sparse matrix of JAX is BCOO or BCSR without batched and dense dimensions."""
    from jax.experimental import sparse
    if not isinstance(A, (sparse.BCOO, sparse.BCSR)) or (A.n_batch, A.n_sparse, A.n_dense) != (0, 2, 0):
        raise InputError(f"A is a JAX {type(A).__name__} of shape {A.shape}: expected a BCOO or BCSR matrix with "
                         "two sparse dimensions and no other; convert it with BCOO.fromdense(A.todense())")


def _concrete(value, name="an array"):
    """Return the array of a JAX array or of a sparse matrix's values; InputError if it is traced, or on several
    devices."""
    import jax
    from jax.experimental import sparse
    array = value.data if isinstance(value, sparse.JAXSparse) else value
    if isinstance(array, jax.core.Tracer):
        raise InputError(f"{name} is traced by a JAX transformation, such as jit, grad or vmap: expected numbers; "
                         "inside a JAX program use swell.jax.solve")
    if len(array.devices()) > 1:
        raise InputError(f"{name} is sharded over {len(array.devices())} devices: expected one; move it with "
                         "jax.device_put(array, jax.devices()[0])")
    return array


def _read(array, name):
    """Return a JAX array as an array of NumPy or CuPy, over the same memory if possible."""
    checked_dtype(_concrete(array, name).dtype, name)
    if array.__dlpack_device__()[0] == CPU:
        return host_array(array, name)
    import cupy
    array.block_until_ready()
    return cupy.asarray(array)                   # over the same memory, by the CUDA array interface
