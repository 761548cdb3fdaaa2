"""Time of an iteration of every method for complex systems, beside the time of its bytes at copy speed; their products.

    python benchmarks/complex_methods.py --device cuda --matrices audi3d4~
    python benchmarks/complex_methods.py --folder FOLDER

Bytes: what the products move (format, x and y) and the words of each method's docstring, without a preconditioner,
with those that a fused product reads for its inner product. With FOLDER, that of the real systems (car_cabin/ and matrices/):
the products with A (and Aᴴ) of each method to a true residual of 1e-9, the one for it included, on those systems and on the
gallery's.
"""
from __future__ import annotations

import argparse
import pathlib

import numpy as np
import scipy.sparse as sp

import swell
from swell import gallery
from swell.bench import engine
from swell.core.devices import make_space

# method: (products, words a row beside x and y of each product) of an iteration
METHODS = {"bicgstab": (2, 15), "bicgstabl(l=4)": (8, 99), "bicgstabl(l=8)": (16, 287), "tfqmr": (2, 27),
           "qmr": (2, 22), "cocg": (1, 10), "cocr": (1, 14), "idrs(s=4)": (5, 89)}
COUNTED = {**{method: products for method, (products, _) in METHODS.items()}, "idrs(s=8)": 9,
           "bicgstabl(l=4, convex=0)": 8}
MOST = 3000             # products


def systems(folder):
    """(name, A, b): the real cabin with sources in nodes, other real systems and the gallery's with b = 1."""
    K, M, B = (sp.load_npz(folder / "car_cabin" / f"{name}.npz") for name in "KMB")
    for frequency, node in ((300, 0), (300, 5000), (300, 20_000), (200, 0), (100, 0)):
        k, source = 2 * np.pi * frequency / 340, np.zeros(K.shape[0], complex)
        source[node] = 1
        yield f"cabin, {frequency} Hz, node {node}", (K - k**2 * M + 0.05j * k * B).tocsr(), source
    for name in ("pyamg_helmholtz_2D", "qc324", "dwg961b"):
        A = swell.io.read_matrix(folder / "matrices" / f"{name}.mtx.gz")
        yield name, A, np.ones(A.shape[0], complex)
    for shape in ((60, 60), (16, 16, 16)):
        A = gallery.helmholtz(shape)
        yield f"gallery.helmholtz({shape})", A, np.ones(A.shape[0], complex)


def count(arguments):
    """The table of products; "−": not in MOST."""
    rows = []
    for name, A, b in systems(arguments.folder):
        for precond in ("ilu0", "jacobi"):
            results = (swell.solve(A, b, method=method, precond=precond, rtol=1e-9, maxiter=MOST // each,
                                   device=arguments.device) for method, each in COUNTED.items())
            rows.append((name, precond, *(r.products if r.converged else "−" for r in results)))
        engine.tell(name)
    engine.show(f"products to a true residual of 1e-9, at most {MOST}", ("system", "precond", *COUNTED), rows)


def row(A, b, method, speed, arguments):
    """One method's row of the table."""
    products, words = METHODS[method]

    def prepare(stopping):
        return swell.prepare(A, method=method, device=arguments.device, stopping=stopping, b_like=b)

    count = max(4, arguments.products // products)
    seconds, result = engine.seconds_an_iteration(prepare, b, count, arguments.repeat)
    matrix = prepare(swell.Stopping())._prepared[0].setup.matrix
    bytes_ = products * matrix.product_bytes + words * A.shape[0] * A.dtype.itemsize
    return (method, products, f"{1e6 * seconds:.1f}", f"{1e6 * seconds / products:.1f}",
            f"{1e6 * bytes_ / speed:.1f}", f"{seconds * speed / bytes_:.2f}", result.iterations, result.format)


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--matrices", default="audi3d4~")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--products", type=int, default=800, help="products of the longer of two solves")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--folder", type=pathlib.Path, help="of the real systems: count products instead")
    arguments = parser.parse_args()
    if arguments.folder:
        return count(arguments)
    space = make_space(arguments.device)
    speed = engine.Meter(space).copy_speed
    for name, A in engine.matrices(arguments.matrices, arguments.scale):
        with space.active():
            b = space.from_host(np.ones(A.shape[0], A.dtype))
        rows = [row(A, b, method, speed, arguments) for method in METHODS]
        engine.show(f"{name}, {A.shape[0]} rows, on {space.describe()}, copy {speed / 1e9:.0f} GB/s",
                    ("method", "products", "µs an iteration", "µs a product", "its bytes, µs", "ratio", "iterations",
                     "format"),
                    rows)


if __name__ == "__main__":
    main()
