"""What a launch of a kernel hands to the driver, without a GPU: a driver of our own reads the arguments back."""
from __future__ import annotations

import ctypes
import types

import numpy as np
import pytest

from swell.core import cuda_kernels, launch
from swell.core.cuda_kernels import Kernel, signatures
from swell.core.graph import GraphLoop
from swell.distributed.graph import DistributedGraphLoop

SOURCE = """
// launch: elements of y, 256 threads
template <typename T, typename I, int WIDTH>
__global__ void plain(Context* ctx, const I* indices, const T* x, T* y, int width, long long first, double bound, bool down, T alpha,
                      long long n, long long x_size) {
}

// launch: elements of y, 512 threads, a pack each, at most 2 blocks per multiprocessor
template <typename T> __global__ void packs(Context* ctx, const T* x, T* y, long long y_stride) {
}

// launch: 2 blocks per multiprocessor of 512 threads, all at once
template <typename T> __global__ void together(Context* ctx, T* x) {
}

// launch: a block of height threads for each slice of ptr, shared bytes shared
template <typename I> __global__ void slices(Context* ctx, const I* ptr, int height, int shared, long long n) {
}
"""
READ = {"Q": ctypes.c_uint64, "q": ctypes.c_int64, "d": ctypes.c_double, "f": ctypes.c_float, "i": ctypes.c_int,
        "?": ctypes.c_bool}


class Array:
    """An array of a device, at an address."""

    def __init__(self, size, dtype, address=4096):
        self.host = np.zeros(size, dtype)
        self.size, self.dtype, self.shape = self.host.size, self.host.dtype, self.host.shape
        self.strides, self.itemsize, self.ndim = self.host.strides, self.host.itemsize, self.host.ndim
        self.data = types.SimpleNamespace(ptr=address)


class Attribute(ctypes.Structure):
    _fields_ = [("id", ctypes.c_int), ("padding", ctypes.c_char * 4), ("value", ctypes.c_int), ("rest", ctypes.c_char * 60)]


class Config(ctypes.Structure):
    _fields_ = [("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3), ("shared", ctypes.c_uint), ("stream", ctypes.c_void_p),
                ("attributes", ctypes.POINTER(Attribute)), ("count", ctypes.c_uint)]


class Driver:
    """Keeps what the last launch was given."""

    status = 0

    def __init__(self):
        kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Config), ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p),
                                ctypes.c_void_p)
        self.held = kind(self.launch)
        self.address = ctypes.cast(self.held, ctypes.c_void_p).value

    def launch(self, config, function, addresses, extra):
        config = config.contents
        self.grid, self.block, self.shared, self.stream = tuple(config.grid), tuple(config.block), config.shared, config.stream
        self.function, attribute = function, config.attributes.contents
        self.attribute = (attribute.id, attribute.value) if config.count else None
        self.words = [ctypes.string_at(addresses[k], 16 if f == "D" else 8) for k, f in enumerate(self.formats)]    # gone afterwards
        return self.status

    def read(self):
        """The values of the last launch, of which ``formats`` names the types."""
        return [np.ctypeslib.as_array(((ctypes.c_float if f == "F" else ctypes.c_double) * 2).from_buffer_copy(word.ljust(16)))
                .view(np.dtype(f))[0] if f in "FD" else READ[f].from_buffer_copy(word).value
                for f, word in zip(self.formats, self.words, strict=True)]


@pytest.fixture
def driver(monkeypatch):
    made = Driver()
    monkeypatch.setattr(cuda_kernels, "address_of_launch", lambda: made.address)
    function = types.SimpleNamespace(kernel=types.SimpleNamespace(ptr=77), max_dynamic_shared_size_bytes=49152,
                                     shared_size_bytes=1024)
    made.compiled, made.formats = [], ""
    monkeypatch.setattr(cuda_kernels, "loaded", lambda *what: made.compiled.append(what[-1]) or function)
    made.code = function
    return made


@pytest.fixture
def kernel(tmp_path, driver):
    path = tmp_path / "kernels.cu"
    path.write_text(SOURCE)
    gpu = cuda_kernels.Gpu(0, "a GPU", 3, 200_000, True)
    space = types.SimpleNamespace(context=Array(1, "u1", 64), gpu=gpu, launches=0, columns=1, current_stream=lambda: 5)
    return lambda name, dtype="float64": Kernel(space, path, name, dtype)


@pytest.mark.parametrize("dtype, letter", [("float32", "f"), ("float64", "d"), ("complex64", "F"), ("complex128", "D")])
def test_every_type_of_argument_arrives(dtype, letter, kernel, driver):
    alpha = np.dtype(dtype).type(1.5 - 2.25j if letter in "FD" else 1.5)
    plain, driver.formats = kernel("plain", dtype), "QQQQi" + "qd?" + letter + "qq"
    for first in (-3, np.int64(1 << 40)):
        plain(Array(7, "int32", 128), Array(0, dtype, 999), Array(600, dtype, 512), 4, first, np.float64(0.1), np.True_,
              alpha)
        assert driver.read() == [64, 128, 0, 512, 4, first, 0.1, True, alpha, 600, 0]
    assert (driver.grid, driver.block, driver.shared, driver.stream) == ((3, 1, 1), (256, 1, 1), 0, 5)
    assert driver.function == 77
    assert driver.attribute == (launch.DEPENDENT, 1)
    assert driver.compiled == [f"plain<{cuda_kernels.C_TYPES[dtype]}, int, 4>"]      # looked up once


def test_an_instantiation_for_each_combination_of_types(kernel, driver):
    plain = kernel("plain")
    for index, width in (("int32", 1), ("int64", 1), ("int32", 4), ("int32", 1)):
        plain(Array(7, index), Array(5, "float64"), Array(6, "float64"), width, 0, 0.0, False, 1.0)
    assert driver.compiled == ["plain<double, int, 1>", "plain<double, long long, 1>", "plain<double, int, 4>"]


def test_a_whole_number_is_no_real_one(kernel, driver):
    with pytest.raises(Exception, match="int"):
        kernel("plain")(Array(7, "int32"), Array(5, "float64"), Array(6, "float64"), 1, 0.5, 0.0, False, 1.0)


def test_arguments_that_do_not_fit_are_refused(kernel, driver):
    plain, given = kernel("plain"), (Array(7, "int32"), Array(5, "float64"), Array(6, "float64"), 1, 0, 0.0, False, 1.0)
    with pytest.raises(TypeError, match="argument 7 is missing"):
        plain(*given[:-1])
    with pytest.raises(TypeError, match="11 arguments of a kernel: expected at most 10"):
        plain(*given, 1, 2, 3)
    with pytest.raises(OverflowError, match="argument 3 of a kernel: expected an int of 32 bits, and 4294967296 came"):
        plain(*given[:3], 2**32, *given[4:])
    assert not driver.compiled[2:]


def test_packs(kernel, driver):
    packs, driver.formats = kernel("packs", "float32"), "QQQq"
    packs(Array(8, "float32"), Array((3, 8), "float32", 1024))
    assert driver.read() == [64, 4096, 1024, 8] and driver.grid[0] == 1
    packs(Array(8, "float32"), Array(10**6, "float32"))
    assert driver.grid[0] == 6                               # at most 2 a multiprocessor
    with pytest.raises(cuda_kernels.InputError, match="packs takes x 16 bytes at a time"):
        packs(Array(8, "float32", 4100), Array(8, "float32"))


def test_all_at_once(kernel, driver):
    together = kernel("together")
    together(Array(5, "float64"))
    assert (driver.grid[0], driver.block[0], driver.attribute) == (6, 512, (launch.COOPERATIVE, 1))
    for driver.status in launch.TOO_LARGE:
        with pytest.raises(cuda_kernels.InputError, match="6 blocks of 512 threads.*method='cg'"):
            together(Array(5, "float64"))
    driver.status = 1
    with pytest.raises(RuntimeError, match="CUresult 1"):
        together(Array(5, "float64"))


def test_shared_memory(kernel, driver):
    slices = kernel("slices")
    slices(Array(5, "int32"), 64, 60_000)
    assert (driver.grid[0], driver.block[0], driver.shared) == (4, 64, 60_000)
    assert driver.code.max_dynamic_shared_size_bytes == 60_000
    with pytest.raises(cuda_kernels.InputError, match="needs 201000 bytes"):
        slices(Array(5, "int32"), 64, 201_000)
    slices(Array(1, "int32"), 64, 0)                             # no slice: nothing is launched
    assert driver.shared == 60_000


def test_devices_without_dependent_launch(kernel, driver):
    plain = kernel("plain")
    plain.space.gpu = plain.space.gpu._replace(dependent_launch=False)
    other = Kernel(plain.space, plain.path, "plain", "float64")
    other(Array(7, "int32"), Array(5, "float64"), Array(6, "float64"), 1, 0, 0.0, False, 1.0)
    assert driver.attribute is None


@pytest.mark.parametrize("rows, kernels, bodies", [(0, 1, 16), (0, 3, 16), (0, 4, 15), (0, 50, 2), (0, 200, 1),
                                                   (10**6, 3, 5), (10**6, 20, 1), (10**8, 1, 1)])
def test_a_graph_is_as_long_as_its_launch_asks(rows, kernels, bodies):
    """A solve of 12 long iterations should not run 32 of them."""
    assert repeated(bare(GraphLoop, rows), kernels) == bodies


@pytest.mark.parametrize("slowest, bodies", [(100, 2), (120, 1), (30, 4), (1, 16)])
def test_the_graphs_of_ranks_are_equally_long(slowest, bodies):
    """As the slowest rank's estimate asks; a graph captured anew asks nobody, since one rank may do so alone."""
    loop, asked = bare(DistributedGraphLoop, 0), []
    loop._agreed = None
    loop._ranks = types.SimpleNamespace(max=lambda own: asked.append(own) or slowest)
    assert repeated(loop, 50) == bodies and repeated(loop, 3) == bodies and asked == [100]


@pytest.mark.parametrize("kernels, graphs, launched", [(60, 1, 2), (60, 9, 10), (300, 1, 1), (300, 8, 8), (300, 9, 10),
                                                       (300, 30, 31)])
def test_a_long_graph_is_not_launched_ahead_at_first(kernels, graphs, launched):
    """A short solve then has no surplus graph, whose kernels do nothing one after the other."""
    loop, done = bare(GraphLoop, 0), []
    assert repeated(loop, kernels) == 1
    loop._graph, loop._launch, loop.abort = object(), done.append, None
    loop._events = [types.SimpleNamespace(synchronize=lambda: None)] * 2
    loop.space.stream, seen = None, []
    loop._look = seen.append
    stopped = type("Stopped", (type(loop),), {"stopped": property(lambda self: len(seen) == graphs)})
    loop.__class__ = stopped
    loop._replay(None, 1)
    assert len(done) == launched and seen == [k % 2 for k in range(graphs)] and done == [k % 2 for k in range(launched)]


def bare(kind, rows):
    """A loop that can do nothing but count what it captures."""
    loop = kind.__new__(kind)
    loop.space, loop._rows = types.SimpleNamespace(launches=1000), rows
    return loop


def repeated(loop, kernels):
    """The number of bodies, of ``kernels`` kernels each, that the loop captures in a graph."""
    called = []

    def body():
        called.append(1)
        loop.space.launches += kernels
    loop._repeat(body, 16)
    return len(called)
