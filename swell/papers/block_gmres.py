"""Ma, Hu, Yuan and Liu, "Developing a Multi-GPU-Enabled Preconditioned GMRES with Inexact Triangular Solves for Block
Sparse Matrices", 2021.

Its GPUs are two to sixteen Tesla K20, its CPUs ten cores of 2013. swell's records are of one to four H100, and PETSc's
of the 32 or 64 ranks of another host that were fastest. Table 3's section for four sweeps repeats rows of table 2.
"""
from __future__ import annotations

from swell.papers.evidence import Part, latest
from swell.papers.paper import Conclusion, Item, Paper
from swell.papers.verdict import all_at_least, all_at_most, at_least, judged, known, ratio, some, untested

PARTS = (
    Part("solves here", "block-gmres", "block-gmres --matrices atmosmodd~:20000/4,coupled_transport4:20000"),
    Part("ranks", "", stored="h100_block_gmres_four.jsonl"),
    Part("cuSPARSE", "", stored="h100_block_gmres_ranks.jsonl"),
)
SIZES = {"atmosmodd~/4": (1270432, 4), "thermal2~:300000/5": (1228045, 5), "ecology2~:300000/2": (1585478, 2)}
EXACT, PETSC = "block ILU(0), exact", "PETSc, bjacobi with ILU(0), CPU"
RTOL = 1e-5
# Tables 2 to 4: T_gmres in ms on 2 to 8 GPUs: PETSc's exact solves on the host, cuSPARSE's, three (4: two) sweeps.
TIMES = {"Table 2, thermal2": ((2760, 7378, 1385), (2031, 6036, 1080), (1524, 4564, 800), (1168, 4012, 644)),
         "Table 3, atmosmodd": ((3311, 1886, 1814), (1453, 969, 824), (1085, 854, 661), (765, 741, 469)),
         "Table 4, atmosmodl": ((1628, 1236, 887), (944, 768, 497), (690, 656, 382), (559, 621, 327))}


def _records(evidence, kind, part="ranks"):
    """Return the records of one kind, such as "product", of a part; on one device the kind is "". Only strong scaling,
    as in the paper."""
    return [r for r in evidence[part].records if r["benchmark"] == f"block_gmres {kind}".rstrip()
            and r.get("scaling", "strong") == "strong"]


def _most(evidence):
    """Return the largest number of GPUs that records have; None without records."""
    return max((r["ranks"] for r in _records(evidence, "product")), default=None)


def _solves(evidence, part="ranks") -> dict:
    """Return {(matrix, preconditioner, ranks): record} of the solves to 1e-5 that have converged."""
    found = [r for r in _records(evidence, "solve", part) if r["rtol"] == RTOL and r["reason"] == "CONVERGED"]
    return latest(found, "matrix", "preconditioner", "ranks")


def _sweeps(name):
    """Return the number of sweeps that a preconditioner's name has, or None."""
    words = name.split()
    return int(words[-2]) if words[-1].startswith("sweep") else None


def matrices(evidence):
    """Yield the Lines of table 1: rows of the matrices that stand for the paper's."""
    found = {r["matrix"]: r for r in _records(evidence, "product")}
    for name, (rows, block) in SIZES.items():
        r = found.get(name)
        if r is None:
            yield untested(f"{name}: rows", rows)
        else:
            yield judged(f"{name}: rows, and rows of a block", f"{rows}, {block}", f"{r['n']}, {r['block']}",
                         "the same block, rows within 5 %", r["block"] == block and abs(r["n"] / rows - 1) <= 0.05,
                         evidence["ranks"].source)


def _batches(evidence, field, few, many) -> dict:
    """Return {matrix: time with ``few`` vectors a launch / with ``many``} on the most GPUs; ``field``: inner_products
    or updates."""
    most = _most(evidence)
    found = latest([r for r in _records(evidence, "orthogonalisation") if r["ranks"] == most and r["basis"] == "full"],
                   "matrix", "batch")
    return {name: ratio(r[field], found[name, many][field]) for (name, batch), r in found.items()
            if batch == few and (name, many) in found}


def _each(what, paper, values, bound, evidence):
    """Return a Line for each matrix: its value is at least ``bound``."""
    return some((at_least(f"{name}: {what}", paper, value, bound, evidence["ranks"].source)
                 for name, value in values.items()), what, paper)


def inner_products(evidence):
    """Yield the Lines of figure 8."""
    return _each("inner products, batches of 2 / of 4", "above 1", _batches(evidence, "inner_products", 2, 4), 1,
                 evidence)


def updates(evidence):
    """Yield the Lines of figure 9: updates one by one, as cublasDaxpy does them, over batches of 8."""
    return _each("updates one by one / in batches of 8", "over 2.5", _batches(evidence, "updates", 1, 8), 2.5, evidence)


def _overlap(evidence) -> dict:
    """Return {matrix: time of a product without overlap / with it} on the most GPUs."""
    most = _most(evidence)
    return {r["matrix"]: ratio(r["seconds_without_overlap"], r["seconds"]) for r in _records(evidence, "product")
            if r["ranks"] == most}


def overlap(evidence):
    """Yield the Lines of figure 10."""
    return _each("a product without overlap / with it", "above 1", _overlap(evidence), 1, evidence)


def _efficiency(evidence) -> dict:
    """Return {matrix: parallel efficiency of an iteration on the most GPUs, relative to two}."""
    most, found = _most(evidence), latest(_records(evidence, "iteration"), "matrix", "ranks")
    return {name: ratio(2 * found[name, 2]["seconds"], most * r["seconds"]) for (name, ranks), r in found.items()
            if ranks == most and (name, 2) in found}


def scaling(evidence):
    """Yield the Lines of figure 11."""
    return _each("parallel efficiency of an iteration, relative to two GPUs", "above 0.5 (atmosmodd, 16 GPUs), 0.36 "
                 "(thermal2)", _efficiency(evidence), 0.5, evidence)


def _faster(evidence, part, exact) -> dict:
    """Return {(matrix, ranks): time to 1e-5 with exact solves / with the best number of sweeps}.

    ``exact``: the beginning of the names of the preconditioners with exact solves; the fastest counts."""
    inexact, exactly = {}, {}
    for (name, precond, ranks), r in _solves(evidence, part).items():
        best = exactly if precond.startswith(exact) else inexact if _sweeps(precond) else None
        if best is not None:
            best[name, ranks] = min(best.get((name, ranks), r["seconds"]), r["seconds"])
    return {key: ratio(exactly[key], seconds) for key, seconds in inexact.items() if key in exactly}


def over_cusparse(evidence) -> dict:
    """Return {(matrix, ranks): time with cuSPARSE's exact solves / with the best number of sweeps}."""
    return _faster(evidence, "cuSPARSE", "cuSPARSE")


def over_exact(evidence) -> dict:
    """Return {(matrix, ranks): time with swell's exact solves / with the best number of sweeps}."""
    return _faster(evidence, "ranks", EXACT)


def tables(evidence):
    """Yield the Lines of tables 2 to 4: times with exact and inexact solves on GPUs."""
    paper = "; ".join(f"{title}: {', '.join(f'{exact / sweeps:.2f}' for _, exact, sweeps in rows)}"
                      for title, rows in TIMES.items())
    yield from some((at_least(f"{name}, GPUs: {ranks}: cuSPARSE's exact solves / the best sweeps", paper, value, 1,
                              evidence["cuSPARSE"].source) for (name, ranks), value in over_cusparse(evidence).items()),
                    "cuSPARSE's exact solves / the best sweeps", paper)
    for (name, ranks), value in over_exact(evidence).items():
        yield at_least(f"{name}, GPUs: {ranks}: swell's exact solves / the best sweeps", "", value, 1,
                       evidence["ranks"].source)


def _counts(evidence) -> dict:
    """Return {(part, matrix, ranks): {sweeps, or 0 for exact solves: iterations to 1e-5}}."""
    counts = {}
    for part, kind in (("ranks", "solve"), ("solves here", "")):
        for r in _records(evidence, kind, part):
            sweeps = 0 if r.get("preconditioner") == EXACT else _sweeps(r.get("preconditioner", "x x"))
            if sweeps is not None and r["rtol"] == RTOL and r["reason"] == "CONVERGED":
                counts.setdefault((part, r["matrix"], r.get("ranks", 1)), {})[sweeps] = r["iterations"]
    return {key: of for key, of in counts.items() if 0 in of and len(of) > 1}


def iterations(evidence):
    """Yield Lines on the iterations of tables 2 to 4: more with fewer sweeps, most with exact solves' number."""
    found = _counts(evidence)
    for (part, name, ranks), by_sweeps in found.items():
        few, many = (pick(k for k in by_sweeps if k) for pick in (min, max))
        yield judged(f"{name}, {ranks} ranks: iterations with {few} and {many} sweeps, and exact", "100, 89, 86 "
                     "(thermal2, 3 and 5 sweeps)", f"{by_sweeps[few]}, {by_sweeps[many]}, {by_sweeps[0]}",
                     "they do not increase", by_sweeps[few] >= by_sweeps[many] >= by_sweeps[0], evidence[part].source)
    if not found:
        yield untested("iterations with sweeps and exact", "decreasing")


def best_sweeps(evidence):
    """Yield the Lines of figure 12: the number of sweeps with the least time lies inside."""
    times, most = {}, _most(evidence)
    for (name, precond, ranks), r in _solves(evidence).items():
        if _sweeps(precond) and ranks == most:
            times.setdefault(name, {})[_sweeps(precond)] = r["seconds"]
    for name, by_sweeps in times.items():
        best = min(by_sweeps, key=by_sweeps.get)
        yield judged(f"{name}: the best number of sweeps", "6 of 1 to 8 (venkat25)", best, "neither the least nor the "
                     f"most of {', '.join(map(str, sorted(by_sweeps)))}", min(by_sweeps) < best < max(by_sweeps),
                     evidence["ranks"].source)
    if not times:
        yield untested("the best number of sweeps", "6 (venkat25)")


def _over_cpus(evidence) -> dict:
    """Return {matrix: PETSc's least time on CPUs / the best time on the most GPUs}."""
    found, most, cpu, gpu = _solves(evidence), _most(evidence), {}, {}
    for (name, precond, ranks), r in found.items():
        if precond == PETSC:
            cpu[name] = min(cpu.get(name, r["seconds"]), r["seconds"])
        elif ranks == most:
            gpu[name] = min(gpu.get(name, r["seconds"]), r["seconds"])
    return {name: ratio(cpu[name], gpu[name]) for name in cpu if name in gpu}


def over_cpus(evidence):
    """Yield the Lines of figures 13 to 15."""
    return _each("PETSc on CPUs / GPUs", "4.4, 3.0, 2.97 (8 cores, 8 GPUs)", _over_cpus(evidence), 1, evidence)


def _judge(what, paper, values, bound, part="ranks"):
    """Return a judge: the least of ``values(evidence)``, a dict, is at least ``bound``. ``part``: its source."""
    return lambda evidence: all_at_least(what, paper, values(evidence).values(), bound, evidence[part].source)


def _some(what, paper, values, bound):
    """Return a judge: the largest of ``values(evidence)``, a dict, is at least ``bound``."""
    return lambda evidence: at_least(what, paper, max(known(values(evidence).values()), default=None), bound,
                                     evidence["ranks"].source)


def more_iterations(evidence):
    """Judge: inexact solves cost iterations. The share of cases where iterations do not increase with sweeps."""
    lines = [line for line in iterations(evidence) if line.ours]
    share = ratio(sum(line.verdict == "reproduced" for line in lines), len(lines))
    return at_least("share of systems whose iterations fall with sweeps, to those of exact solves", "all", share, 1,
                    "; ".join(dict.fromkeys(line.source for line in lines)))


def balance(evidence):
    """Judge: sweeps balance the load. The largest over the mean time of the ranks, with sweeps."""
    most = _most(evidence)
    found = [ratio(r["largest"], r["mean"]) for (_, precond, ranks), r in _solves(evidence).items()
             if _sweeps(precond) and ranks == most]
    return all_at_most("largest / mean time of the ranks' sweeps", 1.1, found, 1.1, evidence["ranks"].source)


THE_PAPER = Paper(
    "block-gmres", "Developing a Multi-GPU-Enabled Preconditioned GMRES with Inexact Triangular Solves for Block "
    "Sparse Matrices",
    "Matrices are generated with the sizes and blocks of SuiteSparse's, or are block systems of swell's gallery. GPUs "
    "are one to four H100, the paper's two to sixteen K20. Sweeps start from zero with two buffers: they are linear.",
    PARTS,
    (Item("Table 1 and figure 7: matrices", "five matrices in blocks of 2 to 5", matrices),
     Item("Figure 8: inner products in batches", "batches of 4 are faster than batches of 2", inner_products),
     Item("Figure 9: updates in batches", "over 2.5 times as fast as one by one", updates),
     Item("Figure 10: products with overlap", "overlap is faster, much so with large bandwidths", overlap),
     Item("Figure 11: strong scaling", "above 50 % efficiency for small bandwidths", scaling),
     Item("Tables 2 to 4: time to 1e-5", "inexact solves are faster than cuSPARSE's exact ones", tables),
     Item("Tables 2 to 4: iterations", "more than with exact solves, fewer with more sweeps", iterations),
     Item("Figure 12: number of sweeps", "a best number inside the range", best_sweeps),
     Item("Figures 13 to 15: GPUs beside CPUs", "up to 4.4 times as fast as PETSc on CPUs", over_cpus)),
    (Conclusion("Inner products in batches of 4 are faster than in batches of 2 (section 4.3)",
                _judge("least time in batches of 2 / of 4", "above 1",
                       lambda evidence: _batches(evidence, "inner_products", 2, 4), 1)),
     Conclusion("Updates in batches are over 2.5 times as fast in all cases (section 4.3)",
                _judge("least time one by one / in batches of 8", "2.5",
                       lambda evidence: _batches(evidence, "updates", 1, 8), 2.5)),
     Conclusion("Overlapping messages speeds up products (section 4.3)",
                _judge("least time without overlap / with it", "above 1", _overlap, 1)),
     Conclusion("Structured matrices keep an efficiency above 50 % (section 4.3)",
                _some("largest efficiency on the most GPUs, relative to two", "0.5", _efficiency, 0.5)),
     Conclusion("GMRES is faster with inexact solves than with cuSPARSE's exact ones (section 5)",
                _judge("least time with cuSPARSE / with the best sweeps", "above 1", over_cusparse, 1,
                       part="cuSPARSE")),
     Conclusion("Inexact solves cost iterations, fewer with more sweeps (section 4.3)", more_iterations),
     Conclusion("The load balance factor of sweeps is at most 1.1 (section 4.3)", balance),
     Conclusion("GPUs are up to 4.4 times as fast as PETSc on CPUs (section 5)",
                _some("largest time of PETSc on CPUs / on GPUs", "4.4", _over_cpus, 4.4)),
     Conclusion("Additive Schwarz with inexact solves (section 5, future work)",
                lambda evidence: untested("", "", "there is no record on several GPUs"))))
