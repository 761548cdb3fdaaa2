"""SolutionMonitor: x of the user's system, each time a method has formed it."""
import numpy as np
import pytest
import scipy.sparse as sp

import swell
from swell.core.errors import InputError

SYMMETRIC, GENERAL = swell.gallery.poisson2d(12), swell.gallery.convection_diffusion((12, 12))
B = np.random.default_rng(3).random(144)
METHODS = [name for name in swell.names("method") if name != "resident_cg"]
HERMITIAN = ("cg", "single_reduction_cg", "block_cg", "minres", "cocg", "cocr")


def solved(method, device="cpu", A=None, **named):
    """Return (the result, what a SolutionMonitor got: iterations, relative norms, vectors)."""
    seen = []
    A = A if A is not None else SYMMETRIC if method.split("(")[0] in HERMITIAN else GENERAL
    r = swell.solve(A, B, method=method, device=device, rtol=1e-6,
                    monitor=swell.SolutionMonitor(lambda *values: seen.append(values)), **named)
    for k, norm, x in seen:
        true = np.linalg.norm(B - A @ x) / np.linalg.norm(B)
        assert abs(norm - true) <= 1e-3 * true + 1e-9, (method, k, norm, true)
    assert r.converged and (seen[-1][2] == r.x).all()
    return r, [k for k, _, _ in seen]


@pytest.mark.parametrize("method", METHODS)
def test_every_method_shows_its_x(method):
    r, iterations = solved(method)
    cycle = 30 if "gmres" in method else 1
    assert iterations == [*range(0, r.iterations, cycle), r.iterations]


@pytest.mark.parametrize("method", ["cg(between=2, every=4)", "single_reduction_cg(replace=3)"])
def test_steps_inside_one_body(method):
    named = {"smoother": "gauss_seidel(direction=symmetric)"} if "between" in method else {}
    r, iterations = solved(method, **named)
    assert iterations == list(range(r.iterations + 1))


@pytest.mark.parametrize("method", ["cg", "gmres(restart=8)", "bicgstab"])
def test_transforms_and_preconditioners_are_undone(method):
    A = SYMMETRIC.copy()
    A.data = A.data * 1.0
    scale = np.geomspace(1, 100, 144)
    A = A.multiply(scale[:, None]).multiply(scale[None, :]).tocsr()
    solved(method, A=A, scaling="jacobi", ordering="rcm", precond="jacobi" if method == "cg" else "ilu0")


@pytest.mark.gpu
@pytest.mark.parametrize("method", ["cg", "gmres", "bicgstab", "minres"])
def test_on_a_gpu(method):
    r, iterations = solved(method, "cuda", scaling="jacobi")
    assert iterations[0] == 0 and iterations[-1] == r.iterations


def test_the_start_and_an_answer_that_stops():
    seen, x0 = [], np.ones(144)
    monitor = swell.SolutionMonitor(lambda k, norm, x: seen.append(x) or k == 3)
    r = swell.solve(SYMMETRIC, B, method="cg", x0=x0, monitor=monitor)
    assert r.reason is swell.Reason.STOPPED and r.iterations == 3 and len(seen) == 4
    assert np.allclose(seen[0], x0) and (seen[-1] == r.x).all()
    seen[-1][:] = 0                              # a copy: the caller may write to it
    assert r.x.any()


def test_a_monitor_without_x_still_gets_every_iteration():
    seen = []
    r = swell.solve(GENERAL, B, method="gmres", monitor=lambda k, norm: seen.append(k))
    assert seen == list(range(r.iterations + 1))


def test_where_x_is_not_formed():
    monitor = swell.SolutionMonitor(print)
    with pytest.raises(InputError, match="one right-hand side.*2 columns"):
        swell.solve(SYMMETRIC, np.ones((144, 2)), method="cg", monitor=monitor)
    with pytest.raises(InputError, match="monitor=SolutionMonitor.*expected a function of"):
        swell.lstsq(SYMMETRIC, B, monitor=monitor)


@pytest.mark.parametrize("kind", ["real", "symmetric", "general"])
def test_x_of_an_adjoint_solve(kind):
    """The adjoint of a complex symmetric system is solved by conjugated vectors."""
    A = {"real": GENERAL, "symmetric": SYMMETRIC + 1j * sp.eye_array(144), "general": GENERAL + 1j * SYMMETRIC}[kind]
    b, seen = B + (0 if kind == "real" else 1j * B[::-1]), []
    s = swell.prepare(A.tocsr(), method="gmres", precond="ilu0", scaling="jacobi", b_like=b)
    r = s.solve(b, adjoint=True, monitor=swell.SolutionMonitor(lambda k, norm, x: seen.append((norm, x))))
    assert r.converged and (seen[-1][1] == r.x).all()
    for norm, x in seen:
        assert norm == pytest.approx(np.linalg.norm(b - A.conj().T @ x) / np.linalg.norm(b), rel=1e-3, abs=1e-10)
