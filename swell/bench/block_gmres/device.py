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

from swell import api
from swell.advisor.choose import default_format
from swell.bench import engine
from swell.bench.block_gmres import cases, figures
from swell.bench.block_gmres.cases import EXACT, HOST, NONE, ON_BLOCKS, RESTART, SEED, OnHost, preconditioners
from swell.bench.block_gmres.figures import BROKEN_DOWN, TOLERANCES, WHOLLY
from swell.core import timing
from swell.core.devices import make_space
from swell.core.errors import InputError, SwellError
from swell.core.registry import resolve
from swell.core.stopping import Stopping
from swell.formats.blocks import MAX_BLOCK, detect, divisors, fill_ratios
from swell.formats.bsr import BSR, BSRMatrix
from swell.formats.csr import CSRMatrix
from swell.gallery import coupled_transport
from swell.krylov.gmres import GMRES

MATRICES = ("matrix", "n", "entries", "block", "blocks", "fill")
SOLVES = ("matrix", "preconditioner", "device", "rtol", "reason", "iterations", "a restart's steps ms: least",
          "largest", "mean", "solve ms", "setup ms", "‖b − Ax‖/‖b‖")
ORTHOGONAL = ("matrix", "basis", "batch", "inner products µs", "updates µs")
STEPS = ("matrix", "preconditioner", "product µs", "preconditioner µs", "inner products µs", "updates µs", "sum µs")


def run(arguments) -> int:
    """Run the benchmark; return the exit status. ``arguments``: the parsed command line."""
    space = make_space(arguments.device)
    engine.tell("reading and generating matrices")
    systems = [System(space, name, A, block) for name, A, block in cases.given(arguments)]
    findings = engine.Findings("swell bench block-gmres", space, arguments)
    findings.table("Table 1: matrices", MATRICES, [system.row() for system in systems])
    for block in sorted({system.block for system in systems}):
        compile_kernels(space, block, preconditioners(block).values())
        if space.name != "cpu" and not arguments.no_cpu:
            compile_kernels(make_space("cpu"), block, [preconditioners(block)[EXACT]])
    orthogonal = findings.take(r for system in systems for r in system.orthogonalisation())
    findings.table("Figures 8 and 9: inner products and updates of a step, by vectors a launch", ORTHOGONAL,
                   figures.orthogonal(orthogonal))
    findings.take(r for system in systems for r in system.solves(arguments))
    findings.table("Tables 2 to 4: preconditioning by ILU(0)", SOLVES, figures.solves(findings.records))
    findings.table("A step of GMRES(30)", STEPS, figures.steps(findings.records))
    findings.report(*figures.drawn(findings.records))
    return 0


def compile_kernels(space, block, named):
    """Run each preconditioner in ``named`` (names of ``swell.solve``) once on a small matrix with blocks of size
    ``block``, so that no measured setup includes compilation."""
    engine.tell(f"compiling kernels that are not in the cache: {space.name}, blocks of {block}")
    small = System(space, "small", coupled_transport((4, 4, 4), block), block)
    for text in named:
        small.solver(small.build(text), 1e-3).solve(small.b)
    with space.active():
        for settings in (GMRES(RESTART, 1), GMRES(RESTART, basis="single")):
            cases.orthogonalised(small.csr, small.b, settings)


class System:
    """One matrix on one device: ``A`` is SciPy's on the host, ``csr`` the device's."""

    def __init__(self, space, name, A, block=None):
        self.space, self.name, self.A = space, name, A
        with space.active(A.shape[0]):
            self.csr = CSRMatrix.from_scipy(A, space)
            if block and (block > MAX_BLOCK or A.shape[0] % block):
                raise InputError(f"{name}: blocks of {block} came for {A.shape[0]} rows: expected a size up to "
                                 f"{MAX_BLOCK} that divides them, {', '.join(map(str, divisors(*A.shape)))}; or "
                                 "NAME/BLOCK in --matrices, which appends rows to fill the last block")
            self.block = block or detect(self.csr)
            self.fill = fill_ratios(self.csr, (self.block,)).get(self.block, 1.0)
            self.b = space.empty(A.shape[0], self.csr.dtype)
            space.random(SEED, self.b)
            self.rhs = space.to_host(self.b)

    def row(self):
        """Return this matrix's row of table 1."""
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

    def solver(self, M, rtol, maxiter=300):
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
            step = self._step(M) if label in (NONE, EXACT, cases.sweeps(BROKEN_DOWN)) else {}
            yield from self._solves(label, M, setup[0], step, arguments.maxiter)
            if label == EXACT and self.space.name != "cpu" and not arguments.no_cpu:
                yield from self.beside_a_gpu(min(arguments.cpu_iterations, arguments.maxiter))

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

    def _solves(self, label, M, setup, step, limit):
        with self.space.active(self.A.shape[0]):
            restarts = [] if M is None or label == WHOLLY else cases.steps_of_a_restart(self.space, M)
        for rtol in TOLERANCES:
            solver = self.solver(M, rtol, limit)
            solver.solve(self.b, monitor=engine.a_few)
            result = solver.solve(self.b)
            yield {"benchmark": "block_gmres", "matrix": self.name, "n": self.A.shape[0], "nnz": self.A.nnz,
                   "block": self.block, "fill": self.fill, "preconditioner": label, "rtol": rtol,
                   "reason": result.reason.name, "iterations": result.iterations, "restart_seconds": restarts,
                   "setup_seconds": setup, "solve_seconds": result.timings["solve"], "step": step,
                   "residual": engine.true_residual(self.A, self.space.to_host(result.x), self.rhs),
                   **engine.circumstances(self.space)}
            if not result.converged:
                return                           # a smaller tolerance would not be reached, either

    def _step(self, M) -> dict[str, float]:
        """Time each part of a step of GMRES with the preconditioner M (or None) separately; return {part: seconds}."""
        space = self.space
        with space.active(self.A.shape[0]):
            matrix = default_format(self.csr).build(self.csr)
            y = space.empty(self.A.shape[0], self.csr.dtype)
            parts = {"product": timing.seconds(space, lambda: matrix.apply(self.b, y), 10)}
            if M is not None:
                parts["preconditioner"] = timing.seconds(space, lambda: M.apply(self.b, y), 10)
            return parts | cases.orthogonalised(self.csr, self.b, GMRES(RESTART))

    def orthogonalisation(self):
        """Yield the records (dicts of results) of figures 8 and 9."""
        engine.tell(f"{self.name}, {self.space.name}: inner products and updates")
        with self.space.active(self.A.shape[0]):
            for settings, times in cases.orthogonalisations(self.csr, self.b):
                yield {"benchmark": "block_gmres orthogonalisation", "matrix": self.name, "n": self.A.shape[0],
                       "batch": settings.batch or RESTART, "basis": settings.basis, **times,
                       **engine.circumstances(self.space)}
