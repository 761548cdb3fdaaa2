"""The loader of device kernels. NVRTC compiles a kernel, through CuPy, at its first use or ahead of it in threads
(``ahead.py``); CuPy caches the result. ``cuda_sources.py`` says how a source declares its kernels.
"""
from __future__ import annotations

import functools
import pathlib
import weakref
from typing import NamedTuple

import numpy as np

from swell.core.ahead import Ahead
from swell.core.compilation import counted
from swell.core.cuda_sources import EACH, OPTIONS, headers_digest, name_expression, signatures, source
from swell.core.errors import InputError
from swell.core.launch import COOPERATIVE, DEPENDENT, address_of_launch, allow_large_clusters, raise_failed
from swell.core.library import _native
from swell.core.log import LOG
from swell.core.sharing import Shareable

C_TYPES = {"float32": "float", "float64": "double", "complex64": "complex<float>", "complex128": "complex<double>",
           "int32": "int", "int64": "long long", "uint8": "unsigned char", "uint16": "unsigned short",
           "uint32": "unsigned"}
# How `Launcher` (native/launch.cpp) passes an argument, by the type of a number or the form of an array (array.hpp).
NUMBERS = {"float": "f", "double": "d", "complex<float>": "F", "complex<double>": "D", "int": "i", "long long": "q",
           "int64_t": "q", "bool": "?"}
ARRAYS = {"*": "p", "Array": "A", "Table": "T", "Blocks": "B"}
FILLS = {"size": "z", "stride": "r", "step": "c"}           # NAME_size and so on: what the loader adds for array NAME
COUNTS = {"slices": 1, "rows": 2, "elements": 3, "columns": 4}
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
    """A kernel for one value type on one device, for all spaces: its compiled functions, and how it is launched.

    Every call of ``swell.solve`` makes a space. Forms outlive the space, so a second call finds its kernels ready.

    Parameters
    ----------
    path : pathlib.Path
    name : str
    dtype : numpy.dtype
        The value type.
    gpu : Gpu
    columns : int
        Number of right-hand sides of the space.
    """

    def __init__(self, path, name, dtype, gpu, columns):
        self.path, self.signature, self.gpu, self._columns = path, signatures(path)[name], gpu, columns
        self.value = C_TYPES[dtype.name]
        parameters, launch = self.signature.parameters, self.signature.launch
        self.at = {p.name: k for k, p in enumerate(parameters)}
        self._each = WIDE // dtype.itemsize if launch["pack"] else 1
        self.all_at_once = launch["all_at_once"] or launch["cooperative"]
        # (kind, index of the deciding argument) for each template parameter except T
        self._deciding = [(kind, next(k for k, p in enumerate(parameters) if p.type == T) if kind == "typename"
                           else self.at[T.lower()]) for kind, T in self.signature.template if T != "T"]

    @functools.cache
    def launcher(self, form=""):
        """Return the `Launcher` of native/launch.cpp. ``form``: `EACH` for the kernel that runs for each column."""
        parameters = tuple((self._passed(p), *self._fill(p)) for p in self.signature.parameters)
        deciding = tuple(("t" if kind == "typename" else kind[0], k) for kind, k in self._deciding)
        wide = tuple(k for k, p in enumerate(self.signature.parameters) if p.wide)
        return _native.Launcher(Owner(self, form), address_of_launch(), parameters, deciding, wide,
                                {**self._rule(), "each_column": int(form == EACH)})

    def _passed(self, parameter):
        """Return the letter that says how the parameter is passed."""
        return ARRAYS.get(parameter.form) or NUMBERS[self.value if parameter.type == "T" else parameter.type]

    def _fill(self, parameter):
        """Return (the letter of what the loader adds for a parameter that the caller omits, its array's number)."""
        if parameter.name == "n":
            return "n", -1
        name, _, what = parameter.name.rpartition("_")
        return (FILLS[what], self.at[name]) if what in FILLS and name in self.at else ("", -1)

    def _rule(self):
        """Return the numbers of a launch's geometry, a dict (native/launch.cpp)."""
        launch, at = self.signature.launch, self.at
        counted = next((what for what in ("slices", "rows") if launch[what]), launch["what"])
        attribute = COOPERATIVE if self.all_at_once else DEPENDENT if self.gpu.dependent_launch else 0
        rule = {"attribute": attribute, **{f"{what}_at": at[launch[what]] for what in ("shared", "cluster", "height")
                                           if launch[what]}}
        if launch["single"]:
            blocks = int(launch["all"]) * self.gpu.multiprocessors if launch["all"] else 1
            return {**rule, "blocks": blocks + bool(launch["more"]), "threads": int(launch["single"])}
        rule |= {"count": COUNTS[counted], "count_at": at[launch["array"] or launch[counted]], "each": self._each}
        lanes = launch["lanes"] or ("32" if launch["warp"] else "1")
        for what, fixed in (("threads", launch["threads"]), ("lanes", lanes)):
            rule |= {} if fixed is None else {what: int(fixed)} if fixed.isdigit() else {f"{what}_at": at[fixed]}
        most = int(launch["per"] or 0) * self.gpu.multiprocessors
        return {**rule, "most": max(1, most // self._columns) if launch["of_all"] else most}

    def function(self, values, form=""):
        """Return the compiled instantiation for the types of ``values``, the arguments of a launch in order.

        ``form``: `EACH` for the kernel that runs once for every column."""
        with counted():
            expression = name_expression(self.signature, {"T": self.value, **self._types(values)}, form)
            LOG.debug("loading %s of %s", expression, self.path.name)
            return loaded(self.path, self.gpu.device, expression)

    def _types(self, values):
        """Return the template arguments except T, by name, for ``values``, the arguments of a launch in order."""
        names = [name for _, name in self.signature.template if name != "T"]
        return {name: C_TYPES[values[k].dtype.name] if kind == "typename" else str(values[k]) if kind == "int"
                else "true" if values[k].size else "false" for name, (kind, k) in zip(names, self._deciding)}


class Gpu(NamedTuple):
    """What a launch must know of a GPU: its number and description, multiprocessors, bytes of shared memory that a
    block may have, and whether kernels may begin while the one before them drains."""

    device: int
    name: str
    multiprocessors: int
    shared_memory: int
    dependent_launch: bool


class Owner:
    """Answers the questions of a `Launcher` (native/launch.cpp): it compiles functions and raises errors."""

    failed, widen = staticmethod(raise_failed), staticmethod(allow_large_clusters)

    def __init__(self, form, kind):
        self._form, self._kind, self._held = form, kind, []

    def resolve(self, values, shared):
        """Return (address of the function for complete ``values``, bytes of dynamic shared memory that it may have).

        Raises InputError if the GPU has less than ``shared``."""
        form, gpu = self._form, self._form.gpu
        function = form.function(values, self._kind)
        self._held.append(function)
        if shared > function.max_dynamic_shared_size_bytes:
            most = gpu.shared_memory - function.shared_size_bytes
            if shared > most:
                raise InputError(f"{form.path.name}: {form.signature.name} needs {shared} bytes of shared memory a "
                                 f"block, and {gpu.name} has {most}: choose smaller blocks")
            function.max_dynamic_shared_size_bytes = shared
        return function.kernel.ptr, function.max_dynamic_shared_size_bytes

    def require_aligned(self, number, array, step):
        """Raise InputError if an array, one of its rows or of its columns does not begin at a multiple of 16 bytes.

        ``number``: of the parameter. ``step``: the distance between columns in elements, 0 for an array that they
        share; `Space.buffer` makes columns at such distances."""
        form = self._form
        name = form.signature.parameters[number].name
        takes = f"{form.path.name}: {form.signature.name} takes {name} 16 bytes at a time"
        if step * array.itemsize % WIDE:
            raise InputError(f"{takes}, and its columns do not begin at multiples of 16 bytes: copy them to "
                             "Space.buffer")
        if misaligned(array, array.data.ptr):
            raise InputError(f"{takes}, and it (or a row of it) does not begin at a multiple of 16 bytes, as a slice "
                             "need not: give a copy, as x[1:].copy() is, or a slice that begins at a multiple of "
                             f"{WIDE // array.itemsize} entries")


form = functools.lru_cache(maxsize=None)(Form)


class Kernel(Shareable):
    """One kernel for one value type; called with the arguments of the C++ kernel of its name.

    A setup launches hundreds of kernels, most of them shorter than a launch, so a call is one call of C++.
    """

    constant = True

    def __init__(self, space, path, name, dtype):
        self.space, self.path, self.dtype = space, path, np.dtype(dtype)
        self._form = form(path, name, self.dtype, space.gpu, space.columns)
        self.signature, self.all_at_once = self._form.signature, self._form.all_at_once
        self._launch = self._form.launcher().launch

    def __call__(self, *arguments):
        space = self.space
        space.launches += self._launch(space.context.data.ptr, space.current_stream(), arguments, None, 1)

    def shared(self, sharing):
        """Return a new Kernel like this one for the space ``sharing.space``."""
        space = sharing.space.local
        return space.kernel_class(space, self.path, self.signature.name, self.dtype)


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
