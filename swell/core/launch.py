"""Kernel launches with a launch attribute, for which CuPy's own launch has no argument.

Programmatic dependent launch: a kernel may begin while the previous one drains. This hides its launch latency, and all
its work before ``wait_for_previous`` (context.cuh). Every kernel of swell waits before it touches data that another
kernel wrote, so results are as if kernels ran in stream order. Needs compute capability 9.0.

Cooperative launch: all blocks run at the same time, or the launch fails. Blocks may therefore wait for one another.
Cluster launch: the blocks of a cluster always run at the same time, on neighbouring multiprocessors, and access each
other's shared memory. Every device with clusters allows 8 blocks in a cluster. Up to 16, which only some devices allow
(``CudaSpace.cluster_blocks``), need a function attribute.
"""
from __future__ import annotations

import ctypes
import functools
import itertools
import struct

from swell.core.errors import InputError

COOPERATIVE, CLUSTER, DEPENDENT = 2, 4, 6    # CUlaunchAttributeID; the last: PROGRAMMATIC_STREAM_SERIALIZATION
PORTABLE, LARGER = 8, 14                     # portable cluster size; CUfunction_attribute that allows a larger one
TOO_LARGE = 720, 912                         # CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, CUDA_ERROR_INVALID_CLUSTER_SIZE


class _Attribute(ctypes.Structure):
    _fields_ = [("id", ctypes.c_int), ("padding", ctypes.c_char * 4), ("value", ctypes.c_int),
                ("y", ctypes.c_int), ("z", ctypes.c_int), ("rest", ctypes.c_char * 52)]


class _Config(ctypes.Structure):
    _fields_ = [("grid", ctypes.c_uint), ("grid_y", ctypes.c_uint), ("grid_z", ctypes.c_uint), ("block", ctypes.c_uint),
                ("block_y", ctypes.c_uint), ("block_z", ctypes.c_uint), ("shared", ctypes.c_uint),
                ("stream", ctypes.c_void_p), ("attributes", ctypes.POINTER(_Attribute)), ("count", ctypes.c_uint)]


@functools.lru_cache(maxsize=None)
def _driver():
    return ctypes.CDLL("libcuda.so.1")


class Launch:
    """A launcher with one launch attribute and arguments at fixed addresses; one caller at a time.

    Parameters
    ----------
    addresses : ctypes array of void pointers
        Address of each argument.
    attribute : int or None
        COOPERATIVE or DEPENDENT.
    """

    def __init__(self, addresses, attribute):
        self._addresses, self._given = addresses, attribute or 0
        self._attribute = _Attribute(id=self._given, value=1, y=1, z=1)
        self._config = _Config(grid_y=1, grid_z=1, block_y=1, block_z=1, attributes=ctypes.pointer(self._attribute))
        self._reference = ctypes.byref(self._config)

    def __call__(self, function: int, grid: int, block: int, stream: int, shared: int = 0, cluster: int = 1,
                 columns: int = 1):
        """Launch ``function`` (a CUfunction's address) with ``grid`` × ``columns`` blocks of ``block`` threads.

        ``shared`` is the dynamic shared memory of a block, in bytes. If ``cluster``, the number of blocks in a cluster,
        is more than 1, the launch has this attribute in place of its usual one. ``stream`` is its address.

        Raises
        ------
        InputError
            If the blocks of a cooperative launch, or of a cluster, cannot all run at the same time.
        RuntimeError
            If the driver reports any other error; the message has its number.
        """
        config, attribute = self._config, self._attribute
        attribute.id, attribute.value = (CLUSTER, cluster) if cluster > 1 else (self._given, 1)
        if cluster > PORTABLE:
            _driver().cuFuncSetAttribute(ctypes.c_void_p(function), LARGER, 1)
        config.count = attribute.id > 0
        config.grid, config.grid_y, config.block, config.shared, config.stream = grid, columns, block, shared, stream
        status = _driver().cuLaunchKernelEx(self._reference, ctypes.c_void_p(function), self._addresses, None)
        if status in TOO_LARGE:
            raise InputError(f"{grid} blocks of {block} threads and {shared} bytes of shared memory must run at the "
                             "same time, and cannot on this GPU: this process may use a part of the GPU only. Lift "
                             "that limit, or use method='cg'")
        if status:
            raise RuntimeError(f"cuLaunchKernelEx failed with CUresult {status} (grid {grid}, block {block})")


def packing(formats):
    """Return (pack, buffer, addresses) for launch arguments with these `struct` formats, a tuple.

    ``pack(buffer, 0, *values)`` writes the values into ``buffer``. A launch gives ``addresses``, one for each argument,
    to the driver."""
    packer, offsets = _layout(formats)
    buffer = (ctypes.c_char * packer.size)()
    start = ctypes.addressof(buffer)
    return packer.pack_into, buffer, (ctypes.c_void_p * len(formats))(*[start + offset for offset in offsets])


@functools.lru_cache(maxsize=None)
def _layout(formats):
    """Return (the `struct.Struct` of arguments with these formats, the offset of each argument in bytes)."""
    sizes = [struct.calcsize("=" + format) for format in formats[:-1]]
    return struct.Struct("=" + "".join(formats)), list(itertools.accumulate(sizes, initial=0))
