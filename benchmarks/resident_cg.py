"""The resident CG on a GPU beside cg: set-up, time of an iteration, whole solves to 1e-8.

    python benchmarks/resident_cg.py [--steps 64,128,256] [--dtype float64] [thermal2~ ecology2~ grid:100 box:64 ...]
    python benchmarks/resident_cg.py --halos 132 [thermal2~ ...]       without a GPU: what the orderings make of the parts

Jacobi scaling, a right-hand side of ones on the device. An iteration is the difference of two solves (512 and 256
iterations), a median of five; set-up is that of the second of two preparations, so compiled, and its parts; the
bisection is timed by itself, the second time. grid:m and box:m are Poisson's equation on m² and m³ points.
"""
from __future__ import annotations

import argparse
import functools
import time

import numpy as np
import scipy.sparse as sp

import swell
from swell import api, gallery
from swell.bench import engine
from swell.core.errors import DoesNotFit
from swell.core.registry import resolve
from swell.core.devices import make_space
from swell.core.stopping import Stopping
from swell.formats.csr import CSRMatrix
from swell.orderings.bisection import Bisection

COUNT, REPEAT = 512, 5
say = functools.partial(print, flush=True)


def matrix(name, dtype):
    """A gallery matrix, or a grid or box with an uneven diagonal."""
    kind, _, size = name.partition(":")
    if kind not in ("grid", "box"):
        return sp.csr_array(gallery.get(name)).astype(dtype)
    A = (gallery.poisson2d if kind == "grid" else gallery.poisson3d)(int(size))
    return sp.csr_array(A + sp.diags_array(np.random.default_rng(0).random(A.shape[0]))).astype(dtype)


def halos(name, A, parts):
    """Rows of other parts that a part needs, and the largest share of the entries, for equal parts of each ordering."""
    n, A = A.shape[0], sp.csr_array(A).sorted_indices()
    csr = CSRMatrix.from_scipy(A, make_space("cpu"))
    row, place = np.repeat(np.arange(n), np.diff(A.indptr)), np.empty(n, np.int64)
    for label, order in (("natural", np.arange(n)), ("rcm", resolve("ordering", "rcm").order(csr)),
                         ("bisection", Bisection(parts).order(csr))):
        place[order] = np.arange(n)
        part = place * parts // n
        out = part[row] != part[A.indices]
        halo = np.bincount(np.unique(part[row[out]] * n + A.indices[out]) // n, minlength=parts)
        share = np.bincount(part, np.diff(A.indptr)).max() * parts / A.nnz
        say(f"{name}: {n} rows, {label}: {parts} parts of {n // parts}, halo {halo.mean():.0f}, at most {halo.max()}, "
            f"entries of the largest part {share:.3f} of the mean")


def bisection_seconds(space, A):
    """Of the second of two."""
    with space.active():
        csr = CSRMatrix.from_scipy(sp.csr_array(A).sorted_indices(), space)
        for _ in range(2):
            space.synchronize()
            start = time.perf_counter()
            Bisection(space.multiprocessors).order(csr)
            space.synchronize()
    return time.perf_counter() - start


def _prepare(A, method, b, stopping):
    return api.prepare(A, method=resolve("method", method), scaling=resolve("scaling", "jacobi"), device="cuda",
                       stopping=stopping, b_like=b)


def measure(space, name, A, steps):
    with space.active():
        b = space.from_host(np.ones(A.shape[0], A.dtype))
    say(f"{name}: {A.shape[0]} rows, {A.nnz} entries, {A.dtype}; bisection {1e3 * bisection_seconds(space, A):.1f} ms")
    for method in ("cg", *(f"resident_cg(steps={s})" for s in steps)):
        prepare = functools.partial(_prepare, A, method, b)
        try:
            seconds, _ = engine.seconds_an_iteration(prepare, b, COUNT, REPEAT)
        except DoesNotFit as error:
            say(f"  {method}: {error}")
            continue
        rtol = 1e-8 if A.dtype == np.float64 else 1e-4
        solver = prepare(Stopping(rtol=rtol))
        solver.solve(b)
        r = solver.solve(b)
        parts = " ".join(f"{k} {1e3 * v:.1f}" for k, v in r.timings.items() if k != "solve")
        residual = np.linalg.norm(np.ones(A.shape[0]) - A @ space.to_host(r.x)) / np.sqrt(A.shape[0])
        say(f"  {method}: {1e6 * seconds:.2f} µs an iteration; to {rtol:g} {r.reason.name} {r.iterations} iterations "
            f"{1e3 * r.timings['solve']:.1f} ms, true residual {residual:.1e}; ms: {parts}")
        if method != "cg":
            M = solver._prepared[0].setup.matrix
            say(f"    {M.describe()}; {M.data.nbytes / 1e6:.1f} MB, {M.streamed_bytes / 1e6:.1f} an iteration; chunk "
                f" {M.chunk} ring {M.ring} kept {M.kept} slots {M.slots} shared {M.shared_bytes}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="resident CG")
    parser.add_argument("--steps", default="128")
    parser.add_argument("--dtype", default="float64")
    parser.add_argument("--halos", type=int, metavar="PARTS")
    parser.add_argument("matrices", nargs="*", default=["ecology2~", "parabolic_fem~", "thermal2~"])
    arguments = parser.parse_args()
    if not arguments.halos:
        device = make_space("cuda")
        say(f"{device.describe()}, swell {swell.__version__}")
    for each in arguments.matrices:
        if arguments.halos:
            halos(each, matrix(each, arguments.dtype), arguments.halos)
        else:
            measure(device, each, matrix(each, arguments.dtype), arguments.steps.split(","))
