"""Sweeps: A(ω) on each device, reuse from one frequency to the next, failures that lose nothing, what is written."""
import csv
import gc
import math
import time
import weakref
from dataclasses import replace

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from tests.conftest import space_or_skip

import swell
from swell import gallery
from swell.core.compilation import counted
from swell.core.errors import InputError, OutOfMemory
from swell.core.registry import resolve
from swell.core.stopping import Reason
from swell.pde.helmholtz import Sweep
from swell.pde.helmholtz.system import System, on_one_pattern

ITERATIVE = {"method": "bicgstab", "precond": "ilu0"}


@pytest.fixture(scope="module")
def waves():
    """K, M (damped) and B of a square of 30 × 30 cells with one side that takes sound, without a mesh."""
    K = gallery.neumann((31, 31))
    n = K.shape[0]
    M = sp.identity(n, format="csr") * (1 / 900 / (1 + 0.05j))
    B = sp.diags(np.where(np.arange(n) < 31, 1 / 30, 0)).tocsr()
    B.eliminate_zeros()
    return K, M, B


@pytest.mark.parametrize("dtype", ["complex128", "complex64"])
def test_A_on_the_device(device, dtype, waves):
    """One kernel: A = K − ω² M + iω B on the union of three patterns, to rounding."""
    K, M, B = waves
    extra = sp.csr_matrix(([0.25], ([3], [700])), K.shape)       # a place that K has not
    space = space_or_skip(device)
    with space.active(K.shape[0]):
        system = System(K, M, (B + extra).tocsr(), space, dtype)
        for omega in (0.0, 7.0, 31.0):
            system.form(omega)
            wanted = (K - omega ** 2 * M + 1j * omega * (B + extra)).tocsr()
            found = system.A.to_scipy()
            assert found.dtype == dtype and found.has_sorted_indices
            assert abs(found - wanted).max() <= 4 * np.finfo(dtype).eps * abs(wanted).max()
            x = np.exp(1j * np.arange(K.shape[0])).astype(dtype)
            out = space.empty(x.size, dtype)
            system.A.apply_adjoint(space.from_host(x), out)      # a transpose is kept, and must not be the last one's
            atol = 1e-3 if dtype == "complex64" else 1e-11
            assert np.allclose(space.to_host(out), wanted.conj().T @ x, rtol=0, atol=atol)


def test_one_pattern():
    K = sp.csr_matrix(np.array([[2.0, -1, 0], [-1, 2, -1], [0, -1, 2]]))
    M = sp.coo_matrix(([1.0, 2.0, 3.0], ([0, 2, 2], [2, 0, 0])), K.shape)       # a duplicate, and places of its own
    indptr, indices, (k, m, b), _ = on_one_pattern(K, M, sp.csr_matrix(K.shape))
    whole = [sp.csr_matrix((v, indices, indptr), K.shape).toarray() for v in (k, m, b)]
    assert np.array_equal(whole[0], K.toarray()) and np.array_equal(whole[1], M.toarray()) and not whole[2].any()
    assert indptr.tolist() == [0, 3, 6, 9]


@pytest.mark.parametrize("settings", [{"method": "direct"}, ITERATIVE,
                                      {"method": "gmres(restart=400)", "precond": "jacobi"}],
                         ids=lambda s: "-".join(s.values()))
def test_sweep_solves_each_frequency(device, settings, waves):
    """True residuals by SciPy; the same with and without reuse."""
    K, M, B = waves
    b = np.zeros(K.shape[0], complex)
    b[17] = 1 - 2j
    plain, reusing = (Sweep(K, M, B, **settings, rtol=1e-9, device=device, reuse=reuse) for reuse in (False, True))
    for omega in np.linspace(2, 12, 9):
        A = (K - omega ** 2 * M + 1j * omega * B).tocsr()
        for sweep in (plain, reusing):
            r = sweep.solve(omega, b)
            x = sweep.space.to_host(r.x)
            assert r.converged, (omega, r.reason)
            assert np.linalg.norm(b - A @ x) <= 1.01e-9 * np.linalg.norm(b)
    if settings is ITERATIVE:
        assert plain.setups == 9 and reusing.setups < 9


@pytest.mark.parametrize("dtype", ["complex128", "complex64"])
def test_the_start_is_the_best_combination(device, dtype, waves):
    """The residual of x₀ is the least that earlier solutions allow; dependent ones and few of them do no harm."""
    from swell.pde.helmholtz.starting_guess import StartingGuess
    K, M, B = waves
    space, random = space_or_skip(device), np.random.default_rng(3)
    n, tolerance = K.shape[0], 1e-6 if dtype == "complex128" else 3e-3
    X = random.standard_normal((5, n)) + 1j * random.standard_normal((5, n))
    X[3] = X[1] + 1e-9 * X[3]
    with space.active(n):
        system = System(K, M, B, space, dtype)
        system.form(5.0)
        A = system.A.to_scipy().astype(complex)
        outside = random.standard_normal(n) * 0.1
        for most in (1, 3, 8):
            guess = StartingGuess(space, most)
            b = A @ (X[4] - 2j * X[2] * (most > 1)) + outside
            device_b = space.from_host(b.astype(dtype))
            assert guess.of(system.A, device_b) is None
            for x in X:
                guess.add(space.from_host(x.astype(dtype)))
            x0 = space.to_host(guess.of(system.A, device_b)).astype(complex)
            best = A @ (X[-most:] if most < 4 else np.delete(X, 3, axis=0)).T    # X[3] beside X[1] is noise
            least = np.linalg.norm(b - best @ np.linalg.lstsq(best, b, rcond=None)[0])
            assert np.linalg.norm(b - A @ x0) <= least + tolerance * np.linalg.norm(b)


@pytest.mark.parametrize("dtype", ["complex128", "complex64"])
def test_the_reduced_model_is_the_projection(device, dtype, waves):
    """x₀ solves Vᵀ A V c = Vᵀ b for each ω, on the span of real and imaginary parts; dependent and zero solutions add
    nothing, and a full basis keeps the latest solutions."""
    from swell.pde.helmholtz.reduced_model import ReducedModel
    K, M, B = waves
    space, random, n = space_or_skip(device), np.random.default_rng(3), K.shape[0]
    X = random.standard_normal((n, 6)) + 1j * random.standard_normal((n, 6))
    X[:, 2] = 0
    X[:, 3] = X[:, 0] * 2j
    b = random.standard_normal((n, 2)) + 0j
    with space.active(n):
        system = System(K, M, B, space, dtype)
        system.form(5.0)
        model = ReducedModel(system, 5, 1)
        assert model.of(5.0, space.from_host(b.astype(dtype))) is None
        for group in (X[:, :3], X[:, 3:5]):
            model.add(space.from_host(np.ascontiguousarray(group.astype(dtype))))
        assert len(model) == 6 and system.omega == 5.0       # of the columns 0, 1 and 4
        parts = np.hstack([X[:, [0, 1, 4]].real, X[:, [0, 1, 4]].imag])
        for omega in (5.0, 9.0):
            A = K - omega ** 2 * M + 1j * omega * B
            wanted = parts @ np.linalg.solve(parts.T @ (A @ parts), parts.T @ b)
            found = space.to_host(model.of(omega, space.from_host(b.astype(dtype))))
            assert np.linalg.norm(found - wanted) <= (1e-9 if dtype == "complex128" else 1e-3) * np.linalg.norm(wanted)
        for k in range(4):                       # more than there is room for
            late = random.standard_normal((n, 2)) + 1j * random.standard_normal((n, 2))
            model.add(space.from_host(late.astype(dtype)))
            assert len(model) <= 10
        V = space.to_host(model._V)
        assert np.allclose(V @ V.T, np.eye(len(V)), atol=1e-12 if dtype == "complex128" else 1e-5)
        inside = late - V.T @ (V @ late)
        assert np.linalg.norm(inside) <= (1e-10 if dtype == "complex128" else 1e-4) * np.linalg.norm(late)


def test_sources_share_what_they_find(device, waves):
    """The solutions of all sources start each of them: after some frequencies hardly an iteration is left."""
    K, M, B = waves
    b = np.zeros((K.shape[0], 5), complex)
    b[np.arange(5) * 170 + 30, np.arange(5)] = 1
    counts = {}
    for remember in (0, 32):
        sweep = Sweep(K, M, B, method="cocg", precond="jacobi", rtol=1e-6, remember=remember, device=device)
        counts[remember] = []
        for omega in np.linspace(8, 10, 9):
            r, A = sweep.solve(omega, b), K - omega ** 2 * M + 1j * omega * B
            x = sweep.space.to_host(r.x)
            assert r.converged and (np.linalg.norm(b - A @ x, axis=0) <= 1.01e-6).all()
            counts[remember].append(r.iterations)
    assert sum(counts[32][5:]) < 0.1 * sum(counts[0][5:]), counts


def test_a_start_is_never_worse_than_none(device):
    """Without damping A is indefinite, and the model's answer may be far off near its resonances."""
    K = gallery.neumann((15, 15))
    M, B = sp.eye_array(225, format="csr") / 225, sp.csr_array((225, 225))
    sweep = Sweep(K, M, B, method="cocg", precond="jacobi", rtol=1e-6, remember=8, maxiter=400, device=device)
    b = np.eye(225)[:, [7, 100, 180]] + 0j
    with np.errstate(all="ignore"):
        starts = [one.history[0] for omega in np.linspace(5, 25, 40) for one in sweep.solve(omega, b)]
    assert max(starts) <= 1 + 1e-12 and min(starts) < 1e-2


def test_a_sweep_of_its_own_choice_takes_multigrid(waves, monkeypatch):
    """…for waves that the advisor gives to cocg; if multigrid fails, the advisor's choice takes over."""
    from swell.advisor import choose
    K, M, B = waves
    monkeypatch.setattr(choose, "choose", lambda A, named, resident=True: ([
        replace(named, method=resolve("method", "cocg"), precond=resolve("precond", "jacobi"))], []))
    sweep, b = Sweep(K, M, B, rtol=1e-6), np.eye(K.shape[0])[:, 7].copy()
    r = sweep.solve(9.0, b)
    assert r.converged and (r.method, r.precond) == ("cocg", "shifted_laplacian")
    stopped = sweep.solve(12.0, b, monitor=lambda k, residual: True)
    assert stopped.reason == Reason.STOPPED                              # which is no failure
    assert sweep.solve(12.0, b).precond == "shifted_laplacian"
    sweep.solver.stop_by(swell.Stopping(rtol=1e-6, maxiter=1))   # as if multigrid failed
    r = sweep.solve(15.0, b)
    assert r.converged and (r.method, r.precond) == ("cocg", "jacobi") and sweep.solve(15.1, b).precond == "jacobi"


def test_the_setup_that_multigrid_replaces(waves, monkeypatch):
    """It is freed, and counted, as is the one that takes over where multigrid fails."""
    from swell import api
    from swell.advisor import choose
    K, M, B = waves
    monkeypatch.setattr(choose, "choose", lambda A, named, resident=True: ([
        replace(named, method=resolve("method", "cocg"), precond=resolve("precond", "jacobi"))], []))
    prepare, made = api.prepare, []

    def noting(*arguments, **named):
        solver = prepare(*arguments, **named)
        made.append(weakref.ref(solver))
        return solver

    monkeypatch.setattr(api, "prepare", noting)
    sweep, b = Sweep(K, M, B, rtol=1e-6), np.eye(K.shape[0])[:, 7].copy()
    assert sweep.solve(9.0, b).precond == "shifted_laplacian" and sweep.setups == len(made) == 2
    gc.collect()
    assert [solver() is None for solver in made] == [True, False]
    sweep.solver.stop_by(swell.Stopping(rtol=1e-6, maxiter=1))   # as if multigrid failed
    assert sweep.solve(9.1, b).precond == "jacobi" and sweep.setups == 4     # multigrid was renewed first
    gc.collect()
    assert [solver() is None for solver in made] == [True, True, False]


def test_reuse_saves_iterations(waves):
    """On a fine band the start from earlier solutions does most of the work, and is never worse than none."""
    K, M, B = waves
    b = np.zeros(K.shape[0], complex)
    b[400] = 1
    counts = {}
    for remember in (0, 8):
        sweep = Sweep(K, M, B, **ITERATIVE, rtol=1e-6, remember=remember)
        results = [sweep.solve(omega, b) for omega in np.linspace(8, 10, 30)]
        assert all(r.converged for r in results) and all(r.history[0] <= 1 + 1e-12 for r in results)
        counts[remember] = sum(r.iterations for r in results)
    assert counts[8] < 0.5 * counts[0], counts


@pytest.mark.parametrize("columns", [(), (2,)])
def test_a_sweep_that_begins_without_sound(columns, waves):
    """b = 0 takes no iterations, and tells nothing about what a preconditioner is worth."""
    K, M, B = waves
    sweep, b = Sweep(K, M, B, **ITERATIVE), np.ones((K.shape[0], *columns), complex)
    for omega, strength in ((8.0, 0), (8.1, 1), (8.2, 0), (8.3, 1)):
        r = sweep.solve(omega, strength * b)
        assert np.all(r.converged) and (not strength) == (not np.any(r.x)), omega


def test_keeping_the_preconditioner():
    """``update(keep_preconditioner=True)``: the new matrix with the old factors; the answer is the new one's."""
    A, b = gallery.convection_diffusion((20, 20)), np.ones(400)
    s = swell.prepare(A, method="gmres", precond="ilu0", rtol=1e-10)
    first = s.solve(b)
    A2 = (A + sp.diags(np.linspace(0, 3, 400))).tocsr()
    s.update(A2, keep_preconditioner=True)
    kept = s.solve(b)
    s.update(A2)
    fresh = s.solve(b)
    for r in (kept, fresh):
        assert r.converged and np.linalg.norm(b - A2 @ r.x) <= 1.01e-10 * np.linalg.norm(b)
    assert fresh.iterations < kept.iterations and first.converged
    direct = swell.prepare(A, method="direct")
    direct.update(A2, keep_preconditioner=True)                  # its factors are the method: made anew
    assert direct.solve(b).iterations <= 2 and np.linalg.norm(b - A2 @ direct.solve(b).x) < 1e-8


def test_later_choices_are_updated_when_they_are_tried():
    """The advisor's later choices take new values too, though only when their turn comes."""
    A, b = gallery.convection_diffusion((20, 20)), np.ones(400)
    s = swell.prepare(A, maxiter=1)
    assert s.solve(b).method != "bicgstab"
    A2 = (A * 2).tocsr()
    s.update(A2)
    again = s.solve(b)
    assert again.converged and np.linalg.norm(b - A2 @ again.x) <= 1.01e-8 * np.linalg.norm(b)


def test_a_sweep_stays_with_the_choice_that_works(waves, nothing_outright):
    """Where the advisor's first choice fails and a later one converges, the next frequency begins with that one."""
    K, M, B = waves
    sweep, b = Sweep(K, M, B, maxiter=3), np.ones(K.shape[0], complex)
    first, second = sweep.solve(9.0, b), sweep.solve(9.5, b)
    assert first.converged and first.attempts and first.method == "direct"
    assert second.converged and not second.attempts and second.method == "direct"


def test_a_failed_solve_with_an_old_preconditioner_is_repeated(waves):
    K, M, B = waves
    sweep = Sweep(K, M, B, method="gmres", precond="direct", rtol=1e-10, maxiter=4, remember=0)
    assert sweep.solve(2.0, b := np.ones(K.shape[0], complex)).converged
    far = sweep.solve(25.0, b)                                   # the factors of ω = 2 serve it no more
    assert far.converged and sweep.setups == 2 and "repeated with a new preconditioner" in far.notes[-1]


@pytest.mark.data
@pytest.mark.parametrize("omega, b, message", [
    (1.0, np.ones((400, 2, 1)), r"shape \(400, 2, 1\): expected \(400,\)"),
    (1.0, np.ones(30), r"shape \(30,\): expected"),
    (np.nan, np.ones(400), "omega=nan"), ("1", np.ones(400), "omega='1'"), (1j, np.ones(400), "angular frequency")])
def test_a_right_hand_side_or_frequency_that_does_not_fit(omega, b, message):
    """Also after a solution is remembered, from which a start is made: that wrote past its arrays."""
    K = gallery.poisson2d(20)
    sweep = Sweep(K, sp.eye_array(400, format="csr"), 0.1 * sp.eye_array(400, format="csr"), **ITERATIVE)
    assert sweep.solve(0.5, np.ones(400)).converged
    with pytest.raises(InputError, match=message):
        sweep.solve(omega, b)
    assert sweep.solve(0.6, np.ones(400)).converged


@pytest.mark.parametrize("setting", [{"remember": True}, {"remember": -1}, {"reuse": "no"}])
def test_settings_of_reuse_that_mean_nothing(setting):
    K = gallery.poisson2d(4)
    with pytest.raises(InputError, match=next(iter(setting))):
        Sweep(K, K, K, **setting)


def test_the_real_cabin(data):
    """The mesh of the data's K, M and B gives them back; a sweep on them has true residuals, and reuse saves setups.

    Iterations it need not save: an older preconditioner costs some, a start from remembered solutions saves some, and
    which of the two prevails depends on measured times."""
    pytest.importorskip("skfem")
    from swell.pde import helmholtz as h
    K, M, B = (sp.load_npz(data / "car_cabin" / f"{name}.npz") for name in "KMB")
    given = scipy.io.loadmat(data / "car_cabin" / "carinterior.mat")["mesh"][0, 0]
    number = np.zeros(int(given["Nodes"][:, 0].max()) + 1, int)
    number[given["Nodes"][:, 0].astype(int)] = np.arange(len(given["Nodes"]))
    mesh = h.Mesh(given["Nodes"][:, 1:], "hexahedron", number[given["Elements"][:, 4:].astype(int)])
    problem = h.Helmholtz(mesh, h.Medium(1.0, 1.0), {"boundary": h.Impedance(1.0)})
    for ours, theirs in zip(problem.matrices, (K, M, B)):
        assert ours.nnz == theirs.nnz and abs(ours - theirs).max() <= 1e-12 * abs(theirs).max()
    b = np.zeros(K.shape[0], complex)
    b[1000] = 1
    iterations, sweeps = {}, {}
    for reuse in (False, True):
        sweep = sweeps[reuse] = Sweep(K, M, 0.05 * B, **ITERATIVE, rtol=1e-6, reuse=reuse)
        iterations[reuse] = 0
        for f in np.arange(100, 115, 3.0):
            k = 2 * math.pi * f / 340
            r = sweep.solve(k, b)
            A = K - k * k * M + 1j * k * 0.05 * B
            assert r.converged and np.linalg.norm(b - A @ r.x) <= 1.01e-6
            iterations[reuse] += r.iterations
    assert sweeps[True].setups < sweeps[False].setups and iterations[True] < 1.2 * iterations[False]


@pytest.fixture(scope="module")
def room():
    pytest.importorskip("skfem", reason="needs scikit-fem: pip install 'swell[pde]'")
    from swell.pde import helmholtz as h
    return h.Helmholtz(h.box((10, 8, 6), upper=(1.0, 0.8, 0.6)), h.Medium(damping=0.02), {"zmax": h.Impedance(1000)})


EAR = (0.72, 0.51, 0.33)


def test_response_on_each_device(device, room):
    """The whole way on each device; ears, levels and files belong together."""
    band = np.arange(100.0, 180.0, 20.0)
    r = room.response("xmin", [EAR, (0.1, 0.1, 0.1)], band, device=device, **ITERATIVE, rtol=1e-9, fields=[140.0])
    assert r.converged and r.pressure.shape == r.level.shape == (4, 2) and np.array_equal(r.frequencies, band)
    exact = room.response("xmin", [EAR, (0.1, 0.1, 0.1)], band, method="direct", reuse=False)
    np.testing.assert_allclose(r.pressure, exact.pressure, rtol=1e-6)
    np.testing.assert_allclose(r.level, 20 * np.log10(abs(r.pressure) / math.sqrt(2) / 20e-6))
    assert r.fields[140.0].at(EAR) == pytest.approx(r.pressure[2, 0], rel=1e-9)
    assert "4 of 4 frequencies converged" in str(r) and "140 Hz, converged" in str(r.fields[140.0])


def test_compiling_is_told_apart(room, monkeypatch):
    """A first call compiles for a minute what then takes milliseconds."""
    solve = Sweep.solve

    def compiling(*arguments):
        with counted():
            time.sleep(2)
        return solve(*arguments)
    room.response("xmin", EAR, [100.0], **ITERATIVE)
    monkeypatch.setattr(Sweep, "solve", compiling)
    r = room.response("xmin", EAR, [100.0], **ITERATIVE)
    assert r.points[0].seconds < 2 <= r.points[0].compiling and ", compiling kernels 2 s" in str(r)


@pytest.mark.parametrize("degree", [1, 2])
def test_walls_of_given_pressure(device, degree):
    """The lifted system: given values are kept, and ω = 0 is then no problem."""
    pytest.importorskip("skfem", reason="needs scikit-fem: pip install 'swell[pde]'")
    from swell.pde import helmholtz as h
    mesh = h.box((12, 2), upper=(1.0, 0.2), shape="triangle")
    duct = h.Helmholtz(mesh, boundary={"xmin": h.Pressure(2.0), "xmax": h.Pressure(lambda x: 4.0 + 0 * x[:, 0])},
                       degree=degree)
    r = duct.response(None, (0.25, 0.1), [0.0, 60.0], **ITERATIVE, rtol=1e-10, device=device, fields=[0.0])
    assert r.converged and r.pressure[0, 0] == pytest.approx(2.5)              # linear at rest
    np.testing.assert_allclose(r.fields[0.0].p, 2 + 2 * duct.space.points[:, 0], rtol=1e-8)


def test_files(room, tmp_path):
    meshio = pytest.importorskip("meshio")
    r = room.response("xmin", EAR, [100.0, 150.0], method="direct", fields=[150.0])
    r.write_csv(tmp_path / "r.csv")
    r.plot(tmp_path / "r.png")
    r.fields[150.0].write(tmp_path / "p.vtu")
    rows = list(csv.DictReader((tmp_path / "r.csv").open()))
    assert [row["frequency_Hz"] for row in rows] == ["100", "150"] and all(row["converged"] == "1" for row in rows)
    written = complex(float(rows[1]["p_real_Pa"]), float(rows[1]["p_imag_Pa"]))
    assert written == pytest.approx(r.pressure[1, 0], rel=1e-8)
    assert float(rows[1]["level_dB"]) == pytest.approx(r.level[1, 0])
    assert (tmp_path / "r.png").read_bytes().startswith(b"\x89PNG")
    read = meshio.read(tmp_path / "p.vtu")
    assert len(read.cells[0].data) == 480 and read.cells[0].type == "hexahedron"
    np.testing.assert_allclose(read.point_data["p_real"] + 1j * read.point_data["p_imag"], r.fields[150.0].p)
    np.testing.assert_allclose(read.points, room.mesh.points)
    with pytest.raises(InputError, match="extension is .txt, expected .csv"):
        r.write_csv(tmp_path / "r.txt")
    with pytest.raises(InputError, match="extension is .svg, expected .png"):
        r.plot(tmp_path / "r.svg")
    with pytest.raises(InputError, match="extension is .vtk, expected .vtu"):
        r.fields[150.0].write(tmp_path / "p.vtk")


def test_single_precision_has_a_tolerance_that_it_attains(room):
    r = room.response("xmin", EAR, [60.0, 80.0], dtype="complex64")
    assert r.converged and all(1e-6 < p.result.tolerance < 1e-3 for p in r.points)


def test_a_long_sweep_that_costs_much_recommends_deflation(room):
    for precond, count, recommended in (("jacobi", 20, True), ("jacobi", 19, False),
                                        ("deflation(inner=jacobi)", 20, False)):
        r = room.response("xmin", EAR, np.linspace(300, 500, count), method="cocg", precond=precond, remember=0)
        assert r.converged and any("precond='deflation'" in note for note in r.notes) == recommended


def test_walls_that_give_one_edge_two_pressures_are_told_of():
    from swell.pde import helmholtz as h
    mesh = h.box((4, 4, 4))
    same, other = (h.Helmholtz(mesh, boundary={"xmin": h.Pressure(1.0), "ymin": h.Pressure(p)}) for p in (1.0, 2.0))
    assert not any("meets another wall" in note for note in same.response(None, (0.6, 0.6, 0.6), [50.0]).notes)
    told, = [note for note in other.response(None, (0.6, 0.6, 0.6), [50.0]).notes if "meets another wall" in note]
    assert "boundary 'ymin'" in told and "at 5 points" in told


def test_a_sweep_goes_on_after_a_failure(room, tmp_path):
    """Frequencies that fail are marked everywhere; the others are there."""
    r = room.response("xmin", EAR, [10.0, 900.0, 20.0], method="bicgstab", precond="ilu0", maxiter=11, remember=0)
    assert [p.converged for p in r.points] == [True, False, True] and not r.converged
    assert r.failed[0].reason is Reason.MAXITER and "raise maxiter" in r.failed[0].advice
    assert "900 Hz NOT converged (MAXITER)" in str(r) and "2 of 3 frequencies converged" in str(r)
    others = room.response("xmin", EAR, np.arange(1.0, 11.0), method="bicgstab", precond="ilu0", maxiter=0, remember=0)
    assert "1, 2, 3, 4, 5, 6, 7, 8 and 2 more, Hz NOT converged (MAXITER)" in str(others)
    assert any("too coarse above" in note and "nodes a wavelength" in note for note in r.notes)
    r.write_csv(tmp_path / "r.csv")
    rows = list(csv.DictReader((tmp_path / "r.csv").open()))
    assert [row["reason"] for row in rows] == ["CONVERGED", "MAXITER", "CONVERGED"]
    r.plot(tmp_path / "r.png")


def test_an_interrupted_sweep_keeps_what_is_done(room):
    seen = []
    r = room.response("xmin", EAR, [50.0, 100.0, 150.0], method="direct",
                      watch=lambda p: seen.append(p) or len(seen) == 2)
    assert len(r.points) == 2 and not r.converged and "stopped after 100 Hz" in r.notes[-1]

    def interrupt(point):
        raise KeyboardInterrupt
    r = room.response("xmin", EAR, [50.0, 100.0], method="direct", watch=interrupt)
    assert len(r.points) == 1 and "interrupted at 50 Hz: 1 of 2" in r.notes[-1]


@pytest.mark.parametrize("error, note", [(KeyboardInterrupt(), "interrupted at 100 Hz: 1 of 3"),
                                         (OutOfMemory("no room"),
                                          "ended at 100 Hz, 1 of 3 frequencies were solved: no room")])
def test_what_ends_a_sweep_loses_nothing(room, monkeypatch, error, note):
    from swell.pde.helmholtz import sweeping
    solve, calls = sweeping.Sweep.solve, []

    def second_fails(self, omega, b, monitor=None):
        calls.append(omega)
        if len(calls) == 2:
            raise error
        return solve(self, omega, b, monitor)
    monkeypatch.setattr(sweeping.Sweep, "solve", second_fails)
    r = room.response("xmin", EAR, [50.0, 100.0, 150.0], method="direct")
    assert len(r.points) == 1 and r.points[0].converged and not r.converged and note in r.notes[-1]
    if isinstance(error, OutOfMemory):                           # with nothing done there is nothing to keep
        calls[:] = [0]
        with pytest.raises(OutOfMemory):
            room.response("xmin", EAR, [50.0], method="direct")


def test_resonance_without_damping():
    """An undamped room at a resonance of its own matrices: the solve fails, and the advice says why."""
    pytest.importorskip("skfem", reason="needs scikit-fem: pip install 'swell[pde]'")
    from swell.pde import helmholtz as h
    n = 8
    step = 1 / n
    at = 343 * math.sqrt(6 / step ** 2 * (1 - math.cos(math.pi / n)) / (2 + math.cos(math.pi / n))) / (2 * math.pi)
    room = h.Helmholtz(h.box((n, n)), h.Medium(343.0, 1.2))
    r = room.response((0.1, 0.1), (0.9, 0.8), [100.0, at], method="bicgstab", precond="ilu0", rtol=1e-10, maxiter=300)
    assert r.points[0].converged
    assert any("nothing takes energy out" in note for note in r.notes)
    assert not r.points[1].converged and "resonance" in r.points[1].advice and "damping" in r.points[1].advice
    assert "at 100 Hz" in str(r)                                 # the loudest, of what was solved
    close = room.response((0.1, 0.1), (0.9, 0.8), [100.0, at * (1 + 1e-9), at * 1.01], method="direct")
    assert close.converged and [bool(p.advice) for p in close.points] == [False, True, False]
    assert "so close to a resonance" in str(close) and "172.604 Hz: nothing damps" in str(close)
    strict = room.response((0.1, 0.1), (0.9, 0.8), [100.0], method="direct", rtol=1e-30)      # what rounding forbids
    assert strict.failed[0].reason is Reason.ATTAINABLE_ACCURACY and "resonance" not in strict.failed[0].advice
    early = room.response((0.1, 0.1), (0.9, 0.8), [100.0], method="bicgstab", maxiter=2).failed[0]
    assert early.reason is Reason.MAXITER and "raise maxiter" in early.advice and "resonance" in early.advice
    damped = h.Helmholtz(room.mesh, h.Medium(343.0, 1.2, 1e-8)).response((0.1, 0.1), (0.9, 0.8), [at], method="direct")
    assert damped.converged and not damped.points[0].advice
