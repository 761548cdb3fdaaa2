"""``swell bench scaling``: start the ranks, collect and show their records, and fit the model to them."""
from __future__ import annotations

import importlib.util
from pathlib import Path

from swell.bench import engine
from swell.bench.scaling import start
from swell.bench.scaling.model import PREDICTED, deviation
from swell.bench.scaling.prediction import Prediction, held_out
from swell.core.ahead import cores
from swell.core.errors import InputError, MissingDependency
from swell.distributed.partition import consecutive
from swell.formats.blocks import checked_block_size
from swell.io.rows import open_rows

MODULE = "swell.bench.scaling.ranks"
RANKS, SWEEPS = "1,2", "1,2,3,4,5,6,7,8"
UNKNOWNS = 64**3
REPEAT, SOLVE_REPEAT = 20, 10
LINKS = ("ranks", "threads each", "copy GB/s a rank", "8 B one way, µs", "longest message GB/s", "sum of 1, µs",
         "sum of 64, µs")
PRODUCTS = ("matrix", "scaling", "n", "block", "ranks", "overlap µs", "without µs", "least", "least without",
            "pack", "exchange", "diagonal block", "rest", "communication %", "load balance", "efficiency %")
ITERATIONS = ("matrix", "scaling", "method", "ranks", "µs an iteration", "reductions", "efficiency %")
SOLVES = ("matrix", "scaling", "preconditioner", "ranks", "a restart's steps ms: least", "largest", "mean",
          "load balance", "iterations", "reason", "solve ms", "efficiency %")
LOCAL = ("matrix", "scaling", "method", "overhead o, µs", "share of copy speed e")
TESTED = ("matrix", "scaling", "method", "ranks", "measured µs", "predicted µs", "ratio")
PREDICTIONS = ("matrix", "scaling", "method", "1 rank µs", *(f"{p}" for p in PREDICTED))
ALONE = "no prediction: the model is fitted to times of 1 rank and of 2 or more, and --ranks names {}"


def run(arguments) -> int:
    """Run the benchmark; return the exit status. ``arguments``: the parsed command line."""
    program = start.mpiexec("scaling")
    ranks = numbers("ranks", arguments.ranks, RANKS)
    threads = arguments.threads or max(1, cores() // max(ranks))
    settings = _settings(arguments, max(ranks))
    place = Place(arguments.device, threads)
    findings = engine.Findings("swell bench scaling", place, arguments)
    for count in ranks:
        crowded = count * threads > cores()
        if crowded:
            engine.tell(f"{count * threads} threads wait for one another on {cores()} cores: the times of "
                        f"{count} ranks say little")
        findings.take({**record, "threads": threads, "oversubscribed": crowded, **engine.circumstances(place)}
                      for record in start.records(program, count, threads, settings, MODULE))
    records = [r for r in findings.records if r.get("scaling") != "overhead"]
    findings.table("Copies, messages, reductions", LINKS, _links(records))
    findings.table("Figure 10: a product, with and without overlap", PRODUCTS, _products(records))
    findings.table("Figure 11: an iteration without preconditioner", ITERATIONS, _iterations(records))
    if settings["solves"]:
        findings.table("Tables 2 to 4: GMRES(30) with ILU(0) of each rank's block", SOLVES, _solves(records))
    prediction, predicted = None, []
    if 1 in ranks and max(ranks) > 1:
        prediction = Prediction(findings.records, threads, cores())
        predicted = findings.take(prediction.records())
        _predicted(findings, prediction, predicted)
    else:
        engine.tell(ALONE.format(",".join(map(str, ranks))))
    if arguments.report:
        from swell.bench.scaling.figures import figures
        findings.report(*figures(records, prediction, predicted))
    if arguments.csv:
        engine.write_csv(arguments.csv, findings.records)
    return 0


class Place:
    """The device and threads of the ranks, for titles of tables; stands in for a Space."""

    def __init__(self, device, threads):
        self.name, self.threads = device.split(":")[0], threads

    def describe(self) -> str:
        """The device and the threads of a rank, as text."""
        return f"{self.name}, ranks of {self.threads} thread{'s' if self.threads > 1 else ''}"


def numbers(option, text, default=None) -> list[int]:
    """Parse ``text``, positive whole numbers separated by commas, or ``default`` if it is None; return them ascending,
    or raise InputError, whose message names ``option``."""
    text = default if text is None else text
    words = [word.strip() for word in str(text).split(",") if word.strip()]
    if not words or not all(word.isdigit() and int(word) for word in words):
        raise InputError(f"--{option} {text}: expected positive whole numbers separated by commas, such as 1,2")
    return sorted({int(word) for word in words})


def _settings(arguments, most) -> dict:
    """Return the settings for the ranks as a dict, checked as far as possible; ``most``: the largest number of
    ranks."""
    engine.matrices(arguments.matrices, arguments.scale)             # raises for an unknown name
    checked_block_size(arguments.block, 0)
    for path in arguments.files or ():
        if not Path(path).is_dir():
            n = open_rows(path).shape[0]                             # raises for an unreadable file
            consecutive(n, most, checked_block_size(arguments.block, n) or 1)          # ... or for too few rows
    if arguments.partition == "graph" and importlib.util.find_spec("pymetis") is None:
        raise MissingDependency("--partition graph needs pymetis: pip install 'swell[partition]'")
    return {"device": arguments.device, "scale": arguments.scale, "partition": arguments.partition,
            "matrices": [name.strip() for name in arguments.matrices.split(",") if name.strip()],
            "files": arguments.files or [], "block": arguments.block, "predicted": PREDICTED,
            "side": max(2, round((arguments.unknowns or UNKNOWNS * arguments.scale) ** (1 / 3))),
            "repeat": arguments.repeat or REPEAT, "solve-repeat": arguments.repeat or SOLVE_REPEAT,
            "solves": not arguments.no_solves, "sweeps": numbers("sweeps", arguments.sweeps, SWEEPS)}


def _of(records, kind):
    return [r for r in records if r["benchmark"] == f"scaling {kind}"]


def efficiency(records, record, same, time="seconds") -> float:
    """Return the parallel efficiency of a record in per cent, relative to the record of this case with the fewest
    ranks, among ``records``.

    Strong scaling divides the work among the ranks; weak scaling keeps the work a rank.

    Parameters
    ----------
    same : tuple of str
        The fields in which records of a case agree, besides benchmark, scaling and matrix.
    time : str
        The field that holds the time.
    """
    case = [r for r in records if all(r[name] == record[name] for name in ("benchmark", "scaling", "matrix", *same))]
    first = min(case, key=lambda r: r["ranks"])
    if not (first[time] and record[time]):
        return float("nan")
    work = record["ranks"] / first["ranks"] if record["scaling"] == "strong" else 1
    return 100 * first[time] / (record[time] * work)


def _micro(seconds):
    return "" if seconds is None else f"{1e6 * seconds:.1f}"


def _links(records):
    rows = []
    for r in _of(records, "links"):
        messages, sums = r["messages"], [t for _, t in r["reductions"]]
        between = (_micro(messages[0][1]), f"{1e-9 * messages[-1][0] / messages[-1][1]:.2f}", _micro(sums[0]),
                   _micro(sums[-1])) if messages else ("",) * 4
        rows.append((r["ranks"], r["threads"], f"{1e-9 * r['copy_bytes_per_second']:.2f}", *between))
    return rows


def _products(records):
    return [(r["matrix"], r["scaling"], r["n"], r["block"], r["ranks"], *(_micro(r[part]) for part in (
        "seconds", "seconds_without_overlap", "least", "least_without_overlap", "pack", "exchange", "local", "rest")),
        f"{100 * r['share_of_communication']:.1f}", f"{r['load_balance']:.2f}",
        f"{efficiency(records, r, (), 'least'):.0f}")
        for r in _in_order(_of(records, "product"))]


def _iterations(records):
    return [(r["matrix"], r["scaling"], r["method"], r["ranks"], _micro(r["seconds"]), f"{r['reductions']:.2f}",
             f"{efficiency(records, r, ('method',)):.0f}") for r in _in_order(_of(records, "iteration"))]


def _solves(records):
    return [(r["matrix"], r["scaling"], r["preconditioner"], r["ranks"],
             *(f"{1e3 * r[part]:.2f}" for part in ("least", "largest", "mean")), f"{r['load_balance']:.2f}",
             r["iterations"], r["reason"], f"{1e3 * r['seconds']:.1f}",
             f"{efficiency(records, r, ('preconditioner',)):.0f}") for r in _in_order(_of(records, "solve"))]


def _in_order(records):
    """Return the records sorted by case, in order of first occurrence, then by ranks."""
    places = {}
    for r in records:
        places.setdefault(_case(r), len(places))
    return sorted(records, key=lambda r: (places[_case(r)], r["ranks"]))


def _case(record):
    return record["scaling"], record["matrix"], record.get("method"), record.get("preconditioner")


def _predicted(findings, prediction, predicted):
    """Show the model's tables: its parameters, its deviation from measurements, its predictions. ``findings``: an
    ``engine.Findings``; ``prediction``: a Prediction; ``predicted``: its records."""
    findings.table("The model's links (docs/SCALING.md)", ("parameter", "value"), prediction.parameters())
    findings.table("The model's ranks", LOCAL, prediction.shares_of_speed())
    seen = held_out(predicted)
    if seen:
        off = deviation([r["seconds"] for r in seen], [r["measured"] for r in seen])
        crowded = "; the ranks had to share cores, and the model is fitted to that" if prediction.crowded else ""
        findings.table("The model beside times that it was not fitted to: off by a factor "
                       f"{1 + off:.2f} (root mean square)" + crowded, TESTED,
                       [(*(r[key] for key in ("matrix", "scaling", "method", "ranks")), _micro(r["measured"]),
                         _micro(r["seconds"]), f"{r['seconds'] / r['measured']:.2f}") for r in seen])
    rows = []
    for scaling, matrix, method in prediction.local:
        on = {r["ranks"]: r for r in predicted if _case(r) == (scaling, matrix, method, None)}
        rows.append((matrix, scaling, method, _micro(on[1]["seconds"]),
                     *(f"{_micro(on[p]['seconds'])} ({100 * on[p]['efficiency']:.0f} %)" if p in on else ""
                       for p in PREDICTED)))
    findings.table("Predicted µs an iteration (and parallel efficiency), by number of ranks", PREDICTIONS, rows)
