"""C = C − A B on parts of many matrices of one size, in place, by NumPy or cuBLAS."""
import numpy as np

CUBLAS = {"f": "s", "d": "d", "F": "c", "D": "z"}      # cuBLAS's letter for each type


def subtract_product(space, C, A, B):
    """Compute C -= A B for each of ``count`` matrices.

    Parameters
    ----------
    C, A, B : device arrays, shapes (count, m, k), (count, m, l), (count, l, k)
        Parts of row- or column-major matrices; on a GPU cuBLAS reads them in place, without a copy.
    """
    if not (C.size and A.shape[2]):
        return
    if space.name == "cpu":
        C -= A @ B
    elif C.strides[2] == C.itemsize:             # row-major: compute the transposed product, column-major
        _gemm(*(M.transpose(0, 2, 1) for M in (C, B, A)))
    else:
        _gemm(C, A, B)


class Subtraction:
    """W[r, c] -= W[r, k] W[k, c] on blocks of many matrices, in place; r, k, c: pairs (first, end).

    The host only adds offsets to an address: views of three blocks would cost more time than a small product.

    Parameters
    ----------
    work : decomposer.Work
    """

    def __init__(self, work):
        self.work = work
        if work.space.name != "cpu":
            from cupy.cuda import cublas, device
            self._one, self._minus = np.array(1, work.dtype), np.array(-1, work.dtype)
            self._handle, self._plain = device.get_cublas_handle(), cublas.CUBLAS_OP_N
            name = "gemm" if work.count == 1 else "gemmStridedBatched"
            self._call = getattr(cublas, CUBLAS[work.dtype.char] + name)

    def __call__(self, r, k, c):
        if r[0] >= r[1] or k[0] >= k[1] or c[0] >= c[1]:
            return
        work = self.work
        if work.space.name == "cpu":
            W = work.matrix
            W[:, slice(*r), slice(*c)] -= W[:, slice(*r), slice(*k)] @ W[:, slice(*k), slice(*c)]
            return
        A, B, C = ((i[0], j[0]) for i, j in ((r, k), (k, c), (r, c)))
        m, l = r, c
        if work.column == 1:                     # row-major: compute the transposed product, column-major
            A, B, m, l = B, A, c, r
        a, b, c = (work.lu.data.ptr + (i * work.row + j * work.column) * work.dtype.itemsize for i, j in (A, B, C))
        n, sizes = work.n, (m[1] - m[0], l[1] - l[0], k[1] - k[0])
        head, one = (self._handle, self._plain, self._plain, *sizes, self._minus.ctypes.data), self._one.ctypes.data
        if work.count == 1:
            self._call(*head, a, n, b, n, one, c, n)
        else:
            self._call(*head, a, n, n * n, b, n, n * n, one, c, n, n * n, work.count)


def _gemm(C, A, B):
    """Compute C -= A B by cuBLAS, in place, for a column-major C; shapes as in ``subtract_product``."""
    from cupy.cuda import cublas, device
    handle, minus, one = device.get_cublas_handle(), np.array(-1, C.dtype), np.array(1, C.dtype)
    (count, *shape), letter = C.shape, CUBLAS[C.dtype.char]
    (op_a, *a), (op_b, *b), (_, *c) = ((op, M.data.ptr, distance) for M in (A, B, C) for op, distance in [layout(M)])
    head = handle, op_a, op_b, *shape, A.shape[2], minus.ctypes.data
    if count == 1:
        getattr(cublas, f"{letter}gemm")(*head, *a, *b, one.ctypes.data, *c)
        return
    between = [M.strides[0] // M.itemsize for M in (A, B, C)]
    getattr(cublas, f"{letter}gemmStridedBatched")(*head, *a, between[0], *b, between[1], one.ctypes.data, *c,
                                                   between[2], count)


def on_device(space, M):
    """Return a matrix, or matrices, as an array of the space in its own memory order; copied only if needed."""
    by_columns = M.strides[-2] == M.itemsize != M.strides[-1]
    return space.from_host(M.swapaxes(-2, -1)).swapaxes(-2, -1) if by_columns else space.from_host(M)


def layout(M):
    """Return (cuBLAS operation, leading dimension) with which cuBLAS, column-major, reads M's last two axes as M."""
    from cupy.cuda import cublas
    rows, columns = (distance // M.itemsize for distance in M.strides[-2:])
    if rows == 1:
        return cublas.CUBLAS_OP_N, max(columns, M.shape[-2])
    return cublas.CUBLAS_OP_T, max(rows, M.shape[-1])


def addresses(matrices):
    """Return the address of each matrix of an array, as a device array for cuBLAS's batched functions."""
    import cupy
    return cupy.arange(len(matrices), dtype=np.uint64) * matrices.strides[0] + np.uint64(matrices.data.ptr)
