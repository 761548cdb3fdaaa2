"""Face-based assembly: one kernel writes the fluxes of the faces into the values of a matrix, on the device.

The paper (chapter 6) leaves assembly on the GPU to future work. Here the pattern is made once, from owner and
neighbour. Then one thread a cell gathers the coefficients of its faces in a fixed order and writes its row. There is no
atomic addition, so that results are reproducible. There is no conversion: the thread writes into CSR, or into another
format through a map of positions, which is made once a format.

Cost of ``matrix``: one launch. A cell of six faces reads 56 bytes of connectivity and 96 bytes of coefficients in
double, as each face is read from both sides (48 if the second read hits the cache). It writes 56 bytes of values.
Storage: 2 words a side of a face and 2 a cell, and as much again for each further format.
"""
from __future__ import annotations

import weakref

import numpy as np

from swell.core.errors import InputError
from swell.formats.csr import CSRMatrix
from swell.formats.matrix import index_type


class Pattern:
    """The sparsity pattern of a mesh's matrices, and the position of each face's coefficients in them.

    Parameters
    ----------
    space : Space
    n : int
        Number of cells.
    owner, neighbour : arrays of the space, shapes (f,) and (fi,)
        See ``Mesh``. Two cells may share several faces.
    dtype : numpy.dtype
        Type of the values.

    Attributes
    ----------
    indptr, indices : arrays of the space
        The CSR pattern: a diagonal in every row, and an entry for every pair of cells that share a face.
    ptr, faces : arrays of the space, shapes (n + 1,) and (f + fi,)
        The faces of each cell, sorted by the cell on the other side, boundary faces last; ~f if the cell is the
        face's neighbour.
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
        order = xp.argsort(key, kind="stable")                   # a row's columns ascend, its boundary faces come last
        key = key[order]
        row, column = key // (n + 1), key % (n + 1)
        self.faces = xp.concatenate([face, ~face[:fi]])[order]
        self.ptr = _pointers(xp, row, n, kind)
        inner = column < n
        new = inner.copy()
        new[1:] &= key[1:] != key[:-1]                           # several faces between the same cells: one entry
        before = xp.cumsum(new) - 1                              # off-diagonal entries before this one
        place = before + row + (column > row)                    # plus the diagonals of the rows before it
        self.places = xp.where(inner, place, -1).astype(kind)
        row, column = row[new], column[new]
        lower = xp.bincount(row[column < row], minlength=n)
        self.indptr = _pointers(xp, row, n, kind) + xp.arange(n + 1, dtype=kind)
        self.middle = (self.indptr[:-1] + lower).astype(kind)
        self.indices = xp.empty(row.size + n, kind)
        self.indices[self.middle] = xp.arange(n, dtype=kind)
        self.indices[place[new]] = column
        self._kernels = space.kernels("swell.pde.fvm", "assembly", self.dtype)
        self._sums = space.kernels("swell.pde.fvm", "collecting", self.dtype)
        self._none = space.empty(0, self.dtype)
        self._maps = weakref.WeakKeyDictionary()

    @property
    def nnz(self) -> int:
        """Number of entries of the matrix."""
        return self.indices.size

    def matrix(self, flux, diagonal=None, out=None):
        """Assemble the matrix of Σ F, the sum of the outward fluxes F = a p_O + b p_N + c over each cell's faces. The
        matrix holds a and b; c belongs to the right-hand side.

        Parameters
        ----------
        flux : Flux
        diagonal : array of the space, shape (n,), optional
            Added to the diagonal, for example for a time term.
        out : CSRMatrix or SELLMatrix, optional
            A matrix of this pattern whose values are overwritten; a new CSRMatrix by default.

        Returns
        -------
        CSRMatrix, or the type of ``out``
            CSR matrices of one Pattern share its index arrays; ``Solver.update`` takes them without comparing patterns.
        """
        if out is None:
            out = self.empty_matrix()
        places, middle, indptr, values = self._target(out)
        a, b, extra = (self.as_values(v) for v in (flux.a, flux.b, self._none if diagonal is None else diagonal))
        self._kernels.assemble(self.ptr, self.faces, places, middle, a, b, extra, indptr, values)
        out.discard_adjoint()
        return out

    def empty_matrix(self, unknowns=1):
        """Return a CSRMatrix of this pattern, whose values are not set. With several ``unknowns`` a cell it holds an
        uncoupled copy of the pattern for each: unknown i of cell c is row unknowns · c + i."""
        if unknowns == 1:
            indptr, indices = self.indptr, self.indices
        else:
            begins, columns = (self.space.to_host(v).astype(np.int64) for v in (self.indptr, self.indices))
            lengths = np.repeat(np.diff(begins), unknowns)
            order = np.concatenate([[0], np.cumsum(lengths)])
            row = np.repeat(np.arange(self.n * unknowns), lengths)
            within = np.arange(order[-1]) - order[row]
            all_columns = columns[begins[row // unknowns] + within] * unknowns + row % unknowns
            kind = index_type(self.n * unknowns, self.n * unknowns, all_columns.size)
            indptr, indices = (self.space.from_host(v.astype(kind)) for v in (order, all_columns))
        size = self.n * unknowns
        return CSRMatrix(self.space, indptr, indices, self.space.empty(indices.size, self.dtype), (size, size))

    def _target(self, out):
        """Return where ``out`` stores the values of this pattern: (positions of the entries off the diagonal, positions
        of the diagonal entries, indptr, array of values). The positions are indices into the values; indptr is empty
        unless ``out`` is a CSRMatrix."""
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
        """Sum the face values ``flux``, shape (f,), over each cell's faces; return shape (n,), written to ``out`` if
        given. ``sign`` multiplies the values of faces whose neighbour (not owner) is the cell."""
        if out is None:
            out = self.space.empty(self.n, self.dtype)
        self._sums.collect(self.ptr, self.faces, self.as_values(flux), self.dtype.type(sign), out)
        return out

    def as_values(self, values):
        """Return ``values`` as a contiguous array of the pattern's type, as kernels need; a copy only if necessary."""
        return self.space.from_host(values).astype(self.dtype, copy=False)


def _pointers(xp, row, n, kind):
    """Return row pointers, shape (n + 1,): the entries of row i have the numbers ptr[i] … ptr[i + 1] − 1. ``row``:
    sorted row indices; ``xp``: NumPy or CuPy; ``kind``: integer type."""
    ptr = xp.zeros(n + 1, kind)
    ptr[1:] = xp.cumsum(xp.bincount(row, minlength=n))
    return ptr
