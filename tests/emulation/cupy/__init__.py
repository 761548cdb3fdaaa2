"""An emulated GPU: what swell uses of CuPy, on a CPU, so that device="cuda" can be tested where there is no GPU.

    PYTHONPATH=tests/emulation python -m pytest -m gpu tests/formats/test_product.py
    PYTHONPATH=tests/emulation python script.py

The Python code of swell and its .cu files run as they are. g++ compiles each instantiation of a kernel that is asked
for (`compiler.py`, `device/cuda_on_cpu.h`). A runtime that answers to the name libcuda.so.1 runs it on one CPU thread,
with a fiber for each CUDA thread (`device/runtime.cpp`). Arrays are NumPy's, on memory that the host must ask for
(`array.py`); streams and graphs are in `cuda.py`. The device has three multiprocessors.

It finds: wrong results and bits; accesses behind an array (a page that nobody may touch) and writes before it; reads of
what nobody wrote (all bits are set); deadlocks; warp operations whose lanes do not all come; missing barriers; arrays
of the host that are taken for the device's; host reads while a graph is captured; gathers, products and copies whose
source and target overlap.

Threads run one after the other until they must wait. SWELL_EMULATED_ORDER=reverse or random:7 runs them in another
order, random in small steps and three blocks at a time: results must not depend on it. SWELL_EMULATED_FMA=1 lets the
compiler contract a b + c, as NVIDIA's does: bits that are a CPU's must stay so.

It cannot find what depends on time, on the memory model (weak order, caches), on how warps are scheduled, on PTX
(sources with assembly are refused; bulk copies have a stand-in), on registers, or on CuPy's own kernels and libraries.
Streams never overlap, but kernels of several threads, a device each, take turns, so that one may wait for another's
message. float32 denormals stay, where a GPU's vanish.

SWELL_EMULATED_CACHE names the folder for compiled kernels, SWELL_EMULATED_LIMIT the seconds of processor time that a
launch may take (60), SWELL_EMULATED_GPUS the number of devices, SWELL_EMULATED_CAPABILITY their compute capability (8.0
to 12.0; 9.0 if not set): it decides which paths swell takes and how much shared memory a block has. Needs x86-64 with
FMA, and g++ 12 or later.
"""
from __future__ import annotations

import os as _os

import numpy as _numpy

_os.environ.setdefault("SWELL_NO_POOL", "1")     # arrays with guarded ends
from cupy import cuda
from cupy.array import call as _call, ndarray
from cupy.compiler import NotEmulated, RawKernel, RawModule

__version__ = "14.0.0"
float32, float64, complex64, complex128 = (
    _numpy.float32, _numpy.float64, _numpy.complex64, _numpy.complex128)
int8, int16, int32, int64, uint8, uint16, uint32, uint64, bool_ = (
    _numpy.int8, _numpy.int16, _numpy.int32, _numpy.int64, _numpy.uint8, _numpy.uint16, _numpy.uint32, _numpy.uint64,
    _numpy.bool_)
dtype, inf, nan, pi, newaxis, iinfo, finfo, generic = (
    _numpy.dtype, _numpy.inf, _numpy.nan, _numpy.pi, None, _numpy.iinfo, _numpy.finfo, _numpy.generic)
result_type, can_cast = _numpy.result_type, _numpy.can_cast
# What is taken from NumPy as it is.
FUNCTIONS = set("""
abs add all any argmax argmin argsort bincount broadcast_to ceil clip concatenate conj copyto count_nonzero cumsum
diag diagonal diff divide dot equal exp expand_dims flatnonzero floor hstack imag invert isfinite isin isnan kron log10
log logical_and logical_not logical_or matmul max maximum mean min minimum moveaxis multiply nonzero packbits power
prod ravel real repeat reshape roll round searchsorted sign sort split sqrt square stack subtract sum take
take_along_axis tensordot tile transpose tril triu unique unpackbits vdot vstack where
""".split())
MADE = {"arange", "eye", "linspace", "tri", "identity"}
LINALG = {"norm", "inv", "slogdet", "svd", "eigh", "cholesky", "solve", "eigvalsh", "qr", "det"}


class linalg:
    """numpy.linalg on arrays of the device."""


for _name in LINALG:
    setattr(linalg, _name, staticmethod(lambda *given, _name=_name, **named: _call(
        getattr(_numpy.linalg, _name), *given, **named)))


def __getattr__(name):
    if name in MADE:
        return lambda *given, **named: array(getattr(_numpy, name)(*map(_number, given), **named))
    if name not in FUNCTIONS:
        raise AttributeError(f"the emulated GPU has no cupy.{name}: add it to tests/emulation/cupy")
    function = getattr(_numpy, name)
    if name == "argsort":
        return lambda a, axis=-1, kind=None: a.argsort(axis)
    return lambda *given, **named: _call(function, *given, **named)


def _number(value):
    return value.item() if isinstance(value, ndarray) else value


def array(given, dtype=None, copy=True, order="K"):
    """An array on the device, of whatever is given."""
    if isinstance(given, ndarray):
        if copy or (dtype is not None and given.dtype != dtype):
            return given.astype(given.dtype if dtype is None else dtype, order)
        return given
    if hasattr(given, "__cuda_array_interface__"):
        return array(_over(given), dtype, copy, order)
    if isinstance(given, (list, tuple)) and any(isinstance(g, ndarray) for g in given):
        return _call(_numpy.stack, given).astype(dtype or given[0].dtype, copy=False)
    host = _numpy.array(given, dtype, order=order)
    out = ndarray(host.shape, host.dtype, order="F" if host.ndim > 1 and host.flags.fnc else "C")
    out.set(host)
    return out


def _over(given):
    """An array over the memory of an object with the CUDA array interface."""
    told = given.__cuda_array_interface__
    kind = _numpy.dtype(told["typestr"])
    strides = told.get("strides")
    size = int(_numpy.prod(told["shape"])) * kind.itemsize if strides is None else sum(
        (n - 1) * step for n, step in zip(told["shape"], strides)) + kind.itemsize
    if told.get("stream") is not None:
        cuda.ExternalStream(told["stream"]).synchronize()
    memory = cuda.UnownedMemory(told["data"][0], size, given, cuda.Device().id)
    return ndarray(told["shape"], kind, cuda.MemoryPointer(memory), strides)


def from_dlpack(given):
    """An array over the memory of an object with DLPack; the emulation's capsule is an array."""
    return given.__dlpack__(stream=cuda.get_current_stream().ptr or 1)._shared()


def asarray(given, dtype=None, order="K"):
    return array(given, dtype, copy=False, order=order)


def ascontiguousarray(given, dtype=None):
    given = asarray(given, dtype)
    return given if given.flags.c_contiguous else given.copy()


def asfortranarray(given, dtype=None):
    given = asarray(given, dtype)
    return given if given.flags.f_contiguous else given.copy("F")


def asnumpy(given, stream=None, order="C", out=None, blocking=True):
    return given.get(stream, order, out) if isinstance(given, ndarray) else _numpy.asarray(given, order=order)


def empty(shape, dtype=float, order="C"):
    return ndarray(shape, dtype, order=order)


def full(shape, fill_value, dtype=None, order="C"):
    out = ndarray(shape, _numpy.asarray(_number(fill_value)).dtype if dtype is None else dtype, order=order)
    out.fill(fill_value)
    return out


def zeros(shape, dtype=float, order="C"):
    return full(shape, 0, dtype, order)


def ones(shape, dtype=float, order="C"):
    return full(shape, 1, dtype, order)


def empty_like(prototype, dtype=None, order="K", shape=None):
    return empty(prototype.shape if shape is None else shape, prototype.dtype if dtype is None else dtype)


def full_like(prototype, fill_value, dtype=None, order="K", shape=None):
    out = empty_like(prototype, dtype, order, shape)
    out.fill(fill_value)
    return out


def zeros_like(prototype, dtype=None, order="K", shape=None):
    return full_like(prototype, 0, dtype, order, shape)


def ones_like(prototype, dtype=None, order="K", shape=None):
    return full_like(prototype, 1, dtype, order, shape)


def get_default_memory_pool():
    return cuda.pool


def get_default_pinned_memory_pool():
    return cuda.pinned_pool


def get_array_module(*given):
    return __import__("cupy") if any(isinstance(g, ndarray) for g in given) else _numpy


def is_available():
    return True


cuda.start()
