"""Open domains and tables: perfectly matched layers against closed forms, spectra of panels, walls and media, maps."""
import math

import numpy as np
import pytest
from scipy import special

skfem = pytest.importorskip("skfem", reason="needs scikit-fem: pip install 'swell[pde]'")

from swell.core.errors import InputError                         # noqa: E402
from swell.pde import helmholtz as h                             # noqa: E402

C, RHO = 343.0, 1.204
EXACT = {"method": "direct", "rtol": 1e-10}


def monopole(x, frequency, strength=1e-3):
    """The free field of a monopole at the origin."""
    r, k = np.linalg.norm(x, axis=1), 2 * math.pi * frequency / C
    return 1j * k * C * RHO * strength * np.exp(-1j * k * r) / (4 * math.pi * r)


def scattered(x, frequency, radius, terms=25):
    """A plane wave along x, scattered by a rigid sphere at the origin: the series of spherical waves."""
    k, r = 2 * math.pi * frequency / C, np.linalg.norm(x, axis=1)
    total = np.zeros(len(x), complex)
    for n in range(terms):
        def hankel(z, derivative=False, n=n):
            return special.spherical_jn(n, z, derivative) - 1j * special.spherical_yn(n, z, derivative)
        total -= ((-1j) ** n * (2 * n + 1) * special.spherical_jn(n, k * radius, True) / hankel(k * radius, True)
                  * hankel(k * r) * special.eval_legendre(n, x[:, 0] / r))
    return total


def test_a_layer_lets_a_monopole_sound_as_in_free_field(device):
    mesh = h.box((10, 10, 10), lower=-0.75, upper=0.75)
    room = h.Helmholtz(mesh, degree=2, pml=h.PML((-0.45,) * 3, (0.45,) * 3))
    ears = np.array([(0.4, 0.1, 0.05), (-0.3, 0.3, 0.2), (0.4, 0.4, 0.4), (0.2, -0.3, -0.1)])
    r = room.response((0.0, 0.0, 0.0), ears, [150.0, 250.0], device=device, fields=[250.0],
                      **(EXACT if device == "cpu" else {"method": "cocg", "precond": "jacobi"}))
    assert r.converged
    for frequency, found in zip(r.frequencies, r.pressure):
        assert abs(found / monopole(ears, frequency) - 1).max() < 0.01
    power = r.fields[250.0].dissipation()
    radiated = RHO * (2 * math.pi * 250) ** 2 * 1e-6 / (8 * math.pi * C)
    assert power["layer"] == pytest.approx(radiated, rel=0.02) and abs(power["medium"]) < 1e-9 * radiated


def test_the_layer_keeps_the_matrix_symmetric_to_the_bit():
    room = h.Helmholtz(h.box((4, 4, 3), shape="tetra"), degree=2, pml=h.PML((0.25, 0.25, 0.0), (0.75, 0.75, 1.0)))
    A, b, _ = room.system(200.0, (0.5, 0.5, 0.5))
    assert (A != A.T).nnz == 0 and np.isfinite(A.data).all() and b.any()


def test_a_layer_beside_a_duct_reflects_nothing():
    """A piston at one end: |p| = ρ c v along the duct, in one dimension, in a medium of its own in two."""
    mesh = h.box((60, 2), upper=(3.0, 0.1))
    duct = h.Helmholtz(mesh, degree=2, pml=h.PML((0.0, 0.0), (2.5, 0.1)))
    r = duct.response("xmin", [(0.5, 0.05), (1.7, 0.05), (2.4, 0.05)], [150.0, 300.0, 600.0], **EXACT)
    assert r.converged and abs(abs(r.pressure) / (RHO * C * 1e-3) - 1).max() < 0.003


@pytest.mark.parametrize("frequency", [150.0, 400.0])
def test_a_sphere_scatters_a_plane_wave(frequency):
    pytest.importorskip("gmsh", reason="needs gmsh: pip install 'swell[pde]'", exc_type=(ImportError, OSError))
    mesh, pml = h.around(0.2, 0.09, margin=0.12, layer=0.2, near=0.03)
    assert set(mesh.boundaries) == {"body", "outside"} and set(mesh.regions) == {"fluid", "layer"}
    angle = np.linspace(0, math.pi, 9)
    ears = 0.3 * np.stack([np.cos(angle), 0.8 * np.sin(angle), 0.6 * np.sin(angle)], axis=1)
    around = h.Helmholtz(mesh, degree=2, pml=pml)
    r = around.response(h.PlaneWave((2.0, 0, 0), "body"), ears, [frequency])
    wanted = scattered(ears, frequency, 0.2)
    assert r.converged and np.linalg.norm(r.pressure[0] - wanted) < 0.01 * np.linalg.norm(wanted)


# -- tables ----------------------------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def mesh():
    return h.box((8, 3, 3), upper=(2.0, 0.5, 0.5))


def test_a_table_is_linear_between_its_lines_and_ends_at_them():
    table = h.Table([100, 200, 400], [1 + 1j, 3, 7 - 2j], "felt.csv")
    assert table.at(150) == 2 + 0.5j and table.at(400) == 7 - 2j
    for f in (99.0, 401.0):
        with pytest.raises(InputError, match=f"felt.csv goes from 100 to 400 Hz, and {f:g} Hz was asked for"):
            table.at(f)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_tables_equal_constants_at_each_frequency(mesh, device):
    """Wall, medium and panel by tables: each frequency equals a problem with the constants of that frequency."""
    band = [100.0, 150.0, 200.0]
    felt = h.Table([100, 200], [2000 - 3000j, 1000 - 500j])
    air = h.Medium(speed=h.Table([50, 250], [330.0, 350.0]), density=1.2, damping=h.Table([50, 250], [0.01, 0.03]))
    panel = h.Table([100, 200], [1e-3, 3e-3j])
    ears = [(1.5, 0.2, 0.3), (0.4, 0.1, 0.1)]
    boundary = {"zmax": h.Impedance(felt), "xmax": h.Absorbing()}
    settings = {"method": "cocg", "precond": "ilu0", "rtol": 1e-9, "device": device}
    swept = h.Helmholtz(mesh, air, boundary).response({"xmin": h.Velocity(panel)}, ears, band, **settings)
    assert swept.converged
    for f, found in zip(band, swept.pressure):
        density, bulk = air.at(f)
        fixed = h.Medium(air.speed.at(f), density, air.damping.at(f))
        assert bulk == pytest.approx(density * fixed.complex_speed ** 2)
        alone = h.Helmholtz(mesh, fixed, {"zmax": h.Impedance(felt.at(f)), "xmax": h.Absorbing()})
        wanted = alone.response({"xmin": h.Velocity(complex(panel.at(f)))}, ears, [f], **settings)
        assert np.allclose(found, wanted.pressure[0], rtol=1e-7, atol=0)


def test_parts_that_vary_work_with_deflation_and_given_pressures(mesh):
    """Deflation recomputes A U, since A(ω) is no polynomial; a wall of given pressure sees the varying parts too."""
    felt = h.Table([50, 300], [2000 - 3000j, 1000 - 500j])
    room = h.Helmholtz(mesh, h.Medium(damping=0.01), {"zmax": h.Impedance(felt), "xmin": h.Pressure(1.0)})
    band, ear = [80.0, 100.0, 120.0], (1.5, 0.2, 0.3)
    exact = room.response(None, ear, band, **EXACT)
    deflated = room.response(None, ear, band, method="cocg", precond="deflation(inner=jacobi, vectors=6)", rtol=1e-9)
    assert deflated.converged and np.allclose(exact.pressure, deflated.pressure, rtol=1e-6)
    A, b, _ = room.system(100.0)
    p = room.solve(100.0, **EXACT).p[room._free()]
    assert np.linalg.norm(b - A @ p) < 1e-9 * np.linalg.norm(b)


def test_power_balance_with_tables(mesh):
    felt, air = h.Table([50, 300], [900 - 300j, 1000]), h.Medium(h.Table([50, 300], [340 + 5j, 345 + 4j]))
    room = h.Helmholtz(mesh, air, {"zmax": h.Impedance(felt)})
    source = {"xmin": h.Velocity(h.Table([50, 300], [1e-3, 2e-3j]))}
    field = room.solve(120.0, source, **EXACT)
    taken = field.dissipation()
    delivered = 0.5 * np.vdot(field.p, room._sound(source).at(2 * math.pi * 120)).real
    assert taken["medium"] > 0 and taken["walls"] > 0 and delivered == pytest.approx(sum(taken.values()), rel=1e-8)
    assert room.damped


def test_a_measured_map_is_read_and_interpolated(mesh, tmp_path):
    """Points of a smooth function: the response equals the response to the function, to the map's accuracy."""
    def smooth(x):
        return 1e-3 * (1 + x[:, 1]) * np.exp(2j * x[:, 2])
    y, z = (v.ravel() for v in np.meshgrid(np.linspace(0, 0.5, 21), np.linspace(0, 0.5, 21)))
    points = np.stack([0 * y, y, z], axis=1)
    rows = ["x,y,z,f,re,im"]
    for f in (100.0, 200.0):
        v = smooth(points) * f / 100
        rows += [",".join(f"{value:.12g}" for value in (*x, f, one.real, one.imag)) for x, one in zip(points, v)]
    (tmp_path / "map.csv").write_text("\n".join(rows))
    measured = h.read_velocity_map(tmp_path / "map.csv")
    room, ear = h.Helmholtz(mesh, h.Medium(damping=0.02)), (1.5, 0.2, 0.3)
    found = room.response({"xmin": h.Velocity(measured)}, ear, [100.0, 150.0], **EXACT).pressure[:, 0]
    wanted = room.response({"xmin": h.Velocity(smooth)}, ear, [100.0, 150.0], **EXACT).pressure[:, 0]
    assert np.allclose(found, wanted * [1, 1.5], rtol=0.01)
    few = h.VelocityMap(points[:40], np.ones(40))
    with pytest.raises(InputError, match="does not cover the boundary"):
        room.solve(100.0, {"xmin": h.Velocity(few)})


@pytest.mark.parametrize("text, words", [
    ("100,1,2\n200,1\n", "line 2"), ("f,re\n", "has no line"), ("100,1,2\n50,1,2\n", "50 Hz in line 2"),
    ("100,1,nan\n", "not finite"), ("100,1,2\n100,1,2\n", "ascending"), ("a,b\nc,d\n", "line 2: 'c,d'")])
def test_bad_tables(tmp_path, text, words):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(InputError, match=words):
        h.read_table(tmp_path / "t.csv")


def test_a_table_from_a_file(tmp_path):
    (tmp_path / "t.csv").write_text("# felt, 40 mm\nHz,re,im\n100;1;-2\n\n200;3;-4\n")
    table = h.read_table(tmp_path / "t.csv")
    assert table.at(150) == 2 - 3j and "t.csv" in repr(table)
    with pytest.raises(InputError, match="cannot read"):
        h.read_table(tmp_path / "none.csv")


@pytest.mark.parametrize("make, words", [
    (lambda m: h.Impedance(h.Table([1, 2], [5, -1])), "Re Z ≥ 0"),
    (lambda m: h.Medium(h.Table([1, 2], [300, 300 - 1j])), "imaginary part is negative"),
    (lambda m: h.Medium(density=h.Table([1, 2], [1, 0])), "real part is more than 0"),
    (lambda m: h.Medium(damping=h.Table([1, 2], [0.1, -0.1])), "expected real numbers"),
    (lambda m: h.Medium("fast"), "or a Table"),
    (lambda m: h.PML((0, 0, 0), (0, 1, 1)), "opposite corners"),
    (lambda m: h.PML((0, 0), (1, "x")), "expected a corner"),
    (lambda m: h.Helmholtz(m, pml=3), "expected PML"),
    (lambda m: h.Helmholtz(m, pml=h.PML((0, 0), (1, 1))), "3 dimensions"),
    (lambda m: h.Helmholtz(m, pml=h.PML((-1,) * 3, (9,) * 3)), "does not reach outside"),
    (lambda m: h.Helmholtz(m, pml=h.PML((0.01,) * 3, (0.02,) * 3)), "no cell lies in the box"),
    (lambda m: h.PlaneWave((0, 0, 0), "xmin"), "not all zero"),
    (lambda m: h.Helmholtz(m).solve(100, h.PlaneWave((1, 0), "xmin")), "3 dimensions"),
    (lambda m: h.Helmholtz(m, boundary={"xmin": h.Absorbing()}).solve(100, h.PlaneWave((1, 0, 0), "xmin")), "rigid"),
    (lambda m: h.Helmholtz(m).solve(100, h.PlaneWave((1, 0, 0), "nose")), "no boundary 'nose'"),
    (lambda m: h.VelocityMap([[0, 0, 0]], [1, 2]), "velocities of shape"),
    (lambda m: h.Helmholtz(m, pml=h.PML((0.5, 0, 0), (2, 1, 1))).modes(3), "closed cavity"),
    (lambda m: h.around(-1, 0.1, margin=1, layer=1), "radius of a sphere"),
    (lambda m: h.around("body.obj", 0.1, margin=1, layer=1), ".step"),
    (lambda m: h.around(1.0, 0, margin=1, layer=1), "size=0"),
])
def test_bad_input(mesh, make, words):
    with pytest.raises(InputError, match=words):
        make(mesh)


def test_a_band_that_the_table_does_not_cover_is_refused_before_the_first_solve(mesh):
    room = h.Helmholtz(mesh, h.Medium(damping=0.01), {"zmax": h.Impedance(h.Table([50, 150], [900, 900]))})
    solved = []
    for band, asked in (([100.0, 140.0, 200.0], "200 Hz was asked for"), ([100.0, 40.0], "40 Hz was asked for")):
        with pytest.raises(InputError, match="from 50 to 150 Hz, and " + asked):
            room.response("xmin", (1.5, 0.2, 0.3), band, watch=solved.append)
    assert not solved


def test_tables_of_spreadsheets(tmp_path):
    """A mark at the beginning of the file, or a slip of the pen in the first line, hides no line."""
    path = tmp_path / "wall.csv"
    path.write_text("50,400\n300,500\n", "utf-8-sig")
    assert h.read_table(path).frequencies.tolist() == [50, 300]
    path.write_text("Hz,real\n50,400\n300,500\n", "utf-8-sig")
    assert h.read_table(path).frequencies.tolist() == [50, 300]
    path.write_text("50,4OO\n300,500\n")
    with pytest.raises(InputError, match="line 1: '50,4OO': expected 2 or 3 numbers"):
        h.read_table(path)


def test_maps_and_matrices_of_other_things():
    with pytest.raises(InputError, match="expected points, coordinates in m, and as many velocities"):
        h.VelocityMap([(0.0, 0.0, 0.0)], ["fast"])
    K, M, B = h.Helmholtz(h.box((3, 2, 2))).matrices
    load = np.ones(K.shape[0])
    for wrong, words in (({"B": None}, "B is of type NoneType"),
                         ({"rows": [0.5]}, "expected a list of rows of x"), ({"rows": None}, "rows is empty"),
                         ({"speed": "fast"}, "speed='fast': expected a positive number")):
        given = {"K": K, "M": M, "B": B, "loads": load, "rows": [0], "frequencies": [50.0], **wrong}
        with pytest.raises(InputError, match=words):
            h.sweep_matrices(**given)
