"""The resident CG: cg's iterates, judged as cg's are, in launches of many iterations. Most of this needs a GPU."""
from __future__ import annotations

import os
import signal
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spla
from tests.support.cases import badly_scaled, indefinite, neumann, rng
from tests.support.solves import allocations_of_a_second_run, true_residual

import swell
from swell import gallery
from swell.advisor import choose
from swell.core.configuration import Configuration
from swell.core.errors import DoesNotFit
from swell.core.stopping import Reason, Stopping
from swell.formats import parts


@pytest.fixture(params=["cluster", "grid"])
def gpu(monkeypatch, request):
    """A GPU that can run it, and that cuts small systems into parts, too: those of a cluster, or not."""
    pytest.importorskip("cupy", reason="needs CuPy and a GPU")
    monkeypatch.setattr(parts, "ONE_PART", 0)
    if request.param == "grid":
        monkeypatch.setattr(parts, "ONE_CLUSTER", 0)
    from swell.core.devices import make_space
    space = make_space("cuda")
    if not space.bulk_copies:
        pytest.skip("needs a GPU of compute capability 9.0")
    return space


def uneven(n=40, dtype="float64"):
    """Poisson's matrix with an uneven diagonal, Hermitian if complex, and a right-hand side."""
    A = gallery.poisson2d(n) + sp.diags_array(rng().random(n * n))
    if np.dtype(dtype).kind == "c":
        phase = sp.diags_array(np.exp(1j * rng().uniform(0, 6, n * n)))
        A = phase @ A @ phase.conj()
    A = sp.csr_array(A).astype(dtype)
    return A, (A @ rng().standard_normal(n * n)).astype(dtype)


def both(A, b, **settings):
    """Results of cg and of the resident cg, with few iterations a launch."""
    return [swell.solve(A, b, method=m, device="cuda", **settings) for m in ("cg", swell.ResidentCG(steps=8))]


# -- without a GPU ---------------------------------------------------------------------------------------------------

def test_a_cpu_is_refused():
    with pytest.raises(swell.InputError, match="resident_cg keeps the multiprocessors of a GPU busy.*method='cg'"):
        swell.solve(gallery.poisson2d(5), np.ones(25), method="resident_cg")


def test_a_matrix_without_entries_is_refused():
    A = gallery.poisson2d(5)
    operator = spla.LinearOperator(A.shape, matvec=lambda x: A @ x, dtype=A.dtype)
    with pytest.raises(swell.InputError, match="resident_cg needs a matrix with entries.*method='cg'"):
        swell.solve(operator, np.ones(25), method="resident_cg")


def test_a_format_is_refused():
    with pytest.raises(swell.InputError, match="resident_cg stores the matrix in its own way"):
        swell.solve(gallery.poisson2d(5), np.ones(25), method="resident_cg", format="sell")


@pytest.mark.parametrize("steps", [0, -1, 1.5])
def test_settings(steps):
    with pytest.raises(swell.InputError, match="steps"):
        swell.ResidentCG(steps=steps)


@pytest.mark.parametrize("change, resident", [({}, True), ({"rows": 1_300_000}, False), ({"bulk_copies": False}, False),
                                              ({"name": "cpu"}, False), ({"rows": 2_000_000, "dtype": "float32"}, True),
                                              ({"scaling": None}, False), ({"method": "bicgstab"}, False)])
def test_what_the_advisor_makes_of_scaled_cg(change, resident):
    known = {"name": "cuda", "bulk_copies": True, "rows": 1_200_000, "dtype": "float64", "method": "cg",
             "scaling": "jacobi", **change}
    space = SimpleNamespace(name=known["name"], bulk_copies=known["bulk_copies"], multiprocessors=132)
    A = SimpleNamespace(shape=(known["rows"],) * 2, dtype=np.dtype(known["dtype"]), space=space)
    scaling = known["scaling"] and choose.setting("scaling", known["scaling"])
    method = choose.setting("method", known["method"])
    chosen = choose._resident(A, Configuration(method, scaling=scaling, why=("it is",)))
    assert (chosen.name("method") == "resident_cg") == resident
    assert ("resident_cg" in chosen.why[0]) == resident and (chosen.format is not None) == resident


def test_the_advisor_goes_on_where_it_does_not_fit(monkeypatch):
    asked = []

    class Large:
        def build(self, csr):
            raise DoesNotFit("too large")

    def chooses(A, named, resident=True):
        asked.append(resident)
        method = choose.setting("method", "cg")
        return [Configuration(method, format=Large() if resident else None)], []
    monkeypatch.setattr(choose, "choose", chooses)
    assert swell.solve(gallery.poisson2d(5), np.ones(25)).converged and asked == [True, False]


# -- with one --------------------------------------------------------------------------------------------------------

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")
on_gpu = pytest.mark.gpu


@on_gpu
@pytest.mark.parametrize("dtype, rtol", [("float32", 1e-5), ("float64", 1e-10), ("complex64", 1e-5),
                                         ("complex128", 1e-10)])
@pytest.mark.parametrize("scaling", [None, "jacobi"])
def test_the_iterates_of_cg(gpu, dtype, rtol, scaling):
    A, b = uneven(60, dtype)
    cg, resident = both(A, b, scaling=scaling, rtol=rtol)
    assert resident.converged and true_residual(A, b, resident.x) <= 1.5 * rtol
    assert abs(cg.iterations - resident.iterations) <= 1 and resident.x.dtype == dtype
    few = slice(0, 20)
    assert resident.history[few] == pytest.approx(cg.history[few], rel=1e-4 if rtol > 1e-6 else 1e-9)
    assert resident.history.size == resident.iterations + 1 and resident.host_reads == 0


@on_gpu
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_one_part_alone(gpu, dtype, monkeypatch):
    """Whose sums and rows go nowhere."""
    monkeypatch.undo()
    A, b = uneven(30, dtype)
    rtol = 1e-5 if dtype == "float32" else 1e-10
    cg, resident = both(A, b, rtol=rtol)
    assert any("1 of 900 rows and a halo of 0" in line for line in resident.configuration)
    assert resident.converged and abs(cg.iterations - resident.iterations) <= 1
    assert resident.history[:20] == pytest.approx(cg.history[:20], rel=1e-4 if rtol > 1e-6 else 1e-9)


@on_gpu
@pytest.mark.parametrize("name", ["shuffled mesh", "box", "grid", "constant diagonal"])
def test_many_parts(gpu, name):
    """Every multiprocessor has one, and a halo."""
    A = {"shuffled mesh": lambda: gallery.p1_laplacian(200_000), "box": lambda: gallery.poisson3d(50),
         "grid": lambda: gallery.poisson2d(400) + sp.diags_array(rng().random(160_000)),
         "constant diagonal": lambda: gallery.poisson2d(300)}[name]()
    A = sp.csr_array(A)
    if name == "shuffled mesh":
        order = rng().permutation(A.shape[0])
        A = A[order][:, order]
    b = rng().standard_normal(A.shape[0])
    cg, resident = (swell.solve(A, b, method=m, scaling="jacobi", device="cuda", maxiter=5000, rtol=1e-8)
                    for m in ("cg", "resident_cg"))
    assert "parts of" in str(resident) or " parts by " in str(resident)
    assert resident.converged and abs(resident.iterations - cg.iterations) <= 0.02 * cg.iterations + 1
    assert resident.history[:20] == pytest.approx(cg.history[:20], rel=1e-9)
    assert np.linalg.norm(resident.x - cg.x) <= 1e-4 * np.linalg.norm(cg.x)


@on_gpu
@pytest.mark.parametrize("maxiter", [0, 1, 7, 8, 9, 15, 16, 17])
def test_the_limit_at_and_between_launches(gpu, maxiter):
    A, b = uneven()
    cg, resident = both(A, b, maxiter=maxiter)
    assert resident.reason is Reason.MAXITER and resident.iterations == maxiter
    assert resident.history == pytest.approx(cg.history, rel=1e-10)
    assert resident.x == pytest.approx(cg.x, rel=1e-9, abs=1e-12)
    assert resident.residual == pytest.approx(true_residual(A, b, resident.x), rel=1e-6)


@on_gpu
def test_judged_at_intervals(gpu):
    A = badly_scaled()
    b = A @ rng().standard_normal(A.shape[0])
    for every in (3, 10):
        cg, resident = both(A, b, scaling="jacobi", stopping=Stopping(every=every))
        assert resident.converged and resident.iterations == cg.iterations
        assert resident.history == pytest.approx(cg.history, rel=1e-6)


@on_gpu
@pytest.mark.parametrize("A", [indefinite, neumann, lambda: -gallery.poisson2d(8)])
def test_it_ends_as_cg_does(gpu, A):
    A = sp.csr_array(A())
    for b in (A @ rng().standard_normal(A.shape[0]), np.ones(A.shape[0])):
        cg, resident = both(A, b)
        assert resident.reason is cg.reason and abs(resident.iterations - cg.iterations) <= 1


@on_gpu
def test_a_limit_of_rounding_is_resumed_and_reported(gpu):
    A = gallery.poisson1d(400)
    b = rng().standard_normal(400)
    _, resident = both(A, b, rtol=1e-14)
    cg = swell.solve(A, b, method="cg", format="csr", device="cuda", rtol=1e-14)     # begins again with the same residual
    assert resident.reason in (Reason.ATTAINABLE_ACCURACY, Reason.CONVERGED) and resident.residual <= 10 * cg.residual
    assert resident.exact_to_rounding and resident.residual <= resident.rounding_floor
    assert resident.spectrum.condition > 6e4


@on_gpu
def test_x0(gpu):
    A, b = uneven()
    x0 = rng().standard_normal(b.size)
    cg, resident = both(A, b, x0=x0)
    assert resident.converged and abs(resident.iterations - cg.iterations) <= 1
    assert resident.history[:10] == pytest.approx(cg.history[:10], rel=1e-10)
    again = swell.solve(A, b, method="resident_cg", x0=resident.x, device="cuda")
    assert again.converged and again.iterations == 0


@on_gpu
def test_the_spectrum(gpu):
    A, b = uneven()
    cg, resident = both(A, b, rtol=1e-10)
    assert resident.spectrum.extremes == pytest.approx(cg.spectrum.extremes, rel=1e-6)


@on_gpu
def test_the_monitor_sees_every_iteration_and_stops(gpu):
    A, b = uneven()
    seen = []
    r = swell.solve(A, b, method=swell.ResidentCG(steps=4), device="cuda", monitor=lambda k, v: seen.append((k, v)))
    assert [k for k, _ in seen] == list(range(r.iterations + 1)) and [v for _, v in seen] == list(r.history)
    r = swell.solve(A, b, method=swell.ResidentCG(steps=2), device="cuda", rtol=1e-12, monitor=lambda k, v: k >= 3)
    assert r.reason is Reason.STOPPED and 3 <= r.iterations <= 48      # two graphs of 16, and one that runs
    assert r.residual == pytest.approx(true_residual(A, b, r.x), rel=1e-6)


@on_gpu
def test_ctrl_c(gpu):
    """The iterate at that moment, from which the solve may go on."""
    A, b = uneven(100)
    press = iter([None, None, signal.SIGINT])

    def monitor(k, v):
        if number := next(press, None):
            os.kill(os.getpid(), number)
    r = swell.solve(A, b, method=swell.ResidentCG(steps=2), device="cuda", rtol=1e-13, monitor=monitor)
    assert r.reason is Reason.INTERRUPTED and r.residual == pytest.approx(true_residual(A, b, r.x), rel=1e-6)
    assert swell.solve(A, b, method="resident_cg", device="cuda", x0=r.x).converged


@on_gpu
def test_a_second_run_allocates_nothing_and_nothing_is_left_of_the_first(gpu):
    A, b = uneven()
    solver = swell.prepare(A, method="resident_cg", scaling="jacobi", device="cuda", b_like=b)
    first = solver.solve(b)
    assert allocations_of_a_second_run(solver, b) == 0
    with solver.space.active():
        solver._prepared[0].workspace.poison()
    second = solver.solve(b)
    assert (first.x == second.x).all() and (first.history == second.history).all()


@on_gpu
@pytest.mark.parametrize("scaling", [None, "jacobi"])
def test_new_values(gpu, scaling):
    A = sp.csr_array(gallery.poisson2d(40))
    b = rng().standard_normal(1600)
    solver = swell.prepare(A, method="resident_cg", scaling=scaling, device="cuda", b_like=b)
    for B in (A, 3 * A, A + sp.diags_array(rng().random(1600)), A):
        B = sp.csr_array(B)
        r = solver.update(B).solve(b)
        assert r.converged and true_residual(B, b, r.x) <= 1e-8


@on_gpu
def test_what_is_refused(gpu):
    A, b = uneven(8)
    with pytest.raises(swell.InputError, match="resident_cg applies no preconditioner.*scaling='jacobi'.*method='cg'"):
        swell.solve(A, b, method="resident_cg", precond="jacobi", device="cuda")
    with pytest.raises(swell.InputError, match="no use for a smoother.*method='cg'"):
        swell.solve(A, b, method="resident_cg", smoother="chebyshev", device="cuda")
    with pytest.raises(DoesNotFit, match="2250000 rows of float64.*method='cg'"):
        swell.solve(gallery.poisson2d(1500), np.ones(1500**2), method="resident_cg", device="cuda")


@on_gpu
def test_the_advisor(gpu, monkeypatch):
    """It contends where the vectors fit, and where the user leaves the format open."""
    def methods(**named):
        return {c.name("method"): c for c in swell.prepare(uneven()[0], device="cuda", **named).choices}

    resident = methods()["resident_cg"]
    assert resident.name("scaling") == "jacobi" and resident.name("format") == "resident_parts"
    assert "resident_cg keeps them" in resident.why[0]
    assert "resident_cg" not in methods(format="sell")
    monkeypatch.setattr("swell.advisor.choices.most_rows", lambda multiprocessors, dtype: 10)
    assert "resident_cg" not in methods()
    assert swell.solve(*uneven(), device="cuda").converged
