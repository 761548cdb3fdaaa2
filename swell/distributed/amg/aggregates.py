"""Aggregates and tentative prolongators across ranks, equal to one device's, with members on several ranks.

Each rank makes its rows of the graph of nodes, and gets those of ghosts within a link. MIS(2) is PMIS on the square of
the strong links, with hashes of node numbers as keys, in rounds as in pmis.py. An aggregate and its unknowns of the
next level belong to its root's rank. This rank fetches modes and rows of A of members elsewhere, makes the columns of
the aggregate orthonormal in energy by the kernels of one device, and sends the other ranks their rows of T. Sums have
the order of global numbers, so T has the bits of one device for equal A.

Differs from "uncoupled" aggregation (Tuminaro and Tong 2000), whose aggregates end at the borders of ranks. There the
nodes across a thin plate that a border parts stay apart on every level in parts, stiffly linked: with cells of
1 × 1 × 0.01 it takes up to five times the iterations (benchmarks/notes/multigrid_ranks.md).
"""
from __future__ import annotations

import numpy as np

from swell.distributed.amg.pmis import decided
from swell.distributed.amg.rows import coarse_space
from swell.distributed.amg.window import Border, Stacked, Window, cut, own_rows, selected
from swell.formats.csr import CSRMatrix
from swell.formats.product import Product
from swell.preconditioners.amg.aggregates import node_graph, strong_nodes
from swell.preconditioners.amg.aggregation import tentative
from swell.preconditioners.amg.pmis import coarse_numbers
from swell.preconditioners.amg.slots import State

NONE = -1               # the aggregate of a node without strong links


class NodeGraph:
    """This rank's rows of the graph of nodes, and those of ghosts within a link.

    Parameters
    ----------
    A : RankRows
    aggregation : Aggregation
        Of this rank's nodes.

    Attributes
    ----------
    space : DistributedSpace
        Of the nodes.
    near, window : Window
        This rank's nodes, with ghosts within one link; within two.
    border : Border
        Of ``window``.
    matrix : CSRMatrix
        Square, of the nodes of ``window``.
    strong : uint8 array
        1 for each entry of ``matrix`` that is a strong link.
    state : uint8 array
        The `State` of each node of ``window``: a root is COARSE.
    """

    def __init__(self, A, aggregation):
        self.space = coarse_space(A.space, aggregation.count)
        rows = self._own_rows(A, aggregation)
        ghost_rows = Border(self.near).rows(rows, self.near)
        self.window = self.near.with_ghosts(ghost_rows.columns)
        self.border, own = Border(self.window), self.window.own
        self.matrix = Stacked(rows, self.near, ghost_rows, self.near, self.window, self.window).matrix
        self.strong, state = strong_nodes(self.matrix, aggregation.settings.strength, self._of_owners)
        self.state = self._roots(state[own])

    def _of_owners(self, values):
        """Return ``values`` of the nodes of ``window`` with those of ghosts replaced by their owners'."""
        own = values[self.window.own].copy()
        return self.window.around(own, self.border.values(own))

    def _own_rows(self, A, aggregation):
        """Return this rank's rows, a CSRMatrix whose columns the Window ``near`` numbers."""
        csr, window, xp = A.csr, A.window, A.space.xp
        border, index, self.near, places = Border(window), csr.indices.dtype, window, None
        if A.space.ranks.max(float(aggregation.nodes is not None)):            # else each unknown is a node
            nodes = xp.arange(csr.shape[0]) if aggregation.nodes is None else aggregation.nodes
            nodes = nodes.astype(np.int64) + self.space.ranks.first
            there = border.values(nodes)
            self.near = Window(self.space, A.space.empty(0, np.int64)).with_ghosts(there)
            places = window.around(self.near.places(nodes, index), self.near.places(there, index))
        modes = window.around(aggregation.modes, border.values(aggregation.modes))
        square = CSRMatrix(csr.space, window.pointers(csr.indptr), csr.indices, csr.data, (window.size, window.size))
        graph = node_graph(square, places, self.near.size, modes)              # rows of ghosts are empty
        indptr = graph.indptr[self.near.own.start:self.near.own.stop + 1]
        return CSRMatrix(csr.space, indptr, graph.indices, graph.data, (self.near.rows, self.near.size))

    def _roots(self, state):
        """Return the state of each node of ``window``, from the ``state`` of this rank's nodes."""
        space, M, window = self.space, self.matrix, self.window
        linked = self.strong | (M.indices == M.rows()).astype(np.uint8)        # a node and its strong neighbours
        starts = space.empty(M.nnz + 1, M.indices.dtype)
        space.prefix_sums(linked, starts)
        indices, = selected(space, linked, M.indices)
        ones = space.xp.ones(indices.size)
        links = CSRMatrix(M.space, starts[M.indptr], indices, ones, M.shape)
        begin, end = (int(k) for k in space.to_host(links.indptr[[window.own.start, window.own.stop]]))  # sync
        within_two = Product(own_rows(links, window, slice(begin, end)), links).C
        keys = space.empty(window.rows, np.int64)
        _kernels(M).hashes(self.space.ranks.first, keys)
        return decided(window, self.border, within_two.indptr, within_two.indices,
                       space.xp.ones(within_two.nnz, np.uint8), keys, state)

    def aggregates(self):
        """Return (the aggregate of each of this rank's nodes, an int64 array of global numbers, `NONE` without one; the
        DistributedSpace of the aggregates; which of this rank's nodes have a strong link to another aggregate or are in
        none, a uint8 array)."""
        space, M, window, own = self.space, self.matrix, self.window, self.window.own
        joined, local = (space.empty(window.size, M.indices.dtype) for _ in range(2))
        pattern, kernels = (M.indptr, M.indices, M.data, self.strong), _kernels(M)
        numbers = coarse_numbers(M, self.state)
        kernels.join_roots(*pattern, self.state, numbers, joined)
        kernels.join_neighbours(*pattern, joined, local)
        first, stop = (int(n) for n in space.to_host(numbers[[own.start, own.stop]]))  # sync
        roots = coarse_space(self.space, stop - first)
        there = self.border.values(numbers[own].astype(np.int64) - first + roots.ranks.first)
        ghosts, = selected(space, (window.of_ghosts(self.state) == State.COARSE).astype(np.uint8), there)
        known = Window(roots, ghosts)                              # its places are the numbers of roots in ``window``
        xp, local = space.xp, local[own].copy()
        found = local.astype(np.int64)
        if known.size:
            found = xp.where(local >= 0, known.numbers(xp.maximum(local, 0)), NONE)
        everywhere = self._same(window.around(found, self.border.values(found)), M.indices.dtype)
        crossing = space.empty(window.size, np.uint8)
        M.space.kernels("swell.preconditioners.amg", "links", np.float64).crossings(M.indptr, M.indices, self.strong,
                                                                                    everywhere, crossing)
        return found, roots, crossing[own].copy()

    def _same(self, numbers, index):
        """Return small numbers for global ``numbers``, equal where these are equal; `NONE` stays."""
        xp = self.space.xp
        return xp.where(numbers >= 0, xp.searchsorted(xp.sort(numbers), numbers), NONE).astype(index)


class Members:
    """The unknowns of this rank's aggregates, here and on other ranks.

    Parameters
    ----------
    A : RankRows
    aggregates : int64 array
        The aggregate of each of this rank's unknowns, `NONE` without one.
    roots : DistributedSpace
        Of the aggregates.

    Attributes
    ----------
    window : Window
        This rank's unknowns; the ghosts are members of its aggregates.
    near : Window
        The unknowns that rows of A link with members of its aggregates.
    count : int
        The number of this rank's aggregates.
    """

    def __init__(self, A, aggregates, roots):
        self.A, self.roots, space, xp = A, roots, A.space, A.space.xp
        first, stop, starts = roots.ranks.first, roots.ranks.stop, space.from_host(roots.ranks.starts)
        away = (aggregates >= 0) & ((aggregates < first) | (aggregates >= stop))
        sent, theirs = selected(space, away.astype(np.uint8), xp.arange(aggregates.size), aggregates)
        owners = xp.searchsorted(starts, theirs, side="right") - 1
        order = xp.argsort(owners, kind="stable")                  # by owner, then by number
        cuts = space.to_host(xp.searchsorted(owners[order], xp.arange(starts.size)))  # sync
        self._sent, exchange = sent[order], space.ranks.communicator.alltoall_arrays
        there, theirs = (xp.concatenate(exchange(space.local, cut(part, cuts)))
                         for part in (self._sent + space.ranks.first, theirs[order]))
        self.window = Window(space, there)
        self._border, self.count = Border(self.window), stop - first
        self._rows = self._border.rows(A.csr, A.window)
        self.near = A.window.with_ghosts(there).with_ghosts(self._rows.columns)
        self._members = xp.full(self.near.size, self.count, np.int64)
        self._members[self.near.own] = xp.where(away | (aggregates < 0), self.count, aggregates - first)
        self._members[self.near.places(there, np.int64)] = theirs - first

    def tentative(self, modes):
        """Return (this rank's rows of T, a CSRMatrix; the Window of its columns; the next level's modes and nodes of
        this rank). ``modes``: of this rank's unknowns."""
        A, near, window, space = self.A, self.near, self.window, self.A.space
        square = Stacked(A.csr, A.window, self._rows, window, near, near).matrix
        around = space.xp.zeros((near.size, modes.shape[1]))
        around[near.own] = modes
        around[near.places(window.ghosts, np.int64)] = self._border.values(modes)
        members = self._members.astype(square.indices.dtype)
        T, below, nodes = tentative(square, members, self.count, around, energy=True)
        coarse = coarse_space(space, T.shape[1])
        begin, end = (int(k) for k in space.to_host(T.indptr[[near.own.start, near.own.stop]]))  # sync
        returned = self._border.returned(T, near.places(window.ghosts, np.int64), coarse.ranks.first)
        columns = Window(coarse, space.empty(0, np.int64)).with_ghosts(returned.columns)
        return self._merged(own_rows(T, near, slice(begin, end)), returned, columns), columns, below, nodes

    def _merged(self, T, returned, columns):
        """Return the rows of ``T``, with those that other ranks have returned in place of the empty ones."""
        space, n, index = self.A.space, T.shape[0], T.indices.dtype
        xp, own = space.xp, columns.own.start
        pointers = space.empty(returned.lengths.size + 1, index)
        space.prefix_sums(returned.lengths, pointers)
        indptr = xp.concatenate([T.indptr, pointers[1:] + index.type(T.nnz)])
        indices = xp.concatenate([T.indices + index.type(own), columns.places(returned.columns, index)])
        data, row = xp.concatenate([T.data, returned.data]), xp.arange(n, dtype=index)
        row[self._sent] = n + xp.arange(self._sent.size, dtype=index)
        lengths = (indptr[1:][row] - indptr[:-1][row]).astype(np.int32)
        starts = space.empty(n + 1, index)
        space.prefix_sums(lengths, starts)
        made = space.empty(indices.size, index), space.empty(indices.size, T.dtype)
        space.kernels("swell.distributed", "window", T.dtype).copy_rows(row, indptr, indices, data, starts, *made)
        return CSRMatrix(T.space, starts, *made, (n, columns.size))


def _kernels(A):
    return A.space.kernels("swell.preconditioners.amg", "aggregates", np.float64)
