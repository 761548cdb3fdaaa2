"""Products as the methods run them, from a CUDA graph, plain and fused with two inner products:

    python benchmarks/product_in_graph.py [--formats sell,ell,...] [thermal2~ ecology2~ ...]
"""
from __future__ import annotations

import argparse
from functools import partial

from ic0_on_gpu import replayed

from swell import gallery
from swell.core.registry import resolve
from swell.core.devices import make_space
from swell.core.space import accumulator
from swell.formats.csr import CSRMatrix

PER_GRAPH, REPEAT = 20, 15


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="products in a CUDA graph")
    parser.add_argument("--formats", default="sell")
    parser.add_argument("matrices", nargs="*", default=["thermal2~", "ecology2~", "parabolic_fem~", "atmosmodd~",
                                                        "audi3d4~"])
    arguments = parser.parse_args()
    space = make_space("cuda")
    for name in arguments.matrices:
        A = gallery.get(name)
        for label in arguments.formats.split(","):
            with space.active():
                matrix = resolve("format", label).build(CSRMatrix.from_scipy(A, space))
                x = space.xp.random.random(A.shape[0]).astype(A.dtype)
                y, dots = space.xp.empty_like(x), space.empty(2, accumulator(A.dtype))
                matrix.apply(x, y)
            expected = A @ space.to_host(x)
            error = abs(space.to_host(y) - expected).max() / abs(expected).max()
            plain = replayed(space, partial(matrix.apply, x, y), PER_GRAPH, REPEAT)
            fused = replayed(space, partial(matrix.apply_dots, x, y, x, dots), PER_GRAPH, REPEAT)
            print(f"{name} {label}: {plain:.1f} µs, with inner products {fused:.1f}, "
                  f"{matrix.product_bytes / 1e6:.1f} MB, error {error:.0e}; {matrix.describe()}")
