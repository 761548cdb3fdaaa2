"""Launching with an attribute, which CuPy's own launch has no argument for.

Programmatic dependent launch: a kernel may begin while the one before it drains, so that its launch latency, and
whatever it can do before ``wait_for_previous`` (context.cuh), is hidden. Every kernel of swell waits before it touches
what another wrote, so the order of work is that of the stream. Needs compute capability 9.0.

Cooperative launch: all blocks run at once, or the launch fails; so blocks may wait for one another. Blocks of a cluster
do so by themselves, on neighbouring multiprocessors, and see each other's shared memory. Up to 8 are in a cluster on
every device that has them, and up to 16 where a function may ask for them.
"""
from __future__ import annotations

import ctypes
import functools

from swell.core.errors import InputError

COOPERATIVE, CLUSTER, DEPENDENT = 2, 4, 6    # CUlaunchAttributeID; the last: PROGRAMMATIC_STREAM_SERIALIZATION
PORTABLE, LARGER = 8, 14                     # blocks of a cluster; CUfunction_attribute that allows more
TOO_LARGE = 720                              # CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE


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
    """Launches with one attribute and arguments at fixed addresses; one caller at a time.

    Parameters
    ----------
    addresses : ctypes array of void pointers
        Where each argument lies.
    attribute : int or None
        COOPERATIVE or DEPENDENT.
    """

    def __init__(self, addresses, attribute):
        self._addresses, self._given = addresses, attribute or 0
        self._attribute = _Attribute(id=self._given, value=1, y=1, z=1)
        self._config = _Config(grid_y=1, grid_z=1, block_y=1, block_z=1, attributes=ctypes.pointer(self._attribute),
                               count=attribute is not None)
        self._reference = ctypes.byref(self._config)

    def __call__(self, function: int, grid: int, block: int, stream: int, shared: int = 0, cluster: int = 1):
        """Launch a function (a CUfunction's address) with ``shared`` bytes of dynamic shared memory a block. A
        ``cluster`` of more than one block takes the place of the attribute.

        Raises
        ------
        InputError
            If not all blocks of a cooperative launch can run at once.
        RuntimeError
            With the driver's error number.
        """
        config, attribute = self._config, self._attribute
        attribute.id, attribute.value = (CLUSTER, cluster) if cluster > 1 else (self._given, 1)
        if cluster > PORTABLE:
            _driver().cuFuncSetAttribute(ctypes.c_void_p(function), LARGER, 1)
        config.grid, config.block, config.shared, config.stream = grid, block, shared, stream
        status = _driver().cuLaunchKernelEx(self._reference, ctypes.c_void_p(function), self._addresses, None)
        if status == TOO_LARGE:
            raise InputError(f"{grid} blocks of {block} threads and {shared} bytes of shared memory cannot run at "
                             "once on this GPU, as they must: a limit is set on what this process may use of it. Lift "
                             "it, or use method='cg'")
        if status:
            raise RuntimeError(f"cuLaunchKernelEx failed with CUresult {status} (grid {grid}, block {block})")
