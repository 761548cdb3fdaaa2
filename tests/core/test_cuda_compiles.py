"""Every file of device kernels compiles, for every type, and becomes code for every architecture, without a GPU: NVRTC needs none.

The usual run generates code for the oldest and the newest architecture, and leaves out the assembler's optimisation, a
quarter of the time. `pytest -m slow tests/core/test_cuda_compiles.py` generates it for all of them, optimised.
"""
from __future__ import annotations

import itertools
import pathlib
import re

import pytest

from swell.core import cuda_sources
from swell.core.library import native_kernels

nvrtc = pytest.importorskip("cuda.bindings.nvrtc", reason="needs cuda-bindings and nvidia-cuda-nvrtc: pip install '.[test]'")
ROOT = pathlib.Path(cuda_sources.__file__).parents[1]
FILES = cuda_sources.kernel_files(ROOT)
TYPES = {"T": ("float", "double", "complex<float>", "complex<double>"), "A": ("double", "complex<double>"), "I": ("long long", "int"), "P": ("int", "long long"), "C": ("int", "long long", "unsigned char"),
         "K": ("int", "long long", "unsigned char", "unsigned short", "unsigned"), "HIGH": ("false", "true"), "J": ("int", "long long"),
         "INDPTR": ("false", "true"), "BOUNDARY": ("false", "true"), "BOARD": ("false", "true"), "INDICES": ("false", "true"),
         "HELD": ("0", "12"), "BLOCK": ("1", "3", "8", "32"), "SLOTS": ("8",), "CHUNK": ("4",),
         "SIDE": ("1", "8", "32"), "TILE": ("2", "8"), "L": ("8", "1"), "S": ("8", "1"), "WIDTH": ("1", "4"),
         "UNKNOWNS": ("8", "32"), "SIDES": ("1", "4"), "X": ("8", "16", "32"), "ROWS": ("8", "128"), "KIND": ("0", "1", "2"), "WHOLE": ("0", "1")}
STORED = {"float": ("float",), "double": ("double", "float"), "complex<float>": ("complex<float>",),
          "complex<double>": ("complex<double>", "complex<float>")}          # V or B, what a factor or a basis may be stored as
SHAPES = ({"W": "unsigned char", "HEIGHT": "32"}, {"W": "unsigned short", "HEIGHT": "8"})
ARCHITECTURES = 80, 86, 89, 90, 100, 120                          # docs/INSTALL.md names them
READ_ONLY = "--gpu-architecture=compute_80", "-dlto"               # types are checked, and no code is generated
PLAIN = "--ptxas-options=-O0"


def compile_log(source: str, name: str, expressions: list[str], *options: str) -> str:
    """The compiler's complaints; empty if there are none."""
    status, program = nvrtc.nvrtcCreateProgram(source.encode(), name.encode(), 0, [], [])
    assert status == nvrtc.nvrtcResult.NVRTC_SUCCESS
    for e in expressions:
        nvrtc.nvrtcAddNameExpression(program, e.encode())
    options = [o.encode() for o in (*options, *cuda_sources.OPTIONS)]
    status, = nvrtc.nvrtcCompileProgram(program, len(options), options)
    _, size = nvrtc.nvrtcGetProgramLogSize(program)
    log = b" " * (size + 1)             # never one byte: NVRTC would write into the interpreter's shared b" "
    nvrtc.nvrtcGetProgramLog(program, log)
    nvrtc.nvrtcDestroyProgram(program)
    return "" if status == nvrtc.nvrtcResult.NVRTC_SUCCESS else log.decode(errors="replace")


def instantiations(path):
    """For each kernel of a file, a list of it with every combination of its template arguments."""
    for signature in cuda_sources.signatures(path).values():
        found, names = [], [name for _, name in signature.template]
        for shape in SHAPES if "W" in names else SHAPES[:1]:
            for choice in itertools.product(*(TYPES.get(name, (shape.get(name),)) for name in names)):
                types = dict(zip(names, choice))
                for stored in STORED[types.get("T", "double")] if {"V", "B"} & {*names} else (None,):
                    found.append(cuda_sources.name_expression(signature, {**types, "V": stored, "B": stored}))
        yield found


def generates(path, expressions, architecture, *options):
    """The compiler's complaints about code for an architecture."""
    return compile_log(cuda_sources.source(path), path.name, expressions, f"--gpu-architecture=sm_{architecture}", *options)


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_compiles(path):
    """All combinations are read. Generating code takes hundreds of times as long: the oldest architecture has it for the
    last combination of each kernel, whose types are the largest, and the newest for the first."""
    kernels = list(instantiations(path))
    assert kernels and all(kernels), f"{path.name} has no kernel that the loader can read"
    assert compile_log(cuda_sources.source(path), path.name, sum(kernels, []), *READ_ONLY) == ""
    assert generates(path, [found[-1] for found in kernels], ARCHITECTURES[0], PLAIN) == ""
    assert generates(path, [found[0] for found in kernels], ARCHITECTURES[-1], PLAIN) == ""


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_architecture(path, architecture):
    """The first and the last combination of each kernel."""
    ends = [{found[0], found[-1]} for found in instantiations(path)]
    assert generates(path, sorted(set().union(*ends)), architecture) == ""


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_kernel_compiles_for_each_column(path):
    """The form that runs once for every column of several right-hand sides, in double."""
    source, expressions, signatures = cuda_sources.source(path), [], cuda_sources.signatures(path)
    for signature, found in zip(signatures.values(), instantiations(path)):
        if signature.name.removesuffix("_columns") in signatures.keys() - {signature.name}:
            continue                             # a twin, which takes all columns
        source = cuda_sources.for_each_column(source, signature)
        own = next((e for e in found if "<double" in e), found[0])
        expressions.append(own.replace("<", cuda_sources.EACH + "<", 1))
    assert compile_log(source, path.name, expressions, *READ_ONLY) == ""


def test_loader_reads_every_kernel():
    for path in FILES:
        written = re.findall(r"__global__|\b\w*KERNEL\w* ", re.sub("//.*", "", path.read_text()))
        assert len(cuda_sources.signatures(path)) == len(written), path


def test_a_mistake_is_found():
    """In what one type alone makes of a template, and in what the assembler alone sees."""
    name = "template <typename T> __global__ void f(T* x) { x[0] = y; }"
    size = "template <typename T> __global__ void f(T* x) { static_assert(sizeof(T) == 8); }"
    shared = "__global__ void f(double* x) { __shared__ double s[10000]; s[threadIdx.x] = x[0]; x[0] = s[3]; }"
    assert "error" in compile_log(name, "x.cu", ["f<float>"], *READ_ONLY)
    assert "error" in compile_log(size, "x.cu", ["f<double>", "f<float>"], *READ_ONLY)
    assert "too much shared data" in compile_log(shared, "x.cu", ["f"], "--gpu-architecture=sm_80", PLAIN)


def functions(path):
    """By name, the parameters' names of the functions of a C++ file, the judge's state and the list of columns left out;
    a GPU has these in its grid. The block size is a template constant there, named ``block``."""
    found = {}
    for name, inside in re.findall(r"\b(\w+)\(((?:[^()]|\([^()]*\))*)\)\s*\{", re.sub("//.*", "", path.read_text())):
        names = [re.findall(r"\w+", p)[-1] for p in re.split(r",(?![^<]*>)", inside) if p.strip()]
        found.setdefault(name, []).append(names[1:] if names[:1] in (["ctx"], ["states"], ["running"]) else names)
    return found


def test_kernels_match_those_of_the_cpu():
    """The same kernels with the same parameters in the same order, on both kinds of device."""
    compared = 0
    for path in FILES:
        if path.suffix == ".hpp":                            # one text
            on_cpu = vars(native_kernels(".".join(path.relative_to(ROOT.parent).parts[:-2]), path.stem))
            assert set(cuda_sources.signatures(path)) == set(on_cpu) - {"KERNELS"}, path
            compared += len(cuda_sources.signatures(path))
            continue
        if not path.with_suffix(".cpp").exists():            # for GPUs alone
            continue
        package = ".".join(path.relative_to(ROOT.parent).parts[:-2])
        in_text, on_cpu = functions(path.with_suffix(".cpp")), vars(native_kernels(package, path.stem))
        for name, signature in cuda_sources.signatures(path).items():
            if name not in on_cpu or name not in in_text:      # or another name of a kernel
                continue
            names = ["size" if p.name == "block" else p.name for p in signature.parameters]
            same = [names[len(common):] for common in in_text[name] if names[:len(common)] == ["size" if p == "block" else p for p in common]]
            assert same, f"{path.name}: {name} has {names}, in C++ {in_text[name]}"
            assert all(e in ("n", "tile", "vectors") or e.endswith(("_size", "_stride", "_step")) for e in same[0]), f"{path.name}: {name}"
            compared += 1
    assert compared > 250, compared
