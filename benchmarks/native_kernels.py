"""Native CPU kernels beside Numba's: `python benchmarks/native_kernels.py [family ...] [--rows 10000,100000,1000000]
[--threads 1,2] [--dtype float64,complex128] [--seconds 0.5]`.

The two versions of a kernel take turns, in two processes, so that other load on the machine meets both and no thread
of one spins beside the other. Columns: the median of the CPU
time of a call in µs, for Numba and for native; native / Numba, as the median of the ratios of neighbouring samples, of
CPU and of wall time; and the ratio of the least wall times. CPU time is the calling thread's with one thread, the
process's with more.
"""
from __future__ import annotations

import argparse
import copy
import importlib
import multiprocessing
import time

import numba
import numpy as np

from swell import _native, gallery
from swell.core.compiled import here
from swell.core.cpu import SERIAL
from swell.core.devices import make_space
from swell.core.slots import Flag, Limit
from swell.formats.csr import CSRMatrix
from swell.formats.product import Product
from swell.formats.sell import SELL

FAMILIES = {}


def family(function):
    FAMILIES[function.__name__] = function
    return function


class Case:
    """A kernel and its arguments, of which each version gets its own copy of those that it writes."""

    def __init__(self, package, stem, name, *arguments, other=None):
        self.name = f"{stem}.{name}"
        self.old = getattr(importlib.import_module(f"{package}.kernels.{stem}"), other or name)
        self.new = _native.kernel(f"{package}.{stem}.{name}")
        self.arguments = copy.deepcopy(arguments), copy.deepcopy(arguments)

    def difference(self):
        """The largest difference between the results of both, relative to the largest entry of each array."""
        worst, sides = 0.0, (copy.deepcopy(self.arguments[0]), copy.deepcopy(self.arguments[0]))
        for kernel, arguments in zip((self.old, self.new), sides):
            kernel(*arguments)
        for a, b in zip(*map(flattened, sides)):
            if a.dtype.kind in "fc" and a.size and np.isfinite(a).all():
                worst = max(worst, float(abs(a - b).max() / max(abs(a).max(), 1e-300)))
            elif not np.array_equal(a, b, equal_nan=a.dtype.kind in "fc"):
                worst = np.inf
        return worst


def flattened(value):
    if isinstance(value, np.ndarray):
        return [value]
    return [a for part in value for a in flattened(part)] if isinstance(value, tuple) else []


def state():
    flags, limits = np.zeros(len(Flag), np.int64), np.zeros(len(Limit))
    flags[Flag.MAXITER] = 1 << 40
    limits[Limit.GROWTH2], limits[Limit.BEST2] = np.inf, np.inf
    return flags, limits, np.zeros(1 << 24)


def numbers(rng, n, dtype):
    dtype = np.dtype(dtype)
    made = rng.standard_normal(n).astype(dtype.char.lower() if dtype.kind == "c" else dtype)
    return made + 1j * rng.standard_normal(n).astype(made.dtype) if dtype.kind == "c" else made


@family
def vector(rows, dtype):
    rng, kind, sums = np.random.default_rng(0), np.dtype(dtype).type, np.result_type(dtype, np.float64)
    x, y, z = (numbers(rng, rows, dtype) for _ in range(3))
    of = "swell.core", "vector"
    yield Case(*of, "axpy", kind(1e-9), x, y.copy())
    yield Case(*of, "axpby", kind(0.5), x, kind(0.5), y.copy())
    yield Case(*of, "dot", x, y, np.zeros(1, sums))
    yield Case(*of, "norm", x, np.zeros(1, sums))
    yield Case(*of, "dots", x, y, np.zeros(2, sums))
    yield Case(*of, "axpy_dots", kind(1e-9), x, y.copy(), z, np.zeros(2, sums))
    yield Case(*of, "multiply_dots", z, x, y.copy(), x, np.zeros(2, sums))


@family
def cg(rows, dtype):
    from swell.krylov.slots import CG
    rng, sums = np.random.default_rng(0), np.result_type(dtype, np.float64)
    r, z, p, q, x = (numbers(rng, rows, dtype) for _ in range(5))
    s = np.ones(len(CG), sums)
    s[CG.RHO] = 1e-9
    w = np.zeros(0, np.float32)
    of = "swell.krylov", "cg"
    yield Case(*of, "begin", state(), r, z, w, p, s.copy())
    yield Case(*of, "residual", state(), q, r.copy(), w, s.copy())
    yield Case(*of, "residual", state(), q, r.copy(), np.ones(rows, np.float32), s.copy())
    yield Case(*of, "direction", state(), z, p.copy(), x, s.copy(), np.zeros(100))


def poisson(rows, dtype):
    """A three-dimensional Poisson matrix with about ``rows`` rows, in CSR."""
    A = gallery.poisson3d(round(rows**(1 / 3))).astype(dtype)
    return CSRMatrix.from_scipy(A, make_space("cpu"))


def products(package, stem, arrays, n, dtype, integers):
    """The cases of a matrix format, whose kernels take ``arrays`` first, and ``integers`` after the vectors."""
    rng, kind = np.random.default_rng(0), np.dtype(dtype).type
    x, z, y = (numbers(rng, n, dtype) for _ in range(3))
    dots = np.zeros(2, np.result_type(dtype, np.float64))
    yield Case(package, stem, "product", *arrays, x, y, *integers, kind(1), kind(0))
    yield Case(package, stem, "product_sum", *arrays, x, z, z, y, *integers, kind(-1), kind(1), kind(0))
    yield Case(package, stem, "product_dots", *arrays, x, y, x, dots, *integers)


@family
def csr(rows, dtype):
    A = poisson(rows, dtype)
    yield from products("swell.formats", "csr", (A.indptr, A.indices, A.data), A.shape[0], dtype, (0,))


@family
def sell(rows, dtype):
    A = SELL().build(poisson(rows, dtype))
    yield from products("swell.formats", "sell", A._arrays(), A.shape[0], dtype,
                        (A.height, A.settings.window, A.task))


@family
def amg(rows, dtype):
    from swell.preconditioners.amg.settings import AMG
    A = poisson(rows, dtype)
    n, rng = A.shape[0], np.random.default_rng(0)
    of, kind = ("swell.preconditioners.amg", "cycle"), np.dtype(dtype).type
    double = poisson(rows, np.float64)
    P = AMG().coarsening(double).interpolation(double).P
    P = P.with_values(P.data.astype(dtype))
    R = P.transpose()
    x, z, coarse = numbers(rng, n, dtype), numbers(rng, n, dtype), numbers(rng, P.shape[1], dtype)
    yield Case(*of, "l1_scales", A.indptr, A.data, 1.0, np.ones(n))
    yield Case(*of, "smoothing_matrix", A.indptr, A.indices, A.data, np.ones(n), np.empty_like(A.data))
    yield Case(*of, "shared_rows", P.indptr, P.indices, P.data, 0, coarse, kind(1), kind(1), kind(0), x, x, z)
    yield Case(*of, "rows_product", R.indptr, R.indices, R.data, 1, x, coarse)
    yield Case(*of, "correct", A.indptr, A.indices, A.data, P.indptr, P.indices, P.data, 1, x, coarse, z)
    for name, left, right in (("A P", A, P), ("R (A P)", R, Product(A, P).C)):
        product = Product(left, right)
        C, factors = product.C, product._factors(left, right)
        counts, starts = np.empty(C.shape[0], np.int64), np.empty(C.shape[0] + 1, np.int64)
        importlib.import_module("swell.formats.kernels.product").products(factors[0], factors[1], factors[3],
                                                                          C.shape[1], counts)
        starts[0] = 0
        np.cumsum(counts, out=starts[1:])
        indices, data = np.zeros(starts[-1], C.indices.dtype), np.zeros(starts[-1], C.dtype)
        for case in (Case("swell.formats", "product", "fill", *factors, C.shape[1], product._bounds, starts, indices,
                          data, counts),
                     Case("swell.formats", "product", "values", *factors, C.shape[1], product._rows, product._bounds,
                          C.indptr, C.indices, C.data)):
            case.name += f" of {name}"
            yield case


def serve(pipe, side, name, rows, dtype):
    """Answer the parent, in a process of its own: (case, threads) with the case's name, its difference and the seconds
    of a call; repeat with (CPU, wall) seconds a call. ``side``: 0 for Numba, 1 for native."""
    cases, case, clock = list(FAMILIES[name](rows, dtype)), None, None
    here.small = rows < SERIAL
    pipe.send(len(cases))
    while (asked := pipe.recv()) is not None:
        if isinstance(asked, tuple):
            case, threads = cases[asked[0]], asked[1]
            clock = time.thread_time if threads == 1 else time.process_time
            numba.set_num_threads(threads)
            _native.set_threads(threads)
            different = case.difference() if side == 0 else 0.0
            kernel, arguments = (case.old, case.new)[side], case.arguments[side]
            kernel(*arguments)
            start = time.perf_counter()
            kernel(*arguments)
            pipe.send((case.name, different, time.perf_counter() - start))
        else:
            cpu, wall = clock(), time.perf_counter()
            for _ in range(asked):
                kernel(*arguments)
            pipe.send(((clock() - cpu) / asked, (time.perf_counter() - wall) / asked))


def measure(pipes, case, threads, seconds):
    """Return (name, difference, samples): the samples of both as an array of (CPU, wall) seconds a call."""
    for pipe in pipes:
        pipe.send((case, threads))
    (name, different, one), (_, _, other) = (pipe.recv() for pipe in pipes)
    one = max(one, other, 1e-6)
    repeat, rounds = max(1, int(2e-3 / one)), max(7, int(seconds / (2 * max(one, 2e-3))))
    samples = np.empty((2, rounds, 2))
    for k in range(rounds):
        for side, pipe in enumerate(pipes):
            pipe.send(repeat)
            samples[side, k] = pipe.recv()
    return name, different, samples


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("families", nargs="*", default=[])
    parser.add_argument("--rows", default="10000,100000,1000000")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--dtype", default="float64")
    parser.add_argument("--seconds", type=float, default=0.5)
    given, spawn = parser.parse_args(), multiprocessing.get_context("spawn")
    print("| kernel | type | rows | threads | Numba µs | native µs | CPU | wall | least | difference |")
    print("|" + "---|" * 10)
    for name in given.families or FAMILIES:
        for dtype in given.dtype.split(","):
            for rows in map(int, given.rows.split(",")):
                ends = [spawn.Pipe() for _ in range(2)]
                pipes = [end for end, _ in ends]
                sides = [spawn.Process(target=serve, args=(end, side, name, rows, dtype), daemon=True)
                         for side, (_, end) in enumerate(ends)]
                for side in sides:
                    side.start()
                cases = min(pipe.recv() for pipe in pipes)
                for case in range(cases):
                    for threads in map(int, given.threads.split(",")):
                        if threads > 1 and rows < SERIAL:
                            continue
                        kernel, different, (old, new) = measure(pipes, case, threads, given.seconds)
                        cpu, wall = np.median(new / old, axis=0)
                        print(f"| {kernel} | {dtype} | {rows} | {threads} | {np.median(old[:, 0]) * 1e6:.1f} "
                              f"| {np.median(new[:, 0]) * 1e6:.1f} | {cpu:.2f} | {wall:.2f} "
                              f"| {new[:, 1].min() / old[:, 1].min():.2f} | {different:.0e} |", flush=True)
                for pipe, side in zip(pipes, sides):
                    pipe.send(None)
                    side.join()


if __name__ == "__main__":
    main()
