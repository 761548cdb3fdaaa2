"""Cheik Ahamed and Magoulès, "Accelerated solution of Helmholtz equation with Iterative Krylov Methods on GPU".

Values are the paper's tables. Its meshes are not published: swell's have equally many unknowns in cavities of the same
kind. Iterations therefore only compare outcomes, and times compare CPU with GPU on each side.
"""
from __future__ import annotations

from swell.bench.helmholtz import FAMILIES, PAPER, on_cpu
from swell.papers.evidence import Part, latest
from swell.papers.paper import Conclusion, Item, Paper
from swell.papers.verdict import all_at_least, all_at_most, at_least, at_most, judged, ratio, untested
from swell.pde.helmholtz.table1 import MESHES

ALL, SMALL = ",".join(MESHES), "Audi3D-1,Audi3D-2,Twingo3D-0,Cylinder3D-0,Cylinder3D-1"
PARTS = (
    Part("vectors here", "blas1 --dtypes complex128", "blas1 --dtypes complex128 --scale 0.1 --repeat 20"),
    Part("vectors", "blas1 --dtypes complex128", stored="h200_blas1.jsonl"),
    Part("products here", "spmv --complex --formats csr", "spmv --complex --formats csr --scale 0.1 --repeat 10"),
    Part("products", "spmv --complex --formats csr", stored="h200_spmv.jsonl"),
    Part("solves here", f"helmholtz --preconds jacobi --repeat 1 --meshes {ALL}",
         f"helmholtz --preconds jacobi --repeat 1 --meshes {SMALL}"),
    Part("solves", "helmholtz --preconds jacobi --cpu-iterations 10", stored="h200_helmholtz.jsonl"),
)
# table: (operation, {size: CPU time / time on the Tesla K20c})
VECTORS = {
    3: ("assign", {100_000: 1.53, 1_000_000: 9.49, 15_000_000: 10.73}),
    4: ("scale", {100_000: 11.56, 1_000_000: 28.75, 15_000_000: 38.40}),
    5: ("axpy", {100_000: 9.77, 1_000_000: 19.92, 15_000_000: 26.00}),
    6: ("multiply", {100_000: 14.92, 1_000_000: 36.71, 15_000_000: 38.00}),
    7: ("dot", {100_000: 7.27, 1_000_000: 21.64, 15_000_000: 24.70}),
    8: ("norm", {100_000: 13.28, 1_000_000: 38.83, 15_000_000: 52.00}),
}
LARGE, LARGEST = 1_000_000, 15_000_000
PRODUCT_MS = {"audi3d1~": 0.11, "audi3d2~": 0.37, "audi3d3~": 2.22, "audi3d4~": 18.33, "twingo3d0~": 0.28,
              "twingo3d1~": 1.79, "twingo3d2~": 14.29, "cylinder3d0~": 0.13, "cylinder3d1~": 0.53,
              "cylinder3d2~": 4.00}             # table 9: milliseconds on the Tesla K20c
SPEEDUP = {                                     # tables 10 to 12: CPU time / GPU time
    "bicgstab": {"Audi3D-1": 0.33, "Audi3D-2": 2.26, "Audi3D-3": 5.71, "Audi3D-4": 9.31, "Twingo3D-0": 1.84,
                 "Twingo3D-1": 5.14, "Twingo3D-2": 7.85, "Cylinder3D-0": 0.67, "Cylinder3D-1": 3.15,
                 "Cylinder3D-2": 6.52},
    "bicgstabl(l=8)": {"Audi3D-1": 0.27, "Audi3D-2": 1.82, "Audi3D-3": 5.77, "Audi3D-4": 8.85, "Twingo3D-0": 1.49,
                       "Twingo3D-1": 5.01, "Twingo3D-2": 7.89, "Cylinder3D-0": 0.50, "Cylinder3D-1": 2.79,
                       "Cylinder3D-2": 6.39},
    "tfqmr": {"Audi3D-1": 0.50, "Audi3D-2": 2.40, "Audi3D-3": 6.24, "Audi3D-4": 9.47, "Twingo3D-0": 2.14,
              "Twingo3D-1": 5.59, "Twingo3D-2": 8.37},
    "qmr": {"Cylinder3D-0": 0.85, "Cylinder3D-1": 4.25, "Cylinder3D-2": 7.23},
}
LIMIT = 1000                                    # iterations
# Table 2: the matrix that figure 4 stores, and the figure's IA.
EXAMPLE = ((3, 14, 0, 0, 0), (0, 8, 1, 0, 0), (2, 0, 6, 0, 0), (0, 4, 0, 2, -1), (0, 0, 9, 0, 7))
ROWS_BEGIN = [1, 3, 5, 7, 10, 12]


def meshes(evidence):
    """Yield a Line for each mesh of table 1: unknowns."""
    found = latest(evidence["solves here"].records + evidence["solves"].records, "problem")
    for name, (_, _, unknowns) in MESHES.items():
        record = found.get((name,))
        if record is None:
            yield untested(f"{name}: unknowns", unknowns)
        else:
            off = abs(record["n"] / unknowns - 1)
            yield judged(f"{name}: unknowns", unknowns, record["n"], "within 10 % of the paper's", off <= 0.1,
                         evidence["solves"].source)


def stored_example(evidence):
    """Yield the Line of figure 4: swell's CSR arrays of table 2's matrix."""
    import numpy as np
    import scipy.sparse as sp

    from swell.core.devices import make_space
    from swell.formats.csr import CSRMatrix
    space = make_space("cpu")
    with space.active():
        csr = CSRMatrix.from_scipy(sp.csr_matrix(np.array(EXAMPLE, float)), space).to_scipy()
    begin = [int(row) + 1 for row in csr.indptr]
    yield judged("IA, rows counted from 1", ROWS_BEGIN, begin, "equal", begin == ROWS_BEGIN, "this machine")


def ratios(evidence, operation) -> dict:
    """Return {size: NumPy's time on the GPU's host / time on the GPU} of one operation on complex numbers."""
    return {r["n"]: r["peer_mean_seconds"]["NumPy"] / r["mean_seconds"] for r in evidence["vectors"].records
            if (r["operation"], r["dtype"]) == (operation, "complex128") and r["device"].startswith("cuda")}


def vectors(number):
    """Return the comparison of one of the tables 3 to 8."""
    operation, paper = VECTORS[number]

    def compare(evidence):
        found, source = ratios(evidence, operation), evidence["vectors"].source
        for size, value in paper.items():
            yield _side(f"{size:,} entries: time on the CPU / on the GPU", value, found.get(size), source)
        yield at_least(f"{LARGEST:,} over {100_000:,} entries: growth of this ratio", paper[LARGEST] / paper[100_000],
                       ratio(found.get(LARGEST), found.get(100_000)), 1, source)
        here = [r for r in evidence["vectors here"].records if r["operation"] == operation]
        yield all_at_most("largest relative error against NumPy", "", [r["relative_error"] for r in here], 1e-14,
                          evidence["vectors here"].source)
    return compare


def _side(what, paper, value, source):
    """Return the Line of a ratio of times: the same device is faster."""
    if value is None:
        return untested(what, paper)
    return judged(what, paper, f"{value:.4g}", "on the same side of 1", (value > 1) == (paper > 1), source)


def products(evidence):
    """Yield the Lines of table 9: times on a GPU, and the ratio to SciPy's on a CPU for systems of one size."""
    gpu = {r["matrix"]: r for r in evidence["products"].records
           if r["dtype"] == "complex128" and r["device"].startswith("cuda") and r["format"] == "csr"}
    here = latest(evidence["products here"].records, "matrix", "n")
    for name, milliseconds in PRODUCT_MS.items():
        record = gpu.get(name)
        yield at_most(f"{name}: ms on a GPU", milliseconds, record and 1e3 * record["seconds"], milliseconds,
                      evidence["products"].source)
        ours = record and here.get((name, record["n"]))
        yield at_least(f"{name}: SciPy's time on this CPU / on a GPU", "more than 1",
                       ours and ours["scipy_mean_seconds"] / record["seconds"] if ours else None, 1,
                       evidence["products here"].source, "needs a CPU's time at full size: without --small")
    yield all_at_most("largest relative error against SciPy", "",
                      [r["relative_error"] for r in evidence["products here"].records], 1e-14,
                      evidence["products here"].source)


def speedups(evidence) -> dict:
    """Return {(problem, method): CPU time / GPU time of a solve with Jacobi's preconditioner}."""
    records = latest([r for r in evidence["solves"].records if r["precond"] == "jacobi" and "failure" not in r],
                     "problem", "method", "on")
    found = {}
    for (problem, method, on), cpu in records.items():
        gpu = records.get((problem, method, "cuda"))
        if on == "cpu" and gpu is not None:
            found[problem, method] = on_cpu(cpu, gpu)[0] / gpu["solve_seconds"]
    return found


def solves(family):
    """Return the comparison of one of the tables 10 to 12."""
    def compare(evidence):
        of_gpu = [r for r in evidence["solves"].records if r["on"] == "cuda"]
        found = latest([r for r in of_gpu + [r for r in evidence["solves here"].records if not r["cut"]]
                        if r["precond"] == "jacobi"], "problem", "method")
        on_gpu = speedups(evidence)
        for method, by_problem in PAPER.items():
            for problem, paper in by_problem.items():
                if not problem.startswith(family):
                    continue
                yield _ended(f"{problem}, {method}: iterations to 1e-9", paper, found.get((problem, method)), evidence)
                paper = SPEEDUP[method][problem]
                yield _side(f"{problem}, {method}: time on the CPU / on the GPU", paper, on_gpu.get((problem, method)),
                            evidence["solves"].source)
    return compare


def _ended(what, paper, record, evidence):
    """Return the Line that compares outcomes: both converge within 1000 iterations, or neither does."""
    if record is None or "failure" in record:
        return untested(what, paper)
    here = any(record is r for r in evidence["solves here"].records)
    ours = record["iterations"] if record["reason"] == "CONVERGED" else f"{record['reason']} at {record['iterations']}"
    return judged(what, paper, ours, "both converge within 1000 iterations, or neither does",
                  (record["reason"] == "CONVERGED") == (paper < LIMIT),
                  evidence["solves here" if here else "solves"].source)


def faster(evidence):
    """Judge: operations are faster on a GPU. The smallest ratio from a million entries on."""
    found = [value for operation, _ in VECTORS.values() for size, value in ratios(evidence, operation).items()
             if size >= LARGE]
    return all_at_least("smallest CPU time / GPU time from 1,000,000 entries on", "9.49", found, 1,
                        evidence["vectors"].source)


def dot(evidence):
    """Judge: the ratio of dot products is up to 27."""
    return at_least("largest CPU time / GPU time of (x, y)", "27 (26.1 in table 7)",
                    max(ratios(evidence, "dot").values(), default=None), 27, evidence["vectors"].source)


def ten_products(evidence):
    """Judge: the ratio of sparse products is up to 10."""
    found = [line for line in products(evidence) if "on this CPU" in line.what and line.ours]
    return at_least("largest SciPy time / GPU time", 10, max((float(line.ours) for line in found), default=None), 9.8,
                    evidence["products here"].source, "needs a CPU's time at full size: without --small")


def ten_solves(evidence):
    """Judge: the speed-up of solves is up to 10."""
    return at_least("largest CPU time / GPU time of a solve", "10 (9.47 in table 10)",
                    max(speedups(evidence).values(), default=None), 9.47, evidence["solves"].source)


def growing(evidence):
    """Judge: the speed-up grows with the mesh. The share of successive meshes where it does."""
    found, pairs = speedups(evidence), []
    for method, by_problem in SPEEDUP.items():
        for family in FAMILIES:
            of_family = [found[name, method] for name in by_problem if name.startswith(family) and
                         (name, method) in found]
            pairs += [b > a for a, b in zip(of_family, of_family[1:])]
    return at_least("share of successive meshes with a larger speed-up", "all", sum(pairs) / len(pairs) if pairs else
                    None, 1, evidence["solves"].source)


def robust(evidence):
    """Judge: the methods are robust. The share of solves of tables 10 to 12 that converge."""
    lines = [line for family in FAMILIES for line in solves(family)(evidence) if "iterations" in line.what]
    tested = [line for line in lines if line.ours]
    return at_least("share of the solves that converge within 1000 iterations",
                    f"{sum(float(line.paper) < LIMIT for line in lines)} of {len(lines)} in its own tables",
                    sum(line.ours.isdigit() for line in tested) / len(tested) if tested else None, 1,
                    evidence["solves"].source)


def _nothing(why):
    """Return a judge of what swell cannot test, because of ``why``."""
    return lambda evidence: untested("", "", why)


OPERATIONS = {3: "Table 3 and figure 5: assign", 4: "Table 4 and figure 6: scale", 5: "Table 5 and figure 7: axpy",
              6: "Table 6 and figure 8: element-wise product", 7: "Table 7 and figure 9: dot product",
              8: "Table 8 and figure 10: norm"}
THE_PAPER = Paper(
    "helmholtz", "Accelerated solution of Helmholtz equation with Iterative Krylov Methods on GPU",
    "The paper's meshes are not published: swell's have equally many unknowns in cavities of the same kind, so "
    "iterations compare outcomes only. Its CPU is one core of 2009, its GPU a Tesla K20c.",
    PARTS,
    (Item("Table 1 and figures 1 to 3: meshes", "ten meshes of a car, another car and a cylinder", meshes),
     Item("Table 2 and figure 4: CSR", "the arrays of a 5 × 5 matrix", stored_example),
     *(Item(title, "the GPU is faster, the more so the longer the vectors", vectors(number))
       for number, title in OPERATIONS.items()),
     Item("Table 9: sparse products", "the GPU is up to 9.8 times as fast", products),
     *(Item(title, "iterations with Jacobi's preconditioner, and speed-ups", solves(family))
       for family, title in FAMILIES.items())),
    (Conclusion("Vector operations on complex numbers are faster on a GPU (section 5)", faster),
     Conclusion("Dot products are up to 27 times as fast (abstract)", dot),
     Conclusion("Sparse products are up to 10 times as fast (abstract)", ten_products),
     Conclusion("Solvers are up to 10 times as fast (abstract)", ten_solves),
     Conclusion("The speed-up grows with the size in all cases (section 7)", growing),
     Conclusion("Krylov methods on a GPU are robust (section 8)", robust),
     Conclusion("The Tesla K20c is a little faster than the GTX 570 (section 5)",
                _nothing("there are no records of these GPUs")),
     Conclusion("Too fine a mesh does not fit into a GPU's memory (section 7)",
                _nothing("the largest mesh fits; larger ones have no record"))))
