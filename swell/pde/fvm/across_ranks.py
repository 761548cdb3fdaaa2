"""The steady equation across ranks: each assembles the rows of its own part of the mesh, and all solve together.

Every rank has the whole mesh as a list of faces; the geometry, the coefficients and the matrix it computes for its part
alone, with as many layers of neighbours as the gradients of deferred terms need, so that its rows are those of the
serial system, to rounding. The values of the layers come with the halo before each correction.
"""
from __future__ import annotations

import math

import numpy as np

from swell.core.space import make_space
from swell.distributed import from_rows
from swell.distributed.halo import Halo
from swell.distributed.partition import of_links
from swell.distributed.space import DistributedSpace
from swell.pde.fvm.submesh import SubMesh
from swell.pde.fvm.system import compatible

LAYERS = {"least_squares": 2, "gauss": 3}        # a face's two cells, and what their gradients reach


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
        self._ranks, self._mesh = ranks, problem.mesh
        mesh = problem.mesh
        owner = of_links(ranks, mesh.n_cells, mesh.owner[:mesh.n_internal], mesh.neighbour)
        order = np.argsort(owner, kind="stable")
        starts = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=ranks.size))]).astype(np.int64)
        own = order[starts[ranks.rank]:starts[ranks.rank + 1]]
        number = np.empty(mesh.n_cells, np.int64)
        number[order] = np.arange(mesh.n_cells)
        with ranks.agreed():
            self._sub = sub = SubMesh.around(mesh, own, LAYERS[problem.gradient])
            self._part = part = problem.of_part(sub).assemble("cpu", dtype)
        rows = part.A.to_scipy()[sub.own]
        rows = _renumbered(rows, number[sub.cells], mesh.n_cells)
        self.A = from_rows(ranks, rows, device=device, starts=starts, order=own)
        self.space = DistributedSpace(make_space("cpu"), ranks, starts)
        self.b, self.source, self._volumes = part.b[sub.own], part.source[sub.own], part.metrics.volumes[sub.own]
        self.flux, self.deferred, self.floating = part.flux, self.any(part.deferred), not self.any(not part.floating)
        there = number[sub.cells]
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

    def norm(self, v) -> float:
        """‖v‖₂."""
        return self.space.norms(v)[0]

    def any(self, flag) -> bool:
        """True if it is, on any rank."""
        return any(self._ranks.allgather(bool(flag)))

    def fixed(self):
        """For each face of the boundary of the whole mesh whether its condition fixes a value."""
        inner, fixed = self._sub.mesh.n_internal, np.zeros(self._sub.faces.size)
        fixed[inner:] = self._part.fixed()
        return self._of_faces(fixed)[self._mesh.n_internal:] != 0

    def balanced(self, b, shift):
        """As of `System`."""
        with self._ranks.agreed():
            mean, note = compatible(*self._totals(b, abs(b), self.source, self._volumes), shift)
        return b - mean * self._volumes, note

    def levelled(self, p, mean):
        """p with that mean over the volume."""
        moment, volume = self._totals(self._volumes * p, self._volumes)
        return p + (mean - moment / volume)

    def on_mesh(self, p, flux, source):
        """(p, fluxes through the faces, source) for the whole mesh, on every rank."""
        fluxes = flux.of(self._part.metrics, self._extended(p))
        return self.A.gather(p), self._of_faces(fluxes), self.A.gather(source)

    def _totals(self, *vectors):
        """Σ of each vector."""
        return [math.fsum(column) for column in zip(*self._ranks.allgather([float(v.sum()) for v in vectors]))]

    def _of_faces(self, values):
        """Values of the faces whose owner is one of the rank's cells, for the whole mesh."""
        sub, whole = self._sub, np.zeros(self._mesh.n_faces)
        mine = np.isin(sub.mesh.owner, sub.own) & ~sub.turned
        for numbers, part in self._ranks.allgather((sub.faces[mine], values[mine])):
            whole[numbers] = part
        return whole


def _renumbered(rows, numbers, n):
    """The columns of CSR rows by other numbers, in a matrix of n columns."""
    import scipy.sparse as sp
    return sp.csr_array((rows.data, numbers[rows.indices], rows.indptr), shape=(rows.shape[0], n))
