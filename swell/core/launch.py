"""Launching with an attribute, which CuPy's own launch has no argument for.

Programmatic dependent launch: a kernel may begin while the one before it drains, so that its launch latency, and
whatever it can do before ``wait_for_previous`` (context.cuh), is hidden. Every kernel of swell waits before it touches
what another wrote, so the order of work is that of the stream. Needs compute capability 9.0.

Cooperative launch: all blocks run at once, or the launch fails; so blocks may wait for one another.
"""
from __future__ import annotations

import ctypes
import functools

from swell.core.errors import InputError

COOPERATIVE, DEPENDENT = 2, 6                # CUlaunchAttributeID; the second: PROGRAMMATIC_STREAM_SERIALIZATION
TOO_LARGE = 720                              # CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE


class _Attribute(ctypes.Structure):
    _fields_ = [("id", ctypes.c_int), ("padding", ctypes.c_char * 4), ("value", ctypes.c_int),
                ("rest", ctypes.c_char * 60)]


class _Config(ctypes.Structure):
    _fields_ = [("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3), ("shared", ctypes.c_uint),
                ("stream", ctypes.c_void_p), ("attributes", ctypes.POINTER(_Attribute)), ("count", ctypes.c_uint)]


@functools.lru_cache(maxsize=None)
def _driver():
    return ctypes.CDLL("libcuda.so.1")


def launch_with(attribute: int, function: int, grid: int, block: int, arguments, stream: int, shared: int = 0):
    """Launch a function (a CUfunction's address) on a stream; ``arguments`` are NumPy scalars, ``shared`` is the
    dynamic shared memory of a block in bytes, ``attribute`` is COOPERATIVE or DEPENDENT.

    Raises
    ------
    InputError
        If not all blocks of a cooperative launch can run at once.
    RuntimeError
        With the driver's error number.
    """
    pointers = (ctypes.c_void_p * len(arguments))(*[a.__array_interface__["data"][0] for a in arguments])
    chosen = _Attribute(id=attribute, value=1)
    config = _Config((grid, 1, 1), (block, 1, 1), shared, stream, ctypes.pointer(chosen), 1)
    status = _driver().cuLaunchKernelEx(ctypes.byref(config), ctypes.c_void_p(function), pointers, None)
    if status == TOO_LARGE:
        raise InputError(f"{grid} blocks of {block} threads and {shared} bytes of shared memory cannot run at once on "
                         "this GPU, as they must: a limit is set on what this process may use of it. Lift it, or use "
                         "method='cg'")
    if status:
        raise RuntimeError(f"cuLaunchKernelEx failed with CUresult {status} (grid {grid}, block {block})")
