"""What a batch of small systems costs, beside batched dense LU of other libraries.

    python benchmarks/batches.py --device cuda [--copies 1000] [--grids 10000] [--side 10] [--repeat 9] [--json FILE]

Two batches in double: gri30 of combustion chemistry (n = 54, 90 systems repeated ``--copies`` times) to 1e-10, and
``--grids`` systems of Poisson's equation on ``--side``³ points (7 entries a row), each with its own factor and shift,
to 1e-8. Everything lies on the device before a time is taken. A time is the median of ``--repeat`` calls after two that
do not count; "kernel" is the time between two events around swell's launch. A dense peer that would need more than
``--gib`` GiB gets the first systems only, and the table says how many. The floor of a system is bytes (values, b and x
once) over the copy speed measured in this run; the line above a table has the flops of one LU beside it. A library that
is missing is a line, not an error.
"""
from __future__ import annotations

import argparse
import importlib
import json
import math
import pathlib
import statistics
import time

import numpy as np
import scipy.sparse as sp

import swell

GRI30 = pathlib.Path(__file__).parents[2] / "shared" / "data" / "matrices" / "batch_gri30.npz"
PEAKS = {"H200": 34e12, "H100": 34e12, "A100": 9.7e12}           # flops a second in double, without tensor cores
PUBLISHED = ("published: Ginkgo's batched solvers on the PeleLM inputs (gri30 is one of them): an Intel Max 1550 is 2.4 "
             "times as fast as an H100 on average (arXiv 2308.08417)")


class Device:
    """Where the arrays lie: NumPy, or CuPy with events."""

    def __init__(self, name):
        self.name = name
        self.xp = np if name == "cpu" else importlib.import_module("cupy")
        self.peak = 0.0
        self.label = "cpu"
        if name != "cpu":
            found = self.xp.cuda.runtime.getDeviceProperties(0)["name"]
            self.label = found.decode() if isinstance(found, bytes) else str(found)
            self.peak = next((peak for part, peak in PEAKS.items() if part in self.label), 0.0)

    def wait(self):
        """Wait for the device."""
        if self.name != "cpu":
            self.xp.cuda.runtime.deviceSynchronize()

    def seconds(self, call, repeat):
        """(median seconds of ``repeat`` calls after two that do not count, the last result)."""
        times = []
        for _ in range(repeat + 2):
            self.wait()
            start = time.perf_counter()
            found = call()
            self.wait()
            times.append(time.perf_counter() - start)
        return statistics.median(times[2:]), found

    def kernel_seconds(self, solver, rhs, repeat):
        """Median seconds between two events around the launch of a BatchSolver; NaN on a CPU."""
        if self.name == "cpu":
            return float("nan")
        cuda, times, launch = self.xp.cuda, [], solver._launch

        def timed(*given):
            begin, end = cuda.Event(), cuda.Event()
            begin.record(solver.space.stream)
            found = launch(*given)
            end.record(solver.space.stream)
            end.synchronize()
            times.append(1e-3 * cuda.get_elapsed_time(begin, end))
            return found
        solver._launch = timed
        try:
            for _ in range(repeat + 2):
                solver.solve(rhs)
        finally:
            del solver._launch
        return statistics.median(times[2:])

    def copy_speed(self, mib):
        """Bytes a second of a copy, read plus write."""
        source = self.xp.zeros(mib << 17)
        target = self.xp.empty_like(source)
        seconds, _ = self.seconds(lambda: self.xp.copyto(target, source), 5)
        return 2 * source.nbytes / seconds


class Batch:
    """One pattern, values and right-hand sides on the device."""

    def __init__(self, title, A, values, B, rtol, choices, device):
        self.title, self.A, self.rtol, self.choices, self.device = title, A, rtol, choices, device
        self.values, self.B = device.xp.asarray(values), device.xp.asarray(B)
        self.batch, self.n = self.B.shape
        self.bytes = 8 * (A.nnz + 2 * self.n)                    # of a system: values, b and x
        self.flops = 2 / 3 * self.n**3 + 2 * self.n**2           # of an LU

    def dense(self, count):
        """The first ``count`` matrices as a dense array on the device."""
        xp, n = self.device.xp, self.n
        places = xp.asarray(np.repeat(np.arange(n), np.diff(self.A.indptr)) * n + self.A.indices)
        full = xp.zeros((count, n * n))
        full[:, places] = self.values[:count]
        return full.reshape(count, n, n)

    def residual(self, x):
        """The largest relative residual of some systems, computed on the host."""
        host = np.asarray(x.get() if hasattr(x, "get") else x)
        worst = 0.0
        for s in np.unique(np.linspace(0, len(host) - 1, 50).astype(int)):
            v, b = (part[s].get() if hasattr(part, "get") else part[s] for part in (self.values, self.B))
            M = sp.csr_array((v, self.A.indices, self.A.indptr), shape=self.A.shape)
            worst = max(worst, np.linalg.norm(b - M @ host[s]) / np.linalg.norm(b))
        return float(worst)


def gri30(device, copies, path):
    """The batch of combustion chemistry; random diagonally dominant systems take its place if the file is missing."""
    choices = [("lu", None), ("bicgstab", "jacobi"), ("gmres(restart=10)", "jacobi"), ("bicgstab", "ilu0"), (None, None)]
    if path.exists():
        given = np.load(path)
        A = sp.csr_array((given["values"][0], given["indices"], given["indptr"]), shape=(54, 54))
        values, B, title = given["values"], given["b"], "gri30"
    else:
        print(f"{path} is not there: random systems of 54 unknowns take its place")
        rng = np.random.default_rng(1)
        M = (rng.random((54, 54)) < 0.88) | np.eye(54, dtype=bool)
        A, title = sp.csr_array(M.astype(float)), "random54"
        values, B = rng.standard_normal((90, A.nnz)), rng.standard_normal((90, 54))
        values[:, A.indices == np.repeat(np.arange(54), np.diff(A.indptr))] += 60
    few = max(int(90 * copies), 1)
    repeat = -(-few // 90)
    values, B = (device.xp.tile(device.xp.asarray(part), (repeat, 1))[:few] for part in (values, B))
    return Batch(f"{title} x {few}", A, values, B, 1e-10, choices, device)


def grids(device, count, side):
    """Poisson's equation on side³ points, a factor and a shift for each system."""
    A, rng = sp.csr_array(swell.gallery.poisson3d(side)), np.random.default_rng(2)
    xp, n = device.xp, A.shape[0]
    on_diagonal = np.flatnonzero(A.indices == np.repeat(np.arange(n), np.diff(A.indptr)))
    values = xp.asarray(A.data)[None] * xp.asarray(rng.uniform(1, 2, (count, 1)))
    values[:, xp.asarray(on_diagonal)] += xp.asarray(rng.uniform(0, 0.1, (count, 1)))
    choices = [("cg", "jacobi"), ("cg", None), ("bicgstab", "jacobi"), ("bicgstab", "ilu0"), (None, None)]
    return Batch(f"poisson {side}^3 x {count}", A, values, rng.standard_normal((count, n)), 1e-8, choices, device)


def own(batch, method, precond, repeat):
    """swell with one choice: (name, systems, seconds, kernel seconds, x, the iterations in words)."""
    solver = swell.prepare_batch(batch.A, batch.values, method=method, precond=precond, rtol=batch.rtol,
                                 device=batch.device.name)
    seconds, r = batch.device.seconds(lambda: solver.solve(batch.B), repeat)
    kernel = batch.device.kernel_seconds(solver, batch.B, repeat)
    name = " ".join(["swell", r.method, *([r.precond] * (r.precond != "none")), *(["(chosen)"] * (method is None))])
    counts = f"{int(r.converged.sum())}/{len(r)} converged, iterations {r.iterations.min()} to {r.iterations.max()}"
    return name, batch.batch, seconds, kernel, r.x, counts


def dense_peer(batch, library, gib, repeat):
    """Batched dense LU of NumPy, CuPy or torch, matrices built beforehand."""
    count = max(min(batch.batch, int(gib * 2**30 / (8 * batch.n**2))), 1)
    full, rhs = batch.dense(count), batch.B[:count, :, None]
    if library == "torch":
        import torch
        full, rhs = torch.from_dlpack(full), torch.from_dlpack(batch.device.xp.ascontiguousarray(rhs))
        seconds, x = batch.device.seconds(lambda: torch.linalg.solve(full, rhs), repeat)
        x = batch.device.xp.from_dlpack(x.contiguous())
    else:
        seconds, x = batch.device.seconds(lambda: batch.device.xp.linalg.solve(full, rhs), repeat)
    return f"{library} linalg.solve", count, seconds, float("nan"), x[..., 0], ""


def torch_sla(batch, repeat):
    """torch-sla on the batch as one SparseTensor."""
    import torch
    from torch_sla import SparseTensor
    rows = np.repeat(np.arange(batch.n), np.diff(batch.A.indptr))
    xp, count = batch.device.xp, min(batch.batch, 1000)
    values, rhs, row, column = (torch.from_dlpack(xp.ascontiguousarray(xp.asarray(part))) for part in (
        batch.values[:count], batch.B[:count], rows.astype(np.int64), batch.A.indices.astype(np.int64)))
    A = SparseTensor(values, row, column, (count, batch.n, batch.n))
    seconds, x = batch.device.seconds(lambda: A.solve(rhs), max(repeat // 3, 1))
    return "torch-sla", count, seconds, float("nan"), xp.from_dlpack(x.contiguous()), ""


def one_by_one(batch, repeat):
    """SciPy's SuperLU, a Python loop over a few systems."""
    count = min(batch.batch, 50)
    values = np.asarray(batch.values[:count].get() if hasattr(batch.values, "get") else batch.values[:count])
    rhs = np.asarray(batch.B[:count].get() if hasattr(batch.B, "get") else batch.B[:count])
    matrices = [sp.csc_array(sp.csr_array((v, batch.A.indices, batch.A.indptr), shape=batch.A.shape)) for v in values]
    start = time.perf_counter()
    x = np.array([sp.linalg.splu(M).solve(b) for M, b in zip(matrices, rhs)])
    return "scipy splu, one by one", count, time.perf_counter() - start, float("nan"), x, ""


def attempts(batch, gib, repeat):
    """Every contestant, as a name and a call."""
    for method, precond in batch.choices:
        yield f"swell {method} {precond}", lambda m=method, p=precond: own(batch, m, p, repeat)
    library = "numpy" if batch.device.name == "cpu" else "cupy"
    yield library, lambda: dense_peer(batch, library, gib, max(repeat // 3, 1))
    yield "torch", lambda: dense_peer(batch, "torch", gib, max(repeat // 3, 1))
    yield "torch-sla", lambda: torch_sla(batch, repeat)
    yield "scipy", lambda: one_by_one(batch, repeat)


def measure(batch, speed, gib, repeat):
    """Print the table of one batch; return its rows."""
    peak = batch.device.peak
    floor = batch.bytes / speed
    print(f"\n{batch.title}: n = {batch.n}, {batch.A.nnz} entries, {batch.bytes} bytes and {batch.flops:.3g} flops of LU a "
          f"system; floor {1e6 * floor:.4f} µs by bytes at {speed / 1e12:.2f} TB/s"
          + (f"; the flops of LU alone take {1e6 * batch.flops / peak:.4f} µs at {peak / 1e12:.0f} TFlop/s" if peak else ""))
    print(f"  {'':28} {'systems':>8} {'call ms':>10} {'kernel ms':>10} {'µs a system':>12} {'of floor':>9} {'residual':>9}",
          flush=True)
    rows = []
    for name, call in attempts(batch, gib, repeat):
        start = time.perf_counter()
        try:
            name, count, seconds, kernel, x, words = call()
            best = seconds if math.isnan(kernel) else kernel
            worst = batch.residual(x)
            print(f"  {name:28} {count:8} {1e3 * seconds:10.3f} {1e3 * kernel:10.3f} {1e6 * best / count:12.4f} "
                  f"{floor * count / best:9.3f} {worst:9.1e}  {words}", flush=True)
            rows.append({"batch": batch.title, "name": name, "systems": count, "seconds": seconds, "kernel": kernel,
                         "floor": floor * count, "residual": worst, "words": words})
        except ImportError as error:
            print(f"  {name:28} skipped: {error}", flush=True)
        except Exception as error:  # noqa: BLE001   a contestant that fails must not end the others
            print(f"  {name:28} failed after {time.perf_counter() - start:.1f} s: {type(error).__name__}: "
                  f"{str(error)[:300]}", flush=True)
        if batch.device.name != "cpu":
            batch.device.xp.get_default_memory_pool().free_all_blocks()
    return rows


def main():
    """Run both batches."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--copies", type=float, help="of the 90 systems; by default 1000, on a CPU 20")
    parser.add_argument("--grids", type=int, help="by default 10000, on a CPU 200")
    parser.add_argument("--side", type=int, default=10)
    parser.add_argument("--repeat", type=int, default=9)
    parser.add_argument("--gib", type=float, help="of a dense peer's matrices; by default 4, on a CPU 0.25")
    parser.add_argument("--file", type=pathlib.Path, default=GRI30)
    parser.add_argument("--json", type=pathlib.Path)
    given = parser.parse_args()
    device, on_gpu = Device(given.device), given.device == "cuda"
    begin = time.perf_counter()
    speed = device.copy_speed(1024 if on_gpu and device.peak else 64)
    print(f"{device.label}; swell {swell.__version__}; copy {speed / 1e12:.3f} TB/s\n{PUBLISHED}")
    gib = given.gib if given.gib is not None else 4.0 if on_gpu else 0.25
    rows = []
    copies = given.copies if given.copies is not None else 1000 if on_gpu else 20
    count = given.grids if given.grids is not None else 10_000 if on_gpu else 200
    for make in (lambda: gri30(device, copies, given.file), lambda: grids(device, count, given.side)):
        batch = make()
        rows += measure(batch, speed, gib, given.repeat)
        del batch
    print(f"\nall of it took {time.perf_counter() - begin:.0f} s")
    if given.json:
        given.json.write_text(json.dumps({"device": device.label, "copy": speed, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
