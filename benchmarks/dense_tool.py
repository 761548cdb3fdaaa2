"""Dense LU as a tool: mixed precision against double, condition estimates, transposed solves, 64-bit getrf, and BDDC's
dense solvers. One pass checks and times all of it.

    python benchmarks/dense_tool.py [cpu | cuda] [rows of the 64-bit matrix; 0: none]

Standard normal entries; best of 3, ms. On a GPU the 64-bit matrix is in single precision, since 46 400 rows in double
precision, with the copies of a decomposition, take 86 GB.
"""
import sys
import time

import numpy as np

from swell import dense
from swell.core.devices import make_space
from swell.pde.poisson_cube import PoissonCube

DEVICE = sys.argv[1] if len(sys.argv) > 1 else "cpu"
LARGE = int(sys.argv[2]) if len(sys.argv) > 2 else {"cpu": 0, "cuda": 46400}[DEVICE]
SIZES = {"cpu": (500, 1000, 2000), "cuda": (1024, 4096, 10240)}[DEVICE]
space = make_space(DEVICE)
xp = space.xp


def best(call, repeat=3):
    """(result, ms) of the fastest call."""
    times = []
    for _ in range(repeat + 1):                  # the first one compiles
        space.synchronize()
        start = time.perf_counter()
        result = call()
        space.synchronize()
        times.append(1e3 * (time.perf_counter() - start))
    return result, min(times[1:] or times)


def random(n, kind=np.float64):
    A = np.random.default_rng(0).standard_normal((n, n), np.float32 if kind == np.float32 else np.float64)
    return space.from_host(A.astype(kind))


with space.active():                             # arrays and calls on one stream
    print("mixed precision: rows, getrf double, getrf single, solve of one column: double, mixed (steps), backward errors")
    for n in SIZES:
        A, b = random(n), space.from_host(np.ones(n))
        low = A.astype(np.float32)
        _, double = best(lambda: dense.Getrf().factor(A))
        _, single = best(lambda: dense.Getrf().factor(low))
        plain, whole = best(lambda: dense.solve(A, b, mixed=False))
        mixed, refined = best(lambda: dense.solve(A, b))
        print(f"{n:6d} {double:9.2f} {single:9.2f} {whole:9.2f} {refined:9.2f} ({mixed.steps}) {plain.backward_error:.1e} "
              f"{mixed.backward_error:.1e} {mixed.notes}", flush=True)

    print("complex: rows, double, mixed (steps)")
    n = SIZES[1]
    A = random(n) + 1j * random(n)[::-1]
    b = space.from_host(np.ones(n, complex))
    _, whole = best(lambda: dense.solve(A, b, mixed=False))
    mixed, refined = best(lambda: dense.solve(A, b))
    print(f"{n:6d} {whole:9.2f} {refined:9.2f} ({mixed.steps})", flush=True)

    print("condition number κ: what mixed precision does at 1000 rows: κ, estimate / true, steps, backward error, notes")
    Q = [np.linalg.qr(np.random.default_rng(k).standard_normal((1000, 1000)))[0] for k in (0, 1)]
    for kappa in (1e2, 1e4, 1e6, 1e7, 1e8, 1e10, 1e13):
        host = (Q[0] * np.logspace(0, -np.log10(kappa), 1000)) @ Q[1]
        A, b = space.from_host(host), space.from_host(np.ones(1000))
        found = dense.solve(A, b)
        estimate = dense.Getrf().factor(A).condition() / np.linalg.cond(host, 1)
        print(f"{kappa:8.0e} {estimate:6.2f} {found.steps:3d} {found.backward_error:.1e} "
              f"{'double factors' if found.factors.dtype == np.float64 else ''}", flush=True)

    print("rows: condition(), slogdet, inverse; one column by trsm N, T, C, getrs, is")
    for n in SIZES:
        A, b = random(n), space.from_host(np.ones((n, 1)))
        doolittle, crout = dense.Getrf().factor(A), dense.PCM().factor(A)
        times = [best(call)[1] for call in (
            doolittle.condition, doolittle.slogdet, doolittle.inverse, *(
                lambda t=t: doolittle.solve(b, trans=t) for t in "NTC"), lambda: doolittle.solve(b, "getrs"),
            lambda: crout.solve(b, "is"))]
        errors = [float(abs(op @ doolittle.solve(b, trans=t) - b).max()) for t, op in (("N", A), ("T", A.T), ("C", A.T))]
        print(f"{n:6d} " + " ".join(f"{t:8.2f}" for t in times), f"residuals {max(errors):.1e}", flush=True)

    if DEVICE == "cuda":
        from cupy.cuda import device
        from cupy_backends.cuda.libs import cusolver
        from swell.dense import cusolver as wide
        print("cuSOLVER alone: rows, 32-bit dgetrf, 64-bit Xgetrf, ms")
        for n in SIZES:
            A, pivots, info = random(n), xp.empty(n, np.int32), xp.empty(1, np.int32)
            handle = device.get_cusolver_handle()
            scratch = xp.empty(cusolver.dgetrf_bufferSize(handle, n, n, A.data.ptr, n))
            old = best(lambda: (lambda M: cusolver.dgetrf(handle, n, n, M.data.ptr, n, scratch.data.ptr, pivots.data.ptr,
                                                          info.data.ptr))(A.copy()))[1]
            new = best(lambda: wide.getrf(A.copy().reshape(1, -1), pivots.reshape(1, -1)))[1]
            print(f"{n:6d} {old:9.2f} {new:9.2f}", flush=True)

    if LARGE:
        print(f"64-bit: {LARGE} rows, {LARGE**2 / 2**31:.3f} times 2³¹ entries, single precision")
        A = xp.empty((LARGE, LARGE), np.float32)
        for first in range(0, LARGE, 4096):
            A[first:first + 4096] = xp.random.default_rng(first).standard_normal(A[first:first + 4096].shape, np.float32)
        b = xp.ones(LARGE, np.float32)
        factors, ms = best(lambda: dense.Getrf().factor(A), 0)
        for solver in ("trsm", "getrs"):
            for trans in "NT":
                x, once = best(lambda s=solver, t=trans: factors.solve(b, s, t), 0)
                r = abs((A if trans == "N" else A.T) @ x - b).max()
                size = float(abs(A[:1000]).sum(axis=1).max()) * float(abs(x).max())
                print(f"  getrf {ms:.0f} ms, {solver} {trans} {once:.0f} ms, backward error about {float(r) / size:.1e}",
                      flush=True)
        del A, factors

    m, s = {"cpu": (8, 4), "cuda": (25, 4)}[DEVICE]
    print(f"BDDC, {s}³ subdomains of {m}³ elements: dense_lu, dense_solver: iterations; decomposers, setup, Krylov s; MB")
    system = PoissonCube(m, s).assemble(DEVICE)
    b = np.random.default_rng(1).standard_normal(system.cube.n)
    b = space.from_host(b)
    for lu, solver in (("getrf", "inverse"), ("getrf", "trsm"), ("getrf", "getrs"), ("icm(x=32)", "inverse"),
                       ("icm(x=32)", "trsm"), ("icm(x=32)", "is"), ("icm(x=32, tolerance=1e-6)", "trsm"), ("icm(x=32, tolerance=1e-2)", "trsm"),
                       ("icm(x=32, tolerance=1)", "trsm")):
        for _ in range(2):                           # the first one compiles
            r = system.solve(dense_lu=lu, dense_solver=solver, b=b)
        t = r.timings
        print(f"{lu:26s} {solver:8s} {r.result.iterations:3d} {t['decomposers']:7.3f} {t['setup']:7.2f} {t['krylov']:7.3f} "
              f"{r.bddc.nbytes >> 20:6d} λ {r.extremes[0]:.4f} {r.extremes[1]:.4f}; {len(r.bddc.notes)} notes", flush=True)
