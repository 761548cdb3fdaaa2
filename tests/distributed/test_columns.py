"""Several right-hand sides across ranks: each column gets the bits and the record of its own solve on these ranks, and
k columns take the messages of one."""
from __future__ import annotations

import collections

import numpy as np
import pytest
import scipy.sparse as sp
from tests.distributed.conftest import Ranks
from tests.support.across import HERMITIAN, METHODS, on_gpus, system
from tests.support.during import during

import swell
from swell import distributed, gallery
from swell.core.errors import InputError, OutOfMemory
from swell.core.registry import load
from swell.core.stopping import Reason
from swell.distributed.amg import hierarchy
from swell.distributed.launcher import launched
from swell.distributed.threads import ThreadExchange
from swell.solving.together import bound

SYMMETRIC = "schwarz(kind='additive', overlap=1, inner='jacobi')"    # as CG and its complex forms need it


@pytest.fixture(params=[launched()] if launched() > 1 else [1, 2, 3, 4])
def every(request, world):
    """Any number of ranks."""
    return Ranks(request.param, world)


def given(method="cg", dtype="float64", k=3):
    """A system, and k right-hand sides: random ones, and from the second on zero, easy, or of another size."""
    A, b = system(dtype, symmetric=method not in ("gmres", "bicgstab"))
    if method in HERMITIAN:
        A = sp.csr_array((A + A.conj().T) / 2)
    B = np.stack([b, 0 * b, A @ np.ones_like(b), 1e5 * b[::-1]], axis=1)
    return A, B[:, :k] if k < 4 else B[:, np.arange(k) % 4] * np.arange(1, k + 1)


def columns(communicator, A, B, together, device="cpu", twice=False, partition="rows", X=None, **settings):
    """(x of all rows, records of the columns, note) of a solve; ``twice``: of a second one, from captured graphs, after
    one of the other kind, whose messages go the same ways."""
    M = distributed.scatter(communicator, A if communicator.rank == 0 else None, device=device, partition=partition)
    solver = swell.prepare(M, **settings)
    for choice in (together, not together, together) if twice else (together,):
        results = solver.solve(B[M.rows], None if X is None else X[M.rows], together=choice)
    records = [(r.reason, r.iterations, r.history.tolist(), r.residual) for r in results]
    return M.gather(results.x), records, results.notes[0]


def check(run, A, B, exact=True, rtol=1e-8, **settings):
    """Compare columns that are solved together with those that are solved one by one, on every rank. ``run``: calls a
    function on all ranks."""
    together, alone = (run(lambda ranks, choice=choice: columns(ranks, A, B, choice, rtol=rtol, **settings))
                       for choice in (True, False))
    for (x, records, note), (y, single, other) in zip(together, alone, strict=True):
        assert note.startswith("solved together") and other.startswith("solved one by one")
        if exact:
            assert np.array_equal(x, y) and records == single
        else:
            assert np.allclose(x, y, rtol=1e-6, atol=1e-6 * abs(y).max())
        assert all(reason is Reason.CONVERGED for reason, *_ in records) and np.array_equal(x, together[0][0])
        assert (np.linalg.norm(B - A @ x, axis=0) <= 1.01 * rtol * np.linalg.norm(B, axis=0)).all()
    return together


@pytest.mark.parametrize("method", METHODS)
def test_every_method(every, method):
    """With and without an overlap, whose exchange goes both ways."""
    dtype = "complex128" if method in ("cocg", "idrs") else "float64"
    A, B = given(method, dtype)
    for precond in (None, SYMMETRIC):
        with during(precond=precond):
            check(every.run, A, B, method=method, precond=precond)


@pytest.mark.parametrize("precond", ["ic0", "schwarz(overlap=2, kind='additive', inner='ic0')", "block_jacobi",
                                     "schwarz(kind='additive', coarse='nicolaides', inner='ic0')", "jacobi"])
@pytest.mark.parametrize("k", [2, 5])
def test_preconditioners(ranks, precond, k):
    A, B = given(k=k)
    check(ranks.run, A, B, method="cg", precond=precond, scaling="jacobi" if precond == "ic0" else None)


@pytest.mark.parametrize("precond", ["amg", "smoothed_aggregation", "air"])
def test_multigrid_across_ranks(ranks, monkeypatch, precond):
    """Its levels have distributions of their own."""
    monkeypatch.setitem(hierarchy.GATHERED, "cpu", 60)
    monkeypatch.setitem(hierarchy.COARSEST, "cpu", 60)
    A, method = (gallery.advection((32, 32)), "bicgstab") if precond == "air" else (gallery.poisson3d(10), "cg")
    B = np.random.default_rng(0).standard_normal((A.shape[0], 3))
    check(ranks.run, A, B, method=method, precond=precond)


@pytest.mark.parametrize("interior", ["direct", "blocks"])
def test_bddc(ranks, interior):
    """BLAS multiplies k columns with other rounding."""
    A = gallery.poisson2d(21)
    check(ranks.run, A, np.random.default_rng(0).standard_normal((441, 3)), exact=False, method="cg",
          precond=f"bddc(domains=8, interior='{interior}')")


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_other_types_partitions_and_starting_vectors(ranks, dtype):
    pytest.importorskip("pymetis", reason="the partition of a graph needs pymetis")
    A, B = given("gmres", dtype)
    X = np.random.default_rng(4).random(B.shape).astype(dtype)
    check(ranks.run, A, B, rtol=1e-4, method="gmres", partition="graph", X=X)


def test_columns_that_end_early_stay_as_they_are(ranks):
    """The first ends after one iteration, the second after some, the last after many: all sums of ranks go on."""
    d = np.linspace(1, 200, 441)
    A = sp.csr_array(sp.diags_array(d) + 1e-3 * gallery.poisson2d(21))
    B = np.zeros((441, 3))
    B[7, 0], B[:3, 1], B[:, 2] = 1, 1, 1
    for method in ("cg", "gmres(restart=20, lengthen=False)", "bicgstab"):
        found = check(ranks.run, A, B, method=method)
        ended = [iterations for _, iterations, *_ in found[0][1]]
        assert ended[0] < ended[1] < ended[2] and ended[2] > 30


@pytest.mark.parametrize("method", ["cg", "gmres", "qmr"])
def test_messages_and_sums_do_not_grow_with_the_columns(method, monkeypatch):
    if launched() > 1:
        pytest.skip("messages between threads are counted")
    sent, start = collections.Counter(), ThreadExchange.start

    def counted(exchange):
        sent[exchange.communicator.rank] += len(exchange._to)
        start(exchange)
    monkeypatch.setattr(ThreadExchange, "start", counted)
    A, b = given(method, k=1)

    def cost(communicator, k):
        M = distributed.scatter(communicator, A if communicator.rank == 0 else None)
        solver = swell.prepare(M, method=method, precond=None if method == "qmr" else SYMMETRIC)
        with M.space.active(441):
            alone = solver._prepare(0)
            solver, B = (alone, b[:, 0]) if k == 1 else (bound(alone, k), np.repeat(b, k, axis=1))
        reductions, messages = communicator.reductions, sent[communicator.rank]
        solver.run(B[M.rows])
        return communicator.reductions - reductions, sent[communicator.rank] - messages
    one, two, eight = (distributed.run(2, cost, k) for k in (1, 2, 8))
    assert one == two == eight and min(one[0]) > 15


def test_the_ranks_take_fewer_columns_if_one_has_no_memory(every):
    A, B = given(k=7)

    def solve(communicator):
        M = distributed.scatter(communicator, A if communicator.rank == 0 else None)
        solver, original = swell.prepare(M, method="cg"), M.space.local.for_columns

        def short(count):
            space = original(count)
            if communicator.rank == communicator.size - 1 and count > 2:
                def fits(needed, what, remedy):
                    raise OutOfMemory("no room here")
                space.check_fits = fits
                space.memory = lambda: (0, 1)
            return space
        M.space.local.for_columns = short
        results = solver.solve(B[M.rows])
        return M.gather(results.x), results.notes[0]

    for x, note in every.run(solve):
        assert note == "solved together in groups of 2, 2, 2, 1; memory has room for 2 at a time"
        assert (np.linalg.norm(B - A @ x, axis=0) <= 1e-8 * np.linalg.norm(B, axis=0)).all()


@pytest.mark.parametrize("kind", ["M", "monitor"])
def test_an_error_of_one_rank_is_raised_on_all(every, kind):
    A, B = given()

    def caught(communicator):
        M, calls = distributed.scatter(communicator, A if communicator.rank == 0 else None), []

        def fails(*arguments):
            calls.append(None)
            if len(calls) == 5 and communicator.rank == communicator.size - 1:
                raise ZeroDivisionError("here")
            return arguments[0] if kind == "M" else False
        with pytest.raises(ZeroDivisionError, match="here"):
            swell.solve(M, B[M.rows], method="cg", together=True, **{kind: fails})
        return swell.solve(M, B[M.rows], method="cg", together=True).converged
    assert all(every.run(caught))


def test_the_monitor_of_one_rank_stops_all(every):
    A, B = gallery.poisson2d(100), np.random.default_rng(0).standard_normal((10_000, 3))

    def stopped(communicator):
        M = distributed.scatter(communicator, A if communicator.rank == 0 else None)
        monitor = (lambda k, norm: k >= 3) if communicator.rank == communicator.size - 1 else None
        results = swell.solve(M, B[M.rows], method="cg", rtol=1e-13, monitor=monitor, together=True)
        return results.reasons, [r.iterations for r in results]
    found = every.run(stopped)
    assert all(answer == found[0] for answer in found) and {*found[0][0]} == {Reason.STOPPED}


def test_new_values_and_tolerances(ranks):
    A, B = given()

    def solve(communicator):
        M = distributed.scatter(communicator, A if communicator.rank == 0 else None)
        solver = swell.prepare(M, method="cg", precond="ic0")
        solver.solve(B[M.rows])
        own, rest = (2 * M.space.to_host(part.data) for part in (M.own, M.rest))
        solver.update(M.with_values(own, rest))
        first = solver.solve(B[M.rows])
        second = solver.stop_by(swell.Stopping(rtol=1e-11)).solve(B[M.rows])
        return M.gather(first.x), M.gather(second.x)
    for first, second in ranks.run(solve):
        assert np.linalg.norm(B - 2 * A @ first) <= 1e-8 * np.linalg.norm(B)
        assert np.linalg.norm(B - 2 * A @ second) <= 1e-11 * np.linalg.norm(B)


@pytest.mark.parametrize("kind", ["copies", "work"])
def test_an_update_that_is_more_than_values_on_one_rank(ranks, kind, monkeypatch):
    """All ranks then make their buffers for several right-hand sides anew; else none does."""
    A, B = given()

    def solve(communicator, alone):
        M = distributed.scatter(communicator, A if communicator.rank == 0 else None)
        solver = swell.prepare(M, method="cg", precond="ic0")
        solver.solve(B[M.rows])
        prepared = solver._prepared[0]
        before = prepared.companions[3, None]
        if alone and communicator.rank == communicator.size - 1:
            if kind == "copies":
                monkeypatch.setattr(before._copies, "current", lambda: False)
            else:
                prepared._bound = None
        own, rest = (2 * M.space.to_host(part.data) for part in (M.own, M.rest))
        solver.update(M.with_values(own, rest))
        x = M.gather(solver.solve(B[M.rows]).x)
        return x, prepared.companions[3, None] is before
    for alone in (True, False):
        for x, kept in ranks.run(solve, alone):
            assert kept is not alone and np.linalg.norm(B - 2 * A @ x) <= 1e-8 * np.linalg.norm(B)


def test_what_ranks_must_agree_on(ranks):
    A, B = given()

    def solve(communicator):
        M = distributed.scatter(communicator, A if communicator.rank == 0 else None)
        last = communicator.rank == communicator.size - 1
        solver = swell.prepare(M, method="cg")
        for named in ({"b": B[M.rows, :2 if last else 3]}, {"b": B[M.rows], "together": last}):
            with pytest.raises(InputError, match="the ranks disagree on the right-hand sides"):
                solver.solve(**named)
        return solver.solve(B[M.rows]).converged
    if ranks.size > 1:
        assert all(ranks.run(solve))


def test_what_takes_one_right_hand_side_at_a_time(ranks):
    def solve(communicator):
        A = gallery.neumann((8, 8))
        M = distributed.scatter(communicator, A if communicator.rank == 0 else None)
        B = (A @ np.random.default_rng(0).random((64, 2)))[M.rows]
        with pytest.raises(InputError, match="together=True: with a null space they are solved one by one; leave"):
            swell.solve(M, B, method="cg", nullspace="constants", together=True)
        results = swell.solve(M, B, method="cg", nullspace="constants")
        return results.converged, results.notes[0]
    assert all(found == (True, "solved one by one: with a null space they are solved one by one")
               for found in ranks.run(solve))


def on_all(count, messages):
    return lambda function: on_gpus(count, function, messages=messages)


@pytest.mark.gpu
@pytest.mark.parametrize("messages", ["peer", "nccl"])
@pytest.mark.parametrize("method, dtype", [
    ("cg", "float64"), ("single_reduction_cg", "float32"), ("cocg", "complex128"), ("gmres", "float64"),
    ("bicgstab", "complex64"), ("qmr", "float64")])
def test_columns_on_gpus(count, method, dtype, messages):
    """From captured graphs; with an exchange that goes both ways, or a product with the adjoint."""
    A, B = given(method, dtype)
    check(on_all(count, messages), A, B, rtol=1e-4 if dtype in ("float32", "complex64") else 1e-8, device="cuda",
          twice=True, method=method, precond=None if load("method", method).adjoint else SYMMETRIC,
          format="sell" if method in ("cg", "gmres") else "csr")


@pytest.mark.gpu
@pytest.mark.parametrize("messages", ["peer", "nccl"])
def test_columns_that_end_early_on_gpus(count, messages):
    """Sums of ranks go on after the first column has ended; those of NCCL then grow until they overflow."""
    A = sp.csr_array(sp.diags_array(np.geomspace(1, 1e3, 225)) + 1e-3 * gallery.poisson2d(15))
    B = np.zeros((225, 2))
    B[7, 0], B[:, 1] = 1e138, 1
    found = check(on_all(count, messages), A, B, device="cuda", method="cg")
    ended = [iterations for _, iterations, *_ in found[0][1]]
    assert ended[0] < 10 and ended[1] > 150


@pytest.mark.gpu
def test_launches_and_sums_do_not_grow_with_the_columns_on_gpus(count):
    A, b = given(k=1)

    def cost(communicator, k):
        M = distributed.scatter(communicator, A if communicator.rank == 0 else None, device="cuda")
        solver = swell.prepare(M, method="cg", maxiter=20, rtol=1e-14)
        with M.space.active(441):
            group = bound(solver._prepare(0), k)
        own, before = M.space.ranks.communicator, M.space.ranks.communicator.reductions
        results = group.run(np.repeat(b, k, axis=1)[M.rows])
        return own.reductions - before, group.space.local.launches, results[0].host_reads
    two, eight = (on_gpus(count, cost, k) for k in (2, 8))
    assert two == eight and two[0][2] == 0


def test_sums_of_numbers_that_are_not_finite(ranks):
    """They come from columns that have stopped, whose numbers are unspecified, and from solves that diverge: the judge
    sees them, and NumPy warns of nothing."""
    def summed(communicator):
        numbers = np.array([np.inf * (-1) ** communicator.rank, 1.7e308, 1.0])
        communicator.allreduce(numbers)
        return numbers

    for numbers in ranks.run(summed):
        assert not np.isfinite(numbers[0]) and np.isinf(numbers[1]) == (ranks.size > 1) and numbers[2] == ranks.size
