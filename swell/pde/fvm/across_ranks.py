"""Meshes divided among ranks, rows of a matrix across ranks, and the steady scalar equation on them.

Of that equation each rank assembles the rows of its own part, and all solve together.

Each rank has either the whole mesh, and takes a part of it, or only its own part (part_mesh.py). It computes geometry,
coefficients and matrix on its part; the ghosts behind its faces complete the rows. Gradients exchange the ghosts'
values. The rank's rows then equal the serial system's rows, to rounding.
"""
from __future__ import annotations

import math
from dataclasses import fields, replace

import numpy as np

from swell.distributed import from_parts
from swell.distributed.partition import of_links
from swell.pde.fvm.check import every_part_is_fixed
from swell.pde.fvm.decomposing import Piece
from swell.pde.fvm.metrics import space_of
from swell.pde.fvm.part_mesh import PartMesh, joined
from swell.pde.fvm.system import System, compatible


class Division:
    """A mesh that every rank has whole, divided by a partition of its graph of cells.

    The system numbers cells by ranks: rank 0's cells first, then rank 1's, and so on.

    Attributes
    ----------
    mesh : Mesh
    part : PartMesh
        This rank's part.
    order : int array
        This rank's cells, in the mesh's numbering.
    """

    def __init__(self, ranks, mesh):
        self.ranks, self.mesh = ranks, mesh
        ranks.require_equal((mesh.n_cells, mesh.n_faces, float(np.abs(mesh.points).sum())), "the mesh")
        owner = of_links(ranks, mesh.n_cells, *mesh.links)
        with ranks.agreed():
            self._piece = piece = Piece.of(mesh, owner, ranks.rank)
        self.order, self.part = piece.cells, joined(piece.mesh, piece.part_beyond, ranks)

    def conditions(self, whole, components=1) -> dict:
        """Return the conditions (patch name → condition), of a field of 1 or 3 ``components``, with per-face arrays
        restricted to this part's faces."""
        by_faces = 1 if components == 1 else 2                   # dimensions of an array with one value a face
        return {name: self._restricted(condition, self.mesh.patch(name), by_faces) for name, condition in whole.items()}

    def _restricted(self, condition, patch, by_faces):
        faces = self._piece.faces[self.part.patch(patch.name).faces] - patch.start
        arrays = {f.name: np.asarray(getattr(condition, f.name)) for f in fields(condition)
                  if not callable(getattr(condition, f.name))}
        return replace(condition, **{name: values[faces] for name, values in arrays.items() if values.ndim == by_faces})

    def of_part(self, value):
        """Return ``value``, cell or face data of the whole mesh, restricted to this part; numbers and functions are
        returned unchanged."""
        if callable(value) or np.ndim(value) == 0:
            return value
        value = np.asarray(value)
        if value.shape[0] == self.mesh.n_cells:
            return value[self.order]
        return value[self._piece.faces] if value.shape[0] == self.mesh.n_faces else value

    def cells(self, values):
        """Gather each rank's cell values into one array for the whole mesh. Every rank gets the array."""
        return self._gathered(self.mesh.n_cells, self.order, values)

    def faces(self, fluxes):
        """Gather fluxes through each part's faces into one array for all faces of the whole mesh. Every rank gets the
        array."""
        piece = self._piece
        return self._gathered(self.mesh.n_faces, piece.faces, np.where(piece.backwards, -fluxes, fluxes))

    def of_flow(self, solution):
        """Return a FlowSolution of the whole mesh, or None, restricted to this part."""
        if solution is None:
            return None
        fluxes = solution.fluxes[self._piece.faces]
        return replace(solution, velocity=solution.velocity[self.order], p=solution.p[self.order], mesh=self.part,
                       fluxes=np.where(self._piece.backwards, -fluxes, fluxes))

    def whole(self, solution):
        """Gather each part's FlowSolution into one of the whole mesh, on every rank."""
        return replace(solution, velocity=self.cells(solution.velocity), p=self.cells(solution.p),
                       fluxes=self.faces(solution.fluxes), mesh=self.mesh)

    def _gathered(self, size, numbers, values):
        whole = np.empty((size, *values.shape[1:]), values.dtype)
        for there, part in self.ranks.allgather((numbers, values)):
            whole[there] = part
        return whole

    def require_fixed(self, fixed):
        """Raise InputError on every rank if a connected component of the mesh has no face where ``fixed`` (bool, this
        part's boundary faces) is True; see `check.every_part_is_fixed`."""
        marks = np.concatenate([np.zeros(self.part.n_internal), fixed])
        with self.ranks.agreed():
            every_part_is_fixed(self.mesh, self._gathered(self.mesh.n_faces, self._piece.faces, marks)[
                self.mesh.n_internal:] != 0)


class RankMatrix:
    """A DistributedMatrix of the rows of this rank's cells, for the local matrices that a Pattern assembles.

    Parameters
    ----------
    metrics : Metrics
        Of a PartMesh.
    local : CSRMatrix
        Such a matrix; unknown k c + i is component i of cell c, for some k.
    device : str
        Where A lies; the local matrices lie where ``metrics`` does.
    order : int array, optional
        The rank's cells in the user's numbering.

    Attributes
    ----------
    A : DistributedMatrix
    """

    def __init__(self, metrics, local, device, order=None):
        import scipy.sparse as sp
        mesh, k, host = metrics.mesh.whole, local.shape[0] // metrics.n, metrics.space.to_host
        n_local, ghosts = k * metrics.own, (k * mesh.border.ghosts[:, None] + np.arange(k)).ravel()
        ptr = host(local.indptr[:n_local + 1])
        # A matrix with the entries' numbers as values shows where from_parts puts each entry.
        rows = sp.csr_array((np.arange(1.0, ptr[-1] + 1), host(local.indices[:int(ptr[-1])]), ptr),
                            shape=(n_local, local.shape[0]))
        self.A = from_parts(mesh.ranks, rows[:, :n_local], rows[:, n_local:], ghosts, device=device, block=1,
                            starts=k * mesh.starts, order=order)
        with self.A.space.active():
            self._places = [(block.data - 1).astype(np.int64) for block in (self.A.own, self.A.rest)]
            if metrics.dtype != self.A.dtype:
                self.A = self.A.astype(metrics.dtype)

    def update(self, local):
        """Set the values of A to this rank's rows of ``local``, a CSRMatrix; return A."""
        for block, places in zip((self.A.own, self.A.rest), self._places):
            block.data[...] = self.A.space.from_host(local.data)[places]
        self.A.discard_adjoint()
        return self.A


class RankSystem:
    """The equation of a problem across ranks, with the interface of `System`.

    Vectors hold the rank's cells, on the CPU. On device="cuda" each rank solves on its GPU, but assembles and corrects
    on its CPU.

    Attributes
    ----------
    A : DistributedMatrix
    space : DistributedSpace
        The space of the corrections' vectors, on the CPU.
    b, flux, source, deferred, floating
        See `System`; the flux covers the faces of the rank's cells.
    """

    def __init__(self, ranks, problem, device, dtype):
        self._ranks, mesh = ranks, problem.mesh
        self._division = division = None if isinstance(mesh, PartMesh) else Division(ranks, mesh)
        with ranks.agreed():
            if division is not None:
                problem = problem.of_part(division)
            self.space = space_of(problem.mesh, "cpu")
            self._part = part = System(problem, self.space, np.dtype(dtype))
        metrics, n_local = part.metrics, part.metrics.own
        rows = RankMatrix(metrics, part.A, device, None if division is None else division.order)
        with rows.A.space.active():              # a rank's GPU need not be the process's current one
            self.A = rows.update(part.A)
        self.b, self.source, self._volumes = part.b[:n_local], part.source[:n_local], metrics.volumes[:n_local]
        self.flux, self.deferred, self.floating = part.flux, part.deferred, part.floating
        self._all = np.zeros(metrics.n, self.A.dtype)

    def _extended(self, p):
        """Copy p (values of the rank's cells) and the ghosts' values, from a halo exchange, into a buffer; return the
        buffer, which the next call overwrites."""
        self._all[:p.size] = p
        return self._part.metrics.refresh(self._all)

    def flux_at(self, p):
        """Return a Flux with the explicit terms at p (values of the rank's cells); see `System.flux_at`."""
        return self._part.flux_at(self._extended(p))

    def rhs(self, flux):
        """Return V q minus the divergence of the explicit part of ``flux``, a new array for the rank's cells."""
        return self._part.rhs(flux)[:self.b.size]

    def implicit(self, flux, p):
        """Return A p, the divergence of the implicit part of ``flux`` at p, a new array for the rank's cells."""
        return self._part.implicit(flux, self._extended(p))[:self.b.size]

    def through(self, flux, p):
        """Return Σ |flux| through the boundary faces of each of the rank's cells, at p."""
        return self._part.through(flux, self._extended(p))[:self.b.size]

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
        part = self._part.metrics.mesh.whole
        fixed = self._part.fixed()[part.n_internal:]
        (part.every_part_is_fixed if self._division is None else self._division.require_fixed)(fixed)

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
        if division is None:
            return p, fluxes, source
        return division.cells(p), division.faces(fluxes), division.cells(source)
