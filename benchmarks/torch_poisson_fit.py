"""Fit the coefficients of a Poisson problem by gradients: swell.torch beside torch-sla and dense autograd.

    python benchmarks/torch_poisson_fit.py                     # 316 × 316 cells, 50 steps, CPU
    python benchmarks/torch_poisson_fit.py --device cuda

−∇·(k ∇u) = f on a square of cells, u = 0 on the boundary. Each cell has a parameter log k, and u is observed. A step of
Adam assembles the values of A by torch, solves, and takes the gradient of ‖u − u_observed‖² by a backward pass. Every
contestant runs in a process of its own, so that its peak memory is its own. Dense autograd runs at a size that fits.
"""
from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import threading
import time

import torch

RTOL = 1e-8
CONTESTANTS = {
    "swell": "swell.torch, swell's choice, prepared once",
    "swell_kept": "swell.torch, cg with AMG, prepared once, the hierarchy kept",
    "swell_once": "swell.torch.solve at each step",
    "sla": "torch-sla, its choice",
    "sla_cg": "torch-sla, cg with Jacobi (backend pytorch)",
    "dense": "torch.linalg.solve, dense",
}


class Problem:
    """The cells of a square: A's pattern, and its values for log k."""

    def __init__(self, side, device):
        self.n, self.device = side * side, device
        cell = torch.arange(self.n, device=device).reshape(side, side)
        pairs = [(cell[:, :-1], cell[:, 1:]), (cell[:-1], cell[1:])]
        one, other = (torch.cat([pair[k].reshape(-1) for pair in pairs]) for k in (0, 1))
        self.one, self.other = one, other
        sides = cell[0], cell[-1], cell[:, 0], cell[:, -1]
        self.edges = sum(torch.bincount(line, minlength=self.n) for line in sides)
        rows, cols = torch.cat([one, other, cell.reshape(-1)]), torch.cat([other, one, cell.reshape(-1)])
        order = torch.argsort(rows * self.n + cols)
        self.order, self.rows, self.cols = order, rows[order], cols[order]
        self.crow = torch.searchsorted(self.rows, torch.arange(self.n + 1, device=device))
        x, y = torch.meshgrid(*[torch.linspace(0, 1, side, dtype=torch.float64, device=device)] * 2, indexing="ij")
        self.truth = (torch.sin(6 * x) * torch.cos(4 * y)).reshape(-1)
        self.b = torch.full((self.n,), 1 / side**2, dtype=torch.float64, device=device)

    def values(self, log_k):
        """A's values in CSR order, differentiable: harmonic means of k on the faces."""
        k = log_k.exp()
        face = 2 / (1 / k[self.one] + 1 / k[self.other])
        diagonal = (2 * k * self.edges).index_add(0, self.one, face).index_add(0, self.other, face)
        return torch.cat([-face, -face, diagonal])[self.order]

    def dense(self, values):
        """A as a dense tensor."""
        zeros = torch.zeros(self.n, self.n, dtype=values.dtype, device=self.device)
        return zeros.index_put((self.rows, self.cols), values)


def solver_of(name, problem):
    """Return the function from values to u, and a function that says what ran."""
    if name.startswith("swell"):
        import swell.torch
        first = problem.values(torch.zeros(problem.n, dtype=torch.float64, device=problem.device))
        shape = problem.n, problem.n
        if name == "swell_once":
            return lambda values: swell.torch.solve(
                torch.sparse_csr_tensor(problem.crow, problem.cols, values, shape), problem.b, rtol=RTOL), lambda: ""
        named = {"method": "cg", "precond": "amg", "keep_preconditioner": True} if name == "swell_kept" else {}
        p = swell.torch.prepare(torch.sparse_csr_tensor(problem.crow, problem.cols, first, shape), rtol=RTOL, **named)
        return lambda values: p.update(values).solve(problem.b), lambda: (
            f"{p.result.method}, {p.result.precond}, {p.result.iterations} iterations; "
            f"{p.solves} + {p.adjoint_solves} solves, {p.setups} setups, {p.updates} updates")
    if name == "dense":
        return lambda values: torch.linalg.solve(problem.dense(values), problem.b), lambda: ""
    import torch_sla
    named = {"backend": "pytorch", "method": "cg"} if name == "sla_cg" else {}
    norm = float(problem.b.norm())
    return lambda values: torch_sla.spsolve(values, problem.rows, problem.cols, (problem.n, problem.n), problem.b,
                                            atol=RTOL * norm, is_symmetric=True, is_spd=True, **named), lambda: ""


class Memory:
    """Samples the memory of the process, or of the GPU, in a thread; ``peak`` counts from the start."""

    def __init__(self, device):
        self._device, self._stop = device, threading.Event()
        self._base, self.peak = self._used(), 0
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _used(self):
        if self._device == "cuda":
            free, total = torch.cuda.mem_get_info()
            return total - free
        with open("/proc/self/statm") as file:                   # Linux
            return resource.getpagesize() * int(file.read().split()[1])

    def _watch(self):
        while not self._stop.wait(0.005):
            self.peak = max(self.peak, self._used() - self._base)

    def end(self):
        """Stop, and return the peak in bytes."""
        self._stop.set()
        self._thread.join()
        return max(self.peak, self._used() - self._base)


def fit(name, side, steps, device):
    """Run one contestant; return its figures."""
    problem = Problem(side, device)
    with torch.no_grad():
        import swell
        truth = torch.sparse_csr_tensor(problem.crow, problem.cols, problem.values(problem.truth), (problem.n,) * 2)
        observed = swell.solve(truth, problem.b, rtol=1e-10).x
    solve, words = solver_of(name, problem)
    log_k = torch.zeros(problem.n, dtype=torch.float64, device=device, requires_grad=True)
    adam = torch.optim.Adam([log_k], lr=0.02)
    scale = 1 / float(observed.norm())**2
    memory, times, losses, first = Memory(device), [], [], None
    for _ in range(steps):
        start = time.perf_counter()
        adam.zero_grad()
        loss = scale * ((solve(problem.values(log_k)) - observed)**2).sum()
        loss.backward()
        adam.step()
        losses.append(float(loss.detach()))      # waits for the GPU
        times.append(time.perf_counter() - start)
        if first is None:
            first = log_k.grad.clone()
    probe = torch.sin(torch.arange(problem.n, dtype=torch.float64, device=device))
    return {"name": name, "first": times[0], "median": sorted(times[1:])[(steps - 1) // 2], "total": sum(times),
            "memory": memory.end(), "losses": [losses[0], losses[-1]], "probe": float(first @ probe),
            "norm": float(first.norm()), "words": words()}


def overhead(side, device, repeats=15):
    """Milliseconds of a solve under no_grad: by swell's own `Solver`, and by swell.torch, in turns."""
    import swell.torch
    problem = Problem(side, device)
    values = problem.values(problem.truth)
    A = torch.sparse_csr_tensor(problem.crow, problem.cols, values, (problem.n,) * 2)
    named = {"method": "cg", "precond": "amg"}
    s, p = swell.prepare(A, b_like=problem.b, **named), swell.torch.prepare(A, **named)
    calls = {"Solver.solve": lambda: s.solve(problem.b), "Prepared.solve": lambda: p.solve(problem.b),
             "swell.solve": lambda: swell.solve(A, problem.b, **named),
             "swell.torch.solve": lambda: swell.torch.solve(A, problem.b, **named)}
    times = {name: [] for name in calls}
    with torch.no_grad():
        for _ in range(repeats + 2):
            for name, call in calls.items():
                start = time.perf_counter()
                call()
                times[name].append(1e3 * (time.perf_counter() - start))
    return {name: sorted(each[2:])[repeats // 2] for name, each in times.items()}


def main():
    """Run each contestant in its own process, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--side", type=int, default=316, help="cells on a side")
    parser.add_argument("--small", type=int, default=48, help="cells on a side where dense autograd runs too; 0: not")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--only", nargs="+", choices=list(CONTESTANTS), default=list(CONTESTANTS))
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one == "overhead":
        print(json.dumps(overhead(given.side, given.device)))
        return
    if given.one:
        print(json.dumps(fit(given.one, given.side, given.steps, given.device)))
        return
    where = torch.cuda.get_device_name() if given.device == "cuda" else f"{torch.get_num_threads()} threads"
    print(f"torch {torch.__version__}, {given.device} ({where}), {given.steps} steps, rtol {RTOL}")
    for side in filter(None, (given.side, given.small)):
        names = [name for name in given.only if name != "dense" or side == given.small]
        print(f"\n{side} × {side} = {side * side} unknowns\n")
        print("| solver | first step | a step | all steps | peak memory | loss, first to last | first gradient: norm, "
              "probe | what ran |")
        print("|---|---|---|---|---|---|---|---|")
        for name in names:
            done = subprocess.run([sys.executable, __file__, "--one", name, "--side", str(side), "--steps",
                                   str(given.steps), "--device", given.device], capture_output=True, text=True, check=False)
            if done.returncode:
                print(f"| {CONTESTANTS[name]} | failed: {done.stderr.strip().splitlines()[-1][:150]} |", flush=True)
                continue
            f = json.loads(done.stdout.splitlines()[-1])
            print(f"| {CONTESTANTS[name]} | {f['first']:.3g} s | {1e3 * f['median']:.3g} ms | {f['total']:.3g} s | "
                  f"{f['memory'] / 2**20:.0f} MiB | {f['losses'][0]:.6e} → {f['losses'][1]:.6e} | {f['norm']:.8e}, "
                  f"{f['probe']:.8e} | {f['words']} |", flush=True)
    done = subprocess.run([sys.executable, __file__, "--one", "overhead", "--side", str(given.side), "--device",
                           given.device], capture_output=True, text=True, check=True)
    print(f"\nunder no_grad, {given.side}², cg with AMG, ms: " + ", ".join(
        f"{name} {took:.3g}" for name, took in json.loads(done.stdout.splitlines()[-1]).items()))


if __name__ == "__main__":
    main()
