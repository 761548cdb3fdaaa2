"""What a solve inside a JAX program costs beside the same solve by swell alone, in one process.

    python benchmarks/jax_solve.py [--device cuda] [--sides 100 316] [--repeat 25] [--clock cpu]

Poisson's equation on a square, cg with amg, rtol 1e-8, double precision. swell alone has a prepared Solver and arrays of
NumPy or CuPy. Each line of swell is followed by the lines of JAX that do the same solves. All alternate in random
order. The table has the median, the least, and the difference of the least times to the line of swell. On a machine with
other work to do take CPU seconds.
"""
from __future__ import annotations

import argparse
import random
import statistics
import time

import jax
import numpy as np
from jax.experimental.sparse import BCSR

import swell

OPTIONS = {"method": "cg", "precond": "amg", "rtol": 1e-8}


def variants(side, device):
    """Return {name: (the line of swell to compare with, a function that does the solve and waits)}."""
    A = swell.gallery.poisson2d(side).tocsr()
    b = np.random.default_rng(0).standard_normal(A.shape[0])
    place = jax.devices("gpu" if device == "cuda" else "cpu")[0]
    put = lambda array: jax.device_put(array, place)
    B = BCSR((put(A.data), put(A.indices), put(A.indptr)), shape=A.shape)
    values, rhs = [B.data, put(1.5 * A.data)], put(b)
    matrices, own = [A, 1.5 * A], b
    if device == "cuda":
        import cupy
        from cupyx.scipy.sparse import csr_matrix
        matrices, own = [csr_matrix(M) for M in matrices], cupy.asarray(b)
    s, f = swell.prepare(matrices[0], **OPTIONS), swell.jax.prepare(B, **OPTIONS)
    updated, jitted, fresh = swell.prepare(matrices[0], **OPTIONS), jax.jit(f), jax.jit(swell.jax.prepare(B, **OPTIONS))
    both = jax.jit(jax.value_and_grad(lambda v, b: (f(v, b) ** 2).sum(), argnums=(0, 1)))
    turn = {"swell": 0, "jax": 0}

    def other(who):
        turn[who] ^= 1
        return turn[who]

    def twice():
        s.solve(own)
        s.solve(own, adjoint=True)

    wait = jax.block_until_ready
    return {
        "swell: s.solve(b)": (None, lambda: s.solve(own)),
        "jit(f)(values, b)": ("swell: s.solve(b)", lambda: wait(jitted(values[0], rhs))),
        "f(values, b) without jit": ("swell: s.solve(b)", lambda: wait(f(values[0], rhs))),
        "swell.jax.solve(A, b) without jit": ("swell: s.solve(b)", lambda: wait(swell.jax.solve(B, rhs, **OPTIONS))),
        "swell: s.update(A), s.solve(b)": (None, lambda: updated.update(matrices[other("swell")]).solve(own)),
        "jit(f)(new values, b)": ("swell: s.update(A), s.solve(b)", lambda: wait(fresh(values[other("jax")], rhs))),
        "swell: s.solve(b), s.solve(b, adjoint=True)": (None, twice),
        "jit(value_and_grad(loss))(values, b)": ("swell: s.solve(b), s.solve(b, adjoint=True)",
                                                 lambda: wait(both(values[0], rhs)))}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--sides", type=int, nargs="+", default=[100, 316])
    parser.add_argument("--repeat", type=int, default=25)
    parser.add_argument("--clock", default="wall", choices=["wall", "cpu"])
    options = parser.parse_args()
    clock = time.perf_counter if options.clock == "wall" else time.process_time
    jax.config.update("jax_enable_x64", True)
    swell.quiet()
    for side in options.sides:
        made = variants(side, options.device)
        for _, work in made.values():
            work(), work(), work()
        seconds = {name: [] for name in made}
        for _ in range(options.repeat):
            for name in random.sample(list(made), len(made)):
                start = clock()
                made[name][1]()
                seconds[name].append(clock() - start)
        print(f"\nn = {side * side}, {options.device}, JAX {jax.__version__}, {options.repeat} runs, {options.clock} time\n\n"
              "| | median, ms | least, ms | over swell, ms |\n|---|---|---|---|")
        for name, (beside, _) in made.items():
            least = min(seconds[name])
            over = "" if beside is None else f"{1e3 * (least - min(seconds[beside])):.2f}"
            print(f"| {name} | {1e3 * statistics.median(seconds[name]):.2f} | {1e3 * least:.2f} | {over} |")


if __name__ == "__main__":
    main()
