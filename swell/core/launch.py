"""Launching with programmatic dependent launch, which CuPy's own launch has no argument for.

A kernel launched so may begin while the one before it drains: its launch latency, and whatever it can do before
``wait_for_previous`` (context.cuh), is hidden. Every kernel of swell waits before it touches what another wrote, so the
order of work is that of the stream. Needs compute capability 9.0.
"""
from __future__ import annotations

import ctypes
import functools

PROGRAMMATIC_STREAM_SERIALIZATION = 6        # CUlaunchAttributeID


class _Attribute(ctypes.Structure):
    _fields_ = [("id", ctypes.c_int), ("padding", ctypes.c_char * 4), ("value", ctypes.c_int),
                ("rest", ctypes.c_char * 60)]


class _Config(ctypes.Structure):
    _fields_ = [("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3), ("shared", ctypes.c_uint),
                ("stream", ctypes.c_void_p), ("attributes", ctypes.POINTER(_Attribute)), ("count", ctypes.c_uint)]


@functools.lru_cache(maxsize=None)
def _driver():
    return ctypes.CDLL("libcuda.so.1")


def launch_dependent(function: int, grid: int, block: int, arguments, stream: int, shared: int = 0):
    """Launch a function (a CUfunction's address) on a stream; ``arguments`` are NumPy scalars, ``shared`` is the
    dynamic shared memory of a block in bytes.

    Raises
    ------
    RuntimeError
        With the driver's error number.
    """
    pointers = (ctypes.c_void_p * len(arguments))(*[a.__array_interface__["data"][0] for a in arguments])
    attribute = _Attribute(id=PROGRAMMATIC_STREAM_SERIALIZATION, value=1)
    config = _Config((grid, 1, 1), (block, 1, 1), shared, stream, ctypes.pointer(attribute), 1)
    status = _driver().cuLaunchKernelEx(ctypes.byref(config), ctypes.c_void_p(function), pointers, None)
    if status:
        raise RuntimeError(f"cuLaunchKernelEx failed with CUresult {status} (grid {grid}, block {block})")
