"""g++ in NVRTC's place: one library for one instantiation of a kernel, kept by a digest of all that went into it."""
from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import numpy as np

DEVICE = pathlib.Path(__file__).parents[1] / "device"
CACHE = pathlib.Path(os.environ.get("SWELL_EMULATED_CACHE", "~/.cache/swell-emulated-gpu")).expanduser()
CONTRACTED = bool(os.environ.get("SWELL_EMULATED_FMA"))
FLAGS = ["-shared", "-fPIC", "-w", "-mfma", *(
    ["-ffp-contract=fast", "-fexpensive-optimizations"] if CONTRACTED else ["-ffp-contract=off"])]
KERNEL = ["-x", "c++", "-std=c++17", "-O1", "-fvisibility=hidden", "-fno-gnu-unique", "-fno-math-errno",
          "-fno-ipa-reference", "-fno-ipa-reference-addressable", "-fno-strict-aliasing", "-nostdlib",
          "-fno-exceptions", "-fno-asynchronous-unwind-tables", "-fno-threadsafe-statics", "-fno-rtti",
          "-fsanitize-coverage=trace-pc"]
ORDERS = {"forward": 0, "reverse": 1, "random": 2}
DYNAMIC = re.compile(r"^.*extern __shared__ (?:__align__\(\d+\) )?([\w ]+?) (\w+)\[\];.*$", re.MULTILINE)


class NotEmulated(Exception):
    """What this stand-in for a GPU cannot do."""


class Function(ctypes.Structure):
    """struct Function of emulated.h."""

    _fields_ = [("entry", ctypes.c_void_p), ("name", ctypes.c_char_p), ("shared_begin", ctypes.c_void_p),
                ("shared_end", ctypes.c_void_p), ("count", ctypes.c_int), ("sizes", ctypes.POINTER(ctypes.c_int)),
                ("most", ctypes.c_int)]


@functools.cache
def compiler() -> str:
    """The compiler's version."""
    try:
        return subprocess.run(["g++", "--version"], capture_output=True, text=True, check=True).stdout.split("\n")[0]
    except (OSError, subprocess.CalledProcessError) as error:
        raise ImportError(f"the emulated GPU compiles kernels with g++, which does not run here ({error}): install "
                          "g++ 12 or later") from None


def built(source: str, flags, name: str) -> str:
    """The library made of a source, its path."""
    digest = hashlib.sha256("\0".join([source, *flags, compiler()]).encode()).hexdigest()[:24]
    library = CACHE / f"{name}-{digest}.so"
    if not library.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=CACHE, suffix=".cpp", delete=False) as file:
            file.write(source)
        try:
            done = subprocess.run(["g++", *flags, f"-I{DEVICE}", file.name, "-o", file.name + ".so"],
                                  capture_output=True, text=True)
            if done.returncode:
                raise RuntimeError(f"g++ cannot compile {name}:\n{done.stderr[:4000]}")
            os.replace(file.name + ".so", library)
        finally:
            os.unlink(file.name)
    return str(library)


@functools.cache
def runtime():
    """The runtime, which answers to the name of NVIDIA's driver: whoever loads libcuda.so.1 afterwards has it, too."""
    source = "\n".join((DEVICE / name).read_text() for name in ("runtime.cpp", "emulated.h"))
    path = built(f"// {hashlib.sha256(source.encode()).hexdigest()}\n#include \"runtime.cpp\"\n",
                 [*FLAGS, "-O2", "-std=c++17", "-Wl,-soname,libcuda.so.1"], "runtime")
    library = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
    library.emulated_malloc.restype = ctypes.c_void_p
    library.emulated_malloc.argtypes = [ctypes.c_size_t]
    library.emulated_free.argtypes = [ctypes.c_void_p]
    kind, _, seed = os.environ.get("SWELL_EMULATED_ORDER", "forward").partition(":")
    if kind not in ORDERS:
        raise ImportError(f"SWELL_EMULATED_ORDER={kind!r}: expected forward, reverse, random or random:SEED")
    library.emulated_order(ORDERS[kind], 1 if kind == "forward" else 3, ctypes.c_ulonglong(int(seed or 0)))
    ctypes.c_double.in_dll(library, "emulated_limit").value = float(os.environ.get("SWELL_EMULATED_LIMIT", 60))
    return library


@functools.cache
def _headers(folder):
    """The text of all headers there."""
    return "".join(p.read_text() for p in sorted(pathlib.Path(folder).glob("*.[ch][up][hp]")))


def _dynamic(code):
    """The code with an emulated block's dynamic shared memory."""
    return DYNAMIC.sub(r"#define \2 ((\1*)emulated_now->dynamic)", code)


@functools.cache
def _emulated(folder):
    """A copy of the headers there with emulated memory, its path."""
    copy = CACHE / f"headers-{hashlib.sha256(_headers(folder).encode()).hexdigest()[:24]}"
    if not copy.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        new = pathlib.Path(tempfile.mkdtemp(dir=CACHE))
        for path in pathlib.Path(folder).glob("*.[ch][up][hp]"):
            (new / path.name).write_text(_dynamic(path.read_text()))
        try:
            new.rename(copy)
        except OSError:                     # another process was faster
            shutil.rmtree(new)
    return copy


@functools.cache
def function(code: str, options: tuple[str, ...], expression: str):
    """The compiled instantiation, a Function in its library."""
    runtime()
    if re.search(r"\basm\b", code):
        raise NotEmulated(f"{expression} has assembly of NVIDIA's, which is not emulated")
    given = [o for o in options if o.startswith("-I")]
    headers = hashlib.sha256("".join([*(_headers(o[2:]) for o in given), *(
        p.read_text() for p in sorted(DEVICE.glob("*h")))]).encode()).hexdigest()
    given = [f"-I{_emulated(o[2:])}" for o in given]
    source = f'// {headers}\n#include "cuda_on_cpu.h"\n{_dynamic(code)}\nEMULATE("{expression}", {expression})\n'
    library = ctypes.CDLL(built(source, [*FLAGS, *KERNEL, f"-I{DEVICE}", *given], re.sub(r"\W+", "_", expression)))
    found = Function.in_dll(library, "emulated_function")
    found.library = library
    return found


class _Kernel:
    def __init__(self, ptr):
        self.ptr = ptr


class CompiledFunction:
    """What RawModule.get_function gives."""

    def __init__(self, struct):
        self._struct, self.kernel = struct, _Kernel(ctypes.addressof(struct))
        self.shared_size_bytes = (struct.shared_end or 0) - (struct.shared_begin or 0)
        struct.most = max(struct.most - self.shared_size_bytes, 0)         # both together, without the attribute

    @property
    def max_dynamic_shared_size_bytes(self):
        return self._struct.most

    @max_dynamic_shared_size_bytes.setter
    def max_dynamic_shared_size_bytes(self, size):
        self._struct.most = size

    def __call__(self, grid, block, arguments, *, shared_mem=0):
        from cupy import cuda
        held = []
        for k, argument in enumerate(arguments):
            pointer = getattr(argument.data, "ptr", None) if hasattr(argument, "data") else None
            bits = np.asarray(argument) if pointer is None else np.uint64(pointer)
            held.append(ctypes.create_string_buffer(bits.tobytes(), max(bits.nbytes, self._struct.sizes[k])))
        pointers = (ctypes.c_void_p * len(held))(*map(ctypes.addressof, held))
        cuda.get_current_stream().do(lambda held=held: cuda.run(
            self.kernel.ptr, grid[0], 1, block[0], shared_mem, 0, pointers))


def RawKernel(code, name, options=()):  # noqa: N802
    """One kernel that is no template."""
    return CompiledFunction(function(code, tuple(options), name))


class RawModule:
    """A source whose instantiations are compiled when they are asked for, each by itself."""

    def __init__(self, *, code, options=(), name_expressions=()):
        self._code, self._options, self._expressions = code, tuple(options), name_expressions

    def get_function(self, name):
        if name not in self._expressions:
            raise KeyError(f"{name} is none of the name expressions of this module")
        return CompiledFunction(function(self._code, self._options, name))
