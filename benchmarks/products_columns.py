"""Products with k columns beside k single products and the floor, which the bytes set:

    python benchmarks/products_columns.py [--device cuda] [--formats sell,csr] [--dtype float64] [NAME ...]

NAME: poisson2d, poisson3d, elasticity, motorbike, landscape, or a matrix of the gallery. A line has, for the plain
product and for the product with inner products: microseconds of one k-product, its ratio to k single products, and to
the floor: the bytes of the matrix once and of the vectors k times, over the measured bandwidth of a copy. On a GPU also
the ratio of k separate columns in one launch, which read the matrix k times. Last, the products A X of SciPy or CuPy.
"""
from __future__ import annotations

import argparse
import os
import pathlib
import sys

import numpy as np
import scipy.sparse as sp

from swell import gallery
from swell.core.devices import make_space
from swell.core.registry import resolve
from swell.core.sharing import Widening
from swell.core.space import accumulator
from swell.core.timing import seconds
from swell.formats.csr import CSRMatrix

TURNS = 4
DATA = pathlib.Path(os.environ.get("SWELL_DATA", pathlib.Path(__file__).parents[2] / "shared" / "data"))


def landscape():
    sys.path.insert(0, str(DATA))
    return __import__("landscape").load("1m")


MATRICES = {"poisson2d": lambda: gallery.poisson2d(1000), "poisson3d": lambda: gallery.poisson3d(100),
            "elasticity": lambda: gallery.get("audi3d4~"),
            "motorbike": lambda: sp.load_npz(DATA / "matrices" / "foam_motorBike_ldu.npz"), "landscape": landscape}


def vectors(space, count, n, dtype):
    """``count`` random vectors: `Columns` of a space for several right-hand sides."""
    made = space.buffer(n, dtype)
    values = np.random.default_rng(0).standard_normal((count, n)).astype(dtype)
    if count == 1:
        made[...] = space.from_host(values[0])
    else:
        made.array[...] = space.from_host(values)
    return made


def bandwidth(space, n):
    """Bytes a second of a copy of n doubles."""
    a, b = space.empty(n, np.float64), space.empty(n, np.float64)
    a.fill(0)
    return 16 * n / seconds(space, lambda: space.copy(a, b), 20)


def separate(A):
    """Make the products of A treat every column by itself, as kernels without a twin do."""
    for name in ("product", "product_dots"):
        getattr(A._kernels, name)._twin = None
    return A


def calls(A, x, y, dots):
    return lambda: A.apply(x, y), lambda: A.apply_dots(x, y, x, dots)


def measure(A, k, count):
    """Seconds of (plain, with inner products): k single products, one k-product, and on a GPU k separate columns.

    They take turns, so that other work on the machine falls on all of them; the least time counts."""
    space, n, dtype = A.space, A.shape[0], A.dtype
    ways = [(space, A, k)]
    if k > 1:
        many = space.for_columns(k)
        ways.append((many, Widening(many)(A), 1))
        if space.name == "cuda":
            ways.append((many, separate(Widening(many)(A)), 1))
    held = {own: (vectors(own, own.columns, n, dtype), vectors(own, own.columns, n, dtype),
                  own.buffer(2, accumulator(dtype))) for own, _, _ in ways}
    found = [[np.inf, np.inf] for _ in ways]
    for _ in range(TURNS):
        for best, (own, operator, times) in zip(found, ways):
            with own.active():
                for j, call in enumerate(calls(operator, *held[own])):
                    best[j] = min(best[j], times * seconds(own, call, count))
    return found[0], found[1] if k > 1 else found[0], found[2] if len(found) > 2 else None


def library(space, A, k, count):
    """Seconds of A X by SciPy or CuPy, X of shape (n, k)."""
    X = np.random.default_rng(0).standard_normal((A.shape[1], k)).astype(A.dtype)
    if space.name == "cuda":
        import cupyx.scipy.sparse as gpu
        with space.active():
            A, X = gpu.csr_matrix(sp.csr_matrix(A)), space.xp.asfortranarray(space.from_host(X))
            begin, end = space.xp.cuda.Event(), space.xp.cuda.Event()
            A @ X
            begin.record()
            for _ in range(count):
                A @ X
            end.record()
            end.synchronize()
            return 1e-3 * space.xp.cuda.get_elapsed_time(begin, end) / count
    return seconds(space, lambda: A @ X, 5)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--formats", default="sell,csr")
    parser.add_argument("--dtype", default="float64")
    parser.add_argument("--counts", default="1,2,4,8,16,32")
    parser.add_argument("--repeat", type=int, default=10)
    parser.add_argument("matrices", nargs="*", default=["poisson2d", "poisson3d", "motorbike"])
    arguments = parser.parse_args()
    space = make_space(arguments.device)
    with space.active():
        rate = bandwidth(space, 1 << (27 if space.name == "cuda" else 24))
    print(f"{space.describe()}: a copy moves {rate / 1e9:.1f} GB/s")
    for name in arguments.matrices:
        A = sp.csr_array(MATRICES.get(name, lambda: gallery.get(name))()).astype(arguments.dtype)
        for format in arguments.formats.split(","):
            with space.active():
                matrix = resolve("format", format).build(CSRMatrix.from_scipy(A, space))
            n, item = A.shape[0], A.dtype.itemsize
            print(f"\n{name}, {format}: {n} rows, {A.nnz / n:.1f} entries a row, {matrix.matrix_bytes / n:.1f} bytes "
                  "of matrix a row\n  k    product µs  /single  /floor  apart/single |  with dots µs  /single  /floor  "
                  "apart/single | library µs  /single", flush=True)
            for k in map(int, arguments.counts.split(",")):
                single, together, apart = measure(matrix, k, arguments.repeat)
                floor = (matrix.matrix_bytes + 2 * k * n * item) / rate       # x = w, so dots add no bytes
                line = f"{k:3d}"
                for j in range(2):
                    ratio = "" if apart is None else f"{apart[j] / single[j]:.2f}"
                    line += (f"  {1e6 * together[j]:10.1f}  {together[j] / single[j]:7.2f}  "
                             f"{together[j] / floor:6.2f}  {ratio:>12} |")
                other = library(space, A, k, arguments.repeat)
                print(f"{line} {1e6 * other:10.1f}  {other / single[0]:7.2f}", flush=True)
