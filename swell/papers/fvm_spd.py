"""Wikberg, "Unstructured Mesh FVM with GPU Support, Report 2", Cambridge 2024.

Values are the thesis' tables. Its matrices are SuiteSparse's; swell's have their sizes and lengths of rows, marked by
"~". The thesis ends a solve at a squared residual of 1e-15, swell at a relative residual of 1e-8, so iterations compare
preconditioners with one another. Its GPU is an NVIDIA A30, its CPU one core.
"""
import math
import statistics

from swell.bench.smoothers import NATURAL
from swell.papers.evidence import Part, latest
from swell.papers.paper import Conclusion, Item, Paper
from swell.papers.verdict import all_at_least, all_at_most, at_least, at_most, judged, known, ratio, some, untested

PARTS = (
    Part("systems here", "fvm --no-smoothers", "fvm --no-smoothers --scale 0.02 --iterations 60 --repeat 10"),
    Part("systems", "fvm --no-smoothers", stored="h200_fvm.jsonl"),
    Part("smoothers here", "smoothers --scale 0.05 --outer-iterations 100",
         "smoothers --scale 0.005 --outer-iterations 50 --matrices ecology2~,parabolic_fem~"),
    Part("smoothers", "smoothers --cpu-iterations 100", stored="h200_smoothers.jsonl"),
)
# Table 3.1: λ, µs of a product in SELL, in the modified SELL.
PRODUCTS = {"ecology2~": (0.09, 106.7, 98.3), "thermal2~": (0.36, 200.1, 207.3), "parabolic_fem~": (0.44, 82.3, 76.2)}
# Table 4.1: µs of 1000 iterations: forward Gauss–Seidel on the CPU; block Jacobi, block Gauss–Seidel, block CG, each
# synchronous and asynchronous.
GAUSS_SEIDEL = "Fwd. Gauss–Seidel"
SMOOTHERS = {
    "thermal2~": {GAUSS_SEIDEL: 3.0e7, "Block Jacobi (sync)": 5.4e5, "Block Jacobi (async)": 6.6e5,
                  "Block Gauss–Seidel (sync)": 1.8e6, "Block Gauss–Seidel (async)": 1.8e6, "Block CG (sync)": 4.8e5,
                  "Block CG (async)": 6.1e5},
    "parabolic_fem~": {GAUSS_SEIDEL: 4.9e6, "Block Jacobi (sync)": 3.9e5, "Block Jacobi (async)": 4.7e5,
                       "Block Gauss–Seidel (sync)": 1.8e6, "Block Gauss–Seidel (async)": 1.9e6,
                       "Block CG (sync)": 3.1e5, "Block CG (async)": 3.7e5},
}
# Table 5.1: iterations of CG without, with IC(0), Jacobi and Ruiz; µs of an iteration on the GPU, of all with IC(0) on
# the CPU and Jacobi on the GPU.
SOLVES = {
    "thermal2~": {"CG": 4.9e3, "IC(0)": 2.0e3, "Jacobi scaling": 4.7e3, "Ruiz scaling": 4.6e3,
                  "µs": (413, 414, 414), "speed-up": 1.7e8 / 2.0e6},
    "parabolic_fem~": {"CG": 1.5e3, "IC(0)": 7.0e2, "Jacobi scaling": 1.5e3, "Ruiz scaling": 1.6e3,
                       "µs": (172, 173, 173), "speed-up": 1.1e7 / 2.6e5},
}
SYNC = ("Block Jacobi", "Block Gauss–Seidel", "Block CG")
MODIFIED = "modified_sell(height=512)"
MILLION = 900_000       # rows; "over one million" with ecology2's 999 999
NO_WORSE = 1.05         # times that differ by less are equal
DECADE = 1.0            # of ‖r‖²


def _product_records(evidence):
    """Return {matrix: record of a GPU's products}."""
    return {r["matrix"]: r for r in evidence["systems"].records
            if r["benchmark"] == "fvm products" and r["device"].startswith("cuda")}


def _solve_records(evidence, part="systems", device="cuda"):
    """Return {(matrix, variant): record} of the solves on one device; with ``part``'s sizes."""
    return latest([r for r in evidence[part].records if r["benchmark"] == "fvm solve" and
                   r["device"].startswith(device)], "matrix", "variant")


def _smoother_records(evidence, part):
    """Return {(matrix, algorithm): record} of the smoothers in one part."""
    return latest(evidence[part].records, "matrix", "algorithm")


def products(evidence):
    """Yield the Lines of table 3.1: λ, and time in SELL over time in the modified SELL."""
    found, source = _product_records(evidence), evidence["systems"].source
    for name, (share, sell, modified) in PRODUCTS.items():
        r = found.get(name)
        if r is None:
            yield untested(f"{name}: λ and products", f"{share}, {sell / modified:.2f}")
            continue
        yield judged(f"{name}: share of entries within slices of 512, λ", share, f"{r['local_share']:.3f}",
                     "within 0.1 of the paper's", abs(r["local_share"] - share) <= 0.1, source)
        yield at_most(f"{name}: time in modified SELL / in SELL", f"{modified / sell:.3f}",
                      r["seconds"][MODIFIED] / r["seconds"]["sell"], NO_WORSE, source)


def smoothing(evidence):
    """Yield the Lines of table 4.1: time of Gauss–Seidel on the CPU over each smoother's on the GPU."""
    found, source = _smoother_records(evidence, "smoothers"), evidence["smoothers"].source
    for name, paper in SMOOTHERS.items():
        natural = found.get((name, NATURAL))
        for algorithm, microseconds in paper.items():
            r = found.get((name, algorithm))
            if algorithm != GAUSS_SEIDEL:
                yield at_least(f"{name}, {algorithm}: Gauss–Seidel's time on the CPU / this",
                               f"{paper[GAUSS_SEIDEL] / microseconds:.1f}", natural and r and _times(natural, r), 1,
                               source)


def _times(one, other):
    """Return the time of an iteration of one record over that of another; None if it was within noise."""
    return ratio(one["iteration_seconds"], other["iteration_seconds"])


def _decades(record):
    """Return log10 ‖r‖² at the end of a smoother's record, infinite if it has diverged."""
    end = record["squared_residuals"][-1]
    return math.inf if end is None else math.log10(max(end, 1e-300))


def reductions(evidence):
    """Return the Lines of figures 4.2 and 4.3: each smoother's ‖r‖² beside Gauss–Seidel's, after equal iterations."""
    found = _smoother_records(evidence, "smoothers here")
    return some((at_most(f"{name}, {algorithm}: |log10 ‖r‖² − Gauss–Seidel's|", "about 0",
                         abs(_decades(r) - _decades(found[name, NATURAL])), DECADE, evidence["smoothers here"].source)
                 for (name, algorithm), r in found.items()
                 if algorithm.startswith(SYNC) and "inner sweeps" not in algorithm),
                "‖r‖² after equal iterations", "about equal")


def solving(evidence):
    """Yield the Lines of table 5.1 and figure 5.1."""
    gpu = _solve_records(evidence)
    for name, paper in SOLVES.items():
        for variant in ("IC(0)", "Jacobi scaling", "Ruiz scaling"):
            r, plain = gpu.get((name, variant)), gpu.get((name, "CG"))
            value = r and plain and r["reason"] == "CONVERGED" and r["iterations"] / plain["iterations"]
            yield at_most(f"{name}, {variant}: iterations / without a preconditioner (which may not have converged)",
                          f"{paper[variant] / paper['CG']:.2f}", value or None, 1.1, evidence["systems"].source)
        for k, variant in ((1, "Jacobi scaling"), (2, "Ruiz scaling")):
            value = _iteration(gpu, name, variant)
            yield at_most(f"{name}, {variant}: time of an iteration / without it",
                          f"{paper['µs'][k] / paper['µs'][0]:.3f}", value, NO_WORSE, evidence["systems"].source)


def _iteration(records, name, variant):
    """Return an iteration's time with a scaling over that without; None if one of them is missing."""
    return ratio(*(records.get((name, v), {}).get("iteration_seconds") for v in (variant, "CG")))


def no_worse(evidence):
    """Judge: products in the modified SELL are no slower. The median over a GPU's matrices."""
    found = [r["seconds"][MODIFIED] / r["seconds"]["sell"] for r in _product_records(evidence).values()]
    return at_most("median time in modified SELL / in SELL", "0.97", statistics.median(found) if found else None,
                   NO_WORSE, evidence["systems"].source)


def equal_reduction(evidence):
    """Judge: all smoothers reduce the residual about equally. The largest gap of log10 ‖r‖²."""
    gaps = [float(line.ours) for line in reductions(evidence) if line.ours]
    return all_at_most("largest |log10 ‖r‖² − Gauss–Seidel's|", "about 0", gaps, DECADE,
                       evidence["smoothers here"].source)


def _speedup(evidence, algorithm, large):
    """Return the largest ratio of Gauss–Seidel's time on the CPU to a smoother's on a GPU, for matrices of at least
    (``large``), or below, a million rows; None without records."""
    found = _smoother_records(evidence, "smoothers")
    values = [_times(found[name, NATURAL], r) for (name, a), r in found.items()
              if a == algorithm and (r["n"] >= MILLION) == large and (name, NATURAL) in found]
    return max(known(values), default=None)


def hundred_times(evidence):
    """Judge: block Jacobi on a GPU is two orders of magnitude faster, from a million rows on."""
    return at_least("largest Gauss–Seidel on a CPU / block Jacobi on a GPU, from a million rows on", "56",
                    _speedup(evidence, "Block Jacobi (sync)", True), 56, evidence["smoothers"].source)


def grows(evidence):
    """Judge: the speed-up grows with the matrix."""
    large, small = (_speedup(evidence, "Block Jacobi (sync)", large) for large in (True, False))
    return at_least("speed-up from a million rows on / below", "4.5", ratio(large, small), 1,
                    evidence["smoothers"].source)


def asynchronous(evidence):
    """Judge: asynchronous smoothers are no better, and slower. Their median time over the synchronous ones'."""
    found = _smoother_records(evidence, "smoothers")
    times = known(_times(r, found[name, a.replace("async", "sync")]) for (name, a), r in found.items()
                  if "(async)" in a)
    return at_least("median time of asynchronous / synchronous smoothers", "1.2",
                    statistics.median(times) if times else None, 1, evidence["smoothers"].source)


def slow_inner(evidence):
    """Judge: inner Gauss–Seidel is slower than inner Jacobi on a GPU. The smallest ratio of their times."""
    found = _smoother_records(evidence, "smoothers")
    times = [_times(r, found[name, "Block Jacobi (sync)"]) for (name, a), r in found.items()
             if a == "Block Gauss–Seidel (sync)"]
    return all_at_least("smallest time of block Gauss–Seidel / block Jacobi", "3.3", times, 2,
                        evidence["smoothers"].source)


def fewest(evidence):
    """Judge: IC(0) takes the fewest iterations. The largest ratio to the better diagonal scaling."""
    ratios = []
    for part, device in (("systems", "cuda"), ("systems here", "c")):
        found = _solve_records(evidence, part, device)
        for (name, variant), r in found.items():
            both = [found.get((name, v)) for v in ("Jacobi scaling", "Ruiz scaling")]
            if variant == "IC(0)" and all(o and o["reason"] == "CONVERGED" for o in (r, *both)):
                ratios.append(r["iterations"] / min(o["iterations"] for o in both))
    return all_at_most("largest iterations with IC(0) / with a diagonal scaling", "0.47", ratios, 0.99,
                       f"{evidence['systems'].source}; {evidence['systems here'].source}")


def alike(evidence):
    """Judge: Jacobi's and Ruiz' scalings need about equally many iterations. The largest ratio."""
    found, ratios = _solve_records(evidence), []
    for (name, variant), r in found.items():
        other = found.get((name, "Jacobi scaling"))
        if variant == "Ruiz scaling" and other and r["reason"] == other["reason"] == "CONVERGED":
            ratios.append(max(r["iterations"], other["iterations"]) / min(r["iterations"], other["iterations"]))
    return all_at_most("largest ratio of iterations, Jacobi's and Ruiz' scaling", "1.07", ratios, 1.1,
                       evidence["systems"].source)


def same_cost(evidence):
    """Judge: diagonal scalings leave the time of an iteration. The largest ratio on a GPU."""
    found = _solve_records(evidence)
    ratios = [_iteration(found, name, v) for name, v in found if v in ("Jacobi scaling", "Ruiz scaling")]
    return all_at_most("largest time of a scaled iteration / without scaling, on a GPU", "1.01", ratios, NO_WORSE,
                       evidence["systems"].source)


def diagonal_wins(evidence):
    """Judge: on a GPU the diagonal scaling solves faster than IC(0). The smallest ratio of times on one GPU."""
    found, ratios = _solve_records(evidence), []
    for (name, variant), r in found.items():
        other = found.get((name, "IC(0)"))
        if variant == "Jacobi scaling" and other and r["reason"] == other["reason"] == "CONVERGED":
            ratios.append(other["solve_seconds"] / r["solve_seconds"])
    return all_at_least("smallest time with IC(0) / with Jacobi's scaling, both on a GPU", "42 (IC(0) on its CPU)",
                        ratios, 1, evidence["systems"].source)


THE_PAPER = Paper(
    "fvm-spd", "Unstructured Mesh FVM with GPU Support, Report 2",
    "The matrices have the sizes of SuiteSparse's and random coefficients (names with ~), so their iterations differ "
    "from the thesis'; preconditioners are compared with one another. Its 100K and G3_circuit have no stand-in here. "
    "Residuals of smoothers are compared at a twentieth of the size or less. "
    "Stand-ins of finite elements have positive entries off the diagonal, and block smoothers may diverge there: inf.",
    PARTS,
    (Item("Table 3.1 and figure 3.1: products", "the modified SELL is as fast as SELL on an A30", products),
     Item("Table 4.1: smoothers' times", "the GPU is faster than Gauss–Seidel on a CPU", smoothing),
     Item("Figures 4.2 and 4.3: smoothers' residuals", "equal reduction in 1000 iterations", reductions),
     Item("Table 5.1 and figure 5.1: preconditioners of CG",
          "fewer iterations at the same cost of an iteration with diagonal scalings", solving)),
    (Conclusion("The modified SELL performs no worse than SELL (section 3.3.1, chapter 6)", no_worse),
     Conclusion("All smoothers reduce the residual about equally (section 4.4.1)", equal_reduction),
     Conclusion("Block Jacobi on a GPU takes about a hundredth of Gauss–Seidel's time on a CPU, from a million rows "
                "on; its own table has 56 (chapter 6)", hundred_times),
     Conclusion("The speed-up grows with the matrix (section 4.4.1)", grows),
     Conclusion("Asynchronous smoothers are slower than synchronous ones (section 4.4.1)", asynchronous),
     Conclusion("Inner Gauss–Seidel suits a GPU less than inner Jacobi (section 4.4.1)", slow_inner),
     Conclusion("IC(0) takes the fewest iterations (section 5.6.1)", fewest),
     Conclusion("Jacobi's and Ruiz' scalings are alike (section 5.6)", alike),
     Conclusion("Diagonal scalings hardly increase the time of an iteration (section 5.6.1)", same_cost),
     Conclusion("On a GPU diagonal scalings are superior to IC(0) in time (section 5.6.1)", diagonal_wins)))
