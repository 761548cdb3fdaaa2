"""CudaSpace: vectors are CuPy arrays on one GPU, kernels are CUDA C++, loops are CUDA graphs."""
from __future__ import annotations

import collections
import functools
import math
import os
import threading
import weakref
from contextlib import contextmanager

import numpy as np

from swell.core.ahead import foreseen
from swell.core.caches import for_cupy
from swell.core.columns import Columns
from swell.core.cuda_columns import ColumnKernel, for_columns
from swell.core.cuda_kernels import C_TYPES, Gpu, Kernel, Kernels, functions
from swell.core.cuda_sources import kernel_file
from swell.core.errors import MissingDependency, OutOfMemory
from swell.core.forking import REMEDY, require_own_gpu, use_gpu
from swell.core.slab import Slab
from swell.core.slots import Flag, Limit
from swell.core.space import Space, accumulator, aligned
from swell.core.upload import WORTH, upload

# struct Context of core/kernels/context.cuh
CONTEXT = np.dtype([("flags", np.int64, len(Flag)), ("limits", np.float64, len(Limit)),
                    ("mirror", np.uint64), ("history", np.uint64), ("partials", np.uint64), ("left", np.uint64),
                    ("left_count", np.int32), ("arrived", np.uint32)])

TOTALS = 64             # arrays whose last entries are read at once
MIN_COUNTS_OF_ALL = 1 << 14  # counts that all blocks add up together: one block takes 5 µs for them, a barrier 3


def require_cupy():
    """Return (the module cupy, number of GPUs), after a check that both exist.

    Raises
    ------
    MissingDependency
        That says which of the two is missing, and what to do.
    SwellError
        In a process that was forked after its parent had used a GPU.
    """
    require_own_gpu()
    for_cupy()
    try:
        import cupy
    except ImportError as error:
        raise MissingDependency(f"device='cuda' needs CuPy ({error}): pip install 'swell[cuda13]' (or 'swell[cuda12]' "
                                "for an older driver), or use device='cpu'") from None
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        forked = f"; if this process was forked, {REMEDY}" if error.status == 3 else ""     # "initialization error"
        raise MissingDependency(f"device='cuda' was asked for and no usable GPU was found ({error}): check nvidia-smi, "
                                f"or use device='cpu'{forked}") from None
    return cupy, count


# By device: streams of spaces that are gone. CuPy keeps freed memory by stream, so a new stream must ask the driver.
_streams = collections.defaultdict(list)
_callers = threading.local()                     # stream: the one that was current when a thread entered `active`


@functools.cache
def _properties(device):
    """The CUDA runtime's properties of GPU number ``device``, a dict; cached, since the driver takes a millisecond."""
    import cupy
    return cupy.cuda.runtime.getDeviceProperties(device)


@functools.cache
def _compile_ahead(device, part, value, columns):
    """Queue the kernels of a part, such as "method cg", for compilation in threads; repeated calls do nothing.

    ``device``: the GPU's number. ``value``: the C++ type of the values. ``columns``: number of right-hand sides."""
    for path, expression in foreseen(part, value):
        functions.begin(path, device, expression if columns == 1 else for_columns(path, expression, columns))


class CudaSpace(Space):
    """Vectors on one GPU.

    Attributes
    ----------
    device : int
    stream : cupy.cuda.Stream
        Everything of this space runs on it, in order.
    multiprocessors : int
    shared_memory, cache : int
        Bytes that one block may have, and of the second-level cache.
    launches : int
        Kernels of swell that were launched so far.
    dependent_launch : bool
        Kernels may begin while the one before them drains (``launch.py``).
    bulk_copies : bool
        An engine copies to shared memory by itself, as a kernel that never ends needs it (``krylov/resident_cg.py``).
    cluster_blocks : int
        Most blocks of a cluster: 16 with compute capability 9.0 and 10.x, 8 with later ones, 1 (no clusters) before.
    """

    name = "cuda"

    def __init__(self, device: int = 0, columns: int = 1):
        super().__init__()
        cupy, count = require_cupy()
        self.columns = columns
        if device >= count:
            raise MissingDependency(f"device='cuda:{device}' was asked for and there are {count} GPUs: use cuda:0 to "
                                    f"cuda:{count - 1}")
        self.xp, self.device, self.launches = cupy, device, 0
        self._turn = threading.RLock()           # threads that share the space share its stream and its record
        use_gpu()
        with cupy.cuda.Device(device):
            self.stream = _streams[device].pop() if _streams[device] else cupy.cuda.Stream(non_blocking=True)
            weakref.finalize(self, _streams[device].append, self.stream).atexit = False
            properties = _properties(device)
            self.multiprocessors = properties["multiProcessorCount"]
            self.shared_memory = properties["sharedMemPerBlockOptin"]
            self.cache = properties["l2CacheSize"]
            major = properties["major"]
            self.dependent_launch = self.bulk_copies = major >= 9
            self.cluster_blocks = 1 if major < 9 else 16 if major <= 10 else 8
            self._name = properties["name"].decode()
            self.gpu = Gpu(device, self.describe(), self.multiprocessors, self.shared_memory, self.dependent_launch)
            self._kernels = {}
            # For a memory checker, which sees the ends of allocations only, each array is one of its own.
            self._slab = None if os.environ.get("SWELL_NO_POOL") else Slab(cupy)
            with self.stream:
                self.context = cupy.zeros(columns * CONTEXT.itemsize, np.uint8)      # one for each right-hand side
                self._context = cupy.cuda.alloc_pinned_memory(self.context.size)
                self.host_context = np.frombuffer(self._context, CONTEXT, columns)
                self.host_context[...] = 0
                self._totals = cupy.cuda.alloc_pinned_memory(8 * TOTALS)
                self._scratch_doubles = 0
                self._block_sums = cupy.zeros(1 + 2 * self.multiprocessors, np.int64)    # of grid_prefix_sums
                self.reserve(1 << 16)

    def __reduce__(self):
        return CudaSpace, (self.device, self.columns)        # a copy or a pickle is a new space

    def reserve(self, doubles: int):
        """Enlarge the device buffer for partial sums to ``doubles`` doubles, all blocks together, if it is smaller.

        Each right-hand side has its own."""
        if doubles <= self._scratch_doubles:
            return
        self._scratch_doubles = doubles = aligned(doubles, np.float64)
        self._partials, self._left = (self.xp.empty(self.columns * doubles) for _ in range(2))
        host, offsets = self.host_context, 8 * doubles * np.arange(self.columns)
        host["partials"], host["left"] = self._partials.data.ptr + offsets, self._left.data.ptr + offsets
        self.send_context()

    def reserve_sums(self, scalars: int):
        self.reserve(2 * scalars * 8 * self.multiprocessors)

    def padded(self, n):
        return -(-n // 4) * 4                    # rows of a basis begin at multiples of 16 bytes

    def collect(self, dots):
        self.kernels("swell.core", "reductions", dots.dtype).collect_dots(dots)

    def send_context(self):
        """Copy ``host_context``, the record that all kernels read, to the device, in the stream's order."""
        self.stream.synchronize()                # the copy before may still be reading the host's
        self.context.data.copy_from_host_async(self._context.ptr, self.context.size)

    @contextmanager
    def active(self, rows=None):
        """Return a context: its block runs on this space's stream, after the work on the caller's current stream.

        The block ends when the GPU has finished. An allocation that fails in it raises OutOfMemory. ``rows`` is not
        used."""
        require_own_gpu()
        cupy = self.xp
        with self._turn, cupy.cuda.Device(self.device):
            current = cupy.cuda.get_current_stream()
            if current.ptr != self.stream.ptr:
                self.stream.wait_event(current.record())
            outermost = getattr(_callers, "stream", None)
            _callers.stream = outermost or current
            with self.stream:
                try:
                    yield
                except cupy.cuda.memory.OutOfMemoryError as error:
                    cupy.get_default_memory_pool().free_all_blocks()
                    free, total = self.memory()
                    raise OutOfMemory(f"{self.describe()} ran out of memory ({error}); {free / 2**30:.2f} of "
                                      f"{total / 2**30:.2f} GiB are free: use dtype='float32', a method and a "
                                      "preconditioner that store less (method='bicgstab', precond='jacobi'), or "
                                      "device='cpu'") from None
                finally:
                    _callers.stream = outermost
                    self.stream.synchronize()

    def copy_for_caller(self, x):
        # Memory that was allocated on this space's stream would be free for the next solve, of any thread, as soon as
        # the caller drops x, even while a kernel on the caller's stream still reads it.
        with getattr(_callers, "stream", None) or self.xp.cuda.get_current_stream():
            made = self.xp.ndarray(x.shape, x.dtype)
        made[...] = x
        return made

    def current_stream(self) -> int:
        """The address of CuPy's current stream; within ``active`` that is this space's stream."""
        return self.xp.cuda.get_current_stream().ptr

    def empty(self, shape, dtype):
        return self.xp.ndarray(shape, dtype) if self._slab is None else self._slab.empty(shape, dtype)

    def mapped(self, shape, dtype):
        cuda, shape = self.xp.cuda, tuple(np.atleast_1d(shape).tolist())
        if self.columns > 1:
            shape = self.columns, *shape
        size = math.prod(shape)
        held = cuda.alloc_pinned_memory(max(size, 1) * np.dtype(dtype).itemsize)
        memory = cuda.UnownedMemory(held.ptr, max(size, 1) * np.dtype(dtype).itemsize, held, self.device)
        array = self.xp.ndarray(shape, dtype, cuda.MemoryPointer(memory, 0))
        host = np.frombuffer(held, dtype, size).reshape(shape)
        return (array, host) if self.columns == 1 else (Columns(array), Columns(host))

    def from_host(self, array, out=None):
        xp = self.xp
        if isinstance(array, xp.ndarray):
            if out is None:
                return xp.ascontiguousarray(array)
            out[...] = array
            return out
        array = np.asarray(array, None if out is None else out.dtype, order="C")
        if out is not None and not out.flags.c_contiguous:
            out[...] = xp.asarray(array)
            return out
        out = xp.empty(array.shape, array.dtype) if out is None else out
        if array.nbytes >= WORTH:
            upload(xp, self.device, array, out)
        elif array.size:
            out.set(array, xp.cuda.get_current_stream())
        return out

    def to_host(self, array):
        return self.xp.asnumpy(array.array if isinstance(array, Columns) else array)

    def kernels(self, package, stem, dtype, states=None):
        key = package, stem, np.dtype(dtype)
        if key not in self._kernels:
            self._kernels[key] = Kernels(self, kernel_file(package, stem), dtype)
        return self._kernels[key]

    def compile_ahead(self, parts, dtype):
        for part in parts:
            _compile_ahead(self.device, part, C_TYPES[np.dtype(dtype).name], self.columns)

    def loop(self, stopping, n):
        from swell.core.graph import GraphLoop
        return GraphLoop(self, stopping, n)

    def synchronize(self):
        self.stream.synchronize()
        current = self.xp.cuda.get_current_stream()
        if current.ptr != self.stream.ptr:       # outside of ``active``
            current.synchronize()

    def another(self):
        return CudaSpace(self.device, self.columns)

    def for_columns(self, columns):
        return CudaSpace(self.device, columns)

    @property
    def kernel_class(self):
        """The class of this space's kernels, which say how arguments become a launch."""
        return Kernel if self.columns == 1 else ColumnKernel

    def same_view(self, view, base):
        begin = base.data + (view.data.ptr - view.base.data.ptr)
        if not isinstance(base, Columns):
            return self.xp.ndarray(view.shape, view.dtype, begin, view.strides)
        return Columns(self.xp.ndarray((base.count, *view.shape), view.dtype, begin,
                                       (base.array.strides[0], *view.strides)))

    def same_memory(self, array, other):
        return isinstance(other, self.xp.ndarray) and array.data.ptr == other.data.ptr

    def finite(self, x):
        """True if x has no NaN or Inf, tested by its largest modulus, which NaN passes through.

        If that overflows, every entry is tested."""
        if not x.size or x.dtype.kind not in "fc":
            return True
        most, x = self.empty(1, accumulator(x.dtype)), self.xp.ascontiguousarray(x).reshape(-1)
        self.norm_inf(x, most)
        return bool(np.isfinite(self.to_host(most)[0])) or not self.find_true(~self.xp.isfinite(x))[1]  # sync

    # CuPy's own reductions take seconds to compile at their first use, so setups have their own kernels.

    def max_on_host(self, x):
        if not x.size:
            return -np.inf
        if x.dtype.kind in "iub":
            most = self.from_host(np.array([np.iinfo(np.int64).min]))
            self._counting.largest(_as_numbers(x), most)
        else:
            most = self.empty(1, np.float64)
            self.kernels("swell.core", "reductions", np.float64).maximum(x.astype(np.float64, copy=False), most)
        return float(most[0])  # sync

    def find_true(self, mask):
        first_and_count = self.from_host(np.array([mask.size, 0]))
        self._counting.find_true(_as_numbers(mask), first_and_count)
        first, count = self.to_host(first_and_count)  # sync
        return int(first), int(count)

    def count(self, keys, size):
        counts = self.xp.zeros(size, np.int64)
        self._counting.count(keys, counts)
        return counts

    def prefix_sums(self, counts, starts, each=1):
        if counts.size < MIN_COUNTS_OF_ALL:
            self._counting.prefix_sums(_as_numbers(counts), each, starts)
        else:
            self._counting.grid_prefix_sums(_as_numbers(counts), each, starts, self._block_sums)

    def copied(self, array):
        out = self.empty(array.shape, array.dtype)
        out.data.copy_from_device_async(array.data, array.nbytes, self.xp.cuda.get_current_stream())
        return out

    def count_positive(self, x):
        count = self.xp.zeros(1, np.int64)
        self._counting.count_positive(x, count)
        return self.last_entries(count)[0]  # sync

    def last_entries(self, *arrays):
        """Return the last element of each integer array. Copies into pinned memory need one wait for all arrays."""
        stream = self.xp.cuda.get_current_stream()
        words = [np.frombuffer(self._totals, array.dtype, 1, 8 * k) for k, array in enumerate(arrays)]
        for array, word in zip(arrays, words):
            array[-1:].data.copy_to_host_async(word.ctypes.data, array.itemsize, stream)
        stream.synchronize()
        return tuple(int(word[0]) for word in words)

    def group_max(self, keys, size):
        most = self.empty(-(-keys.size // size), keys.dtype)
        self._counting.group_max(keys, size, most)
        return most

    @property
    def _counting(self):
        return self.kernels("swell.core", "counting", np.float64)

    def describe(self):
        return f"cuda:{self.device}, {self._name}"

    @property
    def device_name(self):
        return f"cuda:{self.device}"

    def memory(self):
        free, total = self.xp.cuda.runtime.memGetInfo()
        return free + self.xp.get_default_memory_pool().free_bytes(), total


def _as_numbers(x):
    """Return a bool array as a view of bytes; any other array as it is."""
    return x.view(np.uint8) if x.dtype == bool else x
