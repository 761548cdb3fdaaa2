"""SmoothedAggregation: algebraic multigrid for systems of PDEs. Vaněk, Mandel and Brezina 1996.

For symmetric positive (semi)definite matrices whose near null vectors are known: elasticity with its rigid motions, or
diffusion with constants. Unknowns of a mesh point stay together. hierarchy.py builds the levels from aggregates
(aggregates.py, aggregation.py); cycle.py applies them.

Setup: MIS(2) aggregates along strong links, coarse unknowns that are orthonormal in energy, prolongators smoothed by
one step of Jacobi's method, Galerkin products in double precision. Links are measured by energies of the near null
vectors, so that flat cells are first joined across, and then in their plane.
An application is a W-cycle in single precision with polynomial smoothers of degree 2: some 9 products with A.

Across ranks all ranks build one multigrid, with the levels of one device but for rounding (distributed/amg/
aggregation.py).

Differs from the textbook: links are those of the near null vectors' energies, not of the blocks' norms; a coarse node's
unknowns are orthonormal in energy; rows of nodes without strong links to other aggregates are not smoothed, all others
with all of A; a cycle that single precision cannot hold is in double precision (precision.py).
"""
from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from swell.core.errors import InputError
from swell.core.registry import rank_operator
from swell.core.settings import choose_by_none, positive, share
from swell.preconditioners.amg.aggregation import Aggregation, alike, blocks, rigid_motions
from swell.preconditioners.amg.multigrid import SmoothedMultigrid
from swell.preconditioners.amg.nodes import unknowns
from swell.preconditioners.amg.operator import AMGOperator
from swell.preconditioners.amg.precision import too_narrow
from swell.preconditioners.near_nullspace import (
    check_word,
    checked,
    checked_nodes,
    checked_points,
    independent,
    rows_here,
)
from swell.transforms.nullspace import rigid_body_modes


@dataclass(frozen=True, eq=False)
class SmoothedAggregation(SmoothedMultigrid):
    """Smoothed aggregation multigrid, across ranks too.

    Attributes
    ----------
    near_nullspace : "constants" or array, shape (n,) or (n, k)
        Vectors that the smoother hardly changes, linearly independent. "constants": one vector for each unknown of a
        node, 1 there and 0 elsewhere. In `Schwarz` and across ranks the array is for the whole matrix; across ranks
        every rank has all rows, or its own.
    coordinates : array, shape (m, 2) or (m, 3), optional
        Positions of the m nodes: the near null vectors are the rigid motions of an elastic body, with 2 or 3
        displacements a node. Across ranks every rank has all nodes, or those of its own rows.
    nodes : int array, shape (n,), optional
        The node of each unknown, numbers 0 to m − 1 without holes: for nodes that have lost unknowns. Across ranks
        every rank has all of them.
    block : int, optional
        Unknowns of a node, which are consecutive; None: as many as a point has coordinates, or as the blocks of A show.
    strength : float
        θ: nodes i and j are linked strongly if −gᵢⱼ is at least θ times the geometric mean of the largest −gᵢₖ and
        −gⱼₖ, where gᵢⱼ sums the near null vectors' energies between nodes i and j (aggregates.py); up to 0.5 in rows
        with positive gᵢⱼ. A smaller value makes larger aggregates: fewer entries on coarse levels, more iterations.
    smoother : {"chebyshev", "l1_jacobi"}
        Chebyshev polynomials of the fourth kind, or plain steps; both with the diagonal of A.
    degree : int
        Products with A in a smoothing step, 1 to 4.
    cycle : {"W", "V"}
        "W": the three levels below the finest are visited twice.
    coarsest : int, optional
        Most rows of a level that is not coarsened further; a dense inverse solves it. None: 300 on a CPU, 1000 on a
        GPU.
    levels : int
        Most levels.
    dtype : {"float32", "float64"}
        Precision of the cycle. The setup always works in double precision. If single precision cannot hold the cycle
        of a thin body, it is in double precision too, and a note says so.
    """

    near_nullspace: Any = field(default="constants", repr=False)
    coordinates: Any = field(default=None, repr=False)
    nodes: Any = field(default=None, repr=False)
    block: int | None = None
    strength: float = 0.15
    degree: int = field(default=2, kw_only=True)
    cycle: str = field(default="W", kw_only=True)

    problem = "symmetric positive definite systems with known near null vectors, such as elasticity"
    cost = "a W-cycle: some 9 products with A in single precision"
    diagonal = "point"
    hermitian_only = True
    beside_nullspace = True
    kinds = "f"
    across_ranks = True
    against_scaling = "smoothed aggregation takes its near null vectors from the unscaled system: compare without it"

    def __post_init__(self):
        super().__post_init__()
        choose_by_none(self, 0, "block")
        positive(self, "block")
        share(self, "strength", most=1)
        check_word(self.near_nullspace, "SmoothedAggregation")
        if not isinstance(self.near_nullspace, str) and self.coordinates is not None:
            raise InputError("SmoothedAggregation got near_nullspace and coordinates: give one of them")
        if self.nodes is not None and self.block:
            raise InputError(f"SmoothedAggregation got nodes and block={self.block}: give one of them")

    @property
    def as_given(self):
        """True if arrays were given, which an ordering or a scaling would not change."""
        return not isinstance(self.near_nullspace, str) or self.coordinates is not None or self.nodes is not None

    def restricted(self, A, rows):
        """Return the settings with the near null vectors of a part of A; `Preconditioner` explains the arguments."""
        if not self.as_given:
            return self
        if self.nodes is not None:
            raise InputError("SmoothedAggregation(nodes) needs the whole matrix, and a subdomain aggregates its own "
                             "rows alone: give near_nullspace and block")
        size = np.shape(self.coordinates)[-1:]
        vectors = self.near_nullspace if self.coordinates is None else rigid_body_modes(self.coordinates)
        modes = independent(rows(checked(vectors, A, "SmoothedAggregation")))
        return replace(self, near_nullspace=modes, coordinates=None, block=self.block or next(iter(size), None))

    def coarsening(self, A):
        """Return the `Aggregation` for the finest matrix A; of this rank's rows for a DistributedMatrix, on all ranks
        together.

        Raises
        ------
        InputError
            On every rank, if an array has another length than A, is not finite, or has dependent columns; if ``nodes``
            has holes; if a node has rows on two ranks.
        """
        space, own = A.space, A.diagonal_block
        space.ranks.require_equal((self.coordinates is None, self.nodes is None, isinstance(self.near_nullspace, str)),
                                  "the kind of near null vectors of SmoothedAggregation")
        with space.ranks.agreed():
            if self.nodes is None:
                size = self._size(A)
                (nodes, constants), count = blocks(own, size), own.shape[0] // size
            else:
                node_of, place, _ = checked_nodes(self.nodes, A.shape[0], "SmoothedAggregation")
                constants = space.from_host(np.eye(int(place.max(initial=0)) + 1)[place][rows_here(A)])
                used, node_of = np.unique(node_of[rows_here(A)], return_inverse=True)
                nodes, count = space.from_host(node_of.astype(own.indices.dtype)), used.size
        if self.coordinates is not None:
            modes = rigid_motions(own, *self._points(A))
        elif isinstance(self.near_nullspace, str):
            modes = constants
        else:
            modes = space.from_host(checked(self.near_nullspace, A, "SmoothedAggregation"))
        return Aggregation(self, alike(space, modes), nodes if count < own.shape[0] else None, count)

    def _size(self, A) -> int:
        """Return the number of unknowns of a node, which are consecutive; equal on all ranks."""
        shape, own = np.shape(self.coordinates), A.diagonal_block              # () for None, and for bad input
        size = self.block or (shape[1] if len(shape) == 2 else 0) or unknowns(own)
        size = math.gcd(*A.space.ranks.allgather(size))
        if len(shape) == 2 and shape[0] in (2, 3) and shape[1] > 3:
            raise InputError(f"SmoothedAggregation(coordinates) has shape {shape}: expected a row for each node, "
                             "(m, 2) or (m, 3): give the transpose, coordinates.T")
        if A.shape[0] % size:
            raise InputError(f"SmoothedAggregation: nodes of {size} unknowns do not divide the {A.shape[0]} rows of A: "
                             "give nodes, the node of each row")
        if own.shape[0] % size:
            raise InputError(f"SmoothedAggregation: nodes of {size} unknowns do not divide the {own.shape[0]} rows of "
                             f"A on a rank: distribute A with block={size}")
        return size

    def _points(self, A):
        """Return (the coordinates of this rank's nodes as a float64 array of A's space, stored point after point; their
        dimensions)."""
        points, centre = checked_points(self.coordinates, A, "SmoothedAggregation")
        return A.space.from_host(np.ascontiguousarray(points - centre, np.float64).ravel()), points.shape[1]

    def links(self):
        return f"strength={self.strength:g}"

    def build(self, A):
        """Return the cycle for a symmetric matrix, a new `AMGOperator`, whose docstring lists the errors.

        It is in double precision, and a note says so, if single precision cannot hold it (precision.py)."""
        operator = (AMGOperator if A.space.ranks.single else rank_operator("smoothed_aggregation"))(A, self)
        if self.dtype == "float32" and too_narrow(operator.inner):
            return operator.in_double_precision("residuals of the smoothest errors are below the rounding of single "
                                                "precision")
        return operator
