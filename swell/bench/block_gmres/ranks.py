"""Measurements on each rank; ``across`` starts it as ``mpiexec -n P python -m swell.bench.block_gmres.ranks SETTINGS``.

Each rank has block ILU(0) of its diagonal block: block Jacobi, equations 7 and 8. Each rank times the preconditioning
steps of a restart, 31 applications, alone. Their least, largest and mean over the ranks are the paper's T_precond, and
largest over mean is equation 13. Whole solves are timed after a warm-up, and the slowest rank counts. "Exact CPU" is
the paper's PETScPrecond: each vector goes to the host, where one core solves row after row, and back.
"""
import statistics
import sys

import numpy as np

import swell
from swell import distributed, gallery
from swell.bench import engine
from swell.bench.block_gmres import cases
from swell.bench.block_gmres.cases import EXACT, HOST, RESTART
from swell.bench.block_gmres.cusparse import BY_CUSPARSE
from swell.bench.scaling import ranks as scaling
from swell.core.devices import make_space
from swell.core.errors import SwellError
from swell.core.registry import resolve
from swell.core.stopping import Stopping
from swell.distributed.devices import on_device
from swell.distributed.partition import load_balance
from swell.formats.csr import CSRMatrix
from swell.krylov.gmres import GMRES

METHOD = f"gmres(restart={RESTART})"
WARM_UP = "warm-up"


def measure(ranks, settings):
    """Yield the records (dicts of results); every rank yields all of them. ``settings``: the dict from ``across``."""
    with on_device(ranks, settings["device"])[0].active():
        for block in sorted({block for *_, block in settings["systems"]}):
            if ranks.rank == 0:
                engine.tell(f"ranks: {ranks.size}: compiling kernels that are not in the cache, blocks of {block}")
            small = gallery.coupled_transport((4, 4, 2 * ranks.size), block)
            A = distributed.scatter(ranks, small, device=settings["device"], block=block)
            list(System(WARM_UP, A, block, settings).measured())
        for name, path, block in settings["systems"]:
            A = distributed.read(ranks, path, device=settings["device"], partition=settings["partition"], block=block)
            yield from System(name, A, block, settings).measured()


class System(scaling.System):
    """One matrix across the ranks, in whole blocks of ``block`` rows."""

    def __init__(self, name, A, block, settings):
        super().__init__(name, settings["scaling"], A, settings)
        self.block = block

    def record(self, kind, measured):
        return {**super().record(kind, measured), "benchmark": f"block_gmres {kind}", "block": self.block}

    def measured(self):
        """Yield all records (dicts of results) of this matrix."""
        self.say("product, iteration without preconditioner")
        yield self.product()
        yield self.iteration(METHOD)
        self.say("inner products and updates")
        yield from self.orthogonalisation()
        yield from self.preconditioned()

    def orthogonalisation(self):
        """Yield the records of figures 8 and 9: means over the ranks, of each rank's own rows."""
        for settings, times in cases.orthogonalisations(self.given.own, self.b):
            every = self.ranks.allgather(times)
            yield self.record("orthogonalisation", {
                "batch": settings.batch or RESTART, "basis": settings.basis,
                **{part: statistics.mean(of_rank[part] for of_rank in every) for part in times}})

    def preconditioned(self):
        """Yield the records of tables 2 to 4, one for each preconditioner."""
        exact = cases.factors(self.block, "exact")
        for label, text in {EXACT: exact, **cases.inexact(self.block, self.settings["sweeps"])}.items():
            yield from self._solved(label, lambda: resolve("precond", text).build(self.given.own))
        if self.space.name == "cpu":
            return
        if self.settings["cusparse"]:
            for label, solves in BY_CUSPARSE.items():
                yield from self._solved(label, lambda: solves(self.given.own, self.block))
        if self.settings["host"]:
            yield from self._solved(HOST, lambda: self._on_host(exact), self.settings["cpu-iterations"])

    def _on_host(self, text):
        """Return a preconditioner of the host, built from this rank's diagonal block, for the GPU's vectors."""
        host = CSRMatrix.from_scipy(self.given.own.to_scipy(), make_space("cpu"), self.block)
        return cases.OnHost(resolve("precond", text).build(host), self.space.local)

    def _solved(self, label, build, limit=None):
        """Yield the record of one preconditioner, or say why it cannot be built. ``build``: returns this rank's;
        ``limit``: most iterations; None: ``--maxiter``."""
        self.say(label)
        ranks, rtol = self.ranks, cases.tolerance(self.name)
        try:
            with ranks.agreed():
                with engine.stopwatch(self.space.local) as setup:
                    M = build()
        except SwellError as error:
            self.say(f"{label} is left out: {error}")
            return
        steps = ranks.allgather(min(cases.steps_of_a_restart(self.space.local, M)))
        solver = swell.prepare(self.given, method=GMRES(RESTART, lengthen=False), M=M, format=self.format,
                               b_like=self.b, stopping=Stopping(
                                   rtol=rtol, relative_to="r0", maxiter=limit or self.settings["maxiter"]))
        solver.solve(self.b, monitor=engine.a_few)
        result = solver.solve(self.b)
        yield self.record("solve", {
            "preconditioner": label, "rtol": rtol, "reason": result.reason.name, "iterations": result.iterations,
            "residual": result.residual, "least": min(steps), "largest": max(steps), "mean": statistics.mean(steps),
            "load_balance": load_balance(steps), "seconds": max(ranks.allgather(result.timings["solve"])),
            "setup_seconds": max(ranks.allgather(setup[0])), "bytes": int(np.max(ranks.allgather(M.nbytes)))})


if __name__ == "__main__":
    sys.exit(scaling.main(measure))
