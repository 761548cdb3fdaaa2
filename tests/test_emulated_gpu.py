"""The emulated GPU (emulation/cupy/__init__.py): what it finds in wrong kernels, and GPU tests on it: products, transposes, a
captured CG, and algebraic multigrid, whose levels have the bits of a CPU's, in any order of threads."""
from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

FOLDER = pathlib.Path(__file__).parent / "emulation"
CACHE = FOLDER.parents[1] / ".pytest_cache" / "emulated_gpu"
# Threads in turn and in a random order, with a b + c contracted and not: each once.
ORDERS = {"random": {"SWELL_EMULATED_ORDER": "random:1"}, "contracted": {"SWELL_EMULATED_FMA": "1"}}
# Of ranks with an emulated GPU each: messages by peer access and by NCCL.
RANKS = {"distributed/test_gpus.py": "test_inner_products_beside_a_product and 2-float64",
         "distributed/test_columns.py": "test_columns_on_gpus and 2-single_reduction_cg"}
# Files of tests, and which of their cases for a GPU.
CASES = {"preconditioners/amg/test_levels.py": "(agree and (neumann or triangles)) or costs or by_rows",
         "preconditioners/amg/test_aggregation.py": "agree or loop or hold", "formats/test_transpose.py": "float64",
         "krylov/test_krylov.py": "test_true_residual and cuda-float64 and not idrs",
         "transforms/test_transforms.py": "three or columns_never",
         "smoothers/test_smoothers.py": "(test_jacobi or test_chebyshev_is) and float64",
         "preconditioners/test_block_ilu.py": "(truncated or exact) and float64",
         "guests/test_as_operators.py": "gpu", "pde/test_assembly.py": "face_by_face",
         "pde/test_helmholtz_sweep.py": "A_on_the_device", "dense/test_dense.py": "without_pivoting",
         "core/test_sharing.py": "amg or block_jacobi", "formats/test_parts.py": "kernels_product or smaller_chunks",
         "batch/test_solve_batch.py": "float64 and (preconditioner or size) or refines or chip"}
START = """
import sys
import cupy
import numpy as np
def launch(body, *arguments, threads=64, together=False):
    code = 'extern "C" __global__ void kernel(' + ", ".join(
        f"{'double* ' if hasattr(a, 'get') else 'int '}{n}" for n, a in zip("xyz", arguments)) + ") {" + body + "}"
    cupy.RawKernel(code, "kernel")((1,), (threads,), arguments)
def error(*given, **named):
    try:
        launch(*given, **named)
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return str(error)
x = cupy.zeros(64)
"""
# By what they show: a script that prints True.
FOUND = {
    "a right kernel": "launch('x[threadIdx.x] = 2 * threadIdx.x;', x); print((x.get() == 2 * np.arange(64)).all())",
    "a missing barrier": """
launch('__shared__ double s[64]; const int t = threadIdx.x; s[t] = t; x[t] = s[(t + 32) % 64];', x)
wrong = x.get()
launch('__shared__ double s[64]; const int t = threadIdx.x; s[t] = t; __syncthreads(); x[t] = s[(t + 32) % 64];', x)
print((x.get() == (np.arange(64) + 32) % 64).all() and not (wrong == x.get()).all())""",
    "a deadlock": """
print('deadlock' in error('if (threadIdx.x < 16) __shfl_sync(~0u, 1, 0); else __syncthreads();', x))""",
    "a spinning thread": "print('no end' in error('while (*(volatile double*)x == 0) {}', x))",
    "two warp operations that meet": """
print('different' in error('if (threadIdx.x % 2) __syncwarp(); else x[0] = __shfl_sync(~0u, 1, 0);', x))""",
    "a mask without the caller": "print('has no bit' in error('__syncwarp(1);', x))",
    "a read behind an array": "print('behind the end' in error('x[0] = x[64];', x))",
    "a write before an array": """
y = cupy.zeros(3)
launch('y[-1] = 1;'.replace('y', 'x'), y, threads=1)
del y
try:
    cupy.cuda.get_current_stream().synchronize()
except cupy.cuda.runtime.CUDARuntimeError as e:
    print('outside of an array of 24 bytes' in str(e))""",
    "memory that nobody wrote": "print(np.isnan(cupy.empty(3).get()).all())",
    "shared memory that nobody wrote": """
launch('__shared__ double s[64]; x[threadIdx.x] = s[5];', x)
print(np.isnan(x.get()).all())""",
    "arrays of two kinds": """
def refused(f):
    try: f()
    except TypeError: return True
y = np.ones(64)
print(all(map(refused, [lambda: np.asarray(x), lambda: x + y, lambda: y + x, lambda: cupy.sqrt(y)])))
""",
    "a gather or a copy in place": """
def refused(f):
    try: f()
    except ValueError as error: return 'overlap' in str(error)
def fine(f):
    f()
    return True
def assign(target, places, value): target[places] = value
y, order, M = cupy.ones(64), cupy.arange(64)[::-1].copy(), cupy.ones((8, 8))
print(all(map(refused, [
    lambda: cupy.take(x, order, out=x), lambda: x.take(order, out=x), lambda: cupy.take(x, order[:32], out=x[32:]),
    lambda: cupy.take(y, order, out=order), lambda: assign(x, order, x), lambda: assign(x, order[:32], x[:32]),
    lambda: assign(order, order, 0), lambda: assign(x, slice(1, None), x[:-1]),
    lambda: assign(x, ..., x[::-1]), lambda: cupy.matmul(M, M, out=M)]))
    and all(map(fine, [
    lambda: cupy.take(x, order, out=y), lambda: assign(x, order, x[order]), lambda: assign(x, ..., x),
    lambda: assign(x, slice(32, None), x[:32]), lambda: cupy.multiply(x, y, out=x), lambda: assign(x, order, y),
    lambda: assign(M, (slice(4, None), slice(4)), M[:4, 4:].T)])))""",
    "a graph": """
s = cupy.cuda.Stream()
with s:
    s.begin_capture()
    launch('x[threadIdx.x] += 1;', x)
    x *= 2
    before = x._held.sum()
    try: x.get()
    except cupy.cuda.runtime.CUDARuntimeError: before += 1
    graph = s.end_capture()
    graph.launch(s), graph.launch(s)
print(before == 1 and (x.get() == 6).all())""",
}


# Prints why resident_cg is refused, if it is, and what swell chooses for a system that would suit it.
CHOICE = """
import numpy as np
import swell
A, b = swell.gallery.poisson2d(40), np.ones(1600)
try:
    print(swell.solve(A, b, device="cuda", method="resident_cg").converged)
except swell.InputError as error:
    print(error)
print(swell.solve(A, b, device="cuda"))"""


def emulated(arguments, variables):
    """What a process prints whose GPU is emulated."""
    if shutil.which("g++") is None:
        pytest.skip("the emulated GPU compiles kernels with g++, which is not installed")
    if " fma " not in pathlib.Path("/proc/cpuinfo").read_text():
        pytest.skip("the emulated GPU needs an x86-64 processor with fused multiplication")
    paths = os.pathsep.join([str(FOLDER), str(FOLDER.parents[1])])
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=300,
                          env={"SWELL_EMULATED_CACHE": str(CACHE), **os.environ, "PYTHONPATH": paths, **variables})
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


@pytest.mark.parametrize("what", FOUND)
def test_it_shows(what):
    printed = emulated(["-c", START + FOUND[what]], {"SWELL_EMULATED_LIMIT": "1"})
    assert printed.split() == ["True"]


@pytest.mark.parametrize("file, order", [
    *((file, "random") for file in CASES),                       # and contracted where there is arithmetic of its own
    *((file, "contracted") for file in CASES if file not in (
        "formats/test_transpose.py", "core/test_sharing.py", "smoothers/test_smoothers.py",
        "preconditioners/test_block_ilu.py", "guests/test_as_operators.py", "pde/test_assembly.py",
        "pde/test_helmholtz_sweep.py", "dense/test_dense.py", "preconditioners/amg/test_aggregation.py",
        "transforms/test_transforms.py"))])
def test_gpu_tests(file, order):
    printed = emulated(["-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "gpu", str(FOLDER.parent / file), "-k", CASES[file]],
                       ORDERS[order])
    assert " passed" in printed.splitlines()[-1]


@pytest.mark.parametrize("file", RANKS)
def test_ranks(file):
    printed = emulated(["-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "gpu", str(FOLDER.parent / file), "-k", RANKS[file]],
                       {"SWELL_EMULATED_GPUS": "2"})
    assert " passed" in printed.splitlines()[-1]


@pytest.mark.parametrize("capability, refusal, method", [
    ("8.6", "resident_cg needs a GPU of compute capability 9.0 or newer, which cuda:0, emulated GPU is not: use method='cg'",
     "CG() on"),
    ("12.0", "True", "ResidentCG() on")])
def test_an_older_gpu_has_a_fallback(capability, refusal, method):
    """It is refused by name, and swell chooses without it. Newer GPUs with small shared memory have it."""
    first, verdict, chosen, *_ = emulated(["-c", CHOICE], {"SWELL_EMULATED_CAPABILITY": capability}).splitlines()
    assert first == refusal
    assert verdict.startswith("converged") and chosen.strip().startswith(method)


def test_common_calls_launch_what_is_compiled_ahead():
    emulated([str(FOLDER.parent / "foreseen.py"), "--check"], {})
