"""The rows of A in elimination order, for incomplete LU: single rows, and block rows in whole blocks."""
import numpy as np

from swell.core.errors import InputError
from swell.formats.blocks import BlockPattern
from swell.formats.csr import CSRMatrix
from swell.formats.diagonal import remove_empty
from swell.preconditioners.block_factor import BlockFactor
from swell.preconditioners.lu_factorisation import BLOCKS, ENTRIES, algorithm
from swell.preconditioners.lu_threshold import BlockThreshold, EntryThreshold
from swell.transforms.permutation import Permutation


class EntryRows:
    """The rows of a CSRMatrix in the order in which they are eliminated.

    Attributes
    ----------
    pattern : CSRMatrix
        A; its values are never read. None after `arrange`.
    size, entry_bytes : int
        Rows of a block; bytes that an entry of L and U takes, its places in the solves included.
    unit, title, words : str
        What a factor stores; the factorisation for a message; what the operator's description says of the rows.
    threshold : class
        ILUT of such rows.
    """

    size, unit, words, title = 1, "entries", "", "ILU"
    threshold = EntryThreshold

    def __init__(self, A):
        self.pattern, self._space, self._entry = A, A.space, None
        self.entry_bytes = 20 + 3 * A.dtype.itemsize             # L, U and the solves' copies

    def arrange(self, order):
        """Set the order, and return ``pattern`` in it. Row i of a factor is row ``order[i]`` of A, an int array of the
        space; None for equal numbers."""
        A, self.order, self.pattern = self.pattern, order, None
        if order is not None:
            indptr, indices, self._entry = Permutation(A, order).pattern(A)
            A = CSRMatrix(A.space, indptr, indices, A.data, A.shape)
        self._ordered = A
        return A

    def name(self, row):
        """Return the name of row ``row`` of a factor, by its number in A, for a message."""
        return f"row {row if self.order is None else int(self.order[row])}"

    def factor(self, indptr, indices, dtype, name):
        """Return a CSRMatrix for L and U, without values, on a pattern that contains A's.

        ``indptr``, ``indices``: the pattern, the diagonal included. ``name``: the settings' class, for messages. Raises
        InputError if a diagonal entry is missing."""
        A, self._ordered = self._ordered, None
        T = CSRMatrix(self._space, indptr, indices, self._space.xp.empty(indices.size, dtype), A.shape)
        self.diagonal, self._place, self._nnz = diagonal_places(T, name, self.name), places(A, T), T.nnz
        return T

    def algorithm(self, T, settings):
        """Return the algorithm that factors T, a result of `factor`, on its pattern."""
        return algorithm(ENTRIES, settings, T, self.diagonal)

    def load(self, A):
        """Return (values, scale) for `shifted`: A's entries on the pattern of the factor, and the largest modulus of
        each row, 1 for an empty row; both in elimination order."""
        xp = self._space.xp
        values = A.data if self._entry is None else A.data[self._entry]
        if self._place is not None:
            entries, values = values, xp.zeros(self._nnz, A.dtype)
            values[self._place] = entries
        scale = largest_moduli(A.row_maxima(xp.ones(A.shape[1], A.data.real.dtype)))
        return values, scale if self.order is None else scale[self.order]

    def shifted(self, values, scale, shift, T):
        """Return the entries of A + ``shift`` S on the pattern of T: a new array, or ``values`` itself without a shift.
        S is diagonal: ``scale`` with the signs of A's diagonal."""
        if not shift:
            return values
        data = values.copy()
        data[self.diagonal] = moved(self._space.xp, data[self.diagonal], scale, shift)
        return data

    @property
    def nbytes(self):
        return sum(a.nbytes for a in (self.diagonal, self._entry, self._place) if a is not None)


class BlockRows:
    """The block rows of a CSRMatrix in the order in which they are eliminated; methods as `EntryRows` has them.

    Parameters
    ----------
    A : CSRMatrix
    size : int
        Rows of a block; the last block may reach past A, where the matrix is the identity.

    Attributes
    ----------
    pattern : CSRMatrix
        One entry for each nonempty block of A; its values have no meaning. None after `arrange`.
    count : int
        Number of block rows.
    """

    unit, title = "blocks", "block ILU"
    threshold = BlockThreshold

    def __init__(self, A, size):
        blocks, self.size, self._space, self._rows = BlockPattern(A, size), size, A.space, A.shape[0]
        values = A.space.xp.empty(blocks.indices.size, np.float32)
        self.pattern = CSRMatrix(A.space, blocks.indptr, blocks.indices, values, (blocks.rows, blocks.columns))
        self.count, self.entry_bytes = blocks.rows, A.dtype.itemsize * size**2 + 8
        self.words = f", blocks of {size}, fill {self.pattern.nnz * size**2 / max(A.nnz, 1):.2f}"
        self._kernels = A.space.kernels("swell.preconditioners", "block_ilu", A.dtype)

    def arrange(self, order):
        """Set the order, and return ``pattern`` in it. Block row i of a factor is block row ``order[i]`` of A, an int
        array of the space; None for equal numbers."""
        xp, pattern, index = self._space.xp, self.pattern, self.pattern.indptr.dtype
        self.order, self._place, self.pattern = order, xp.empty(0, index), None
        if order is not None:
            self._place = xp.empty(order.size, index)
            self._place[order] = xp.arange(order.size, dtype=index)
            indptr, indices, _ = Permutation(pattern, order).pattern(pattern)
            pattern = CSRMatrix(self._space, indptr, indices, pattern.data, pattern.shape)
        return pattern

    def name(self, row):
        """Return the name of block row ``row`` of a factor, by its numbers in A, for a message."""
        block = row if self.order is None else int(self.order[row])
        last = min((block + 1) * self.size, self._rows) - 1
        return f"diagonal block {block} (rows {block * self.size} to {last})"

    def factor(self, indptr, indices, dtype, name):
        """Return a BlockFactor without values on a pattern that contains A's.

        ``indptr``, ``indices``: the pattern in CSR form, the diagonal included. ``name``: the settings' class, for
        messages. Raises InputError if a diagonal block is missing, OutOfMemory if the blocks would not fit."""
        values = self._space.xp.empty(indices.size, np.float32)
        pattern = CSRMatrix(self._space, indptr, indices, values, (self.count, self.count))
        diagonal_places(pattern, name, self.name, "diagonal blocks have no entry")
        self._space.check_fits(indices.size * self.size**2 * np.dtype(dtype).itemsize,
                               f"L and U in blocks of {self.size}", "use smaller blocks, or a level of 0")
        return BlockFactor.on_pattern(pattern, self.size, dtype, self._rows)

    def algorithm(self, T, settings):
        return algorithm(BLOCKS, settings, T)

    def load(self, A):
        """Return A, and the largest modulus of each row in elimination order; 1 for an empty row and past A."""
        xp = self._space.xp
        scale = xp.ones(self.count * self.size, A.data.real.dtype)
        scale[:self._rows] = largest_moduli(A.row_maxima(xp.ones(A.shape[1], scale.dtype)))
        return A, scale if self.order is None else scale.reshape(self.count, self.size)[self.order].reshape(-1)

    def shifted(self, A, scale, shift, T):
        """Write A + ``shift`` S into the BlockFactor T, with zeros where A has no entry and the identity past A; return
        T's values."""
        T.data[...] = 0
        place = self._place.astype(T.indices.dtype, copy=False)
        self._kernels.load(A.indptr, A.indices, A.data, place, T.lower, T.upper, T.indices, T.data, self.size,
                           T.below)
        if not T.count:
            return T.data
        diagonal = T.inverse.reshape(T.count, -1)[:, ::self.size + 1]
        last, inside = T.count - 1, A.shape[0] - (T.count - 1) * self.size
        diagonal[self._place[last] if self._place.size else last, inside:] = 1
        if shift:
            diagonal[...] = moved(self._space.xp, diagonal, scale.reshape(T.count, -1), shift)
        return T.data

    @property
    def nbytes(self):
        return self._place.nbytes


def diagonal_places(A, name, named="row {}".format, lacking="rows have no diagonal entry"):
    """Return the place of each row's diagonal entry in ``A.data``, an int array of shape (n,).

    Parameters
    ----------
    A : CSRMatrix
    name : str
        The preconditioner, for the message.
    named : callable
        Takes a row number, returns its name for the message.
    lacking : str
        Continues "3 of 5 ..." in the message.

    Raises
    ------
    InputError
        If a row stores no diagonal entry; the message names the first.
    """
    xp, n = A.space.xp, A.shape[0]
    if A.space.name == "cpu":                    # one pass; the array expressions below take three and more memory
        places = np.empty(n, A.indptr.dtype)
        if A.space.kernels("swell.preconditioners", "ilu_rows", A.dtype).find_diagonal(A.indptr, A.indices, places):
            places = places[places >= 0]
    else:
        places = xp.flatnonzero(A.indices == A.rows())
    if places.size < n:
        there = xp.zeros(n, bool)
        there[A.indices[places]] = True
        first = int(there.argmin())  # sync
        remedy = remove_empty(A, slice(None), named) or (
            "with order = swell.transversal(A), a maximum matching, solve A[order] x = b[order], whose x is the same; "
            "or use method='direct'")
        raise InputError(f"{name}: {n - places.size} of {n} {lacking} (the first is {named(first)}), and incomplete LU "
                         f"divides by them: {remedy}")
    return places.astype(A.indptr.dtype, copy=False)


def places(A, wider):
    """Return the place in ``wider.data`` of each entry of A, an int array; None if the two patterns are equal.
    ``wider`` is a CSRMatrix whose pattern contains A's."""
    xp, n = A.space.xp, A.shape[1]
    if A.nnz == wider.nnz:
        return None
    there, here = (m.rows().astype(np.int64) * n + m.indices for m in (A, wider))
    return xp.searchsorted(here, there)


def largest_moduli(scale):
    """Replace zeros of ``scale`` by 1, in place, and return it. It holds the largest modulus of each row, zero for an
    empty row."""
    scale[scale == 0] = 1
    return scale


def moved(xp, d, scale, shift):
    """Return the diagonal of A + shift S, a new array, for the diagonal d of A and S = ``scale``
    with the signs of d. ``xp`` is NumPy or CuPy."""
    modulus = abs(d)
    with np.errstate(over="ignore", invalid="ignore"):           # NumPy divides complex denormal numbers to infinity
        sign = xp.where(modulus > 0, d / xp.where(modulus > 0, modulus, 1), 1)
    return d + sign * (scale * scale.dtype.type(shift))
