"""A SELL product as the methods run it, from a CUDA graph: python benchmarks/product_in_graph.py thermal2~ ecology2~ ..."""
from __future__ import annotations

import sys

import numpy as np

from swell import gallery
from swell.core.space import make_space
from swell.formats.csr import CSRMatrix
from swell.formats.sell import SELL

PER_GRAPH, REPEAT = 20, 15


def microseconds(space, launch) -> float:
    """Median over replays of a graph of PER_GRAPH launches."""
    cupy, stream = space.xp, space.stream
    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    with space.active():
        for _ in range(5):
            launch()
        stream.begin_capture()
        for _ in range(PER_GRAPH):
            launch()
        graph, times = stream.end_capture(), []
        for _ in range(REPEAT):
            begin.record(stream)
            graph.launch(stream)
            end.record(stream)
            end.synchronize()
            times.append(1e3 * cupy.cuda.get_elapsed_time(begin, end) / PER_GRAPH)
    return float(np.median(times))


if __name__ == "__main__":
    space = make_space("cuda")
    for name in sys.argv[1:] or ("thermal2~", "ecology2~", "parabolic_fem~", "atmosmodd~", "audi3d4~"):
        A = gallery.get(name)
        with space.active():
            matrix = SELL().build(CSRMatrix.from_scipy(A, space))
            x = space.xp.random.random(A.shape[0]).astype(A.dtype)
            y = space.xp.empty_like(x)
            matrix.apply(x, y)
        expected = A @ space.to_host(x)
        error = abs(space.to_host(y) - expected).max() / abs(expected).max()
        print(f"{name}: {microseconds(space, lambda: matrix.apply(x, y)):.1f} µs, {matrix.product_bytes / 1e6:.1f} MB, "
              f"error {error:.0e}")
