"""Symmetric permutation as a transform: A' = P A Pᵀ, from an ordering. It does not change the norm of the residual."""
import numpy as np

from swell.core.columns import plain
from swell.core.transform import Transform
from swell.formats.csr import CSRMatrix


class Permutation(Transform):
    """The permutation for which row and column i of A' are row and column ``order[i]`` of A.

    Parameters
    ----------
    A : CSRMatrix
    order : int array of the space, shape (n,)
    note : str
        Text about the order for a printed result; may be empty.
    """

    def __init__(self, A, order, note=""):
        self.space, self.note = A.space, note
        xp = A.space.xp
        self.order = order
        self.inverse = xp.empty_like(order)
        self.inverse[order] = xp.arange(order.size, dtype=order.dtype)

    def update(self, A):
        """Do nothing: the order depends on the pattern only, which is the same."""

    def matrix(self, A):
        indptr, indices, entry = self.pattern(A)
        return CSRMatrix(A.space, indptr, indices, A.data[entry], A.shape)

    def pattern(self, A):
        """Return (indptr, indices, entry) of the permuted matrix A', new arrays.

        ``entry``: for each entry of A' the index of the entry of A."""
        xp = self.space.xp
        if self.space.name == "cpu":             # row by row; this avoids the sort of whole arrays below
            indptr = np.zeros(A.shape[0] + 1, A.indptr.dtype)
            indices, entry = np.empty_like(A.indices), np.empty(A.nnz, A.indptr.dtype)
            np.cumsum(np.diff(A.indptr)[self.order], out=indptr[1:])
            kernels = self.space.kernels("swell.formats", "csr", A.dtype)
            kernels.permute(A.indptr, A.indices, self.order, self.inverse, indptr, indices, entry)
            return indptr, indices, entry
        rows, columns = self.inverse[A.rows()], self.inverse[A.indices]
        entry = xp.argsort(rows.astype("int64") * A.shape[1] + columns)
        return self.space.row_pointers(rows, A.shape[0], A.indptr.dtype), columns[entry], entry

    def forward_b(self, b, out):
        self.space.xp.take(plain(b), self.order, axis=-1, out=plain(out))

    def forward_x(self, x, out):
        self.space.xp.take(plain(x), self.order, axis=-1, out=plain(out))

    def backward_x(self, x, out):
        self.space.xp.take(plain(x), self.inverse, axis=-1, out=plain(out))
