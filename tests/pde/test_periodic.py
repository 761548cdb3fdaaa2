"""Cyclic patches: a pair of faces is one face between two cells, in every equation; what is not matched is refused."""
from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from tests.support.fields import error, metrics_of, orders

from swell.core.errors import InputError
from swell.pde import fvm

TAU = 2 * np.pi
WALLS = {"ymin": fvm.Dirichlet(0.0), "ymax": fvm.Dirichlet(0.0)}


def waves(x):
    """Periodic along x, and zero at y = 0 and 1."""
    return np.sin(TAU * x[:, 0] + 0.3) * np.sin(np.pi * x[:, 1])


def solved(mesh, **settings):
    problem = fvm.Poisson(mesh, WALLS, source=lambda x: 5 * np.pi**2 * waves(x))
    solution = problem.solve(rtol=1e-10, **settings)
    assert solution.converged, str(solution)
    return solution


def outflow(mesh, fluxes):
    """What leaves each cell through all of its faces."""
    total = np.zeros(mesh.n_cells)
    np.add.at(total, mesh.owner, fluxes)
    np.subtract.at(total, mesh.neighbour, fluxes[:mesh.n_internal])
    return total


@pytest.mark.parametrize("kind", [{}, dict(perturb=0.2), dict(skew=(0.5, 0.0)), dict(grading=(3.0, 0.5))], ids=str)
def test_second_order(kind, device):
    errors = [error(mesh, solved(mesh, device=device).p, waves)
              for mesh in (fvm.box((n, n), periodic="x", **kind) for n in (16, 32, 64))]
    assert (orders(errors) > 1.8).all(), orders(errors)


def test_fully_periodic_is_known_up_to_a_constant(device):
    """sin 2πx in one, sin 2πx sin 2πy in two dimensions; rows add up to zero."""
    for cells, axes, exact, scale in (
            ((64,), "x", lambda x: np.sin(TAU * x[:, 0]), TAU**2),
            ((48, 40), "xy", lambda x: np.sin(TAU * x[:, 0]) * np.sin(TAU * x[:, 1]), 2 * TAU**2)):
        mesh = fvm.box(cells, periodic=axes)
        problem = fvm.Poisson(mesh, {}, source=lambda x: scale * exact(x))
        A = problem.assemble().A.to_scipy()
        assert (A != A.T).nnz == 0 and abs(A.sum(axis=1)).max() <= 1e-12 * abs(A).max()
        assert (np.diff(A.indptr) == 1 + 2 * len(cells)).all()                    # no wall anywhere
        solution = problem.solve(balance=True, mean=2.0, device=device)
        assert solution.converged and abs(solution.p - 2 - exact(mesh.centres)).max() < 5e-3
        assert np.allclose(outflow(mesh, solution.fluxes), solution.sources, atol=1e-8)


def test_a_shifted_origin_gives_the_shifted_solution():
    """Nothing tells where a periodic box is cut: the same values, rolled."""
    n = 24
    mesh = fvm.box((n, n), periodic="x")
    k = 1 + np.random.default_rng(0).random((n, n))
    q = np.random.default_rng(1).random((n, n))
    first, second = (fvm.Poisson(mesh, WALLS, np.roll(k, by, 1).ravel(), np.roll(q, by, 1).ravel()).solve(rtol=1e-11).p
                     for by in (0, 7))
    assert np.allclose(np.roll(first.reshape(n, n), 7, 1).ravel(), second, rtol=1e-8)


def test_fluxes_balance_on_both_sides_of_a_pair():
    mesh = fvm.box((9, 8, 7), perturb=0.2, periodic="xz")
    solution = solved(mesh)
    for one, other in (("xmin", "xmax"), ("zmin", "zmax")):
        here, there = (solution.fluxes[mesh.patch(name).faces] for name in (one, other))
        assert np.array_equal(here, -there) and abs(here).max() > 0
    assert np.allclose(outflow(mesh, solution.fluxes), solution.sources, atol=1e-9)
    assert set(solution.conservation()["patches"]) == {"ymin", "ymax"}


def test_geometry_across_a_pair():
    """Centre to face to face to centre, whatever the cells' sizes are on the two sides."""
    mesh = fvm.box((4, 3), grading=(8.0, 1.0), skew=(0.25, 0.0), periodic="xy")
    metrics = metrics_of(mesh)
    assert metrics.n_internal == mesh.n_internal + 3 + 4
    for f in range(mesh.n_internal, metrics.n_internal):
        first = metrics.mesh.faces[f]
        patch = next(p for p in mesh.patches if p.start <= first < p.start + p.size)
        second = mesh.patch(patch.neighbour).start + first - patch.start
        d = mesh.face_centres[first] - mesh.centres[mesh.owner[first]]
        d += mesh.centres[mesh.owner[second]] - mesh.face_centres[second]
        assert np.allclose(metrics.d[:, f], d) and np.allclose(metrics.s[:, f], -mesh.face_areas[second])
        assert metrics.neighbour[f] == mesh.owner[second]


@pytest.mark.parametrize("gradient", ["least_squares", "gauss"])
def test_gradients_see_across(gradient):
    mesh = fvm.box((64, 2), periodic="xy")
    metrics = metrics_of(mesh)
    found = {"least_squares": fvm.LeastSquares, "gauss": fvm.Gauss}[gradient](metrics, fvm.Boundary.of(metrics, {}))(
        np.sin(TAU * mesh.centres[:, 0]))
    assert abs(found[0] - TAU * np.cos(TAU * mesh.centres[:, 0])).max() < 0.02 and abs(found[1]).max() < 1e-12


@pytest.mark.parametrize("scheme", ["upwind", "linear", "linear_upwind"])
def test_a_wave_goes_round(scheme):
    """Carried once round a periodic box, it is where it was."""
    mesh = fvm.box((64,), periodic="x")
    start = np.sin(TAU * mesh.centres[:, 0])
    solution = fvm.ScalarTransport(mesh, {}, (1.0, 0.0, 0.0), 1e-6, scheme=scheme).advance(start, 1 / 128, 128, rtol=1e-9)
    assert solution.converged and abs((solution.p * mesh.volumes).sum()) < 1e-7
    assert abs(solution.p - start).max() < (0.6 if scheme == "upwind" else 0.06)
    steady = fvm.ScalarTransport(fvm.box((32, 8), periodic="x"), WALLS, (1.0, 0.0, 0.0), 0.05, lambda x: waves(x),
                                 scheme=scheme).solve()
    assert steady.converged


def test_one_cell_between_two_cyclic_patches_has_no_neighbour_there():
    """As of OpenFOAM's meshes that are periodic across their one layer of cells."""
    flat = solved(fvm.box((12, 10), periodic="x"))
    mesh = fvm.box((12, 10, 1), periodic="xz")
    assert np.allclose(solved(mesh).p, flat.p, atol=1e-9)
    two = fvm.box((2, 10), periodic="x")                     # the two cells share two faces
    A = fvm.Poisson(two, WALLS).assemble().A.to_scipy()
    assert A[0, 1] == A[1, 0] == pytest.approx(-2 * 0.1 / 0.5)


def two_columns(neighbour=""):
    """Two boxes without a common face, that two patches join if they are cyclic; a value is given in the first alone."""
    one = fvm.box((2, 2, 1))
    faces = np.split(one.face_points, one.face_ptr[1:-1])
    f, patches, groups, at = one.n_internal, [], [], 2 * one.n_internal
    for k in (0, 1):
        for patch in one.patches:
            patches.append(fvm.Patch(f"{patch.name}{k}", at, patch.size))
            groups.append((k, patch.faces))
            at += patch.size
    ends = {"xmax0": "xmin1", "xmin1": "xmax0"} if neighbour else {}
    patches = [dataclasses.replace(p, kind="cyclic", neighbour=ends[p.name]) if p.name in ends else p for p in patches]
    shifted = [faces, [face + one.n_points for face in faces]]
    listed = [*faces[:f], *shifted[1][:f], *(face for k, group in groups for face in shifted[k][group])]
    owner = np.concatenate([one.owner[:f], one.owner[:f] + 4, *(one.owner[group] + 4 * k for k, group in groups)])
    return fvm.Mesh.from_faces(np.concatenate([one.points, one.points + [3.0, 0.0, 0.0]]), np.cumsum([0, *map(len, listed)]),
                               np.concatenate(listed), owner, np.concatenate([one.neighbour, one.neighbour + 4]), patches)


def test_parts_that_only_a_pair_joins():
    walls = {f"{name}{k}": fvm.Neumann() for name in ("ymin", "ymax", "zmin", "zmax") for k in (0, 1)}
    ends = {"xmin0": fvm.Dirichlet(0.0), "xmax1": fvm.Neumann(1.0)}
    with pytest.raises(InputError, match="2 parts that share no face"):
        fvm.Poisson(two_columns(), {**walls, **ends, "xmax0": fvm.Neumann(), "xmin1": fvm.Neumann()}).solve()
    mesh = two_columns("cyclic")
    solution = fvm.Poisson(mesh, {**walls, **ends}).solve(rtol=1e-11)
    assert mesh.parts.max() == 0 and solution.converged
    assert np.allclose(solution.p, np.where(mesh.centres[:, 0] > 2, mesh.centres[:, 0] - 2, mesh.centres[:, 0]))


def test_couette_flow():
    """SIMPLE between two plates, of which one moves: u = y, without a beginning or an end."""
    mesh = fvm.box((5, 12), periodic="x", skew=(0.3, 0.0))
    plates = {"ymin": fvm.Dirichlet((0.0, 0.0, 0.0)), "ymax": fvm.Dirichlet((1.0, 0.0, 0.0))}
    solution = fvm.Flow(mesh, plates, 0.1).solve(fvm.SIMPLE(velocity=0.9, rtol=1e-8))
    assert solution.converged and abs(solution.velocity[:, 0] - mesh.centres[:, 1]).max() < 1e-6
    assert abs(solution.velocity[:, 1:]).max() < 1e-7 and solution.fluxes.size == mesh.n_faces
    left, right = (solution.fluxes[mesh.patch(name).faces] for name in ("xmin", "xmax"))
    assert np.array_equal(left, -right) and right.sum() == pytest.approx(0.5)
    again = fvm.Flow(mesh, plates, 0.1).solve(fvm.SIMPLE(velocity=0.9, rtol=1e-7), start=solution)
    assert again.converged and again.iterations < 4


def test_diffusivity_by_faces():
    mesh = fvm.box((6, 5), periodic="x")
    by_number = fvm.Poisson(mesh, WALLS, 3.0, 1.0).solve()
    assert np.allclose(fvm.Poisson(mesh, WALLS, np.full(mesh.n_faces, 3.0), 1.0).solve().p, by_number.p)


# --- files ---

@pytest.mark.parametrize("perturb", [0.0, 0.2])
def test_written_and_read_back(tmp_path, perturb):
    mesh = fvm.box((6, 5, 4), periodic="xz", perturb=perturb)
    fvm.write_polymesh(mesh, tmp_path)
    again = fvm.read_mesh(tmp_path)
    assert again.patches == mesh.patches and again.patch("zmin").neighbour == "zmax"
    assert np.allclose(solved(again).p, solved(mesh).p)
    solved(again).write(tmp_path / "p.vtu")


def boundary(tmp_path, change, **box):
    """The complaint on a mesh whose boundary file was changed."""
    mesh = fvm.box((4, 3, 2), periodic="x", **box)
    fvm.write_polymesh(mesh, tmp_path)
    path = tmp_path / "constant" / "polyMesh" / "boundary"
    path.write_text(change(path.read_text()))
    with pytest.raises(InputError) as caught:
        fvm.read_mesh(tmp_path)
    return str(caught.value)


@pytest.mark.parametrize("old, new, words", [
    ("neighbourPatch xmax;", "", ["patch 'xmin' is cyclic and names no neighbourPatch", "foamUpgradeCyclics"]),
    ("neighbourPatch xmax;", "neighbourPatch xmx;", ["patch 'xmin' is cyclic with 'xmx'", "no such patch", "xmax"]),
    ("neighbourPatch xmax;", "neighbourPatch xmin;", ["patch 'xmin' is cyclic with itself"]),
    ("neighbourPatch xmax;", "neighbourPatch ymin;", ["patch 'xmin' is cyclic with 'ymin'", "of kind 'patch'"]),
    ("neighbourPatch xmin;", "neighbourPatch zmin;", ["is cyclic with"]),
    ("type cyclic;", "type cyclicAMI;", ["patch 'xmin' is of kind 'cyclicAMI'", "matched faces"]),
    ("type cyclic;", "type cyclicACMI;", ["patch 'xmin' is of kind 'cyclicACMI'"]),
    ("type cyclic;", "type wedge;", ["patch 'xmin' is of kind 'wedge'", "symmetry"]),
    ("type cyclic;", "type cyclicSlip;", ["patch 'xmin' is of kind 'cyclicSlip'"]),
    ("type cyclic;", "type nonConformalCyclic;", ["patch 'xmin' is of kind 'nonConformalCyclic'"]),
    ("type cyclic;", "type nonConformalError;", ["patch 'xmin' is of kind 'nonConformalError'"]),
    ("type cyclic;", "type overset;", ["patch 'xmin' is of kind 'overset'"]),
])
def test_what_is_refused_by_name(tmp_path, old, new, words):
    def change(text):
        assert old in text
        return text.replace(old, new, 1)
    complaint = boundary(tmp_path, change)
    assert all(word in complaint for word in words) and str(tmp_path) in complaint, complaint


def test_faces_that_do_not_match(tmp_path):
    mesh = fvm.box((4, 3, 2), periodic="x")
    moved = mesh.points.copy()
    moved[np.isclose(moved[:, 0], 1.0) & np.isclose(moved[:, 1], 1 / 3)] += [0, 0.05, 0]
    with pytest.raises(InputError, match="face . of patch 'xmin' .* 'xmax'"):
        fvm.Mesh.from_faces(moved, mesh.face_ptr, mesh.face_points, mesh.owner, mesh.neighbour, mesh.patches)
    turned = fvm.box((4, 3, 2))                              # a quarter of a turn
    patches = [dataclasses.replace(p, kind="cyclic", neighbour={"xmin": "ymin", "ymin": "xmin"}[p.name])
               if p.name in ("xmin", "ymin") else p for p in fvm.box((3, 3, 2)).patches]
    turned = fvm.box((3, 3, 2))
    with pytest.raises(InputError, match="rotat"):
        fvm.Mesh.from_faces(turned.points, turned.face_ptr, turned.face_points, turned.owner, turned.neighbour, patches)
    uneven = [dataclasses.replace(p, kind="cyclic", neighbour={"xmin": "ymin", "ymin": "xmin"}[p.name])
              if p.name in ("xmin", "ymin") else p for p in fvm.box((4, 3, 2)).patches]
    mesh = fvm.box((4, 3, 2))
    with pytest.raises(InputError, match="patch 'xmin' has 6 faces and patch 'ymin' 8"):
        fvm.Mesh.from_faces(mesh.points, mesh.face_ptr, mesh.face_points, mesh.owner, mesh.neighbour, uneven)


def test_conditions_on_them_are_refused():
    with pytest.raises(InputError, match="patch 'xmin' is of kind 'cyclic' and takes no condition"):
        fvm.Poisson(fvm.box((4, 4), periodic="x"), {**WALLS, "xmin": fvm.Neumann()})


@pytest.mark.parametrize("periodic", ["", "z"])
def test_a_part_alone_is_not_a_mesh_with_walls(tmp_path, periodic):
    mesh = fvm.box((4, 4, 4), periodic=periodic)
    fvm.decompose(mesh, [0] * 32 + [1] * 32, tmp_path)
    part = fvm.read_mesh(tmp_path / "processor0")
    conditions = {p.name: fvm.Neumann() for p in part.patches if p.kind != "cyclic"}
    with pytest.raises(InputError, match="patch 'procBoundary0to1' is of kind 'processor'.*another part"):
        fvm.Poisson(part, conditions)


def test_bad_periodic_boxes():
    for periodic in ("w", "xx", 3, "z"):
        with pytest.raises(InputError, match="periodic"):
            fvm.box((4, 4), periodic=periodic)
