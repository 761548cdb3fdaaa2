"""Devices, streams, graphs, memory: what swell uses of `cupy.cuda`. A stream runs what it is given at once."""
from __future__ import annotations

import contextlib
import ctypes
import importlib
import itertools
import os
import sys
import threading
import time
import types

import numpy as np

from cupy.compiler import Function, NotEmulated, runtime as library

COUNT = int(os.environ.get("SWELL_EMULATED_GPUS", 1))
MEMORY = 8 << 30        # bytes that the device says it has
# Bytes of shared memory that a block may have, by compute capability.
SHARED = {"8.0": 163 << 10, "8.6": 99 << 10, "8.9": 99 << 10, "9.0": 227 << 10, "10.0": 227 << 10, "12.0": 99 << 10}
CAPABILITY = os.environ.get("SWELL_EMULATED_CAPABILITY", "9.0")
MAJOR, MINOR = map(int, CAPABILITY.split("."))
PROPERTIES = {"name": b"emulated GPU", "major": MAJOR, "minor": MINOR, "multiProcessorCount": 3,
              "sharedMemPerBlockOptin": SHARED[CAPABILITY], "sharedMemPerBlock": 49152, "l2CacheSize": 50 << 20,
              "totalGlobalMem": MEMORY, "warpSize": 32,
              "maxThreadsPerBlock": 1024, "sharedMemPerMultiprocessor": SHARED[CAPABILITY] + 1024,
              "clockRate": 1_000_000}
_local = threading.local()
overruns = []           # what was written outside of an array that has been freed since


class CUDARuntimeError(RuntimeError):
    """An error of the device."""

    def __init__(self, status, text=""):
        super().__init__(text or f"error {status}")
        self.status = status


class OutOfMemoryError(MemoryError):
    """The device's memory is used up."""


# -- devices and streams -----------------------------------------------------------------------------------------------

class Device:
    """One of the emulated devices, all alike."""

    def __init__(self, device=None):
        self.id = getattr(_local, "device", 0) if device is None else int(device)
        self.compute_capability = f"{MAJOR}{MINOR}"

    def __enter__(self):
        held = vars(_local).setdefault("devices", [])
        held.append(getattr(_local, "device", 0))
        _local.device = self.id
        return self

    def __exit__(self, *error):
        _local.device = _local.devices.pop()

    def use(self):
        _local.device = self.id

    def synchronize(self):
        raise_overruns()

    def __eq__(self, other):
        return isinstance(other, Device) and self.id == other.id

    def __int__(self):
        return self.id


class Stream:
    """Runs everything at once, in the calling thread; while it is captured it runs nothing and notes everything."""

    _numbers, _known = itertools.count(0x1000, 16), {}

    def __init__(self, null=False, non_blocking=False, ptr=None):
        self.ptr, self.nodes = next(self._numbers) if ptr is None else ptr, None
        self._known[self.ptr] = self
        self.device_id = Device().id

    def __enter__(self):
        vars(_local).setdefault("streams", []).append(self)
        return self

    def __exit__(self, *error):
        _local.streams.pop()

    def use(self):
        _local.streams = [self]
        return self

    def do(self, operation):
        """Run it, or note it."""
        if self.nodes is None:
            operation()
        else:
            self.nodes.append(operation)

    def forbid_capture(self, what):
        if self.nodes is not None:
            raise CUDARuntimeError(900, f"cudaErrorStreamCaptureUnsupported: {what} while a stream is captured")

    def begin_capture(self, mode=None):
        self.forbid_capture("begin_capture")
        self.nodes = []
        library().emulated_capturing(ctypes.c_void_p(self.ptr), 1)

    def end_capture(self):
        nodes = self.nodes
        for stream in [stream for stream in [*self._known.values()] if stream.nodes is nodes]:
            stream.nodes = None
            library().emulated_capturing(ctypes.c_void_p(stream.ptr), 0)
        return Graph(nodes)

    def is_capturing(self):
        return self.nodes is not None

    def synchronize(self):
        self.forbid_capture("synchronize")
        raise_overruns()

    done = True

    def record(self, event=None):
        event = event or Event()
        event.record(self)
        return event

    def wait_event(self, event):
        """After an event of a stream that is captured, this stream is captured, too."""
        if event.nodes is not None and any(stream.nodes is event.nodes for stream in [*self._known.values()]):
            self.nodes = event.nodes
            library().emulated_capturing(ctypes.c_void_p(self.ptr), 1)


Stream.null = Stream(ptr=0)


class ExternalStream(Stream):
    """A stream that is known by its address."""

    def __init__(self, ptr, device_id=0):
        super().__init__(ptr=ptr)


def get_current_stream(device_id=None):
    streams = getattr(_local, "streams", None)
    return streams[-1] if streams else Stream.null


class Graph:
    """What a stream noted."""

    def __init__(self, nodes):
        self.nodes = nodes

    def launch(self, stream=None):
        stream = stream or get_current_stream()
        for node in self.nodes:
            stream.do(node)

    def upload(self, stream=None):
        pass


class Event:
    """A moment."""

    def __init__(self, block=False, disable_timing=False, interprocess=False):
        self.time, self.ptr, self.nodes = None, id(self), None

    def record(self, stream=None):
        self.time, self.nodes = time.perf_counter(), (stream or get_current_stream()).nodes

    def synchronize(self):
        pass

    done = True


def get_elapsed_time(begin, end):
    return 1e3 * (end.time - begin.time)


@ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, *5 * [ctypes.c_int],
                  ctypes.POINTER(ctypes.c_void_p))
def _captured(stream, address, grid, columns, block, shared, together, parameters):
    """Note a launch, with copies of its parameters."""
    function = Function.from_address(address)
    held = [ctypes.create_string_buffer(ctypes.string_at(parameters[k], function.sizes[k]), function.sizes[k])
            for k in range(function.count)]
    pointers = (ctypes.c_void_p * len(held))(*[ctypes.addressof(h) for h in held])

    def node(held=held):
        run(address, grid, columns, block, shared, together, pointers)
    Stream._known[stream or 0].nodes.append(node)


def run(address, grid, columns, block, shared, together, pointers):
    """Launch a kernel now."""
    status = library().emulated_run(ctypes.c_void_p(address), grid, columns, block, shared, together, pointers)
    if status:
        raise CUDARuntimeError(status, (ctypes.c_char * 4096).in_dll(library(), "emulated_error").value.decode())


def __getattr__(name):
    if name == "nccl":
        return importlib.import_module("cupy.nccl")
    if name in ("cublas", "device"):
        return getattr(importlib.import_module("cupy.libraries"), name)
    if name in ("cusolver", "cusparse", "cufft"):
        raise NotEmulated(f"cupy.cuda.{name}, a library of NVIDIA's, is not emulated")
    raise AttributeError(f"the emulated GPU has no cupy.cuda.{name}: add it to tests/emulation/cupy")


def start():
    """Give the runtime what it calls."""
    ctypes.c_void_p.in_dll(library(), "emulated_capture").value = ctypes.cast(_captured, ctypes.c_void_p).value


# -- memory ------------------------------------------------------------------------------------------------------------

_used = 0
_hooks = []


class MemoryHook:
    """Told of allocations within a ``with`` block."""

    name = "hook"

    def __enter__(self):
        _hooks.append(self)
        return self

    def __exit__(self, *error):
        _hooks.remove(self)

    def alloc_preprocess(self, **named):
        pass

    alloc_postprocess = free_preprocess = free_postprocess = malloc_preprocess = malloc_postprocess = alloc_preprocess


class Memory:
    """An allocation of its own: before it are bytes that nobody may write to, behind it a page nobody may touch."""

    def __init__(self, size):
        global _used
        if _used + size > MEMORY:
            raise OutOfMemoryError(f"Out of memory allocating {size:,} bytes (allocated so far: {_used:,} bytes).")
        self.size, self.ptr, self.device_id = size, library().emulated_malloc(size), Device().id
        if not self.ptr:
            raise OutOfMemoryError(f"this machine has no {size:,} bytes left")
        self.device = Device(self.device_id)
        _used += size
        self._free = library().emulated_free

    def __del__(self):
        global _used
        if getattr(self, "ptr", None):
            _used -= self.size
            if self._free(self.ptr):
                overruns.append(f"a kernel wrote outside of an array of {self.size} bytes")
                print(f"emulated GPU: {overruns[-1]}", file=sys.stderr)


class UnownedMemory:
    """Memory of somebody else."""

    def __init__(self, ptr, size, owner, device_id=0):
        self.ptr, self.size, self._owner, self.device_id = ptr, size, owner, device_id
        self.device = Device(device_id)


def raise_overruns():
    """Raise what was found when arrays were freed."""
    if overruns:
        text = "; ".join(overruns)
        overruns.clear()
        raise CUDARuntimeError(700, text)


class MemoryPointer:
    """A place in an allocation."""

    def __init__(self, mem, offset=0):
        self.mem, self.ptr, self.device_id = mem, mem.ptr + offset, mem.device_id
        self.device = mem.device
        self._offset = offset

    def __add__(self, offset):
        return MemoryPointer(self.mem, self._offset + offset)

    __radd__ = __add__

    def __int__(self):
        return self.ptr

    def copy_from_host_async(self, source, size, stream=None):
        ptr = source.value if isinstance(source, ctypes.c_void_p) else source
        (stream or get_current_stream()).do(lambda: ctypes.memmove(self.ptr, ptr, size))

    def copy_from_device_async(self, source, size, stream=None):
        (stream or get_current_stream()).do(lambda: ctypes.memmove(self.ptr, source.ptr, size))

    def copy_to_host_async(self, target, size, stream=None):
        ptr = target.value if isinstance(target, ctypes.c_void_p) else target
        (stream or get_current_stream()).do(lambda: ctypes.memmove(ptr, self.ptr, size))

    def memset_async(self, value, size, stream=None):
        (stream or get_current_stream()).do(lambda: ctypes.memset(self.ptr, value, size))

    def memset(self, value, size):
        ctypes.memset(self.ptr, value, size)


class MemoryPool:
    """Gives every array memory of its own; with an allocator, memory that this returns."""

    def __init__(self, allocator=None):
        self._allocator = allocator

    def malloc(self, size):
        if self._allocator is not None:
            return self._allocator(size)
        for hook in _hooks:
            hook.malloc_preprocess(device_id=Device().id, size=size, mem_size=size)
            hook.alloc_preprocess(device_id=Device().id, mem_size=size)
        return MemoryPointer(Memory(size))

    def free_all_blocks(self, stream=None):
        pass

    def free_bytes(self):
        return 0

    def used_bytes(self):
        return _used

    total_bytes = used_bytes


pool = MemoryPool()
malloc_async = pool.malloc
_allocator = [pool.malloc]


def alloc(size):
    return _allocator[-1](size)


def set_allocator(allocator=None):
    _allocator[-1] = allocator or pool.malloc


@contextlib.contextmanager
def using_allocator(allocator=None):
    _allocator.append(allocator or pool.malloc)
    try:
        yield
    finally:
        _allocator.pop()


class PinnedMemoryPointer(np.ndarray):
    """Bytes of the host that the device sees."""

    @property
    def ptr(self):
        return self.__array_interface__["data"][0]

    def __add__(self, offset):
        return self[offset:]

    def size(self):
        return self.nbytes


class PinnedMemoryPool:
    """Aligned memory, all bits of which are set."""

    def malloc(self, size):
        held = np.full(size + 512, 0xFF, np.uint8)
        first = -held.__array_interface__["data"][0] % 512
        return held[first:first + size].view(PinnedMemoryPointer)


pinned_pool = PinnedMemoryPool()
_pinned = [pinned_pool.malloc]


def alloc_pinned_memory(size):
    return _pinned[0](size)


def set_pinned_memory_allocator(allocator=None):
    _pinned[0] = allocator or pinned_pool.malloc


def _memcpy(target, source, size, kind, stream=0):
    Stream._known.get(stream, Stream.null).do(lambda: ctypes.memmove(target, source, size))


def _properties(device):
    return dict(PROPERTIES)


memory = types.SimpleNamespace(OutOfMemoryError=OutOfMemoryError, MemoryPointer=MemoryPointer, Memory=Memory)
runtime = types.SimpleNamespace(
    CUDARuntimeError=CUDARuntimeError, getDeviceCount=lambda: COUNT, getDeviceProperties=_properties,
    memGetInfo=lambda: (MEMORY - _used, MEMORY), deviceGetPCIBusId=lambda device: f"0000:{device:02X}:00.0",
    driverGetVersion=lambda: 13000, runtimeGetVersion=lambda: 13000, memcpyAsync=_memcpy, memcpy=_memcpy,
    getDevice=lambda: Device().id, setDevice=lambda device: Device(device).use(), deviceCanAccessPeer=lambda a, b: 1,
    deviceEnablePeerAccess=lambda device: None, ipcGetMemHandle=lambda ptr: bytes(64),     # no process can open it
    deviceGetDefaultMemPool=lambda device: 1, memPoolSetAttribute=lambda pool, attribute, value: None,
    memPoolGetAttribute=lambda pool, attribute: _used,           # in use now: the most is not known
    deviceSynchronize=raise_overruns, streamSynchronize=lambda ptr: raise_overruns(),
    memcpyHostToHost=0, memcpyHostToDevice=1, memcpyDeviceToHost=2, memcpyDeviceToDevice=3, memcpyDefault=4)
