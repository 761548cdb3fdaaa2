"""Pictures of a sound field: the cut covers the section, colours follow the level, all shapes of cells."""
import numpy as np
import pytest

from swell.core.errors import InputError
from swell.pde import helmholtz as h
from swell.pde.helmholtz.field import decibels
from swell.report import sound

pytest.importorskip("skfem", reason="needs scikit-fem: pip install 'swell[pde]'")


def solved(mesh):
    ear = mesh.centres[0]
    room = h.Helmholtz(mesh, h.Medium(damping=0.05))
    return room.response(tuple(ear), ear, [150.0], method="direct", fields=[150.0]).fields[150.0]


def area(points, triangles):
    a, b, c = (points[triangles[:, k]] for k in range(3))
    return abs((b - a)[:, 0] * (c - a)[:, 1] - (b - a)[:, 1] * (c - a)[:, 0]).sum() / 2


@pytest.mark.parametrize("shape", ["hexahedron", "tetra"])
def test_the_cut_covers_the_section(shape):
    mesh = h.box((4, 3, 2), upper=(2.0, 1.0, 0.6))
    if shape == "tetra":
        mesh = h.Mesh(mesh.points, "tetra", sound._split(mesh, sound.TETRAHEDRA))
    height = mesh.points[:, 1] - 0.47
    points, values, triangles = sound._cut(mesh, height, (0, 2), lambda share, a, b: (1 - share) * mesh.points[a, 0]
                                           + share * mesh.points[b, 0])
    assert np.isclose(area(points, triangles), 1.2) and np.allclose(values, points[:, 0])
    facets = mesh.fem.facets[:, mesh.exterior].T
    sides = facets[(height[facets] > 0).any(axis=1) & (height[facets] < 0).any(axis=1)]
    outline = sound._outline(mesh.points, sides, height, (0, 2))
    assert np.isclose(np.linalg.norm(outline[:, 1] - outline[:, 0], axis=1).sum(), 5.2)


@pytest.mark.parametrize("mesh", [h.box((6, 4), upper=(2.0, 1.0)), h.box((5, 4, 3), upper=(2.0, 1.0, 0.6))], ids=["flat", "room"])
def test_a_field_draws_itself(mesh, tmp_path):
    field = solved(mesh)
    field.plot(tmp_path / "field.png")
    assert (tmp_path / "field.png").read_bytes()[:4] == b"\x89PNG"
    figure = sound.figure(field, decibels)
    top = figure.axes[-1].get_ylim()[1]                          # the colour bar
    assert top % 5 == 0 and 0 <= top - np.quantile(decibels(field.p), 0.999, method="higher") < 5
    with pytest.raises(InputError, match=r"the extension is \.jpg, expected \.png"):
        field.plot(tmp_path / "field.jpg")
