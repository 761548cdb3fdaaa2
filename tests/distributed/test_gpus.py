"""Ranks with a GPU each: what test_solves.py shows on CPUs, here by threads of one process."""
from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from tests.support.across import HERMITIAN, METHODS, banded, gpus, on_gpus, system
from tests.support.during import during
from tests.support.solves import allocations_of_a_second_run

import swell
from swell import distributed, gallery
from swell.core.registry import resolve
from swell.core.devices import make_space
from swell.core.space import accumulator
from swell.core.stopping import Reason
from swell.distributed.devices import on_device
from swell.distributed.launcher import launched

pytestmark = pytest.mark.gpu


def parts(communicator, A, **settings):
    return distributed.scatter(communicator, A if communicator.rank == 0 else None, device="cuda", **settings)


def solved(communicator, A, b, partition, settings):
    M = parts(communicator, A, partition=partition)
    solver = swell.prepare(M, **settings)
    first, result = solver.solve(b[M.rows]), solver.solve(b[M.rows])
    assert first.iterations == result.iterations                 # the captured graph, used again
    return M.gather(result.x), result


@pytest.mark.parametrize("format, dtype, overlap, messages, partition", [       # all pairs
    ("csr", "float32", True, "peer", "rows"), ("csr", "float64", False, "peer", "graph"),
    ("csr", "complex128", True, "nccl", "rows"), ("sell", "float32", False, "peer", "rows"),
    ("sell", "float64", True, "nccl", "graph"), ("sell", "complex128", True, "peer", "graph"),
    ("bsr(block=3)", "float32", True, "nccl", "graph"), ("bsr(block=3)", "float64", True, "peer", "rows"),
    ("bsr(block=3)", "complex128", False, "peer", "graph")])
def test_product(count, partition, format, dtype, overlap, messages):
    if partition == "graph":
        pytest.importorskip("pymetis", reason="the partition of a graph needs pymetis")
    A, x = system(dtype, symmetric=False)
    wide = np.result_type(dtype, np.float64)

    def products(communicator):
        M = parts(communicator, A, partition=partition, block=3 if "bsr" in format else 1, overlap=overlap)
        M = M.stored_as(resolve("format", format))
        assert M.remote.block == M.local.block                   # 3, or 1 for formats of entries
        space = M.space
        mine, y, z = space.from_host(x[M.rows]), space.empty(x[M.rows].size, dtype), space.from_host(x[M.rows])
        M.apply(mine, y)
        M.apply_adjoint(mine, z, 3, 2)
        scaled = M.scaled(abs(mine) + 1, abs(mine) + 2)
        return M.gather(y), M.gather(z), M.norm_inf(), M.norm_frobenius(), scaled.norm_inf()

    exact = A.astype(wide).toarray()
    rounding = 1e-5 if dtype == "float32" else 1e-13
    for y, z, inf, frobenius, scaled in on_gpus(count, products, messages=messages):
        assert np.allclose(y, exact @ x, rtol=rounding, atol=rounding)
        assert np.allclose(z, 3 * exact.conj().T @ x + 2 * x, rtol=rounding, atol=10 * rounding)
        assert inf == pytest.approx(abs(exact).sum(axis=1).max(), rel=rounding)
        assert frobenius == pytest.approx(np.linalg.norm(exact), rel=rounding)
        both = (abs(x) + 1)[:, None] * abs(exact) * (abs(x) + 2)
        assert scaled == pytest.approx(both.sum(axis=1).max(), rel=rounding)


@pytest.mark.parametrize("messages", ["peer", "nccl"])
@pytest.mark.parametrize("format, precond", [
    ("bsr", "ilu(block=None)"), ("block_sell", "ilu(block=None, solve='sweeps(count=2)')"),
    ("bsr", "block_jacobi"),
    ("bsr", "schwarz(inner=ilu(block=None), overlap=1)")])
def test_systems_in_blocks(count, format, precond, messages):
    """From products to solves of several right-hand sides; the solver has the size of the matrix alone."""
    A = gallery.coupled_transport((3, 5, 5), 3)
    B = A @ np.random.default_rng(3).standard_normal((225, 2))

    def solves(communicator):
        M = parts(communicator, A)
        solver = swell.prepare(M, method="gmres", precond=precond, format=format)
        in_blocks = any("off-diagonal part in blocks of 3" in line for line in solver.describe())
        assert M.block_size == 3 and in_blocks == (communicator.size > 1)
        x = solver.solve(B[M.rows], together=True).x
        solver.update(parts(communicator, 2 * A))
        return M.gather(x), M.gather(solver.solve(B[M.rows][:, 0]).x)

    for x, halved in on_gpus(count, solves, messages=messages):
        assert np.linalg.norm(A @ x - B) <= 1e-7 * np.linalg.norm(B)
        assert np.linalg.norm(2 * A @ halved - B[:, 0]) <= 1e-7 * np.linalg.norm(B[:, 0])


def test_slabs_that_the_gpus_make(count):
    """Poisson's matrix, each rank's planes of it made on its own GPU."""
    from swell.bench.scaling.ranks import slab
    A, x = gallery.poisson((6, 5, 5)), np.random.default_rng(6).random(150)

    def product(communicator):
        M = slab(communicator, 5, "cuda", 6)
        mine, y = M.space.from_host(x[M.rows]), M.space.empty(M.own.shape[0], M.dtype)
        M.apply(mine, y)
        return M.gather(y), M.nnz

    for y, entries in on_gpus(count, product):
        assert np.allclose(y, A @ x, rtol=1e-14) and entries == A.nnz


@pytest.mark.parametrize("dtype, overlap, messages, both_ways", [               # all pairs
    ("float32", True, "peer", True), ("float32", False, "peer", False), ("float32", True, "nccl", True),
    ("float64", True, "peer", False), ("float64", False, "peer", True), ("float64", True, "nccl", False),
    ("complex64", True, "peer", False), ("complex64", False, "peer", True), ("complex64", True, "nccl", False),
    ("complex128", True, "peer", True), ("complex128", False, "peer", False), ("complex128", True, "nccl", True)])
def test_inner_products_beside_a_product(count, dtype, overlap, messages, both_ways):
    """Also where a rank sends to whom it gets nothing from."""
    A, x = system(dtype, symmetric=False)
    if not both_ways:
        A = sp.csr_array(sp.tril(A))
    w, y = x[::-1].copy(), A.astype(np.complex128) @ x

    def products(communicator):
        M = parts(communicator, A, overlap=overlap)
        space = M.space
        mine, other, out = space.from_host(x[M.rows]), space.from_host(w[M.rows]), space.empty(x[M.rows].size, dtype)
        two, one = (space.empty(2, accumulator(dtype)) for _ in range(2))
        M.apply_dots(mine, out, other, two)
        M.apply_dot(mine, out, other, one)
        space.ranks.allreduce(two), space.ranks.allreduce(one)
        return M.gather(out), space.to_host(two), space.to_host(one)[0]

    rounding = 1e-5 if dtype in ("float32", "complex64") else 1e-13
    size = np.linalg.norm(w) * np.linalg.norm(y)
    for out, (wy, yy), wy_alone in on_gpus(count, products, messages=messages):
        assert np.allclose(out, y, rtol=rounding, atol=rounding)
        assert abs(wy - np.vdot(w, y)) <= rounding * size and abs(wy_alone - np.vdot(w, y)) <= rounding * size
        assert yy == pytest.approx(np.vdot(y, y).real, rel=rounding)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("messages", ["peer", "nccl"])
def test_many_messages_one_after_the_other(count, dtype, messages):
    """Some ranks send to whom they get nothing from, and one is slower than the others."""
    A = sp.csr_array(sp.eye_array(1000) + sp.diags_array([np.full(999, 0.5)], offsets=[-1])).astype(dtype)
    steps = 300

    def powers(communicator):
        M = parts(communicator, A)
        space = M.space
        x, y, sums = space.empty(M.own.shape[0], dtype), space.empty(M.own.shape[0], dtype), space.empty(3, dtype)
        x.fill(1)
        all_sums = []
        for k in range(steps):
            if k % 100 == communicator.rank:
                space.xp.linalg.svd(space.xp.ones((200, 200)))
            M.apply(x, y)
            x, y = y, x
            x *= 0.75
            if k % 10 == 0:
                sums.fill(communicator.rank + k)
                space.ranks.allreduce(sums)
                all_sums.append(space.to_host(sums))
        return M.gather(x), np.array(all_sums)

    wide, x = A.astype(np.complex128), np.ones(1000, np.complex128)
    for _ in range(steps):
        x = 0.75 * (wide @ x)
    sums = [sum(rank + k for rank in range(count)) for k in range(0, steps, 10)]
    for found, added in on_gpus(count, powers, messages=messages):
        assert np.allclose(found, x, rtol=1e-3 if dtype in ("float32", "complex64") else 1e-11)
        assert (added == np.array(sums)[:, None]).all()


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("method, scaling", [*((method, None) for method in METHODS),
                                             *((method, scaling) for method in ("cg", "gmres", "tfqmr")
                                               for scaling in ("jacobi", "ruiz(p=inf)"))])
def test_the_iterations_of_one_device(count, method, dtype, scaling):
    A, b = system(dtype)
    if method in HERMITIAN:
        A = sp.csr_array((A + A.conj().T) / 2)
    settings = {"method": method, "scaling": scaling, "rtol": 1e-10}
    one_rank = swell.solve(A, b, **settings)
    for x, result in on_gpus(count, solved, A, b, "rows", settings):
        assert result.converged and np.linalg.norm(b - A @ x) <= 1e-10 * np.linalg.norm(b)
        assert abs(result.iterations - one_rank.iterations) <= max(1, 0.02 * one_rank.iterations)


@pytest.mark.parametrize("method, precond", [("cg", "ic0"), ("cg", "ic0(solve='sweeps(count=3)')"), ("gmres", "ilu0"),
                                             ("bicgstab", swell.ILU0(solve=swell.Sweeps(3))), ("gmres", "block_jacobi"),
                                             ("cg", "jacobi"), (None, None), ("gmres", "schwarz(overlap=2)"),
                                             ("cg", "schwarz(kind='additive', inner='ic0')")])
@pytest.mark.parametrize("partition", ["rows", "graph"])
def test_preconditioners_of_each_rank(count, method, precond, partition):
    if partition == "graph":
        pytest.importorskip("pymetis", reason="the partition of a graph needs pymetis")
    A, b = system(symmetric=method in ("cg", None))
    for x, result in on_gpus(count, solved, A, b, partition, {"method": method, "precond": precond}):
        assert result.converged and np.linalg.norm(b - A @ x) <= 1e-8 * np.linalg.norm(b)


@pytest.mark.parametrize("method", ["cocr", "tfqmr", "qmr", "bicgstabl", "idrs"])
@pytest.mark.parametrize("precond", ["ilu0(solve='sweeps(count=3)')", "schwarz(kind='additive', inner='jacobi')"])
def test_methods_with_preconditioners_of_each_rank(count, method, precond):
    """Symmetric in a symmetric system, and with an adjoint; a second solve, from the captured graph, allocates nothing."""
    A, b = system("complex128")

    def twice(communicator):
        M = parts(communicator, A)
        solver = swell.prepare(M, method=method, precond=precond)
        result, mine = solver.solve(b[M.rows]), M.space.from_host(b[M.rows])
        return M.gather(result.x), result, allocations_of_a_second_run(solver, mine)

    for x, result, allocated in on_gpus(count, twice):
        assert result.converged and np.linalg.norm(b - A @ x) <= 1e-8 * np.linalg.norm(b)
        assert allocated == 0 and result.host_reads == 0


def test_ruiz_scaling_of_moduli_that_are_not_symmetric(count):
    """It takes a transpose in the same parts, whose entries go to their ranks."""
    A, b = system(symmetric=False)
    settings = {"method": "bicgstab", "scaling": "ruiz"}
    one_rank = swell.solve(A, b, **settings)
    for x, result in on_gpus(count, solved, A, b, "rows", settings):
        assert result.converged and np.linalg.norm(b - A @ x) <= 1e-8 * np.linalg.norm(b)
        assert abs(result.iterations - one_rank.iterations) <= max(1, 0.02 * one_rank.iterations)


def test_a_breakdown_is_taken_up_by_all_ranks(count):
    """(r̂, r) = 0 at the start, judged alike; with the next shadow vector all converge."""
    A, _ = system(symmetric=False)
    shadow, b = np.empty(441), np.zeros(441)
    make_space("cpu").random(1, shadow)
    b[0], b[440] = shadow[440], -shadow[0]
    for method in ("bicgstabl", "tfqmr", "qmr"):
        for x, result in on_gpus(count, solved, A, b, "rows", {"method": method}):
            assert result.converged and np.linalg.norm(b - A @ x) <= 1e-8 * np.linalg.norm(b)


def test_your_own_preconditioner_is_called_step_by_step(count):
    """Nothing is captured then; the ranks still stop together."""
    A, b = system()

    def own(communicator):
        M = parts(communicator, A)
        d = M.space.from_host(A.diagonal()[M.rows])
        result = swell.solve(M, b[M.rows], method="cg", M=lambda r: r / d)
        return M.gather(result.x), result

    for x, result in on_gpus(count, own):
        assert result.converged and np.linalg.norm(b - A @ x) <= 1e-8 * np.linalg.norm(b)


def test_the_monitor_of_one_rank_stops_all(count):
    A, b = gallery.poisson2d(300), np.ones(90_000)

    def stopped(communicator):
        M = parts(communicator, A)
        monitor = (lambda k, r: k >= 3) if communicator.rank == communicator.size - 1 else None
        return swell.prepare(M, method="cg", rtol=1e-13).solve(b[M.rows], monitor=monitor)

    results = on_gpus(count, stopped)
    assert {r.reason for r in results} == {Reason.STOPPED} and len({r.iterations for r in results}) == 1


@pytest.mark.parametrize("kind", ["M", "monitor"])
def test_an_error_of_one_rank_is_caught_by_all(count, kind):
    """Of a function that is called step by step, and of one beside a captured graph; the ranks go on."""
    if count == 1:
        pytest.skip("one rank has no others")
    A, b = system()

    def caught(communicator):
        M, calls = parts(communicator, A), []

        def fails(*arguments):
            calls.append(None)
            if len(calls) == 3 and communicator.rank == communicator.size - 1:
                raise ZeroDivisionError("here")
            return arguments[0] if kind == "M" else False

        with pytest.raises(ZeroDivisionError, match="here") as error:
            swell.solve(M, b[M.rows], method="cg", **{kind: fails})
        return error.value.__notes__, swell.solve(M, b[M.rows], method="cg").converged

    for notes, converged in on_gpus(count, caught):
        assert f"raised on rank {count - 1} of {count}" in notes[0] and converged


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("precond", ["jacobi", "schwarz(kind='additive', inner='ic0')", "schwarz(overlap=2)",
                                     "schwarz(overlap=0, inner='jacobi')"])
def test_parts_of_odd_sizes(count, dtype, precond):
    """A rank's rows begin anywhere among those that it shares with others, and kernels access 16 bytes at a time."""
    settings = {"method": "gmres", "precond": precond, "rtol": 1e-4}
    for n in [5, 31, 33, 67]:
        with during(n=n):
            A, b = banded(n, dtype)
            for x, result in on_gpus(count, solved, A, b, "rows", settings):
                assert result.converged and np.linalg.norm(b - A @ x) <= 1.1e-4 * np.linalg.norm(b)


@pytest.mark.skipif(launched() > 1, reason="of threads")
def test_an_error_of_one_rank_ends_the_others(count):
    """Also those that wait for it on their GPU."""
    if count == 1:
        pytest.skip("one rank has no others")

    def fails(communicator):
        space, own = on_device(communicator, "cuda")
        if communicator.rank:
            raise ZeroDivisionError("here")
        own.allreduce(space.xp.ones(1))
        space.synchronize()
        communicator.allgather(None)

    with pytest.raises(ZeroDivisionError, match="here"):
        distributed.run(count, fails)


@pytest.mark.skipif(launched() > 1, reason="of threads")
def test_more_ranks_than_gpus():
    if not gpus():
        pytest.skip("there is no GPU")
    with pytest.raises(swell.InputError, match="of its GPUs: each wants a GPU of its own"):
        distributed.run(gpus() + 1, lambda c: parts(c, gallery.poisson2d(10)))


@pytest.mark.skipif(launched() > 1, reason="of threads")
@pytest.mark.parametrize("settings", [{}, {"method": "cg", "scaling": "jacobi"}, {"method": "gmres", "precond": "ilu0"}])
def test_all_gpus_from_one_process(settings):
    if not gpus():
        pytest.skip("there is no GPU")
    A = gallery.poisson2d(60)
    b = np.sin(np.arange(3600.0))
    for right in (b, np.stack([b, b**2], axis=1)):
        r = swell.solve(A, right, device="cuda:all", **settings)
        assert r.converged and r.x.shape == right.shape
        assert np.linalg.norm(right - A @ r.x) <= 1e-8 * np.linalg.norm(right)
    s = swell.prepare(A, device="cuda:all", **settings)
    for k in (1, 2, 3):                          # what GPUs share lives between calls
        r = s.update(k * A).solve(b)
        assert r.converged and np.linalg.norm(b - k * (A @ r.x)) <= 1e-8 * np.linalg.norm(b)
    with pytest.raises(swell.InputError, match="takes no M"):
        swell.solve(A, b, device="cuda:all", M=lambda r: r)
    with pytest.raises(swell.InputError, match="direct does not run across ranks"):
        swell.solve(A, b, device="cuda:all", method="direct")


@pytest.mark.skipif(launched() > 1, reason="of threads")
@pytest.mark.parametrize("messages", ["peer", "nccl"])
@pytest.mark.parametrize("end", ["del s", "pass"])
def test_a_process_ends_with_a_solver_on_all_gpus(messages, end):
    """Deleted before, or alive at the end."""
    if not gpus():
        pytest.skip("there is no GPU")
    code = ("import numpy as np, swell\n"
            "from swell.distributed.threads import ThreadCommunicator\n"
            f"ThreadCommunicator.messages = {messages!r}\n"
            "s = swell.prepare(swell.gallery.poisson2d(60), method='cg', device='cuda:all')\n"
            f"print(s.solve(np.ones(3600)).converged, s.solve(np.ones(3600)).converged)\n{end}\n")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, "True True\n"), done.stdout + done.stderr
