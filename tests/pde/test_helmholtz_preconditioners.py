"""What the front end tells preconditioners, mass matrix and faces between subdomains: against meshes and formulas."""
import numpy as np
import pytest
import scipy.sparse as sp
from tests.conftest import cudss_or_skip, space_or_skip

pytest.importorskip("skfem")
pytest.importorskip("pymetis", reason="parts of a graph need pymetis: pip install 'swell[partition]'")

import swell
from swell.core.errors import InputError
from swell.pde import helmholtz as h
from swell.pde.helmholtz.informed import informed
from swell.pde.helmholtz.interfaces import Faces
from swell.pde.helmholtz.sweeping import Sweep
from swell.pde.helmholtz.system import System
from swell.preconditioners.transmission import optimised

OMEGA = 2 * np.pi * 150
MEDIUM = h.Medium(damping=0.05)


def bound(problem, text, omega=OMEGA, dtype="complex128", device="cpu"):
    """(the preconditioner, the system) of a problem at one frequency."""
    free = problem._free()
    (K, M, B), _ = problem._system(free)
    space = space_or_skip(device)
    with space.active(len(free)):
        system = System(K, M, B, space, dtype)
        system.form(omega)
        settings = informed(text, system, lambda system: Faces(problem, free, system))
        return settings.build(system.A), system


def subdomain(M, d):
    """(its matrix, its rows) of a Schwarz preconditioner."""
    rows = M.copies
    ends = np.flatnonzero(np.diff(rows) <= 0) + 1
    first, last = np.concatenate([[0], ends, [len(rows)]])[d:d + 2]
    return M._matrix.to_scipy()[first:last, first:last].toarray(), rows[first:last]


@pytest.mark.parametrize("shape, degree", [("hexahedron", 1), ("tetra", 1), ("hexahedron", 2), ("tetra", 2)])
def test_robin_is_the_submesh_with_an_absorbing_wall(shape, degree):
    """Each subdomain's matrix is that of its own cells with Absorbing() where they were cut off."""
    mesh = h.box((6, 4, 3), upper=(2.0, 1.3, 1.0), shape=shape)
    walls = {"zmin": h.Impedance(900 + 300j), "xmax": h.Pressure(0)}
    whole = h.Helmholtz(mesh, MEDIUM, walls, degree=degree)
    M, _ = bound(whole, "schwarz(domains=3, partition=graph, transmission=robin, overlap=1, inner=jacobi)")
    free, dofs, f = np.flatnonzero(~whole._given[0]), whole.space.cell_dofs, mesh.fem
    seen = 0
    for d in range(M.domains):
        ours, rows = subdomain(M, d)
        inside = np.zeros(whole.space.n, bool)
        inside[free[rows]] = inside[whole._given[0]] = True
        cells = inside[dofs].all(axis=1) & ~whole._given[0][dofs].all(axis=1)
        a, b = f.f2t
        cut = (b >= 0) & (cells[a] != cells[b])
        groups = {"cut": f.facets.T[cut]}
        for name in walls:
            kept = mesh.boundaries[name]
            groups[name] = f.facets.T[kept[cells[a[kept]]]]
        part = h.Mesh(mesh.points, shape, mesh.cells[cells], groups=groups)
        own = h.Helmholtz(part, MEDIUM, {"cut": h.Absorbing(), "zmin": walls["zmin"],
                                         **({"xmax": walls["xmax"]} if len(groups["xmax"]) else {})}, degree=degree)
        K, W, B = own.matrices
        theirs = np.flatnonzero(~own._given[0])
        A = (K - OMEGA ** 2 * W + 1j * OMEGA * B)[theirs][:, theirs].toarray()
        place = own.space.points[theirs], whole.space.points[free[rows]]
        order = [np.lexsort(np.round(points, 9).T) for points in place]
        assert np.allclose(place[0][order[0]], place[1][order[1]])
        assert abs(A[np.ix_(order[0], order[0])] - ours[np.ix_(order[1], order[1])]).max() <= 1e-12 * abs(A).max()
        seen += len(cells) > cells.sum() > 0
    assert seen == 3


@pytest.mark.parametrize("condition", ["second_order", "two_sided"])
def test_optimised_conditions_on_a_plane(condition):
    """Two slabs of a duct: on Γ, the line mass and stiffness with the coefficients of the formulas."""
    mesh = h.box((11, 8), upper=(1.1, 0.8))
    problem = h.Helmholtz(mesh, h.Medium(speed=340.0, density=1.2))
    text = "schwarz(domains=2, overlap=1, inner=jacobi, transmission={})"
    omega = 2 * np.pi * 400
    robin, _ = bound(problem, text.format("robin"), omega)
    other, _ = bound(problem, text.format(condition), omega)
    k = omega / 340
    h_, H = 0.1, 0.1 * (len(robin.copies) / 2) ** 0.5
    alpha, beta = optimised(k, h_, H)
    assert alpha.real == 0 and 0 < alpha.imag < k < beta
    ones = np.ones(9)
    line = sp.diags([ones[1:], ones * 4, ones[1:]], [-1, 0, 1]).toarray() * h_ / 6
    stiff = sp.diags([-ones[1:], ones * 2, -ones[1:]], [-1, 0, 1]).toarray() / h_
    line[[0, -1], [0, -1]] /= 2
    stiff[[0, -1], [0, -1]] /= 2
    slabs = mesh.points[:, 0]
    for d in (0, 1):
        (ours, rows), (plain, _) = subdomain(other, d), subdomain(robin, d)
        edge = slabs[rows].max() if slabs[rows].max() < 1.1 - 1e-9 else slabs[rows].min()
        on = np.flatnonzero(abs(slabs[rows] - edge) < 1e-9)
        on = on[np.argsort(mesh.points[rows[on], 1])]
        s = alpha if d == 0 else beta
        expected = ((alpha * beta - k ** 2) / (alpha + beta) * line + stiff / (alpha + beta)
                    if condition == "second_order" else s * line)
        found = (ours - plain)[np.ix_(on, on)]
        assert np.allclose(found, (expected - 1j * k * line) / 1.2, rtol=1e-9, atol=1e-12 * abs(expected).max())
        off = ours - plain
        off[np.ix_(on, on)] = 0
        assert abs(off).max() <= 1e-12 * abs(found).max()


@pytest.fixture(scope="module")
def lake():
    """Eight wavelengths square, sound leaves at two sides: 64 × 64 cells, 8 nodes a wavelength."""
    return h.Helmholtz(h.box((64, 64), upper=(8.0, 8.0)), boundary={"xmax": h.Absorbing(), "ymin": h.Absorbing()})


def count(problem, precond, method="gmres(restart=400)", **more):
    r = problem.response("xmin", (0.5, 0.5), [343.0], precond=precond, method=method, rtol=1e-8, maxiter=900, **more)
    return r.points[0].result


def test_conditions_let_waves_pass(device, lake):
    """Open ends in place of clamped ones: less than half the iterations; the mesh's condition and the rows' agree."""
    cudss_or_skip(device)                        # the subdomains' block diagonal has more than 4000 rows
    text = "schwarz(domains=16, partition=graph, inner=direct, transmission={}, overlap={})"
    clamped = count(lake, text.format("dirichlet", 2), device=device)
    K, M, B = lake.matrices
    omega = 2 * np.pi * 343
    A = (K - omega ** 2 * M + 1j * omega * B).tocsr()
    rows = swell.solve(A, lake._sound("xmin").constant * 1j * omega, method="gmres(restart=400)", rtol=1e-8, device=device,
                       precond=text.format("robin", 2))
    for condition in ("robin", "second_order"):
        open_ = count(lake, text.format(condition, 2), device=device)
        assert open_.converged and open_.iterations < 0.6 * clamped.iterations
        assert "transmission from the mesh" in str(open_)
    assert rows.converged and rows.iterations < 0.6 * clamped.iterations and "from the rows of A" in str(rows)


def test_weighted_schwarz_and_the_shift_serve_cocg(device, lake):
    """Where ILU(0) of A fails, waves dominate: that of the shifted operator, or subdomains that waves leave."""
    cudss_or_skip(device)                        # the subdomains' block diagonal has more than 4000 rows
    plain, shifted = (count(lake, p, "cocg", device=device) for p in ("ilu0", "shifted_laplacian"))
    assert not plain.converged and shifted.converged
    text = "schwarz(domains=16, partition=graph, inner=direct, transmission=robin, kind=weighted)"
    domains = count(lake, text, "cocg", device=device)
    assert domains.converged and domains.iterations < 0.5 * shifted.iterations
    with pytest.raises(InputError, match="M = Mᵀ"):
        count(lake, text.replace("weighted", "restricted"), "cocg", device=device)


@pytest.mark.parametrize("text", ["shifted_laplacian(inner=direct)", "schwarz(domains=5, transmission=robin)",
                                  "schwarz(domains=5, transmission=two_sided, kind=weighted)"])
def test_update_from_frequency_to_frequency(device, text):
    """After `form` and `update` the preconditioner is what a fresh one is; the shift is by the consistent mass."""
    problem = h.Helmholtz(h.box((8, 6, 5)), MEDIUM, {"ymax": h.Impedance(1500)})
    M, system = bound(problem, text, OMEGA, device=device)
    with system.space.active(system.A.shape[0]):
        system.form(1.7 * OMEGA)
        M.update(system.A)
        fresh, other = bound(problem, text, 1.7 * OMEGA, device=device)
        if text.startswith("shifted"):
            A = system.A.to_scipy() + 0.5j * (1.7 * OMEGA) ** 2 * problem.matrices[1]
            assert abs(M.shifted.to_scipy() - A).max() <= 1e-14 * abs(A).max()
        else:
            assert bool((M._matrix.data == fresh._matrix.data).all())
        x = system.space.from_host(np.exp(1j * np.arange(system.A.shape[0])))
        ours, theirs = system.space.empty(x.size, x.dtype), system.space.empty(x.size, x.dtype)
        M.apply(x, ours)
        fresh.apply(x, theirs)
        assert float(abs(ours - theirs).max()) <= 1e-12 * float(abs(theirs).max())


@pytest.mark.parametrize("text, method", [("shifted_laplacian", "cocg"),
                                          ("schwarz(transmission='robin', domains=4)", "gmres")])
def test_sweeps_keep_it_while_it_serves(device, text, method):
    problem = h.Helmholtz(h.box((10, 8, 6), upper=(2.0, 1.6, 1.2)), MEDIUM, {"ymax": h.Impedance(1500)})
    band = h.band("100:140:2")
    direct = problem.response("xmin", (1, 1, 1), band, method="direct")
    r = problem.response("xmin", (1, 1, 1), band, method=method, precond=text, rtol=1e-10, device=device)
    assert r.converged and 1 <= r.setups < len(band)
    assert np.allclose(r.pressure, direct.pressure, rtol=1e-6)


def test_single_precision_and_two_media():
    mesh = h.box((8, 4, 4), upper=(2.0, 1.0, 1.0))
    mesh.regions = {"air": np.flatnonzero(mesh.centres[:, 0] < 1), "gas": np.flatnonzero(mesh.centres[:, 0] >= 1)}
    problem = h.Helmholtz(mesh, {"air": h.Medium(damping=0.05), "gas": h.Medium(260.0, 1.8, 0.05)})
    text = "schwarz(domains=2, transmission=robin, inner=jacobi)"
    wide, narrow = (subdomain(bound(problem, text, dtype=dtype)[0], 0)[0] for dtype in ("complex128", "complex64"))
    assert abs(wide - narrow).max() <= 1e-6 * abs(wide).max()


@pytest.mark.parametrize("text, words", [
    ("schwarz(transmission=open)", "'dirichlet', 'robin', 'second_order' or 'two_sided'"),
    ("schwarz(transmission=robin, overlap=0)", "overlap=1 or more"),
    ("schwarz(transmission=robin, interface=3)", "expected an Interface")])
def test_settings_that_mean_nothing(lake, text, words):
    with pytest.raises(InputError, match=words):
        count(lake, text)


def test_conditions_that_need_a_mesh(lake):
    K, M, B = lake.matrices
    A = (K - 9 * M + 3j * B).tocsr()
    with pytest.raises(InputError, match="faces between subdomains, which a matrix alone does not show"):
        swell.solve(A, np.ones(A.shape[0]), method="gmres", precond="schwarz(transmission=second_order)")
    with pytest.raises(InputError, match="without ordering and scaling"):
        swell.solve(A, np.ones(A.shape[0]), method="gmres", precond="schwarz(transmission=robin)", ordering="rcm")
    with pytest.raises(InputError, match="is complex, and the system is float64"):
        swell.solve(K, np.ones(A.shape[0]), method="gmres", precond="schwarz(transmission=robin)")
    with pytest.raises(InputError, match="faces between subdomains"):           # a sweep without a mesh has none either
        Sweep(K, M, B, method="gmres", precond="schwarz(transmission=two_sided)").solve(3.0, np.ones(A.shape[0]))


def test_the_command(tmp_path, capsys):
    from swell.cli import main
    h.box((6, 5, 4)).write(tmp_path / "box.msh")
    for precond, method in (("shifted_laplacian", "cocg"), ("schwarz(transmission='robin', domains=3)", "gmres")):
        code = main(["helmholtz", str(tmp_path / "box.msh"), "--source", "xmin", "--ear", "0.5,0.5,0.5", "--band",
                     "50:70:10", "--damping", "0.02", "--precond", precond, "--method", method])
        assert code == 0 and "3 of 3 frequencies converged" in capsys.readouterr().out


WALLS = {"xmax": h.Impedance(900 + 300j), "zmin": h.Pressure(1.0)}


@pytest.mark.parametrize("transmission", ["neumann", "robin"])
@pytest.mark.parametrize("domains", [None, 5, "two"])
def test_subdomains_add_up(transmission, domains):
    """With walls of given pressure, two media, and subdomains by number or by cell."""
    mesh = h.box((8, 5, 4), upper=(2.0, 1.3, 1.0))
    problem = h.Helmholtz(mesh, MEDIUM, WALLS)
    owner = (mesh.centres[:, 0] > 0.9).astype(int) if domains == "two" else domains
    A, _, _ = problem.system(150.0, "xmin")
    parts = h.subdomains(problem, 150.0, owner, transmission)
    assert abs(parts.assemble() - A).max() < 1e-12 * abs(A).max() and len(parts) == {None: 2, 5: 5, "two": 2}[domains]
    plain = h.subdomains(problem, 150.0, owner)
    differ = [abs(one - other).max() > 0 for one, other in zip(parts.matrices, plain.matrices, strict=True)]
    assert any(differ) == (transmission == "robin")


def test_the_former_word_for_any_number_of_subdomains():
    with pytest.warns(FutureWarning, match="domains=0 is now domains=None"):
        assert len(h.subdomains(h.Helmholtz(h.box((3, 3, 3)), MEDIUM, {}), 150.0, 0)) == 2


def test_bddc_in_the_front_end():
    """One frequency after another, as a direct solver's; plane waves save iterations."""
    problem = h.Helmholtz(h.box((12, 6, 6), upper=(2.0, 1.0, 1.0)), h.Medium(damping=0.02))
    answer = problem.response("xmin", (1.9, 0.1, 0.1), [100.0, 200.0, 250.0], method="gmres", precond="bddc(domains=8)")
    exact = problem.response("xmin", (1.9, 0.1, 0.1), [100.0, 200.0, 250.0], method="direct")
    assert all(point.result.converged for point in answer.points)
    assert abs(answer.pressure - exact.pressure).max() < 1e-4 * abs(exact.pressure).max()
    k = 2 * np.pi * 250 / 343
    waves = swell.BDDC(domains=8, near_nullspace=h.plane_waves(problem.space.points, k))
    counts = [problem.response("xmin", None, [250.0], method="cocg", precond=precond, reuse=False).points[0].result
              for precond in (swell.BDDC(domains=8), waves)]
    assert all(r.converged for r in counts) and counts[1].iterations < counts[0].iterations


def test_a_resonance_of_an_interior_names_its_frequency():
    """Two closed halves of an undamped box: the first mode of a half with zero pressure all around."""
    problem = h.Helmholtz(h.box((12, 6, 6), upper=(2.0, 1.0, 1.0)))
    two = (problem.mesh.centres[:, 0] > 1).astype(int)
    K, M, _ = problem.matrices
    parts = h.subdomains(problem, 100.0, two)
    inner = np.setdiff1d(parts.dofs[0], parts.dofs[1])
    from scipy.linalg import eigh
    frequency = np.sqrt(eigh(K[inner][:, inner].toarray(), M[inner][:, inner].toarray(),
                             eigvals_only=True, subset_by_index=[4, 4])[0]) / (2 * np.pi)
    A, b, _ = problem.system(frequency, "xmin")
    r = swell.solve(A, b, method="gmres", precond=swell.BDDC(subdomains=h.subdomains(problem, frequency, two)))
    assert not r.converged and any(f"at {frequency:.4g} Hz: take more and smaller" in note for note in r.notes)


@pytest.mark.parametrize("settings", [
    {"pml": h.PML((0.25,) * 3, (0.75,) * 3)}, {"boundary": {"zmax": h.Impedance(h.Table([50, 400], [900, 1200]))}}])
def test_subdomains_refuse_parts_that_vary_with_the_frequency(settings):
    """Their matrices would not add up to A."""
    with pytest.raises(InputError, match="not split over subdomains"):
        h.subdomains(h.Helmholtz(h.box((4, 4, 4)), **settings), 100.0, 2)


@pytest.mark.parametrize("call, words", [
    (lambda p: h.subdomains(p, 100.0, -1), "from 1 to 64"), (lambda p: h.subdomains(p, [1.0, 2.0]), "one frequency"),
    (lambda p: h.subdomains(p, 100.0, [0, 1]), "subdomain of each of 64 cells"),
    (lambda p: h.subdomains(p, 100.0, 2, "dirichlet"), "'robin' or 'neumann'"),
    (lambda p: h.plane_waves(np.zeros((3, 4)), 1.0), "points have shape"),
    (lambda p: h.plane_waves(np.zeros((3, 3)), -1.0), "positive number"),
    (lambda p: h.plane_waves(np.zeros((3, 3)), 1.0, 5), "3, 7 or 13"),
    (lambda p: h.plane_waves(np.zeros((3, 2)), 1.0, 16), "1 to 15")])
def test_bad_subdomains_and_plane_waves(call, words):
    with pytest.raises(InputError, match=words):
        call(h.Helmholtz(h.box((4, 4, 4))))
