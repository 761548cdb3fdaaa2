"""Metrics: the mesh geometry that the discretisation needs, on the device; computed once a mesh.

For an internal face, d points from the owner's centre (O) to the neighbour's centre (N). At the boundary, d points from
the cell's centre to the face's centre. s is the area vector. Vectors are stored by component, shape (3, f).

Across ranks, the mesh is a rank's PartMesh, and its ghosts are the last cells. Each cell and each face belongs to one
rank, a face to its owner's. What a rank computes for a ghost lacks faces, and so is wrong, until ``refresh`` replaces
it by the value that the ghost's rank has.
"""
from __future__ import annotations

import numpy as np

from swell.core.arrays import check_finite
from swell.core.columns import Columns, plain
from swell.core.devices import make_space
from swell.core.errors import InputError
from swell.pde.fvm.assembly import Pattern


class Metrics:
    """Geometry and connectivity of a mesh, in arrays of a space.

    Parameters
    ----------
    mesh : Mesh
    space : Space
        Of a PartMesh: a DistributedSpace (`space_of`).
    dtype : {"float64", "float32"}

    Attributes
    ----------
    mesh : CoupledMesh
        The mesh with each pair of cyclic faces as one internal face; all faces below are its faces.
    n, n_internal : int
        Numbers of cells, ghosts included, and of internal faces.
    own : int
        Number of this rank's cells, which are the first ones; n on one device.
    owner, neighbour : int arrays, shapes (f,) and (fi,)
    volumes : array, shape (n,)
    s, d : arrays, shape (3, f)
        Area vectors, and vectors from centre to centre (at the boundary: from centre to face).
    area : array, shape (f,)
        |s|.
    normal_distance : array, shape (f,)
        d·s/|s|, which is positive.
    weight : array, shape (fi,)
        p_f = weight p_O + (1 − weight) p_N.
    tangent : array, shape (3, boundary faces)
        d minus its component along the face's normal: from the cell's centre to the foot of that normal.
    pattern : Pattern

    Raises
    ------
    InputError
        If a cell's centre lies on the wrong side of one of its faces (d·s ≤ 0): no two-point flux exists there.
    """

    def __init__(self, mesh, space, dtype=np.float64):
        xp, dtype = space.xp, np.dtype(dtype)
        if mesh.ranks is not None and space.ranks.single:
            raise InputError("this mesh is a rank's part: only the steady Poisson and ScalarTransport, and Flow, solve "
                             "on parts; for anything else put the mesh together (reconstructParMesh -constant)")
        self.own, self._halos = mesh.n_cells, {}
        self.mesh = mesh = mesh.coupled
        self.space, self.dtype = space, dtype
        self.n, self.n_internal = mesh.n_cells, mesh.neighbour.size
        inside = slice(0, self.n_internal)
        self.owner, self.neighbour = space.from_host(mesh.owner), space.from_host(mesh.neighbour)
        s, at, far, centres = (xp.ascontiguousarray(space.from_host(v).T)
                               for v in (mesh.face_areas, mesh.face_centres, mesh.far_centres, mesh.centres))
        d = at - centres[:, self.owner]
        to_face = xp.abs((d * s).sum(0))[inside]
        to_face_n = xp.abs(((centres[:, self.neighbour] - far) * s[:, inside]).sum(0))
        d[:, inside] = centres[:, self.neighbour] - centres[:, self.owner[inside]] + (at[:, inside] - far)
        area = xp.sqrt((s * s).sum(0))
        normal_distance = (d * s).sum(0) / area
        with space.ranks.agreed():
            _check_sides(mesh, space.to_host(normal_distance))
        outside = slice(self.n_internal, None)
        tangent = d[:, outside] - normal_distance[outside] * s[:, outside] / area[outside]
        self.weight = (to_face_n / (to_face + to_face_n)).astype(dtype)
        self.volumes = space.from_host(mesh.volumes).astype(dtype, copy=False)
        self.s, self.d, self.area, self.normal_distance, self.tangent = (
            v.astype(dtype, copy=False) for v in (s, d, area, normal_distance, tangent))
        self.face_centres, self.far_centres, self.centres = (v.astype(dtype, copy=False) for v in (at, far, centres))
        self.pattern = Pattern(space.local, self.n, self.owner, self.neighbour, dtype)

    def refresh(self, values):
        """Overwrite the ghosts' values, ``values[..., own:]``, by their ranks' values; return ``values``. All ranks
        call it together."""
        if self.space.ranks.single:
            return values
        rows = values.reshape(-1, self.n)
        halo = self._halo(len(rows))
        halo.start(Columns(rows) if len(rows) > 1 else rows[0])
        halo.finish()
        rows[:, self.own:] = plain(halo.values)
        return values

    def _halo(self, count):
        """Return the Halo that exchanges ``count`` fields in one message; made at the first use."""
        if count not in self._halos:
            from swell.distributed.halo import Halo
            space = self.space if count == 1 else self.space.for_columns(count)
            self._halos[count] = Halo(space, self.mesh.whole.border.ghosts, self.dtype)
        return self._halos[count]

    def interpolate(self, p):
        """Interpolate cell values, shape (..., n), linearly to the internal faces; return a new array, shape (...,
        fi)."""
        inside = self.owner[:self.n_internal]
        return self.weight * p[..., inside] + (1 - self.weight) * p[..., self.neighbour]

    def difference(self, p):
        """Return p_N − p_O on each internal face: the value of its neighbour cell N minus the value of its owner cell
        O."""
        return p[..., self.neighbour] - p[..., self.owner[:self.n_internal]]

    def divergence(self, flux):
        """Return the sum of each cell's outward fluxes, shape (n,), not divided by the volume; ``flux``: shape (f,),
        positive from owner to neighbour."""
        return self.pattern.collect(flux)

    @property
    def non_orthogonality(self) -> float:
        """The largest angle between d and s over the internal faces, in degrees."""
        xp, inside = self.space.xp, slice(0, self.n_internal)
        if not self.n_internal:
            return 0.0
        cosine = self.normal_distance[inside] / xp.sqrt((self.d[:, inside] ** 2).sum(0))
        return float(np.degrees(np.arccos(min(1.0, float(cosine.min())))))

    @property
    def orthogonal(self) -> bool:
        """True if d is parallel to s on every face, to rounding: no face needs a non-orthogonal correction."""
        xp = self.space.xp
        normal = self.normal_distance * self.s / self.area
        return not self.space.ranks.max(bool((xp.abs(self.d - normal).max(0) > 1e-7 * self.normal_distance).any()))

    @property
    def dimensions(self) -> list[int]:
        """The axes (0 to 2) along which something may flow; axes normal to patches of kind "empty" are left out. All
        ranks ask together: a rank may have no face of such a patch."""
        empty = [np.abs(self.mesh.face_areas[patch.start:patch.start + patch.size]) for patch in self.mesh.patches
                 if patch.kind == "empty"]
        sides = np.array([[*of_patch.sum(0), np.linalg.norm(of_patch, axis=1).sum()] for of_patch in empty])
        sides = sum(self.mesh.whole.of_ranks(sides.reshape(-1, 4)))
        flat = (sides[:, :3] > 0.99 * sides[:, 3:]).any(axis=0)
        return [axis for axis in range(3) if not flat[axis]]

    def of_faces(self, values):
        """Return one value for each face of the CoupledMesh, an array of the space; ``values``: one for each face of
        the original Mesh."""
        values = self.space.from_host(values).astype(self.dtype, copy=False)
        return values if isinstance(self.mesh.faces, slice) else values[self.space.from_host(self.mesh.faces)]

    def of_fluxes(self, values):
        """Like ``of_faces``, for fluxes: they change their sign on faces that the CoupledMesh has reversed."""
        values = self.of_faces(values)
        if not self.space.ranks.single:
            backwards = self.space.from_host(self.mesh.reversed)
            values[backwards] = -values[backwards]
        return values

    def with_ghosts(self, value):
        """Return cell data, shape (n, ...), with the ghosts' values; numbers and functions are returned unchanged. The
        space's ``require_equal`` finds ranks that give data of different kinds."""
        shape = () if callable(value) else np.shape(value)
        self.space.ranks.require_equal(callable(value) or (len(shape), shape[1:]), "which data are arrays")
        if self.space.ranks.single or shape[:1] != (self.own,):
            return value
        return self.mesh.whole.with_ghosts(self.space.to_host(value))

    def full(self, value, name):
        """Turn a scalar, an array with one value for each of the rank's cells, or a function of the centres, into an
        array of the space, shape (n,).

        Raises
        ------
        InputError
            For a wrong shape, or values that are not finite; the message calls the data ``name``.
        """
        everywhere = callable(value)
        value = numbers(value(self.mesh.centres) if everywhere else value, name)
        with self.space.ranks.agreed():
            if value.shape not in ((), (1,), (self.n if everywhere else self.own,)):
                raise InputError(f"{name} has shape {value.shape}: expected a number, one value a cell ({self.own},), "
                                 "or a function of the centres (n, 3) that returns one")
            check_finite(name, value)
        value = self.space.from_host(value if everywhere else self.with_ghosts(value))
        return self.space.xp.broadcast_to(value, (self.n,)).astype(self.dtype)


def space_of(mesh, device):
    """Return the space of a mesh's cells on a device: of a PartMesh a DistributedSpace, and each rank has its own
    device."""
    if mesh.ranks is None:
        return make_space(device)
    from swell.distributed.devices import on_device
    from swell.distributed.space import DistributedSpace
    local, communicator = on_device(mesh.ranks, device)
    return DistributedSpace(local, communicator, mesh.starts)


def numbers(value, name):
    """Return numbers as a NumPy array; arrays of any library are returned unchanged. ``name``: the data in messages.

    Raises
    ------
    InputError
        If ``value`` is not numeric, or complex.
    """
    if hasattr(value, "dtype"):
        if getattr(value.dtype, "kind", "f") not in "fiub":
            raise InputError(f"{name} has dtype {value.dtype}: expected real numbers")
        return value
    try:
        return np.asarray(value, float)
    except (TypeError, ValueError):
        raise InputError(f"{name} is {value!r}: expected numbers, or a function of points that returns them") from None


def _check_sides(mesh, distance):
    """Raise InputError unless every cell's centre lies on the inner side of its faces; ``distance``: d·s/|s| of each
    face."""
    wrong = np.flatnonzero(~(distance > 0))
    if not wrong.size:
        return
    f = int(wrong[0])
    at = ", ".join(f"{v:.4g}" for v in mesh.face_centres[f])
    cells = f"cells {mesh.owner[f]} and {mesh.neighbour[f]}" if f < mesh.neighbour.size else f"cell {mesh.owner[f]}"
    raise InputError(f"{wrong.size} faces have d·s ≤ 0, the first is face {f} of {cells} at ({at}): the centres of "
                     "cells lie on the wrong side of them; repair the mesh there (see OpenFOAM's checkMesh)")
