"""Products y = A x: time, bytes by the model, share of the copy speed, SciPy or CuPy (the peer), and stored figures.

``--complex`` also prints table 9 of "Accelerated solution of Helmholtz equation with Iterative Krylov Methods on GPU",
on boxes of its meshes' sizes. ``--tune`` also compares the default format with the one that ``format="tuned"`` finds.
"""
from __future__ import annotations

import statistics
from functools import partial

import numpy as np

from swell.advisor.choose import default_format
from swell.advisor.tuning import Tuned
from swell.bench import engine
from swell.bench.copy_share import of_copy, warn_of_nonsense
from swell.core import timing
from swell.core.registry import resolve
from swell.core.devices import make_space
from swell.formats.csr import CSRMatrix

AGAIN, TURNS = 10, 3    # products timed in a turn, and turns, when the default and the tuned format are compared
RUNS_BESIDE = 5         # runs of SciPy on the host, if the device is a GPU
TABLE9 = ("problem", "format", "unknowns", "entries", "mean ms", "GFLOP/s", "SciPy ms", "GFLOP/s", "ratio")
TUNED = ("matrix", "default", "µs", "tuned", "µs", "default / tuned", "tuning s", "in products")
HEADER = ("matrix", "format", "n", "entries", "µs", "MB by the model", "GB/s", "of copy", "peer", "its µs", "ratio")


def run(arguments) -> int:
    """Run the benchmark; return the exit status. ``arguments``: the parsed command line."""
    formats = {name: resolve("format", name) for name in arguments.formats.split(",")}
    systems = engine.matrices(arguments.matrices, arguments.scale)
    space = make_space(arguments.device)
    with space.active():
        meter = engine.Meter(space)
        copy = f"copy {meter.copy_speed / 1e9:.1f} GB/s"
        findings = engine.Findings(f"swell bench spmv: products, {copy}", space, arguments)
        findings.take(record for name, A in systems for record in _measure(meter, name, A, formats, arguments))
    products = [r for r in findings.records if r["benchmark"] == "spmv"]
    findings.table(f"Products; {copy}", HEADER, _rows(products))
    if arguments.complex:
        findings.table("Table 9: complex products, the mean as in the paper", TABLE9, _table9(products))
    if arguments.tune:
        findings.table("Default beside tuned", TUNED, _tuned_rows(findings.records))
    stored = _stored(products)
    if stored:
        findings.table("Stored figures of others, µs", ("matrix", "figures"), stored)
    warn_of_nonsense(r["copy_share"] for r in products)
    findings.report(("Entries a second, each format beside the peer", _figure(products)))
    return 0


def _measure(meter, name, A, formats, arguments):
    """Yield the records (dicts of results) of one matrix: one for each format, and one of tuning if asked for.
    ``meter``: an ``engine.Meter``; ``formats``: {name: settings}."""
    engine.tell(f"products: {name}")
    space, repeat = meter.space, arguments.repeat or 50
    csr = CSRMatrix.from_scipy(A, space)         # the gallery's matrices are sorted and free of duplicates
    x, y = space.empty(A.shape[0], csr.dtype), space.empty(A.shape[0], csr.dtype)
    space.random(7, x)
    expected = A @ space.to_host(x)
    peer, product = _peer(space, csr, A, x)
    peer_seconds = meter.seconds(product, repeat)
    flops = (8 if csr.dtype.kind == "c" else 2) * A.nnz
    on_host = {}
    if arguments.complex:
        here = space.to_host(x)
        on_host["scipy_mean_seconds"] = statistics.fmean(
            engine.wall_times(lambda: A @ here, repeat if space.name == "cpu" else RUNS_BESIDE, 1))
    for label, settings in formats.items():
        matrix = settings.build(csr)
        with space.active(A.shape[0]):           # with the number of threads that methods use for this size
            times = meter.times(partial(matrix.apply, x, y), repeat)
        seconds = statistics.median(times)
        error = np.linalg.norm(space.to_host(y) - expected) / np.linalg.norm(expected)
        yield {"benchmark": "spmv", "matrix": name, "n": A.shape[0], "nnz": A.nnz, "dtype": csr.dtype.name,
               "format": label, "settings": matrix.describe(), "seconds": seconds,
               "mean_seconds": statistics.fmean(times), "flops": flops, **on_host, "bytes": matrix.product_bytes,
               "matrix_bytes": matrix.matrix_bytes, "bytes_per_second": matrix.product_bytes / seconds,
               "copy_bytes_per_second": meter.copy_speed,
               "copy_share": matrix.product_bytes / seconds / meter.copy_speed, "relative_error": float(error),
               "peer": peer, "peer_seconds": peer_seconds, "ratio": peer_seconds / seconds,
               "published_us": engine.published("spmv_us", space, name, arguments.scale), "scale": arguments.scale,
               **engine.circumstances(space)}
    if arguments.tune:
        yield _tune(space, name, csr, x, y)


def _tune(space, name, csr, x, y):
    """Tune the format of ``csr``, and time y = A x in the default and the tuned one again, in turn; return the record,
    a dict."""
    default = default_format(csr).build(csr)
    with engine.stopwatch(space) as elapsed:
        tuned = Tuned(seconds=60.0, cache=False).build(csr)
    pairs = [[timing.seconds(space, partial(M.apply, x, y), AGAIN) for M in (default, tuned)] for _ in range(TURNS)]
    before, after = (min(times) for times in zip(*pairs))
    return {"benchmark": "spmv tuned", "matrix": name, "n": csr.shape[0], "nnz": csr.nnz, "dtype": csr.dtype.name,
            "default": default.describe(), "tuned": tuned.describe(), "origin": tuned.origin,
            "default_seconds": before, "tuned_seconds": after, "gain": before / after, "tuning_seconds": elapsed[0],
            "tuning_products": elapsed[0] / before, **engine.circumstances(space)}


def _peer(space, csr, A, x):
    """Return (name of the library beside swell, a function without arguments that computes A x by it)."""
    if space.name == "cpu":
        return "SciPy", lambda: A @ x
    from cupyx.scipy.sparse import csr_matrix
    theirs = csr_matrix((csr.data, csr.indices, csr.indptr), shape=csr.shape)
    return "CuPy", lambda: theirs @ x


def _rows(records):
    return [(r["matrix"], r["format"], r["n"], r["nnz"], f"{1e6 * r['seconds']:.1f}", f"{r['bytes'] / 1e6:.1f}",
             f"{r['bytes_per_second'] / 1e9:.1f}", of_copy(r["copy_share"]), r["peer"],
             f"{1e6 * r['peer_seconds']:.1f}", f"{r['ratio']:.2f}") for r in records]


def _table9(records):
    """Return the rows of the paper's table 9: this device, SciPy on the host, and the ratio of their times."""
    return [(r["matrix"], r["format"], r["n"], r["nnz"], f"{1e3 * r['mean_seconds']:.4f}",
             f"{r['flops'] / r['mean_seconds'] / 1e9:.2f}", f"{1e3 * r['scipy_mean_seconds']:.4f}",
             f"{r['flops'] / r['scipy_mean_seconds'] / 1e9:.2f}", f"{r['scipy_mean_seconds'] / r['mean_seconds']:.2f}")
            for r in records if r["dtype"].startswith("complex")]


def _tuned_rows(records):
    return [(r["matrix"], _short(r["default"]), f"{1e6 * r['default_seconds']:.1f}", _short(r["tuned"]),
             f"{1e6 * r['tuned_seconds']:.1f}", f"{r['gain']:.2f}", f"{r['tuning_seconds']:.2f}",
             f"{r['tuning_products']:.0f}") for r in records if r["benchmark"] == "spmv tuned"]


def _short(description):
    """Return a format's description without its padding and its offsets."""
    return description.split(", padding")[0].split(", 16-bit")[0]


def _stored(records):
    """Return rows of (matrix, stored figures as text), for the matrices that have any."""
    figures = {r["matrix"]: engine.in_microseconds(r["published_us"]) for r in records if r["published_us"]}
    return list(figures.items())


def _figure(records):
    """Return a figure: bars of 10⁹ entries a second, for each format and the peer."""
    names = list(dict.fromkeys(r["matrix"] for r in records))
    labels = list(dict.fromkeys(r["format"] for r in records))
    rate = {(r["matrix"], r["format"]): r["nnz"] / r["seconds"] / 1e9 for r in records}
    theirs = {r["matrix"]: r["nnz"] / r["peer_seconds"] / 1e9 for r in records}
    values = {f"swell {label}": [rate.get((name, label)) for name in names] for label in labels}
    values[records[0]["peer"] if records else "peer"] = [theirs[name] for name in names]
    return engine.bars(names, list(values), values, "10⁹ entries a second")
