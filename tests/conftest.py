"""Fixtures that every test may use: the devices there are, and the real systems where they lie."""
from __future__ import annotations

import gc
import importlib.util
import os
import pathlib
import signal

WORKERS = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", 0))        # of pytest-xdist; 0 elsewhere, in its controller too
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def share_cores(workers):
    """Set what BLAS and swell read once, when they are loaded, for ``workers`` processes beside each other.

    By default each worker's threads wait busily on all cores: a solve of 128 rows by NumPy can take longer than a
    test's limit. A user's own settings stay. Two threads are left to swell, for tests about threads; where that is its
    default it is not told, so that ranks which tests start divide the cores."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if CORES > max(2, CORES // workers):
        os.environ.setdefault("SWELL_NUM_THREADS", str(max(2, CORES // workers)))


def pytest_configure(config):
    """Workers inherit the settings of their controller: plugins may load NumPy before a worker reads this file."""
    if getattr(config.option, "dist", "no") != "no" and config.option.tx:
        share_cores(len(config.option.tx))


if WORKERS:
    share_cores(WORKERS)

import pytest

os.environ.setdefault("SWELL_QUIET", "1")                # what compiles on a GPU depends on other tests
cupy = importlib.util.find_spec("cupy")
if cupy and cupy.origin and "emulation" in cupy.origin:  # a GPU on this CPU: emulation/cupy/__init__.py
    from cupy import NotEmulated

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(item):
        """Skip what the emulation refuses."""
        try:
            return (yield)
        except NotEmulated as refused:
            pytest.skip(str(refused))

from swell.core import space as spaces
from swell.core.errors import MissingDependency
from swell.core.devices import make_space
from swell.core.library import _native

ROOT = pathlib.Path(__file__).parents[1]
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
DTYPES = ["float32", "float64", "complex64", "complex128"]
DOUBLES = ["float64", "complex128"]              # what most tests use


def pytest_collection_modifyitems(items):
    """Modules that start processes come last: they need all cores."""
    items.sort(key=lambda item: "subprocess" in vars(item.module))


def pytest_collection_finish():
    """Thousands of collected tests live to the end: the collector need not look for cycles among them."""
    gc.freeze()


def space_or_skip(device):
    """A space for the device; a skip that says why where there is none."""
    try:
        return make_space(device)
    except MissingDependency as missing:
        pytest.skip(str(missing))


def pytest_runtest_setup(item):
    """A test marked ``gpu`` is skipped, and says why, where there is none."""
    if item.get_closest_marker("gpu"):
        space_or_skip("cuda")


@pytest.fixture(scope="session", autouse=True)
def threads():
    """Workers of pytest-xdist share the cores; two threads each would wait for one another's."""
    if WORKERS:
        _native.limit_threads(max(1, CORES // WORKERS))


@pytest.fixture(scope="session", autouse=True)
def memory_is_asked_for():
    """Small requests, too, look at the free memory, which tests of its lack replace by a few bytes."""
    before, spaces.ALWAYS_FREE = spaces.ALWAYS_FREE, 0
    yield
    spaces.ALWAYS_FREE = before


@pytest.fixture(scope="session", autouse=True)
def ctrl_c():
    """SIGINT is Ctrl-C here and in what tests start, also where the suite was started by ``&`` or nohup, with it
    ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory):
    """Choices of tuned formats are kept apart from the user's, and the advisor takes this machine for the one that its
    constants are from, so that its choices are the same everywhere."""
    from swell.advisor import machine
    before, os.environ["SWELL_CACHE"] = os.environ.get("SWELL_CACHE"), str(tmp_path_factory.mktemp("cache"))
    measure, machine.measure = machine.measure, lambda space: machine.Machine(*{"cpu": (16e9, 2), "cuda": (4.4e12, 1)}[space.name])
    yield measure
    machine.measure = measure
    os.environ.pop("SWELL_CACHE") if before is None else os.environ.update(SWELL_CACHE=before)


@pytest.fixture
def all_threads():
    """All of them, for a test of what threads do."""
    before = _native.threads()
    _native.limit_threads(0)
    yield _native.threads()
    _native.limit_threads(before)


@pytest.fixture
def nothing_outright(monkeypatch):
    """No factorisation is so quick that it is made outright: iterations come first on small systems too."""
    monkeypatch.setattr("swell.advisor.predictions.CERTAIN", {"cpu": 0.0, "cuda": 0.0})
    monkeypatch.setattr("swell.advisor.predictions.narrow_band", lambda A: None)


@pytest.fixture(params=DEVICES)
def device(request):
    """"cpu", then "cuda"."""
    space_or_skip(request.param)
    return request.param


def cudss_or_skip(device):
    """Skip, visibly, on a GPU without cuDSS, which factors matrices that are too large for cuSOLVER."""
    if device == "cuda":
        from swell.preconditioners.direct import missing
        if sentence := missing():
            pytest.skip(sentence)


@pytest.fixture
def cudss(monkeypatch):
    """cuDSS factors matrices on a GPU that cuSOLVER would factor as full ones; skipped, visibly, where it is missing."""
    cudss_or_skip("cuda")
    monkeypatch.setattr("swell.preconditioners.direct.factored_full", lambda A: False)


@pytest.fixture(autouse=True)
def partitioner(request):
    """Cases with the ordering by graph partition are skipped, visibly, where pymetis is not installed."""
    if "partition" in request.node.name:
        pytest.importorskip("pymetis", reason="the ordering by graph partition needs pymetis")


@pytest.fixture
def space(device):
    """A space of each device."""
    return space_or_skip(device)


@pytest.fixture(params=DOUBLES)
def dtype(request):
    """Double, real and complex."""
    return request.param


@pytest.fixture(scope="session")
def data():
    """The folder of the real systems (SWELL_DATA, or ../shared/data beside the repository)."""
    folder = pathlib.Path(os.environ.get("SWELL_DATA", ROOT.parent / "shared" / "data"))
    if not (folder / "matrices").is_dir():
        pytest.skip(f"no real systems in {folder}: set SWELL_DATA to their folder")
    return folder
