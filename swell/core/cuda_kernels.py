"""The loader of device kernels. NVRTC compiles a kernel, through CuPy, at its first use or ahead of it in threads
(``ahead.py``); CuPy caches the result. ``cuda_sources.py`` says how a source declares its kernels.
"""
from __future__ import annotations

import functools
import pathlib
import weakref

import numpy as np

from swell.core.ahead import Ahead
from swell.core.compilation import counted
from swell.core.cuda_sources import OPTIONS, headers_digest, name_expression, signatures, source
from swell.core.errors import InputError
from swell.core.launch import COOPERATIVE, DEPENDENT, Launch, packing
from swell.core.log import LOG
from swell.core.sharing import Shareable

C_TYPES = {"float32": "float", "float64": "double", "complex64": "complex<float>", "complex128": "complex<double>",
           "int32": "int", "int64": "long long", "uint8": "unsigned char", "uint16": "unsigned short",
           "uint32": "unsigned"}
# `struct` formats of the arguments passed by value; each begins at a multiple of 8 bytes.
FORMATS = {"float": "f4x", "double": "d", "complex<float>": "ff", "complex<double>": "dd", "int": "i4x",
           "long long": "q", "int64_t": "q", "bool": "?7x"}
COMPLEX = ("ff", "dd")
# Formats of arrays (array.hpp): address, then size, shape and row stride, or shape.
VIEWS = {"*": "Q", "Array": "Qq", "Table": "Qqqq", "Blocks": "Qqqq"}
WIDE = 16                   # bytes of the widest access (``Pack``)


def misaligned(array, address: int) -> bool:
    """True if the array, or a row of a matrix, begins at an address that is no multiple of 16 bytes.

    ``address``: of its first element. The rows of a basis are its vectors. Integer arrays are never misaligned."""
    if not array.size or array.dtype.kind not in "fc":
        return False
    return bool(address % WIDE or (array.ndim == 2 and array.shape[0] > 1 and array.strides[0] % WIDE))


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
        """Return what a launch passes for ``values``: addresses and sizes of arrays, parts of complex numbers."""
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
                elif form == "Blocks":
                    flat += value.shape
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
