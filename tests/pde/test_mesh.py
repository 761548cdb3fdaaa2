"""Meshes: geometry that is known exactly, the divergence theorem, and what is said about a mesh that is none."""

import numpy as np
import pytest

from swell.core.errors import InputError
from swell.pde.fvm import Dirichlet, Mesh, Neumann, Patch, Poisson, box

CUBE = np.array([[x, y, z] for z in (0, 1) for y in (0, 1) for x in (0, 1)], float)
# One cube of points x + 2 y + 4 z, its faces anticlockwise from outside.
SIDES = [[0, 4, 6, 2], [1, 3, 7, 5], [0, 1, 5, 4], [2, 6, 7, 3], [0, 2, 3, 1], [4, 5, 7, 6]]


def mesh_of(faces, owner, neighbour=(), points=CUBE, patches=None):
    """A mesh of lists of points."""
    ptr = np.concatenate([[0], np.cumsum([len(face) for face in faces])])
    return Mesh.from_faces(points, ptr, np.concatenate(faces), np.array(owner), np.array(neighbour, int), patches)


def again(mesh, **changes):
    """The same mesh through the checks, with some of its parts changed."""
    parts = {name: getattr(mesh, name) for name in ("points", "face_ptr", "face_points", "owner", "neighbour", "patches")}
    return Mesh.from_faces(**{**parts, **changes})


def outward(mesh, values):
    """Σ S · values over the faces of each cell; values of shape (f, 3)."""
    flux = (mesh.face_areas * values).sum(axis=1)
    total = np.bincount(mesh.owner, flux, mesh.n_cells)
    return total - np.bincount(mesh.neighbour, flux[:mesh.n_internal], mesh.n_cells)


def turn(points):
    """A rotation that no axis is left alone by, and a shift."""
    a, b = 0.7, -1.1
    one = np.array([[np.cos(a), -np.sin(a), 0], [np.sin(a), np.cos(a), 0], [0, 0, 1]])
    two = np.array([[1, 0, 0], [0, np.cos(b), -np.sin(b)], [0, np.sin(b), np.cos(b)]])
    return points @ (one @ two).T + [3.0, -20.0, 0.5]


# --- boxes ---

def test_box_is_exact():
    mesh = box((4, 3, 2), lower=(-1, 0, 2), upper=(1, 3, 3))
    assert (mesh.n_cells, mesh.n_faces, mesh.n_internal, mesh.n_points) == (24, 98, 46, 60)
    np.testing.assert_allclose(mesh.volumes, 0.5 * 1 * 0.5, rtol=1e-14)
    x, y, z = np.meshgrid(-0.75 + 0.5 * np.arange(4), 0.5 + np.arange(3), 2.25 + 0.5 * np.arange(2), indexing="ij")
    expected = np.stack([x, y, z], axis=-1).transpose(2, 1, 0, 3).reshape(-1, 3)       # x fastest
    np.testing.assert_allclose(mesh.centres, expected, atol=1e-14)
    for name, normal in {"xmin": (-.5, 0, 0), "xmax": (.5, 0, 0), "ymin": (0, -.25, 0), "ymax": (0, .25, 0),
                         "zmin": (0, 0, -.5), "zmax": (0, 0, .5)}.items():
        np.testing.assert_allclose(mesh.face_areas[mesh.patch(name).faces], np.broadcast_to(normal, (
            mesh.patch(name).size, 3)), atol=1e-15)


def test_box_is_in_the_order_of_the_upper_triangle():
    mesh = box((3, 4, 2))
    assert (mesh.owner[:mesh.n_internal] < mesh.neighbour).all()
    pairs = list(zip(mesh.owner[:mesh.n_internal].tolist(), mesh.neighbour.tolist()))
    assert pairs == sorted(set(pairs))
    assert set(mesh.neighbour - mesh.owner[:mesh.n_internal]) == {1, 3, 12}


@pytest.mark.parametrize("cells", [(1, 1, 1), (5, 1, 1), (1, 4, 1), (1, 1, 3), (2, 1, 3)])
def test_thin_boxes(cells):
    mesh = again(box(cells))
    n = np.prod(cells)
    assert mesh.n_cells == n and mesh.n_internal == 3 * n - sum(n // m for m in cells)
    assert mesh.volumes.sum() == pytest.approx(1, rel=1e-14)


def test_two_dimensions_are_one_layer_between_empty_patches():
    mesh = box((4, 3))
    assert [patch.kind for patch in mesh.patches] == ["patch"] * 4 + ["empty"] * 2
    assert mesh.n_internal == 3 * 3 + 4 * 2
    assert {patch.kind for patch in box((4, 3, 1)).patches} == {"patch"}
    assert [patch.kind for patch in box((4,)).patches] == ["patch"] * 2 + ["empty"] * 4


def test_grading():
    mesh = box((5, 1, 1), grading=(16.0, 1, 1))
    np.testing.assert_allclose(mesh.volumes[1:] / mesh.volumes[:-1], 2.0, rtol=1e-12)
    assert mesh.volumes.sum() == pytest.approx(1, rel=1e-14)


@pytest.mark.parametrize("settings", [{"perturb": 0.3}, {"skew": (0.7, 0.2)}, {"grading": (9, 0.1, 3)},
                                      {"perturb": 0.2, "skew": (0.3, 0.4), "grading": (4, 4, 4)}], ids=str)
def test_divergence_theorem(settings):
    """Cells are closed, and ∫ div x dV = 3 V where faces are plane; warped faces still make the whole domain exact."""
    mesh = again(box((5, 4, 3), upper=(2, 1, 1), **settings))
    np.testing.assert_allclose(outward(mesh, np.tile([1.0, -2.0, 0.5], (mesh.n_faces, 1))), 0, atol=1e-15)
    np.testing.assert_allclose(outward(mesh, mesh.face_centres), 3 * mesh.volumes, rtol=1e-12)
    assert mesh.volumes.sum() == pytest.approx(2, rel=1e-13)
    if "perturb" not in settings:               # plane faces: ∫ x dV = V centre, as ∮ x² n_x / 2 over triangles would be
        total = (mesh.volumes[:, None] * mesh.centres).sum(axis=0)
        shear = np.array(settings.get("skew", (0, 0)))
        np.testing.assert_allclose(total / 2, [1 + shear @ [0.5, 0.5], 0.5, 0.5], rtol=1e-12)


def test_perturbed_boxes_keep_their_boundary_and_are_repeatable():
    mesh = box((6, 5, 4), perturb=0.4)
    assert mesh.volumes.std() > 0.05 * mesh.volumes.mean()
    for axis, names in enumerate((("xmin", "xmax"), ("ymin", "ymax"), ("zmin", "zmax"))):
        for value, name in enumerate(names):
            np.testing.assert_array_equal(mesh.face_centres[mesh.patch(name).faces][:, axis].round(14), value)
    np.testing.assert_array_equal(mesh.points, box((6, 5, 4), perturb=0.4).points)
    assert not np.array_equal(mesh.points, box((6, 5, 4), perturb=0.4, seed=1).points)
    flat = box((6, 5), perturb=0.4).points.reshape(2, -1, 3)
    np.testing.assert_array_equal(flat[0][:, :2], flat[1][:, :2])                       # still prisms


def test_a_million_cells():
    assert box((100, 100, 100)).n_cells == 1_000_000


@pytest.mark.parametrize("arguments, words", [
    ({"cells": (3, 0)}, "positive integers"), ({"cells": 5}, "positive integers"), ({"cells": (2, 2, 2, 2)}, "one to three"),
    ({"cells": (2.5, 2)}, "positive integers"), ({"cells": (2000, 2000, 2000)}, "32-bit"),
    ({"cells": (2, 2), "upper": (0, 1, 1)}, "along x the box has no extent"),
    ({"cells": (2, 2), "upper": (2, 1)}, r"upper = \(2, 1\) came, expected a tuple of 3 numbers, also for boxes"),
    ({"cells": (2, 2), "grading": 2.0}, "grading = 2.0 came, expected a tuple of 1 or more numbers"),
    ({"cells": (2, 2), "skew": (0.3,)}, "tuple of 2 numbers"), ({"cells": (2, 2), "skew": 0.3}, "tuple of 2 numbers"),
    ({"cells": (2, 2), "grading": (-1, 1)}, "positive ratios"), ({"cells": (2, 2), "perturb": 0.7}, "below 0.5"),
])
def test_bad_boxes(arguments, words):
    with pytest.raises(InputError, match=words):
        box(**arguments)


# --- polyhedra ---

def test_a_cube_and_its_rotation():
    for points in (CUBE, turn(CUBE)):
        mesh = mesh_of(SIDES, [0] * 6, points=points)
        assert mesh.volumes[0] == pytest.approx(1, rel=1e-12)
        np.testing.assert_allclose(mesh.centres[0], points.mean(axis=0), rtol=1e-13)
        np.testing.assert_allclose(np.linalg.norm(mesh.face_areas, axis=1), 1, rtol=1e-12)


def test_a_tetrahedron_and_a_pyramid():
    points = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    tetra = mesh_of([[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]], [0] * 4, points=points)
    assert tetra.volumes[0] == pytest.approx(1 / 6, rel=1e-14)
    np.testing.assert_allclose(tetra.centres[0], 0.25, rtol=1e-14)
    points = np.vstack([CUBE[[0, 1, 3, 2]], [[0.5, 0.5, 1]]])
    pyramid = mesh_of([[0, 3, 2, 1], [0, 1, 4], [1, 2, 4], [2, 3, 4], [3, 0, 4]], [0] * 5, points=points)
    assert pyramid.volumes[0] == pytest.approx(1 / 3, rel=1e-14)
    np.testing.assert_allclose(pyramid.centres[0], [0.5, 0.5, 0.25], rtol=1e-13)


def test_a_prism_over_a_concave_polygon():
    """An L of three unit squares: its centroid is not where its points' mean is."""
    outline = np.array([[0, 0], [2, 0], [2, 1], [1, 1], [1, 2], [0, 2]], float)
    points = turn(np.vstack([np.column_stack([outline, np.full(6, z)]) for z in (0.0, 2.0)]))
    sides = [[k, (k + 1) % 6, 6 + (k + 1) % 6, 6 + k] for k in range(6)]
    mesh = mesh_of([*sides, [5, 4, 3, 2, 1, 0], [6, 7, 8, 9, 10, 11]], [0] * 8, points=points)
    assert mesh.volumes[0] == pytest.approx(6, rel=1e-12)
    np.testing.assert_allclose(mesh.centres[0], turn(np.array([[5 / 6, 5 / 6, 1.0]]))[0], rtol=1e-12)
    np.testing.assert_allclose(mesh.face_centres[7], turn(np.array([[5 / 6, 5 / 6, 2.0]]))[0], rtol=1e-12)


def two_cubes(order=(0, 1)):
    """Two unit cubes along x that share one face, which comes first."""
    points = np.array([[x, y, z] for z in (0, 1) for y in (0, 1) for x in (0, 1, 2)], float)
    left = [[3 * (p // 2) + p % 2 for p in side] for side in SIDES]
    right = [[p + 1 for p in side] for side in left]
    faces = [left[1], left[0], *left[2:], *right[1:]]
    a, b = order
    return points, faces, [a] * 6 + [b] * 5, [b]


def test_faces_are_turned_where_the_owner_is_the_higher_cell():
    for order in ((0, 1), (1, 0)):
        points, faces, owner, neighbour = two_cubes(order)
        mesh = mesh_of(faces, owner, neighbour, points)
        assert mesh.owner[0] == 0 and mesh.neighbour[0] == 1
        np.testing.assert_allclose(mesh.volumes, 1, rtol=1e-13)
        np.testing.assert_allclose(mesh.face_areas[0], [1 if order == (0, 1) else -1, 0, 0], atol=1e-14)


def test_a_wall_without_thickness_is_no_face_with_two_owners():
    points, faces, owner, _ = two_cubes()
    left = faces[0]
    mesh = mesh_of([left, *faces[1:], left[::-1]], [*owner, 1], [], points)
    assert mesh.n_internal == 0 and mesh.n_cells == 2


def test_points_that_no_face_uses_are_kept():
    mesh = mesh_of(SIDES, [0] * 6, points=np.vstack([CUBE, [[9, 9, 9]]]))
    assert mesh.n_points == 9 and mesh.volumes[0] == pytest.approx(1)


def test_facts():
    facts = box((4, 4, 4), upper=(1, 1, 0.1), skew=(1, 0)).facts()
    assert facts["cells"] == 64 and facts["internal_faces"] == 144 and facts["volume"] == pytest.approx(0.1)
    assert facts["non_orthogonality"]["max"] == pytest.approx(45) and facts["aspect_ratio"]["max"] > 5
    assert box((4, 4, 4)).facts()["non_orthogonality"] == {"max": 0, "mean": 0}
    assert box((4, 4, 4)).facts()["aspect_ratio"] == {"max": pytest.approx(1), "mean": pytest.approx(1)}
    assert box((20, 10), upper=(1, 1, 5)).facts()["aspect_ratio"]["max"] == pytest.approx(2)    # in the plane


def two_boxes():
    """Two boxes beside each other with points of their own: one mesh of two parts."""
    one = box((3, 2, 2))
    split = np.split(one.face_points, one.face_ptr[1:-1])
    inner, outer = split[:one.n_internal], split[one.n_internal:]
    own = one.owner[:one.n_internal], one.owner[one.n_internal:]
    faces = [*inner, *(f + one.n_points for f in inner), *outer, *(f + one.n_points for f in outer)]
    patches = [Patch("left", 2 * len(inner), len(outer)), Patch("right", 2 * len(inner) + len(outer), len(outer))]
    owner = np.concatenate([own[0], own[0] + 12, own[1], own[1] + 12])
    return mesh_of(faces, owner, np.concatenate([one.neighbour, one.neighbour + 12]),
                   np.vstack([one.points, one.points + [1, 0, 0]]), patches)


def test_parts():
    assert set(box((3, 2, 2)).parts) == {0} and box((3, 2, 2)).facts()["parts"] == 1
    assert two_boxes().parts.tolist() == [0] * 12 + [1] * 12 and two_boxes().facts()["parts"] == 2


def test_every_part_needs_a_value():
    mesh = two_boxes()
    for left, right in ((Dirichlet(1), Neumann()), (Neumann(), Neumann())):
        with pytest.raises(InputError, match=r"2 parts .* no patch fixes a value in the part of cell (0|12) \(12 cells"):
            Poisson(mesh, {"left": left, "right": right}).solve()
    p = Poisson(mesh, {"left": Dirichlet(1), "right": Dirichlet(2)}).solve(rtol=1e-12).p
    np.testing.assert_allclose(p, [1] * 12 + [2] * 12, rtol=1e-10)


def test_patches_by_name():
    mesh = box((2, 2, 2))
    assert mesh.patch("ymax").size == 4
    with pytest.raises(InputError, match="no patch 'ymac': did you mean 'ymax'"):
        mesh.patch("ymac")


# --- what is no mesh ---

def fails(words, **changes):
    with pytest.raises(InputError, match=words) as caught:
        again(box((3, 2, 2)), **changes)
    return str(caught.value)


def test_indices():
    mesh = box((3, 2, 2))
    bad = mesh.face_points.copy()
    bad[9] = 99
    fails(r"face 2 has the point 99, but points are numbered 0 to 35", face_points=bad)
    bad = mesh.owner.copy()
    bad[5] = -1
    fails("face 5 has the owner -1", owner=bad)
    bad = mesh.owner.copy()
    bad[bad == 4] = 40
    fails("cell 4 .*has no face", owner=bad, neighbour=np.where(mesh.neighbour == 4, 40, mesh.neighbour))
    bad = mesh.neighbour.copy()
    bad[3] = mesh.owner[3]
    fails("face 3 has cell .* on both sides", neighbour=bad)
    fails("owner has 51 entries, but there are 52 faces", owner=mesh.owner[:-1])
    fails("neighbour has 60 entries", neighbour=np.arange(60))
    fails("face_ptr must begin with 0", face_ptr=mesh.face_ptr[:-1])
    fails("expected a vector of integers", owner=mesh.owner.astype(float))
    bad = mesh.face_ptr.copy()
    bad[4] = bad[3] + 1
    fails("face 3 has 1 points, expected 3 or more", face_ptr=bad)


def test_points():
    points = box((3, 2, 2)).points.copy()
    fails(r"points has shape \(36,\)", points=points[:, 0])
    points[7, 1] = np.nan
    fails("point 7 has the coordinates", points=points)


def test_negative_volume_names_the_cell():
    """A point pulled through the opposite side turns the cell at the corner inside out."""
    points = box((3, 2, 2)).points.copy()
    points[0] = [2.0, 2.0, 2.0]
    assert "cell 0 has the negative volume" in fails("negative volume", points=points)


def test_zero_volume():
    points = CUBE.copy()
    points[:, 2] = 0
    with pytest.raises(InputError, match="face .*no area|zero volume"):
        mesh_of(SIDES, [0] * 6, points=points)
    points = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]], float)
    with pytest.raises(InputError, match=r"cell 0 has the zero volume .* flat"):
        mesh_of([[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]], [0] * 4, points=points)


def test_inside_out():
    with pytest.raises(InputError, match="cell 0 has the negative volume -1 .*inside out"):
        mesh_of([side[::-1] for side in SIDES], [0] * 6)


def test_open_cells():
    with pytest.raises(InputError, match=r"cell 0 is open .*near .*add up to 1 of a surface of 5"):
        mesh_of(SIDES[:5], [0] * 5)
    with pytest.raises(InputError, match="cell 0 is open"):        # one face with its points in the wrong order
        mesh_of([SIDES[0][::-1], *SIDES[1:]], [0] * 6)
    mesh = box((3, 2, 2))
    owner = mesh.owner.copy()
    owner[-1] = 0
    fails(r"cell 0 \(the first of 2\) is open", owner=owner)


def test_a_face_with_two_owners():
    points, faces, owner, _ = two_cubes()
    with pytest.raises(InputError, match=r"face 11 of cell 1 has the same points as face 0 of cell 0 .*two owners"):
        mesh_of([*faces, faces[0][::-1]], [*owner, 1], [1], points)
    with pytest.raises(InputError, match="face 6 of cell 0 has the same points as face 5 of cell 0"):
        mesh_of([*SIDES, SIDES[5]], [0] * 7)


def test_faces_without_area():
    points = np.vstack([CUBE, [[0.5, 0, 0]]])
    faces = [*SIDES[:4], [0, 2, 3, 1, 8], SIDES[5], [0, 8, 1]]
    with pytest.raises(InputError, match=r"face 6 of cell 0 has no area \(near .*, patch 'boundary'\)"):
        mesh_of(faces, [0] * 7, points=points)


@pytest.mark.parametrize("patches, words", [
    ([("a", 0, 3), ("b", 4, 2)], "patch 'b' has 2 faces from 4 on, but no patch has face 3"),
    ([("a", 0, 4), ("b", 3, 3)], "patch 'b' .* overlaps"),
    ([("a", 0, 5)], "no patch has the boundary faces 5 to 5"),
    ([("a", 0, 7)], "patch 'a' has 7 faces from 0 on, but the boundary faces are 0 to 5"),
    ([("a", 0, 3), ("a", 3, 3)], "two patches have the name 'a'"),
])
def test_patches_must_cover_the_boundary(patches, words):
    with pytest.raises(InputError, match=words):
        mesh_of(SIDES, [0] * 6, patches=[Patch(*patch) for patch in patches])


def test_empty_patches_may_stand_anywhere():
    mesh = mesh_of(SIDES, [0] * 6, patches=[Patch("b", 2, 4), Patch("none", 6, 0), Patch("a", 0, 2)])
    assert [patch.name for patch in mesh.patches] == ["a", "b", "none"]


def test_units_do_not_matter():
    """A mesh in nanometres, one far from the origin and very flat cells are meshes all the same."""
    mesh = box((3, 3, 3), perturb=0.2)
    again(mesh, points=mesh.points * 1e-9)
    again(mesh, points=mesh.points * 1e9)
    again(mesh, points=mesh.points + 1e6)
    again(mesh, points=mesh.points * [1, 1, 1e-6])
