"""device="cuda:all" on ranks that are threads of a CPU: what stays between calls, and what ends them."""
from __future__ import annotations

import copy
import gc
import pickle
import threading

import numpy as np
import pytest
import scipy.sparse as sp
from tests.support.across import system

import swell
from swell import gallery
from swell.solver import Solver
from swell.core.configuration import Configuration
from swell.core.registry import resolve
from swell.distributed.all_gpus import SolverOnAllGPUs
from swell.distributed.launcher import launched
from swell.preconditioners.user import resolve_preconditioner
from swell.transforms.nullspace import resolve_nullspace

pytestmark = pytest.mark.skipif(launched() > 1, reason="of threads")


def prepared(A, ranks=2, dtype=None, b_dtype=None, stopping=None, block=None, **parts):
    named = Configuration(resolve("method", parts.get("method")), resolve_preconditioner(parts.get("precond")),
                          scaling=resolve("scaling", parts.get("scaling")),
                          nullspace=resolve_nullspace(parts.get("nullspace")))
    return SolverOnAllGPUs(A, dtype, b_dtype, named, lambda given: Solver(given, named, stopping or swell.Stopping()),
                           block=block, device="cpu", ranks=ranks)


def solves(A, b, x):
    return np.linalg.norm(b - A @ x) <= 1e-8 * np.linalg.norm(b)


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("parts", [{"method": "cg"}, {}, {"method": "gmres", "precond": "schwarz"}])
def test_one_process_gives_whole_vectors(ranks, parts):
    """Of several right-hand sides every column is whole."""
    A, b = system()
    s = prepared(A, ranks, **parts)
    for right in (b, np.stack([b, b[::-1]], axis=1)):
        result = s.solve(right)
        assert solves(A, right, result.x)
        for k, column in enumerate(result if right.ndim == 2 else [result]):
            assert np.array_equal(column.x, result.x[:, k] if right.ndim == 2 else result.x)
    assert result.notes[0] == "solved together"
    alone = s.solve(right, together=False)
    assert alone.notes[0] == "solved one by one: together=False was given" and np.array_equal(alone.x, result.x)
    again = s.solve(b, x0=s.solve(b).x)
    assert again.iterations <= 1 and again.converged


def test_what_a_solver_does():
    A, b = system()
    s, one = prepared(A, method="cg", precond="jacobi"), swell.prepare(A, method="cg", precond="jacobi")
    assert [configuration.name("method") for configuration in s.choices] == ["cg"] and s.A.shape == A.shape
    assert repr(s).startswith("SolverOnAllGPUs(2 ranks, of which the first: Solver(") and "prepared" in s._repr_html_()
    assert s.solve(b, progress=True).converged
    assert s.describe()[0].split(",")[0] == one.describe()[0].split(",")[0]
    assert s.stop_by(swell.Stopping(rtol=1e-3)).solve(b).iterations < s.stop_by(swell.Stopping()).solve(b).iterations
    assert s.solve(b).iterations == one.solve(b).iterations
    assert solves(3 * A, b, s.update(3 * A).solve(b).x)
    assert solves(A, b, s.update(A, keep_preconditioner=True).solve(b).x)
    seen = []
    assert s.solve(b, monitor=lambda k, residual: seen.append(k)).iterations == seen[-1]
    assert s.solve(b, monitor=lambda k, residual: k == 3).reason is swell.Reason.STOPPED
    assert prepared(A).prefer(1).solve(b).converged


def test_blocks_are_not_cut():
    A = sp.bsr_array(sp.kron(gallery.poisson2d(7), np.full((3, 3), 0.2) + np.eye(3)), blocksize=(3, 3))
    s = prepared(A, 2, method="cg", precond="ilu(block=None)")
    assert s.A.block_size == 3 and (s.A.space.ranks.starts % 3 == 0).all()
    assert any("blocks of 3" in line for line in s.describe())
    few = sp.csr_array(sp.kron(gallery.poisson1d(3), np.eye(3) + 1))
    assert prepared(few, 4, method="cg").A.space.ranks.starts.tolist() == [0, 3, 6, 9]   # three blocks, three ranks


def test_complex_right_hand_sides():
    A, b = system()
    with pytest.raises(swell.InputError, match="b is complex and the system was prepared real"):
        prepared(A, method="gmres").solve(1j * b)
    s = prepared(A, b_dtype=np.dtype(complex), method="gmres")
    assert solves(A, b + 1j, s.solve(b + 1j).x)
    r = prepared(A, dtype="float32", method="cg", stopping=swell.Stopping(rtol=1e-4)).solve(b)
    assert r.converged and r.x.dtype == np.float32 and "A was converted from float64 to float32" in r.notes


@pytest.mark.parametrize("call, message", [
    (lambda s, b: s.solve(b[:-1]), "b has shape"), (lambda s, b: s.solve(b, x0=np.zeros((b.size, 2))), "x0 has shape"),
    (lambda s, b: s.solve(b, monitor=3), "monitor=3: expected a function"),
    (lambda s, b: s.solve(1e200 * b), "leave the range of double precision"),
    (lambda s, b: s.solve(b, monitor=lambda k, r: 1 / 0), "division by zero"),
    (lambda s, b: s.solve(b, monitor=lambda k, r: s.solve(b)), "called from within its own solve"),
    (lambda s, b: s.stop_by(3), "expected a swell.Stopping"), (lambda s, b: s.prefer(7), "prefer"),
    (lambda s, b: s.update(gallery.poisson2d(4)), r"update: expected a matrix of shape \(441, 441\)"),
    (lambda s, b: s.update(sp.eye_array(441)), "prepare again"), (lambda s, b: s.copy(), "has no copies"),
    (lambda s, b: copy.copy(s), "has no copies"), (lambda s, b: pickle.dumps(s), "cannot be pickled")])
def test_errors_leave_it_able_to_solve(call, message):
    A, b = system()
    s = prepared(A, method="cg")
    with pytest.raises((swell.InputError, ZeroDivisionError), match=message):
        call(s, b)
    assert solves(A, b, s.solve(b).x)


def test_an_error_that_one_rank_keeps_to_itself(monkeypatch):
    """It ends the ranks, and every later call says so."""
    A, b = system()
    s = prepared(A, method="cg")
    monkeypatch.setattr("swell.distributed.communicator.HEARD", 0.1)
    with pytest.raises(KeyError, match="alone"):
        s._on_ranks(lambda ranks, solver: solver.solve(b[solver.A.rows]) if ranks.rank else {}["alone"])
    assert solves(A, b, s.solve(b).x)            # the others were asking, and have heard of it

    def silent(ranks, solver):
        if ranks.rank:
            threading.Event().wait(1)            # asks nothing
        else:
            raise KeyError("alone")

    with pytest.raises(KeyError, match="alone"):
        s._on_ranks(silent)
    with pytest.raises(swell.SwellError, match="has ended the ranks of this Solver: prepare again"):
        s.solve(b)


def test_threads_share_it():
    A, b = system()
    s, found = prepared(A, method="cg"), []
    threads = [threading.Thread(target=lambda: found.append(s.solve(b))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(r.x, found[0].x) for r in found) and len(found) == 3


@pytest.mark.parametrize("fails", [False, True])
def test_communicators_are_closed_with_it(fails, monkeypatch):
    from swell.distributed.threads import ThreadCommunicator
    closed = []
    A, b = system()
    gc.collect()                                 # of other tests
    monkeypatch.setattr(ThreadCommunicator, "close", lambda self: closed.append(self.rank))
    if fails:
        with pytest.raises(swell.InputError, match="direct does not run across ranks"):
            prepared(A, method="direct")
        gc.collect()
    else:
        s = prepared(A, method="cg")
        s.solve(b)
        s.solve(b)
        assert not closed
        del s
    assert sorted(closed) == [0, 1]


@pytest.mark.parametrize("A, parts, message", [
    (gallery.poisson2d(5), {"precond": lambda r: r}, "takes no M"),
    (gallery.poisson2d(5), {"nullspace": np.ones(25)}, "nullspace='constants' alone"),
    (sp.linalg.aslinearoperator(gallery.poisson2d(5)), {}, "A is matrix-free")])
def test_systems_that_cannot_be_divided(A, parts, message):
    with pytest.raises(swell.InputError, match=message):
        prepared(A, **parts)


def test_a_null_space():
    A = sp.csr_array(sp.csgraph.laplacian((gallery.poisson2d(8) < 0).astype(float)))
    b = np.random.default_rng(0).standard_normal(64)
    r = prepared(A, method="cg", nullspace="constants").solve(b - b.mean())
    assert r.converged and abs(r.x.sum()) < 1e-8
