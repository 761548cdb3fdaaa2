"""Helmholtz by finite elements against solutions that are known: orders, ducts, rooms, two media, reciprocity, power."""
import math

import numpy as np
import pytest
import scipy.sparse.linalg as spla

skfem = pytest.importorskip("skfem", reason="needs scikit-fem: pip install 'swell[pde]'")

from swell.pde import helmholtz as h                             # noqa: E402

AIR = h.Medium(speed=340.0, density=1.2, damping=0.05)
EXACT = {"method": "direct", "rtol": 1e-10}


class PlaneWave:
    """p = exp(−i k d·x) in a damped medium, with everything that a boundary must do for it."""

    def __init__(self, dim, frequency):
        self.direction = np.array([2.0, 1.0, 2.0][:dim]) / np.linalg.norm([2.0, 1.0, 2.0][:dim])
        self.omega = 2 * math.pi * frequency
        self.k = self.omega / AIR.complex_speed

    def p(self, x):
        return np.exp(-1j * self.k * (x @ self.direction))

    def into(self, axis, outward):
        """Velocity into the fluid at a face with the outward normal ± e_axis: u = k d p / (ω ρ)."""
        return lambda x: -outward * self.k * self.direction[axis] * self.p(x) / (self.omega * AIR.density)

    def boundary(self, dim):
        """All kinds of conditions: pressure at ymin, impedance at xmax (which here is p/u), velocities elsewhere."""
        faces = {name + end: h.Velocity(self.into(axis, sign)) for axis, name in enumerate("xyz"[:dim])
                 for end, sign in (("min", -1), ("max", 1))}
        faces["xmax"] = h.Impedance(self.omega * AIR.density / (self.k * self.direction[0]))
        faces["ymin"] = h.Pressure(self.p)
        return faces


def l2_error(field, exact):
    """‖p − exact‖ / ‖exact‖ in L2, by quadrature."""
    space = field.problem.space
    basis = skfem.CellBasis(space.mesh.fem, space.element, intorder=2 * space.degree + 4)
    x = np.moveaxis(np.asarray(basis.global_coordinates()), 0, -1)
    found = np.zeros(basis.dx.shape, complex)
    for k, function in enumerate(basis.basis):
        found += field.p[space.cell_dofs[:, k], None] * np.asarray(function[0])
    wanted = exact(x.reshape(-1, x.shape[-1])).reshape(found.shape)
    return math.sqrt((abs(found - wanted) ** 2 * basis.dx).sum() / (abs(wanted) ** 2 * basis.dx).sum())


@pytest.mark.parametrize("shape, degree, sizes", [
    ("triangle", 1, (8, 16, 32)), ("quad", 1, (8, 16, 32)), ("tetra", 1, (4, 8, 16)), ("hexahedron", 1, (4, 8, 16)),
    ("triangle", 2, (8, 16, 32)), ("quad", 2, (8, 16, 32)), ("tetra", 2, (2, 4, 8)), ("hexahedron", 2, (2, 4, 8))])
def test_order(shape, degree, sizes):
    """L2 errors of an oblique plane wave fall with h² for degree 1 and h³ for degree 2, within 0.1, on three meshes."""
    dim = 3 if shape in ("tetra", "hexahedron") else 2
    wave = PlaneWave(dim, 100.0)
    errors = []
    for n in sizes:
        mesh = h.box((n,) * dim, shape=shape)
        problem = h.Helmholtz(mesh, AIR, wave.boundary(dim), degree=degree)
        errors.append(l2_error(problem.solve(100.0, **EXACT), wave.p))
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert orders[-1] == pytest.approx(degree + 1, abs=0.1), (errors, orders)
    assert errors[-1] < 0.01


def test_order_on_an_unstructured_mesh():
    """The same on gmsh's tetrahedra, whose sizes are not halved exactly: errors below what h² and h³ predict from the first."""
    pytest.importorskip("gmsh", reason="needs gmsh: pip install 'swell[pde]'", exc_type=(ImportError, OSError))
    from swell.pde.helmholtz.tube import cylinder
    wave = PlaneWave(3, 500.0)
    errors = {}
    for size in (0.1, 0.05):
        mesh = cylinder(size, "tetra", length=0.5)
        facets = mesh.boundaries["wall"]
        for degree in (1, 2):
            problem = h.Helmholtz(mesh, AIR, dict.fromkeys(("bottom", "top", "wall"), h.Pressure(wave.p)), degree=degree)
            errors[degree, size] = l2_error(problem.solve(500.0, **EXACT), wave.p), mesh.mean_edges.mean()
        assert facets.size
    for degree in (1, 2):
        (coarse, wide), (fine, narrow) = errors[degree, 0.1], errors[degree, 0.05]
        assert math.log(coarse / fine) / math.log(wide / narrow) > degree + 0.7


@pytest.mark.parametrize("shape", ["quad", "tetra"])
def test_duct_with_an_impedance_at_its_end(shape):
    """A piston at x = 0 and Z at x = L: p and its phase all along the duct; errors quartered when cells are halved."""
    medium, L, Z, v, f = h.Medium(343.0, 1.2), 1.0, 700 + 300j, 2e-3, 300.0
    omega = 2 * math.pi * f
    k, rc = omega / medium.speed, medium.density * medium.speed
    R = (Z - rc) / (Z + rc)                                      # at x = L
    forward = rc * v / (1 - R * np.exp(-2j * k * L))             # u(0) = v
    exact = lambda x: forward * (np.exp(-1j * k * x) + R * np.exp(1j * k * (x - 2 * L)))
    errors = []
    for n in (20, 40):
        size = (n, n // 10, n // 10) if shape == "tetra" else (n, n // 10)
        upper = (L, 0.1, 0.1)[:len(size)]
        mesh = h.box(size, upper=upper, shape=shape)
        field = h.Helmholtz(mesh, medium, {"xmax": h.Impedance(Z)}).solve(f, {"xmin": h.Velocity(v)}, **EXACT)
        errors.append(l2_error(field, lambda x: exact(x[:, 0])))
        ear = (0.37, 0.05, 0.02)[:len(size)]
        assert field.at(ear) == pytest.approx(exact(0.37), rel=0.02 * (20 / n) ** 2 + 0.01)
    assert errors[1] < 0.01 and 3.5 < errors[0] / errors[1] < 4.5


def test_absorbing_takes_a_plane_wave():
    """No reflection but that of the discretisation: |p| = ρ c v all along, and the same with Impedance(ρc)."""
    mesh = h.box((80, 1), upper=(2.0, 0.1))
    medium = h.Medium(343.0, 1.2)
    by = {name: h.Helmholtz(mesh, medium, {"xmax": condition}).solve(200.0, "xmin", **EXACT)
          for name, condition in (("absorbing", h.Absorbing()), ("impedance", h.Impedance(343.0 * 1.2)))}
    assert abs(abs(by["absorbing"].p) - 343 * 1.2 * 1e-3).max() < 2e-3 * 343 * 1.2e-3
    np.testing.assert_allclose(by["absorbing"].p, by["impedance"].p, rtol=1e-12)


def test_a_monopole_sends_half_its_flow_each_way():
    """In a duct open at both ends, away from the source: p = ρ c Q / (2 S) e^{−ik|x − x_s|}."""
    mesh, medium, Q = h.box((120, 2, 2), upper=(3.0, 0.1, 0.05)), h.Medium(343.0, 1.2), 2e-4
    duct = h.Helmholtz(mesh, medium, {"xmin": h.Absorbing(), "xmax": h.Absorbing()})
    field = duct.solve(150.0, h.Monopole((1.3, 0.04, 0.02), Q), **EXACT)
    k = 2 * math.pi * 150 / 343
    for x in (0.2, 0.8, 1.9, 2.7):
        wanted = 1.2 * 343 * Q / (2 * 0.1 * 0.05) * np.exp(-1j * k * abs(x - 1.3))
        assert field.at((x, 0.03, 0.04)) == pytest.approx(wanted, rel=5e-3)


def test_sign_convention():
    """e^{+iωt}: a wave along +x lags, p = ρ c v e^{−ikx}, and damping makes it decay along its way."""
    mesh = h.box((200, 1), upper=(4.0, 0.1))
    eta = 0.1
    field = h.Helmholtz(mesh, h.Medium(343.0, 1.2, eta), {"xmax": h.Absorbing()}).solve(200.0, "xmin", **EXACT)
    k = 2 * math.pi * 200 / 343
    assert np.angle(field.at((0.1, 0.05)) / field.at((0.0, 0.05))) == pytest.approx(-0.1 * k, rel=0.01)
    assert abs(field.at((4.0, 0.05)) / field.at((0.0, 0.05))) == pytest.approx(math.exp(-k * eta / 2 * 4.0), rel=0.02)


def test_rigid_box_has_the_frequencies_of_the_discrete_box():
    """Eigenvalues of (K, M) on trilinear cells are sums of those of an axis, known in closed form; and close to nπc/L."""
    counts, sides, c = (8, 5, 4), (1.0, 0.6, 0.5), 343.0
    K, M, B = h.Helmholtz(h.box(counts, upper=sides), h.Medium(c, 1.2)).matrices
    assert B.nnz == 0
    found = np.sort(spla.eigsh(K.tocsc(), 9, M.tocsc(), sigma=1e4, return_eigenvectors=False))     # ω²
    axes = []
    for n, side in zip(counts, sides):
        angle, step = np.arange(n + 1) * math.pi / n, side / n
        axes.append(6 / step ** 2 * (1 - np.cos(angle)) / (2 + np.cos(angle)))
    discrete = np.sort(c ** 2 * (axes[0][:, None, None] + axes[1][:, None] + axes[2]).ravel())[:9]
    np.testing.assert_allclose(found, discrete, rtol=1e-9, atol=1e-3)
    exact = np.sort([(math.pi * c) ** 2 * sum((i / s) ** 2 for i, s in zip(mode, sides))
                     for mode in np.ndindex(5, 5, 5)])[:9]
    np.testing.assert_allclose(np.sqrt(discrete), np.sqrt(exact), rtol=1.05 * (2 * math.pi / 8) ** 2 / 24)      # (kh)²/24


def test_response_peaks_at_the_resonances_of_a_room():
    """A rigid room driven in a corner answers loudest at c/2 √Σ(n/L)², within the mesh's error."""
    sides, c = (1.0, 0.8), 343.0
    mesh = h.box((32, 26), upper=sides)
    room = h.Helmholtz(mesh, h.Medium(c, 1.2, damping=0.005))
    band = np.arange(150.0, 300.0, 1.0)
    levels = room.response(source=(0.0, 0.0), ear=(0.97, 0.79), frequencies=band, method="direct").level[:, 0]
    peaks = band[1:-1][(levels[1:-1] > levels[:-2]) & (levels[1:-1] > levels[2:])]
    modes = sorted(c / 2 * math.hypot(i / sides[0], j / sides[1]) for i, j in ((1, 0), (0, 1), (1, 1)))
    assert len(peaks) == 3
    np.testing.assert_allclose(peaks, modes, atol=1.0, rtol=2e-3)


def test_two_media():
    """A wave that meets a denser medium: transmitted 2 Z₂ / (Z₁ + Z₂), at the speed of that medium."""
    mesh = h.box((240, 1), upper=(3.0, 0.1))
    left = np.flatnonzero(mesh.centres[:, 0] < 1.5)
    mesh.regions = {"air": left, "gas": np.setdiff1d(np.arange(len(mesh.cells)), left)}
    air, gas = h.Medium(343.0, 1.2), h.Medium(160.0, 6.0)
    z1, z2 = air.impedance.real, gas.impedance.real
    duct = h.Helmholtz(mesh, {"air": air, "gas": gas}, {"xmax": h.Absorbing(), "xmin": h.Velocity(1e-3)})
    field = duct.solve(100.0, **EXACT)
    k1, k2 = (2 * math.pi * 100 / m.speed for m in (air, gas))
    R = (z2 - z1) / (z2 + z1)
    incident = z1 * 1e-3 / (1 - R * np.exp(-3j * k1))            # ... / (e^0 − R e^{−2ik·1.5}): u(0) = v
    transmitted = incident * (1 + R) * np.exp(-1j * k1 * 1.5)    # at the interface
    for x in (1.5, 2.0, 3.0):
        assert field.at((x, 0.05)) == pytest.approx(transmitted * np.exp(-1j * k2 * (x - 1.5)), rel=0.01)


def test_reciprocity():
    """Exchanging source and ear gives the same pressure, to the solves' tolerance."""
    mesh = h.box((9, 7, 6), upper=(1.2, 0.9, 0.7), shape="tetra")
    room = h.Helmholtz(mesh, h.Medium(damping=0.01), {"zmax": h.Impedance(800 + 300j), "xmax": h.Absorbing()})
    here, there = (0.11, 0.23, 0.31), (1.01, 0.66, 0.47)
    for method, precond in (("direct", None), ("gmres(restart=100)", "ilu0")):
        go, back = (room.response(h.Monopole(a, 1e-4), b, [180.0, 410.0], method=method, precond=precond, rtol=1e-10)
                    for a, b in ((here, there), (there, here)))
        assert go.converged and back.converged
        np.testing.assert_allclose(go.pressure, back.pressure, rtol=1e-7)


def test_power_balance():
    """What panel and monopole deliver is what the medium and the walls take."""
    mesh = h.box((8, 6, 5), upper=(1.0, 0.8, 0.6))
    room = h.Helmholtz(mesh, h.Medium(damping=0.03), {"zmax": h.Impedance(600 - 900j), "ymin": h.Velocity(2e-3 + 1e-3j)},
                       degree=2)
    field = room.solve(250.0, h.Monopole((0.3, 0.3, 0.3), 1e-4j), **EXACT)
    f = room._sound(h.Monopole((0.3, 0.3, 0.3), 1e-4j)).constant
    delivered = 0.5 * np.vdot(field.p, f).real
    taken = field.dissipation()
    assert taken["medium"] > 0 and taken["walls"] > 0
    assert delivered == pytest.approx(taken["medium"] + taken["walls"], rel=1e-8)


@pytest.mark.parametrize("shape, degree", [("tetra", 1), ("tetra", 2), ("hexahedron", 1), ("hexahedron", 2), ("quad", 2)])
def test_matrices(shape, degree):
    """K and M symmetric to the bit and on one pattern, K of constants zero, B on the faces with an impedance only."""
    mesh = h.box((4, 3, 3)[:3 if shape != "quad" else 2], upper=1.7, shape=shape)
    problem = h.Helmholtz(mesh, h.Medium(2.0, 3.0, 0.1), {"xmax": h.Impedance(2 + 1j)}, degree=degree)
    K, M, B = problem.matrices
    for A in (K, M, B):
        assert (A != A.T).nnz == 0
    assert np.array_equal(K.indices, M.indices) and np.array_equal(K.indptr, M.indptr)
    assert abs(K @ np.ones(K.shape[0])).max() < 1e-12
    size = 1.7 ** mesh.dim
    assert M.sum() == pytest.approx(size / (3 * 4 * (1 + 0.1j))) and B.sum() == pytest.approx(size / 1.7 / (2 + 1j))
    touched = np.unique(B.indices)
    np.testing.assert_array_equal(touched, problem.space.facet_dofs(mesh.boundaries["xmax"]))
    assert np.allclose(problem.space.points[touched, 0], 1.7)
    smooth = problem.space.points[:, 0] ** degree                # reproduced exactly: ∫ |∇ xᵈ|² = d² L^{2d−1}/(2d−1) · L^{dim−1}
    assert smooth @ K @ smooth * 3 == pytest.approx(degree ** 2 * 1.7 ** (2 * degree - 1) / (2 * degree - 1) * size / 1.7)
