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
from swell.pde.fvm.check import every_part_is_fixed
from swell.pde.fvm.problem import DIVERGED
from swell.pde.fvm.solution import Solution
from swell.pde.fvm.submesh import SubMesh
from swell.pde.fvm.system import compatible

LAYERS = {"least_squares": 2, "gauss": 3}        # a face's two cells, and what their gradients reach


class Part:
    """One rank's part of a problem.

    Attributes
    ----------
    A : DistributedMatrix
        Its rows are the rank's cells in ascending order.
    system : System
        Of the rank's cells and the layers around them.
    """

    def __init__(self, ranks, problem, device, dtype):
        self.ranks, self.mesh = ranks, problem.mesh
        mesh = problem.mesh
        part = of_links(ranks, mesh.n_cells, mesh.owner[:mesh.n_internal], mesh.neighbour)
        order = np.argsort(part, kind="stable")
        starts = np.concatenate([[0], np.cumsum(np.bincount(part, minlength=ranks.size))]).astype(np.int64)
        own = order[starts[ranks.rank]:starts[ranks.rank + 1]]
        number = np.empty(mesh.n_cells, np.int64)
        number[order] = np.arange(mesh.n_cells)
        with ranks.agreed():
            self.sub = sub = SubMesh.around(mesh, own, LAYERS[problem.gradient])
            self.system = problem.of_part(sub).assemble("cpu", dtype)
        rows = self.system.A.to_scipy()[sub.own]
        rows = _renumbered(rows, number[sub.cells], mesh.n_cells)
        self.A = from_rows(ranks, rows, device=device, starts=starts, order=own)
        self.space = DistributedSpace(make_space("cpu"), ranks, starts)              # of the corrections
        there = number[sub.cells]
        outside = np.setdiff1d(np.arange(sub.cells.size), sub.own)
        self._ghosts = outside[np.argsort(there[outside])]
        self.halo = Halo(self.space, there[self._ghosts], self.A.dtype)
        self._all = np.zeros(sub.cells.size, self.A.dtype)

    def extended(self, p):
        """The values of the rank's cells with those of the layers."""
        self.halo.start(p)
        self._all[self.sub.own] = p
        self.halo.finish()
        self._all[self._ghosts] = self.halo.values
        return self._all

    def any(self, flag) -> bool:
        """True if it is on one rank."""
        return any(self.ranks.allgather(bool(flag)))

    def total(self, *values):
        """Σ of numbers over the ranks."""
        return [math.fsum(column) for column in zip(*self.ranks.allgather([float(value) for value in values]))]

    def norm(self, vector) -> float:
        """‖·‖₂ of a vector in parts."""
        return self.space.norms(vector)[0]

    def of_mesh(self, values, faces=False):
        """Values of the cells, or of the faces whose owner is one of the rank's cells, for the whole mesh."""
        if not faces:
            return self.A.gather(values)
        sub, whole = self.sub, np.zeros(self.mesh.n_faces)
        mine = np.isin(sub.mesh.owner, sub.own) & ~sub.turned
        for numbers, part in self.ranks.allgather((sub.faces[mine], values[mine])):
            whole[numbers] = part
        return whole


def steady(ranks, problem, solvers, device, dtype, balance, mean, monitor=None) -> Solution:
    """Solve the steady equation by outer corrections, as ``Problem._steady`` does on one rank; every rank returns the
    whole solution. On "cuda" the systems are solved on each rank's GPU, and assembled and corrected on CPUs."""
    part = Part(ranks, problem, device, dtype)
    system, own, A = part.system, part.sub.own, part.A
    deferred, floating = part.any(system.deferred), not part.any(not system.floating)
    if problem.velocity is None:
        fixed = part.of_mesh(_fixed(part), faces=True)
        with ranks.agreed():
            every_part_is_fixed(problem.mesh, fixed[problem.mesh.n_internal:] != 0)
    volumes, source = system.metrics.volumes[own], system.source[own]
    shift, notes = 0.0, []
    if floating:
        b = system.b[own]
        with ranks.agreed():
            total, size, given, volume = part.total(b.sum(), abs(b).sum(), source.sum(), volumes.sum())
            lowered, note = compatible(total, size, given, volume, balance)
        shift, notes = -lowered * volumes, [note] if note else []
    b = system.b[own] + shift
    stopping = solvers.within_corrections(part.norm(b)) if deferred else None
    solver = solvers.prepare(A, floating, stopping)
    p, flux, results, first = None, system.flux, [], None
    for count in range(problem.corrections + 1):
        b = system.rhs(flux)[own] + shift
        results.append(solver.solve(b, x0=p, monitor=monitor))
        p = results[-1].x
        everywhere = part.extended(p)
        flux = system.whole(everywhere)
        balance_of = system.metrics.divergence(flux.of(system.metrics, everywhere) - flux.c)
        residual = part.norm((system.rhs(flux) - balance_of)[own] + shift) / (part.norm(b) or 1.0)
        first = residual if first is None else first
        if not deferred or residual <= solvers.rtol or not residual <= DIVERGED * max(first, solvers.rtol):
            break
        if not results[-1].converged:
            break
    if floating:
        moment, volume = part.total((volumes * p).sum(), volumes.sum())
        p = p + (mean - moment / volume)
        everywhere = part.extended(p)
    fluxes = part.of_mesh(flux.of(system.metrics, everywhere), faces=True)
    return Solution(part.of_mesh(p), problem.mesh, results, fluxes, part.of_mesh(source + shift), residual,
                    solvers.rtol, count if deferred else 0, notes)


def _fixed(part):
    """For each face of the part, 1 where its condition fixes a value."""
    fixed = np.zeros(part.sub.faces.size)
    fixed[part.sub.mesh.n_internal:] = part.system.boundary.slope != 0
    return fixed


def _renumbered(rows, numbers, n):
    """The columns of CSR rows by other numbers, in a matrix of n columns."""
    import scipy.sparse as sp
    return sp.csr_array((rows.data, numbers[rows.indices], rows.indptr), shape=(rows.shape[0], n))
