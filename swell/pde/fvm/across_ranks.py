"""The steady equation across ranks: each assembles the rows of its own part of the mesh, and all solve together.

Each rank has either the whole mesh, and takes a part of it, or only its own part (part_mesh.py). It computes geometry,
coefficients and matrix on its part with some layers of neighbour cells. The gradients of deferred terms set the number
of layers. The rank's rows then equal the serial system's rows, to rounding. A halo exchange brings the values of the
layers before each correction.
"""
from __future__ import annotations

import math

import numpy as np

from swell.core.devices import make_space
from swell.distributed import from_rows
from swell.distributed.halo import Halo
from swell.distributed.partition import of_links
from swell.distributed.space import DistributedSpace
from swell.pde.fvm.check import every_part_is_fixed
from swell.pde.fvm.part_mesh import PartMesh
from swell.pde.fvm.submesh import SubMesh
from swell.pde.fvm.system import compatible

LAYERS = {"least_squares": 2, "gauss": 3}        # a face's two cells, and the reach of their gradients' stencils


class DividedMesh:
    """A mesh that every rank has whole, divided by a partition of its graph of cells.

    The system numbers cells by ranks: rank 0's cells first, then rank 1's, and so on.

    Attributes
    ----------
    sub : SubMesh
        This rank's part, with layers of neighbours.
    starts : int array, shape (ranks + 1,)
        The first cell of each rank, in the system's numbering.
    order : int array or None
        This rank's cells, in the mesh's numbering; None (for `DecomposedMesh`): the two numberings agree.
    there : int array
        The cells of ``sub``, in the system's numbering.
    """

    def __init__(self, ranks, mesh, layers):
        self.ranks, self.mesh = ranks, mesh
        owner = of_links(ranks, mesh.n_cells, *mesh.links)
        order = np.argsort(owner, kind="stable")
        self.starts = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=ranks.size))]).astype(np.int64)
        self.order = order[self.starts[ranks.rank]:self.starts[ranks.rank + 1]]
        number = np.empty(mesh.n_cells, np.int64)
        number[order] = np.arange(mesh.n_cells)
        self.sub = SubMesh.around(mesh, self.order, layers)
        self.there = number[self.sub.cells]

    def cells(self, A, values):
        """Gather each rank's cell values (in the order of its cells) into one array for the whole mesh; A: the
        DistributedMatrix of the system. Every rank gets the array."""
        return A.gather(values)

    def faces(self, values):
        """Gather values on the faces of ``sub`` into one array for all faces of the whole mesh; every rank gets it. The
        rank of a face's owner sends the face's value."""
        sub, whole = self.sub, np.zeros(self.mesh.n_faces)
        mine = np.isin(sub.mesh.owner, sub.own) & ~sub.reversed
        for numbers, part in self.ranks.allgather((sub.faces[mine], values[mine])):
            whole[numbers] = part
        return whole

    def require_fixed(self, fixed):
        """Raise InputError on every rank if a connected component of the mesh has no face where ``fixed`` (bool, shape
        (nb,)) is True; see `check.every_part_is_fixed`."""
        with self.ranks.agreed():
            every_part_is_fixed(self.mesh, fixed)


class DecomposedMesh:
    """A mesh of which each rank has only a part; like `DividedMesh`, but results cover the part's cells and faces."""

    order = None

    def __init__(self, mesh, layers):
        self.mesh, self.sub, self.starts = mesh, mesh.with_layers(layers), mesh.starts
        self.there = self.sub.cells

    def cells(self, A, values):
        return values

    def faces(self, values):
        order = np.argsort(self.sub.faces)
        values = values[order[np.searchsorted(self.sub.faces, self.mesh.known.number, sorter=order)]]
        return np.where(self.mesh.reversed, -values, values)

    def require_fixed(self, fixed):
        self.mesh.every_part_is_fixed(fixed)


class RankSystem:
    """The equation of a problem across ranks, with the interface of `System`.

    Vectors hold the rank's cells in ascending order, on the CPU. On device="cuda" each rank solves on its GPU, but
    assembles and corrects on its CPU.

    Attributes
    ----------
    A : DistributedMatrix
    space : DistributedSpace
        The space of the corrections' vectors, on the CPU.
    b, flux, source, deferred, floating
        See `System`; the flux covers the rank's cells and the layers around them.
    """

    def __init__(self, ranks, problem, device, dtype):
        self._ranks, mesh, layers = ranks, problem.mesh, LAYERS[problem.gradient]
        with ranks.agreed():
            decomposed = isinstance(mesh, PartMesh)
            self._division = DecomposedMesh(mesh, layers) if decomposed else DividedMesh(ranks, mesh, layers)
            self._sub = sub = self._division.sub
            self._part = part = problem.of_part(sub).assemble("cpu", dtype)
        starts, there = self._division.starts, self._division.there
        rows = _renumbered(part.A.to_scipy()[sub.own], there, starts[-1])
        self.A = from_rows(ranks, rows, device=device, starts=starts, order=self._division.order)
        self.space = DistributedSpace(make_space("cpu"), ranks, starts)
        self.b, self.source, self._volumes = part.b[sub.own], part.source[sub.own], part.metrics.volumes[sub.own]
        self.flux, self.deferred, self.floating = part.flux, self.any(part.deferred), not self.any(not part.floating)
        outside = np.setdiff1d(np.arange(sub.cells.size), sub.own)
        self._ghosts = outside[np.argsort(there[outside])]
        self._halo = Halo(self.space, there[self._ghosts], self.A.dtype)
        self._all = np.zeros(sub.cells.size, self.A.dtype)

    def _extended(self, p):
        """Copy p (values of the rank's cells) and the layers' values, from a halo exchange, into a buffer; return the
        buffer, which the next call overwrites."""
        self._halo.start(p)
        self._all[self._sub.own] = p
        self._halo.finish()
        self._all[self._ghosts] = self._halo.values
        return self._all

    def flux_at(self, p):
        """Return a Flux with the explicit terms at p (values of the rank's cells); see `System.flux_at`."""
        return self._part.flux_at(self._extended(p))

    def rhs(self, flux):
        """Return V q minus the divergence of the explicit part of ``flux``, a new array for the rank's cells."""
        return self._part.rhs(flux)[self._sub.own]

    def implicit(self, flux, p):
        """Return A p, the divergence of the implicit part of ``flux`` at p, a new array for the rank's cells."""
        return self._part.implicit(flux, self._extended(p))[self._sub.own]

    def through(self, flux, p):
        """Return Σ |flux| through the boundary faces of each of the rank's cells, at p."""
        return self._part.through(flux, self._extended(p))[self._sub.own]

    def norm(self, v) -> float:
        """‖v‖₂ over all ranks."""
        return self.space.norms(v)[0]

    def totals(self, *vectors) -> list[float]:
        """Return the list of Σ v for each vector v, over all ranks."""
        return [math.fsum(column) for column in zip(*self._ranks.allgather([float(v.sum()) for v in vectors]))]

    def span(self, p):
        """Return (minimum, maximum) of p over the cells and boundary faces of all ranks."""
        least, largest = zip(*self._ranks.allgather(self._part.span(self._extended(p))))
        return min(least), max(largest)

    def any(self, flag) -> bool:
        """True if ``flag`` is true on any rank."""
        return any(self._ranks.allgather(bool(flag)))

    def require_fixed(self, mesh):
        """Raise InputError on every rank if a connected component of the mesh has no face that fixes the solution."""
        fixed = self._division.faces(self._part.fixed().astype(float))
        self._division.require_fixed(fixed[mesh.n_internal:] != 0)

    def balanced(self, b, shift):
        """Check that b adds up to zero over all ranks, as `System.balanced` does; with ``shift``, make it so. Return
        (b, note)."""
        with self._ranks.agreed():
            mean, note = compatible(*self.totals(b, abs(b), self.source, self._volumes), shift)
        return b - mean * self._volumes, note

    def levelled(self, p, mean):
        """Return p plus a constant, such that its volume average over all ranks is ``mean``."""
        moment, volume = self.totals(self._volumes * p, self._volumes)
        return p + (mean - moment / volume)

    def on_mesh(self, p, flux, source):
        """Return (p, fluxes through the faces, source) for the problem's mesh, which is the whole mesh or this rank's
        part. ``flux``: a Flux."""
        metrics, division = self._part.metrics, self._division
        fluxes = metrics.mesh.on_mesh(flux.of(metrics, self._extended(p)))
        return division.cells(self.A, p), division.faces(fluxes), division.cells(self.A, source)


def _renumbered(rows, numbers, n):
    """Return a new CSR matrix with n columns: column j of ``rows`` (CSR) becomes column numbers[j]."""
    import scipy.sparse as sp
    return sp.csr_array((rows.data, numbers[rows.indices], rows.indptr), shape=(rows.shape[0], n))
