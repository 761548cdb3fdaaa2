"""Section 3.1 of the thesis of lu_bddc.py: decomposers and solvers of dense matrices.

Values are the thesis' tables and text; its figures have no numbers. Its matrices are SuiteSparse's, BDDC's, and random
ones by its Appendix F. swell generates the last two kinds, and for c-22 a diagonal with a border.
"""
from __future__ import annotations

import math
import re
import statistics
from itertools import pairwise

from swell.bench.dense_figures import WIDTH, kind_of
from swell.papers.evidence import latest
from swell.papers.verdict import NO_RECORD, all_at_least, all_at_most, at_least, at_most, judged, ratio, some, untested

GPU, HERE, SECTIONS = ("random", "bordered"), ("dense here",), ("sections here",)
COMPATIBLE = {"cm": ("ss", "is", "trsm"), "getrf": ("trsm", "getrs"), "icm": ("ss", "is", "trsm"),
              "pcm": ("ss", "is", "trsm")}                   # table 2.3
MATRICES = {                                                 # table 3.2: rows, the kind of swell's matrix
    "poc-8_4_2-1": (230, "bordered"), "Cejka558": (558, "random"), "poc-24_2_2": (1814, "bordered"),
    "Cejka2599": (2599, "random"), "poc-32_2_2": (3182, "bordered"), "c-22": (3792, "border"),
    "Cejka4156": (4156, "random"), "freeFlyingRobot_9": (4778, ""), "Cejka6574": (6574, "random"), "fp": (7548, ""),
    "Cejka8385": (8385, "random"), "nd3k": (9000, ""), "Cejka10135": (10135, "random"), "msc10848": (10848, ""),
    "sinc15": (11532, "")}
COLUMNS = ("Getrf()", "CM()", "ICM()", "PCM(x=8)")           # tables 3.4 and 3.5: seconds
SECONDS = {
    "float64": {"poc-8_4_2-1": (0.0012, 0.0026, 0.0028, 0.0079), "Cejka558": (0.0025, 0.0431, 0.1536, 0.0328),
                "poc-24_2_2": (0.0089, 1.6072, 0.1233, 0.2498), "Cejka2599": (0.0138, 4.9971, 2.5359, 0.7432),
                "poc-32_2_2": (0.0172, 10.0834, 0.3185, 1.4109), "c-22": (0.0211, 17.0976, 1.3125, 2.1916),
                "Cejka4156": (0.0252, 22.8199, 9.3951, 2.7534),
                "freeFlyingRobot_9": (0.0309, 39.4910, 7.5774, 3.7317),
                "Cejka6574": (0.0536, 102.0215, 48.6333, 7.3379), "fp": (0.0613, 149.0108, 10.3767, 10.0030),
                "Cejka8385": (0.0692, 250.6601, 123.9475, 12.6962), "nd3k": (0.0728, 261.3578, 108.3278, 13.9076),
                "Cejka10135": (0.0981, 1282.0280, 243.4973, 18.8531),
                "msc10848": (0.1037, 653.4609, 231.3460, 20.6770), "sinc15": (0.1237, 536.8241, 290.3724, 24.3491)},
    "float32": {"poc-8_4_2-1": (0.0012, 0.0028, 0.0021, 0.0065), "Cejka558": (0.0024, 0.0441, 0.1347, 0.0244),
                "poc-24_2_2": (0.0079, 1.6099, 0.0684, 0.1509), "Cejka2599": (0.0120, 4.8680, 1.8898, 0.2926),
                "poc-32_2_2": (0.0221, 8.7752, 0.1594, 0.4945), "c-22": (0.0199, 15.2680, 0.8297, 0.9173),
                "Cejka4156": (0.0210, 21.4828, 6.4306, 1.2250),
                "freeFlyingRobot_9": (0.0276, 36.1487, 5.1294, 1.7961),
                "Cejka6574": (0.0412, 90.2590, 32.6642, 3.7836), "fp": (0.0546, 159.8940, 6.0036, 5.0968),
                "Cejka8385": (0.0727, 276.4194, 82.7072, 6.2676), "nd3k": (0.0834, 225.9154, 70.8304, 7.4513),
                "Cejka10135": (0.0859, 374.2370, 162.5578, 9.5356),
                "msc10848": (0.0917, 481.6722, 155.3406, 11.6422), "sinc15": (0.1075, 517.0449, math.nan, 12.6665)}}
TYPES = {"float64": "double", "float32": "single"}
TOTALS = {"Getrf()": (1.41, 1.30), "CM()": (5034.38, 3742.05), "ICM(x=8)": (2751.50, 1459.26),
          "ICM(x=16)": (2138.09, 984.42), "ICM()": (1669.74, 920.30), "PCM(x=8)": (221.59, 113.10),
          "PCM(x=16)": (240.95, 133.38), "PCM()": (387.39, 275.34)}      # table 3.7: seconds, double and single
SOLVER_TOTALS = {"SS()": (120.963, 114.645), "Trsm()": (0.479, 0.209), "Getrs()": (0.505, 0.274),
                 "IS(x=8)": (224.219, 115.321), "IS()": (351.020, 279.547), "IS(x=128)": (561.879, 414.728)}  # 3.11
# Tables 3.8, 3.9, 3.12 and 3.13: medians of the largest difference, double and single.
MEDIANS = {"Getrf": (4.27e-11, 0.016), "CM": (2.40e-9, 1.717), "ICM": (7.12e-8, 15.671), "PCM": (6.11e-8, 27.828)}
SOLVER_MEDIANS = {"Getrs": (4.63e-11, 0.016), "SS": (4.38e-8, 23.018), "Trsm": (8.75e-8, 13.568),
                  "IS": (2.20e-8, 0.484)}
ESTIMATED = 0.95        # share of iterations that counts as no difference


def records(evidence, kind, parts, dtype=None):
    """Return the records without failure of ``kind``, such as "solution", in some parts, of one type or of all; of
    several for one matrix, method and type the last."""
    found = [r for part in parts for r in evidence[part].records
             if r["benchmark"] == f"dense-lu {kind}" and "failure" not in r and dtype in (None, r["dtype"])]
    return list(latest(found, "matrix", "decomposer", "solver", "dtype", "tolerance").values())


def source(evidence, parts):
    """Return where the records of some parts are from."""
    return "; ".join(dict.fromkeys(evidence[part].source for part in parts))


def on_gpu(evidence, kind="decomposition", dtype=None):
    """Return a GPU's records of one kind, of one type or of all."""
    return [r for r in records(evidence, kind, GPU, dtype) if r["device"].startswith("cuda")]


def by_matrix(found, what="decomposer"):
    """Return {matrix: {method: record}}."""
    table = {}
    for r in found:
        table.setdefault(r["matrix"], {})[r[what]] = r
    return table


def compatible(evidence):
    """Yield the Line of tables 2.1 to 2.3: the pairs of decomposers and solvers that the thesis has."""
    from swell.core.registry import load
    from swell.dense.factors import CroutFactors, DoolittleFactors
    made = {"getrf": DoolittleFactors}
    pairs = [(d, s) for d, solvers in COMPATIBLE.items() for s in solvers]
    here = [(d, s) for d, s in pairs if issubclass(made.get(d, CroutFactors), load("dense_solver", s).accepts)]
    yield judged("pairs of a decomposer and a solver that fit", len(pairs), len(here), "all", here == pairs,
                 "this machine")


def matrices(evidence):
    """Yield the Lines of table 3.2: rows."""
    found = records(evidence, "decomposition", (*GPU, *HERE))
    for name, (rows, kind) in MATRICES.items():
        ours = _like(found, rows, kind)
        if ours is None:
            yield untested(f"{name}: rows", rows, _missing(kind))
        else:
            yield judged(f"{name}: rows, {ours['matrix']}", rows, ours["n"], "within 5 %, and of the same kind",
                         abs(ours["n"] / rows - 1) <= 0.05,
                         source(evidence, GPU if ours["device"].startswith("cuda") else HERE))


def _like(found, rows, kind):
    """Return a record of a matrix of this kind whose rows are within 5 % of ``rows``; None without one."""
    near = [r for r in found if kind_of(r) == kind and abs(r["n"] / rows - 1) <= 0.05]
    return min(near, key=lambda r: abs(r["n"] - rows), default=None)


def _missing(kind):
    return f"no record of a {kind} matrix of these rows" if kind else "not here, nor one like it"


def times(evidence):
    """Yield the Lines of figure 3.1 and tables 3.4 and 3.5: seconds of a GPU, for matrices of equal kind and rows."""
    for dtype, rows_of in SECONDS.items():
        found = on_gpu(evidence, dtype=dtype)
        for name, paper in rows_of.items():
            ours = _like(found, *MATRICES[name])
            if ours is None:
                yield untested(f"{name}, {TYPES[dtype]}: s with all four", ", ".join(f"{value:g}" for value in paper),
                               _missing(MATRICES[name][1]))
                continue
            of = by_matrix(found)[ours["matrix"]]
            for method, value in zip(COLUMNS, paper, strict=True):
                if method in of:
                    yield at_most(f"{name} ({ours['matrix']}), {TYPES[dtype]}, {method}: s", value,
                                  of[method]["seconds"], value, source(evidence, GPU))


def laws(evidence):
    """Yield the Lines of figures 3.2 and 3.3: iterations of sections of random matrices beside the thesis' laws."""
    off = {"diagonal sections beside 2 s + p": [], "sections below beside s + p": [],
           "sections to the right beside s + 1": []}
    for r in plain(evidence, "random"):
        counts, size = r["iterations"], r["section"]
        for i, row in enumerate(counts):
            for j, count in enumerate(row):
                least = min(i, j)
                rows, pivots = min(size, r["n"] - least * size), r["pivots"][least]
                law, which = ((2 * rows + pivots - (i == 0), 0) if i == j else (rows + pivots, 1) if i > j
                              else (rows + 1, 2))
                off[list(off)[which]].append(abs(count - law))
    for law, deviations in off.items():
        yield all_at_most(f"{law}: largest deviation", "0 or 1", deviations, 1, source(evidence, SECTIONS))


def plain(evidence, kind):
    """Return the records of the thesis' own form of ICM on matrices of a kind."""
    return [r for r in records(evidence, "decomposition", SECTIONS) if kind_of(r) == kind
            and r["decomposer"].startswith("ICM") and "plain" in r["decomposer"] and "inf" not in r["decomposer"]]


def border(evidence):
    """Yield the Lines of figures 3.4 and 3.5: a diagonal with a border, as c-22: iterations before it, and pivots."""
    inner, pivots, where = [], [], source(evidence, SECTIONS)
    for r in plain(evidence, "border"):
        first = int(0.9 * r["n"]) // r["section"]            # the section in which the border begins
        inner += [count for row in r["iterations"][:first] for count in row[:first]]
        pivots.append(sum(r["pivots"]))
    yield all_at_most("iterations of ICM's sections before the border, at most", 1, inner, 1, where)
    yield all_at_most("pivots", 0, pivots, 0, where)


def widths(evidence, method, what="decomposer"):
    """Return {matrix: {x: a GPU's seconds}} of a method with settings that differ in x only."""
    found = {}
    for r in on_gpu(evidence, "decomposition" if what == "decomposer" else "solution", dtype="float64"):
        if WIDTH.sub("", r[what]) == f"{method}()":
            x = re.search(r"x=(\d+)", r[what])
            found.setdefault(r["matrix"], {})[int(x[1]) if x else 32] = r["seconds"]
    return found


def narrow_over_wide(method, what="decomposer", widest_wins=True):
    """Return the comparison of figures 3.6, 3.7 and 3.16: successive widths x of a method.

    ``widest_wins``: in the thesis the largest x is the fastest; else the smallest."""
    def compare(evidence):
        return some((at_least(f"{name}: time of {method} with x = {slow} / with x = {fast}", "above 1",
                              of[slow] / of[fast], 1, source(evidence, GPU))
                     for name, of in widths(evidence, method, what).items() for pair in pairwise(sorted(of))
                     for slow, fast in [pair if widest_wins else pair[::-1]]),
                    f"{method}: time over x", "monotone", f"{NO_RECORD} of two widths on a GPU")
    return compare


def over(evidence, reference, kind="decomposition", what="decomposer"):
    """Return {(matrix, method): a GPU's seconds / those of the reference on this matrix}, in double precision."""
    return {(name, method): r["seconds"] / of[reference]["seconds"]
            for name, of in by_matrix(on_gpu(evidence, kind, "float64"), what).items() if reference in of
            for method, r in of.items() if method != reference}


def least_over_getrf(evidence):
    """Return the Lines of figure 3.8: a method's least time relative to getrf's."""
    ratios = {}
    for (_, method), value in over(evidence, "Getrf()").items():
        ratios.setdefault(method, []).append(value)
    paper = {method: min(row[k] / row[0] for row in SECONDS["float64"].values()) for k, method in enumerate(COLUMNS)}
    return some((all_at_least(f"{method}: least time / getrf's",
                              f"{paper[method]:.3g}" if method in paper else "above 1", values, 1,
                              source(evidence, GPU)) for method, values in ratios.items()),
                "least time / getrf's", "above 1")


def totals(evidence, kind="decomposition", what="decomposer", reference="Getrf()", paper=TOTALS):
    """Yield the Lines of figure 3.9 and table 3.7 (or 3.15 and 3.11): seconds for all matrices, over the reference's.
    And in double over in single precision."""
    sums, where = {}, source(evidence, GPU)
    for dtype in TYPES:
        of = by_matrix(on_gpu(evidence, kind, dtype=dtype), what)
        for method in dict.fromkeys(method for methods in of.values() for method in methods):
            common = [methods for methods in of.values() if reference in methods and method in methods]
            sums[method, dtype] = [sum(methods[m]["seconds"] for methods in common) for m in (method, reference)]
    for (method, dtype), (own, of_reference) in sums.items():
        if method != reference:
            k = list(TYPES).index(dtype)
            told = f"{paper[method][k] / paper[reference][k]:.4g}" if method in paper else "above 1"
            yield at_least(f"{method}, {TYPES[dtype]}: time for all matrices / {reference}'s", told,
                           ratio(own, of_reference), 1, where)
    for method in paper:
        double, single = (sums.get((method, dtype), (None,))[0] for dtype in TYPES)
        yield at_least(f"{method}: time in double / in single precision", f"{paper[method][0] / paper[method][1]:.3g}",
                       ratio(double, single), 1, where, f"{NO_RECORD} of single precision on a GPU")


def medians(evidence, parts, kind, what, dtype, measure="max_difference") -> dict:
    """Return {method: the median over matrices of a measure of accuracy}; plain settings and tolerances are left
    out."""
    of = {}
    for r in records(evidence, kind, parts, dtype=dtype):
        if "plain" not in r[what] and "tolerance" not in r[what]:
            of.setdefault(r[what], []).append(r[measure])
    return {method: statistics.median(values) for method, values in of.items()}


def accuracy(kind, what, reference, paper, groups=(GPU, HERE)):
    """Return the comparison of the medians of tables 3.8 and 3.9, or 3.12 and 3.13, relative to the library's.
    ``groups``: of parts, each compared by itself."""
    def each(evidence, parts, k, dtype):
        found = medians(evidence, parts, kind, what, dtype)
        for method, value in found.items():
            name = method.partition("(")[0]
            if name != reference and f"{reference}()" in found and "conditional" not in method:
                yield at_least(f"{method}, {TYPES[dtype]}: median of the largest difference / {reference}'s",
                               f"{paper[name][k] / paper[reference][k]:.4g}", ratio(value, found[f"{reference}()"]), 1,
                               source(evidence, parts))

    def compare(evidence):
        return some((line for parts in groups for k, dtype in enumerate(TYPES)
                     for line in each(evidence, parts, k, dtype)),
                    f"median of the largest difference / {reference}'s", "above 1")
    return compare


def tolerances(evidence):
    """Return the Lines of figure 3.11: the error of ICM with tolerance 0 over its least one with a larger tolerance."""
    found = {}
    for r in records(evidence, "tolerance", HERE, dtype="float64"):
        found.setdefault(r["matrix"], {})[r["tolerance"]] = r["backward_error"]
    return some((at_most(f"{name}: error with tolerance 0 / least with larger ones", "at most 1; four exceptions",
                         ratio(of.get(0), min((error for tolerance, error in of.items() if tolerance), default=None)),
                         1.1, source(evidence, HERE)) for name, of in found.items()),
                "error with tolerance 0 / with larger ones", "at most 1")


def pivotings(evidence):
    """Yield the Lines of figures 3.12 and 3.14: the median error with conditional over that with full pivoting."""
    for dtype in TYPES:
        found = medians(evidence, HERE, "decomposition", "decomposer", dtype, "backward_error")
        for method, partner in (("CM()", "CM(pivoting='conditional')"),
                                ("PCM(x=8)", "PCM(x=8, pivoting='conditional')")):
            yield at_least(f"{method}, {TYPES[dtype]}: median backward error with conditional / full pivoting",
                           "above 1", ratio(found.get(partner), found.get(method)), 1, source(evidence, HERE))


def not_finite(evidence):
    """Return the Line of figure 3.13: decompositions without an upper bound of pivots that are not finite."""
    found = [r for r in evidence[SECTIONS[0]].records
             if r["benchmark"] == "dense-lu decomposition" and "pivot_upper=inf" in r["decomposer"]]
    bad = sum("failure" in r or not math.isfinite(r["backward_error"]) for r in found)
    return at_least("matrices whose factors are not finite without an upper bound of pivots", "7 of 50",
                    bad if found else None, 1, source(evidence, SECTIONS))


def invalid(evidence):
    """Return the Line on figure 3.18's invalid results: systems that the iterative solver does not solve."""
    found = [r for part in (*GPU, *HERE) for r in evidence[part].records
             if r["benchmark"] == "dense-lu solution" and r["solver"].startswith("IS(")]
    bad = sum("failure" in r or not math.isfinite(r["max_difference"]) for r in found)
    return at_least("systems with an invalid result of IS", "4 of 50 in double, 12 in single precision",
                    bad if found else None, 1, source(evidence, (*GPU, *HERE)))


def sequential_over_iterative(evidence):
    """Return the Line on table 3.11: seconds of IS, its fast form here, over the sequential solver's, all systems."""
    found = by_matrix(records(evidence, "solution", HERE, dtype="float64"), "solver")
    both = [of for of in found.values() if "SS()" in of and "IS(x=8)" in of]
    sums = [sum(of[name]["seconds"] for of in both) for name in ("IS(x=8)", "SS()")]
    return at_least("time for all systems with IS(x=8) / with SS(), on a CPU", "1.85 (IS on a GPU)", ratio(*sums), 1,
                    source(evidence, HERE))


def solver_accuracy(evidence):
    """Yield the Lines of figure 3.18 and tables 3.12 and 3.13."""
    yield from accuracy("solution", "solver", "Getrs", SOLVER_MEDIANS)(evidence)
    yield invalid(evidence)


def solver_times(evidence):
    """Yield the Lines of figure 3.15 and table 3.11."""
    yield from totals(evidence, "solution", "solver", "Trsm()", SOLVER_TOTALS)
    yield sequential_over_iterative(evidence)


def _estimate_shares(evidence):
    """Return {(matrix, change): iterations from the factors of a matrix that differs by ``change`` / from A}."""
    return {(r["matrix"], r["change"]): ratio(r["from_estimate"], r["from_matrix"])
            for r in evidence[SECTIONS[0]].records if r["benchmark"] == "dense-lu estimate" and "failure" not in r}


def estimates(evidence):
    """Return the Lines of section 3.3: iterations from the factors of a similar matrix over those from the matrix."""
    return some((at_least(f"{name}, entries differ by {change:g}: iterations from its factors / from A", "about 1",
                          share, ESTIMATED, source(evidence, SECTIONS))
                 for (name, change), share in _estimate_shares(evidence).items()),
                "iterations from the factors of a similar matrix / from A", "about 1")


def no_better_estimate(evidence):
    """Judge: the factors of a similar matrix are no better an estimate. The median share of iterations."""
    found = list(_estimate_shares(evidence).values())
    return at_least("median iterations from a similar matrix' factors / from A", "about 1",
                    statistics.median(found) if found else None, ESTIMATED, source(evidence, SECTIONS))
