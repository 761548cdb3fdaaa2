"""Aggregates of nodes: each becomes one node of the next level. Vaněk, Mandel and Brezina 1996; Bell, Dalton and Olson
2012.

The graph has a node for each mesh point; an entry gᵢⱼ is the squared Frobenius norm of the block of A that links nodes
i and j. A link is strong if √gᵢⱼ > ε (gᵢᵢ gⱼⱼ)^¼. The roots are a maximal independent set of distance two, MIS(2): no
root within two strong links of another one, none missing. An aggregate is a root with its strong neighbours. Every node
left has a neighbour in an aggregate and joins the one to which its link is largest.

A node's key is a hash of its row number in the whole matrix. The roots are those that a loop over the nodes in the
order of their keys would take. So the result is equal on every device and for every number of threads. A CPU runs this
loop. A GPU needs one launch: each node waits for nodes within two links whose keys are greater.
"""
from __future__ import annotations

import math

import numpy as np

from swell.formats.csr import CSRMatrix
from swell.formats.product import Product
from swell.formats.transpose import transposed
from swell.preconditioners.amg.pmis import coarse_numbers


def node_graph(A, nodes, count, exponent):
    """Return the graph of the nodes of A, a CSRMatrix of shape (count, count): the squares of the blocks' norms,
    divided by 4 to the power of ``exponent``.

    Parameters
    ----------
    A : CSRMatrix
    nodes : int array, shape (n,), or None
        The node of each unknown; None: each unknown is a node.
    count : int
        The number of nodes.
    exponent : int
        The result of `exponent` for the finest matrix.
    """
    space = A.space
    squares = A.with_values(space.empty(A.nnz, np.float64))
    _kernels(A).squares(A.data, math.ldexp(1.0, -exponent), squares.data)
    if nodes is None:
        return squares
    unknowns = one_a_row(A, nodes, count)
    return Product(transposed(unknowns)[0], Product(squares, unknowns).C).C


def exponent(A) -> int:
    """Return e with ‖A‖∞ near 2ᵉ: squares of A's entries over 2ᵉ neither overflow nor vanish."""
    return math.frexp(A.norm_inf())[1]


def one_a_row(A, columns, count):
    """Return a CSRMatrix of shape (n, count) with a 1 in column columns[i] of row i; n and the space are A's."""
    indptr, data = A.space.empty(A.shape[0] + 1, A.indices.dtype), A.space.empty(A.shape[0], np.float64)
    _kernels(A).unit_rows(indptr, data)
    return CSRMatrix(A.space, indptr, columns, data, (A.shape[0], count))


def aggregates(graph, strength, first=0):
    """Return (the aggregate of each node, an int array, −1 for a node without strong links; the number of aggregates).

    Parameters
    ----------
    graph : CSRMatrix
        The result of `node_graph`.
    strength : float
        ε; 0: every link is strong.
    first : int
        The number of node 0 in the whole matrix.
    """
    space, nodes, kernels = graph.space, graph.shape[0], _kernels(graph)
    strong, state = space.empty(graph.nnz, np.uint8), space.empty(nodes, np.uint8)
    pattern = graph.indptr, graph.indices
    kernels.strong_pairs(*pattern, graph.data, graph.diagonal(), strength**2, strong, state)
    deciding = space.kernels("swell.preconditioners.amg", "roots", np.float64)
    deciding.choose_roots(*pattern, strong, first, space.empty(2 * nodes, graph.indices.dtype), state)
    numbers = coarse_numbers(graph, state)
    joined, aggregate_of = (space.empty(nodes, graph.indices.dtype) for _ in range(2))
    kernels.join_roots(*pattern, graph.data, strong, state, numbers, joined)
    kernels.join_neighbours(*pattern, graph.data, strong, joined, aggregate_of)
    return aggregate_of, space.last_entries(numbers)[0]  # sync


def of_unknowns(A, nodes, aggregates, count):
    """Return the aggregate of each unknown, an int array of shape (n,); ``count`` for an unknown without one."""
    members = A.space.empty(A.shape[0], A.indices.dtype)
    _kernels(A).of_unknowns(A.indices[:0] if nodes is None else nodes, aggregates, count, members)
    return members


def _kernels(A):
    return A.space.kernels("swell.preconditioners.amg", "aggregates", np.float64)
