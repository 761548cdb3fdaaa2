"""Helmholtz: what is said about meshes, names, conditions, ears and bands that cannot be; meshes from files and gmsh."""
import numpy as np
import pytest

pytest.importorskip("skfem", reason="needs scikit-fem: pip install 'swell[pde]'")

from swell.core.errors import InputError, MissingDependency      # noqa: E402
from swell.pde import helmholtz as h                             # noqa: E402
from swell.pde.helmholtz.locating import locate, nearest         # noqa: E402

CUBE = h.box((3, 3, 3))


@pytest.fixture
def gmsh():
    return pytest.importorskip("gmsh", reason="needs gmsh: pip install 'swell[pde]'", exc_type=(ImportError, OSError))


def respond(**changes):
    given = {"mesh": CUBE, "medium": h.Medium(damping=0.1), "boundary": None, "degree": 1, "source": "xmin",
             "ear": (0.5, 0.5, 0.5), "frequencies": [100.0], "method": "direct", **changes}
    problem = h.Helmholtz(given.pop("mesh"), given.pop("medium"), given.pop("boundary"), degree=given.pop("degree"))
    source = given.pop("source")
    return problem.response(source, given.pop("ear"), given.pop("frequencies"), **given)


@pytest.mark.parametrize("changes, message", [
    ({"mesh": "cube.msh"}, "mesh is of type str: expected a Mesh, such as read_mesh"),
    ({"degree": 3}, "degree=3: expected 1 or 2"), ({"degree": "1"}, "degree='1': expected 1 or 2"),
    ({"medium": 343.0}, "medium is of type float: expected a Medium"),
    ({"medium": {"bx": h.Medium()}}, "no region 'bx': did you mean 'box'"),
    ({"medium": {}}, "no medium for region box"),
    ({"medium": {"box": 343}}, "the medium of region 'box' is 343"),
    ({"mesh": h.Mesh(CUBE.points, "hexahedron", CUBE.cells), "medium": {"air": h.Medium()}},
     "The mesh names no regions: name them"),
    ({"boundary": {"xmn": h.Rigid()}}, "no boundary 'xmn': did you mean 'xmin'.*xmin, xmax, ymin"),
    ({"boundary": {"xmin": 0.0}}, "the condition of boundary 'xmin' is 0.0: expected Rigid"),
    ({"boundary": [1]}, "boundary is of type list"),
    ({"boundary": {"xmin": h.Absorbing()}}, "'xmin' is the source and has the condition Absorbing"),
    ({"boundary": {"xmax": h.Velocity(lambda x: [1, 2])}}, "returned shape|its function returned"),
    ({"boundary": {"xmax": h.Velocity("fast")}}, "boundary 'xmax': its value is 'fast'"),
    ({"boundary": {"xmax": h.Pressure(np.nan)}}, "boundary 'xmax': its value contains NaN or Inf"),
    ({"source": "roof"}, "no boundary 'roof'"),
    ({"source": None}, "nothing makes sound: name a source"),
    ({"source": {"xmin": h.Velocity(0)}}, "nothing makes sound: name a source"),
    ({"source": h.Monopole((0.5, 0.5, 0.5), 0)}, "nothing makes sound: name a source"),
    ({"source": 3.0}, "source=3.0: expected the name of a boundary, a point"),
    ({"source": (5.0, 0.5, 0.5)}, r"source = \(5, 0.5, 0.5\) lies outside.*\(1, 0.5, 0.5\), 4 m away"),
    ({"source": {"xmin": 2.0}}, "source {'xmin': 2.0}: expected a Velocity"),
    ({"ear": (0.5, 0.5, 1.25)}, r"ear = \(0.5, 0.5, 1.25\) lies outside.*nearest point.*\(0.5, 0.5, 1\), 0.25 m away"),
    ({"ear": (0.5, 0.5)}, r"ear = \(0.5, 0.5\): expected 3 finite coordinates"),
    ({"ear": (0.5, np.nan, 0.5)}, "expected 3 finite coordinates"),
    ({"ear": "left"}, "ear='left': expected a point"),
    ({"ear": []}, "ear has shape"),
    ({"frequencies": [-5.0]}, "a frequency of -5 Hz: expected finite numbers, not negative"),
    ({"frequencies": [0.0, 10.0]}, "frequency 0: without a wall of given pressure K is singular"),
    ({"frequencies": []}, "one or more numbers"),
    ({"frequencies": "20:30"}, "expected numbers in Hz"),
    ({"fields": [101.0]}, "fields: 101 Hz is not among the frequencies"),
    ({"dtype": "float64"}, "dtype='float64': expected one of complex64, complex128"),
    ({"remember": -1}, "remember=-1"),
    ({"method": "bicgstob"}, "did you mean 'bicgstab'"),
    ({"device": "gpu"}, "device='gpu'"),
    ({"rtol": -1.0}, "rtol=-1.0"),
])
def test_said_clearly(changes, message):
    with pytest.raises(InputError, match=message):
        respond(**changes)


@pytest.mark.parametrize("make, message", [
    (lambda: h.Medium(speed=0), "speed=0"), (lambda: h.Medium(density=-1), "density=-1"),
    (lambda: h.Medium(damping=-0.1), "negative loss factor"), (lambda: h.Medium(speed="fast"), "speed='fast'"),
    (lambda: h.Impedance(0), "holds the pressure at 0: use Pressure"), (lambda: h.Impedance(-5), "Re Z ≥ 0"),
    (lambda: h.Impedance("soft"), "expected a complex number"),
    (lambda: h.Impedance(complex(np.inf, np.inf)), r"expected a finite number.*Rigid\(\)"),
    (lambda: h.Monopole((0, 0, 0), "loud"), "strength='loud'"),
    (lambda: h.Monopole((0, 0, 0), np.inf), "finite number, in m³/s"),
    (lambda: h.band("20:600"), "expected numbers, such as"), (lambda: h.band("a:b:c"), "expected numbers"),
    (lambda: h.band("600:20:5"), "an end not below the beginning"), (lambda: h.band("20:600:0"), "step above 0"),
    (lambda: h.band("20:600:-5"), "step above 0"), (lambda: h.band("-20:600:5"), "frequency of -20 Hz"),
    (lambda: h.band("1:1e9:1e-3"), "more than 100000"), (lambda: h.band("nan:1:1"), "finite"),
    (lambda: h.band(""), "expected numbers"), (lambda: h.band("1,x"), "expected numbers"),
    (lambda: h.box((3,)), "two or three positive"), (lambda: h.box((3, 0)), "two or three positive"),
    (lambda: h.box((3, 3), shape="tetra"), "expected one of quad, triangle"),
    (lambda: h.box((3, 3), 1.0, 1.0), "expected upper above lower"), (lambda: h.box(3), "two or three positive"),
    (lambda: h.box((3, 3), upper=(1, 2, 3)), r"upper=\(1, 2, 3\): expected a number or 2 of them"),
    (lambda: h.box((3, 3), lower="left"), "lower='left': expected a number or 2 of them"),
    (lambda: h.Mesh(CUBE.points, "hexahedron", CUBE.cells, {"a": np.ones(len(CUBE.cells), bool)}),
     r"region 'a' has dtype bool: expected integers; np\.flatnonzero"),
    (lambda: h.Mesh(CUBE.points, "hexahedron", CUBE.cells + 0.5), "cells has dtype float64: expected integers"),
    (lambda: h.car_cabin(-1), "size=-1"), (lambda: h.car_cabin(0.1, "wedge"), "kind='wedge'"),
    (lambda: h.car_cabin(0.9), "more than half the cabin's least side"), (lambda: h.car_cabin(1e-4), "take larger ones"),
    (lambda: h.car_cabin(firewall=1.5), "firewall=1.5"),
    (lambda: h.car_cabin(seats="no"), "seats='no': expected True"),
    (lambda: h.cylinder(0.5), "more than the radius"),
    (lambda: h.cylinder(0.05, "wedge"), "kind='wedge'"), (lambda: h.paper_mesh("Audi3D-9"), "did you mean 'Audi3D-"),
    (lambda: h.paper_mesh("x"), "There are: Audi3D-1"),
])
def test_settings_said_clearly(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_a_system_is_of_one_frequency():
    with pytest.raises(InputError, match="expected one frequency in Hz, and 2 came"):
        h.Helmholtz(CUBE).system([100.0, 200.0], "xmin")


def test_bands():
    assert h.band("20:600:5").size == 117 and h.band("20:600:5")[-1] == 600
    assert h.band("0.1:0.3:0.1").tolist() == pytest.approx([0.1, 0.2, 0.3]) and h.band("100:109:5").tolist() == [100, 105]
    assert h.band("300,100").tolist() == [300, 100] and h.band("440").tolist() == [440]


def test_a_face_of_two_conditions():
    groups = {"left": CUBE.fem.facets[:, CUBE.boundaries["xmin"]].T, "corner": CUBE.fem.facets[:, np.concatenate(
        [CUBE.boundaries["xmin"][:2], CUBE.boundaries["ymin"][:2]])].T}
    mesh = h.Mesh(CUBE.points, "hexahedron", CUBE.cells, groups=groups)
    with pytest.raises(InputError, match="'left' and 'corner' share 2 faces .* have different conditions"):
        h.Helmholtz(mesh, boundary={"left": h.Rigid(), "corner": h.Absorbing()})
    with pytest.raises(InputError, match="'left' is the source and shares faces with 'corner'"):
        h.Helmholtz(mesh, boundary={"corner": h.Absorbing()}).response("left", (0.5, 0.5, 0.5), [100])
    inner = h.Mesh(CUBE.points, "hexahedron", CUBE.cells, groups={"sheet": CUBE.fem.facets[:, ~CUBE.exterior].T[:3]})
    with pytest.raises(InputError, match="boundary 'sheet' has 3 faces inside the mesh"):
        h.Helmholtz(inner, boundary={"sheet": h.Rigid()})


def test_a_face_in_two_boundaries_counts_once():
    """Where both say the same of it; two velocities of one face are as much a contradiction as two conditions."""
    left = CUBE.boundaries["xmin"]
    mesh = h.Mesh(CUBE.points, "hexahedron", CUBE.cells, groups={
        "left": CUBE.fem.facets[:, left].T, "part": CUBE.fem.facets[:, left[:4]].T})
    lined, b = {}, {}
    for names in (["left"], ["left", "part"]):
        lined[len(names)] = h.Helmholtz(mesh, boundary={name: h.Impedance(400.0) for name in names}).matrices[2]
        b[len(names)] = h.Helmholtz(mesh, boundary={name: h.Velocity(2e-3) for name in names}).system(100.0)[1]
    assert abs(lined[1] - lined[2]).max() == 0 and lined[1].sum() == pytest.approx(1 / 400)
    assert np.array_equal(b[1], b[2])
    bare = h.Helmholtz(mesh)
    assert np.array_equal(bare.system(100.0, "left")[1], bare.system(100.0, ["part", "left", "left"])[1])
    held = h.Helmholtz(mesh, boundary={"left": h.Velocity(2e-3)})
    for problem, source in ((bare, {"left": h.Velocity(1e-3), "part": h.Velocity(2e-3)}), (held, "part")):
        with pytest.raises(InputError, match="'(left|part)' and '(left|part)' share 4 faces .* different velocities"):
            problem.system(100.0, source)


def test_regions_that_overlap():
    mesh = h.box((3, 3))
    mesh.regions = {"all": np.arange(9), "some": np.arange(3)}
    with pytest.raises(InputError, match="cell 0 lies in region 'some' and in another"):
        h.Helmholtz(mesh, {"all": h.Medium(), "some": h.Medium(300.0)})
    mesh.regions = {"some": np.arange(3)}
    with pytest.raises(InputError, match=r"no medium for cells in no region \(6 cells\)"):
        h.Helmholtz(mesh, {"some": h.Medium(300.0)})


def test_cells_that_are_none():
    square = np.array([[0, 0], [1, 0], [1, 1], [0, 1.0]])
    with pytest.raises(InputError, match="cell 0 near .* is folded"):
        h.Mesh(square, "quad", [[0, 2, 1, 3]])
    with pytest.raises(InputError, match="cell 1 near .* has no volume"):
        h.Mesh(np.vstack([square, [[2, 2]]]), "triangle", [[0, 1, 2], [0, 2, 4]])
    with pytest.raises(InputError, match="point 7, but"):
        h.Mesh(square, "quad", [[0, 1, 2, 7]])
    with pytest.raises(InputError, match="is the face of no cell"):
        h.Mesh(square, "quad", [[0, 1, 2, 3]], groups={"diagonal": [[0, 2]]})
    with pytest.raises(InputError, match="surface in space"):
        h.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 1.0]], "triangle", [[0, 1, 2]])
    with pytest.raises(InputError, match="shape 'wedge'"):
        h.Mesh(square, "wedge", [[0, 1, 2, 3, 0, 1]])
    left_handed = h.Mesh(square, "quad", [[0, 3, 2, 1]])         # clockwise cells are as good
    assert h.Helmholtz(left_handed).matrices[1].sum() > 0


@pytest.mark.parametrize("shape", ["hexahedron", "tetra", "quad", "triangle"])
def test_inverted_cells(shape):
    """Found by their neighbours, however corners are numbered; numbered the other way round is not inverted."""
    dim = 3 if shape in ("hexahedron", "tetra") else 2
    mesh = h.box((3, 3, 3)[:dim], shape=shape)
    cells = mesh.cells.copy()
    other = {"hexahedron": [4, 5, 6, 7, 0, 1, 2, 3], "quad": [3, 2, 1, 0], "tetra": [1, 0, 2, 3], "triangle": [1, 0, 2]}[shape]
    cells[::2] = cells[::2][:, other]
    turned = h.Mesh(mesh.points, shape, cells)
    assert np.allclose(abs(h.Helmholtz(turned).matrices[0] - h.Helmholtz(mesh).matrices[0]).max(), 0, atol=1e-15)
    points, at = mesh.points.copy(), mesh.cells[-1]
    corner = at[np.argmax(mesh.points[at].sum(axis=1))]          # of the far cell, of which it is the outermost
    if shape in ("tetra", "triangle"):
        points[corner] -= 1.7 / 3                                # through the opposite face
        with pytest.raises(InputError, match="near .* lies on the same side of a face as its neighbour"):
            h.Mesh(points, shape, cells)
    with pytest.raises(InputError, match="near .* lies on the same side|is folded"):
        h.Mesh(mesh.points, shape, np.vstack([cells, cells[-1:]]))                   # the same cell twice


@pytest.mark.parametrize("shape", ["hexahedron", "tetra", "quad", "triangle"])
def test_locating(shape):
    """Every point of a distorted mesh is found, with the functions that reproduce its coordinates; others are projected."""
    dim = 3 if shape in ("hexahedron", "tetra") else 2
    mesh = h.box((4, 3, 3)[:dim], upper=(2.0, 1.0, 1.0)[:dim], shape=shape)
    random = np.random.default_rng(5)
    mesh = h.Mesh(mesh.points + 0.05 * np.sin(7 * mesh.points[:, ::-1]), shape, mesh.cells)
    space = h.Helmholtz(mesh, degree=2).space
    for x in mesh.centres[random.integers(len(mesh.centres), size=20)] + random.uniform(-0.05, 0.05, (20, dim)):
        dofs, weights = space.at(*locate(mesh, x, "ear"))
        np.testing.assert_allclose(weights @ space.points[dofs], x, atol=1e-9)
    corner = mesh.points[0]
    assert locate(mesh, corner, "ear")[0] >= 0                   # on the boundary is inside
    away = np.array([-1.0, 0.4, 0.3][:dim])
    found = nearest(mesh, away)
    sampled = np.concatenate([np.einsum("c,cfd->fd", w, mesh.points[mesh.fem.facets[:, mesh.exterior]]) for w in
                              random.dirichlet(np.ones(len(mesh.fem.facets)), 400)])
    least = np.linalg.norm(sampled - away, axis=1).min()
    assert least - 0.02 <= np.linalg.norm(found - away) <= least + 1e-6 + (0.01 if shape == "hexahedron" else 0)


@pytest.mark.parametrize("shape", ["hexahedron", "tetra", "quad", "triangle"])
def test_meshes_go_through_files(shape, tmp_path):
    pytest.importorskip("meshio")
    dim = 3 if shape in ("hexahedron", "tetra") else 2
    mesh = h.box((3, 2, 2)[:dim], upper=2.0, shape=shape)
    mesh.regions = {"one": np.arange(5), "two": np.arange(5, len(mesh.cells))}
    mesh.write(tmp_path / "m.msh")
    again = h.read_mesh(tmp_path / "m.msh")
    assert str(again) == str(mesh) and np.allclose(again.points, mesh.points) and np.array_equal(again.cells, mesh.cells)
    for ours, theirs in ((mesh.regions, again.regions), (mesh.boundaries, again.boundaries)):
        assert ours.keys() == theirs.keys() and all(np.array_equal(ours[k], theirs[k]) for k in ours)
    with pytest.raises(InputError, match="expected .msh"):
        mesh.write(tmp_path / "m.vtk")


def test_files_that_are_no_meshes(tmp_path):
    meshio = pytest.importorskip("meshio")
    points = np.vstack([CUBE.points[:8], [[2, 2, 2]]])
    mixed = meshio.Mesh(points, [("tetra", [[0, 1, 2, 8]]), ("hexahedron", [list(range(8))])])
    meshio.write(tmp_path / "mixed.vtu", mixed)
    with pytest.raises(InputError, match="its cells are 1 hexahedron, 1 tetra: expected one shape"):
        h.read_mesh(tmp_path / "mixed.vtu")
    meshio.write(tmp_path / "wedge.vtu", meshio.Mesh(points, [("wedge", [[0, 1, 2, 3, 4, 5]])]))
    with pytest.raises(InputError, match="1 wedge"):
        h.read_mesh(tmp_path / "wedge.vtu")
    with pytest.raises(InputError, match="does not exist"):
        h.read_mesh(tmp_path / "none.msh")
    (tmp_path / "bad.msh").write_text("$MeshFormat\n4.1 0 8\n")
    with pytest.raises(InputError, match="cannot be read by meshio"):
        h.read_mesh(tmp_path / "bad.msh")


@pytest.mark.parametrize("kind", ["tetra", "hexahedron", "divided"])
def test_cabins(gmsh, kind):
    """The same car in every kind of cells: volume, areas of every wall, names; a bare one without seats."""
    mesh = h.car_cabin(0.3 if kind == "divided" else 0.25, kind)
    length, width, height = 2.6, 1.3, 1.15
    problem = h.Helmholtz(mesh, h.Medium(1.0, 1.0), {name: h.Impedance(1.0) for name in mesh.boundaries})
    K, M, B = problem.matrices
    profile = height * length - 0.5 * 0.30 * 0.45 * length * height - 0.5 * 0.18 * 0.40 * length * height
    front = (0.22 * 0.25 + 0.05 * 0.32) * length * height * 2 * (0.42 - 0.04) * width
    rear = (0.21 * 0.25 + 0.05 * 0.32) * length * height * 0.92 * width
    assert M.sum() == pytest.approx(profile * width - front - rear)
    areas = {"floor": length * width, "firewall": 0.55 * height * width, "rear_wall": 0.6 * height * width,
             "roof": 0.52 * length * width, "left": profile, "right": profile,
             "windscreen": width * np.hypot(0.3 * length, 0.45 * height),
             "rear_window": width * np.hypot(0.18 * length, 0.4 * height)}
    assert mesh.parts == 1 and set(mesh.boundaries) == {*areas, "seats"} and list(mesh.regions) == ["cabin"]
    for name, area in areas.items():
        facets = mesh.boundaries[name]
        assert problem.space.facets(facets, np.ones(len(facets))).sum() == pytest.approx(area), name
    assert np.diff(K.indptr).max() > (60 if kind == "divided" else 0)


def test_a_bare_cabin_and_the_cylinder(gmsh):
    bare = h.car_cabin(0.3, length=2.0, width=1.0, height=1.0, seats=False)
    assert "seats" not in bare.boundaries
    tube = h.cylinder(0.1, length=0.5)
    assert set(tube.boundaries) == {"bottom", "top", "wall"} and tube.shape == "hexahedron"
    volume = h.Helmholtz(tube, h.Medium(1.0, 1.0)).matrices[1].sum()
    assert volume == pytest.approx(np.pi * 0.15 ** 2 * 0.5, rel=0.1)


def test_the_mesh_says_how_far_it_goes():
    """10 nodes a wavelength: c/(10 h) for degree 1, twice that for degree 2, by the slowest medium."""
    mesh = h.box((10, 10))
    assert h.Helmholtz(mesh, h.Medium(343.0)).finest == pytest.approx(343.0)
    assert h.Helmholtz(mesh, h.Medium(343.0), degree=2).finest == pytest.approx(686.0)
    r = respond(frequencies=[100.0, 400.0])
    assert any("too coarse above 102.9 Hz: at 400 Hz its coarsest cell has 2.6 nodes" in note for note in r.notes)
    assert not respond(frequencies=[100.0]).notes


def test_a_mesh_in_parts_is_said():
    """As gmsh leaves volumes that touch but were not made one: no sound crosses, and no solve would tell."""
    cells, count = CUBE.cells, len(CUBE.points)
    cracked = h.Mesh(np.vstack([CUBE.points, CUBE.points]), "hexahedron", np.vstack([cells[:9], cells[9:] + count]))
    notes = respond(mesh=cracked, source=(0.1, 0.1, 0.1), ear=(0.9, 0.9, 0.9)).notes
    assert any("in 2 parts that share no face" in note and "fragment" in note for note in notes)


@pytest.mark.parametrize("name", ["Audi3D-1", "Audi3D-2", "Twingo3D-0", "Cylinder3D-0", "Cylinder3D-1",
                                  *(pytest.param(name, marks=pytest.mark.slow) for name in ("Twingo3D-1", "Twingo3D-2"))])
def test_table_1(gmsh, name):
    """About as many unknowns as the paper has, and as many entries a row as trilinear cells make."""
    from swell.pde.helmholtz.table1 import MESHES
    mesh = h.paper_mesh(name)
    assert 0.8 < len(mesh.points) / MESHES[name][2] < 1.25
    assert mesh.shape == "hexahedron"


@pytest.mark.slow
def test_the_twingo_is_hard(gmsh):
    """As in the paper, Jacobi-BiCGSTAB does not solve it in 1000 iterations, and says so; it does the Audi; COCG with ILU(0)
    solves both."""
    solved = {}
    for name in ("Audi3D-1", "Twingo3D-0"):
        problem, frequency, source = h.paper_problem(name)
        for method, precond in (("bicgstab", "jacobi"), ("cocg", "ilu0")):
            solved[name, method] = problem.solve(frequency, source, method=method, precond=precond, rtol=1e-6,
                                                 maxiter=1000).converged
    assert solved == {("Audi3D-1", "bicgstab"): True, ("Audi3D-1", "cocg"): True, ("Twingo3D-0", "bicgstab"): False,
                      ("Twingo3D-0", "cocg"): True}


@pytest.mark.parametrize("missing, use", [("gmsh", lambda: h.car_cabin(0.3)), ("gmsh", lambda: h.cylinder(0.1)),
                                          ("skfem", lambda: h.box((2, 2))),
                                          ("meshio", lambda: CUBE.write("/tmp/never.msh"))])
def test_what_is_missing_is_said_with_its_remedy(monkeypatch, missing, use):
    import sys
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(MissingDependency, match=r"pip install 'swell\[pde\]'"):
        use()
