"""Space: where vectors live and how they reduce. Krylov methods are written against it and against operators alone."""
from __future__ import annotations

import functools
import importlib
import os
import threading
from abc import ABC, abstractmethod
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace

import numpy as np

from swell.core import memory
from swell.core.compilation import count_numba
from swell.core.errors import InputError, OutOfMemory
from swell.core.forking import require_threads

DEVICES = "'cpu', 'cuda' or 'cuda:1', or 'cuda:all' in swell.solve"
SERIAL = 20_000         # rows below which one thread is faster than waking more, and does not wait for a busy core


def accumulator(dtype):
    """The type in which inner products of ``dtype`` are accumulated and scalars are kept: double, real or complex."""
    return np.dtype(np.complex128 if np.dtype(dtype).kind == "c" else np.float64)


class Space(ABC):
    """Where vectors live.

    Attributes
    ----------
    name : str
        "cpu" or "cuda".
    xp : module
        NumPy, or CuPy with the same interface.
    alone : bool
        False if other ranks have parts of the vectors too, so that what a kernel sums is not yet the sum.
    """

    name: str
    xp: object
    alone = True

    def __init__(self):
        self._scalars = threading.local()        # matrices of one space may be multiplied in several threads

    @abstractmethod
    def empty(self, shape, dtype):
        """An uninitialised array."""

    @abstractmethod
    def from_host(self, array, out=None):
        """A NumPy array (or one of this space) as an array of this space."""

    @abstractmethod
    def to_host(self, array) -> np.ndarray:
        """An array of this space as a NumPy array."""

    @abstractmethod
    def kernels(self, package: str, stem: str, dtype, state=None):
        """The kernels in ``<package>/kernels/<stem>``, for vectors of ``dtype``, as a namespace of functions."""

    @abstractmethod
    def loop(self, stopping, n):
        """A loop driver."""

    @abstractmethod
    def synchronize(self):
        """Wait for the work in flight."""

    @abstractmethod
    def memory(self) -> tuple[int, int]:
        """(free, total) bytes; numbers that nothing exceeds where the system does not tell."""

    @abstractmethod
    def describe(self) -> str:
        """The device in words."""

    @property
    def device_name(self) -> str:
        """The name that ``make_space`` takes."""
        return self.name

    @abstractmethod
    def another(self) -> "Space":
        """A space on the same device that shares nothing that a solve writes to, for another thread.

        Raises
        ------
        InputError
            Where several ranks share the vectors.
        """

    @abstractmethod
    def same_view(self, view, base):
        """The view of ``base`` that is what ``view`` is of its own base, an array of the same size and layout."""

    def check_fits(self, needed: int, what: str, remedy: str):
        """Raise OutOfMemory, before anything is allocated, if ``what`` needs more bytes than are free."""
        free, total = self.memory()
        if needed > free:
            raise OutOfMemory(f"{what} needs about {needed / 2**30:.2f} GiB on {self.describe()}, and "
                              f"{free / 2**30:.2f} of {total / 2**30:.2f} GiB are free: {remedy}")

    @abstractmethod
    def active(self, rows: int | None = None):
        """A context in which this space works on vectors of about so many rows, after what the caller has under way;
        at its end the work is done."""

    def reserve(self, doubles: int):
        """Make room for the partial sums of a reduction over so many doubles; nothing to do on a CPU."""

    def reserve_sums(self, scalars: int):
        """The same for a kernel whose every block leaves so many scalars."""

    def padded(self, n: int) -> int:
        """The distance of the rows of a basis of vectors of length n."""
        return n

    def collect(self, dots):
        """Complete the inner products that a product's kernel left in parts; nothing to do on a CPU."""

    def largest(self, x, out):
        """``out[0] = ‖x‖∞``."""
        self.kernels("swell.core", "vector", x.dtype).largest(x, out)

    def allreduce(self, scalars):
        """Add up the scalars of all ranks that share the vectors, in place; nothing to do on one device. What kernels,
        ``dots`` and ``apply_dots`` leave are the sums of one rank."""

    def agreed(self):
        """A context whose error on one rank is raised on all of them; on one device, errors are raised as they are."""
        return nullcontext()

    def together(self):
        """A context in which ranks iterate: where a user's function raises an error on one of them, all raise it at the
        end of the block, which all reach; on one device, errors are raised as they are."""
        return nullcontext()

    def guarded(self, M):
        """The preconditioner M of this rank's rows (or None), whose errors within ``together`` wait for its end."""
        return M

    def said(self, texts: list[str]) -> list[str]:
        """Texts about this rank's part as texts that are true of all ranks, each in its place."""
        return texts

    def said_notes(self, notes: list[str]) -> list[str]:
        """The notes of all ranks."""
        return notes

    def same(self, value, what: str):
        """Raise InputError on every rank unless all bring an equal value; nothing to do on one device."""

    def share(self, n: int) -> int:
        """How many entries of a vector of length n are here: all of them on one device."""
        return n

    def greatest(self, x) -> float:
        """The largest entry of a real vector, −inf of an empty one: a host read, for setups."""
        return float(x.max()) if x.size else -np.inf

    def copy(self, x, out):
        """``out = x``."""
        out[...] = x

    def assign(self, alpha, out):
        """``out = alpha``, a scalar. Vectors of these operations have one length and one type, and begin at multiples
        of 16 bytes on a GPU, as all that a space makes do."""
        self.kernels("swell.core", "vector", out.dtype).assign(out.dtype.type(alpha), out)

    def scale(self, alpha, x):
        """``x = alpha x``."""
        self.kernels("swell.core", "vector", x.dtype).scale(x.dtype.type(alpha), x)

    def axpy(self, alpha, x, y):
        """``y = alpha x + y``."""
        self.kernels("swell.core", "vector", x.dtype).axpy(x.dtype.type(alpha), x, y)

    def axpby(self, alpha, x, beta, y):
        """``y = alpha x + beta y``; ``beta == 0`` never reads the old ``y``."""
        kind = x.dtype.type
        self.kernels("swell.core", "vector", x.dtype).axpby(kind(alpha), x, kind(beta), y)

    def multiply(self, x, y):
        """``y = x y``, element by element."""
        self.kernels("swell.core", "vector", x.dtype).multiply(x, y)

    def dot(self, x, y, out):
        """``out[0] = (x, y)``, the first argument conjugated; ``out`` is of the type ``accumulator(x.dtype)``."""
        if not x.size:                           # nothing is launched for no entries
            out[:1] = 0
            return
        self.kernels("swell.core", "vector", x.dtype).dot(x, y, out)

    def norm(self, x, out):
        """``out[0] = ‖x‖₂``."""
        if not x.size:                           # nothing is launched for no entries
            out[:1] = 0
            return
        self.kernels("swell.core", "vector", x.dtype).norm(x, out)

    def axpy_dots(self, alpha, x, y, w, out):
        """``y = alpha x + y`` in one pass with ``out[0] = (w, y)`` and ``out[1] = (y, y)`` of the new ``y``."""
        if not x.size:                           # nothing is launched for no entries
            out[:2] = 0
            return
        self.kernels("swell.core", "vector", x.dtype).axpy_dots(x.dtype.type(alpha), x, y, w, out)

    def dots(self, x, y, out):
        """``out[0] = (x, y)`` (the first argument conjugated) and ``out[1] = (y, y)``."""
        self.kernels("swell.core", "vector", x.dtype).dots(x, y, out)

    def weighted_norm2(self, x, weights, out):
        """``out[0] = Σ w |x|²``."""
        self.kernels("swell.core", "vector", x.dtype).weighted_norm2(x, weights, out)

    def random(self, seed: int, out, first: int = 0):
        """Fill ``out`` with reproducible numbers in [−1, 1), the same on every device: those from the ``first`` on."""
        self.kernels("swell.core", "vector", out.dtype).random(seed, first, out)

    def norms(self, *vectors) -> list[float]:
        """‖v‖₂ and ‖v‖∞ of each vector: one host read, for the beginning and the end of a solve only."""
        if not vectors[0].size:
            return [0.0] * (2 * len(vectors))
        dtype, held = accumulator(vectors[0].dtype), vars(self._scalars)
        if dtype.name not in held:
            held[dtype.name] = self.empty((3, 3), dtype)
        scalars = held[dtype.name]
        for k, v in enumerate(vectors):
            self.dots(v, v, scalars[k])
            self.largest(v, scalars[k, 2:])
        host = self.to_host(scalars).real  # sync
        return [value for k in range(len(vectors)) for value in (float(np.sqrt(host[k, 1])), float(host[k, 2]))]


class CpuSpace(Space):
    """Vectors are NumPy arrays, kernels are Numba functions running on all cores."""

    name = "cpu"
    xp = np

    def __init__(self):
        super().__init__()
        require_threads()
        # Threads that wait shall spin for about 30 µs, as long as what is between two products, and then sleep. To wake
        # one takes some 80 µs, in which a product of 50 000 rows is done; but by default OpenMP spins on and on, and on
        # a machine with other work to do a solve then took 20 to 50 s instead of 1.5. Whoever has set one of the
        # variables keeps that; they count if OpenMP has not started.
        if not {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"} & os.environ.keys():
            os.environ.update(OMP_WAIT_POLICY="passive", GOMP_SPINCOUNT="1000")

    def empty(self, shape, dtype):
        return np.empty(shape, dtype)

    def from_host(self, array, out=None):
        if type(array).__module__.startswith("cupy"):
            array = array.get()                  # asked to solve on the CPU what lies on a GPU
        if out is None:
            return np.ascontiguousarray(array)
        out[...] = array
        return out

    def to_host(self, array):
        return array

    def kernels(self, package, stem, dtype, state=None):
        count_numba()
        module = importlib.import_module(f"{package}.kernels.{stem}")
        if state is None:
            return module
        return SimpleNamespace(**{name: functools.partial(getattr(module, name), state) for name in module.KERNELS})

    def loop(self, stopping, n):
        from swell.core.loop import DirectLoop
        return DirectLoop(self, stopping, n)

    @contextmanager
    def active(self, rows=None):
        import numba
        require_threads()
        before = numba.get_num_threads()
        numba.set_num_threads(1 if rows is not None and rows < SERIAL else before)
        try:
            yield
        except OutOfMemory:
            raise
        except MemoryError as error:
            raise OutOfMemory(f"{self.describe()} ran out of memory ({error}): choose a smaller restart, "
                              "dtype='float32', or a method with short recurrences (cg, bicgstab)") from None
        finally:
            numba.set_num_threads(before)

    def synchronize(self):
        pass

    def another(self):
        return CpuSpace()

    def same_view(self, view, base):
        begin, of = (a.__array_interface__["data"][0] for a in (view, view.base))
        return np.ndarray(view.shape, view.dtype, base, begin - of, view.strides)

    def describe(self):
        from numba import get_num_threads
        count = get_num_threads()
        return f"cpu, {count} thread" + ("" if count == 1 else "s")

    def memory(self):
        return memory.free(), memory.whole()


def make_space(device: str) -> Space:
    """A new space for "cpu", "cuda" or "cuda:1".

    Raises
    ------
    InputError
        For a device name that means nothing.
    MissingDependency
        If a GPU is asked for and CuPy or the GPU is missing.
    """
    if device == "cpu":
        return CpuSpace()
    if device == "cuda" or (device.startswith("cuda:") and device[5:].isdigit()):
        from swell.core.cuda import CudaSpace
        return CudaSpace(int(device[5:] or 0) if ":" in device else 0)
    if device == "cuda:all":
        raise InputError("device='cuda:all' is for swell.solve(A, b, device='cuda:all') and swell solve: here name "
                         "one GPU, such as 'cuda', or start a rank for each, with device='cuda': mpiexec -n 2 python "
                         "script.py")
    raise InputError(f"device={device!r}: expected {DEVICES}")
