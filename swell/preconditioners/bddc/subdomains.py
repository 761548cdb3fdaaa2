"""The input of BDDC: A = Σ Rᵢᵀ Aᵢ Rᵢ, a matrix and its dofs for every subdomain. CG needs symmetric positive
semidefinite ones; other methods take complex, indefinite and nonsymmetric ones too.

This file checks the input. One defect it repairs: each connected piece of a subdomain becomes a subdomain, since a
constraint on one piece does not hold another.
"""
from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from swell.core.errors import InputError
from swell.core.guests import canonical_csr
from swell.core.settings import shown
from swell.formats.matrix import index_type
from swell.preconditioners.bddc.renumbering import pattern


class SubdomainSource(ABC):
    """Subdomains whose matrices may depend on more than a BDDC knows, such as a frequency."""

    @abstractmethod
    def present(self) -> "Subdomains":
        """Return the subdomains of the present matrix."""


class Subdomains(SubdomainSource):
    """Subdomain matrices, such as finite elements summed over the elements of each subdomain.

    Parameters
    ----------
    parts : list of (matrix, dofs)
        For each subdomain: its matrix (k, k), sparse or dense; and the k rows of A that belong to its rows, each once.
        Dofs that two or more subdomains have are the interface. If subdomains share a matrix, pass one object: it is
        then checked once.
    groups : sequence of int arrays, optional
        For more than two levels. ``groups[0]`` has, for each subdomain, its subdomain on the next level; ``groups[1]``
        has this for the subdomains of the next level, and so on. Without groups, about eight neighbours are joined.

    Attributes
    ----------
    matrices : list of scipy.sparse.csr_array
    dofs : list of int arrays
    n : int
        Rows of A.
    notes : tuple of str

    Raises
    ------
    InputError
        For an empty subdomain, a matrix that does not fit its dofs, or a row of A in no subdomain.
    """

    def __init__(self, parts, groups=()):
        read = Pieces.of(parts)
        self.matrices, self.dofs, self.notes = read.matrices, read.dofs, read.notes
        every = np.concatenate(self.dofs)
        self.n = int(every.max()) + 1
        missing = np.flatnonzero(np.bincount(every, minlength=self.n) == 0)
        if missing.size:
            raise InputError(f"Subdomains: row {missing[0]} is in no subdomain, nor are {missing.size - 1} others: "
                             "every row of A needs one")
        self.groups = checked_groups(groups, len(parts), read.origin)

    def __len__(self):
        return len(self.matrices)

    def present(self):
        return self

    @property
    def dtype(self):
        """float64, or complex128 if a matrix is complex."""
        return np.result_type(np.float64, *{matrix.dtype for matrix in self.matrices})

    def times(self, x):
        """Return Σ Rᵢᵀ Aᵢ Rᵢ x, a new host array: the product of the assembled matrix with the host array x."""
        y = np.zeros(self.n, np.result_type(x, self.dtype))
        for matrix, dofs in zip(self.matrices, self.dofs, strict=True):
            y[dofs] += matrix @ x[dofs]
        return y

    def assemble(self):
        """Return A = Σ Rᵢᵀ Aᵢ Rᵢ, a new scipy.sparse.csr_array."""
        import scipy.sparse as sp
        A = sp.coo_array(entries(self.matrices, self.dofs), shape=(self.n, self.n)).tocsr()
        A.sort_indices()
        return A

    # -- methods that swell.distributed.subdomains overrides across ranks --------------------------------------------

    def check(self, A):
        """Raise InputError if A is distributed over ranks, or has another number of rows than the subdomains. The
        values are not compared."""
        if not A.space.ranks.single:
            raise InputError("BDDC: these subdomains belong to a whole matrix, and A is distributed over ranks: give "
                             "each rank its own, A, S = swell.distributed.from_subdomains(ranks, parts)")
        if self.n != A.shape[0]:
            raise InputError(f"BDDC: the subdomains have {self.n} dofs, and A has {A.shape[0]} rows: their "
                             "matrices must add up to A, after boundary conditions were put into both")

    def part(self, A):
        """Return the local rows of A as a CSRMatrix whose columns are numbered as in ``dofs``; here A, not copied."""
        return A

    def name_of(self, row):
        """Return the user's number of a local row, or of an array of them; here the same."""
        return row

    def names(self, rows):
        """Return the user's numbers of rows of A, an int array; here the same numbers."""
        return rows

    def shared(self):
        """Return two new int arrays (rows, number): the rows of A that two or more subdomains have, ascending; and the
        place of each row of A in ``rows``, or -1."""
        counts = np.bincount(np.concatenate(self.dofs), minlength=self.n)
        rows = np.flatnonzero(counts > 1)
        number = np.full(self.n, -1, index_type(self.n, self.n, 0))
        number[rows] = np.arange(rows.size)
        return rows, number

    def from_all_ranks(self, values: list) -> list:
        """Return the concatenated lists of all ranks; here, with one rank, ``values``."""
        return values

    def sum(self, numbers):
        """Sum a device array over all ranks, in place; here, with one rank, do nothing."""

    def resonance(self, k, dofs, vector):
        """Return a clause for the message that the interior of subdomain k resonates; ``vector`` is the mode on its
        local ``dofs``. A front end overrides it to name the frequency."""
        return ""

    def describe(self):
        return f"{len(self)} subdomain" + ("" if len(self) == 1 else "s")


@dataclass(frozen=True, eq=False)
class Pieces:
    """Checked, connected subdomains.

    Attributes
    ----------
    matrices : list of scipy.sparse.csr_array
    dofs : list of int arrays
    origin : int array
        The number of the given subdomain that each one is, or is a piece of.
    notes : tuple of str
    """

    matrices: list
    dofs: list
    origin: np.ndarray
    notes: tuple

    @classmethod
    def of(cls, parts):
        """Check a list of (matrix, dofs), and split each subdomain into its connected components. Returns new Pieces.

        Raises
        ------
        InputError
            As in ``Subdomains``, except for rows in no subdomain.
        """
        import scipy.sparse as sp
        if not isinstance(parts, (list, tuple)) or not parts:
            came = "no parts" if isinstance(parts, (list, tuple)) else shown(parts)
            raise InputError(f"Subdomains: {came} came: expected a list of (matrix, dofs)")
        matrices, every, origin, known, notes = [], [], [], {}, ()
        for k, part in enumerate(parts):
            if not isinstance(part, (tuple, list)) or len(part) != 2:
                raise InputError(f"subdomain {k} is of type {type(part).__name__}: expected a pair (matrix, dofs)")
            source, dofs = part[0], np.asarray(part[1])
            new = id(source) not in known
            matrix = sp.csr_array(canonical_csr(source)) if new else known[id(source)][0]
            _check_dofs(k, matrix, dofs)
            if new:
                _check_values(k, matrix)
                matrix = _symmetric_pattern(matrix)
                known[id(source)] = matrix, [(matrix if piece is None else matrix[piece][:, piece], piece)
                                             for piece in _pieces(matrix)]
            for part, piece in known[id(source)][1]:
                matrices.append(part)
                every.append((dofs if piece is None else dofs[piece]).astype(np.int64))
                origin.append(k)
        if len(origin) > len(parts):
            broken = [k for k, count in enumerate(np.bincount(origin)) if count > 1]
            notes = (f"of {len(parts)} subdomains number {_list(broken)} came in pieces that share no entry: each "
                     f"piece became a subdomain, {len(origin)} in all",)
        return cls(matrices, every, np.array(origin), notes)


def entries(matrices, dofs):
    """Return (values, (rows, columns)) of all Rᵢᵀ Aᵢ Rᵢ: the entries of all subdomain matrices, with rows and columns
    numbered as in the whole matrix. Duplicates are not summed."""
    parts = [matrix.tocoo() for matrix in matrices]
    rows, columns = (np.concatenate([d[getattr(e, axis)] for e, d in zip(parts, dofs, strict=True)])
                     for axis in ("row", "col"))
    return np.concatenate([e.data for e in parts]), (rows, columns)


def _check_dofs(k, matrix, dofs):
    """Raise InputError unless ``dofs`` of subdomain number k are valid row numbers, each once, and as many as its
    matrix has rows."""
    if dofs.ndim != 1 or dofs.dtype.kind not in "iu" and dofs.size:
        raise InputError(f"subdomain {k}: its dofs are of type {dofs.dtype} and shape {dofs.shape}: expected a list "
                         "of rows")
    if not dofs.size:
        raise InputError(f"subdomain {k} is empty: leave it out, or ask the partitioner for fewer parts")
    if matrix.shape != (dofs.size, dofs.size):
        raise InputError(f"subdomain {k} has {dofs.size} dofs and a matrix of shape {matrix.shape}: expected "
                         f"({dofs.size}, {dofs.size})")
    if dofs.min() < 0 or np.unique(dofs).size < dofs.size:
        raise InputError(f"subdomain {k} names a dof twice, or a negative one: expected every row of A once")


def _check_values(k, matrix):
    """Raise InputError unless the matrix of subdomain number k has finite numbers."""
    if matrix.dtype.kind not in "iufc":
        raise InputError(f"subdomain {k} has a matrix of dtype {matrix.dtype}: expected real or complex numbers")
    if not np.isfinite(matrix.data).all():
        raise InputError(f"subdomain {k} has a matrix with entries that are not finite")


def _symmetric_pattern(matrix):
    """Return the matrix with zeros stored where only its transpose has entries; itself if there are none."""
    import scipy.sparse as sp
    e = matrix.tocoo()
    both = sp.coo_array((np.concatenate((e.data, np.zeros(e.nnz, e.dtype))),
                         (np.concatenate((e.row, e.col)), np.concatenate((e.col, e.row)))), matrix.shape).tocsr()
    return matrix if both.nnz == matrix.nnz else both


def _pieces(matrix):
    """Return a list with the rows of each connected component of a sparse matrix, int arrays; [None] for a connected
    matrix."""
    from scipy.sparse.csgraph import connected_components
    count, label = connected_components(pattern(matrix), directed=False)
    return [None] if count == 1 else np.split(np.argsort(label, kind="stable"), np.cumsum(np.bincount(label))[:-1])


def checked_groups(groups, count, origin):
    """Check ``groups`` of `Subdomains` and return them as a tuple of int arrays.

    ``count`` is the number of given subdomains; origin[k] is the given subdomain that connected piece k belongs to.
    ``groups[0]`` is renumbered for the pieces. Raises InputError for a wrong shape, or a number that is left out."""
    checked = []
    for level, group in enumerate(groups):
        group = np.asarray(group)
        whole = group.shape == (count,) and group.dtype.kind in "iu"
        if not whole or not np.array_equal(np.unique(group), np.arange(group.max() + 1)):
            raise InputError(f"groups[{level}] has shape {group.shape}: expected, for each of {count} subdomains, "
                             "the number of its subdomain on the next level, with none of 0, 1, ... left out")
        checked.append(group if level else group[origin])
        count = int(group.max()) + 1
    return tuple(checked)


def _list(numbers):
    """Return a text for a message: up to three of ``numbers``, a list, and the count of the others."""
    shown = ", ".join(map(str, numbers[:3]))
    return f"{shown} and {len(numbers) - 3} others" if len(numbers) > 3 else shown
