"""What tests across ranks share: a system, the methods, and GPUs."""
from __future__ import annotations

import functools
import os
from contextlib import contextmanager

import numpy as np
import pytest
import scipy.sparse as sp
from tests.support.cases import rng

import swell
from swell import distributed, gallery
from swell.core.cuda import require_cupy
from swell.core.errors import MissingDependency
from swell.core.registry import load, names
from swell.distributed.devices import on_device
from swell.distributed.launcher import launched
from swell.distributed.mpi import init

METHODS = [name for name in names("method") if load("method", name).distributed and name != "stationary"]
HERMITIAN = ("cg", "single_reduction_cg", "minres")


def system(dtype="float64", symmetric=True):
    A = gallery.poisson2d(21) + sp.diags_array(rng().random(441))
    if not symmetric:
        A = A + sp.diags_array(rng().random(440), offsets=1)
    if np.dtype(dtype).kind == "c":
        A = A + 0.3j * sp.diags_array(rng().random(441))
    A = sp.csr_array(A).astype(dtype)
    b = rng().standard_normal(441)
    return A, (b + 1j * b[::-1] if np.dtype(dtype).kind == "c" else b).astype(dtype)


def banded(n, dtype="float64"):
    """A symmetric, definite system of n rows, with entries between far rows too."""
    offsets = [k for k in (0, 1, 5) if k < n]
    A = sp.diags_array([np.full(n - k, -1.0) for k in offsets], offsets=offsets)
    A = sp.csr_array(A + A.T + 9 * sp.eye_array(n)).astype(dtype)
    return A, rng().standard_normal(n).astype(dtype)


def solved(communicator, A, b, partition, settings):
    """(x in the user's order, result, all-reduces of the solve)."""
    M = distributed.scatter(communicator, A if communicator.rank == 0 else None, partition=partition)
    solver = swell.prepare(M, **settings)
    before = communicator.reductions
    result = solver.solve(b[M.rows])
    count = communicator.reductions - before
    return M.gather(result.x), result, count


def gpus() -> int:
    """GPUs of this machine."""
    try:
        return require_cupy()[1]
    except MissingDependency:
        return 0


def shared() -> bool:
    """Whether ranks may share a GPU, to try more ranks than there are GPUs: SWELL_SHARE_GPUS, for processes."""
    return launched() > 1 and bool(os.environ.get("SWELL_SHARE_GPUS"))


@functools.cache
def world():
    """The ranks that ``mpiexec`` started."""
    return init(share_gpus=shared())


def on_gpus(count, function, *arguments, messages=None):
    """What ``function(communicator, *arguments)`` returns on each rank, a thread each, or on this one, where ``mpiexec``
    has started it; communicators of GPUs are freed."""
    if messages == "nccl" and gpus() < count:
        pytest.skip("NCCL refuses ranks that share a GPU")

    def rank(communicator):
        try:
            with_gpu = on_device(communicator, "cuda", messages)[0]
            with with_gpu.active():
                return function(communicator, *arguments)
        finally:
            for _, own in communicator.places.values():
                own.close()
            communicator.places.clear()
    return [rank(world())] if launched() > 1 else distributed.run(count, rank)


@contextmanager
def arrays_while_active(local):
    """Within this block the space takes arrays while it is active only: elsewhere another GPU may be the current one."""
    inside, active, from_host = [], local.active, local.from_host

    @contextmanager
    def watched(rows=None):
        with active(rows):
            inside.append(True)
            yield
            inside.pop()

    def moved(array, out=None):
        assert inside
        return from_host(array, out)

    local.active, local.from_host = watched, moved
    try:
        yield
    finally:
        del local.active, local.from_host
