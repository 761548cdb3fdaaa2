"""Readers for one rank's share of a matrix in a file, so that no rank ever holds the whole matrix.

From PETSc binary files and CSR matrices in ``.npz`` archives, a rank reads its own rows. The entries of a Matrix Market
file come in any order. There rank r parses pieces r, r + ranks, r + 2 ranks, … of the text, with entries of any rows,
and skips the others. The caller must send these entries to the ranks that own them.
"""
import io
import zipfile

import numpy as np
import scipy.sparse as sp

from swell.core.errors import InputError
from swell.io import files, matrix_market, npy, npz, petsc
from swell.io.canonical import expand

PIECE = 1 << 22         # bytes of a piece of text


def open_rows(path):
    """Open a matrix file, from which each rank will read its own share of the entries.

    The result has ``shape``, ``nnz`` (the number of stored entries) and the method ``share``. After ``share``, its
    ``found`` is the number of stored entries that this rank has read. Where ``by_rows`` is True, ``share`` returns this
    rank's rows as CSR; otherwise entries of any rows, as a COO matrix of the whole shape.

    Raises
    ------
    InputError
        If there is no such file, or its format cannot be read in parts.
    """
    path = files.regular_file(path)
    kind = files.identify(path)
    if kind is files.Kind.MATRIX_MARKET:
        return MatrixMarketRows(path)
    if kind is files.Kind.NPZ:
        return NpzRows(path)
    if kind is files.Kind.PETSC:
        return PetscRows(path)
    raise InputError(f"{path} is {kind.value}, from which ranks cannot read their rows: write it as Matrix Market, as "
                     "a PETSc binary file, or in CSR with scipy.sparse.save_npz")


class PetscRows:
    """A Mat of a PETSc binary file."""

    by_rows = True

    def __init__(self, path):
        self.path = path
        self.mat = petsc.first_matrix(path)
        self.shape, self.nnz = self.mat.sizes[:2], self.mat.sizes[2]
        if self.nnz < 0:
            raise InputError(f"{path} holds a dense matrix, which ranks cannot read by rows: solve it on one rank")

    def share(self, rank, ranks, starts):
        """Read this rank's rows, starts[rank] to starts[rank + 1] - 1; return them as CSR, with all columns.

        `ranks`: their number; it has no effect."""
        mat, first, stop = self.mat, starts[rank], starts[rank + 1]
        lengths = petsc.row_lengths(self.path, mat)
        begin, count = int(lengths[:first].sum()), int(lengths[first:stop].sum())
        columns = mat.start + (self.shape[0] + begin) * mat.integer.itemsize
        self.found = count
        return _csr(self.path, lengths[first:stop], petsc.part(self.path, mat.integer, count, columns),
                    petsc.part(self.path, mat.scalar, count, mat.values + begin * mat.scalar.itemsize), self.shape[1])


class NpzRows:
    """A CSR matrix that scipy.sparse.save_npz wrote."""

    by_rows = True

    def __init__(self, path):
        self.path = path
        with files.damage_explained(path, npy.AGAIN), np.load(path, allow_pickle=False) as archive:
            if "format" not in archive.files or archive["format"].item() not in (b"csr", "csr"):
                raise InputError(f"{path} holds no matrix in CSR, the only format of .npz that ranks read by rows: "
                                 "write it with scipy.sparse.save_npz(path, A.tocsr())")
            npz.check_members(path, ["shape", "indptr"], 1)
            self.shape, self.indptr = tuple(int(size) for size in archive["shape"]), archive["indptr"]
        self.nnz = int(self.indptr[-1])
        files.check_shape(path, self.shape, self.nnz)

    def share(self, rank, ranks, starts):
        """Read this rank's rows, starts[rank] to starts[rank + 1] - 1; return them as CSR, with all columns.

        `ranks`: their number; it has no effect."""
        first, stop = starts[rank], starts[rank + 1]
        begin, end = int(self.indptr[first]), int(self.indptr[stop])
        self.found = end - begin
        with files.damage_explained(self.path, npy.AGAIN):
            columns, values = (_stretch(self.path, name, begin, end) for name in ("indices.npy", "data.npy"))
        return _csr(self.path, np.diff(self.indptr[first:stop + 1]), columns, values, self.shape[1])


class MatrixMarketRows:
    """A Matrix Market file in coordinates."""

    by_rows = False

    def __init__(self, path):
        self.path = path
        with files.opened(path) as stream:
            self.header = matrix_market.read_header(path, stream)
        matrix_market.check_sizes(path, self.header)
        if self.header.layout != "coordinate":
            raise InputError(f"{path} holds a dense matrix, which ranks cannot read by rows: solve it on one rank")
        self.shape, self.nnz = (self.header.rows, self.header.cols), self.header.entries
        files.check_shape(path, self.shape, self.nnz)

    def share(self, rank, ranks, starts):
        """Read the pieces rank, rank + ranks, … of the text; return their entries as a COO matrix of the whole shape.

        A stored triangle is expanded. ``starts`` has no effect: the entries may lie in any rows."""
        header, pieces = self.header, []
        with files.opened(self.path) as stream:
            matrix_market.read_header(self.path, stream)
            for k, piece in enumerate(_pieces(self.path, stream, matrix_market.most_text(header))):
                if k % ranks == rank:
                    pieces.append(matrix_market.read_entries(self.path, header, piece))
        row, column, value = (np.concatenate(arrays) for arrays in zip(*((e.row, e.col, e.data) for e in pieces))) \
            if pieces else (np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0))
        self.found = value.size
        stored = sp.coo_matrix((value, (row, column)), shape=self.shape)
        matrix_market.check_triangle(self.path, header, stored)
        return expand(header.symmetry, stored)


def _pieces(path, stream, most):
    """Yield the rest of an open text `stream` in pieces of whole lines; InputError for more than `most` bytes."""
    rest, passed = b"", 0
    while block := stream.read(PIECE):
        passed += len(block)
        if passed > most or len(rest) > files.LONGEST_LINE:
            raise files.too_long(path, min(passed, most))
        block = rest + block
        end = block.rfind(b"\n") + 1
        rest = block[end:]
        if end:
            yield block[:end]
    if rest.strip():
        yield rest + b"\n"


def _stretch(path, member, begin, end):
    """Return elements begin to end - 1 of the one-dimensional array `member` in the archive `path`."""
    with zipfile.ZipFile(path) as archive, archive.open(member) as stream:
        _, dtype = npz.array_header(stream)
        remaining = begin * dtype.itemsize
        while remaining:                         # a compressed stream cannot jump: read the bytes before `begin`
            passed = len(stream.read(min(remaining, PIECE)))
            if not passed:
                raise EOFError(f"{member} ends early")
            remaining -= passed
        held = bytearray((end - begin) * dtype.itemsize)
        if io.BufferedReader(stream).readinto(held) != len(held):
            raise EOFError(f"{member} ends early")
    return np.frombuffer(held, dtype)


def _csr(path, lengths, columns, values, n):
    """Return consecutive rows as a CSR matrix of ``n`` columns.

    `lengths`: entries of each row. `columns`, `values`: of their entries. `path` is for the message."""
    if columns.size and not 0 <= columns.min() <= columns.max() < n:
        raise InputError(f"{path}: columns range from {columns.min()} to {columns.max()}, outside 0 to {n - 1}: "
                         "the file is damaged, write it again")
    return sp.csr_array((values, columns, np.concatenate([[0], np.cumsum(lengths)])), shape=(lengths.size, n))
