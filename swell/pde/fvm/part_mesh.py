"""A mesh in parts, one for each rank: a decomposed case of OpenFOAM.

decomposePar writes a folder processor<k> for each part. Where two parts meet, each has a patch of type processor, and
both list the patch's faces in the same order; processorCyclic if they meet through a pair of cyclic patches. A rank
knows its own cells, and of other ranks only the cells that its faces touch, its ghosts: number, volume and centre. No
rank needs the whole mesh; a Division (across_ranks.py) makes parts of one that every rank has.
"""
from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from swell.core.errors import InputError
from swell.io.files import as_path
from swell.pde.fvm.mesh import CUT, Mesh
from swell.pde.fvm.periodic import MATCH, CoupledMesh
from swell.pde.fvm.polymesh import neighbour_of, read_polymesh

if TYPE_CHECKING:
    from swell.distributed.communicator import Communicator

MEET = 1e-6             # distance of two faces, relative to their size, up to which they are the same face


@dataclass(frozen=True, eq=False)
class Border:
    """The faces of a part behind which another rank's cells lie, and these cells, the ghosts.

    Both ranks of a face take its geometry from the lower one, which owns it, so that their fluxes have the same bits.

    Attributes
    ----------
    faces : int array, shape (m,)
        The faces' numbers in the part.
    beyond : int array, shape (m,)
        The ghost behind each face, as a position in ``ghosts``.
    reversed : bool array, shape (m,)
        True for faces that another rank owns.
    areas, centres, far_centres : arrays, shape (m, 3)
        Area vectors, out of the owner's cell; centres, seen from the owner and from the other rank. The two differ
        through cyclic patches.
    ghosts : int64 array, shape (g,)
        Global numbers, ascending.
    volumes, cells : arrays, shapes (g,) and (g, 3)
        Volumes and centres of the ghosts.
    asked : tuple of int arrays
        For each rank: the cells of this part that are its ghosts.
    """

    faces: np.ndarray
    beyond: np.ndarray
    reversed: np.ndarray
    areas: np.ndarray
    centres: np.ndarray
    far_centres: np.ndarray
    ghosts: np.ndarray
    volumes: np.ndarray
    cells: np.ndarray
    asked: tuple


@dataclass(frozen=True, eq=False, kw_only=True)
class PartMesh(Mesh):
    """A rank's part of a mesh: a Mesh that continues in other ranks' parts beyond its patches of kind "cut".

    Attributes
    ----------
    ranks : Communicator
    starts : int array, shape (ranks + 1,)
        The first cell of each rank, in global numbers.
    border : Border
    label, labels : int array, shape (n,), and int
        The connected component of the whole mesh that each cell belongs to, and the number of components.
    """

    ranks: Communicator
    starts: np.ndarray
    border: Border
    label: np.ndarray
    labels: int

    @functools.cached_property
    def coupled(self) -> CoupledMesh:
        """A CoupledMesh of this part and its ghosts."""
        return CoupledMesh.of(self, self.border)

    def agreed(self):
        return self.ranks.agreed()

    def of_ranks(self, value) -> list:
        return self.ranks.allgather(value)

    def with_ghosts(self, values):
        """Return cell data, shape (n, ...), with the ghosts' values behind them. All ranks call it together."""
        return np.concatenate([values, *self.ranks.alltoall([values[cells] for cells in self.border.asked])])

    def behind(self, patch):
        """Return the cells behind the faces of ``patch``, of kind "cut", as positions in ``with_ghosts``."""
        at = np.searchsorted(self.border.faces, np.arange(patch.start, patch.start + patch.size))
        return self.n_cells + self.border.beyond[at]

    def every_part_is_fixed(self, fixed):
        """Raise InputError on every rank if a connected component of the mesh of all ranks has no face where ``fixed``
        (bool, this rank's boundary faces) is True. All ranks call it together."""
        if self.labels == 1:
            return
        local_labels = np.unique(self.label[self.owner[self.n_internal:][fixed]])
        fixed_labels = np.unique(np.concatenate(self.ranks.allgather(local_labels)))
        if fixed_labels.size < self.labels:
            raise InputError(f"the mesh falls into {self.labels} parts that share no face, and in "
                             f"{self.labels - fixed_labels.size} of them no patch fixes a value, so that the system is "
                             "singular: give each a patch with a Dirichlet or Robin condition")

    def facts(self) -> dict:
        """Statistics of the mesh of all ranks, as in `Mesh.facts`. Points between two parts count twice. All ranks call
        it together."""
        of_ranks = self.ranks.allgather(super().facts())
        listed = [patch for facts in of_ranks for patch in facts["patches"]]
        cut = sum(patch["faces"] for patch in listed if patch["kind"] == CUT and "neighbour" not in patch) // 2
        patches = [{**first, **{key: sum(patch[key] for patch in listed if first["name"] in (
                        patch["name"], patch["kind"] == CUT and patch.get("neighbour"))) for key in ("faces", "area")}}
                   for first in of_ranks[0]["patches"] if first["kind"] != CUT]
        total = {key: sum(facts[key] for facts in of_ranks) for key in ("cells", "faces", "internal_faces", "points",
                                                                        "volume")}
        return {**total, "faces": total["faces"] - cut, "internal_faces": total["internal_faces"] + cut,
                "patches": patches, "parts": self.labels, "ranks": self.ranks.size,
                "cell_volume": {name: pick(facts["cell_volume"][name] for facts in of_ranks)
                                for name, pick in (("min", min), ("max", max))},
                **{what: {"max": max(facts[what]["max"] for facts in of_ranks),
                          "mean": sum(f[what]["mean"] * f[weight] for f in of_ranks) / max(total[weight], 1)}
                   for what, weight in (("non_orthogonality", "internal_faces"), ("aspect_ratio", "cells"))}}


def count_parts(case) -> int:
    """The number of folders processor0, processor1, ... of a case."""
    return sum(path.name[len("processor"):].isdecimal() for path in case.glob("processor*"))


def read_part(case, ranks) -> PartMesh:
    """Read this rank's part of a decomposed OpenFOAM case; a collective call.

    Parameters
    ----------
    case : str or path-like
        The folder that holds processor0, processor1, ..., one for each rank.
    ranks : Communicator

    Raises
    ------
    InputError
        On every rank: if the numbers of parts and ranks differ, a part is damaged, or two parts' faces do not match.
    """
    with ranks.agreed():
        case = as_path(case)
        count = count_parts(case)
        if count != ranks.size:
            raise InputError(f"{case} is decomposed into {count} parts, and there are {ranks.size} ranks: start "
                             f"mpiexec -n {count}, or decompose it again")
        folder = case / f"processor{ranks.rank}"
        mesh, part_beyond = read_polymesh(folder), neighbour_of(folder)
        patches = [p for p in mesh.patches if p.name not in part_beyond]
        for name, rank in part_beyond.items():
            if rank == ranks.rank or rank >= ranks.size:
                raise InputError(f"{folder}: patch {name!r} leads to part {rank}: expected one of the other "
                                 f"{ranks.size - 1}; decompose the case again")
        if len({(rank, mesh.patch(name).neighbour) for name, rank in part_beyond.items()}) < len(part_beyond):
            raise InputError(f"{folder} meets another part more than once, which is not supported: put the mesh "
                             "together (reconstructParMesh -constant)")
    ranks.require_equal([(p.name, p.kind) for p in patches], "the patches other than processor patches")
    return joined(mesh, part_beyond, ranks)


def joined(mesh, part_beyond, ranks) -> PartMesh:
    """Build the PartMesh of this rank's part: number its cells globally, and learn its ghosts from the other ranks. All
    ranks call it together.

    Parameters
    ----------
    mesh : Mesh
    part_beyond : dict
        Name of a patch that leads to another part → this part's rank. Its ``neighbour`` is the cyclic patch through
        which it leads, if any.
    ranks : Communicator
    """
    starts = np.concatenate([[0], np.cumsum(ranks.allgather(mesh.n_cells))]).astype(np.int64)
    sides = [patch for patch in mesh.patches if patch.name in part_beyond]
    sent = [{} for _ in range(ranks.size)]
    for patch in sides:
        cells = mesh.owner[patch.faces]
        sent[part_beyond[patch.name]][patch.neighbour] = (
            cells + starts[ranks.rank], mesh.face_areas[patch.faces], mesh.face_centres[patch.faces],
            mesh.volumes[cells], mesh.centres[cells])
    received, there = ranks.alltoall(sent), []
    with ranks.agreed():
        for patch in sides:
            other = part_beyond[patch.name]
            back = mesh.patch(patch.neighbour).neighbour if patch.neighbour else ""
            there.append(received[other].get(back))
            _require_meeting(mesh, patch, there[-1], other)
    patches = tuple(replace(p, kind=CUT) if p.name in part_beyond else p for p in mesh.patches)
    mesh = replace(mesh, patches=patches)
    neighbour = np.full(mesh.n_faces, -1, np.int64)
    neighbour[:mesh.n_internal] = starts[ranks.rank] + mesh.neighbour
    for patch, (cells, *_) in zip(sides, there):
        neighbour[patch.faces] = cells
    label, labels = _connected(mesh, neighbour, ranks, starts)
    return PartMesh(**{name: getattr(mesh, name) for name in Mesh.__dataclass_fields__}, ranks=ranks, starts=starts,
                    border=_border(mesh, sides, there, [part_beyond[patch.name] for patch in sides], ranks, starts),
                    label=label, labels=labels)


def _border(mesh, sides, there, others, ranks, starts) -> Border:
    """Return the Border of this rank's part. ``sides``: its patches towards other parts; ``there``: for each, the data
    from the other rank; ``others``: this rank's number; ``starts``: the first cell of each rank."""
    faces = np.concatenate([np.empty(0, np.int64), *(np.arange(p.start, p.start + p.size) for p in sides)])
    none = np.empty(0, np.int64), np.empty((0, 3)), np.empty((0, 3)), np.empty(0), np.empty((0, 3))
    cells, areas, centres, volumes, places = map(np.concatenate, zip(none, *there))
    lower = np.repeat(np.array(others, np.int64) < ranks.rank, [patch.size for patch in sides])
    ghosts, first, beyond = np.unique(cells, return_index=True, return_inverse=True)
    asked = ranks.alltoall(np.split(ghosts, np.searchsorted(ghosts, starts[1:-1])))
    ours = lower[:, None]
    return Border(faces, beyond, lower, np.where(ours, areas, mesh.face_areas[faces]),
                  np.where(ours, centres, mesh.face_centres[faces]), np.where(ours, mesh.face_centres[faces], centres),
                  ghosts, volumes[first], places[first], tuple(cells - starts[ranks.rank] for cells in asked))


def _require_meeting(mesh, patch, there, rank):
    """Raise InputError unless the other side of ``patch`` has the same faces, or through cyclic patches faces moved by
    one translation. ``there``: (cells, area vectors, face centres, ...) that rank ``rank`` sent about its side, or None
    if it has none."""
    if there is None or len(there[0]) != patch.size:
        raise InputError(f"patch {patch.name!r} has {patch.size} faces, and part {rank} has "
                         f"{0 if there is None else len(there[0])} there: decompose the case again")
    if not patch.size:
        return
    areas, apart = mesh.face_areas[patch.faces], there[2] - mesh.face_centres[patch.faces]
    size = np.sqrt(np.linalg.norm(areas, axis=1))
    if patch.neighbour:
        apart = apart - np.median(apart, axis=0)
    wrong = np.linalg.norm(apart, axis=1) / size + np.linalg.norm(areas + there[1], axis=1) / size**2
    if (wrong > (MATCH if patch.neighbour else MEET)).any():
        raise InputError(f"face {int(np.argmax(wrong))} of patch {patch.name!r} is not where part {rank} has it: "
                         "decompose the case again; a rotation between cyclic patches is not supported")


def _connected(mesh, neighbour, ranks, starts):
    """Return (connected component of each of this rank's cells, number of components), for the whole mesh.
    ``neighbour``: global number of the cell behind each face, −1 for none; ``starts``: the first cell of each rank."""
    import scipy.sparse as sp
    from scipy.sparse.csgraph import connected_components
    counts = ranks.allgather(int(mesh.parts.max()) + 1)
    before = np.concatenate([[0], np.cumsum(counts)])
    component = before[ranks.rank] + mesh.parts
    cut = mesh.n_internal + np.flatnonzero(neighbour[mesh.n_internal:] >= 0)
    cut = cut[np.argsort(neighbour[cut], kind="stable")]
    asked = ranks.alltoall(np.split(neighbour[cut], np.searchsorted(neighbour[cut], starts[1:-1])))
    theirs = np.concatenate(ranks.alltoall([component[cells - starts[ranks.rank]] for cells in asked]))
    pairs = np.unique(np.stack([component[mesh.owner[cut]], theirs]), axis=1)
    first, second = np.concatenate(ranks.allgather(pairs), axis=1)
    links = sp.coo_array((np.ones(first.size), (first, second)), shape=(before[-1],) * 2)
    count, label = connected_components(links, directed=False)
    return label[component], count
