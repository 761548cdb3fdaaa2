"""A locality ordering by graph partition: parts of the graph become slices of a fixed number of consecutive rows, and
the rows that separate the parts follow them (section 3.2.1 of the paper on finite volumes; METIS: Karypis and
Kumar 1998).

It is for formats and smoothers that work on slices of ``height`` rows: most entries of a row should lie in its own
slice. A partitioner's result does not fit slices, for two reasons:

- Parts have nearly, not exactly, ``height`` rows, and one extra row would shift all later slices. METIS is asked for
  the smallest imbalance. Parts that are still too large shed their rows with the fewest neighbours inside. Parts that
  are too small take shed rows, first the rows with the most neighbours inside. So slice s is exactly part s; the last
  may be short.
- With separators, a small set of rows (a vertex cover of the cut edges, found greedily) is taken out of the parts. Then
  no interior row is coupled to another part's interior. The parts are enlarged so that their interiors fill a slice.
  METIS runs up to four times, because only its result shows the size of the separators. Interiors that are still too
  large give rows to the separators. Interiors that are too small take separator rows coupled to them. The remaining
  separator rows come last, in slices by a partition of their own graph.

Cost: METIS on the host, 3 to 5 s for a million rows in each run; nothing an iteration. A matrix on a GPU sends its
pattern there. Needs pymetis. The order is the same in every run and on every device.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swell.core.cpu import native_kernels
from swell.core.errors import InputError, MissingDependency
from swell.core.settings import positive, switch
from swell.orderings.ordering import Ordering, adjacency
from swell.transforms.permutation import Permutation

TRIES = 4               # most partitions tried until the interiors are as large as slices
CLOSE = 0.01            # fraction of the height by which the mean size of interiors may differ from it


@dataclass(frozen=True)
class Partition(Ordering):
    """Parts of a graph partition as slices, with the separator rows last.

    Attributes
    ----------
    height : int
        Rows of a slice.
    separators : bool
        Number separator rows last, so that the interiors of the parts are not coupled. False: sort all rows by part.
    """

    height: int = 512
    separators: bool = True

    problem = "any matrix; its pattern is taken as symmetric"
    cost = "none an iteration; seconds of set-up on the host"

    def __post_init__(self):
        positive(self, "height", 2)
        switch(self, "separators")

    def split(self, A):
        """Partition the graph of a CSRMatrix and return its `GraphParts`, which hold the order.

        Returns
        -------
        GraphParts

        Raises
        ------
        MissingDependency
            If pymetis is not installed.
        """
        indptr, neighbours = (A.space.to_host(a) for a in adjacency(A))
        if self.separators:
            return _with_separators(indptr, neighbours, self.height)
        return _without_separators(indptr, neighbours, self.height)

    def order(self, A):
        return A.space.from_host(self.split(A).order.astype(A.indices.dtype))

    def build(self, A):
        """Return the `Permutation` for a CSRMatrix; its ``note`` says how many rows are separators."""
        parts = self.split(A)
        return Permutation(A, A.space.from_host(parts.order.astype(A.indices.dtype)), parts.describe())


@dataclass(frozen=True)
class GraphParts:
    """An order by parts, made by `Partition.split`.

    Attributes
    ----------
    order : int array of the host, shape (n,)
    count : int
        Number of parts: slice s is part s for s < count. Slices lack rows only at the end, or if separators run out.
    interior : bool array, shape (n,)
        False for each place of the order with a separator row. Interior rows of different parts are not coupled.
    height : int
        Rows of a slice.
    """

    order: np.ndarray
    count: int
    interior: np.ndarray
    height: int

    @property
    def separator_share(self) -> float:
        """The fraction of rows that are separators."""
        return 1 - float(self.interior.mean()) if self.interior.size else 0.0

    def describe(self):
        """Return one line for a report: number of parts, their rows, fraction of separators."""
        return f"{self.count} parts of {self.height} rows, {self.separator_share:.1%} of the rows are separators"


def _outside(indptr, neighbours, home):
    """Return for each vertex the number of neighbours in other parts, less the number in its own; home[v] is the part
    of v, −1 for none."""
    count = np.empty(home.size, np.int64)
    native_kernels("swell.orderings", "partition").outside(indptr, neighbours, home, count)
    return count


def _without_separators(indptr, neighbours, height):
    """Return `GraphParts` with all rows sorted by part, ``height`` rows in each. The graph is in CSR form, on the
    host."""
    kernels = native_kernels("swell.orderings", "partition")
    n = indptr.size - 1
    count = -(-n // height)
    sizes = np.full(count, height)
    sizes[-1:] = n - (count - 1) * height
    home = _metis(indptr, neighbours, sizes)
    loose = np.argsort(-_outside(indptr, neighbours, home), kind="stable")
    kernels.settle(indptr, neighbours, home, sizes, loose)
    return GraphParts(np.argsort(home, kind="stable"), count, np.ones(n, bool), height)


def _with_separators(indptr, neighbours, height):
    """Return `GraphParts` with the interior rows sorted by part, ``height`` rows in each, then the separator rows. The
    graph is in CSR form, on the host."""
    kernels = native_kernels("swell.orderings", "partition")
    n = indptr.size - 1
    count = -(-n // height)
    for _ in range(TRIES):
        home = _metis(indptr, neighbours, np.full(count, -(-n // count)) if count else np.empty(0, np.int64))
        cut = np.argsort(-_outside(indptr, neighbours, home), kind="stable")
        between = np.zeros(n, bool)
        kernels.cover(indptr, neighbours, home, cut, between)
        inside = n - int(between.sum())
        if count <= 1 or abs(inside - count * height) <= CLOSE * count * height:
            break
        count = max(1, round(inside / height))
    home[between] = -1
    loose = np.argsort(-_outside(indptr, neighbours, home), kind="stable")
    before = home.copy()
    kernels.settle(indptr, neighbours, home, np.full(count, height), loose)
    interior = (home >= 0) & (before >= 0) & (home == before)
    full = np.argsort(-np.minimum(np.bincount(home[home >= 0], minlength=count), height), kind="stable")
    place = np.empty_like(full)
    place[full] = np.arange(count)
    inside = np.flatnonzero(home >= 0)
    inside = inside[np.argsort(2 * place[home[inside]] + ~interior[inside], kind="stable")]
    last = np.flatnonzero(home < 0)
    last = last[_without_separators(*_subgraph(indptr, neighbours, last), height).order]
    order = np.concatenate((inside, last))
    return GraphParts(order, count, interior[order], height)


def _subgraph(indptr, neighbours, vertices):
    """Return (indptr, neighbours) of the part of a graph that has only the given vertices, an ascending int array.
    Vertex i of the result is vertices[i]."""
    number = np.full(indptr.size - 1, -1, neighbours.dtype)
    number[vertices] = np.arange(vertices.size)
    rows = number[np.repeat(np.arange(indptr.size - 1), np.diff(indptr))]
    columns = number[neighbours]
    kept = (rows >= 0) & (columns >= 0)
    inner = np.zeros(vertices.size + 1, indptr.dtype)
    np.cumsum(np.bincount(rows[kept], minlength=vertices.size), out=inner[1:])
    return inner, columns[kept]


def of_matrix(A, parts: int) -> np.ndarray:
    """Partition a square CSRMatrix into ``parts`` about equal parts with few entries between them.

    Returns the part of every row, an int64 array of the host."""
    indptr, neighbours = (A.space.to_host(array) for array in adjacency(A))
    return _metis(indptr, neighbours, np.full(parts, A.shape[0] / parts))


def _metis(indptr, neighbours, sizes):
    """Return the part of every vertex, a new int64 array, from METIS; part k has about sizes[k] vertices."""
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
    # ufactor is the allowed excess of a part in thousandths. For such nearly equal parts recursive bisection is better:
    # the k-way method left up to half of the entries outside the parts.
    partition = part_graph(sizes.size, graph, tpwgts=(sizes / sizes.sum()).tolist(), recursive=True,
                           options=Options(ufactor=1, seed=1))
    return np.asarray(partition.vertex_part, np.int64)
