"""A mesh in parts, one for each rank: a decomposed case of OpenFOAM.

decomposePar writes a folder processor<k> for each part. Where two parts meet, each has a patch of type processor, and
both list the patch's faces in the same order. Global numbers of cells and of faces run rank by rank; a face between two
parts is numbered by the lower rank. A rank asks the others for the cells around its own, layer by layer. No rank ever
has the whole mesh.
"""
from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from swell.core.errors import InputError
from swell.io.files import as_path
from swell.pde.fvm.mesh import CUT, Mesh, reverse_faces
from swell.pde.fvm.periodic import CYCLIC
from swell.pde.fvm.polymesh import neighbour_of, read_polymesh
from swell.pde.fvm.submesh import Faces, SubMesh

if TYPE_CHECKING:
    from swell.distributed.communicator import Communicator

MEET = 1e-6             # distance of two faces, relative to their size, up to which they are the same face


@dataclass(frozen=True, eq=False)
class PartMesh(Mesh):
    """A rank's part of a mesh: a Mesh that continues in other ranks' parts beyond its patches of kind "cut".

    Attributes
    ----------
    ranks : Communicator
    starts : int array, shape (ranks + 1,)
        The first cell of each rank, in global numbers.
    known : Faces
        The part's faces, with global numbers and with the owners of the whole mesh.
    reversed : array of bool, shape (f,)
        True for faces whose owner in the whole mesh is another rank's cell; in this part they point the other way.
    label, labels : int array, shape (n,), and int
        The connected component of the whole mesh that each cell belongs to, and the number of components.
    """

    ranks: Communicator
    starts: np.ndarray
    known: Faces
    reversed: np.ndarray
    label: np.ndarray
    labels: int

    def with_layers(self, layers) -> "Neighbourhood":
        """Return the rank's cells with the given number of layers of neighbour cells around them. All ranks call it
        together."""
        ranks, own = self.ranks, np.arange(self.starts[self.ranks.rank], self.starts[self.ranks.rank + 1])
        faces, inside = self.known, own
        for _ in range(layers):
            cells = np.unique(np.concatenate([faces.owner, faces.neighbour[faces.neighbour >= 0]]))
            cells = np.setdiff1d(cells, inside)
            answers = [self.known.touching(asked) for asked in ranks.alltoall(self._by_rank(cells))]
            faces, inside = faces.with_others(ranks.alltoall(answers)), np.union1d(inside, cells)
        sub = SubMesh.of(faces, inside, own, [p for p in self.patches if p.kind != CUT])
        return Neighbourhood(**vars(sub), asked=tuple(ranks.alltoall(self._by_rank(np.setdiff1d(inside, own)))))

    def _by_rank(self, cells):
        """Split global cell numbers (ascending) into a list with one array for each owning rank."""
        return np.split(cells, np.searchsorted(cells, self.starts[1:-1]))

    def every_part_is_fixed(self, fixed):
        """Raise InputError on every rank if a connected component of the mesh of all ranks has no face where ``fixed``
        (bool, this rank's boundary faces) is True. All ranks call it together."""
        if self.labels == 1:
            return
        mine = np.unique(self.label[self.owner[self.n_internal:][fixed]])
        found = np.unique(np.concatenate(self.ranks.allgather(mine)))
        if found.size < self.labels:
            raise InputError(f"the mesh falls into {self.labels} parts that share no face, and in "
                             f"{self.labels - found.size} of them no patch fixes a value, so that the system is "
                             "singular: give each a patch with a Dirichlet or Robin condition")

    def facts(self) -> dict:
        """Statistics of the mesh of all ranks, as in `Mesh.facts`. Points between two parts count twice. All ranks call
        it together."""
        own = self.ranks.allgather(super().facts())
        cut = sum(patch["faces"] for facts in own for patch in facts["patches"] if patch["kind"] == CUT) // 2
        patches = [{**first, **{key: sum(facts["patches"][k][key] for facts in own) for key in ("faces", "area")}}
                   for k, first in enumerate(own[0]["patches"]) if first["kind"] != CUT]
        total = {key: sum(facts[key] for facts in own) for key in ("cells", "faces", "internal_faces", "points",
                                                                   "volume")}
        return {**total, "faces": total["faces"] - cut, "internal_faces": total["internal_faces"] + cut,
                "patches": patches, "parts": self.labels, "ranks": self.ranks.size,
                "cell_volume": {name: pick(facts["cell_volume"][name] for facts in own)
                                for name, pick in (("min", min), ("max", max))},
                **{what: {"max": max(facts[what]["max"] for facts in own),
                          "mean": sum(facts[what]["mean"] * facts[weight] for facts in own) / max(total[weight], 1)}
                   for what, weight in (("non_orthogonality", "internal_faces"), ("aspect_ratio", "cells"))}}


@dataclass(frozen=True, eq=False)
class Neighbourhood(SubMesh):
    """A rank's part with layers of neighbours; cells and faces have global numbers.

    Attributes
    ----------
    asked : tuple of int arrays
        For each rank: this rank's cells that lie in the other's layers.
    """

    asked: tuple

    def conditions(self, whole, mesh) -> dict:
        """Return the conditions ``whole`` (patch name → condition) unchanged. Raise InputError for per-face arrays,
        since they cannot be redistributed."""
        for name, condition in whole.items():
            if any(np.ndim(value) and not callable(value) for value in vars(condition).values()):
                raise InputError(f"the condition of patch {name!r} has one value a face: expected a number or a "
                                 "function of the faces' centres where ranks have parts of the mesh")
        return whole

    def of_cells(self, value, mesh):
        """Return cell data of ``mesh`` (this rank's PartMesh), extended by the layers' values, which other ranks send.
        Numbers and functions are returned unchanged."""
        shape = () if callable(value) else np.shape(value)
        mesh.ranks.require_equal(callable(value) or (len(shape), shape[1:]), "which data are arrays")
        if not shape:
            return value
        value = np.asarray(value)
        if value.shape[0] != mesh.n_cells:
            raise InputError(f"data of shape {shape}: expected one value for each of this rank's {mesh.n_cells} "
                             "cells, or a function of points")
        first, whole = mesh.starts[mesh.ranks.rank], np.empty((self.cells.size, *shape[1:]), value.dtype)
        whole[self.own] = value
        others = np.ones(self.cells.size, bool)
        others[self.own] = False
        whole[others] = np.concatenate(mesh.ranks.alltoall([value[cells - first] for cells in self.asked]))
        return whole


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
        On every rank: if the numbers of parts and ranks differ, a part is damaged, or two parts' faces do not match;
        also for cyclic patches.
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
        whole_instead("read in parts", patches)
        if len({*part_beyond.values()}) < len(part_beyond):
            raise InputError(f"{folder} meets another part more than once, which is not supported: put the mesh "
                             "together (reconstructParMesh -constant)")
    ranks.require_equal([(p.name, p.kind) for p in patches], "the patches other than processor patches")
    return _joined(mesh, part_beyond, ranks)


def whole_instead(what, patches):
    """Raise InputError if a patch is cyclic, since such a mesh can only be given whole to every rank. ``what``: a
    participle for the message, such as "written in parts"."""
    for patch in patches:
        if patch.kind == CYCLIC:
            raise InputError(f"patch {patch.name!r} is cyclic, and such a mesh cannot be {what}: give each rank the "
                             "whole mesh, of which it takes a part itself (of a decomposed case: reconstructParMesh "
                             "-constant, and remove the folders processor0, processor1, ...)")


def _joined(mesh, part_beyond, ranks):
    """Build and return the PartMesh: exchange cells and faces across the cuts, and number them globally. ``mesh``: this
    rank's part; ``part_beyond``: name of a cut patch → rank on its other side. All ranks call it together."""
    sides = {part_beyond[p.name]: p for p in mesh.patches if p.name in part_beyond}
    patches = tuple(replace(p, kind=CUT) if p.name in part_beyond else p for p in mesh.patches)
    mesh = replace(mesh, patches=patches)
    lower = np.zeros(mesh.n_faces, bool)
    for rank, patch in sides.items():
        lower[patch.faces] = rank < ranks.rank
    starts, first = ([0, *np.cumsum(sizes)] for sizes in
                     zip(*ranks.allgather((mesh.n_cells, int(np.count_nonzero(~lower))))))
    number = np.full(mesh.n_faces, -1, np.int64)
    number[~lower] = first[ranks.rank] + np.arange(np.count_nonzero(~lower))
    own = Faces.of(mesh, np.arange(mesh.n_faces))
    owner = own.owner + starts[ranks.rank]
    neighbour = np.where(own.neighbour >= 0, own.neighbour + starts[ranks.rank], -1)
    there = ranks.alltoall([(owner[p.faces], number[p.faces].copy(), mesh.face_centres[p.faces])
                            if (p := sides.get(rank)) else None for rank in range(ranks.size)])
    with ranks.agreed():
        for rank, patch in sides.items():
            _require_meeting(mesh, patch, there[rank], rank)
    for rank, patch in sides.items():
        cells, numbers, _ = there[rank]
        neighbour[patch.faces] = cells
        if rank < ranks.rank:
            number[patch.faces] = numbers
    physical = np.cumsum([p.kind != CUT for p in patches]) - 1
    patch = np.where((own.patch >= 0) & (neighbour < 0), physical[own.patch], -1)
    known = Faces(number, np.where(lower, neighbour, owner), np.where(lower, owner, neighbour), patch, mesh.points,
                  mesh.face_ptr, reverse_faces(mesh.face_ptr, mesh.face_points, np.flatnonzero(lower)))
    label, labels = _connected(mesh, neighbour, ranks, starts)
    return PartMesh(**{name: getattr(mesh, name) for name in Mesh.__dataclass_fields__}, ranks=ranks,
                    starts=np.array(starts, np.int64), known=known, reversed=lower, label=label, labels=labels)


def _require_meeting(mesh, patch, there, rank):
    """Raise InputError unless the other side of ``patch`` has the same faces. ``there``: (cells, face numbers, face
    centres) that rank ``rank`` sent about its side, or None if it has none."""
    if there is None or len(there[0]) != patch.size:
        raise InputError(f"patch {patch.name!r} has {patch.size} faces, and part {rank} has "
                         f"{0 if there is None else len(there[0])} there: decompose the case again")
    apart = np.linalg.norm(mesh.face_centres[patch.faces] - there[2], axis=1)
    size = np.sqrt(np.linalg.norm(mesh.face_areas[patch.faces], axis=1))
    if (apart > MEET * size).any():
        raise InputError(f"face {int(np.argmax(apart / size))} of patch {patch.name!r} is not where part {rank} has "
                         "it: decompose the case again")


def _connected(mesh, neighbour, ranks, starts):
    """Return (connected component of each of this rank's cells, number of components), for the whole mesh.
    ``neighbour``: global number of the cell behind each face, −1 for none; ``starts``: the first cell of each rank."""
    import scipy.sparse as sp
    from scipy.sparse.csgraph import connected_components
    counts = ranks.allgather(int(mesh.parts.max()) + 1)
    before = np.concatenate([[0], np.cumsum(counts)])
    mine = before[ranks.rank] + mesh.parts
    cut = mesh.n_internal + np.flatnonzero(neighbour[mesh.n_internal:] >= 0)
    cut = cut[np.argsort(neighbour[cut], kind="stable")]
    asked = ranks.alltoall(np.split(neighbour[cut], np.searchsorted(neighbour[cut], starts[1:-1])))
    theirs = np.concatenate(ranks.alltoall([mine[cells - starts[ranks.rank]] for cells in asked]))
    pairs = np.unique(np.stack([mine[mesh.owner[cut]], theirs]), axis=1)
    first, second = np.concatenate(ranks.allgather(pairs), axis=1)
    links = sp.coo_array((np.ones(first.size), (first, second)), shape=(before[-1],) * 2)
    count, label = connected_components(links, directed=False)
    return label[mine], count
