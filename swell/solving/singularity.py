"""Why a singular matrix is singular, in sentences for the user: empty rows, floating parts, an incompatible b.

It runs after a failure and in ``swell info``. It copies A to the host once, and passes over its entries a few times.
"""
from __future__ import annotations

from functools import cached_property

import numpy as np

from swell.solving.choice_cost import count
from swell.transforms.left_null import left_null_vector

ROUNDING = 100          # a row sums to zero if |Σⱼ aᵢⱼ| ≤ ROUNDING eps Σⱼ |aᵢⱼ|; b is compatible up to this many eps
MAX_DESCRIBED = 3       # components that are described one by one
MAX_COMPUTED = 10       # components whose left null vectors are computed
REMOVE = "take such equations out with their unknowns, or put a 1 on their diagonal"


def reasons_for_singularity(A, b=None) -> list[str]:
    """Return sentences that say why A is singular and what to do, for the notes of a result.

    Parameters
    ----------
    A : SystemMatrix or matrix-free LinearOperator
        The user's matrix, not a transformed one. Across ranks all ranks must call this together.
    b : array of A's space, shape (n,), optional
        The right-hand side: a sentence says how far it is from the range of A, if that is known.

    Returns
    -------
    list of str
        Empty for a matrix-free A.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from swell.core.devices import make_space
    >>> from swell.formats.csr import CSRMatrix
    >>> A = CSRMatrix.from_scipy(sp.csr_matrix([[2.0, 0, 0], [0, 1, -1], [0, -1, 1]]), make_space("cpu"))
    >>> reasons_for_singularity(A)[1][:76]
    'component 2 of 2 (2 unknowns, from row 1) has rows that all sum to zero, so '
    """
    if not A.has_entries:
        return []
    if not A.space.ranks.single:
        return _across_ranks(A)
    parts = Components(A)
    part = 0.0 if b is None else parts.incompatible(np.asarray(A.space.to_host(b)))
    return parts.sentences() + parts.advice(part)


class CompatiblePart:
    """The part of b with which A x = b may have a solution, for one right-hand side after the other.

    A matrix without known null vectors is remembered: to look for them again takes as long as a short solve."""

    def __init__(self):
        self._regular = None                     # the `Facts` of such a matrix: other values have others

    def __call__(self, A, b) -> tuple:
        """Return (the part of b, a lower bound of ‖b − A x‖₂/‖b‖₂ for all x).

        The bound is the rest of b, which lies in the null space of Aᴴ, as far as this is known from empty rows and
        floating components; 0 if none is known.

        Parameters
        ----------
        A : SystemMatrix or matrix-free LinearOperator
            The user's matrix. Across ranks nothing is known.
        b : array, shape (n,)
            On the host or in A's space; the part is an array of the host.
        """
        if not (A.has_entries and A.space.ranks.single):
            return b, 0.0
        facts = A.facts()
        if facts is self._regular:
            return b, 0.0
        parts = Components(A)
        if not parts.singular:
            self._regular = facts
            return b, 0.0
        b = np.asarray(A.space.to_host(b))
        bound = parts.incompatible(b)
        return (parts.compatible(b) if bound else b), bound


class Components:
    """The connected components of a matrix on one device, and which of them make it singular.

    Attributes
    ----------
    count : int
        Number of components.
    part : int array
        The component of each row, from 0; numbered as ``scipy.sparse.csgraph.connected_components(A != 0)[1]``.
    empty_rows, empty_columns : int arrays
        Rows, and columns, without an entry other than zero.
    floating, draining : int arrays
        Components, with entries, whose rows all sum to zero; and whose columns all sum to zero.
    """

    def __init__(self, A):
        import scipy.sparse as sp
        from scipy.sparse.csgraph import connected_components
        host = sp.csr_array(A.to_scipy())
        if not host.data.all():
            host = host.copy()                   # A keeps its stored zeros
            host.eliminate_zeros()
        self.n, self._A, self._blocks = A.shape[0], host, A.block_size > 1
        self.count, self.part = connected_components(host != 0)
        self.empty_rows = np.flatnonzero(np.diff(host.indptr) == 0)
        self.empty_columns = np.flatnonzero(np.bincount(host.indices, minlength=self.n) == 0)
        self.sizes = np.bincount(self.part, minlength=self.count)
        self.floating, self.draining = self._balanced(host), self._balanced(host.T)

    def _balanced(self, host):
        """Return the components with entries in which each row of ``host`` sums to zero, up to rounding."""
        ones = np.ones(self.n)
        size, eps = abs(host) @ ones, np.finfo(host.dtype).eps
        wrong = ~(abs(host @ ones) <= ROUNDING * eps * size)
        return np.flatnonzero((np.bincount(self.part, wrong, self.count) == 0)
                              & (np.bincount(self.part, size, self.count) > 0))

    @property
    def singular(self) -> bool:
        """True if A is certainly singular."""
        return any(places.size for places in (self.empty_rows, self.empty_columns, self.floating, self.draining))

    def sentences(self) -> list[str]:
        """Return sentences on the number of components, on empty rows and columns, and on floating components."""
        said = [f"A has {self.count} connected components"] if self.count > 1 else []
        if not self.singular:
            return [f"A has {count(self.count, 'connected component')}, no empty row or column, and no component "
                    "whose rows all sum to zero: look for equations that depend on others, and for boundary conditions "
                    "that are missing"]
        if self.empty_rows.size:
            said.append(f"{_named('row', self.empty_rows, self.n)} empty: {REMOVE}")
        columns = np.setdiff1d(self.empty_columns, self.empty_rows)
        if columns.size:
            said.append(f"{_named('column', columns, self.n)} empty: no equation has the unknown; take it out, or give "
                        "it an equation")
        rows = self._each(self.floating, "has rows that all sum to zero, so that nothing fixes its level")
        columns = self._each(np.setdiff1d(self.draining, self.floating),
                             "has columns that all sum to zero, so that b must sum to zero there")
        return said + rows + columns

    def _each(self, components, what) -> list[str]:
        """Return a sentence for each of the first ``components``, and one for the others. ``what``: the end of it."""
        if self.count == 1:
            return [f"A {what}" for _ in components]
        said = [f"component {k + 1} of {self.count} ({count(self.sizes[k], 'unknown')}, from row "
                f"{int(np.argmax(self.part == k))}) {what}" for k in components[:MAX_DESCRIBED]]
        more = len(components) - MAX_DESCRIBED
        return said + ([f"the same holds for {count(more, 'more component')}"] if more > 0 else [])

    def incompatible(self, b) -> float:
        """Return ‖part of b in the null space of Aᴴ‖ / ‖b‖, as far as this null space is known; 0 if it is rounding.

        ``b``: a NumPy array."""
        parts, rounding = [b[self.empty_rows]], 0.0
        for v in self.left_null_vectors:
            parts.append([np.vdot(v, b)])
            rounding = max(rounding, abs(v) @ abs(b))
        size = np.linalg.norm(np.concatenate(parts))
        return float(size / np.linalg.norm(b)) if size > ROUNDING * np.finfo(self._A.dtype).eps * rounding else 0.0

    def compatible(self, b):
        """Return b without its part in the null space of Aᴴ, as far as this is known; 0 if only rounding is left."""
        rest = b.copy()
        rest[self.empty_rows] = 0
        for v in self.left_null_vectors:
            rest -= v * np.vdot(v, rest)
        rounding = ROUNDING * np.finfo(self._A.dtype).eps * np.linalg.norm(b)
        return rest if np.linalg.norm(rest) > rounding else np.zeros_like(b)

    @cached_property
    def left_null_vectors(self) -> list:
        """Unit vectors of the null space of Aᴴ, for the first floating components."""
        left = [(self.part == k) / np.sqrt(self.sizes[k]) for k in self.draining[:MAX_COMPUTED]]
        for k in np.setdiff1d(self.floating, self.draining)[:MAX_COMPUTED]:
            v = left_null_vector(self._A, (self.part == k) * 1.0)
            left += [] if v is None else [v]
        return left

    def advice(self, incompatible=0.0, code=True) -> list[str]:
        """Return sentences on b and on the null space of floating components.

        ``incompatible``: the result of `incompatible`. ``code``: give the null space in code that works for this A;
        False: in words, for a reader who has no Python."""
        said = [f"b is incompatible: its part in the null space of Aᴴ is {incompatible:.1e} ‖b‖, and no x gives a "
                "smaller residual: correct the sources or the boundary fluxes"] if incompatible else []
        if not self.floating.size:
            return said
        free = np.intersect1d(self.part[self.empty_rows], np.flatnonzero(self.sizes == 1))
        basis, where = "'constants'", ""
        if code and self.count > 1 and self.floating.size + free.size <= MAX_DESCRIBED:
            basis = f"(part[:, None] == {np.union1d(self.floating, free).tolist()}) * 1.0"
            where = " with part = scipy.sparse.csgraph.connected_components(A != 0)[1]"
        elif self.count > 1:
            basis, where = "basis", " with a column for each component, 1 on its unknowns and 0 elsewhere"
        nullspace = f"swell.NullSpace({basis}, project=True)" if incompatible else basis
        remedy = "fix one unknown" if self.count == 1 else "take each floating component out, fix one of its unknowns"
        bodies = "; for a free elastic body, its swell.rigid_body_modes(points)" if self._blocks else ""
        return [*said, f"{remedy}, or give nullspace={nullspace}{where}{bodies}"]


def _across_ranks(A) -> list[str]:
    """Return sentences for a distributed A: on empty rows, and on rows that all sum to zero."""
    space = A.space
    ones = space.empty(space.ranks.local_rows(A.shape[0]), A.dtype)
    ones.fill(1)
    size, total = (space.to_host(v) for v in (A.modulus_sums(), abs(A.times(ones))))
    empty = np.arange(A.shape[0])[A.rows][size == 0]
    unbalanced = np.count_nonzero(total > ROUNDING * np.finfo(A.dtype).eps * size)
    counts = space.from_host(np.array([empty.size, unbalanced], np.float64))
    space.ranks.allreduce(counts)
    first = -space.ranks.max(-float(empty.min(initial=A.shape[0])))
    empties, unbalanced = (int(count) for count in space.to_host(counts))
    said = []
    if empties:
        said.append(f"{empties} of {A.shape[0]} rows are empty (the first is row {first:.0f}): {REMOVE}")
    if not unbalanced and empties < A.shape[0]:
        said.append("A has rows that all sum to zero, so that nothing fixes its level: fix one unknown, or give "
                    "nullspace='constants'")
    return [*said, "connected components are counted on one device only, not across ranks"]


def _named(noun, places, n) -> str:
    """Return "row 149 is" or "3 of 150 rows (the first is row 149) are"."""
    if places.size == 1:
        return f"{noun} {places[0]} is"
    return f"{places.size} of {n} {noun}s (the first is {noun} {places[0]}) are"
