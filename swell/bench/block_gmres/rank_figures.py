"""Figures of ``swell bench block-gmres --ranks``."""
from __future__ import annotations

from swell.bench import engine
from swell.bench.block_gmres.cases import BSRSV2, EXACT, HOST
from swell.bench.block_gmres.figures import batches, over_sweeps

SWEEP = "block ILU(0), "                 # how the labels of sweeps begin: "block ILU(0), 3 sweeps"
BEST = "block ILU(0), the best number of sweeps"
LINES = (EXACT, "--", "dashed", "exact solves"), (BSRSV2, ":", "dotted", "cuSPARSE's bsrsv2")     # figure 12


def drawn(records) -> list:
    """Draw all figures from the records; return (caption, figure) pairs."""
    kinds = {kind: of_kind(records, kind) for kind in ("orthogonalisation", "product", "iteration", "solve")}
    most = max(r["ranks"] for r in kinds["product"])
    at_most = [r for r in kinds["orthogonalisation"] if r["ranks"] == most and r["basis"] == "full"]
    products, iterations = ({_label(r): r for r in kinds[kind]} for kind in ("product", "iteration"))
    lines = "".join(f"; {name}: {words}" for label, _, name, words in LINES
                    if any(r["preconditioner"] == label for r in kinds["solve"]))
    return [(f"Figure 8: inner products of a step on {most} ranks, by vectors a launch; means over the ranks",
             batches(at_most, "inner_products")),
            (f"Figure 9: updates of a step on {most} ranks, by vectors a launch", batches(at_most, "updates")),
            ("Figure 10: a product with and without overlap, by number of ranks", engine.bars(
                [*products], ["with overlap", "without"], {
                    words: [1e6 * r[time] for r in products.values()]
                    for words, time in (("with overlap", "seconds"), ("without", "seconds_without_overlap"))}, "µs")),
            ("Figure 11: an iteration of GMRES(30) without preconditioner, by number of ranks", engine.bars(
                [*iterations], ["GMRES(30)"],
                {"GMRES(30)": [1e6 * r["seconds"] if r["seconds"] else None for r in iterations.values()]}, "µs")),
            *((f"Figure 12: solves that converged, over the sweeps, on {count} rank{'s' if count > 1 else ''}{lines}",
               _over_sweeps([r for r in kinds["solve"] if r["ranks"] == count]))
              for count in sorted({r["ranks"] for r in kinds["product"]})),
            ("Figures 13 to 15: solves that converged, by number of ranks", _whole(kinds["solve"])),
            ("Tables 2 to 4: the preconditioning steps of a restart, by number of ranks; the slowest rank",
             _steps(kinds["solve"])),
            *([("Load balance factor of the preconditioning step, equation 13", _balance(kinds["solve"]))]
              if most > 1 else [])]


def of_kind(records, kind) -> list:
    """Return the records of a kind ("solve", ...), by matrix and preconditioner in order of first occurrence, then by
    ranks."""
    chosen, places = [r for r in records if r["benchmark"] == f"block_gmres {kind}"], {}
    for r in chosen:
        places.setdefault((r["matrix"], r.get("preconditioner"), r.get("batch"), r.get("basis")), len(places))
    names = list(dict.fromkeys(r["matrix"] for r in chosen))
    return sorted(chosen, key=lambda r: (names.index(r["matrix"]), places[
        r["matrix"], r.get("preconditioner"), r.get("batch"), r.get("basis")], r["ranks"]))


def _label(record):
    return f"{record['matrix']}: {record['ranks']}"


def _sweeps(label):
    """Return the number of sweeps in a preconditioner's label, or None if it is solved otherwise."""
    word = label.removeprefix(SWEEP).partition(" ")[0]
    return int(word) if label.startswith(SWEEP) and word.isdigit() else None


def _over_sweeps(records):
    """Return a figure: times of solves over the number of sweeps; None if none converged."""
    times = {(r["matrix"], r["preconditioner"]): 1e3 * r["seconds"] for r in records if r["reason"] == "CONVERGED"}
    counts = sorted({count for r in records if (count := _sweeps(r["preconditioner"]))})
    return over_sweeps(list(dict.fromkeys(r["matrix"] for r in records)), times, counts,
                       {label: style for label, style, _, _ in LINES})


def _groups(records) -> list:
    """Return the groups of bars, "matrix: ranks": a matrix's ranks in order, PETSc's among them."""
    names = list(dict.fromkeys(r["matrix"] for r in records))
    return list(dict.fromkeys(map(_label, sorted(records, key=lambda r: (names.index(r["matrix"]), r["ranks"])))))


def _by_label(records, field, solved=True):
    """Return (groups, {label: values by group}) for bars of a field of the solves; sweeps are left to ``BEST``, the
    fastest solve that converged. ``solved``: leave out all solves that did not converge."""
    groups = _groups(records)
    values = {label: [None] * len(groups) for label in dict.fromkeys(
        r["preconditioner"] for r in records if _sweeps(r["preconditioner"]) is None)}
    values[BEST] = [None] * len(groups)
    fastest = {}
    for r in records:
        sweeps = _sweeps(r["preconditioner"])
        if (solved or sweeps) and r["reason"] != "CONVERGED":
            continue
        if sweeps:
            fastest[_label(r)] = min(fastest.get(_label(r), r), r, key=lambda one: one["seconds"])
        else:
            values[r["preconditioner"]][groups.index(_label(r))] = 1e3 * r[field]
    for group, r in fastest.items():
        values[BEST][groups.index(group)] = 1e3 * r[field]
    return groups, {label: of for label, of in values.items() if any(of)}


def _whole(records):
    groups, values = _by_label(records, "seconds")
    return engine.bars(groups, [*values], values, "ms (logarithmic)", log=True)


def _steps(records):
    groups, values = _by_label(records, "largest", solved=False)
    return engine.bars(groups, [*values], values, "ms (logarithmic)", log=True)


def _balance(records):
    solves = [r for r in records if r["preconditioner"] != HOST and r["ranks"] > 1]
    groups = _groups(solves)
    labels = list(dict.fromkeys(r["preconditioner"] for r in solves))
    factor = {(_label(r), r["preconditioner"]): r["load_balance"] for r in solves}
    return engine.bars(groups, labels, {label: [factor.get((g, label)) for g in groups] for label in labels},
                       "largest over mean")
