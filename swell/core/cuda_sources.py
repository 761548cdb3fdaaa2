"""The sources of device kernels: .cu files, and .hpp files, which are one text for both devices
(``core/kernels/step.hpp``).

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

A kernel has the parameters of the C++ kernel of its name, in the same order, after ``Context* ctx``. An array is a view
with its size (``core/kernels/array.hpp``), or an address; for addresses the loader adds what C++ needs: ``n``, the
count of the launch; ``NAME_size``, the size of array NAME; ``NAME_stride``, the distance between its rows, in entries.
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
from dataclasses import dataclass

from swell.core.errors import InputError
from swell.core.slots import declarations

CORE = pathlib.Path(__file__).parent / "kernels"
ROOT = CORE.parents[2]      # the folder of the package swell
EACH = "_each"          # ends the name of a kernel that runs once for every column of `Columns`
KERNEL = re.compile(r"// launch: (?P<launch>[^\n]*)\ntemplate <(?P<template>[^>]*)>\s*(?P<head>__global__ void\s+"
                    r"(?:__launch_bounds__\([^)]*\)\s*)?|\w*KERNEL\w*\s+)(?P<name>\w+)\((?P<parameters>[^{]*?)\)\s*\{")
PARAMETER = re.compile(r"(?P<view>Array|Table|Blocks)<(?P<of>.*)>\s*(?P<viewed>\w+)|(?P<kind>.*?[\s*])\s*(?P<name>\w+)",
                       re.DOTALL)
LAUNCH = re.compile(r"(?:(?P<what>elements|columns) of (?P<array>\w+), (?P<threads>\w+) threads"
                    r"(?P<pack>, a pack each)?(?P<warp>, a warp each)?(?:, (?P<lanes>\w+) threads each)?"
                    r"(?:, at most (?P<per>\d+) blocks per multiprocessor(?P<of_all>, of all columns)?)?"
                    r"|a block of (?P<height>\w+) threads for each (?:slice of (?P<slices>\w+)|row of (?P<rows>\w+))"
                    r"(?:, (?P<shared>\w+) bytes shared(?P<all_at_once>, all at once)?"
                    r"(?:, in clusters of (?P<cluster>\w+))?)?"
                    r"|(?:one block|(?P<all>\d+) blocks per multiprocessor) of (?P<single>\d+) threads"
                    r"(?P<more>, and one block more)?(?P<cooperative>, all at once)?)(?P<wide>, 16 bytes at once)?$")
# CuPy appends -ftz=true, so float32 denormals flush to zero; everything else is IEEE. No -use_fast_math.
# -default-device: lambdas inside lambdas are device functions without saying so, which compilers before 13.1 ask for.
OPTIONS = ("-std=c++17", f"-I{CORE}", "--extra-device-vectorization", "-default-device")


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kernel: ``type`` is its C++ type, or that of an array's elements, without const; ``form`` is
    "*", "Array", "Table" or "Blocks" for an array, "" for a number; ``wide`` is True for an array of values that the
    kernel may access 16 bytes at a time."""

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
    """Read a file of kernels; return a dict from kernel name to `Signature`, the parsed declaration."""
    signatures = {}
    for match in KERNEL.finditer(path.read_text(encoding="utf-8")):
        launch = LAUNCH.match(match["launch"])
        if not launch:
            raise InputError(f"{path.name}: cannot read the launch of {match['name']}: {match['launch']!r}")
        template = tuple(tuple(t.split("=")[0].replace("class", "typename").split())
                         for t in match["template"].split(","))
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
    """Return the text of the kernel file at ``path`` as NVRTC compiles it: after the enums of the package's slots.

    ``expression``: the function to be compiled; NAME_each<...> is the kernel NAME, for every column of `Columns`."""
    package, text = ".".join(path.parents[1].relative_to(ROOT).parts), path.read_text(encoding="utf-8")
    if (name := expression.split("<")[0]).endswith(EACH):
        text = for_each_column(text, signatures(path)[name.removesuffix(EACH)])
    return f'{declarations(package, path.stem)}#line 1 "{path.name}"\n{text}'


@functools.lru_cache(maxsize=None)
def headers_digest() -> str:
    """Return a digest of swell's headers, as a compile option: CuPy's cache ignores changes in included files."""
    digest = hashlib.sha256()
    for header in sorted((*CORE.glob("*.cuh"), *CORE.glob("*.hpp"))):
        digest.update(header.read_bytes())
    return digest.hexdigest()[:16]


def name_expression(signature: Signature, types: dict[str, str], form: str = "") -> str:
    """Return the name of a template instantiation, such as ``residual<double>``.

    ``signature``: the kernel's Signature. ``types``: template arguments by name. ``form``: "" or `EACH`."""
    return f"{signature.name}{form}<{', '.join(types[name] for _, name in signature.template)}>"


@functools.lru_cache(maxsize=None)
def kernel_file(package: str, stem: str) -> pathlib.Path:
    """Return the path ``<package>/kernels/<stem>.hpp``, a text for both devices, or ``.cu``.

    Cached, since to find and hash it is slower than a launch."""
    folder = pathlib.Path(importlib.util.find_spec(package).submodule_search_locations[0]) / "kernels"
    shared = folder / f"{stem}.hpp"              # a text for both devices
    return shared if shared.exists() and signatures(shared) else folder / f"{stem}.cu"


def kernel_files(package: pathlib.Path) -> list[pathlib.Path]:
    """Return the paths of all files of device kernels in the folder ``package`` and below."""
    return sorted([*package.rglob("kernels/*.cu"), *filter(signatures, package.rglob("kernels/*.hpp"))])


def for_each_column(text: str, signature) -> str:
    """Return the source ``text`` with one kernel as a device function, and a kernel that calls it for column
    blockIdx.y.

    After the kernel's parameters the new one takes NAME_step for each array: the distance between its columns, in
    elements; 0 for an array that all columns share."""
    d, arrays = signature.declared, [p.name for p in signature.parameters if p.form]
    steps = ", ".join(f"long long {name}_step" for name in arrays)
    moved = {"": "{0}", "Blocks": "{0}", "*": "{0} + right_hand_side * {0}_step"}      # all columns share blocks
    arguments = ", ".join(moved.get(p.form, "{0}.moved(right_hand_side * {0}_step)").format(p.name)
                          for p in signature.parameters)
    types, context = ", ".join(name for _, name in signature.template), d["parameters"].split(",")[0].split()[-1]
    before, after = text.split(f"{d['head']}{d['name']}(", 1)
    return f"""{before}DEVICE void {d['name']}({after}
template <{d['template']}> {d['head']}{d['name']}{EACH}({d['parameters']}, {steps}) {{
  const long long right_hand_side = blockIdx.y;
  {d['name']}<{types}>({context} + right_hand_side, {arguments});
}}
"""
