"""Krylov methods: time of an iteration, and whole solves with their true residuals, beside SciPy or CuPy (the peer).

The right-hand side is all ones, in the device's memory. An iteration's time comes from the wall times of two solves,
one with all the requested iterations and one with half of them: their difference over the difference of iterations, for
swell and for the peer alike. This excludes costs that occur once a solve; a time within the machine's noise is left
blank. Whole solves go to a true relative residual of 1e-8, and their whole time counts.
"""
from __future__ import annotations

import numpy as np

from swell import api
from swell.bench import engine
from swell.core.registry import resolve
from swell.core.devices import make_space
from swell.core.stopping import Stopping

# case: (method, scaling, its matrices)
CASES = {
    "cg_jacobi": ("cg", "jacobi", ("thermal2~", "ecology2~", "parabolic_fem~")),
    "resident_cg_jacobi": ("resident_cg", "jacobi", ("thermal2~", "ecology2~", "parabolic_fem~")),
    "gmres30": ("gmres(restart=30, lengthen=False)", None, ("atmosmodd~",)),
    "bicgstab": ("bicgstab", None, ("atmosmodd~", "audi3d4~")),
}
LIKE = {"resident_cg_jacobi": "cg_jacobi"}     # on a GPU only: equal iterates, hence the other case's peer
RESTART = 30
RTOL = 1e-8
PEER_LIMIT = 2          # limit of the peer's iterations in a whole solve, as a multiple of swell's
ITERATION = ("matrix", "case", "n", "iterations", "µs an iteration", "peer", "its µs", "ratio", "stored figures, µs")
SOLVE = ("matrix", "case", "reason", "iterations", "s", "true residual", "peer", "its iterations", "its s",
         "its residual", "ratio")


def run(arguments) -> int:
    """Run the benchmark; return the exit status. ``arguments``: the parsed command line."""
    space = make_space(arguments.device)
    findings = engine.Findings("swell bench krylov", space, arguments)
    findings.take(_measure(space, arguments))
    findings.table("Time of an iteration", ITERATION, _iterations(findings.records))
    if not arguments.no_solves:
        findings.table(f"Whole solves to {RTOL:g}", SOLVE, _solves(findings.records))
    findings.report(("An iteration beside the peer's", _figure(findings.records)))
    return 0


def _measure(space, arguments):
    """Yield the records (dicts of results) of every case, for each of its matrices."""
    known = list(dict.fromkeys(name for _, _, names in CASES.values() for name in names))
    for name, A in engine.matrices(arguments.matrices, arguments.scale, known):
        for case, (method, scaling, names) in CASES.items():
            if name in names and (space.name == "cuda" or case not in LIKE):
                engine.tell(f"{case}: {name}")
                system = _System(space, name, A, case, method, scaling, arguments)
                yield system.iteration()
                if not arguments.no_solves:
                    yield system.solve()


class _System:
    """One matrix with one method, and the peer on the same device."""

    def __init__(self, space, name, A, case, method, scaling, arguments):
        self.space, self.name, self.A, self.case, self.arguments = space, name, A, case, arguments
        self.method, self.scaling = resolve("method", method), resolve("scaling", scaling)
        self.b = np.ones(A.shape[0], A.dtype)
        with space.active():
            self.on_device = space.from_host(self.b)
        self.repeat = arguments.repeat or 3
        self.like = LIKE.get(case, case)
        self.peer = _Peer(space, A, self.b, self.like)

    def _prepare(self, stopping):
        return api.prepare(self.A, method=self.method, scaling=self.scaling, device=self.arguments.device,
                           stopping=stopping, b_like=self.on_device)

    def iteration(self) -> dict:
        """Time a fixed number of iterations, without tolerance or test for stagnation; return the record, a dict."""
        half, count = self.arguments.iterations // 2, self.arguments.iterations
        seconds, run = engine.seconds_an_iteration(self._prepare, self.on_device, count, self.repeat)
        self.peer.run(half, 1e-30)
        theirs = engine.beyond_noise(engine.difference(*(self.peer.run(k, 1e-30)[1:] for k in (half, count)))
                                     for _ in range(self.repeat))
        return self._record("iteration", {
            "seconds": seconds, "iterations": run.iterations, "format": run.format, "host_reads": run.host_reads,
            "peer_seconds": theirs, "ratio": theirs / seconds,
            "published_us": engine.published("iteration_us", self.space, self.name, self.arguments.scale, self.like)})

    def solve(self) -> dict:
        """Time a whole solve; return the record, a dict."""
        solver = self._prepare(Stopping(rtol=RTOL))
        solver.solve(self.on_device)
        result = solver.solve(self.on_device)
        x, seconds, iterations = self.peer.run(PEER_LIMIT * max(result.iterations, RESTART), RTOL)
        solve_seconds = result.timings["solve"]
        return self._record("solve", {
            "seconds": solve_seconds, "setup_seconds": result.timings["setup"], "iterations": result.iterations,
            "reason": result.reason.name, "format": result.format,
            "residual": engine.true_residual(self.A, self.space.to_host(result.x), self.b),
            "peer_seconds": seconds, "peer_iterations": iterations, "ratio": seconds / solve_seconds,
            "peer_residual": engine.true_residual(self.A, x, self.b),
            "published_s": engine.published("solve_s", self.space, self.name, self.arguments.scale)})

    def _record(self, kind, measured: dict) -> dict:
        return {"benchmark": f"krylov {kind}", "matrix": self.name, "n": self.A.shape[0], "nnz": self.A.nnz,
                "dtype": self.A.dtype.name, "case": self.case, "peer": self.peer.name, **measured,
                "scale": self.arguments.scale, **engine.circumstances(self.space)}


class _Peer:
    """The peer's solver: SciPy's on a CPU, CuPy's on a GPU; with Jacobi's preconditioner for "cg_jacobi"."""

    def __init__(self, space, A, b, case):
        self.space, self.case = space, case
        if space.name == "cpu":
            from scipy.sparse import csr_matrix, linalg
            self.name = "SciPy"
        else:
            from cupyx.scipy.sparse import csr_matrix, linalg
            self.name = "CuPy"
        with space.active():
            self.A, self.b = csr_matrix(A), space.xp.asarray(b)
            inverse = 1 / self.A.diagonal()
        self.linalg = linalg
        self.M = None
        if case == "cg_jacobi":
            self.M = linalg.LinearOperator(A.shape, lambda r: inverse * r.ravel(), dtype=A.dtype)

    def run(self, iterations, rtol):
        """Solve once with at most ``iterations``; return (x on the host, seconds, iterations done)."""
        done = [0]

        def count(_):
            done[0] += 1

        options = {"rtol": rtol, "atol": 0.0, "maxiter": iterations, "M": self.M, "callback": count}
        if self.case == "gmres30":               # CuPy's maxiter counts iterations, SciPy's counts cycles
            cycles = -(-iterations // RESTART)
            options |= {"restart": RESTART, "callback_type": "pr_norm",
                        "maxiter": cycles if self.name == "SciPy" else cycles * RESTART}
        method = {"cg_jacobi": "cg", "gmres30": "gmres", "bicgstab": "bicgstab"}[self.case]
        with self.space.active(), np.errstate(all="ignore"):
            with engine.stopwatch(self.space) as elapsed:
                x, _ = getattr(self.linalg, method)(self.A, self.b, **options)
            x = self.space.to_host(x)
        steps = done[0] * (RESTART if self.case == "gmres30" and self.name == "CuPy" else 1)
        return x, elapsed[0], steps


def _iterations(records):
    return [(r["matrix"], r["case"], r["n"], r["iterations"], engine.cell(1e6 * r["seconds"]), r["peer"],
             engine.cell(1e6 * r["peer_seconds"]), engine.cell(r["ratio"], 2),
             engine.in_microseconds(r["published_us"]))
            for r in records if r["benchmark"] == "krylov iteration"]


def _solves(records):
    return [(r["matrix"], r["case"], r["reason"], r["iterations"], f"{r['seconds']:.3g}", f"{r['residual']:.1e}",
             r["peer"], r["peer_iterations"], f"{r['peer_seconds']:.3g}", f"{r['peer_residual']:.1e}",
             f"{r['ratio']:.2f}") for r in records if r["benchmark"] == "krylov solve"]


def _figure(records):
    """Return a figure: bars of the times of an iteration, beside the peer's."""
    iterations = [r for r in records if r["benchmark"] == "krylov iteration"]
    groups = [f"{r['case']}\n{r['matrix']}" for r in iterations]
    values = {"swell": [1e6 * r["seconds"] for r in iterations],
              iterations[0]["peer"] if iterations else "peer": [1e6 * r["peer_seconds"] for r in iterations]}
    return engine.bars(groups, list(values), values, "µs an iteration")
