"""An error that a user's function raises on one rank, and that the program catches, is the same error on every rank."""
from __future__ import annotations

import numpy as np
import pytest
from tests.support.across import METHODS, system

import swell
from swell import distributed
from swell.core.errors import OutOfMemory
from swell.core.operator import LinearOperator
from swell.core.registry import load
from swell.distributed import communicator as communication
from swell.distributed.communicator import Broken
from swell.distributed.launcher import launched

PRECONDITIONABLE = [name for name in METHODS if load("method", name).preconditionable and not load("method", name).adjoint]


class Mine(Exception):
    """With arguments from which it cannot be made again."""

    def __init__(self, number, word):
        super().__init__(f"{word} {number}")


def matrix(communicator, **settings):
    A, b = system()
    M = distributed.scatter(communicator, A, **settings)
    return A, M, b[M.rows]


def caught(communicator, solve):
    """The error of this rank; and that the ranks can go on."""
    try:
        solve()
    except BaseException as error:
        communicator.allgather(None)
        return type(error), str(error), "".join(getattr(error, "__notes__", ()))
    raise AssertionError(f"no error on rank {communicator.rank}")


def check(found, size, kind, message):
    rank = size - 1
    assert all(error == (kind, message, found[0][2]) for error in found)
    assert f"raised on rank {rank} of {size}" in found[0][2]


def failing(communicator, after, error):
    """A preconditioner, z = r, that fails on the last rank."""
    calls = []

    def M(r):
        calls.append(None)
        if len(calls) == after and communicator.rank == communicator.size - 1:
            raise error
        return r
    return M


@pytest.fixture
def several(ranks):
    if ranks.size == 1:
        pytest.skip("one rank has no others")
    return ranks


@pytest.mark.parametrize("after", [1, 3])
@pytest.mark.parametrize("method", PRECONDITIONABLE)
def test_a_preconditioner(several, method, after):
    """Of which some methods apply one before the first reduction, others after it."""
    def failed(communicator):
        A, M, b = matrix(communicator)
        precond = failing(communicator, after, ZeroDivisionError("mine"))
        found = caught(communicator, lambda: swell.solve(M, b, method=method, M=precond))
        assert swell.solve(M, b, method=method).converged        # the same ranks, the same matrix
        return found

    check(several.run(failed), several.size, ZeroDivisionError, "mine")


@pytest.mark.parametrize("method", METHODS)
def test_a_monitor(several, method):
    """It may fail at the first look, and after convergence has been judged."""
    def failed(communicator, after):
        A, M, b = matrix(communicator)

        def monitor(k, residual):
            if k >= after and communicator.rank == communicator.size - 1:
                raise Mine(k, "at")
        return caught(communicator, lambda: swell.solve(M, b, method=method, monitor=monitor))

    for after in (0, 3):
        check(several.run(failed, after), several.size, RuntimeError, f"Mine: at {after}")


class Odd(BaseException):
    """An error that is no Exception."""


@pytest.mark.parametrize("kind", [KeyboardInterrupt, Odd])
@pytest.mark.parametrize("by", ["monitor", "M"])
def test_ctrl_c_in_a_users_function(several, by, kind):
    """A program that catches it goes on, and on all ranks."""
    def failed(communicator):
        A, M, b = matrix(communicator)
        fails = failing(communicator, 3, kind("mine"))
        settings = {"M": fails} if by == "M" else {"monitor": lambda k, residual: fails(False)}
        found = caught(communicator, lambda: swell.solve(M, b, method="cg", **settings))
        assert swell.solve(M, b, method="cg").converged
        return found

    check(several.run(failed), several.size, kind, "mine")


def test_a_rank_that_leaves_in_a_monitor_and_is_held_back(several):
    """The others hear that it left."""
    def failed(communicator):
        A, M, b = matrix(communicator)
        fails = failing(communicator, 3, SystemExit(3))
        found = caught(communicator, lambda: swell.solve(M, b, method="cg", monitor=lambda k, residual: fails(False)))
        assert swell.solve(M, b, method="cg").converged
        return communicator.rank, *found[:2]

    last = several.size - 1
    for rank, kind, message in several.run(failed):
        if rank == last:
            assert (kind, message) == (SystemExit, "3")
        else:
            assert kind is swell.InputError and f"rank {last} has ended its program by sys.exit(3)" in message


def test_an_error_that_is_raised_twice(several):
    """The same object, as a module may keep one."""
    def failed(communicator):
        A, M, b = matrix(communicator)
        error = ZeroDivisionError("mine")
        return [caught(communicator, lambda: swell.solve(M, b, method="cg", M=failing(communicator, 2, error)))[:2]
                for _ in range(2)]

    for found in several.run(failed):
        assert found == 2 * [(ZeroDivisionError, "mine")]


@pytest.mark.parametrize("call, message", [
    (lambda c, A, b, bad: swell.solve(A, b, method="cgg" if bad else "cg"), "unknown method 'cgg'"),
    (lambda c, A, b, bad: swell.solve(A, b, method="cg", precond="ilu(0)x" if bad else None), "cannot read 'ilu(0)x'"),
    (lambda c, A, b, bad: swell.solve(A, b, method="cg", rtol=-1 if bad else 1e-8), "rtol=-1"),
    (lambda c, A, b, bad: swell.solve(A, b, method="cg", stopping=3 if bad else swell.Stopping()), "stopping=3"),
    (lambda c, A, b, bad: swell.solve(A, b, method="cg", monitor=3 if bad else None), "monitor=3"),
    (lambda c, A, b, bad: swell.solve(A, b, method="cg", progress=3 if bad else False), "progress=3"),
    (lambda c, A, b, bad: swell.solve(A, "b" if bad else b, method="cg"), "b has dtype"),
    (lambda c, A, b, bad: swell.solve(A, b, method="cg", device="cuda" if bad else None), "A lives in the cpu space"),
    (lambda c, A, b, bad: swell.prepare(A, method="cg", M=len if bad else None, precond="ic0"), "both M and precond"),
    (lambda c, A, b, bad: swell.prepare(A, method="cg", dtype="int8" if bad else None), "dtype='int8'"),
    (lambda c, A, b, bad: swell.prepare(A, method="cg").solve(b, adjoint=3 if bad else False), "adjoint=3"),
    (lambda c, A, b, bad: swell.prepare(A, method="cg").update("A" if bad else A), "A is str"),
    (lambda c, A, b, bad: swell.prepare(A, method="cg").stop_by(3 if bad else swell.Stopping()), "stop_by(3)"),
    (lambda c, A, b, bad: swell.prepare(A, method="cg").prefer(3 if bad else 0), "prefer(3)"),
    (lambda c, A, b, bad: distributed.scatter(c, system()[0], device=3 if bad else "cpu"), "the device"),
    (lambda c, A, b, bad: distributed.from_subdomains(c, 3 if bad else [(system()[0], range(441))]), "'int'"),
    (lambda c, A, b, bad: distributed.from_parts(c, None if bad else A.own.to_scipy(), None, None), "NoneType"),
    (lambda c, A, b, bad: A.gather(3 if bad else b), "x has shape ()")])
def test_a_mistake_of_one_rank(several, call, message):
    """Found before the ranks have said anything, it is the same error on all of them, in the same call."""
    def failed(communicator):
        A, M, b = matrix(communicator)
        found = caught(communicator, lambda: call(communicator, M, b, communicator.rank == communicator.size - 1))
        assert swell.solve(M, b, method="cg").converged
        return found[:2]

    found = several.run(failed)
    assert len(set(found)) == 1 and message in found[0][1], found


def test_what_agreement_costs(ranks):
    """Messages for each call, and none for each iteration."""
    def counted(communicator):
        A, M, b = matrix(communicator)
        solver, gather, calls = swell.prepare(M, method="cg"), communicator._gather_objects, []
        communicator._gather_objects = lambda value: calls.append(value) or gather(value)
        counts = []
        for rtol in (1e-2, 1e-10):
            solver.stop_by(swell.Stopping(rtol=rtol))
            calls.clear()
            monitored = solver.solve(b)
            counts.append((monitored.iterations, sum(value[1] is None and value[0] is None for value in calls)))
        del communicator._gather_objects
        return counts

    for (few, first), (many, second) in ranks.run(counted):
        assert many > 2 * few and second - first <= many // 10 + 1


def test_two_ranks_with_different_errors(several):
    """The first rank's stands."""
    def failed(communicator):
        A, M, b = matrix(communicator)
        errors = [ZeroDivisionError("zero"), ValueError("one"), *[KeyError("more")] * several.size]

        def monitor(k, residual):
            if k == 2 + communicator.rank:
                raise errors[communicator.rank]
        return caught(communicator, lambda: swell.solve(M, b, method="cg", monitor=monitor))

    assert {error[:2] for error in several.run(failed)} == {(ZeroDivisionError, "zero")}


def test_what_a_preconditioner_must_not_return(several):
    """swell's own refusals come by the same way."""
    def failed(communicator):
        A, M, b = matrix(communicator)
        precond = (lambda r: r[1:]) if communicator.rank else (lambda r: r)
        return caught(communicator, lambda: swell.solve(M, b, method="cg", M=precond))

    for kind, message, _ in several.run(failed):
        assert kind is swell.InputError and "values for a vector of" in message


@pytest.mark.parametrize("settings, message", [({"format": "bsr(block=4)"}, "cannot divide a matrix of"),
                                               ({"method": "gmres"}, "no room")])
def test_a_setup_that_one_rank_cannot_finish(several, monkeypatch, settings, message):
    """Its format does not fit the rows of one rank at least, or its basis the memory."""
    def failed(communicator):
        A, M, b = matrix(communicator)
        if communicator.rank == several.size - 1 and "format" not in settings:
            def check_fits(needed, what, remedy):
                raise OutOfMemory("no room")
            monkeypatch.setattr(M.space, "check_fits", check_fits)
        return caught(communicator, lambda: swell.solve(M, b, **{"method": "cg", **settings}))

    found = several.run(failed)
    assert all(error == found[0] for error in found) and message in found[0][1]


class Operator(LinearOperator):
    """A matrix-free A across ranks: it sends messages itself."""

    def __init__(self, A, fails):
        super().__init__(A.shape, A.dtype, A.space)
        self.A, self.fails, self.calls = A, fails, 0

    def apply(self, x, out, alpha=1, beta=0):
        self.calls += 1
        if self.calls == 3 and self.fails:
            raise ZeroDivisionError("mine")
        self.A.apply(x, out, alpha, beta)


@pytest.mark.skipif(launched() > 1, reason="of processes this is tested from outside: it ends them")
@pytest.mark.parametrize("size", [2, 3])
def test_an_operator_that_owes_the_others_messages(monkeypatch, size):
    """They cannot be given, so all ranks end; none waits for ever."""
    monkeypatch.setattr(communication, "HEARD", 0.5)

    def failed(communicator):
        A, M, b = matrix(communicator)
        try:
            swell.solve(Operator(M, communicator.rank == 1), b, method="cg")
        except Exception as error:
            return error

    found = distributed.run(size, failed)
    assert isinstance(found[1], ZeroDivisionError)
    assert all(isinstance(error, (Broken, ZeroDivisionError)) for error in found)


def test_a_monitor_that_asks_for_x_is_refused_on_every_rank(several):
    def solve(communicator):
        A, M, b = matrix(communicator)
        monitor = swell.SolutionMonitor(print)
        found = caught(communicator, lambda: swell.solve(M, b, method="cg", monitor=monitor))
        return found, swell.solve(M, b, method="cg", rtol=1e-6).converged
    for (kind, message, _), converged in several.run(solve):
        assert kind is swell.InputError and "each rank has a part" in message and converged
