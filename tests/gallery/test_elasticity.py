"""Elastic bodies: meshes fill their box, rigid motions cost nothing, moduli scale, and nonsense is one clear error."""
from __future__ import annotations

import numpy as np
import pytest

from swell import InputError, gallery, rigid_body_modes


@pytest.mark.parametrize("shape, size", [((3, 2), None), ((4, 1, 2), (2.0, 1.0, 0.5))], ids=str)
def test_a_box_mesh_fills_the_box(shape, size):
    points, cells = gallery.box_mesh(shape, size)
    edges = points[cells][:, 1:] - points[cells][:, :1]
    factorial = 2 if len(shape) == 2 else 6
    assert len(points) == np.prod(np.array(shape) + 1) and len(cells) == factorial * np.prod(shape)
    assert abs(np.linalg.det(edges)).sum() / factorial == pytest.approx(np.prod(size or 1))
    faces = np.sort(np.concatenate([np.delete(cells, k, axis=1) for k in range(cells.shape[1])]), axis=1)
    assert np.unique(faces, axis=0, return_counts=True)[1].max() == 2          # cells meet face to face


def test_the_plate_is_that_of_elasticity2d():
    points, cells = gallery.box_mesh((7, 7))
    A, nodes = gallery.elastic_body(points, cells, points[:, 0] == 0, young=2.0, poisson=0.4)
    assert abs(A - gallery.elasticity2d(7, 2.0, 0.4)).max() < 1e-13 and np.array_equal(nodes, points[8:])


@pytest.mark.parametrize("shape", [(5, 3), (3, 2, 2)], ids=str)
def test_rigid_motions_have_no_energy_and_others_have(shape):
    points, cells = gallery.box_mesh(shape)
    young = 10.0 ** np.random.default_rng(0).integers(-2, 3, len(cells))
    A, nodes = gallery.elastic_body(points, cells, np.zeros(len(points), bool), young, 0.45)
    modes = rigid_body_modes(nodes)
    values = np.linalg.eigvalsh(A.toarray())
    assert abs(A - A.T).nnz == 0 and np.array_equal(nodes, points)
    assert abs(A @ modes).max() < 1e-13 * abs(A).max()
    assert (values[:modes.shape[1]] < 1e-12 * values[-1]).all() and values[modes.shape[1]] > 1e-9 * values[-1]


def test_a_stretched_bar_has_the_energy_of_theory():
    """Uniaxial strain in one axis: energy density E (1 − ν) / ((1 + ν)(1 − 2ν)) / 2 per unit strain squared."""
    points, cells = gallery.box_mesh((2, 2, 2), (2.0, 1.0, 3.0))
    A, _ = gallery.elastic_body(points, cells, np.zeros(27, bool), 5.0, 0.3)
    u = np.zeros((27, 3))
    u[:, 1] = points[:, 1]
    assert u.ravel() @ A @ u.ravel() == pytest.approx(6 * 5.0 * 0.7 / (1.3 * 0.4))


def test_a_modulus_for_each_cell_weights_its_cell():
    points, cells = gallery.box_mesh((2, 1))
    free = np.zeros(6, bool)
    whole = gallery.elastic_body(points, cells, free)[0]
    parts = [gallery.elastic_body(points, cells, free, np.where(np.arange(4) == k, 2.0, 1.0))[0] - whole for k in range(4)]
    assert abs(sum(parts) - whole).max() < 1e-13


POINTS, CELLS = gallery.box_mesh((1, 1, 1))
HELD = POINTS[:, 0] == 0
BAD = {
    "points of one axis": ((POINTS[:, :1], CELLS, HELD), "expected"),
    "triangles in space": ((POINTS, CELLS[:, :3], HELD), r"cells of shape \(6, 3\)"),
    "a point that is not there": ((POINTS, CELLS + 1, HELD), "from 0 to 7"),
    "cells of fractions": ((POINTS, CELLS + 0.5, HELD), "whole numbers"),
    "numbers for clamped": ((POINTS, CELLS, np.flatnonzero(HELD)), "a bool for each of the 8 points"),
    "moduli of another length": ((POINTS, CELLS, HELD, np.ones(5)), "one for each of the 6 cells"),
    "a negative modulus": ((POINTS, CELLS, HELD, -1.0), "positive modulus"),
    "an incompressible material": ((POINTS, CELLS, HELD, 1.0, 0.5), "-1 < poisson < 0.5"),
    "a flat cell": ((POINTS * [1, 1, 0], CELLS, HELD), "has no volume"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_bodies_are_one_clear_error(what):
    given, message = BAD[what]
    with pytest.raises(InputError, match=message):
        gallery.elastic_body(*given)


def test_bad_boxes():
    for shape, size in (((2,), None), ((2, 2), (1.0,)), ((2, 2), (1.0, -1.0)), ((2, 0), None)):
        with pytest.raises(InputError):
            gallery.box_mesh(shape, size)


@pytest.mark.parametrize("parts, words", [
    (0, "parts = 0"), (True, "parts = True"), (10**6, "number of cells"), (np.zeros(3, int), "each of the 8 cells"),
    (np.full(8, -1), "from 0"), (np.zeros(8), "type float64"), ("many", "parts = 'many'"),
])
def test_bad_parts_of_a_body(parts, words):
    points, cells = gallery.box_mesh((2, 2))
    with pytest.raises(InputError, match=words):
        gallery.elastic_subdomains(points, cells, points[:, 0] == 0, parts)


def test_parts_of_a_body_are_connected_by_faces():
    """Two triangles of one part that share a point only become two subdomains; one that is clamped is left out."""
    points, cells = gallery.box_mesh((2, 2))
    owner = np.zeros(8, int)
    centres = points[cells].mean(axis=1)
    owner[(centres[:, 0] > 0.5) == (centres[:, 1] > 0.5)] = 1
    parts, nodes = gallery.elastic_subdomains(points, cells, points[:, 0] == 0, owner)
    assert len(parts) == 4 and nodes.shape == (6, 2)
    A, _ = gallery.elastic_body(points, cells, points[:, 0] == 0)
    total = np.zeros((12, 12))
    for matrix, rows in parts:
        total[np.ix_(rows, rows)] += matrix.toarray()
    assert abs(total - A).max() < 1e-14
    assert len(gallery.elastic_subdomains(points, cells, points[:, 0] <= 0.5, owner)[0]) == 2
