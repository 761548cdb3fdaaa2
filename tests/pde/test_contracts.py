"""Kernels of finite volumes, called directly: ends of arrays, empty meshes, damaged input. ``make sanitize`` runs them
in a library that checks every access."""
from __future__ import annotations

import numpy as np
import pytest
from tests.support.fields import metrics_of

from swell.core.library import native_kernels
from swell.pde import fvm


def kernels(stem):
    return native_kernels("swell.pde.fvm", stem)


@pytest.mark.parametrize("numbers, faces, points, fits", [
    ([3, 1, 2, 3, 4, 5, 6, 7, 8], 2, 7, True), ([], 0, 0, True), ([0], 1, 0, True),
    ([3, 1, 2], 1, 3, False),                    # too few numbers
    ([3, 1, 2, 3], 1, 2, False),                 # no room for the points
    ([3, 1, 2, 3], 2, 3, False),                 # a face is missing
    ([3, 1, 2, 3, 0], 1, 3, False),              # a number is left
    ([-1, 1, 2], 1, 3, False), ([2**63 - 1, 1, 2], 1, 2, False)])
def test_faces_of_a_damaged_file(numbers, faces, points, fits):
    ptr, out = np.zeros(faces + 1, np.int64), np.zeros(points, np.int64)
    assert kernels("foam").split_faces(np.array(numbers, np.int64), ptr, out) == fits


@pytest.mark.parametrize("seed", range(3))
def test_mates(seed):
    rng = np.random.default_rng(seed)
    faces = np.unique(np.sort([rng.choice(12, 4, replace=False) for _ in range(40)], axis=1), axis=0)
    both = rng.permutation(np.concatenate([faces, faces[::2]])).astype(np.int64)
    mates = np.empty(len(both), np.int64)
    assert kernels("elements").match(both, 12, mates) == -1
    equal = (both[:, None] == both).all(2) & ~np.eye(len(both), dtype=bool)
    assert np.array_equal(mates, np.where(equal.any(1), equal.argmax(1), -1))
    three = np.concatenate([both, faces[:1]])
    assert kernels("elements").match(three, 12, np.empty(len(three), np.int64)) >= 0


@pytest.mark.parametrize("cells", [(1, 1, 1), (3, 2, 2), (5, 4)])
def test_geometry_and_lists_of_faces(cells):
    mesh = fvm.box(cells, perturb=0.2)
    closed = mesh.geometry
    assert np.allclose(closed.closure, 0) and closed.volumes.sum() == pytest.approx(1)
    ptr, faces = np.zeros(mesh.n_cells + 1, np.int64), np.empty(mesh.n_faces + mesh.n_internal, np.int32)
    kernels("polyhedra").faces_of_cells(mesh.owner, mesh.neighbour, ptr, faces)
    of = np.repeat(np.arange(mesh.n_cells), np.diff(ptr))
    assert sorted(zip(of, faces)) == sorted([*enumerate_cells(mesh.owner), *enumerate_cells(mesh.neighbour)])


def enumerate_cells(cells):
    return [(cell, face) for face, cell in enumerate(cells)]


@pytest.mark.parametrize("cells", [(1, 1, 1), (9, 8, 7), (33, 32, 31)])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_sums_over_the_faces_of_cells(cells, index):
    mesh = fvm.box(cells)
    metrics, rng = metrics_of(mesh), np.random.default_rng(1)
    pattern, inside = metrics.pattern, metrics.n_internal
    flux, out = rng.standard_normal(metrics.owner.size), np.empty(metrics.n)
    kernels("collecting").collect(pattern.ptr.astype(index), pattern.faces.astype(index), flux, -1.0, out)
    wanted = np.bincount(metrics.owner, flux, metrics.n) - np.bincount(metrics.neighbour, flux[:inside], metrics.n)
    assert np.allclose(out, wanted, atol=1e-12)
    counted, record = np.arange(metrics.n) % 3 > 0, np.zeros(6)
    values = rng.standard_normal((4, metrics.n))
    kernels("flow").counted_sums(values, counted.astype(np.uint8), record)
    assert np.allclose(record[:4], values[:, counted].sum(1)) and not record[4:].any()
