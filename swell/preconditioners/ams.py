"""AMS: the auxiliary-space Maxwell preconditioner. Hiptmair and Xu 2007; Kolev and Vassilevski 2009, as hypre has it.

For symmetric positive definite matrices of ∇×(α ∇×E) + β E in edge elements of lowest order. The curl annihilates
gradients, so on them A is as small as β, and neither smoothers nor multigrid on A alone reach them. AMS corrects in
spaces of nodal functions, whose matrices multigrid can treat:

    G      the discrete gradient, edges × nodes: −1 and 1 in the row of an edge      GᵀAG: β ∇φ·∇ψ
    Π_d    interpolation of the vector field φ e_d, edges × nodes:                    Π_dᵀAΠ_d: like a Laplacian
           the entry of edge e and each of its ends is half of component d of the vector along e

    additive          M = D⁻¹ + G B Gᵀ + Σ_d Π_d B_d Π_dᵀ
    multiplicative    x ← x + C (b − A x) with C = D⁻¹, G B Gᵀ, Π₁B₁Π₁ᵀ, …, and back to D⁻¹: a symmetric sweep

D has the sums |a| of A's rows (ℓ1 Jacobi), B and B_d are one application of ``inner`` each.

An application, in d dimensions: additive, d + 1 inner preconditioners with two products each. Multiplicative: 2 d + 1
of them, and 2 d + 2 products with A. Storage: G and Π_d with their transposes, the nodal matrices and their levels.

If A annihilates gradients (β = 0) it is singular, and the correction by them is left out, with a note. Then b must be
orthogonal to the gradients. Each node decides for itself: its row of GᵀAG is compared with the rounding level of that
row, eps |G|ᵀ|A||G|. So β may be 0 in air and not in earth, and 1e-10 in air is not 0.
"""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from swell.core.arrays import host_array
from swell.core.errors import InputError, naming
from swell.core.guests import canonical_csr
from swell.core.operator import Composite
from swell.core.preconditioner import Preconditioner
from swell.core.registry import resolve
from swell.core.settings import one_of, shown
from swell.formats.csr import CSR, CSRMatrix
from swell.formats.product import TripleProduct
from swell.formats.sell import SELL
from swell.formats.symmetry import require_hermitian
from swell.formats.transpose import transposed

ROUNDING = 1            # a row of GᵀAG up to this many eps of |G|ᵀ|A||G| is rounding: assembly leaves about 0.2
DISTINCT = 16           # from this many eps on it is a mass; between the two, a mass and rounding look the same


@dataclass(frozen=True, eq=False)
class AMS(Preconditioner):
    """The auxiliary-space Maxwell preconditioner.

    Attributes
    ----------
    gradient : matrix, shape (n, nodes)
        The discrete gradient: −1 at the tail and 1 at the head of each edge, the rows in the order of A's. Leave out
        nodes whose values are given, such as the nodes of an electric wall.
    edges : array, shape (n, 2) or (n, 3)
        The vector along each edge, from tail to head: G x for the coordinates x of all nodes, also those left out.
    coordinates : array, shape (nodes, 2) or (nodes, 3)
        Positions of the nodes, in place of ``edges``, if no node was left out.
    kind : {"multiplicative", "additive"}
        A symmetric sweep over D⁻¹ and the nodal corrections, or their sum.
    inner : str or settings object
        The preconditioner of the nodal matrices.
    """

    gradient: Any = field(default=None, repr=False)
    edges: Any = field(default=None, repr=False)
    coordinates: Any = field(default=None, repr=False)
    kind: str = "multiplicative"
    inner: Any = "amg"

    problem = "symmetric positive definite, curl-curl problems in edge elements of lowest order"
    cost = "multigrid on 3 to 7 nodal matrices, and up to 8 products"
    hermitian_only = as_given = beside_nullspace = across_ranks = True
    kinds = "f"

    def __post_init__(self):
        one_of(self, "kind", ("multiplicative", "additive"))
        if resolve("precond", self.inner) is None:
            raise InputError(f"AMS(inner={shown(self.inner)}): expected a preconditioner for the nodal matrices, such "
                             "as 'amg'")

    def build(self, A):
        """Return the preconditioner for a symmetric CSRMatrix.

        Raises
        ------
        InputError
            If A is complex, not symmetric or distributed, or ``gradient`` and ``edges`` do not fit A.
        FactorisationError
            If a nodal matrix cannot be treated by the inner preconditioner.
        """
        if not A.space.ranks.single:
            raise InputError("AMS works on one device, and A is distributed over ranks: use precond='schwarz', or "
                             "solve on one device")
        if A.dtype.kind == "c":
            raise InputError(f"AMS got a matrix of {A.dtype.name}: expected a real one; for −iωσ E, precondition by a "
                             "Solver of the real matrix with ωσ in place of iωσ")
        return AMSOperator(A, self)

    def gradient_of(self, A):
        """Return G as a SciPy CSR matrix of shape (n, nodes), checked against A."""
        n, G = A.shape[0], self.gradient
        if G is None:
            raise InputError(f"AMS needs the discrete gradient: give gradient, a matrix of shape ({n}, nodes), and "
                             "edges or coordinates")
        if len(getattr(G, "shape", ())) != 2 or G.shape[0] != n or not G.shape[1]:
            raise InputError(f"AMS(gradient) has shape {getattr(G, 'shape', None)}: expected the discrete gradient, "
                             f"({n}, nodes), with a row for each row of A")
        with naming("AMS(gradient)"):
            G = canonical_csr(G).astype(A.dtype)
        G.eliminate_zeros()
        most, ends = int(np.diff(G.indptr).max()), np.bincount(G.indices, minlength=G.shape[1])
        if most > 2:
            raise InputError(f"AMS(gradient) has a row with {most} entries: expected −1 and 1 for the ends of an edge")
        if not (abs(G.data) == 1).all():
            raise InputError("AMS(gradient) has entries other than −1 and 1: expected the incidence of edges and "
                             "nodes; it is for elements of lowest order, whose unknowns are integrals along the edges")
        if not ends.all():
            raise InputError(f"AMS(gradient): node {int(np.argmin(ends))} has no edge: leave its column out")
        return G

    def edges_of(self, G):
        """Return the vectors along the edges, a float64 array of shape (n, d), for a checked gradient."""
        if (self.edges is None) == (self.coordinates is None):
            raise InputError("AMS: expected edges, the vector along each edge, or coordinates of the nodes, and not "
                             "both")
        name, rows = ("edges", G.shape[0]) if self.coordinates is None else ("coordinates", G.shape[1])
        vectors = host_array(self.edges if self.coordinates is None else self.coordinates, f"AMS({name})")
        if vectors.ndim != 2 or vectors.shape[0] != rows or vectors.shape[1] not in (2, 3):
            raise InputError(f"AMS({name}) has shape {vectors.shape}: expected ({rows}, 2) or ({rows}, 3)")
        if vectors.dtype.kind not in "iuf" or not np.isfinite(vectors).all():
            raise InputError(f"AMS({name}) has complex or non-finite entries: expected real ones")
        if self.coordinates is None:
            return vectors.astype(np.float64)
        single = np.flatnonzero(np.diff(G.indptr) != 2)
        if single.size:
            raise InputError(f"AMS(gradient): edge {single[0]} has one end, so that coordinates do not give its "
                             "direction: give edges instead")
        return G @ vectors.astype(np.float64)


class AMSOperator(Composite):
    """x = M b for one matrix.

    Attributes
    ----------
    corrections : list of Correction
        By G, unless A annihilates all gradients, and by each Π_d.
    """

    self_adjoint = spd = True
    scratch = ("_r", "_z")

    def __init__(self, A, settings):
        super().__init__(A.shape, A.dtype, A.space)
        require_hermitian(A, "AMS")
        self.settings, self._rebuilt = settings, 0
        G = settings.gradient_of(A)
        self._stored = CSR() if A.space.name == "cpu" else SELL()
        self._A = A.stored_as(self._stored)
        self._kernels = A.space.kernels("swell.core", "vector", A.dtype)
        self._inverse = A.space.empty(A.shape[0], A.dtype)
        self._r, self._z = (A.space.empty(A.shape[0], A.dtype) for _ in range(2))
        self._take_diagonal(A)
        self._G, self._nodes, self.corrections = G, None, []
        self._take_gradients(A)
        self.corrections += [Correction(A, P, settings.inner, name, self._stored)
                             for name, P in self._vector_spaces(G, settings.edges_of(G))]

    def _take_gradients(self, A):
        """Build the correction by G for the nodes whose gradients A does not annihilate; note the other nodes.

        The correction stays if these nodes are the same as before."""
        ratios = remainder(A, self._G)
        nodes = ratios >= DISTINCT
        if self._nodes is not None and (nodes == self._nodes).all():
            return
        former = [c for c in self.corrections if c.name == "G"]
        self._rebuilt += 1 + sum(c.inner.revision for c in former)             # the sum in `revision` only rises
        others = self.corrections[len(former):]
        G = self._G if nodes.all() else self._G[:, np.flatnonzero(nodes)]
        new = [Correction(A, G, self.settings.inner, "G", self._stored)] if nodes.any() else []
        self.corrections, self._nodes, self._without = new + others, nodes, tuple(_left_out(ratios))

    def _vector_spaces(self, G, along):
        """Return [(name, Π_d as a SciPy matrix)] for each axis."""
        spaces = []
        half = abs(G) * 0.5
        for d, axis in enumerate("xyz"[:along.shape[1]]):
            P = half.copy()
            P.data *= np.repeat(along[:, d], np.diff(P.indptr))
            P.eliminate_zeros()
            spaces.append((f"Π_{axis}", P.astype(G.dtype)))
        return spaces

    def _take_diagonal(self, A):
        """Set D⁻¹ from the sums |a| of A's rows."""
        sums = A.modulus_sums()
        row, zeros = self.space.find_true(sums == 0)  # sync
        if zeros:
            raise InputError(f"AMS: row {row} of A has no entry that is not zero: take it out of the system")
        self._inverse[...] = 1 / sums

    def update(self, A):
        """Recompute everything, in place, for new values of A with the same pattern."""
        require_hermitian(A, "AMS")
        self.keep_for(A)
        self._take_diagonal(A)
        former = list(self.corrections)
        self._take_gradients(A)
        for correction in self.corrections:
            if correction in former:
                correction.update(A)

    def keep_for(self, A):
        if self._A is not A:
            self._A.update(A)

    def apply(self, x, out, alpha=1, beta=0):
        z = out if alpha == 1 and beta == 0 else self._z
        self._smooth(x, z, 0)                                                  # z = D⁻¹ x
        if self.settings.kind == "additive":
            for correction in self.corrections:
                correction.add(x, z)                                           # z = z + P B Pᵀ x
        else:
            for correction in (*self.corrections, *self.corrections[-2::-1]):
                self._A.residual(z, x, self._r)                                # r = x − A z
                correction.add(self._r, z)                                     # z = z + P B Pᵀ r
            self._A.residual(z, x, self._r)
            self._smooth(self._r, z, 1)                                        # z = z + D⁻¹ r
        if z is not out:
            self.space.axpby(alpha, z, beta, out)

    def apply_adjoint(self, x, out, alpha=1, beta=0):
        self.apply(x, out, alpha, beta)

    def _smooth(self, r, z, beta):
        """z = D⁻¹ r + beta z."""
        kind = z.dtype.type
        self._kernels.multiply_add(self._inverse, r, z, kind(1), kind(beta))

    @property
    def parts(self):
        return tuple(correction.inner for correction in self.corrections)

    @property
    def revision(self):
        return self._rebuilt + super().revision

    @property
    def notes(self):
        return (*self._without, *super().notes)

    @property
    def nbytes(self):
        held = (*self.corrections, self._inverse, self._r, self._z)
        return sum(part.nbytes for part in held) + (0 if self._A.name == "csr" else self._A.nbytes)

    def describe(self):
        each = "; ".join(f"{c.name}: {c.inner.describe()}" for c in self.corrections)
        return f"AMS(kind={self.settings.kind!r}), ℓ1 Jacobi, and on {self._G.shape[1]} nodes {each}"


class Correction:
    """The correction P B Pᵀ in an auxiliary space, with B ≈ (Pᵀ A P)⁻¹."""

    scratch = ("_given", "_solved")

    def __init__(self, A, P, inner, name, stored):
        space = A.space
        self.name, self.nodes = name, P.shape[1]
        self._P = CSRMatrix.from_scipy(P, space)
        self._R, _ = transposed(self._P)
        self._product = TripleProduct(self._R, A, self._P)
        opposite, order = transposed(self._product.C)
        self._opposite = order if self._product.C.same_pattern(opposite) else None
        self._symmetrise()
        self._given, self._solved = (space.empty(self.nodes, A.dtype) for _ in range(2))
        with naming(f"AMS, the nodal matrix of {name}"):
            self.inner = resolve("precond", inner).build(self._product.C)
        self._restrict, self._prolong = stored.build(self._R), stored.build(self._P)

    def _symmetrise(self):
        """Take the mean of Pᵀ A P and its transpose: where A nearly annihilates P, they differ by rounding."""
        data = self._product.C.data
        if self._opposite is not None:
            data[...] = (data + data[self._opposite]) / 2
        self._product.C.discard_adjoint()

    def update(self, A):
        """Recompute Pᵀ A P and B, in place, for new values of A."""
        self._product.update(self._R, A, self._P)
        self._symmetrise()
        with naming(f"AMS, the nodal matrix of {self.name}"):
            self.inner.update(self._product.C)

    def add(self, r, z):
        """z = z + P B Pᵀ r."""
        self._restrict.apply(r, self._given)
        self.inner.apply(self._given, self._solved)
        self._prolong.apply(self._solved, z, 1, 1)

    @property
    def nbytes(self):
        matrices = {id(M): M for M in (self._P, self._R, self._restrict, self._prolong, self._product.C)}
        return self.inner.nbytes + sum(M.nbytes for M in matrices.values())


def remainder(A, G):
    """Return, for each node, the row sum of |GᵀAG| in units of its rounding level, eps |G|ᵀ|A||G|: a NumPy array.

    ``G``: a SciPy matrix of −1 and 1."""
    space = A.space
    P = CSRMatrix.from_scipy(G, space)
    R, _ = transposed(P)
    sums = TripleProduct(R, A, P).C.modulus_sums()
    size = R.absolute().times(A.absolute().times(P.modulus_sums().astype(A.dtype)))
    return space.to_host(sums / size) / np.finfo(A.dtype).eps                                             # sync


def _left_out(ratios):
    """Yield a note on nodes whose gradients A annihilates, and one on nodes where a mass looks like rounding.

    ``ratios``: the array of `remainder`."""
    nodes = ratios.size
    zero, unclear = np.flatnonzero(ratios <= ROUNDING), np.flatnonzero((ratios > ROUNDING) & (ratios < DISTINCT))
    if zero.size:
        where = "" if zero.size == nodes else f" at {zero.size} of {nodes} nodes (the first is node {zero[0]})"
        yield (f"AMS: A annihilates gradients{where}, so that the correction by them was left out: b must be "
               "orthogonal to them")
    if unclear.size:
        yield (f"AMS: at {unclear.size} of {nodes} nodes (the first is node {unclear[0]}) A times a gradient is at "
               f"most {ratios[unclear].max():.0f} times A's rounding error, so that a mass cannot be told from rounding"
               ": the correction by these gradients was left out, and x is unknown along them; use a larger mass, or a "
               "wider type")
