"""The steady equation across ranks: each assembles the rows of its own part of the mesh, and all solve together.

A rank has the whole mesh as a list of faces, of which it takes a part, or a part alone (part_mesh.py). The geometry,
the coefficients and the matrix it computes for its part with as many layers of neighbours as the gradients of deferred
terms need, so that its rows are those of the serial system, to rounding. The values of the layers come with the halo
before each correction.
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

LAYERS = {"least_squares": 2, "gauss": 3}        # a face's two cells, and what their gradients reach


class ShareOfMesh:
    """A rank's share of a mesh that every rank has whole, by a partition of its graph.

    Attributes
    ----------
    sub : SubMesh
    starts : int array
        First cells of all ranks, in their numbering.
    order : int array or None
        The rank's cells in the numbers of the mesh; None: they are numbered so already.
    there : int array
        The cells of ``sub`` in the ranks' numbers.
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
        """Values of the rank's cells, for all of the mesh."""
        return A.gather(values)

    def faces(self, values):
        """Values of the faces of ``sub`` whose owner is one of the rank's cells, for all of the mesh."""
        sub, whole = self.sub, np.zeros(self.mesh.n_faces)
        mine = np.isin(sub.mesh.owner, sub.own) & ~sub.turned
        for numbers, part in self.ranks.allgather((sub.faces[mine], values[mine])):
            whole[numbers] = part
        return whole

    def require_fixed(self, fixed):
        """As of `every_part_is_fixed`, for the faces of the boundary."""
        with self.ranks.agreed():
            every_part_is_fixed(self.mesh, fixed)


class ShareOfOwn:
    """The part of a mesh that a rank has: what `ShareOfMesh` is, for the cells and faces of the part."""

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
    """The equation of a problem on one rank's part of the mesh, among others: what `System` is on one device.

    Vectors are of the rank's cells in ascending order, on the CPU; on device="cuda" systems are solved on each rank's
    GPU, and assembled and corrected on CPUs.

    Attributes
    ----------
    A : DistributedMatrix
    space : DistributedSpace
        Of the corrections.
    b, flux, source, deferred, floating
        As of `System`; the flux is that of the rank's cells and the layers around them.
    """

    def __init__(self, ranks, problem, device, dtype):
        self._ranks, mesh, layers = ranks, problem.mesh, LAYERS[problem.gradient]
        with ranks.agreed():
            self._share = ShareOfOwn(mesh, layers) if isinstance(mesh, PartMesh) else ShareOfMesh(ranks, mesh, layers)
            self._sub = sub = self._share.sub
            self._part = part = problem.of_part(sub).assemble("cpu", dtype)
        starts, there = self._share.starts, self._share.there
        rows = _renumbered(part.A.to_scipy()[sub.own], there, starts[-1])
        self.A = from_rows(ranks, rows, device=device, starts=starts, order=self._share.order)
        self.space = DistributedSpace(make_space("cpu"), ranks, starts)
        self.b, self.source, self._volumes = part.b[sub.own], part.source[sub.own], part.metrics.volumes[sub.own]
        self.flux, self.deferred, self.floating = part.flux, self.any(part.deferred), not self.any(not part.floating)
        outside = np.setdiff1d(np.arange(sub.cells.size), sub.own)
        self._ghosts = outside[np.argsort(there[outside])]
        self._halo = Halo(self.space, there[self._ghosts], self.A.dtype)
        self._all = np.zeros(sub.cells.size, self.A.dtype)

    def _extended(self, p):
        """The values of the rank's cells with those of the layers."""
        self._halo.start(p)
        self._all[self._sub.own] = p
        self._halo.finish()
        self._all[self._ghosts] = self._halo.values
        return self._all

    def whole(self, p):
        """The fluxes with the explicit terms for p."""
        return self._part.whole(self._extended(p))

    def rhs(self, flux):
        """V q less what is explicit in the fluxes."""
        return self._part.rhs(flux)[self._sub.own]

    def implicit(self, flux, p):
        """What the implicit part of the fluxes takes out of each cell, A p."""
        return self._part.implicit(flux, self._extended(p))[self._sub.own]

    def through(self, flux, p):
        """Σ |flux| through the boundary faces of each cell."""
        return self._part.through(flux, self._extended(p))[self._sub.own]

    def norm(self, v) -> float:
        """‖v‖₂."""
        return self.space.norms(v)[0]

    def totals(self, *vectors) -> list[float]:
        """Σ of each vector, over all ranks."""
        return [math.fsum(column) for column in zip(*self._ranks.allgather([float(v.sum()) for v in vectors]))]

    def span(self, p):
        """(least, largest) of the values of cells and boundary faces, of all ranks."""
        least, largest = zip(*self._ranks.allgather(self._part.span(self._extended(p))))
        return min(least), max(largest)

    def any(self, flag) -> bool:
        """True if it is, on any rank."""
        return any(self._ranks.allgather(bool(flag)))

    def require_fixed(self, mesh):
        """Each connected part of the mesh has a face on which the solution is fixed; else InputError."""
        fixed = self._share.faces(self._part.fixed().astype(float))
        self._share.require_fixed(fixed[mesh.n_internal:] != 0)

    def balanced(self, b, shift):
        """As of `System`."""
        with self._ranks.agreed():
            mean, note = compatible(*self.totals(b, abs(b), self.source, self._volumes), shift)
        return b - mean * self._volumes, note

    def levelled(self, p, mean):
        """p with that mean over the volume."""
        moment, volume = self.totals(self._volumes * p, self._volumes)
        return p + (mean - moment / volume)

    def on_mesh(self, p, flux, source):
        """(p, fluxes through the faces, source) for the mesh that every rank has, whole or a part."""
        metrics = self._part.metrics
        fluxes = metrics.mesh.on_mesh(flux.of(metrics, self._extended(p)))
        return self._share.cells(self.A, p), self._share.faces(fluxes), self._share.cells(self.A, source)


def _renumbered(rows, numbers, n):
    """The columns of CSR rows by other numbers, in a matrix of n columns."""
    import scipy.sparse as sp
    return sp.csr_array((rows.data, numbers[rows.indices], rows.indptr), shape=(rows.shape[0], n))
