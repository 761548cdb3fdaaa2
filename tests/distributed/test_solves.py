"""Solves across ranks give what one device gives: products, iterations, residuals; and say what cannot be done."""
from __future__ import annotations

import os
import re
import signal
import sys
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from tests.support.across import arrays_while_active, solved, system
from tests.support.cases import rng

import swell
from swell import distributed, gallery
from swell.core.registry import resolve
from swell.core.stopping import Reason
from swell.distributed import devices, peer, threads
from swell.distributed.launcher import launched
from swell.distributed.partition import consecutive, load_balance


def own_rows(communicator, A):
    starts = consecutive(A.shape[0], communicator.size)
    return A[starts[communicator.rank]:starts[communicator.rank + 1]]


@pytest.mark.parametrize("format, partition, dtype, overlap", [                 # all pairs
    ("csr", "rows", "float32", True), ("csr", "graph", "complex128", False), ("sell", "rows", "complex128", True),
    ("sell", "graph", "float32", False), ("bsr(block=3)", "rows", "float32", False),
    ("bsr(block=3)", "graph", "complex128", True)])
def test_product(ranks, partition, format, dtype, overlap):
    if partition == "graph":
        pytest.importorskip("pymetis", reason="the partition of a graph needs pymetis")
    A, x = system(dtype, symmetric=False)

    def product(communicator):
        M = distributed.scatter(communicator, A if communicator.rank == 0 else None, partition=partition,
                                block=3 if "bsr" in format else 1, overlap=overlap)
        M = M.stored_as(resolve("format", format))
        mine, y, twice = x[M.rows], np.empty(x[M.rows].size, dtype), x[M.rows].copy()
        M.apply(mine, y)
        M.apply(mine, twice, 2, -1)
        assert np.allclose(twice, 2 * y - mine, rtol=1e-5)
        return M.gather(y)

    for y in ranks.run(product):
        assert np.allclose(y, A @ x, rtol=1e-5 if dtype == "float32" else 1e-14, atol=1e-5 if dtype == "float32" else 0)


OF_A_RANK = [("cg", "ic0"), ("gmres", "ilu0"), ("bicgstab", swell.ILU0(solve=swell.Sweeps(3))),
             ("gmres", "block_jacobi"), ("cg", "jacobi"), ("tfqmr", "ilu0"), ("qmr", "ilu0"), ("idrs", "jacobi"),
             ("bicgstabl", "ilu0"), ("cocr", "ic0"), ("minres", "ic0")]
ACROSS_RANKS = [(None, None), ("cg", "schwarz(kind='additive', inner='ic0')"), ("gmres", "schwarz(overlap=2)"),
                ("bicgstab", "schwarz(overlap=0)"), ("qmr", "schwarz(overlap=2)"),
                ("qmr", "schwarz(kind='additive', inner='ilu0')")]


@pytest.mark.parametrize("partition, method, precond", [*(("rows", *named) for named in OF_A_RANK + ACROSS_RANKS),
                                                        *(("graph", *named) for named in OF_A_RANK[:2] + ACROSS_RANKS)])
def test_preconditioners_of_each_rank(ranks, method, precond, partition):
    if partition == "graph":
        pytest.importorskip("pymetis", reason="the partition of a graph needs pymetis")
    A, b = system(symmetric=method in ("cg", "cocr", "minres", None))
    for x, result, _ in ranks.run(solved, A, b, partition, {"method": method, "precond": precond}):
        assert result.converged and np.linalg.norm(b - A @ x) <= 1e-8 * np.linalg.norm(b)


def test_overlap_takes_fewer_iterations():
    A, b = system(symmetric=False)
    counts = [distributed.run(3, solved, A, b, "rows", {"method": "gmres", "precond": swell.Schwarz(overlap=layers)})
              for layers in (0, 1, 4)]
    none, one, four = ([result.iterations for _, result, _ in ranks] for ranks in counts)
    assert none[0] > one[0] >= four[0]


def beam():
    """A clamped beam, and its rigid motions."""
    points, cells = gallery.box_mesh((24, 2, 2), (12.0, 1.0, 1.0))
    A, nodes = gallery.elastic_body(points, cells, points[:, 0] == 0)
    return A, swell.rigid_body_modes(nodes)


@pytest.mark.parametrize("partition", ["rows", "graph"])
def test_a_second_level_of_schwarz(ranks, partition):
    """Rigid motions of each rank's part; with one rank as with more the balanced operator is symmetric."""
    if partition == "graph":
        pytest.importorskip("pymetis", reason="the partition of a graph needs pymetis")
    A, modes = beam()
    b = rng().standard_normal(A.shape[0])
    settings = swell.Schwarz(kind="additive", inner="direct", coarse="nicolaides", near_nullspace=modes)
    for x, result, _ in ranks.run(solved, A, b, partition, {"method": "cg", "precond": settings}):
        assert result.converged and np.linalg.norm(b - A @ x) <= 1e-8 * np.linalg.norm(b)
        assert f"a coarse space of {6 * ranks.size} vectors" in str(result)


def test_a_second_level_takes_fewer_iterations():
    A, modes = beam()
    b = rng().standard_normal(A.shape[0])
    counts = [distributed.run(6, solved, A, b, "rows", {"method": "cg", "precond": swell.Schwarz(
        kind="additive", inner="direct", **more)})[0][1].iterations
        for more in ({}, {"coarse": "nicolaides", "near_nullspace": modes})]
    assert counts[1] < 0.5 * counts[0], counts


def test_schwarz_of_the_whole_is_its_inner_preconditioner(ranks):
    """With layers enough every rank has all rows."""
    A, b = system(symmetric=False)
    one_rank = swell.solve(A, b, method="gmres", precond="ilu0")
    for _, result, _ in ranks.run(solved, A, b, "rows", {"method": "gmres", "precond": "schwarz(overlap=40)"}):
        assert result.iterations == one_rank.iterations


def test_additive_schwarz_is_its_own_adjoint(ranks):
    A, x = system()
    y = x[::-1].copy()

    def products(communicator):
        M = distributed.scatter(communicator, A if communicator.rank == 0 else None)
        S = swell.Schwarz(kind="additive", inner="ic0", overlap=2).build(M)
        Sx, Sy = np.zeros((2, M.own.shape[0]))
        S.apply(x[M.rows], Sx)
        S.apply(y[M.rows], Sy, -2, 1)
        return y @ M.gather(Sx), x @ M.gather(Sy)

    for forth, back in ranks.run(products):
        assert back == pytest.approx(-2 * forth, rel=1e-12)


@pytest.mark.parametrize("precond", ["schwarz(overlap=2)", "schwarz(kind='additive', inner='ilu0')", "ilu0",
                                     "block_jacobi(block=3)", "gauss_seidel(direction='forward')"])
def test_adjoint_preconditioners(ranks, precond):
    """(M x, y) = (x, Mᴴ y)."""
    A, x = system("complex128", symmetric=False)
    y = x[::-1].copy()

    def products(communicator):
        M = distributed.scatter(communicator, A if communicator.rank == 0 else None)
        settings = resolve("precond", precond)
        P = settings.build(M if settings.across_ranks else M.diagonal_block)
        Px, Py = np.zeros((2, M.own.shape[0]), complex)
        P.apply(x[M.rows], Px)
        P.apply_adjoint(y[M.rows], Py, -2, 1)
        return np.vdot(M.gather(Px), y), np.vdot(x, M.gather(Py))

    for forth, back in ranks.run(products):
        assert back == pytest.approx(-2 * forth, rel=1e-12)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("format", ["csr", "sell"])
def test_adjoint_product(ranks, dtype, format):
    A, x = system(dtype, symmetric=False)

    def products(communicator):
        M, other = (distributed.scatter(communicator, B if communicator.rank == 0 else None).stored_as(
            resolve("format", format)) for B in (A, sp.csr_array(2 * A)))
        mine, y = x[M.rows].copy(), x[M.rows].copy()
        M.apply_adjoint(mine, y, 3, 2)
        twice = np.full_like(mine, np.nan)
        M.apply_adjoint(mine, twice)
        M.update(other)                                          # adjoints follow new values
        M.apply_adjoint(mine, twice, -1, 1)
        return M.gather(y), M.gather(twice)

    for y, less in ranks.run(products):
        assert np.allclose(y, 3 * (A.conj().T @ x) + 2 * x, rtol=1e-13)
        assert np.allclose(less, -(A.conj().T @ x), rtol=1e-13)


def test_constants_as_null_space(ranks):
    A = gallery.poisson2d(21)
    A = sp.csr_array(A - sp.diags_array(A @ np.ones(441)))
    b = rng().standard_normal(441)
    settings = {"method": "cg", "nullspace": "constants", "precond": "ic0(shift=1e-3)"}
    with pytest.raises(swell.InputError, match=re.escape(f"the entries of b sum to {b.sum():.3e} instead")):
        ranks.run(solved, A, b, "rows", settings)
    b -= b.mean()
    for x, result, _ in ranks.run(solved, A, b, "rows", settings):
        assert result.converged and np.linalg.norm(b - A @ x) <= 1e-8 * np.linalg.norm(b)
        assert abs(x.sum()) <= 1e-12 * np.linalg.norm(x) * 21


@pytest.mark.parametrize("settings, message", [
    ({"method": "direct"}, "direct does not run across ranks: use cg, .* cocr or stationary"),
    ({"method": "cg", "ordering": "rcm"}, "ordering= does not work across ranks"),
    ({"method": "cg", "precond": "schwarz(domains=4)"}, "one subdomain a rank"),
    ({"method": "cg", "precond": swell.Schwarz(kind="additive", inner="ic0", coarse="nicolaides",
                                               near_nullspace=np.ones(5))}, "near_nullspace"),
    ({"method": "cg", "format": "nothing"}, "nothing"),
])
def test_what_does_not_work_across_ranks(ranks, settings, message):
    A, b = system()
    with pytest.raises(swell.InputError, match=message):
        ranks.run(solved, A, b, "rows", settings)


def test_cg_refuses_an_unsymmetric_matrix(ranks):
    A, b = system(symmetric=False)
    with pytest.raises(swell.InputError, match="cg needs a Hermitian matrix"):
        ranks.run(solved, A, b, "rows", {"method": "cg"})


@pytest.mark.parametrize("scaling", ["ruiz", "ruiz(p=inf)", "ruiz(p=1)"])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_ruiz_of_an_unsymmetric_matrix(ranks, dtype, scaling):
    A, b = system(dtype, symmetric=False)
    A = sp.csr_array(sp.diags_array(10.0 ** np.linspace(-3, 3, 441)) @ A)
    settings = {"method": "gmres", "scaling": scaling, "rtol": 1e-10}
    one_rank = swell.solve(A, b, **settings)
    for x, result, *_ in ranks.run(solved, A, b, "rows", settings):
        assert result.converged and np.linalg.norm(b - A @ x) <= 1e-10 * np.linalg.norm(b)
        assert abs(result.iterations - one_rank.iterations) <= 1


def test_a_transpose_is_in_the_same_parts(ranks):
    A, x = system("complex128", symmetric=False)

    def product(communicator):
        M = distributed.scatter(communicator, A if communicator.rank == 0 else None)
        there = M.transpose()
        y = there.times(x[M.rows])
        return M.gather(y), there.nnz, M.gather(there.transpose().times(x[M.rows]))

    for y, entries, again in ranks.run(product):
        assert entries == A.nnz and np.allclose(y, A.T @ x, rtol=1e-13) and np.allclose(again, A @ x, rtol=1e-13)


def test_a_zero_row_on_one_rank_is_an_error_on_all(ranks):
    A, b = system()
    A = sp.lil_array(A)
    A[440, 440] = 0
    with pytest.raises(swell.InputError, match="diagonal"):
        ranks.run(solved, sp.csr_array(A), b, "rows", {"method": "gmres", "precond": "jacobi"})


def test_a_factorisation_that_fails_on_one_rank_ends_the_solve_on_all(ranks):
    A, b = system()
    A = sp.lil_array(A)
    A[440, :] = 0
    for _, result, _ in ranks.run(solved, sp.csr_array(A), b, "rows", {"method": "gmres", "precond": "direct"}):
        assert result.reason in (Reason.SINGULAR, Reason.NOT_FACTORED)


def test_your_own_preconditioner_acts_on_the_parts(ranks):
    A, b = system()
    d = A.diagonal()

    def own(communicator):
        M = distributed.scatter(communicator, A if communicator.rank == 0 else None)
        result = swell.solve(M, b[M.rows], method="cg", M=lambda r: r / d[M.rows])
        return M.gather(result.x), result

    jacobi = swell.solve(A, b, method="cg", precond="jacobi")
    for x, result in ranks.run(own):
        assert result.converged and abs(result.iterations - jacobi.iterations) <= 1
        assert np.linalg.norm(b - A @ x) <= 1e-8 * np.linalg.norm(b)


def test_ranks_that_disagree(ranks):
    A, b = system()
    if ranks.size == 1:
        pytest.skip("one rank agrees with itself")

    def differently(communicator):
        M = distributed.scatter(communicator, A if communicator.rank == 0 else None)
        return swell.solve(M, b[M.rows], method="cg" if communicator.rank else "gmres")

    with pytest.raises(swell.InputError, match="ranks disagree on what to solve with"):
        ranks.run(differently)

    def sooner(communicator):
        M = distributed.scatter(communicator, A if communicator.rank == 0 else None)
        return swell.solve(M, b[M.rows], method="cg", rtol=1e-8 if communicator.rank else 1e-2)

    with pytest.raises(swell.InputError, match="ranks disagree on when to stop"):
        ranks.run(sooner)


@pytest.mark.parametrize("columns, guess", [(2, False), (1, True)])
def test_ranks_that_bring_more_than_others(ranks, columns, guess):
    A, b = system()
    if ranks.size == 1:
        pytest.skip("one rank agrees with itself")

    def more(communicator):
        M = distributed.scatter(communicator, A if communicator.rank == 0 else None)
        mine = b[M.rows]
        if communicator.rank == 0:
            return swell.solve(M, mine, method="cg")
        return swell.solve(M, mine if columns == 1 else np.stack([mine] * columns, 1), method="cg",
                           x0=mine if guess else None)

    with pytest.raises(swell.InputError, match="ranks disagree on the right-hand sides and starting vectors"):
        ranks.run(more)


def test_a_right_hand_side_of_another_shape_on_one_rank(ranks):
    A, b = system()

    def shorter(communicator):
        M = distributed.scatter(communicator, A if communicator.rank == 0 else None)
        return swell.solve(M, b[M.rows] if communicator.rank else b[M.rows][1:], method="cg")

    with pytest.raises(swell.InputError, match="b has shape"):
        ranks.run(shorter)


def test_more_ranks_than_rows(ranks):
    if ranks.size == 1:
        pytest.skip("one rank has all rows")
    with pytest.raises(swell.InputError, match=f"1 rows cannot be shared by {ranks.size} ranks"):
        ranks.run(lambda c: distributed.scatter(c, sp.eye_array(1, format="csr") if c.rank == 0 else None))


def test_rows_that_make_no_square_matrix(ranks):
    A, _ = system()
    with pytest.raises(swell.InputError, match="expected a square matrix"):
        ranks.run(lambda c: distributed.from_rows(c, own_rows(c, A)[1:]))


@pytest.mark.parametrize("bad, message", [(np.eye(3), "expected a square SciPy sparse matrix"),
                                          (sp.csr_array([[np.nan]]), "NaN")])
def test_bad_matrices(ranks, bad, message):
    if ranks.size > 1 and bad.shape == (1, 1):
        bad = sp.diags_array(np.array([1.0, np.nan, 1.0, 1.0]), format="csr")
    with pytest.raises(swell.InputError, match=message):
        ranks.run(lambda c: distributed.scatter(c, bad if c.rank == 0 else None))


def test_the_monitor_of_one_rank_stops_all(ranks):
    A, b = system()

    def stopped(communicator):
        M = distributed.scatter(communicator, A if communicator.rank == 0 else None)
        monitor = (lambda k, r: k >= 3) if communicator.rank == communicator.size - 1 else None
        return swell.prepare(M, method="cg", rtol=1e-13).solve(b[M.rows], monitor=monitor)

    results = ranks.run(stopped)
    assert {r.reason for r in results} == {Reason.STOPPED} and len({r.iterations for r in results}) == 1


def test_an_error_that_one_rank_did_not_expect_ends_the_others():
    if launched() > 1:
        pytest.skip("of processes this is tested from outside")

    def fails(communicator):
        if communicator.rank:
            raise ZeroDivisionError("here")
        communicator.allgather(None)

    with pytest.raises(ZeroDivisionError, match="here"):
        distributed.run(3, fails)


def test_consecutive_rows():
    assert consecutive(18, 4).tolist() == [0, 5, 10, 14, 18]     # equation (12): the first r mod l ranks get one more
    assert consecutive(18, 4, block=3).tolist() == [0, 6, 12, 15, 18]
    with pytest.raises(swell.InputError, match="do not divide"):
        consecutive(10, 2, block=3)
    assert load_balance([1, 1, 2]) == 1.5


@pytest.mark.parametrize("partition, settings", [
    ("rows", {"method": "cg", "scaling": "jacobi"}), ("rows", {"method": "cg", "precond": "ic0", "format": "sell"}),
    ("rows", {"method": "gmres", "precond": "ilu0", "format": "csr"}), ("rows", {"method": "cg", "scaling": "ruiz"}),
    ("rows", {"method": "gmres", "precond": "schwarz(overlap=2)"}),
    ("rows", {"method": "bicgstab", "precond": "jacobi"}), ("graph", {"method": "cg", "scaling": "ruiz"}),
    ("graph", {"method": "gmres", "precond": "schwarz(overlap=2)"})])
def test_new_values_give_what_a_fresh_preparation_gives(ranks, settings, partition):
    if partition == "graph":
        pytest.importorskip("pymetis", reason="the partition of a graph needs pymetis")
    A, b = system()
    changed = sp.csr_array(2 * A + sp.diags_array(rng().random(441)))

    def updated(communicator):
        first, second = (distributed.scatter(communicator, B if communicator.rank == 0 else None, partition=partition)
                         for B in (A, changed))
        solver = swell.prepare(first, **settings)
        solver.solve(b[first.rows])
        again, fresh = solver.update(second).solve(b[first.rows]), swell.solve(second, b[first.rows], **settings)
        assert again.converged and np.array_equal(again.x, fresh.x)
        return first.gather(again.x)

    for x in ranks.run(updated):
        assert np.linalg.norm(b - changed @ x) <= 1e-8 * np.linalg.norm(b)


def test_new_values_on_another_pattern_are_refused_by_all(ranks):
    A, b = system()
    other = sp.lil_array(A)
    other[440, 0] = other[0, 440] = 1

    def updated(communicator):
        first, second = (distributed.scatter(communicator, sp.csr_array(B) if communicator.rank == 0 else None)
                         for B in (A, other))
        swell.prepare(first, method="cg").update(second)

    with pytest.raises(swell.InputError, match="prepare again"):
        ranks.run(updated)


def test_new_values_go_to_the_device_of_their_rank(ranks):
    """While it is the active one: else those of a rank whose GPU is not the process's first go to the first."""
    A, b = system()

    def updated(communicator):
        M = distributed.scatter(communicator, A if communicator.rank == 0 else None)
        solver = swell.prepare(M, method="cg")
        with arrays_while_active(M.space.local):
            solver.update(M.with_values(2 * M.own.data, 2 * M.rest.data))
        return M.gather(solver.solve(b[M.rows]).x)

    for x in ranks.run(updated):
        assert np.linalg.norm(b - 2 * A @ x) <= 1e-8 * np.linalg.norm(b)


@pytest.mark.parametrize("seen, own", [(["0:a", "0:b"], [0, 1]), (None, [0, 0])])
def test_each_rank_has_a_gpu_of_its_own(monkeypatch, seen, own):
    """Whether the launcher shows it all GPUs of the machine or one."""
    def of(communicator):
        names = seen or [f"0:{communicator.rank}"]
        runtime = SimpleNamespace(deviceGetPCIBusId=names.__getitem__, getDeviceCount=lambda: len(names),
                                  deviceCanAccessPeer=lambda mine, other: mine != other)
        there.cupy = SimpleNamespace(cuda=SimpleNamespace(runtime=runtime)), len(names)
        communicator.share_gpus = share
        device, _ = devices._gpu(communicator)
        space = SimpleNamespace(device=device, xp=there.cupy[0])
        return device, peer.reachable(communicator, space)

    there, share = threading.local(), False
    monkeypatch.setattr("swell.core.cuda.require_cupy", lambda: there.cupy)
    found = distributed.run(2, of)
    assert [device for device, _ in found] == own
    assert {reached for _, reached in found} == {seen is not None}       # a GPU that is hidden cannot be asked about
    if seen:
        with pytest.raises(swell.InputError, match="3 ranks on this machine and 2 of its GPUs: each wants a GPU"):
            distributed.run(3, of)
        share = True
        assert distributed.run(3, of) == [(0, True), (1, True), (0, True)]


@pytest.mark.parametrize("messages, possible, advice", [("nccl", True, "leave messages out"),
                                                        (None, False, "start a rank for each GPU")])
def test_ranks_that_share_a_gpu_speak_by_kernels(monkeypatch, messages, possible, advice):
    monkeypatch.setattr("swell.distributed.devices._gpu", lambda communicator: (0, True))
    monkeypatch.setattr("swell.distributed.devices.make_space", lambda device: None)
    monkeypatch.setattr(peer, "reachable", lambda communicator, space: possible)
    with pytest.raises(swell.InputError, match=f"ranks that share a GPU speak by messages='peer'.*{advice}"):
        distributed.run(2, lambda communicator: devices.on_device(communicator, "cuda", messages))


def test_gpus_without_nccl(monkeypatch):
    """CuPy is there, and what it needs to speak to other GPUs is not."""
    from swell.distributed.nccl import require_nccl
    monkeypatch.setitem(sys.modules, "cupy.cuda", SimpleNamespace(nccl=SimpleNamespace(available=False)))
    with pytest.raises(swell.MissingDependency, match=r"NCCL.*pip install 'swell\[cuda13\]'"):
        require_nccl()


@pytest.mark.skipif(launched() > 1, reason="of threads")
def test_ctrl_c_ends_threads_with_their_iterate():
    """It comes to the main thread, which hands it on."""
    A, b = system()

    def solve(communicator):
        M = distributed.scatter(communicator, A)

        def monitor(k, residual):
            if (k, communicator.rank) == (5, 1):
                os.kill(os.getpid(), signal.SIGINT)
        return swell.solve(M, b[M.rows], method="cg", rtol=1e-14, monitor=monitor)

    results = threads.run(2, solve)
    assert [r.reason for r in results] == [swell.Reason.INTERRUPTED] * 2
    assert results[0].iterations == results[1].iterations and abs(results[0].x).max() > 0


@pytest.mark.skipif(launched() > 1, reason="of threads")
def test_ctrl_c_where_nothing_is_solved_ends_threads():
    def wait(communicator):
        if communicator.rank:
            os.kill(os.getpid(), signal.SIGINT)
        communicator.allgather(None)
        time.sleep(0.5)
        communicator.allgather(None)

    with pytest.raises(KeyboardInterrupt):
        threads.run(2, wait)
