"""GMRES(30) on block-sparse systems, exact and inexact block triangular solves: the tables of the block-GMRES paper.

The right-hand side is all ones, the start zero; a solve ends where the residual is 1e-3 or 1e-5 of the first, as in the
paper. For each preconditioner: the least, largest and mean time that the preconditioning steps of a restart take (31
applications), the time of the whole solve, and the iterations. Applications are timed one by one in a solve of its own,
so that timing them does not slow the one whose time is told.
"""
from __future__ import annotations

import time

import numpy as np

from swell import api
from swell.bench import engine
from swell.core.operator import LinearOperator
from swell.core.registry import resolve
from swell.core.space import make_space
from swell.core.stopping import Stopping
from swell.formats.blocks import detect, fill_ratios
from swell.formats.csr import CSRMatrix

RESTART = 30
TOLERANCES = (1e-3, 1e-5)
SWEEPS = tuple(range(1, 9))
MATRICES = ("matrix", "n", "entries", "block", "blocks", "fill")
SOLVES = ("matrix", "preconditioner", "device", "rtol", "reason", "iterations", "a restart's steps ms: least",
          "largest", "mean", "solve ms", "‖b − Ax‖/‖b‖")


def run(arguments) -> int:
    """Measure, print, write."""
    space = make_space(arguments.device)
    systems = [*engine.matrices(arguments.matrices, arguments.scale), *engine.files(arguments.files)]
    records = [record for name, A in systems for record in measure(space, name, A)]
    tables = [("Table 1: matrices", MATRICES, _matrices(records)),
              ("Tables 2 to 4: preconditioning by block ILU(0)", SOLVES, _solves(records))]
    for caption, header, rows in tables:
        engine.show(f"{caption}, {space.describe()}", header, rows)
    if arguments.out:
        engine.append(arguments.out, records)
    if arguments.report:
        engine.report(arguments.report, f"swell bench block_gmres on {space.describe()}", tables, space,
                      *((f"Figures 12 to 15, to {tolerance:g}", _figure(records, tolerance)) for tolerance in TOLERANCES))
    return 0


def preconditioners(block: int) -> dict[str, str]:
    """What is compared, by the names that the tables give."""
    exact = {"none": "none", "point ILU(0), exact": "ilu0", "block ILU(0), exact": f"block_ilu0(block={block})"}
    return exact | {f"block ILU(0), {k} sweeps": f"block_ilu0(block={block}, solve='sweeps(count={k})')"
                    for k in SWEEPS}


def measure(space, name, A):
    """Records for one matrix."""
    with space.active(A.shape[0]):
        csr = CSRMatrix.from_scipy(A, space)
        block = detect(csr)
        fill = fill_ratios(csr, (block,)).get(block, 1.0)
        b = space.from_host(np.ones(A.shape[0], A.dtype))
    for label, text in preconditioners(block).items():
        for rtol in TOLERANCES:
            stopping = Stopping(rtol=rtol, relative_to="r0")
            solver = api.prepare(A, method=f"gmres(restart={RESTART})", precond=text, device=space.device_name,
                                 stopping=stopping, b_like=b)
            solver.solve(b)
            result = solver.solve(b)
            steps = restarts(space, csr, b, text, stopping) if text != "none" else []
            yield {"benchmark": "block_gmres", "matrix": name, "n": A.shape[0], "nnz": A.nnz, "block": block,
                   "fill": fill, "preconditioner": label, "rtol": rtol, "reason": result.reason.name,
                   "iterations": result.iterations, "restart_seconds": steps,
                   "setup_seconds": result.timings["setup"], "solve_seconds": result.timings["solve"],
                   "residual": float(np.linalg.norm(1 - A @ space.to_host(result.x)) / np.sqrt(A.shape[0])),
                   **engine.circumstances(space)}


class Timed(LinearOperator):
    """A preconditioner that notes how long each application takes; never captured: the host looks at the clock."""

    capturable = False

    def __init__(self, M):
        super().__init__(M.shape, M.dtype, M.space)
        self.M, self.variable, self.seconds = M, M.variable, []

    def apply(self, x, out, alpha=1, beta=0):
        self.space.synchronize()
        start = time.perf_counter()
        self.M.apply(x, out, alpha, beta)
        self.space.synchronize()
        self.seconds.append(time.perf_counter() - start)


def restarts(space, csr, b, text, stopping) -> list[float]:
    """Seconds that the preconditioning steps of each restart take."""
    with space.active(csr.shape[0]):
        timed = Timed(resolve("precond", text).build(csr))
    solver = api.prepare(csr, method=f"gmres(restart={RESTART})", M=timed, stopping=stopping, b_like=b)
    solver.solve(b)
    timed.seconds.clear()
    solver.solve(b)
    return [sum(timed.seconds[k:k + RESTART + 1]) for k in range(0, len(timed.seconds), RESTART + 1)]


def _matrices(records):
    rows = {r["matrix"]: (r["matrix"], r["n"], r["nnz"], r["block"], round(r["nnz"] * r["fill"] / r["block"]**2),
                          f"{r['fill']:.2f}") for r in records}
    return list(rows.values())


def _solves(records):
    rows = []
    for r in records:
        whole = r["restart_seconds"][:-1] or r["restart_seconds"]              # the last restart may be cut short
        steps = (f"{1e3 * f(whole):.2f}" for f in (min, max, np.mean)) if whole else ("", "", "")
        rows.append((r["matrix"], r["preconditioner"], r["device"].split(",")[0], f"{r['rtol']:g}", r["reason"],
                     r["iterations"], *steps, f"{1e3 * r['solve_seconds']:.1f}", f"{r['residual']:.1e}"))
    return rows


def _figure(records, tolerance):
    """Times of whole solves, a group of bars for each matrix (figures 12 to 15)."""
    mine = [r for r in records if r["rtol"] == tolerance and r["preconditioner"] != "none"]
    names = list(dict.fromkeys(r["matrix"] for r in mine))
    labels = [k for k in dict.fromkeys(r["preconditioner"] for r in mine) if "sweeps" not in k or k.split()[2] in "136"]
    seconds = {(r["matrix"], r["preconditioner"]): 1e3 * r["solve_seconds"] for r in mine if r["reason"] == "CONVERGED"}
    values = {label: [seconds.get((name, label)) for name in names] for label in labels}
    return engine.bars(names, labels, values, f"ms to {tolerance:g} of the first residual")
