"""Aggregates of nodes: each becomes one node of the next level. Vaněk, Mandel and Brezina 1996; Bell, Dalton and Olson
2012.

The graph has a node for each mesh point. With the near null vectors b_c of the level, an entry

    gᵢⱼ = Σ_c (b_c)ᵢᵀ Aᵢⱼ (b_c)ⱼ

sums the energies between nodes i and j. Rows of the graph sum to zero where A b_c = 0. If the b_c are the translations
of an elastic body, gᵢⱼ is the trace of Aᵢⱼ, and the graph is a multiple of the Laplacian on the same mesh: the trace of
elasticity is (λ + 4μ) ∇φᵢ·∇φⱼ in three dimensions. So links are those of diffusion: strong only across flat cells,
where the norms of the blocks are as large along them as across.

As in classical multigrid, a link is strong if −gᵢⱼ is large beside the largest −gᵢₖ of both nodes: −gᵢⱼ ≥ (θᵢ mᵢ θⱼ
mⱼ)^½ with mᵢ = maxₖ(−gᵢₖ). θᵢ is at least ``strength``, and up to 0.5 in rows with positive entries, for the reason
that strength.py gives.

The roots are a maximal independent set of distance two, MIS(2): no root within two strong links of another one, none
missing. An aggregate is a root with its strong neighbours. Every node left has a neighbour in an aggregate and joins
the one to which its link is strongest.

A node's key is a hash of its row number in the whole matrix. The roots are those that a loop over the nodes in the
order of their keys would take. So the result is equal on every device and for every number of threads. A CPU runs this
loop. A GPU needs one launch: each node waits for nodes within two links whose keys are greater.
"""
from __future__ import annotations

import numpy as np

from swell.formats.csr import CSRMatrix
from swell.formats.product import Product
from swell.formats.transpose import transposed
from swell.preconditioners.amg.pmis import coarse_numbers

MOST = 0.5              # greatest θ of a row with positive entries
TIES = 1 - 1e-6         # factor of the bounds: rounding must not decide about links of equal strength


def node_graph(A, nodes, count, modes):
    """Return the graph of the nodes of A, a CSRMatrix of shape (count, count).

    Parameters
    ----------
    A : CSRMatrix
    nodes : int array, shape (n,), or None
        The node of each unknown; None: each unknown is a node.
    count : int
        The number of nodes.
    modes : float64 array, shape (n, k)
        The near null vectors.
    """
    energies = A.with_values(A.space.empty(A.nnz, np.float64))
    _links(A).energies(A.indptr, A.indices, A.data, modes.ravel(), modes.shape[1], energies.data)
    if nodes is None:
        return energies
    unknowns = one_a_row(A, nodes, count)
    return Product(transposed(unknowns)[0], Product(energies, unknowns).C).C


def one_a_row(A, columns, count):
    """Return a CSRMatrix of shape (n, count) with a 1 in column columns[i] of row i; n and the space are A's."""
    indptr, data = A.space.empty(A.shape[0] + 1, A.indices.dtype), A.space.empty(A.shape[0], np.float64)
    _kernels(A).unit_rows(indptr, data)
    return CSRMatrix(A.space, indptr, columns, data, (A.shape[0], count))


def aggregates(graph, strength, first=0):
    """Return (the aggregate of each node, an int array, −1 for a node without strong links; the number of aggregates;
    which nodes have a strong link to another aggregate or are in none, a uint8 array).

    Parameters
    ----------
    graph : CSRMatrix
        The result of `node_graph`.
    strength : float
        The least θ; 0: every negative entry is a strong link.
    first : int
        The number of node 0 in the whole matrix.
    """
    space, nodes, kernels, links = graph.space, graph.shape[0], _kernels(graph), _links(graph)
    strong, state = strong_nodes(graph, strength)
    crossing, pattern = space.empty(nodes, np.uint8), (graph.indptr, graph.indices)
    deciding = space.kernels("swell.preconditioners.amg", "roots", np.float64)
    deciding.choose_roots(*pattern, strong, first, space.empty(2 * nodes, graph.indices.dtype), state)
    numbers = coarse_numbers(graph, state)
    joined, aggregate_of = (space.empty(nodes, graph.indices.dtype) for _ in range(2))
    kernels.join_roots(*pattern, graph.data, strong, state, numbers, joined)
    kernels.join_neighbours(*pattern, graph.data, strong, joined, aggregate_of)
    links.crossings(*pattern, strong, aggregate_of, crossing)
    return aggregate_of, space.last_entries(numbers)[0], crossing  # sync


def strong_nodes(graph, strength, of_owners=None):
    """Return (a uint8 array with an entry for each entry of the graph, 1 for a strong link; the first `State` of each
    node). ``of_owners``: takes the nodes' bounds and returns them with those of ghosts replaced."""
    space, nodes, links = graph.space, graph.shape[0], _links(graph)
    strong, state = space.empty(graph.nnz, np.uint8), space.empty(nodes, np.uint8)
    bounds, most = space.empty(nodes, np.float64), max(strength, MOST) * TIES if strength else 0.0
    links.link_bounds(graph.indptr, graph.indices, graph.data, strength * TIES, most, bounds)
    bounds = bounds if of_owners is None else of_owners(bounds)
    links.strong_pairs(graph.indptr, graph.indices, graph.data, bounds, strong, state)
    return strong, state


def of_unknowns(A, nodes, aggregates, count):
    """Return the aggregate of each unknown, an int array of shape (n,); ``count`` for an unknown without one."""
    members = A.space.empty(A.shape[0], A.indices.dtype)
    _kernels(A).of_unknowns(A.indices[:0] if nodes is None else nodes, aggregates, count, members)
    return members


def _links(A):
    return A.space.kernels("swell.preconditioners.amg", "links", np.float64)


def _kernels(A):
    return A.space.kernels("swell.preconditioners.amg", "aggregates", np.float64)
