"""Say what a matrix is like, and how swell would solve it.

Size, symmetry, definiteness, dominance, bandwidth, blocks, lengths of rows, storage, pattern and a recommendation. With
--amg also the levels of algebraic multigrid, which takes its setup.
"""
from __future__ import annotations

from pathlib import Path

from swell.cli import source
from swell.cli.output import as_json, check_paths, readable

HELP = "what a matrix is like, and how to solve it"
BAR = 40                # characters of the longest bar of the histogram
BINS = 12


def add_arguments(parser):
    """The arguments of ``swell info``."""
    parser.add_argument("A", help=source.HELP)
    parser.add_argument("--picture", metavar="FILE", help="write a picture of the pattern: .png")
    parser.add_argument("--amg", action="store_true", help="set up algebraic multigrid, and show its levels")
    parser.add_argument("--json", action="store_true", help="print what was found as one JSON object")


def run(arguments) -> int:
    """Read, look, print."""
    check_paths({"--picture": arguments.picture}, (arguments.A,), {"--picture": (".png",)})
    A, notes = source.read_system(arguments.A)
    from swell.inputs import read_matrix
    given = read_matrix(A, "cpu")
    findings = _look(given.A, A)
    findings = {"matrix": arguments.A, **findings, "notes": notes + given.notes}
    if arguments.amg:
        findings["amg"] = _hierarchy(given.A)
    if arguments.picture:
        from swell.report import picture
        title = f"{readable(Path(arguments.A).name)}: {A.shape[0]} unknowns, {A.nnz} entries"
        picture(A, arguments.picture, title=title)
        findings["picture"] = arguments.picture
    if arguments.json:
        print(as_json(findings))
    else:
        _show(findings, A)
    return 0


def _look(A, host) -> dict:
    """Everything that is found, in plain types."""
    import numpy as np

    from swell.formats.blocks import block_size, fill_ratios
    from swell.advisor.definiteness import definiteness
    from swell.formats.sell import SELL
    facts = A.facts()
    ratios = fill_ratios(A)
    lengths = np.diff(host.indptr)
    sell = SELL().build(A)
    return {
        "n": facts.n, "nnz": facts.nnz, "dtype": A.dtype.name, "symmetry": facts.symmetry,
        "definiteness": definiteness(A, facts), "dominant_rows": facts.dominant_rows,
        "zero_diagonal": facts.zero_diagonal, "empty_rows": facts.empty_rows,
        "null_space": "the constants: every row sums to zero" if facts.zero_row_sums else None,
        "bandwidth": facts.bandwidth, "bandwidth_rcm": _bandwidth_rcm(A),
        "block_fill": ratios, "block_size": block_size(ratios),
        "density": facts.nnz / max(facts.n, 1) ** 2,
        "row_lengths": {"min": int(lengths.min(initial=facts.nnz)), "max": int(lengths.max(initial=0)),
                        "mean": facts.nnz / max(facts.n, 1), "deviation": float(lengths.std()) if facts.n else 0.0,
                        "histogram": _histogram(lengths)},
        "csr_bytes_per_entry": A.matrix_bytes / max(facts.nnz, 1),
        "sell": {"padding": sell.padding, "bytes_per_entry": sell.matrix_bytes / max(facts.nnz, 1),
                 "settings": sell.describe()},
        "recommendation": _recommendation(A),
    }


def _bandwidth_rcm(A) -> int:
    """Largest |i − j| of an entry after reverse Cuthill–McKee."""
    from swell.orderings.cuthill_mckee import bandwidth, reverse_order
    return bandwidth(A, reverse_order(A))


def _histogram(lengths) -> list[dict]:
    """How many rows have how many entries, in at most `BINS` steps."""
    import numpy as np
    if not lengths.size:
        return []
    low, high = int(lengths.min()), int(lengths.max())
    step = -(-(high - low + 1) // BINS)
    counts = np.bincount((lengths - low) // step)
    return [{"from": low + k * step, "to": min(low + (k + 1) * step - 1, high), "rows": int(count)}
            for k, count in enumerate(counts)]


def _recommendation(A) -> list[dict]:
    """The advisor's chain: what to try, in order, and why."""
    from swell.advisor.choose import choose
    from swell.core.configuration import Configuration
    from swell.core.settings import describe
    kinds = ("method", "precond", "scaling", "ordering", "format")
    return [{**{kind: describe(getattr(choice, kind)) for kind in kinds}, "why": list(choice.why),
             "predicted": choice.estimate and {"setup": choice.estimate.setup, "solve": choice.estimate.solve,
                                               "iterations": choice.estimate.iterations,
                                               "at_least": choice.estimate.finer is not None}}
            for choice in choose(A, Configuration(None))[0]]


def _hierarchy(A) -> dict:
    """The levels of algebraic multigrid and the seconds of their setup, or why there are none."""
    from swell.core.compilation import Stopwatch, timed
    from swell.core.errors import FactorisationError, InputError
    from swell.preconditioners.amg.report import facts
    from swell.preconditioners.amg.settings import AMG
    timings, watch = {}, Stopwatch()
    try:
        with A.space.active(A.shape[0]), timed(timings, "setup", A.space):
            M = AMG().build(A)
    except (InputError, FactorisationError) as error:
        return {"refused": str(error)}
    return {**facts(M), "setup_seconds": timings["setup"], "compile_seconds": watch.compiled, "notes": list(M.notes)}


def _show(found, A):
    """The findings as text."""
    from rich.console import Console
    from rich.markup import escape
    console = Console(highlight=False)
    size = f"{found['n']} unknowns, {found['nnz']} entries ({found['density']:.3%}), {found['dtype']}"
    console.print(f"[bold]{escape(found['matrix'])}[/]: {size}", soft_wrap=True)
    console.print(_summary(found))
    console.print(_rows(found))
    _show_pattern(console, A)
    _show_recommendation(console, found["recommendation"])
    if "amg" in found:
        _show_hierarchy(console, found["amg"])
    for note in found["notes"]:
        console.print(f"note: {note}", markup=False, soft_wrap=True)
    if found.get("picture"):
        console.print(f"picture written to {found['picture']}", markup=False, soft_wrap=True)


def _summary(found):
    """One property a line."""
    from rich import box
    from rich.table import Table
    table = Table(box=box.SIMPLE, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("symmetry", found["symmetry"])
    table.add_row("definiteness", found["definiteness"])
    table.add_row("diagonal", _diagonal(found))
    table.add_row("null space", found["null_space"] or "the constants are not in it")
    table.add_row("bandwidth", f"{found['bandwidth']}, after reverse Cuthill–McKee {found['bandwidth_rcm']}")
    table.add_row("blocks", _blocks(found))
    sell = found["sell"]
    table.add_row("storage", f"CSR {found['csr_bytes_per_entry']:.1f} bytes an entry, SELL "
                  f"{sell['bytes_per_entry']:.1f} (padding {sell['padding']:.2f})")
    return table


def _diagonal(found):
    """Dominance, zeros and empty rows in a sentence."""
    text = f"dominant in {found['dominant_rows']:.1%} of the rows"
    if found["zero_diagonal"]:
        text += f"; zero in {found['zero_diagonal']} rows"
    return text + (f"; {found['empty_rows']} rows are empty" if found["empty_rows"] else "")


def _blocks(found):
    """The fill ratio of each block size, and what it means."""
    if not found["block_fill"]:
        return "none: no size from 2 to 8 divides the number of unknowns"
    ratios = ", ".join(f"{size}×{size} {ratio:.2f}" for size, ratio in found["block_fill"].items())
    verdict = (f"blocks of {found['block_size']} are nearly full" if found["block_size"] > 1
               else "no dense blocks")
    return f"{verdict} (stored over needed: {ratios})"


def _rows(found):
    """The histogram of the rows' lengths as bars."""
    from rich import box
    from rich.table import Table
    lengths = found["row_lengths"]
    title = f"entries a row: {lengths['min']} to {lengths['max']}, mean {lengths['mean']:.2f}, "
    title += f"deviation {lengths['deviation']:.2f}"
    table = Table(title=title, box=box.SIMPLE, title_justify="left", show_header=False, pad_edge=False)
    table.add_column(justify="right")
    table.add_column(justify="right")
    table.add_column()
    most = max((bin["rows"] for bin in lengths["histogram"]), default=1)
    for bin in lengths["histogram"]:
        label = str(bin["from"]) if bin["from"] == bin["to"] else f"{bin['from']}–{bin['to']}"
        bar = "█" * round(BAR * bin["rows"] / most) or ("▏" if bin["rows"] else "")
        table.add_row(label, str(bin["rows"]), bar)
    return table


def _show_pattern(console, A):
    """The pattern in braille characters, framed."""
    from swell.report.pattern import text
    lines = text(A, width=24)
    if lines:
        console.print("pattern")
        console.print("┌" + "─" * len(lines[0]) + "┐")
        for line in lines:
            console.print(f"│{line}│", markup=False)
        console.print("└" + "─" * len(lines[0]) + "┘")


def _show_recommendation(console, chain):
    """What to try, in order."""
    for k, choice in enumerate(chain):
        parts = [f"{kind} {choice[kind]}" for kind in ("precond", "scaling", "ordering", "format")
                 if choice[kind] != "none"]
        rank = "recommended" if k == 0 else "if that is slow, or fails"
        console.print(f"[bold]{rank}[/]: {', '.join([choice['method'], *parts])}", soft_wrap=True)
        for why in choice["why"]:
            console.print(f"  because {why}", markup=False, soft_wrap=True)
        if (predicted := choice["predicted"]) is not None:
            least = "at least " if predicted["at_least"] else ""
            console.print(f"  predicted: setup {least}{predicted['setup']:.2g} s, solve {predicted['solve']:.2g} s for "
                          f"{predicted['iterations']:.0f} iterations", markup=False, soft_wrap=True)


def _show_hierarchy(console, amg):
    """The levels of algebraic multigrid, or why there are none."""
    from rich import box
    from rich.table import Table

    from swell.preconditioners.amg.report import HEADER, rows, sentences
    if "refused" in amg:
        console.print(f"algebraic multigrid: {amg['refused']}", markup=False, soft_wrap=True)
        return
    compiled = amg["compile_seconds"]
    console.print(f"algebraic multigrid, set up in {amg['setup_seconds']:.2g} s"
                  + (f", compiling kernels {compiled:.2g} s" if compiled > 0.01 else ""))
    table = Table(box=box.SIMPLE, pad_edge=False)
    for name in HEADER:
        table.add_column(name, justify="right")
    for row in rows(amg):
        table.add_row(*map(str, row))
    console.print(table)
    for line in [*sentences(amg), *amg["notes"]]:
        console.print(f"  {line}", markup=False, soft_wrap=True)
