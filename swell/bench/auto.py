"""Regret: swell's own choice of method beside every sensible configuration and beside other solvers.

For each system and each configuration the whole of ``swell.solve(A, b)`` is timed, with checks and setup, after kernels
are compiled: processor seconds of one thread on a CPU, seconds on a GPU. b is A times normal random numbers. The
minimum of a few calls counts. A configuration that fails, or takes longer than ``--limit`` seconds, counts as the
limit; with ``--quick`` it ends at twice the best time so far, which leaves the regret as it is. A factorisation whose
predicted time is over four times the limit is not started. Configurations combine the registry's methods and
preconditioners that fit the class of A; on a GPU without ILUT, which takes seconds there. Peers run in the same
process: SuperLU with both of its orderings and PyAMG on a CPU, CuPy's ``spsolve`` on a GPU.

Regret is the time of swell's own choice divided by the minimum over all solvers; a time counts as 5 ms at least. A
choice is beyond the bound if it takes longer than three times the peer's best LU plus 50 ms.
"""
from __future__ import annotations

import math
import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures import TimeoutError as TooLate
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict
from functools import lru_cache
from itertools import product
from unittest.mock import patch

import numpy as np

from swell.bench import engine
from swell.bench.families import FITTED, JUDGED
from swell.bench.systems import GENERATED
from swell.core.compilation import spent
from swell.core.devices import make_space
from swell.core.errors import InputError

RTOL = 1e-8
SEED = 5
FLOOR = 0.005           # seconds; shorter times count as this
CALLS, ENOUGH = 5, 0.5  # calls of a configuration at most; seconds after which no further call starts
ONE_THREAD = {"SWELL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
COMPILED = 0.02         # seconds; a call that compiled for longer does not count (loading kernels takes less)
LONG = 5.0              # seconds; a longer call is not repeated
SETUP_ROOM = 60         # seconds beyond twice the limit, for setups, which nothing can interrupt
OWN = "by itself"       # label of swell's own choice
HOPELESS = 4            # a factorisation, which nothing can interrupt, does not start if predicted to take 4 limits
LUS = "SuperLU COLAMD", "SuperLU MMD", "CuPy spsolve"       # the peers' factorisations
FACTORISATIONS = "direct", *LUS
HIGH = 3                # regrets above this are counted
BOUND = 3, 0.05         # a choice should take at most this multiple of the peers' LU, plus these seconds
QUICK = 2, 0.1          # --quick: a configuration's limit, as multiple of the best time so far; its least, seconds
SETS = {"standard": GENERATED, "fitted": FITTED, "judged": JUDGED}
KEPT = 200              # points of a residual history in a record

ILUT = "ilu(drop=0.001)"
SHARED = ("bicgstab", "idrs", "gmres")
SENSIBLE = {            # class of A: methods, preconditioners
    "positive diagonal": (("cg",), ("jacobi", "ic0", "gauss_seidel", "chebyshev", "amg")),
    "hermitian": (("minres", *SHARED), ("none", "jacobi", "ilu0", ILUT)),
    "complex symmetric": (("cocg", "bicgstab", "gmres"), ("jacobi", "ilu0", ILUT, "shifted_laplacian")),
    "general": (SHARED, ("jacobi", "ilu0", ILUT)),
}


def class_of(A) -> str:
    """Return the class of a SciPy matrix by its symmetry, a key of ``SENSIBLE``."""
    largest = abs(A).max()
    if abs(A - A.conj().T).max() <= 1e-12 * largest:
        return "positive diagonal" if (A.diagonal().real > 0).all() else "hermitian"
    return "complex symmetric" if abs(A - A.T).max() <= 1e-12 * largest else "general"


def configurations(kind, complex_, device="cpu") -> dict:
    """Return {label: keyword arguments of ``swell.solve``} for a class of matrices (``kind``, a key of ``SENSIBLE``) on
    a device. ``complex_``: True for complex matrices."""
    methods, preconds = SENSIBLE[kind]
    options = {f"{m} {p}": {"method": m, "precond": p} for m, p in product(methods, preconds)
               if not (m == "minres" and p.startswith("ilu")) and not (complex_ and p == "amg")
               and not (p == ILUT and (m == "cocg" or device != "cpu"))}
    if device != "cpu" and kind == "positive diagonal":
        options["resident_cg"] = {"method": "resident_cg", "scaling": "jacobi"}
    return options | {"direct": {"method": "direct"}}


def peers(device) -> tuple[str, ...]:
    """Return the labels of the other libraries' solvers on a device."""
    return ("SuperLU COLAMD", "SuperLU MMD", "PyAMG RS", "PyAMG SA") if device == "cpu" else ("CuPy spsolve",)


@lru_cache(1)
def load(system: str):
    """Make or read a system, by a name in ``SETS`` or a file's path; return (A, b). The last one is cached."""
    made = next((systems[system] for systems in SETS.values() if system in systems), None)
    A = made() if made else next(engine.files([system]))[1]
    x = np.random.default_rng(SEED).standard_normal(A.shape[0])
    return A, A @ x


def measure(system, label, options, device, limit) -> dict:
    """Measure one configuration on one system, in the worker process; return the record, a dict. ``limit``: seconds
    that a solve may take.

    ``options`` are keyword arguments of ``swell.solve``, or None for the other library's solver ``label``.
    """
    A, b = load(system)
    record = {"benchmark": "auto", "system": system, "n": A.shape[0], "nnz": A.nnz, "dtype": A.dtype.name,
              "label": label, "seconds": math.inf}
    try:
        run = _peer(label, A, b, device, limit) if options is None else _ours(A, b, options, device, limit)
    except Exception as error:                   # any error of a solver is recorded as its failure on this system
        return record | {"failure": f"{type(error).__name__}: {error}"[:200]}
    times, began = [], time.perf_counter()
    while len(times) < CALLS and (len(times) < 2 or time.perf_counter() - began < ENOUGH):
        start = _clock(device)
        try:
            timing = run()
        except Exception as error:
            return record | {"failure": f"{type(error).__name__}: {error}"[:200]}
        times.append(_clock(device) - start)
        if timing.pop("compiled", 0) > COMPILED:
            times.pop()
        elif times[-1] > LONG:                   # a first call may load kernels, which is little beside this time
            break
    return record | timing | {"seconds": min(times) if timing["residual"] <= 1.01 * RTOL else math.inf,
                              "took": min(times)}


def _clock(device):
    return time.process_time() if device == "cpu" else time.perf_counter()


def _ours(A, b, options, device, limit):
    """Return a function without arguments that solves A x = b by swell and returns a dict, fields of the record.
    ``options``: keyword arguments of ``swell.solve``; ``limit``: seconds that a solve may take."""
    import swell
    from swell.bench.amg import on_device
    space = make_space(device)
    there, rhs = on_device(space, A), space.xp.asarray(b)

    def call():
        start, before = _clock(device), spent()
        r = swell.solve(there, rhs, rtol=RTOL, device=device, maxiter=1_000_000, **options,
                        monitor=lambda k, norm: _clock(device) - start > limit + spent() - before)
        places = np.unique(np.linspace(0, r.history.size - 1, KEPT).astype(int))
        return {"residual": r.residual, "iterations": r.iterations, "reason": r.reason.name, "compiled":
                spent() - before, "method": r.method, "precond": r.precond, "setup": r.timings["setup"],
                "solve": r.timings["solve"], "timings": r.timings, "products": r.products,
                "format": r.format, "history": [places.tolist(), r.history[places].tolist()],
                "attempts": [(a.method, a.precond, a.iterations, a.reason.name) for a in r.attempts],
                "prediction": _prediction(r), "choices": [asdict(c) for c in r.choices]}
    return call


def _prediction(r) -> float:
    """Return the ratio of actual to predicted seconds for the choice that converged in the Result r; NaN without a
    prediction."""
    cost = next((c for c in r.choices if c.outcome == "CONVERGED"), None)
    if cost is None:
        return math.nan
    predicted = cost.setup + cost.solve if math.isnan(cost.probed) else cost.probed
    return (cost.spent_setup + cost.spent_solve) / predicted


def _peer(label, A, b, device, limit):
    """Return a function without arguments that solves A x = b by the other library's solver ``label`` and returns a
    dict, fields of the record."""
    if device != "cpu":
        import cupy
        import cupyx.scipy.sparse
        from cupyx.scipy.sparse.linalg import spsolve
        there, rhs = cupyx.scipy.sparse.csr_matrix(A), cupy.asarray(b)
        return lambda: _told(A, b, cupy.asnumpy(spsolve(there, rhs)))
    if label.startswith("SuperLU"):
        from scipy.sparse.linalg import splu
        spec = "COLAMD" if label.endswith("COLAMD") else "MMD_AT_PLUS_A"
        return lambda: _told(A, b, splu(A.tocsc(), permc_spec=spec).solve(b))
    import pyamg
    from swell.bench.amg import PEERS
    make, symmetric = getattr(pyamg, PEERS[label]), class_of(A) == "positive diagonal"
    if not A.diagonal().all():
        raise ValueError("zeros on the diagonal, by which PyAMG's smoothers divide")

    def call():
        start = time.process_time()

        def late(x):
            if time.process_time() - start > limit:
                raise TimeoutError(f"over {limit:g} s")

        method = "cg" if symmetric else "gmres"
        return _told(A, b, make(A).solve(b, tol=RTOL, accel=method, maxiter=1000, callback=late))
    return call


def _told(A, b, x):
    return {"residual": engine.true_residual(A, x, b)}


class Worker:
    """A process that measures; a new one replaces it if it takes too long or dies."""

    def __init__(self, device, limit):
        self.device, self.limit, self._pool = device, limit, None

    def measure(self, system, label, options, limit=None) -> dict:
        """Call ``measure(system, label, options, ...)`` in the worker process. Return its record, or a record whose
        ``failure`` says how the process ended. ``limit``: of this solve in seconds, default: of all."""
        limit = limit or self.limit
        if self._pool is None:
            self._pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))
        with patch.dict(os.environ, ONE_THREAD):                 # the process starts at its first task
            task = self._pool.submit(measure, system, label, options, self.device, limit)
        try:
            return task.result(2 * limit + SETUP_ROOM)
        except (TooLate, BrokenProcessPool) as error:
            for process in self._pool._processes.values():
                process.kill()
            self._pool = None
            return {"benchmark": "auto", "system": system, "label": label, "seconds": math.inf,
                    "failure": type(error).__name__}

    def close(self):
        """End the worker process."""
        if self._pool is not None:
            self._pool.shutdown()


def run(arguments) -> int:
    """Run the benchmark; return the exit status. ``arguments``: the parsed command line."""
    space = make_space(arguments.device)
    findings = engine.Findings("swell bench auto", space, arguments)
    parts = [part for part in (arguments.only or "").split(",") if part]
    sets = arguments.sets.split(",")
    if unknown := [name for name in sets if name not in SETS]:
        raise InputError(f"--sets: there is no {unknown[0]!r}; expected some of {', '.join(SETS)}")
    kinds = {name: kind for kind in sets for name in SETS[kind]}
    kinds |= dict.fromkeys(arguments.files or (), "files")
    systems = [s for s in kinds if not parts or any(part in s for part in parts)]
    worker, rows = Worker(arguments.device, arguments.limit), []
    for system in systems:
        records = findings.take(_system(worker, space, system, arguments.quick), unwritten=("history",))
        rows.append(_regret(records, arguments.limit) | {"set": kinds[system]})
        engine.tell(f"{system}: {rows[-1]['regret']:.2f}")
    worker.close()
    findings.table(f"Seconds to a true {RTOL:g}, and regret", HEADER,
                   [_row(r) for r in sorted(rows, key=lambda r: -r["regret"])])
    findings.table("Regret, geometric mean, median and worst", SUMMARY, _summary(rows))
    findings.report()
    return 0


HEADER = ("system", "class", "n", "by itself, s", "it took", "best of swell, s", "which", "best peer, s", "which",
          "regret", "beside swell's best", "actual over predicted")
SUMMARY = ("systems", "count", "regret", "median", "worst", f"above {HIGH}", f"beyond {BOUND[0]} LU + {BOUND[1]} s",
           "beside swell's best", "prediction off by, median")


def _system(worker, space, system, quick=False):
    """Yield the records (dicts) of one system, measured by ``worker``, a Worker; swell's own choice and factorisations
    first. ``quick``: end configurations that are slower than the best so far."""
    A, _ = load(system)
    load.cache_clear()
    kind = class_of(A)
    jobs = {OWN: {}, **configurations(kind, A.dtype.kind == "c", space.name)}
    jobs |= {label: None for label in peers(space.name)}
    hopeless, best = foretold(space, A) > HOPELESS * worker.limit, worker.limit
    for label in sorted(jobs, key=lambda label: (label != OWN, label not in FACTORISATIONS)):
        limit = min(worker.limit, max(QUICK[0] * best, QUICK[1])) if quick and label != OWN else worker.limit
        if hopeless and label in FACTORISATIONS:
            record = {"benchmark": "auto", "system": system, "label": label, "seconds": math.inf,
                      "failure": "left out: its analysis foretells far more than the limit"}
        else:
            record = worker.measure(system, label, jobs[label], limit)
        best = min(best, record["seconds"])
        yield {**record, "class": kind, "n": A.shape[0], "nnz": A.nnz, **engine.circumstances(space)}


def foretold(space, A) -> float:
    """Return the predicted seconds of a sparse factorisation of the SciPy matrix A."""
    from swell.advisor.predictions import direct
    from swell.advisor.machine import Machine
    from swell.inputs import read_matrix
    return direct(read_matrix(A, "cpu").A, Machine(), math.inf).setup


def _regret(records, limit) -> dict:
    """Return a dict that sums up one system's records: its regret (seconds of swell's own choice over the best
    measured), the best of swell and of the peers, and their seconds. A failure counts as ``limit`` seconds."""
    def fastest(labels):
        return min(((max(min(r["seconds"], limit), FLOOR), r["label"]) for r in records if r["label"] in labels),
                   default=(limit, "none"))
    labels = {r["label"] for r in records}
    others = {label for label in labels if label in (*peers("cpu"), *peers("cuda"))}
    choice = next(r for r in records if r["label"] == OWN)
    swell_best, peer, seconds = fastest(labels - others), fastest(others), max(min(choice["seconds"], limit), FLOOR)
    lu = min((r["seconds"] for r in records if r["label"] in LUS), default=math.inf)
    return {"system": choice["system"].rsplit("/", 1)[-1], "class": choice["class"], "n": choice["n"],
            "seconds": seconds, "took": f"{choice.get('method', 'failed')}, {choice.get('precond', '')}",
            "mine": swell_best, "peer": peer, "regret": seconds / min(swell_best, peer)[0],
            "inner": seconds / swell_best[0], "beyond": seconds > BOUND[0] * lu + BOUND[1],
            "prediction": choice.get("prediction", math.nan)}


def _row(r):
    return (r["system"], r["class"], r["n"], f"{r['seconds']:.3g}", r["took"], f"{r['mine'][0]:.3g}", r["mine"][1],
            f"{r['peer'][0]:.3g}", r["peer"][1], f"{r['regret']:.2f}", f"{r['inner']:.2f}",
            engine.cell(r["prediction"], 2))


def _summary(rows):
    """Return the rows of the summary table: one for all systems, one for each set and class. ``rows``: the dicts of
    ``_regret``, each with its ``set``."""
    groups = {"all": rows, **{name: [r for r in rows if name in (r["set"], r["class"])]
                              for name in (*SETS, "files", *SENSIBLE)}}
    return [(name, len(some), *(f"{value:.2f}" for value in (
        _mean(r["regret"] for r in some), float(np.median([r["regret"] for r in some])),
        max(r["regret"] for r in some))), sum(r["regret"] > HIGH for r in some), sum(r["beyond"] for r in some),
        *(f"{value:.2f}" for value in (_mean(r["inner"] for r in some),
                                       float(np.nanmedian([_off(r["prediction"]) for r in some])))))
            for name, some in groups.items() if some]


def _off(prediction) -> float:
    """Return the factor between predicted and actual seconds, at least 1, from their ratio; infinite for a ratio of 0,
    where no end was predicted."""
    return max(prediction, 1 / prediction) if prediction else math.inf


def _mean(values) -> float:
    """Return the geometric mean of positive values."""
    return math.exp(np.mean([math.log(v) for v in values]))
