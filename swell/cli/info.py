"""Describe a matrix, and recommend a solver.

Shows size, symmetry, definiteness, dominance, bandwidth, blocks, entries a row, storage, pattern and a recommendation,
as options of swell solve. Of a singular matrix it says why it is singular.
With --amg, also sets up algebraic multigrid and shows its levels.
"""
from __future__ import annotations

from pathlib import Path

from swell.cli import source
from swell.cli.output import as_json, check_paths, for_shell, readable

HELP = "describe a matrix, and recommend a solver"
BAR = 40                # characters of the longest bar of the histogram
BINS = 12
SOLVE = ("method", "precond", "scaling", "ordering", "format", "nullspace", "project")     # options of swell solve


def add_arguments(parser):
    """Add the arguments of ``swell info``."""
    parser.add_argument("A", help=source.HELP)
    parser.add_argument("--picture", metavar="FILE", help="write a picture of the pattern: .png")
    parser.add_argument("--amg", action="store_true", help="set up algebraic multigrid, and show its levels")
    parser.add_argument("--json", action="store_true", help="print the findings as one JSON object")


def run(arguments) -> int:
    """Read the matrix, analyse it, print the findings; return the exit status."""
    check_paths({"--picture": arguments.picture}, (arguments.A,), {"--picture": (".png",)})
    A, notes = source.read_system(arguments.A)
    from swell.inputs import read_matrix
    matrix = read_matrix(A, "cpu")
    findings = _look(matrix.A, A)
    findings = {"matrix": arguments.A, **findings, "notes": notes + matrix.notes}
    if arguments.amg:
        findings["amg"] = _hierarchy(matrix.A)
    if arguments.picture:
        from swell.report import picture
        title = f"{readable(Path(arguments.A).name)}: {A.shape[0]} unknowns, {A.nnz} entries"
        picture(A, arguments.picture, title=title)
        findings["picture"] = arguments.picture
    if arguments.json:
        print(as_json(findings, SOLVE))
    else:
        _show(findings, A)
    return 0


def _look(A, host) -> dict:
    """Analyse a matrix and return the findings as a dict of plain types. A: the matrix as a CSRMatrix; ``host``: the
    same as a SciPy matrix."""
    import numpy as np

    from swell.formats.blocks import block_size, fill_ratios
    from swell.advisor.definiteness import definiteness
    from swell.formats.sell import SELL
    facts = A.facts()
    ratios = fill_ratios(A)
    singular = _singular(A)
    lengths = np.diff(host.indptr)
    sell = SELL().build(A)
    return {
        "n": facts.n, "nnz": facts.nnz, "dtype": A.dtype.name, "symmetry": facts.symmetry,
        "definiteness": definiteness(A, facts), "dominant_rows": facts.dominant_rows,
        "zero_diagonal": facts.zero_diagonal, "empty_rows": facts.empty_rows,
        "null_space": "the constants: every row sums to zero" if facts.zero_row_sums else None,
        "singular": singular,
        "bandwidth": facts.bandwidth, "bandwidth_rcm": _bandwidth_rcm(A),
        "block_fill": ratios, "block_size": block_size(ratios),
        "density": facts.nnz / max(facts.n, 1) ** 2,
        "row_lengths": {"min": int(lengths.min(initial=facts.nnz)), "max": int(lengths.max(initial=0)),
                        "mean": facts.nnz / max(facts.n, 1), "deviation": float(lengths.std()) if facts.n else 0.0,
                        "histogram": _histogram(lengths)},
        "csr_bytes_per_entry": A.matrix_bytes / max(facts.nnz, 1),
        "sell": {"padding": sell.padding, "bytes_per_entry": sell.matrix_bytes / max(facts.nnz, 1),
                 "settings": sell.describe()},
        "recommendation": _recommendation(A, singular or facts.zero_row_sums),
    }


def _singular(A) -> list[str]:
    """Return sentences on why A is singular; empty if nothing says that it is."""
    from swell.solving.singularity import Components
    parts = Components(A)
    return parts.sentences() + parts.advice(code=False) if parts.singular else []


def _bandwidth_rcm(A) -> int:
    """Return the largest |i − j| of an entry after reordering by reverse Cuthill–McKee; A is not changed."""
    from swell.orderings.cuthill_mckee import bandwidth, reverse_order
    return bandwidth(A, reverse_order(A))


def _histogram(lengths) -> list[dict]:
    """Return a histogram of the rows' numbers of entries (``lengths``), with at most `BINS` bins: a list of dicts."""
    import numpy as np
    if not lengths.size:
        return []
    low, high = int(lengths.min()), int(lengths.max())
    step = -(-(high - low + 1) // BINS)
    counts = np.bincount((lengths - low) // step)
    return [{"from": low + k * step, "to": min(low + (k + 1) * step - 1, high), "rows": int(count)}
            for k, count in enumerate(counts)]


def _recommendation(A, singular) -> list[dict]:
    """Return the advisor's choices for A in order, as dicts with reasons and predictions.

    ``singular``: leave out direct solvers, which would divide by a zero pivot."""
    from swell.advisor.choose import choose
    from swell.core.configuration import Configuration
    from swell.core.settings import describe
    kinds = ("method", "precond", "scaling", "ordering", "format")
    return [{**{kind: describe(getattr(choice, kind)) for kind in kinds},
             "why": [why for why in choice.why if not (singular and "direct solver" in why)],
             "options": _options(choice, kinds),
             "predicted": choice.prediction and {"setup": choice.prediction.setup, "solve": choice.prediction.solve,
                                                 "iterations": choice.prediction.iterations,
                                                 "at_least": choice.prediction.refine is not None}}
            for choice in choose(A, Configuration(None))[0] if not (singular and choice.name("method") == "direct")]


def _options(choice, kinds) -> str:
    """Return a choice as options of ``swell solve``: --method cg --precond 'ic0(level=1)'."""
    import shlex

    from swell.core.settings import describe
    parts = [(kind, getattr(choice, kind)) for kind in kinds if getattr(choice, kind) is not None]
    return " ".join(f"--{kind} " + shlex.quote(choice.name(kind) + describe(part).removeprefix(type(part).__name__)
                                               .removesuffix("()")) for kind, part in parts)


def _hierarchy(A) -> dict:
    """Set up algebraic multigrid for A; return a dict with its levels and the seconds of the setup, or {"refused":
    reason}."""
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


def _show(findings, A):
    """Print the findings, the dict of `_look`, as text. A: the matrix, for its pattern."""
    from rich.console import Console
    from rich.markup import escape
    console = Console(highlight=False)
    size = f"{findings['n']} unknowns, {findings['nnz']} entries ({findings['density']:.3%}), {findings['dtype']}"
    console.print(f"[bold]{escape(findings['matrix'])}[/]: {size}", soft_wrap=True)
    console.print(_summary(findings))
    console.print(_rows(findings))
    _show_pattern(console, A)
    for sentence in findings["singular"]:
        console.print(f"singular: {for_shell(sentence, SOLVE)}", markup=False, soft_wrap=True)
    _show_recommendation(console, findings["recommendation"])
    if "amg" in findings:
        _show_hierarchy(console, findings["amg"])
    for note in findings["notes"]:
        console.print(f"note: {note}", markup=False, soft_wrap=True)
    if findings.get("picture"):
        console.print(f"picture written to {findings['picture']}", markup=False, soft_wrap=True)


def _summary(findings):
    """Return a table of properties, one a line; ``findings``: the dict of `_look`."""
    from rich import box
    from rich.table import Table
    table = Table(box=box.SIMPLE, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("symmetry", findings["symmetry"])
    table.add_row("definiteness", findings["definiteness"])
    table.add_row("diagonal", _diagonal(findings))
    table.add_row("null space", findings["null_space"] or "the constants are not in it")
    table.add_row("bandwidth", f"{findings['bandwidth']}, after reverse Cuthill–McKee {findings['bandwidth_rcm']}")
    table.add_row("blocks", _blocks(findings))
    sell = findings["sell"]
    table.add_row("storage", f"CSR {findings['csr_bytes_per_entry']:.1f} bytes an entry, SELL "
                  f"{sell['bytes_per_entry']:.1f} (padding {sell['padding']:.2f})")
    return table


def _diagonal(findings):
    """Return a text on diagonal dominance, zeros on the diagonal and empty rows; ``findings``: the dict of `_look`."""
    text = f"dominant in {findings['dominant_rows']:.1%} of the rows"
    if findings["zero_diagonal"]:
        text += f"; zero in {findings['zero_diagonal']} rows"
    return text + (f"; {findings['empty_rows']} rows are empty" if findings["empty_rows"] else "")


def _blocks(findings):
    """Return a text on dense blocks: a sentence, and the fill ratio of each block size; ``findings``: the dict of
    `_look`."""
    if not findings["block_fill"]:
        return "none: no size from 2 to 8 divides the number of unknowns"
    ratios = ", ".join(f"{size}×{size} {ratio:.2f}" for size, ratio in findings["block_fill"].items())
    sentence = (f"blocks of {findings['block_size']} are nearly full" if findings["block_size"] > 1
                else "no dense blocks")
    return f"{sentence} (stored over needed: {ratios})"


def _rows(findings):
    """Return the histogram of entries a row as a table with bars; ``findings``: the dict of `_look`."""
    from rich import box
    from rich.table import Table
    lengths = findings["row_lengths"]
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
    """Print the pattern of A in braille characters, in a frame, on a rich console."""
    from swell.report.pattern import text
    lines = text(A, width=24)
    if lines:
        console.print("pattern")
        console.print("┌" + "─" * len(lines[0]) + "┐")
        for line in lines:
            console.print(f"│{line}│", markup=False)
        console.print("└" + "─" * len(lines[0]) + "┘")


def _show_recommendation(console, choices):
    """Print the advisor's choices in order; ``choices``: the list of `_recommendation`."""
    from rich.markup import escape

    from swell.solving.choice_cost import count, other_work
    for k, choice in enumerate(choices):
        rank = "recommended" if k == 0 else "if this is slow, or fails"
        console.print(f"[bold]{rank}[/]: {escape(choice['options'])}", soft_wrap=True)
        for why in choice["why"]:
            console.print(f"  because {why}", markup=False, soft_wrap=True)
        if (predicted := choice["predicted"]) is not None:
            least = "at least " if predicted["at_least"] else ""
            console.print(f"  predicted: setup {least}{predicted['setup']:.2g} s, solve {predicted['solve']:.2g} s for "
                          f"{count(predicted['iterations'], 'iteration')}", markup=False, soft_wrap=True)
    for line in other_work():
        console.print(f"  {line}", markup=False, soft_wrap=True)


def _show_hierarchy(console, amg):
    """Print the levels of algebraic multigrid, or the reason why there are none; ``amg``: the dict of `_hierarchy`."""
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
