"""Time of an iteration of every method for complex systems, beside the time of its bytes at copy speed.

    python benchmarks/complex_methods.py --device cuda --matrices audi3d4~

Bytes: what the products move (format, x and y) and the words of each method's docstring, without a preconditioner,
with those that a fused product reads for its inner product.
"""
from __future__ import annotations

import argparse

import numpy as np

import swell
from swell.bench import engine
from swell.core.space import make_space

# method: (products, words a row beside x and y of each product) of an iteration
METHODS = {"bicgstab": (2, 15), "bicgstabl(l=4)": (8, 99), "bicgstabl(l=8)": (16, 287), "tfqmr": (2, 27),
           "qmr": (2, 22), "cocg": (1, 10), "cocr": (1, 14), "idrs(s=4)": (5, 89)}


def row(A, b, method, speed, arguments):
    """One method's row of the table."""
    products, words = METHODS[method]

    def prepare(stopping):
        return swell.prepare(A, method=method, device=arguments.device, stopping=stopping, b_like=b)

    count = max(4, arguments.products // products)
    seconds, result = engine.seconds_an_iteration(prepare, b, count, arguments.repeat)
    matrix = prepare(swell.Stopping())._prepared[0].matrix
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
    arguments = parser.parse_args()
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
