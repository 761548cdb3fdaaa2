"""Ranks for every test here: threads, or, where the tests themselves were started by ``mpiexec``, its processes."""
from __future__ import annotations

import pytest
from tests.support.across import gpus, shared
from tests.support.across import world as started

from swell.distributed import threads
from swell.distributed.amg import hierarchy
from swell.distributed.launcher import launched
from swell.preconditioners.amg.hierarchy import COARSEST


class Ranks:
    """So many ranks, to call a function on."""

    def __init__(self, size, communicator=None):
        self.size, self._communicator = size, communicator

    def run(self, function, *arguments):
        """What ``function(communicator, *arguments)`` returns: of every rank, or of this process alone."""
        if self._communicator is None:
            return threads.run(self.size, function, *arguments)
        return [function(self._communicator, *arguments)]


@pytest.fixture(scope="session")
def world():
    return started() if launched() > 1 else None


@pytest.fixture(params=[launched()] if launched() > 1 else [1, 2, 4])
def ranks(request, world):
    return Ranks(request.param, world)


@pytest.fixture(params=[launched()] if launched() > 1 else [1, 2, 4])
def count(request):
    """Ranks with a GPU each; or, of processes, as many as there are, which SWELL_SHARE_GPUS lets share GPUs."""
    if gpus() < (1 if shared() else request.param):
        pytest.skip(f"{request.param} GPUs are needed, and there are {gpus()}")
    return request.param


@pytest.fixture
def few_rows(monkeypatch):
    """Levels of more than 40 rows a rank stay in parts, so that small systems have several of them."""
    for device in ("cpu", "cuda"):
        monkeypatch.setitem(hierarchy.GATHERED, device, 40)
        monkeypatch.setitem(COARSEST, device, 60)
