"""The loader of device kernels from .cu files. NVRTC compiles a kernel, through CuPy, at its first use or ahead of it
in threads (``ahead.py``); CuPy caches the result.

The comment above a kernel declares its launch, next to the code that relies on it:

    // launch: elements of r, 256 threads                          one thread for each element
    // launch: elements of r, task threads                         the same; the argument ``task`` is the block size
    // launch: columns of V, 256 threads                           one thread for each column of a basis
    // launch: elements of r, 512 threads, a pack each, at most 3 blocks per multiprocessor
                                                                   a thread takes 16 bytes at a time (``Pack``), in a
                                                                   grid-stride loop
    // launch: ..., at most 1 blocks per multiprocessor, of all columns
                                                                   with `Columns` they share that number of blocks
    // launch: elements of rows, 256 threads, a warp each          one warp for each element
    // launch: elements of rows, 256 threads, lanes threads each   ``lanes`` threads, an argument, for each element
    // launch: a block of height threads for each slice of ptr
                                                                   one block for each of the len(ptr) - 1 slices; the
                                                                   argument ``height`` is the number of its threads
    // launch: a block of height threads for each slice of ptr, shared bytes shared
                                                                   with ``shared`` bytes of dynamic shared memory
    // launch: a block of threads threads for each row of values, shared bytes shared
                                                                   the same for each row of a matrix, an argument
    // launch: ..., shared bytes shared, all at once               a cooperative launch: all blocks run at the same
                                                                   time, so blocks may wait for one another
    // launch: ..., all at once, in clusters of cluster            in clusters of ``cluster`` blocks, if that argument
                                                                   is more than 1
    // launch: one block of 128 threads
    // launch: 2 blocks per multiprocessor of 512 threads, all at once
                                                                   a cooperative launch of a grid that fits
    // launch: 2 blocks per multiprocessor of 512 threads, and one block more
                                                                   and one extra block, for separate work
    // launch: ..., 16 bytes at once                               accesses of 16 bytes, with any grid

A kernel with "a pack each" or "16 bytes at once" needs aligned arrays of values (of a bare type parameter): each array,
and each of its rows, begins at a multiple of 16 bytes. Every array that a space makes is aligned, and so is every row
of a basis. A slice need not be; the launcher then refuses it, since the kernel would use misaligned addresses.

A kernel has the parameters of the C++ kernel of its name, in the same order, after ``Context* ctx``. The loader adds
values that C++ needs: ``n``, the count of the launch; ``NAME_size``, the size of array NAME; ``NAME_stride``, the
distance between its rows, in entries.
Template parameters: ``T`` is the value type; a kernel that works on patterns alone has none. Any other ``typename`` is
deduced from the first argument whose type mentions it. ``int NAME`` is the value of the argument with this name in
lower case. ``bool NAME`` is true if the array with this name in lower case is not empty.

Before compilation, the loader prepends the names of ``core/slots.py`` and of the package's own ``slots.py``, as enums.
"""
from __future__ import annotations

import functools
import hashlib
import importlib.util
import pathlib
import re
import weakref
from dataclasses import dataclass

import numpy as np

from swell.core.ahead import Ahead
from swell.core.compilation import counted
from swell.core.each_column import EACH, for_each_column
from swell.core.errors import InputError
from swell.core.launch import COOPERATIVE, DEPENDENT, Launch, packing
from swell.core.log import LOG
from swell.core.sharing import Shareable
from swell.core.slots import declarations

CORE = pathlib.Path(__file__).parent / "kernels"
ROOT = CORE.parents[2]      # the folder of the package swell
C_TYPES = {"float32": "float", "float64": "double", "complex64": "complex<float>", "complex128": "complex<double>",
           "int32": "int", "int64": "long long", "uint8": "unsigned char", "uint16": "unsigned short",
           "uint32": "unsigned"}
# `struct` formats of the arguments passed by value; each begins at a multiple of 8 bytes.
FORMATS = {"float": "f4x", "double": "d", "complex<float>": "ff", "complex<double>": "dd", "int": "i4x",
           "long long": "q", "int64_t": "q", "bool": "?7x"}
COMPLEX = ("ff", "dd")
VIEWS = {"*": "Q", "Array": "Qq", "Table": "Qqqq"}     # formats of arrays: address, size, shape and row stride (array.hpp)
KERNEL = re.compile(r"// launch: (?P<launch>[^\n]*)\ntemplate <(?P<template>[^>]*)>\s*(?P<head>__global__ void\s+"
                    r"(?:__launch_bounds__\([^)]*\)\s*)?|KERNEL\s+)(?P<name>\w+)\((?P<parameters>[^{]*?)\)\s*\{")
PARAMETER = re.compile(r"(?P<view>Array|Table)<(?P<of>.*)>\s*(?P<viewed>\w+)|(?P<kind>.*?[\s*])\s*(?P<name>\w+)", re.DOTALL)
LAUNCH = re.compile(r"(?:(?P<what>elements|columns) of (?P<array>\w+), (?P<threads>\w+) threads"
                    r"(?P<pack>, a pack each)?(?P<warp>, a warp each)?(?:, (?P<lanes>\w+) threads each)?"
                    r"(?:, at most (?P<per>\d+) blocks per multiprocessor(?P<of_all>, of all columns)?)?"
                    r"|a block of (?P<height>\w+) threads for each (?:slice of (?P<slices>\w+)|row of (?P<rows>\w+))"
                    r"(?:, (?P<shared>\w+) bytes shared(?P<all_at_once>, all at once)?"
                    r"(?:, in clusters of (?P<cluster>\w+))?)?"
                    r"|(?:one block|(?P<all>\d+) blocks per multiprocessor) of (?P<single>\d+) threads"
                    r"(?P<more>, and one block more)?(?P<cooperative>, all at once)?)(?P<wide>, 16 bytes at once)?$")
WIDE = 16                   # bytes of the widest access (``Pack``)
# CuPy appends -ftz=true, so float32 denormals flush to zero; everything else is IEEE. No -use_fast_math.
# -default-device: lambdas inside lambdas are device functions without saying so, which compilers before 13.1 ask for.
OPTIONS = ("-std=c++17", f"-I{CORE}", "--extra-device-vectorization", "-default-device")


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kernel: ``type`` is its C++ type, or that of an array's elements, without const; ``form`` is
    "*", "Array" or "Table" for an array, "" for a number; ``wide`` is True for an array of values that the kernel may
    access 16 bytes at a time."""

    type: str
    form: str
    name: str
    wide: bool


@dataclass(frozen=True)
class Signature:
    """The declaration of one kernel, read from its source."""

    name: str
    template: tuple[tuple[str, str], ...]
    parameters: tuple[Parameter, ...]
    launch: dict
    declared: dict                               # its parts as the source has them


@functools.lru_cache(maxsize=None)
def signatures(path: pathlib.Path) -> dict[str, Signature]:
    """Read a .cu file; return a dict from kernel name to `Signature`, the parsed declaration."""
    signatures = {}
    for match in KERNEL.finditer(path.read_text()):
        launch = LAUNCH.match(match["launch"])
        if not launch:
            raise InputError(f"{path.name}: cannot read the launch of {match['name']}: {match['launch']!r}")
        template = tuple(tuple(t.replace("class", "typename").split()) for t in match["template"].split(","))
        values = {name for kind, name in template if kind == "typename"} if launch["pack"] or launch["wide"] else ()
        parameters = []
        for text in match["parameters"].split(","):
            parts = PARAMETER.fullmatch(text.replace("const ", "").replace("__restrict__", " ").strip())
            kind = (parts["of"] or parts["kind"]).replace("*", "").strip()
            form = parts["view"] or ("*" if "*" in parts["kind"] else "")
            parameters.append(Parameter(kind, form, parts["viewed"] or parts["name"], bool(form) and kind in values))
        signatures[match["name"]] = Signature(match["name"], template, tuple(parameters[1:]), launch.groupdict(),
                                              match.groupdict())
    return signatures


def source(path: pathlib.Path, expression: str = "") -> str:
    """Return the text of the .cu file at ``path`` as NVRTC compiles it: after the enums of the package's slots.

    ``expression``: the function to be compiled; NAME_each<...> is the kernel NAME, for every column of `Columns`."""
    package, text, name = ".".join(path.parents[1].relative_to(ROOT).parts), path.read_text(), expression.split("<")[0]
    if name.endswith(EACH):
        text = for_each_column(text, signatures(path)[name.removesuffix(EACH)])
    return f'{declarations(package, path.stem)}#line 1 "{path.name}"\n{text}'


@functools.lru_cache(maxsize=None)
def headers_digest() -> str:
    """Return a digest of swell's headers, as a compile option: CuPy's cache ignores changes in included files."""
    digest = hashlib.sha256()
    for header in sorted((*CORE.glob("*.cuh"), *CORE.glob("*.hpp"))):
        digest.update(header.read_bytes())
    return digest.hexdigest()[:16]


def misaligned(array, address: int) -> bool:
    """True if the array, or a row of a matrix, begins at an address that is no multiple of 16 bytes.

    ``address``: of its first element. The rows of a basis are its vectors. Integer arrays are never misaligned."""
    if not array.size or array.dtype.kind not in "fc":
        return False
    return bool(address % WIDE or (array.ndim == 2 and array.shape[0] > 1 and array.strides[0] % WIDE))


def name_expression(signature: Signature, types: dict[str, str], form: str = "") -> str:
    """Return the name of a template instantiation, such as ``residual<double>``.

    ``signature``: the kernel's Signature. ``types``: template arguments by name. ``form``: "" or `EACH`."""
    return f"{signature.name}{form}<{', '.join(types[name] for _, name in signature.template)}>"


def built(path: pathlib.Path, device: int, expression: str):
    """Compile one function of the .cu file ``path`` for GPU number ``device``, or load it from CuPy's cache; return it.

    ``expression``: its name with template arguments. Each function is a module of its own: threads can compile several
    at a time, and unused functions are not compiled."""
    import cupy
    with cupy.cuda.Device(device):
        module = cupy.RawModule(code=source(path, expression), options=(*OPTIONS, f"-DHEADERS_{headers_digest()}"),
                                name_expressions=[expression])
        return module.get_function(expression)


functions = Ahead(built)


@functools.lru_cache(maxsize=None)
def loaded(path: pathlib.Path, device: int, expression: str):
    """Return one compiled function of a .cu file for a GPU; cached here, since CuPy's look-up is slower than a launch.

    ``expression``: its name with template arguments. ``device``: the GPU's number."""
    return functions.result(path, device, expression)


class Form:
    """The parts of a kernel's launch that all spaces share, for one value type on one device.

    Every call of ``swell.solve`` makes a space. Forms outlive the space, so a second call finds its kernels ready.
    """

    def __init__(self, path, name, dtype, device):
        self.path, self.signature, self.device = path, signatures(path)[name], device
        self.value = C_TYPES[dtype.name]
        parameters, launch = self.signature.parameters, self.signature.launch
        self.at = {p.name: k for k, p in enumerate(parameters)}
        self.each = WIDE // dtype.itemsize if launch["pack"] else 1
        self.wide = [k for k, p in enumerate(parameters) if p.wide]
        formats = [self._format(p) for p in parameters]
        self.forms = ["complex" if format in COMPLEX else p.form for p, format in zip(parameters, formats)]
        self.formats = "Q", *formats
        # (kind, index of the deciding argument) for each template parameter except T
        self._deciding = [(kind, next(k for k, p in enumerate(parameters) if p.type == T) if kind == "typename"
                           else self.at[T.lower()]) for kind, T in self.signature.template if T != "T"]
        self._functions = {}

    def _format(self, parameter):
        """Return the `struct` format of one kernel parameter; it fills a multiple of 8 bytes."""
        kind = self.value if parameter.type == "T" else parameter.type
        return VIEWS.get(parameter.form) or FORMATS[kind]

    def function(self, values, form=""):
        """Return the compiled instantiation for the types of ``values``, the arguments of a launch in order.

        ``form``: `EACH` for the kernel that runs once for every column."""
        key = tuple([values[k].dtype.num if kind == "typename" else int(values[k]) if kind == "int"
                     else values[k].size > 0 for kind, k in self._deciding])
        if (key, form) not in self._functions:
            with counted():
                types = {"T": self.value, **self._types(values)}
                expression = name_expression(self.signature, types, form)
                LOG.debug("loading %s of %s", expression, self.path.name)
                self._functions[key, form] = loaded(self.path, self.device, expression)
        return self._functions[key, form]

    def _types(self, values):
        """Return the template arguments except T, by name, for ``values``, the arguments of a launch in order."""
        names = [name for _, name in self.signature.template if name != "T"]
        return {name: C_TYPES[values[k].dtype.name] if kind == "typename" else str(values[k]) if kind == "int"
                else "true" if values[k].size else "false" for name, (kind, k) in zip(names, self._deciding)}


form = functools.lru_cache(maxsize=None)(Form)


class Kernel(Shareable):
    """One kernel for one value type; called with the arguments of the C++ kernel of its name.

    A launch costs the host some microseconds, so everything constant is prepared once. One call packs the arguments
    into a buffer whose addresses never change. A space has one caller at a time.
    """

    constant = True

    def __init__(self, space, path, name, dtype):
        self.space, self.path, self.dtype = space, path, np.dtype(dtype)
        self._form = form(path, name, self.dtype, space.device)
        self.signature = self._form.signature
        launch = self.signature.launch
        self.all_at_once = launch["all_at_once"] or launch["cooperative"]
        self._attribute = COOPERATIVE if self.all_at_once else DEPENDENT if space.dependent_launch else None
        self._pack, self._buffer, self._launch = self._launcher(())

    def _launcher(self, more):
        """Return (pack, buffer, launch) for the kernel's parameters and ``more``, formats of further ones."""
        pack, buffer, addresses = packing((*self._form.formats, *more))
        return pack, buffer, Launch(addresses, self._attribute)

    def __call__(self, *arguments):
        values = list(arguments)
        grid, block, shared, cluster = self._complete(values)
        if not grid:
            return
        function = self._function(values, shared)
        self._pack(self._buffer, 0, self.space.context.data.ptr, *self._flatten(values))
        self._launch(function.kernel.ptr, grid, block, self.space.current_stream(), shared, cluster)
        self.space.launches += 1

    def _complete(self, values):
        """Append the values that C++ needs to ``values``, the arguments of a launch in order.

        Returns (blocks, threads in a block, bytes of dynamic shared memory, blocks in a cluster)."""
        launch, count = self.signature.launch, self._count(values)
        for extra in self.signature.parameters[len(values):]:
            values.append(count if extra.name == "n" else self._measure(values, extra.name))
        shared = int(values[self._form.at[launch["shared"]]]) if launch["shared"] else 0
        cluster = int(values[self._form.at[launch["cluster"]]]) if launch["cluster"] else 1
        return *self._geometry(count, values), shared, cluster

    def _function(self, values, shared, form=""):
        """Return the compiled function for complete ``values``, which may use ``shared`` bytes of shared memory."""
        function = self._form.function(values, form)
        if shared and shared > function.max_dynamic_shared_size_bytes:
            self._allow(function, shared)
        for k in self._form.wide:
            self._require_aligned(values[k], self.signature.parameters[k].name)
        return function

    def _flatten(self, values):
        """Return the numbers that a launch passes for ``values``: addresses and sizes of arrays, parts of complex numbers."""
        flat = []
        for value, form in zip(values, self._form.forms):
            if not form:
                flat.append(value)
            elif form == "complex":
                flat += value.real, value.imag
            else:
                flat.append(value.data.ptr if value.size else 0)
                if form == "Array":
                    flat.append(value.size)
                elif form == "Table":
                    flat += *value.shape, value.strides[0] // value.itemsize
        return flat

    def shared(self, sharing):
        """Return a new Kernel like this one for the space ``sharing.space``, with its own buffer of arguments."""
        space = sharing.space.local
        return space.kernel_class(space, self.path, self.signature.name, self.dtype)

    def _require_aligned(self, array, name):
        """Raise InputError if ``array`` or one of its rows does not begin at a multiple of 16 bytes.

        ``name``: the parameter's name, for the message."""
        if misaligned(array, array.data.ptr):
            raise InputError(f"{self.path.name}: {self.signature.name} takes {name} 16 bytes at a time, and it (or a "
                             "row of it) does not begin at a multiple of 16 bytes, as a slice need not: give a copy, "
                             "as x[1:].copy() is, or a slice that begins at a multiple of "
                             f"{WIDE // array.itemsize} entries")

    def _allow(self, function, shared):
        """Set the attribute of a compiled function that allows ``shared`` bytes of dynamic shared memory.

        Raises InputError if the GPU has less."""
        most = self.space.shared_memory - function.shared_size_bytes
        if shared > most:
            raise InputError(f"{self.path.name}: {self.signature.name} needs {shared} bytes of shared memory a block, "
                             f"and {self.space.describe()} has {most}: choose smaller blocks")
        function.max_dynamic_shared_size_bytes = shared

    def _measure(self, values, extra):
        """Return the size or row stride of the array NAME, for the parameter ``extra``, NAME_size or NAME_stride.

        ``values``: the arguments of the launch in order."""
        name, _, what = extra.rpartition("_")
        array = values[self._form.at[name]]
        return array.size if what == "size" else array.strides[0] // array.itemsize

    def _count(self, values):
        """Return the count that kernels get as ``n``: elements, columns, slices or rows; 1 for a fixed grid.

        ``values``: the arguments of the launch in order."""
        launch = self.signature.launch
        if launch["single"]:
            return 1
        if launch["slices"]:
            return max(values[self._form.at[launch["slices"]]].size - 1, 0)
        if launch["rows"]:
            return values[self._form.at[launch["rows"]]].shape[0]
        array = values[self._form.at[launch["array"]]]
        return array.size if launch["what"] == "elements" else array.shape[-1]

    def _geometry(self, count, values):
        """Return (blocks, threads in a block) for a launch over ``count`` elements, columns, slices or rows.

        ``values``: the arguments of the launch in order."""
        launch = self.signature.launch
        if launch["height"]:
            return count, int(values[self._form.at[launch["height"]]])
        if launch["single"]:
            blocks = int(launch["all"]) * self.space.multiprocessors if launch["all"] else 1
            return blocks + (1 if launch["more"] else 0), int(launch["single"])
        threads = launch["threads"]
        threads = int(threads) if threads.isdigit() else int(values[self._form.at[threads]])
        lanes = int(values[self._form.at[launch["lanes"]]]) if launch["lanes"] else 32 if launch["warp"] else 1
        blocks = -(-count * lanes // (threads * self._form.each))
        if launch["per"]:
            most = int(launch["per"]) * self.space.multiprocessors
            blocks = min(blocks, max(1, most // self.space.columns) if launch["of_all"] else most)
        return blocks, threads


@functools.lru_cache(maxsize=None)
def kernel_file(package: str, stem: str) -> pathlib.Path:
    """Return the path ``<package>/kernels/<stem>.hpp``, a text for both devices, or ``.cu``.

    Cached, since to find and hash it is slower than a launch."""
    folder = pathlib.Path(importlib.util.find_spec(package).submodule_search_locations[0]) / "kernels"
    shared = folder / f"{stem}.hpp"              # a text for both devices
    return shared if shared.exists() and signatures(shared) else folder / f"{stem}.cu"


class Kernels(Shareable):
    """The kernels of one .cu file for one value type, as attributes; each is made at its first use."""

    constant = True

    def __init__(self, space, path, dtype):
        self._given = weakref.proxy(space), path, dtype          # weak: the space holds these kernels

    def __getattr__(self, name):
        space, path, dtype = self.__dict__["_given"]
        if name not in signatures(path):
            raise AttributeError(f"{path.name} has no kernel {name}")
        kernel = space.kernel_class(space, path, name, dtype)
        setattr(self, name, kernel)
        return kernel

    def shared(self, sharing):
        """Return new Kernels of the same file and type for the space ``sharing.space``."""
        _, path, dtype = self._given
        return Kernels(sharing.space.local, path, dtype)
