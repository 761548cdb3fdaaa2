"""Block-sparse systems on a GPU: products and block sweeps beside their floors, and GMRES(30) with ILU(0).

    python benchmarks/block_on_gpu.py

Floors are the bytes that must move (matrix, vectors) over the speed of a copy, measured first. Products and
applications are replayed from CUDA graphs (medians); setups and solves are wall times of the second of two. The
right-hand side is A times random numbers.
"""
from __future__ import annotations

import argparse

import numpy as np
from ic0_on_gpu import replayed, second

import swell
from swell import gallery
from swell.bench.engine import Meter
from swell.core.registry import resolve
from swell.core.devices import make_space
from swell.formats.csr import CSRMatrix

RTOL = 1e-8
SWEEPS = (1, 2, 3, 4, 5, 6, 8)
SOLVES = ("exact(schedule='levels')", "exact(schedule='sync_free')", *(f"sweeps(count={k})" for k in SWEEPS))


def products(space, speed, size, points):
    """Formats of one system with blocks of ``size``."""
    A = gallery.coupled_transport(points, components=size)
    with space.active():
        csr = CSRMatrix.from_scipy(A, space)
        x = space.xp.random.RandomState(7).random_sample(A.shape[0])
        y, dots = space.xp.empty_like(x), space.empty(2, np.float64)
    print(f"blocks of {size}: {A.shape[0]} rows, {A.nnz} entries")
    for name in ("csr", "sell", f"bsr(block={size})", f"block_sell(block={size})"):
        with space.active():
            matrix = resolve("format", name).build(csr)
            matrix.apply(x, y)
            error = abs(space.to_host(y) - A @ space.to_host(x)).max()
        plain = replayed(space, lambda matrix=matrix: matrix.apply(x, y), 20)
        fused = replayed(space, lambda matrix=matrix: matrix.apply_dots(x, y, x, dots), 20)
        floor = (matrix.matrix_bytes + 2 * x.nbytes) / speed
        print(f"  {name}: {plain:.1f} µs, floor {floor:.1f} (times {plain / floor:.2f}); with inner products "
              f"{fused:.1f}; largest error {error:.0e}", flush=True)


def block_sweeps(space, speed, size, points):
    """Block ILU(0) solved by three sweeps: time beside its bytes, memory beside A's blocks."""
    A = gallery.coupled_transport(points, components=size)
    n, strict = A.shape[0], (A.nnz - A.shape[0] * size) / 2
    with space.active():
        csr = CSRMatrix.from_scipy(A, space)
        x = space.xp.random.RandomState(7).random_sample(n)
        y = space.xp.empty_like(x)
    took, M = second(space, lambda: resolve("precond", f"ilu(block={size}, solve='sweeps(count=3)')").build(csr))
    each = replayed(space, lambda: M.apply(x, y))
    floor = (4 * ((8 + 4 / size**2) * strict + 24 * n) + 8 * size * n) / speed
    print(f"  block ILU(0), 3 sweeps: setup {took / 1e3:.1f} ms, application {each:.1f} µs, floor {floor:.1f} "
          f"(times {each / floor:.2f}), memory {M.nbytes / (8 * A.nnz):.2f} of A's blocks", flush=True)


def sweep_floor(triangles, count, speed) -> float:
    """µs that the bytes of ``count`` sweeps with each triangle take: 12 an entry, 36 a row, the first sweep free."""
    return sum((count - 1) * (12 * entries + 36 * n) if count > 1 else 24 * n for n, entries in triangles) / speed


def preconditioned(space, speed, name):
    """GMRES(30) and BiCGSTAB with ILU(0)."""
    A = gallery.get(name)
    with space.active():
        csr = CSRMatrix.from_scipy(A, space)
        x = space.xp.random.RandomState(7).random_sample(A.shape[0])
        y, b = space.xp.empty_like(x), space.xp.empty_like(x)
        csr.apply(x, b)
    n, strict = A.shape[0], (A.nnz - A.shape[0]) // 2
    print(f"{name}: {n} rows, {A.nnz} entries")
    texts = ["none", *(f'ilu0(solve="{solve}")' for solve in SOLVES)]
    for text in texts:
        if text != "none":
            took, M = second(space, lambda text=text: resolve("precond", text).build(csr))
            each = replayed(space, lambda M=M: M.apply(x, y))
            count = int(text.split("count=")[1].split(")")[0]) if "count" in text else 0
            floor = sweep_floor([(n, strict), (n, strict)], count, speed) if count else (12 * A.nnz + 72 * n) / speed
            print(f"  {text}: setup {took / 1e3:.1f} ms, application {each:.1f} µs, floor {floor:.1f} "
                  f"(times {each / floor:.2f})", flush=True)
        for method in ("gmres(restart=30)", "bicgstab"):
            solver = swell.prepare(A, method=method, precond=text, rtol=RTOL, device="cuda", maxiter=3000)
            solver.solve(b)
            result = solver.solve(b)
            seconds = result.timings["solve"]
            print(f"    {method}: {result.iterations} iterations, {result.reason.name}, residual {result.residual:.1e}, "
                  f"setup {1e3 * result.timings['setup']:.1f} ms, solve {1e3 * seconds:.1f} ms, "
                  f"{1e6 * seconds / max(result.iterations, 1):.1f} µs an iteration", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--sizes", type=int, nargs="*", default=[2, 3, 4, 5, 8])
    parser.add_argument("--points", type=int, default=64)
    parser.add_argument("--matrices", nargs="*", default=["atmosmodd~"])
    arguments = parser.parse_args()
    space = make_space("cuda")
    with space.active():
        speed = Meter(space).copy_speed / 1e6              # bytes a µs
    print(f"{space.describe()}, copy {speed / 1e6:.2f} TB/s")
    for size in arguments.sizes:
        products(space, speed, size, (arguments.points,) * 3)
        block_sweeps(space, speed, size, (arguments.points,) * 3)
    for name in arguments.matrices:
        preconditioned(space, speed, name)


if __name__ == "__main__":
    main()
