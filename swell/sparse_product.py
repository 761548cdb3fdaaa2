"""``multiply``: products of sparse matrices of any library, computed by `swell.formats.product`."""
from itertools import pairwise

from swell.core.devices import make_space
from swell.core.errors import InputError
from swell.core.operator import LinearOperator
from swell.formats.product import Product
from swell.inputs import device_of, read_factor


def multiply(*factors, device=None):
    """Multiply two or more sparse matrices: A B, or R A P.

    Three or more factors are multiplied from the right: R (A P). Each sum is taken in the order of the left factor's
    columns. The result is therefore the same to the bit in every run, with any number of threads.

    Parameters
    ----------
    *factors : matrices
        Of shapes (m, k), (k, n), and so on: SciPy or CuPy sparse of any kind, dense arrays, matrices of torch, JAX or
        PETSc, or swell's own formats. Integers become double. The result has the widest type of the factors. NaN and
        Inf are multiplied like other values.
    device : {"cpu", "cuda", "cuda:1"}, optional
        Where to multiply; by default where the first factor is.

    Returns
    -------
    csr_array, csr_matrix or CSRMatrix
        Shape (m, n), with sorted columns and without duplicates; entries whose sum is zero are kept. The first factor
        decides the library: CSR of SciPy (an array if the factor is a sparse array), CSR of CuPy, or swell's own.
        If it comes from another library, the result is CSR of SciPy, or of CuPy if the factor is on a GPU.

    Raises
    ------
    InputError
        If shapes do not fit, or a factor has no entries (is matrix-free).
    OutOfMemory
        If a product would not fit; raised before it is allocated.
    MissingDependency
        If the GPU or a library is missing.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp, swell
    >>> A = swell.gallery.poisson2d(4)
    >>> P = sp.csr_array(np.kron(np.eye(8), np.ones((2, 1))))
    >>> coarse = swell.multiply(P.T, A, P)
    >>> coarse.shape, coarse.nnz, bool(abs(coarse - P.T @ A @ P).max() == 0)
    ((8, 8), 28, True)

    For new values on the same patterns, `swell.formats.product.Product` takes less than half of the time. Its factors
    are matrices of a space:

    >>> from swell.formats.product import Product
    >>> M = swell.CSRMatrix.from_scipy(A, swell.core.devices.make_space("cpu"))
    >>> product = Product(M, M)
    >>> product.update(M.with_values(3 * M.data), M)
    >>> bool(abs(product.C.to_scipy() - 3 * A @ A).max() == 0)
    True
    """
    if len(factors) < 2:
        raise InputError(f"multiply got {len(factors)} matrices: expected two or more")
    first = factors[0]
    if isinstance(first, LinearOperator) and device in (None, first.space.name, first.space.device_name):
        space = first.space
    else:
        space = make_space(device_of(first) if device is None else device)
    with space.active():
        read = [read_factor(A, space) for A in factors]
        for k, (left, right) in enumerate(pairwise(read), start=1):
            if left.shape[1] != right.shape[0]:
                raise InputError(f"matrix {k} of multiply is {left.shape[0]} × {left.shape[1]} and matrix {k + 1} is "
                                 f"{right.shape[0]} × {right.shape[1]}: expected as many rows of matrix {k + 1} as "
                                 f"matrix {k} has columns; should one of them be transposed?")
        *others, result = read
        while others:
            result = Product(others.pop(), result).C
        return _given_back(result, first)


def _given_back(C, first):
    """Convert C to the matrix type of the first factor."""
    if isinstance(first, LinearOperator):
        return C
    if device_of(first) == "cpu":
        import scipy.sparse as sp
        kind = sp.csr_array if isinstance(first, sp.sparray) else sp.csr_matrix
        made = kind(C.to_scipy())
    else:
        from cupyx.scipy.sparse import csr_matrix
        made = csr_matrix(C.to_scipy()) if C.space.name == "cpu" else csr_matrix((C.data, C.indices, C.indptr), C.shape)
    made.has_canonical_format = True
    return made
