"""GMRES(30) on block-sparse systems: tables 1 to 4 and figures 8, 9 and 12 to 15 of "Developing a Multi-GPU-Enabled
Preconditioned GMRES with Inexact Triangular Solves for Block Sparse Matrices" for one device.

The right-hand side is random, since all ones are nearly an eigenvector of some of these matrices; the start is zero. A
solve ends when the residual is 1e-3 or 1e-5 of the first one, as in the paper, and is timed after a warm-up. If 1e-3 is
not reached in 300 iterations, 1e-5 is left out. The preconditioning steps of a restart (31 applications to vectors of a
basis) are timed separately, ``RESTARTS`` times; on a GPU in a CUDA graph, as in a solve. "Exact CPU" on a GPU is the
paper's PETScPrecond: each vector is copied to the host and solved there, one row after the other. Such a solve, and one
entirely on the host, does ``--cpu-iterations`` at most. Sweeps are not guarded, so the results show exactly the given
number of sweeps. Times of inner products and updates are means over the 30 steps of a cycle.
"""
from __future__ import annotations

import numpy as np

from swell import api
from swell.advisor.choose import default_format
from swell.bench import engine
from swell.core import timing
from swell.core.errors import SwellError
from swell.core.operator import LinearOperator
from swell.core.registry import resolve
from swell.core.devices import make_space
from swell.core.stopping import Stopping
from swell.core.workspace import Workspace
from swell.formats.blocks import check_size, detect, fill_ratios
from swell.formats.bsr import BSR, BSRMatrix
from swell.formats.csr import CSRMatrix
from swell.gallery import coupled_transport
from swell.krylov.gmres import GMRES
from swell.krylov import method

RESTART = 30
RESTARTS = {"cpu": 2, "cuda": 4}        # repetitions when a restart's preconditioning steps are timed
MAXITER = 300
SEED = 11
TOLERANCES = (1e-3, 1e-5)
SWEEPS = tuple(range(1, 9))
BATCHES = (1, 2, 4, 8, 16, 30)
NONE, EXACT, HOST, WHOLLY = "none", "block ILU(0), exact", "block ILU(0), exact CPU", "all of it on the CPU"
ON_BLOCKS = "point ILU(0) on the blocks, exact"
BROKEN_DOWN = 3                         # number of sweeps whose steps are timed by parts, beside exact solves
PARTS = ("product", "preconditioner", "inner_products", "updates")
MATRICES = ("matrix", "n", "entries", "block", "blocks", "fill")
SOLVES = ("matrix", "preconditioner", "device", "rtol", "reason", "iterations", "a restart's steps ms: least",
          "largest", "mean", "solve ms", "setup ms", "‖b − Ax‖/‖b‖")
ORTHOGONAL = ("matrix", "basis", "batch", "inner products µs", "updates µs")
STEPS = ("matrix", "preconditioner", "product µs", "preconditioner µs", "inner products µs", "updates µs", "sum µs")


def run(arguments) -> int:
    """Run the benchmark: measure, print each table when it is complete, write records and report. ``arguments``: the
    parsed command line. Return the exit status."""
    space = make_space(arguments.device)
    engine.tell("reading and generating matrices")
    given = *engine.matrices(arguments.matrices, arguments.scale), *engine.files(arguments.files)
    systems = [System(space, name, A, arguments.block) for name, A in given]
    found = engine.Findings("swell bench block-gmres", space, arguments)
    found.table("Table 1: matrices", MATRICES, [system.row() for system in systems])
    for block in sorted({system.block for system in systems}):
        compile_kernels(space, block, preconditioners(block).values())
        if space.name != "cpu" and not arguments.no_cpu:
            compile_kernels(make_space("cpu"), block, [preconditioners(block)[EXACT]])
    orthogonal = found.take(r for system in systems for r in system.orthogonalisation())
    found.table("Figures 8 and 9: inner products and updates of a step, by vectors a launch", ORTHOGONAL,
                _orthogonal(orthogonal))
    found.take(r for system in systems for r in system.solves(arguments))
    found.table("Tables 2 to 4: preconditioning by ILU(0)", SOLVES, _solves(found.records))
    found.table("A step of GMRES(30)", STEPS, _steps(found.records))
    found.report(*figures(found.records))
    return 0


def preconditioners(block: int) -> dict[str, str]:
    """Return the preconditioners to compare on the device, for blocks of this size: {label in the tables: setting as
    text}."""
    factors = "block_ilu0(" if block > 1 else "ilu0("            # for blocks of 1, point ILU(0) is many times faster
    size = f"block={block}, "
    named = {NONE: "none", EXACT: f"{factors}{size}solve=exact)"}
    if block > 1:
        named |= {"point ILU(0), exact": "ilu0", ON_BLOCKS: "ilu0"}
    named["block ILU(0), ISAI"] = f"{factors}{size}solve='isai(guard=off)')"
    return named | {_sweeps(k): f"{factors}{size}solve='sweeps(count={k}, guard=off)')" for k in SWEEPS}


def _sweeps(count):
    return f"block ILU(0), {count} sweep" + ("s" if count > 1 else "")


def compile_kernels(space, block, named):
    """Run each preconditioner in ``named`` (names of ``swell.solve``) once on a small matrix with blocks of size
    ``block``, so that no measured setup includes compilation."""
    engine.tell(f"compiling kernels that are not in the cache: {space.name}, blocks of {block}")
    small = System(space, "small", coupled_transport((4, 4, 4), block), block)
    for text in named:
        small.solver(small.build(text), 1e-3).solve(small.b)
    with space.active():
        for settings in (GMRES(RESTART, 1), GMRES(RESTART, basis="single")):
            small.orthogonalised(settings)


class OnHost(LinearOperator):
    """A CPU preconditioner for a GPU's vectors: they are copied to the host and back, and graphs cannot capture it."""

    capturable = False

    def __init__(self, M, space):
        super().__init__(M.shape, M.dtype, space)
        self.M, self.variable = M, M.variable
        self._z = np.empty(M.shape[0], M.dtype)
        self._back = space.empty(M.shape[0], M.dtype)

    def apply(self, x, out, alpha=1, beta=0):
        self.M.apply(self.space.to_host(x), self._z)
        back = self.space.from_host(self._z, self._back)
        out[...] = alpha * back + beta * out if beta else alpha * back


class System:
    """One matrix on one device: ``A`` is SciPy's on the host, ``csr`` the device's."""

    def __init__(self, space, name, A, block=None):
        self.space, self.name, self.A = space, name, A
        with space.active(A.shape[0]):
            self.csr = CSRMatrix.from_scipy(A, space)
            if block:
                check_size(block, False, A.shape, name)
            self.block = block or detect(self.csr)
            self.fill = fill_ratios(self.csr, (self.block,)).get(self.block, 1.0)
            self.b = space.empty(A.shape[0], self.csr.dtype)
            space.random(SEED, self.b)
            self.rhs = space.to_host(self.b)

    def row(self):
        """Return this matrix' row of table 1."""
        A = self.A
        return self.name, A.shape[0], A.nnz, self.block, round(A.nnz * self.fill / self.block**2), f"{self.fill:.2f}"

    def build(self, text, on_blocks=False):
        """Build and return the preconditioner that ``text`` names, or None for "none". ``on_blocks``: build it for a
        matrix that stores the zeros inside blocks as entries."""
        settings, A = resolve("precond", text), self.csr
        with self.space.active(A.shape[0]):
            if on_blocks:
                blocks = BSR(self.block, True).build(A)
                A = BSRMatrix(self.space, blocks.indptr, blocks.indices, blocks.data, A.shape).to_csr()
            return None if settings is None else settings.build(A)

    def solver(self, M, rtol, maxiter=MAXITER):
        """Return a Solver: GMRES(30) with the preconditioner M (None for none). ``rtol`` is relative to the first
        residual."""
        return api.prepare(self.csr, method=GMRES(RESTART, lengthen=False), M=M, b_like=self.b,
                           stopping=Stopping(rtol=rtol, relative_to="r0", maxiter=maxiter))

    def solves(self, arguments):
        """Yield one record (dict of results) for each preconditioner and tolerance."""
        for label, text in preconditioners(self.block).items():
            engine.tell(f"{self.name}, {self.space.name}: {label}")
            try:
                with engine.stopwatch(self.space) as setup:
                    M = self.build(text, label == ON_BLOCKS)
            except SwellError as error:
                engine.tell(f"{self.name}: {label} is left out: {error}")
                continue
            step = self._step(M) if label in (NONE, EXACT, _sweeps(BROKEN_DOWN)) else {}
            yield from self._solves(label, M, setup[0], step)
            if label == EXACT and self.space.name != "cpu" and not arguments.no_cpu:
                yield from self.beside_a_gpu(arguments.cpu_iterations)

    def beside_a_gpu(self, limit):
        """Yield records of the paper's PETScPrecond, and of solves entirely on the host; ``limit``: iterations a
        solve."""
        engine.tell(f"{self.name}, cpu: {HOST}")
        host = System(make_space("cpu"), self.name, self.A, self.block)
        with engine.stopwatch(host.space) as setup:
            M = host.build(preconditioners(self.block)[EXACT])
        yield from self._solves(HOST, OnHost(M, self.space), setup[0], {}, limit)
        engine.tell(f"{self.name}, cpu: {WHOLLY}")
        yield from host._solves(WHOLLY, M, setup[0], host._step(M), limit)

    def _solves(self, label, M, setup, step, limit=MAXITER):
        restarts = [] if M is None or label == WHOLLY else self.restarts(M)
        for rtol in TOLERANCES:
            solver = self.solver(M, rtol, min(limit, MAXITER))
            solver.solve(self.b, monitor=engine.a_few)
            result = solver.solve(self.b)
            x = self.space.to_host(result.x)
            yield {"benchmark": "block_gmres", "matrix": self.name, "n": self.A.shape[0], "nnz": self.A.nnz,
                   "block": self.block, "fill": self.fill, "preconditioner": label, "rtol": rtol,
                   "reason": result.reason.name, "iterations": result.iterations, "restart_seconds": restarts,
                   "setup_seconds": setup, "solve_seconds": result.timings["solve"], "step": step,
                   "residual": float(np.linalg.norm(self.rhs - self.A @ x) / np.linalg.norm(self.rhs)),
                   **engine.circumstances(self.space)}
            if not result.converged:
                return                           # a smaller tolerance would not be reached, either

    def restarts(self, M) -> list[float]:
        """Apply M 31 times, as GMRES(30) does between two restarts; repeat this, and return the seconds of each
        repetition."""
        space, n = self.space, self.A.shape[0]
        with space.active(n):
            V = space.empty((RESTART + 1, space.padded(n)), self.csr.dtype)[:, :n]
            for k, row in enumerate(V):
                space.random(k, row)
            z = space.empty(n, self.csr.dtype)

            def steps():
                for row in V:
                    M.apply(row, z)

            if space.name == "cuda" and M.capturable:
                return timing.times(space, steps, 1, RESTARTS["cuda"])
            M.apply(V[0], z)
            return [self._watched(steps) for _ in range(RESTARTS["cpu"])]

    def _watched(self, call):
        """Return the wall time of ``call()``, in seconds."""
        with engine.stopwatch(self.space) as elapsed:
            call()
        return elapsed[0]

    def _step(self, M) -> dict[str, float]:
        """Time each part of a step of GMRES with the preconditioner M (or None) separately; return {part: seconds}."""
        space = self.space
        with space.active(self.A.shape[0]):
            matrix = default_format(self.csr).build(self.csr)
            y = space.empty(self.A.shape[0], self.csr.dtype)
            parts = {"product": timing.seconds(space, lambda: matrix.apply(self.b, y), 10)}
            if M is not None:
                parts["preconditioner"] = timing.seconds(space, lambda: M.apply(self.b, y), 10)
            return parts | self.orthogonalised(GMRES(RESTART))

    def orthogonalisation(self):
        """Yield the records (dicts of results) of figures 8 and 9."""
        for settings in (*(GMRES(RESTART, batch) for batch in BATCHES), GMRES(RESTART, basis="single")):
            engine.tell(f"{self.name}, {self.space.name}: batch {settings.batch or RESTART}, basis {settings.basis}")
            with self.space.active(self.A.shape[0]):
                times = self.orthogonalised(settings)
            yield {"benchmark": "block_gmres orthogonalisation", "matrix": self.name, "n": self.A.shape[0],
                   "batch": settings.batch or RESTART, "basis": settings.basis, **times,
                   **engine.circumstances(self.space)}

    def orthogonalised(self, settings) -> dict[str, float]:
        """Return {part: seconds a step}, for the inner products and the updates, as means over a cycle; ``settings``: a
        GMRES."""
        space, n = self.space, self.A.shape[0]
        # The vectors are random, so their norms must not end the loop: no tolerance, no judgement of progress.
        loop = space.loop(Stopping(rtol=1e-30, maxiter=10_000, window=0), n)
        x = space.empty(n, self.csr.dtype)
        it = settings.bind(method.System(self.csr, None, self.b, x, None, Workspace(space), loop))
        for k, vector in enumerate((*it.V, it.u, it.w)):
            space.random(k, vector)
            vector *= (3 / n) ** 0.5             # the norm is then about 1
        it.norm2[...] = 1
        loop.begin(0.0, 1e100, 0)

        def inner_products():
            for j in range(it.m):
                it.orthogonal_parts(j)

        def updates():
            it.step.first(it.u, it.norm2, it.g, it.columns)
            for j in range(it.m):
                it.finish_vector(j)

        times = {"inner_products": timing.seconds(space, inner_products, 1) / it.m,
                 "updates": timing.seconds(space, updates, 1) / it.m}
        loop.end()
        return times


def _where(record):
    """Return the record's device without its model name."""
    return record["device"].split(",")[0]


def _power(rtol):
    """Return ``rtol``, a power of ten, as text such as 1e-3."""
    return f"1e{round(np.log10(rtol))}"


def _of_solves(records):
    return [r for r in records if r["benchmark"] == "block_gmres"]


def _solves(records):
    rows = []
    for r in _of_solves(records):
        times = r["restart_seconds"]
        steps = [f"{1e3 * f(times):.2f}" for f in (min, max, np.mean)] if times else [""] * 3
        rows.append((r["matrix"], r["preconditioner"], _where(r), _power(r["rtol"]), r["reason"], r["iterations"],
                     *steps, f"{1e3 * r['solve_seconds']:.1f}", f"{1e3 * r['setup_seconds']:.0f}",
                     f"{r['residual']:.1e}"))
    return rows


def _orthogonal(records):
    return [(r["matrix"], r["basis"], r["batch"], f"{1e6 * r['inner_products']:.1f}", f"{1e6 * r['updates']:.1f}")
            for r in records]


def _steps(records):
    rows = []
    for r in _of_solves(records):
        if r["step"] and r["rtol"] == TOLERANCES[0]:
            times = [1e6 * r["step"].get(part, 0.0) for part in PARTS]
            rows.append((r["matrix"], r["preconditioner"], *(f"{t:.1f}" for t in (*times, sum(times)))))
    return rows


def figures(records) -> list:
    """Draw all figures from the records; return (caption, figure) pairs."""
    orthogonal = [r for r in records if r["benchmark"] == "block_gmres orthogonalisation" and r["basis"] == "full"]
    solves = _of_solves(records)
    return [("Figure 8: inner products of a step over the vectors that one launch handles",
             _batches(orthogonal, "inner_products")),
            ("Figure 9: updates of a step over the vectors that one launch handles", _batches(orthogonal, "updates")),
            *((f"Figure 12: a whole solve to {_power(rtol)} of the first residual over the sweeps; lines: exact solves",
               _over_sweeps(solves, rtol)) for rtol in TOLERANCES),
            *((f"Figures 13 to 15: whole solves to {_power(rtol)} of the first residual", _whole(solves, rtol))
              for rtol in TOLERANCES),
            ("The parts of a step of GMRES(30)", _parts(solves))]


def _batches(records, part):
    names = list(dict.fromkeys(r["matrix"] for r in records))
    times = {(r["matrix"], r["batch"]): 1e6 * r[part] for r in records}
    return engine.bars(names, [f"{k} a launch" for k in BATCHES],
                       {f"{k} a launch": [times[name, k] for name in names] for k in BATCHES}, "µs a step")


def _milliseconds(records, rtol):
    """Return {(matrix, preconditioner): milliseconds} of the converged solves with the tolerance ``rtol``."""
    return {(r["matrix"], r["preconditioner"]): 1e3 * r["solve_seconds"] for r in records
            if r["rtol"] == rtol and r["reason"] == "CONVERGED"}


def _whole(records, rtol):
    """Return a figure: bars of whole solves on the CPU, with exact triangular solves, and with the best number of
    sweeps."""
    names, times = list(dict.fromkeys(r["matrix"] for r in records)), _milliseconds(records, rtol)
    labels = [label for label in (WHOLLY, HOST, EXACT) if any((name, label) in times for name in names)]
    values = {label: [times.get((name, label)) for name in names] for label in labels}
    best = "block ILU(0), the best number of sweeps"
    values[best] = [min((times[name, _sweeps(k)] for k in SWEEPS if (name, _sweeps(k)) in times), default=None)
                    for name in names]
    return engine.bars(names, [*labels, best], values, "ms (logarithmic)", log=True)


def _over_sweeps(records, rtol):
    from swell.display.figure import colour_of, finish, new_figure
    figure, axes = new_figure(7.5, 4.2)
    times = _milliseconds(records, rtol)
    for k, name in enumerate(dict.fromkeys(r["matrix"] for r in records)):
        colour = colour_of(k)
        points = [(count, times[name, _sweeps(count)]) for count in SWEEPS if (name, _sweeps(count)) in times]
        if points:
            axes.plot(*zip(*points), "o-", color=colour, lw=1.4, ms=4, label=name)
        if (name, EXACT) in times:
            axes.axhline(times[name, EXACT], color=colour, lw=0.9, ls="--")
    engine.logarithmic(axes)
    axes.set_xticks(SWEEPS)
    return finish(figure, axes, "sweeps for each triangle", "ms")


def _parts(records):
    """Return a figure: stacked bars of the parts of a GMRES step, in per cent."""
    from swell.display.figure import GRID, INK, colour_of, new_figure
    rows = [r for r in records if r["step"] and r["rtol"] == TOLERANCES[0] and r["preconditioner"] != WHOLLY]
    figure, axes = new_figure(7.5, 1.0 + 0.28 * max(len(rows), 1))
    totals, left = np.array([sum(r["step"].values()) for r in rows]), np.zeros(len(rows))
    for k, part in enumerate(PARTS):
        widths = np.array([r["step"].get(part, 0.0) for r in rows]) / totals
        axes.barh(range(len(rows)), 100 * widths, left=100 * left, color=colour_of(k), label=part.replace("_", " "))
        left += widths
    for k, total in enumerate(totals):
        axes.text(101, k, f"{1e6 * total:.0f} µs", va="center", fontsize=7, color=INK)
    axes.set_yticks(range(len(rows)), [f"{r['matrix']}: {r['preconditioner']}" for r in rows], fontsize=7)
    axes.invert_yaxis()
    axes.set_xlim(0, 112)
    axes.set_xlabel("% of a step", color=INK)
    axes.grid(True, axis="x", color=GRID, lw=0.6)
    axes.set_axisbelow(True)
    figure.legend(loc="outside upper center", ncols=4, fontsize=8, frameon=False)
    return figure
