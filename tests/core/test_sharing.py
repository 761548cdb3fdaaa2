"""One Solver in several threads: calls queue; copies share what is read and own what is written; pickles are set up anew."""
from __future__ import annotations

import copy
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
from tests.support.cases import rng
from tests.conftest import space_or_skip
from tests.support.solves import true_residual

import swell
from swell import gallery
from swell.core.registry import load, names

THREADS, SOLVES = 4, 12
APART = {"bddc", "deflation", "field_split", "ams"}      # need a system, fields, or an inner preconditioner, of their own
SETUPS = [
    *({"method": m} for m in names("method")),
    *({"method": "gmres", "precond": p} for p in names("precond") if p not in APART),
    *({"method": "stationary(smoother=%s)" % s} for s in names("smoother")),
    *({"method": "bicgstab", "precond": f"ilu0(solve={t})"} for t in names("triangular")),
    *({"method": "cg", "precond": f"ic0(solve={t})"} for t in names("triangular")),
    *({"method": "gmres", "format": f} for f in names("format")),
    *({"method": "bicgstab", "ordering": o, "precond": "ilu0"} for o in names("ordering")),
    {"method": "gmres", "precond": "field_split(fields=2, inner=amg, kind=full)"},
    {"method": "gmres", "precond": "field_split(fields=2, schur=diagonal)"},
    {"method": "gmres", "precond": "deflation(inner=ilu0, vectors=4)"}, {"method": "cg", "precond": "bddc(domains=4)"},
    {"method": "cg", "smoother": "gauss_seidel(direction=symmetric)", "scaling": "ruiz"},
    {"method": "qmr", "precond": "ilu(block=2, solve=sweeps(count=2))"},
    {"method": "gmres", "precond": "schwarz(domains=3, inner=ilu(level=1))"}, {},
    {"method": "gmres", "precond": "schwarz(domains=3, inner=ic0, coarse=nicolaides)"},
]


def system():
    """SPD, 400 rows, uneven, and many right-hand sides."""
    A = sp.csr_array(gallery.poisson2d(20) + sp.diags_array(rng().random(400)))
    return A, rng().standard_normal((SOLVES, 400))


def prepared(named, device):
    """A Solver, its matrix and right-hand sides; a skip where the machine or the system does not allow it."""
    space_or_skip(device)
    A, B = system()
    try:
        return swell.prepare(A, device=device, rtol=1e-6, adapt=False, **named), A, B
    except (swell.InputError, swell.MissingDependency) as refused:
        pytest.skip(str(refused))


def in_threads(solve, B):
    """``solve(k, b)`` for all right-hand sides, from some threads that begin together."""
    barrier = threading.Barrier(THREADS)

    def work(first):
        barrier.wait()
        return [(k, solve(first, B[k])) for k in range(first, len(B), THREADS)]
    with ThreadPoolExecutor(THREADS) as pool:
        return dict(pair for some in pool.map(work, range(THREADS)) for pair in some)


def arrays_of(value, xp, found=None, seen=None):
    """All arrays that can be reached from an object, through attributes, containers and closures."""
    found, seen = {} if found is None else found, set() if seen is None else seen
    if id(value) in seen:
        return found
    seen.add(id(value))
    if isinstance(value, (np.ndarray, xp.ndarray)):
        found[id(value)] = value
    elif isinstance(value, dict):
        children = list(value.values())
    elif isinstance(value, (list, tuple, set)):
        children = list(value)
    elif callable(value) and getattr(value, "__closure__", None):
        children = [cell.cell_contents for cell in value.__closure__]
    elif type(value).__module__.startswith("swell") and hasattr(value, "__dict__"):
        children = list(vars(value).values())
    else:
        children = []
    for child in ([] if id(value) in found else children):
        arrays_of(child, xp, found, seen)
    return found


@pytest.mark.parametrize("named", SETUPS, ids=lambda named: "-".join(named.values()) or "auto")
def test_a_copy_writes_to_nothing_that_it_shares(named, device):
    """No array that the original has changes while the copy solves; the copy's answers are the original's."""
    solver, A, B = prepared(named, device)
    xp = solver.space.xp
    expected = [solver.solve(b) for b in B[:3]]
    other = solver.copy()
    before = {key: array.tobytes() for key, array in arrays_of(solver._prepared, xp).items()}
    found = [other.solve(b) for b in B[:3]]
    assert all((r.x == e.x).all() and r.reason is e.reason for r, e in zip(found, expected, strict=True))
    other.solve(B[5])                            # buffers now hold what the original never had
    after = arrays_of(solver._prepared, xp)
    changed = [key for key in before if after[key].tobytes() != before[key]]
    assert not changed, [(after[key].shape, after[key].dtype) for key in changed]
    assert (solver.solve(B[0]).x == expected[0].x).all()


@pytest.mark.parametrize("named", [{"method": m} for m in names("method")] + [
    {"method": "gmres", "precond": "ilu0"}, {"method": "cg", "precond": "ic0"}, {"method": "bicgstab", "scaling": "jacobi"},
    {}], ids=lambda named: "-".join(named.values()) or "auto")
@pytest.mark.parametrize("copies", [False, True], ids=["shared", "copies"])
def test_threads_get_what_one_thread_gets(named, copies, device):
    solver, A, B = prepared(named, device)
    expected = [solver.solve(b) for b in B]
    each = [solver.copy() if copies else solver for _ in range(THREADS)]
    found = in_threads(lambda thread, b: each[thread].solve(b), B)
    for k, b in enumerate(B):
        assert (found[k].x == expected[k].x).all() and found[k].iterations == expected[k].iterations
        assert not found[k].converged or true_residual(A, b, found[k].x) <= 1e-6


def test_threads_that_update_and_stop_elsewhere(device):
    """Whatever comes between, each answer is one of a matrix that was there, to a tolerance that was asked for."""
    solver, A, B = prepared({"method": "gmres", "precond": "ilu0"}, device)

    def work(thread, b):
        if thread == 0:
            solver.update(sp.csr_array(2 * A))
        if thread == 1:
            solver.stop_by(swell.Stopping(rtol=1e-9))
        return solver.solve(b)
    for k, r in in_threads(work, B).items():
        assert r.converged and min(true_residual(c * A, B[k], r.x) for c in (1, 2)) <= 1e-6


def test_one_matrix_of_ours_in_several_threads(device):
    """It brings its space along; each thread prepares by itself."""
    space = space_or_skip(device)
    A, B = system()
    own = swell.CSRMatrix.from_scipy(A, space)
    found = in_threads(lambda thread, b: swell.solve(own, b, method="cg"), B)
    assert all(r.converged and true_residual(A, B[k], r.x) <= 1e-8 for k, r in found.items())


def test_an_update_leaves_copies_alone(device):
    solver, A, B = prepared({"method": "cg", "precond": "ic0"}, device)
    other, third = solver.copy(), solver.copy()
    expected = solver.solve(B[0]).x
    solver.update(sp.csr_array(4 * A))
    assert np.allclose(solver.solve(B[0]).x, expected / 4, rtol=1e-4)
    assert (other.solve(B[0]).x == expected).all()
    with pytest.raises(swell.InputError, match="copies of this Solver share its preconditioner"):
        third.update(sp.csr_array(4 * A), keep_preconditioner=True)


def with_a_zero(A):
    """A of the same pattern, with a zero on the diagonal."""
    A = A.copy()
    A[7, 7] = 0
    return A


@pytest.mark.parametrize("named, other", [
    ({"method": "cg", "nullspace": "constants"}, lambda A: A + sp.diags_array(np.full(144, 0.5))),
    ({"method": "cg", "precond": "ic0"}, lambda A: sp.csr_array(A + sp.tril(A, -1))),
    ({"method": "gmres", "precond": "jacobi"}, with_a_zero)],
    ids=["null space", "symmetry", "diagonal"])
@pytest.mark.parametrize("copied", [False, True], ids=["alone", "copied"])
def test_after_an_update_that_failed_nothing_is_solved(named, other, copied, device):
    """Until another one succeeds; copies go on."""
    space_or_skip(device)
    A = sp.csr_array(gallery.neumann((12, 12)))
    if "nullspace" not in named:
        A = sp.csr_array(A + sp.eye_array(144))
    b = rng().standard_normal(144)
    b -= b.mean()
    solver = swell.prepare(A, device=device, **named)
    expected = solver.solve(b)
    copies = [solver.copy()] if copied else []
    with pytest.raises(swell.InputError):
        solver.update(sp.csr_array(other(A)))
    for use in (lambda: solver.solve(b), solver.describe, lambda: pickle.dumps(solver)):
        with pytest.raises(swell.InputError, match="the last update failed .* update with another"):
            use()
    assert all((c.solve(b).x == expected.x).all() for c in copies)
    again = solver.update(A).solve(b)
    assert again.converged and (again.x == expected.x).all()


def test_an_interrupt_within_an_update_leaves_nothing_half_done(monkeypatch):
    solver, A, B = prepared({"method": "gmres", "precond": "ilu0"}, "cpu")
    expected = solver.solve(B[0])

    def pressed(A):
        raise KeyboardInterrupt
    monkeypatch.setattr(solver._prepared[0].setup.M, "update", pressed)
    with pytest.raises(KeyboardInterrupt):
        solver.update(sp.csr_array(3 * A))
    with pytest.raises(swell.InputError, match="KeyboardInterrupt"):
        solver.solve(B[0])
    assert (solver.update(A).solve(B[0]).x == expected.x).all()


def test_a_scaling_that_was_left_out_is_done_where_an_update_needs_it():
    A, b = gallery.poisson2d(12), 1.0 + np.arange(144) % 7
    D = sp.diags_array(1 + np.arange(144) / 144)
    scaled = sp.csr_array(D @ A @ D)
    solver = swell.prepare(A, method="cg", scaling="jacobi")
    assert any("left out" in note for note in solver.solve(b).notes)
    updated, fresh = solver.update(scaled).solve(b), swell.solve(scaled, b, method="cg", scaling="jacobi")
    assert (updated.iterations, updated.notes) == (fresh.iterations, fresh.notes)
    assert np.array_equal(updated.x, fresh.x)


def test_a_solver_whose_factorisation_failed_is_copied():
    A, b = sp.csr_array(gallery.poisson2d(12)), np.ones(144)
    A.setdiag(np.arange(144) > 0)
    solver = swell.prepare(A, method="gmres", precond="ic0")
    assert solver.solve(b).reason == solver.copy().solve(b).reason == swell.Reason.NOT_FACTORED


def test_a_pickle_is_of_one_matrix():
    """Not half of the one before an update and half of the one after it."""
    solver, A, B = prepared({"method": "cg"}, "cpu")
    again = pickle.dumps(solver)
    state = solver.__reduce__()[1][0]
    solver.update(sp.csr_array(2 * A))
    assert (state != A).nnz == 0 and (pickle.loads(again).A.to_scipy() != A).nnz == 0


@pytest.mark.parametrize("use, message", [
    (lambda s: s.stop_by(None), r"stop_by\(None\): expected a swell.Stopping"), (lambda s: s.prefer(99), "0 to "),
    (lambda s: s.prefer(-1), "0 to "), (lambda s: s.prefer("gmres"), "expected the number of a choice")])
def test_what_means_nothing_changes_nothing(use, message):
    solver = swell.prepare(gallery.shifted_laplacian((8, 8), 0.5))
    before = solver.stopping, list(solver.choices)
    with pytest.raises(swell.InputError, match=message):
        use(solver)
    assert (solver.stopping, solver.choices) == before and solver.solve(np.ones(64)).converged


def test_a_call_from_within_its_own_solve_is_refused(device):
    solver, A, B = prepared({"method": "cg"}, device)
    with pytest.raises(swell.InputError, match=r"from within its own solve.*solver\.copy\(\)"):
        solver.solve(B[0], monitor=lambda k, residual: solver.solve(B[1]))
    inner = solver.copy()
    assert solver.solve(B[0], monitor=lambda k, residual: not inner.solve(B[1]).converged).converged


@pytest.mark.parametrize("through", [lambda s: pickle.loads(pickle.dumps(s)), copy.deepcopy, copy.copy],
                         ids=["pickle", "deepcopy", "copy"])
@pytest.mark.parametrize("named", [{}, {"method": "gmres", "precond": "ilu0", "scaling": "ruiz", "nullspace": None}],
                         ids=["auto", "named"])
def test_pickles_and_copies_solve_alike(through, named, device):
    solver, A, B = prepared(named, device)
    solver.stop_by(swell.Stopping(rtol=1e-10))
    again = through(solver)
    assert (again.solve(B[0]).x == solver.solve(B[0]).x).all() and again.describe() == solver.describe()


def test_what_cannot_be_pickled_says_so():
    A, B = system()
    operator = sp.linalg.aslinearoperator(A)
    with pytest.raises(swell.InputError, match="matrix-free cannot be pickled"):
        pickle.dumps(swell.prepare(operator))
    own = load("format", "sell")().build(swell.CSRMatrix.from_scipy(A, space_or_skip("cpu")))
    with pytest.raises(swell.InputError, match="own formats cannot be pickled"):
        pickle.dumps(swell.prepare(own, method="cg"))
