"""Face-based assembly: from the fluxes of the faces straight into the values of a matrix, where it is solved.

The paper (chapter 6) leaves assembly on the GPU to future work. Here the pattern is made once from owner and neighbour.
After it, one thread a cell gathers the coefficients of its faces in a fixed order and writes its row: no atomic
addition, so that results are reproducible, and no conversion, since it writes into CSR or, through a map of places that
is made once a format, into any format that has one.

Cost of ``matrix``: one launch; a cell of six faces reads 56 bytes of connectivity and, each face's from both sides, 96
of coefficients in double (48 if the second side finds them in cache), and writes its 56 bytes of values.
Storage: 2 words a side of a face and 2 a cell, and as much again for each further format.
"""
from __future__ import annotations

import weakref

import numpy as np

from swell.core.errors import InputError
from swell.formats.csr import CSRMatrix
from swell.formats.matrix import index_type


class Pattern:
    """Where the coefficients of each face lie in a matrix.

    Parameters
    ----------
    space : Space
    n : int
        Cells.
    owner, neighbour : arrays of the space, shapes (f,) and (fi,)
        As of a ``Mesh``. Two cells may share several faces.
    dtype : numpy.dtype
        Of the values.

    Attributes
    ----------
    indptr, indices : arrays of the space
        The CSR pattern: a diagonal in every row, and an entry for every pair of cells that share a face.
    ptr, faces : arrays of the space, shapes (n + 1,) and (f + fi,)
        The faces of each cell, ~f where the cell is the neighbour; by neighbour, those of the boundary last.
    """

    def __init__(self, space, n, owner, neighbour, dtype=np.float64):
        xp = space.xp
        self.space, self.n, self.dtype = space, n, np.dtype(dtype)
        f, fi = owner.size, neighbour.size
        kind = index_type(n, n, 2 * f + n)
        face = xp.arange(f, dtype=kind)
        row = xp.concatenate([owner, neighbour]).astype(np.int64)
        column = xp.concatenate([neighbour, xp.full(f - fi, n), owner[:fi]]).astype(np.int64)
        key = row * (n + 1) + column
        order = xp.argsort(key, kind="stable")                   # a row's cells in order, its boundary after them
        key = key[order]
        row, column = key // (n + 1), key % (n + 1)
        self.faces = xp.concatenate([face, ~face[:fi]])[order]
        self.ptr = _pointers(xp, row, n, kind)
        inner = column < n
        new = inner.copy()
        new[1:] &= key[1:] != key[:-1]                           # several faces of the same two cells: one entry
        before = xp.cumsum(new) - 1                              # entries off the diagonal up to here
        place = before + row + (column > row)                    # and a diagonal for each row before it
        self.places = xp.where(inner, place, -1).astype(kind)
        row, column = row[new], column[new]
        lower = xp.bincount(row[column < row], minlength=n)
        self.indptr = _pointers(xp, row, n, kind) + xp.arange(n + 1, dtype=kind)
        self.middle = (self.indptr[:-1] + lower).astype(kind)
        self.indices = xp.empty(row.size + n, kind)
        self.indices[self.middle] = xp.arange(n, dtype=kind)
        self.indices[place[new]] = column
        self._kernels = space.kernels("swell.pde.fvm", "assembly", self.dtype)
        self._none = space.empty(0, self.dtype)
        self._maps = weakref.WeakKeyDictionary()

    @property
    def nnz(self) -> int:
        """Entries of the matrix."""
        return self.indices.size

    def matrix(self, flux, diagonal=None, out=None):
        """The matrix of Σ F over the faces of each cell, F = a p_O + b p_N (+ c, which belongs to the right-hand side).

        Parameters
        ----------
        flux : Flux
        diagonal : array of the space, shape (n,), optional
            Added to the diagonal, as of a time term.
        out : CSRMatrix or SELLMatrix, optional
            A matrix of this pattern whose values are overwritten; a new CSRMatrix by default.

        Returns
        -------
        CSRMatrix, or what ``out`` is
            CSR matrices of one Pattern share its index arrays; ``Solver.update`` takes them without comparing patterns.
        """
        if out is None:
            values = self.space.empty(self.nnz, self.dtype)
            out = CSRMatrix(self.space, self.indptr, self.indices, values, (self.n, self.n))
        places, middle, indptr, values = self._target(out)
        a, b, beside = (self._array(v) for v in (flux.a, flux.b, self._none if diagonal is None else diagonal))
        self._kernels.assemble(self.ptr, self.faces, places, middle, a, b, beside, indptr, values)
        out.discard_adjoint()
        return out

    def _target(self, out):
        """(places off the diagonal, of the diagonal, of rows that lie one after the other, values) of a matrix."""
        if isinstance(out, CSRMatrix):
            if out.nnz != self.nnz:
                raise InputError(f"out has {out.nnz} entries and this mesh's pattern {self.nnz}: give a matrix that "
                                 "this pattern assembled")
            return self.places, self.middle, self.indptr, out.data
        if out not in self._maps:
            if out.shape != (self.n, self.n) or out.nnz != self.nnz:
                raise InputError(f"out is {out.shape} with {out.nnz} entries and this mesh's pattern "
                                 f"({self.n}, {self.n}) with {self.nnz}: build the format from a matrix that this "
                                 "pattern assembled")
            csr = CSRMatrix(self.space, self.indptr, self.indices, self._none, out.shape)
            csr.nnz = self.nnz
            where = out.positions(csr).astype(self.places.dtype)
            inner = self.space.xp.where(self.places >= 0, where[self.places], -1)
            self._maps[out] = inner.astype(self.places.dtype), where[self.middle]
        return *self._maps[out], self.indptr[:0], out.values

    def collect(self, flux, sign=-1, out=None):
        """Σ over the faces of each cell: of outward fluxes (sign −1), or of what both sides see alike (sign +1)."""
        if out is None:
            out = self.space.empty(self.n, self.dtype)
        self._kernels.collect(self.ptr, self.faces, self._array(flux), self.dtype.type(sign), out)
        return out

    def _array(self, values):
        """As a kernel takes it: of the pattern's type, without gaps; the array itself where it is so."""
        return self.space.xp.ascontiguousarray(values, self.dtype)


def _pointers(xp, row, n, kind):
    """Where each row begins in a list sorted by rows."""
    ptr = xp.zeros(n + 1, kind)
    ptr[1:] = xp.cumsum(xp.bincount(row, minlength=n))
    return ptr
