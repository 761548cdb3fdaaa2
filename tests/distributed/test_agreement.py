"""What ranks must agree on, what is converted on all of them alike, and what is given back at the end."""
from __future__ import annotations

import re
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
from tests.support.across import arrays_while_active, solved, system

import swell
from swell import distributed
from swell.distributed import threads
from swell.distributed.communicator import Broken
from swell.distributed.device_communicator import DeviceCommunicator


ASCENDING = "ascending columns of other ranks"


@pytest.fixture
def several(ranks):
    if ranks.size == 1:
        pytest.skip("one rank agrees with itself")
    return ranks


@pytest.mark.parametrize("named", [{"partition": ["graph", "rows"]}, {"block": [1, 3]}])
def test_ranks_that_disagree_on_the_parts(several, named):
    (kind, values), = named.items()
    with pytest.raises(swell.InputError, match="the ranks disagree on partition and block"):
        several.run(lambda c: distributed.scatter(c, system()[0], **{kind: values[c.rank > 0]}))


@pytest.mark.parametrize("block", [0, -3, 1.5, "x"])
def test_blocks_that_are_none(ranks, block):
    with pytest.raises(swell.InputError, match=f"block={block!r}: expected a number of rows"):
        ranks.run(lambda c: distributed.scatter(c, system()[0], block=block))


@pytest.mark.parametrize("partition", ["rows", "graph"])
@pytest.mark.parametrize("named, factor, dtype", [({"dtype": "float32", "rtol": 1e-4}, 1, "float32"),
                                                  ({}, 1 + 2j, "complex128"),
                                                  ({"dtype": "complex128"}, 1, "complex128")])
def test_the_type_to_solve_in(ranks, partition, named, factor, dtype):
    """As on one device: the one asked for, or complex where b is."""
    if partition == "graph":
        pytest.importorskip("pymetis", reason="the partition of a graph needs pymetis")
    A, b = system()
    b = b * factor
    for x, result, _ in ranks.run(solved, A, b, partition, {"method": "cg", "b_like": b, **named}):
        assert result.converged and result.dtype == x.dtype == dtype
        assert (f"A was converted from float64 to {dtype}" in result.notes) == ("dtype" in named)
        assert np.linalg.norm(b - A @ x) <= 1.01 * named.get("rtol", 1e-8) * np.linalg.norm(b)


def test_a_conversion_is_made_on_the_own_gpu(ranks):
    """Elsewhere than in a solve the process's first one is the current one."""
    A, b = system()

    def converted(communicator):
        M = distributed.scatter(communicator, A)
        with arrays_while_active(M.space.local):
            return swell.prepare(M, method="cg", dtype="complex128").solve(b[M.rows]).converged

    assert all(ranks.run(converted))


def test_a_complex_matrix_does_not_become_real(ranks):
    A, b = system("complex128")
    with pytest.raises(swell.InputError, match="dtype=float64 would drop the imaginary part"):
        ranks.run(solved, A, b, "rows", {"method": "cocg", "dtype": "float64"})


def test_types_that_ranks_disagree_on(several):
    A, b = system()

    def mixed(communicator):
        M = distributed.scatter(communicator, A)
        swell.solve(M, b[M.rows] * (1j if communicator.rank else 1), method="cg")

    with pytest.raises(swell.InputError, match="the ranks disagree on the type to solve in"):
        several.run(mixed)


@pytest.mark.parametrize("bring, message", [
    (lambda c, own, rest, ghosts: distributed.from_rows(c, None), "NoneType: expected this rank's rows as a SciPy sparse"),
    (lambda c, own, rest, ghosts: distributed.from_parts(c, own[:, 1:], rest, ghosts), "expected a square diagonal block"),
    (lambda c, own, rest, ghosts: distributed.from_parts(c, own, rest, ghosts[1:]), "a column of rest for each ghost"),
    (lambda c, own, rest, ghosts: distributed.from_parts(c, own, rest, ghosts[::-1]), ASCENDING),
    (lambda c, own, rest, ghosts: distributed.from_parts(c, own, rest, ghosts - 441), ASCENDING),
    (lambda c, own, rest, ghosts: distributed.from_parts(c, own, rest, np.arange(ghosts.size) + 200),
     ASCENDING),
    (lambda c, own, rest, ghosts: distributed.scatter(c, system()[0]).gather(np.ones(3)), "x has shape (3,): expected"),
])
def test_rows_and_parts_that_are_none(several, bring, message):
    """One rank's mistake is an error of all."""
    A, _ = system()

    def brought(communicator):
        M = distributed.scatter(communicator, A)
        ghosts = M.halo.ghosts
        return bring(communicator, M.own.to_scipy(), M.global_rows()[:, ghosts], ghosts)

    with pytest.raises(swell.InputError, match=re.escape(message)):
        several.run(brought)


@pytest.mark.parametrize("change, message", [
    (lambda solver, M, rank: solver.stop_by(swell.Stopping(rtol=0.1 ** (rank + 2))), "the ranks disagree on when to stop"),
    (lambda solver, M, rank: solver.update(M, keep_preconditioner=rank > 0), "disagree on keep_preconditioner")])
def test_ranks_that_change_a_solver_in_their_own_ways(several, change, message):
    A, b = system()

    def changed(communicator):
        M = distributed.scatter(communicator, A)
        change(swell.prepare(M, method="cg", precond="bddc"), distributed.scatter(communicator, A), communicator.rank)

    with pytest.raises(swell.InputError, match=message):
        several.run(changed)


def test_a_matrix_in_parts_is_not_shared_out_again(ranks, monkeypatch):
    A, b = system()
    monkeypatch.setattr("swell.core.cuda.require_cupy", lambda: (None, 2))

    def again(communicator):
        M = distributed.scatter(communicator, A)
        swell.solve(M, b[M.rows], device="cuda:all")

    with pytest.raises(swell.InputError, match="A is in parts already: leave device out"):
        ranks.run(again)


@pytest.mark.parametrize("failed", [False, True])
def test_graphs_are_freed_after_a_failure_too(failed):
    """What they use is given back only where it was not ended with it."""
    done = []

    class Other(DeviceCommunicator):
        allreduce = allreduce_columns = exchange = None

        def _wait(self):
            done.append("waited")

        def _free(self):
            done.append("given back")

    host = threads.ThreadCommunicator(threads.Group(1), 0)
    communicator = Other(host, SimpleNamespace(active=nullcontext))
    communicator._loops = [SimpleNamespace(free=lambda: done.append("graph freed"))]
    if failed:
        host.abort()
    communicator.close()
    communicator.close()
    assert done == (["graph freed"] if failed else ["waited", "graph freed", "given back"])
    with pytest.raises(Broken):
        communicator.require_open()


@pytest.mark.parametrize("name", ["scatter", "read", "from_rows", "from_subdomains"])
def test_a_call_without_the_ranks(name):
    A = swell.gallery.poisson2d(4)
    with pytest.raises(swell.InputError, match="the first argument is a csr_.*: expected the ranks, as in ranks = swell"):
        getattr(distributed, name)(A, A)
