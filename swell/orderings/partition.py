"""A locality ordering by graph partition: parts of the graph become slices of a fixed number of consecutive rows, with
the rows that separate the parts after them (section 3.2.1 of the paper on finite volumes; METIS: Karypis and
Kumar 1998).

For formats and smoothers that work on slices of ``height`` rows: most of a row's entries shall lie in its own slice.
What a partitioner gives is not cut for that, in two ways:

- Parts have nearly, not exactly, ``height`` rows, and one row too many would shift all slices behind it. METIS is asked
  for the least imbalance; parts that are still too large shed the rows with the fewest neighbours in them, and parts
  too small take shed rows, first those with the most neighbours in them. So slice s is part s, exactly; the last may be
  short.
- With separators, a least set of rows (a vertex cover of the cut edges, found greedily) is taken out of the parts, so
  that no interior row is coupled to a row of another part's interior. The parts are made so much larger that their
  interiors fill a slice; METIS runs up to four times, since how much larger is known from its result only. Interiors
  that are still too large give rows to the separators, those too small are filled up with separator rows that are
  coupled to them. The separator rows that are left come last, in slices by a partition of their own graph.

Cost: on the host, by METIS, which takes 3 to 5 s for a million rows, each time; nothing an iteration. A matrix on
a GPU sends its pattern there. Needs pymetis. The order is the same in every run and on every device.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swell.core.errors import InputError, MissingDependency
from swell.core.settings import positive, switch
from swell.orderings.ordering import Ordering, adjacency
from swell.transforms.permutation import Permutation

TRIES = 4               # partitions until the interiors are as large as slices
CLOSE = 0.01            # of the height: interiors of this mean size are close enough


@dataclass(frozen=True)
class Partition(Ordering):
    """Parts of a graph partition as slices, with the rows between them last.

    Attributes
    ----------
    height : int
        Rows of a slice.
    separators : bool
        Take rows out of the parts so that what is left of them is not coupled, and number them last. False: all rows by
        part.
    """

    height: int = 512
    separators: bool = True

    problem = "any matrix; its pattern is taken as symmetric"
    cost = "none an iteration; seconds of set-up on the host"

    def __post_init__(self):
        positive(self, "height", 2)
        switch(self, "separators")

    def split(self, A):
        """The parts of a CSRMatrix.

        Returns
        -------
        Parts

        Raises
        ------
        MissingDependency
            Without pymetis.
        """
        indptr, neighbours = (A.space.to_host(a) for a in adjacency(A))
        if self.separators:
            return _with_separators(indptr, neighbours, self.height)
        return _without_separators(indptr, neighbours, self.height)

    def order(self, A):
        return A.space.from_host(self.split(A).order.astype(A.indices.dtype))

    def build(self, A):
        """The permutation for a CSRMatrix; ``note`` says how many rows are separators."""
        parts = self.split(A)
        return Permutation(A, A.space.from_host(parts.order.astype(A.indices.dtype)), parts.describe())


@dataclass(frozen=True)
class Parts:
    """An order by parts.

    Attributes
    ----------
    order : int array of the host, shape (n,)
    count : int
        Parts: slice s is part s for s < count (short of rows only where all separators are used up, and at the end).
    interior : bool array, shape (n,)
        For each row of the order: not a separator. Interior rows of different parts are not coupled.
    height : int
    """

    order: np.ndarray
    count: int
    interior: np.ndarray
    height: int

    @property
    def separator_share(self) -> float:
        """Rows that separate parts, over all rows."""
        return 1 - float(self.interior.mean()) if self.interior.size else 0.0

    def describe(self):
        """One line."""
        return f"{self.count} parts of {self.height} rows, {self.separator_share:.1%} of the rows are separators"


def _without_separators(indptr, neighbours, height):
    """All rows by part."""
    from swell.orderings.kernels import partition
    n = indptr.size - 1
    count = -(-n // height)
    sizes = np.full(count, height)
    sizes[-1:] = n - (count - 1) * height
    home = _metis(indptr, neighbours, sizes)
    loose = np.argsort(-partition.outside(indptr, neighbours, home), kind="stable")
    partition.settle(indptr, neighbours, home, sizes, loose)
    return Parts(np.argsort(home, kind="stable"), count, np.ones(n, bool), height)


def _with_separators(indptr, neighbours, height):
    """Interiors by part, then separators."""
    from swell.orderings.kernels import partition
    n = indptr.size - 1
    count = -(-n // height)
    for _ in range(TRIES):
        home = _metis(indptr, neighbours, np.full(count, -(-n // count)) if count else np.empty(0, np.int64))
        cut = np.argsort(-partition.outside(indptr, neighbours, home), kind="stable")
        between = partition.cover(indptr, neighbours, home, cut)
        inside = n - int(between.sum())
        if count <= 1 or abs(inside - count * height) <= CLOSE * count * height:
            break
        count = max(1, round(inside / height))
    home[between] = -1
    loose = np.argsort(-partition.outside(indptr, neighbours, home), kind="stable")
    given = home.copy()
    partition.settle(indptr, neighbours, home, np.full(count, height), loose)
    interior = (home >= 0) & (given >= 0) & (home == given)
    full = np.argsort(-np.minimum(np.bincount(home[home >= 0], minlength=count), height), kind="stable")
    place = np.empty_like(full)
    place[full] = np.arange(count)
    inside = np.flatnonzero(home >= 0)
    inside = inside[np.argsort(2 * place[home[inside]] + ~interior[inside], kind="stable")]
    last = np.flatnonzero(home < 0)
    last = last[_without_separators(*_subgraph(indptr, neighbours, last), height).order]
    order = np.concatenate((inside, last))
    return Parts(order, count, interior[order], height)


def _subgraph(indptr, neighbours, vertices):
    """The graph of some vertices only, ascending."""
    number = np.full(indptr.size - 1, -1, neighbours.dtype)
    number[vertices] = np.arange(vertices.size)
    rows = number[np.repeat(np.arange(indptr.size - 1), np.diff(indptr))]
    columns = number[neighbours]
    kept = (rows >= 0) & (columns >= 0)
    inner = np.zeros(vertices.size + 1, indptr.dtype)
    np.cumsum(np.bincount(rows[kept], minlength=vertices.size), out=inner[1:])
    return inner, columns[kept]


def of_matrix(A, parts: int) -> np.ndarray:
    """The part of every row of a square CSRMatrix, int64: so many parts, about equal, with few entries between them."""
    indptr, neighbours = (A.space.to_host(array) for array in adjacency(A))
    return _metis(indptr, neighbours, np.full(parts, A.shape[0] / parts))


def _metis(indptr, neighbours, sizes):
    """The part of every vertex, int64, for parts of about these sizes."""
    if sizes.size <= 1:
        return np.zeros(indptr.size - 1, np.int64)
    try:
        from pymetis import CSRAdjacency, Options, part_graph
    except ImportError as error:
        raise MissingDependency(f"partitions of graphs need pymetis 2025.2 or newer ({error}): pip install "
                                "'swell[partition]'") from None
    if neighbours.size >= 2**31:
        raise InputError(f"ordering='partition': METIS takes 32-bit indices, and the graph of this matrix has "
                         f"{neighbours.size} entries: use ordering='rcm'")
    graph = CSRAdjacency(indptr.astype(np.int32), neighbours.astype(np.int32))
    # ufactor: a part may exceed its size by so many thousandths. For parts so nearly equal recursive bisection is the
    # method: the k-way one left up to half of the entries outside the parts.
    found = part_graph(sizes.size, graph, tpwgts=(sizes / sizes.sum()).tolist(), recursive=True,
                       options=Options(ufactor=1, seed=1))
    return np.asarray(found.vertex_part, np.int64)
