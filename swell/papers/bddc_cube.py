"""Section 3.2 of the thesis of lu_bddc.py: the same decomposers in BDDC on Poisson's cube of 4³ subdomains.

The thesis' figures have no numbers; its text has some. Its baseline is MAGMA's getrf, which swell does not have: getrf
stands for it, LAPACK's or cuSOLVER's.
"""
from __future__ import annotations

import re
import statistics

from swell.papers import dense_lu
from swell.papers.dense_lu import HERE, SECTIONS, source
from swell.papers.evidence import latest
from swell.papers.verdict import all_at_least, all_at_most, at_least, judged, known, ratio, some, untested

CUBE = ("cube", "cube here")
ROWS = {5: 178, 50: 15028}                      # section 3.2.2: the largest local matrix, by H/h
DENSITY = "0.86 (1964 rows), 0.92 (7664 rows)"                # section 3.2.3
LOOSEST = 1.0


def cubes(evidence, *parts, device="c"):
    """Return {(H/h, right-hand side): {decomposer: record}} of BDDC on 4³ subdomains, two levels, in some parts. Of
    several records of one setting the last one counts."""
    found = [r for part in parts for r in evidence[part].records if r["benchmark"] == "bddc" and "failure" not in r
             and (r["subdomains"], r["levels"]) == (4, 2) and r["device"].startswith(device)]
    table = {}
    for (elements, rhs, decomposer), r in latest(found, "elements", "rhs", "decomposer").items():
        table.setdefault((elements, rhs), {})[decomposer] = r
    return table


def tolerance(decomposer) -> float | None:
    """Return the processing tolerance of a decomposer's name; None if it is not ICM."""
    if not decomposer.startswith("ICM("):
        return None
    given = re.search(r"tolerance=([^,)]+)", decomposer)
    return float(given[1]) if given else 0.0


def total(r) -> float:
    """Return the seconds of setup and Krylov's method."""
    return r["setup"] + r["krylov"]


def local_matrices(evidence):
    """Yield the Lines of figure 3.19 and section 3.2.2: rows and density of what decomposers get."""
    for elements, rows in ROWS.items():
        found = [(r["local_rows"][1], part) for part in CUBE for (m, _), of in cubes(evidence, part).items()
                 if m == elements for r in of.values()]
        if found:
            yield judged(f"H/h = {elements}: rows of the largest local matrix", rows, found[0][0], "equal",
                         found[0][0] == rows, evidence[found[0][1]].source)
        else:
            yield untested(f"H/h = {elements}: rows of the largest local matrix", rows)
    found = [r["density"] for r in dense_lu.records(evidence, "decomposition", HERE)
             if r["matrix"].startswith("bordered")]
    yield all_at_least("share of nonzeros of local matrices, the least", DENSITY, found, 0.5, source(evidence, HERE))


def section_iterations(evidence):
    """Yield the Line of figure 3.21: iterations of local matrices beside the law of random ones."""
    shares = [sum(r["iterations"][k][k] for k in range(len(r["pivots"]))) / (2 * r["n"] + sum(r["pivots"]) - 1)
              for r in dense_lu.plain(evidence, "bordered")]
    yield all_at_most("iterations of ICM's diagonal sections / those of a random matrix", "fewer", shares, 0.8,
                      source(evidence, SECTIONS))


def _compared(evidence, value, one, other):
    """Return {(H/h, right-hand side): a GPU's value(record) with decomposer ``one`` / with ``other``}."""
    return {key: value(of[one]) / value(of[other]) for key, of in cubes(evidence, "cube", device="cuda").items()
            if one in of and other in of}


def _each(evidence, what, paper, values, bound):
    return some((at_least(f"H/h = {elements}, b {rhs}: {what}", paper, number, bound, evidence["cube"].source)
                 for (elements, rhs), number in sorted(values.items())), what, paper)


def setups(evidence):
    """Yield the Lines of figure 3.20: setup with swell's decomposers over getrf's, and PCM's over ICM's."""
    for name in ("PCM()", "ICM()"):
        yield from _each(evidence, f"setup with {name} / with getrf", "above 1 (MAGMA)",
                         _compared(evidence, lambda r: r["setup"], name, "Getrf()"), 1)
    yield from pcm_over_icm(evidence)


def pcm_over_icm(evidence):
    """Yield the Lines that compare setups with PCM and ICM."""
    return _each(evidence, "setup with PCM() / with ICM()", "above 1",
                 _compared(evidence, lambda r: r["setup"], "PCM()", "ICM()"), 1)


def loose_setups(evidence):
    """Yield the Lines of figure 3.22: setup with exact ICM over that with the loosest tolerance."""
    return _each(evidence, "setup with ICM, exact / with tolerance 1", "above 1",
                 _loose(evidence, lambda r: r["setup"]), 1.1)


def _loose(evidence, value):
    """Return {cube: a GPU's value(record) with exact ICM / with a tolerance of 1}."""
    return _compared(evidence, value, "ICM()", "ICM(tolerance=1)")


def iterations(evidence):
    """Yield the Lines of figure 3.23a: iterations of all exact decomposers, and with growing tolerances."""
    tested = False
    for part in CUBE:
        for (elements, rhs), of in sorted(cubes(evidence, part).items()):
            tested = True
            exact = [r["iterations"] for name, r in of.items() if not tolerance(name)]
            yield judged(f"H/h = {elements}, b {rhs}: iterations of {len(exact)} exact decomposers", "equal",
                         ", ".join(map(str, sorted(set(exact)))), "equal", len(set(exact)) == 1, evidence[part].source)
            counts = [r["iterations"] for name, r in sorted(of.items(), key=lambda item: tolerance(item[0]) or 0)
                      if tolerance(name) is not None]
            if len(counts) > 1:
                yield judged(f"H/h = {elements}, b {rhs}: iterations of ICM as its tolerance grows", "they grow",
                             ", ".join(map(str, counts)), "they do not fall, and grow in all",
                             counts == sorted(counts) and counts[-1] > counts[0], evidence[part].source)
    if not tested:
        yield untested("iterations of exact decomposers, and over the tolerance", "equal; growing")


def krylov(evidence):
    """Yield the Lines of figure 3.23b: time of Krylov's method with a tolerance of 1 over exact, and over the setup."""
    yield from _each(evidence, "Krylov's time with tolerance 1 / with exact ICM", "above 1",
                     {key: 1 / value for key, value in _loose(evidence, lambda r: r["krylov"]).items()}, 1)
    yield from _each(evidence, "setup / Krylov's time, both with tolerance 1", "much above 1",
                     {key: of["ICM(tolerance=1)"]["setup"] / of["ICM(tolerance=1)"]["krylov"]
                      for key, of in cubes(evidence, "cube", device="cuda").items() if "ICM(tolerance=1)" in of}, 2)


def whole(evidence):
    """Yield the Lines of figure 3.24: time of setup and Krylov's method with swell's decomposers over getrf's."""
    for name in ("PCM()", "ICM()", "ICM(tolerance=1)"):
        yield from _each(evidence, f"setup and Krylov's time with {name} / with getrf", "above 1 (MAGMA)",
                         _compared(evidence, total, name, "Getrf()"), 1)


def median_at_least(what, paper, values, bound, evidence):
    """Return the Line of a conclusion: the median of numbers is at least ``bound``."""
    numbers = known(values)
    return at_least(what, paper, statistics.median(numbers) if numbers else None, bound, evidence["cube"].source)


def same_iterations(evidence):
    """Judge: exact decomposers take equal iterations. The largest difference."""
    spreads = [max(counts) - min(counts) for part in CUBE for of in cubes(evidence, part).values()
               if len(counts := [r["iterations"] for name, r in of.items() if not tolerance(name)]) > 1]
    return all_at_most("largest difference of iterations between exact decomposers", 0, spreads, 0,
                       source(evidence, CUBE))


def more_iterations(evidence):
    """Judge: a larger tolerance costs iterations. The least ratio of iterations, loosest to exact."""
    ratios = []
    for part in CUBE:
        for of in cubes(evidence, part).values():
            counts = {tolerance(name): r["iterations"] for name, r in of.items() if tolerance(name) is not None}
            if 0 in counts and LOOSEST in counts:
                ratios.append(counts[LOOSEST] / counts[0])
    return all_at_least("least iterations with tolerance 1 / with exact ICM", "above 1", ratios, 1.01,
                        source(evidence, CUBE))


def outweighed(evidence):
    """Judge: what a loose tolerance saves in the setup outweighs what it costs. Exact over loose, both stages, all
    cubes."""
    found = [(total(of["ICM()"]), total(of["ICM(tolerance=1)"]))
             for of in cubes(evidence, "cube", device="cuda").values() if {"ICM()", "ICM(tolerance=1)"} <= set(of)]
    exact, loose = (sum(pair[k] for pair in found) for k in (0, 1))
    return at_least("setup and Krylov's time with exact ICM / with tolerance 1, all cubes", "above 1",
                    ratio(exact, loose), 1, evidence["cube"].source)


def nine_tenths(evidence):
    """Judge: ICM with a loose tolerance reaches nine tenths of the library's speed, on the largest cube."""
    found = _compared(evidence, total, "Getrf()", "ICM(tolerance=1)")
    biggest = max((key for key in found if key[1] == "ones"), default=None)
    return at_least("time with getrf / with ICM of tolerance 1"
                    + (f", H/h = {biggest[0]}" if biggest else ""), "0.9 (MAGMA, H/h = 50)", found.get(biggest), 0.9,
                    evidence["cube"].source)


def library_in_bddc(evidence):
    """Judge: the library's getrf is the fastest in BDDC. The median of the best other decomposer's time over its."""
    best = {}
    for name in ("PCM()", "ICM()", "ICM(tolerance=1)"):
        for key, value in _compared(evidence, total, name, "Getrf()").items():
            best[key] = min(value, best.get(key, value))
    return median_at_least("median time of the best other decomposer / getrf's", "above 1", best.values(), 1, evidence)


def faster_setups(evidence):
    """Judge: a loose tolerance makes the setup faster. The median over cubes."""
    return median_at_least("median setup with exact ICM / with tolerance 1", "above 1",
                           _loose(evidence, lambda r: r["setup"]).values(), 1.1, evidence)


def icm_before_pcm(evidence):
    """Judge: of the thesis' own decomposers ICM is the fastest in BDDC. The median over cubes."""
    return median_at_least("median setup with PCM / with ICM", "above 1",
                           _compared(evidence, lambda r: r["setup"], "PCM()", "ICM()").values(), 1, evidence)


def wide_in_bddc(evidence):
    """Judge: ICM's largest blocks are the fastest in BDDC. The median over cubes."""
    return median_at_least("median setup with ICM, x = 8 / x = 32", "above 1",
                           _compared(evidence, lambda r: r["setup"], "ICM(x=8)", "ICM()").values(), 1, evidence)
