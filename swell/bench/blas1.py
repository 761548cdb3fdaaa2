"""Vector operations: tables 3 to 8 of "Accelerated solution of Helmholtz equation with Iterative Krylov Methods on
GPU", and one fused operation.

Sizes and operation counts are the paper's; times are the mean of 100 runs, as in the paper, and the median. Assign is
y = α. The paper does not define it, but a copy in the time of its second card would be faster than that card's memory
(480 MB in 3.03 ms; a GTX 570 has 152 GB/s). Operations an entry, for complex numbers: 1 (assign), 6 (scale, product),
8 (axpy, dot), 5 (norm, as the paper counts; swell would count 4). More than 100 % of the copy speed means that vectors
stay in a cache; above 1000 % the copy was measured on a busy machine, and the share is nonsense.
"""
from __future__ import annotations

import statistics
from dataclasses import dataclass
from functools import partial

import numpy as np

from swell.bench import engine
from swell.bench.copy_share import of_copy, warn_of_nonsense
from swell.core.errors import InputError
from swell.core.settings import DTYPES
from swell.core.devices import make_space
from swell.core.space import accumulator

SIZES = 100_000, 500_000, 1_000_000, 8_000_000, 10_000_000, 15_000_000
RUNS = 100
RUNS_BESIDE = 3         # runs of NumPy on the host, if the device is a GPU


@dataclass(frozen=True)
class Operation:
    """One operation.

    ``name``: its name, also of the space's method; ``table``: the paper's table, or 0; ``moved``: vectors read and
    written; ``flops``: flops an entry for (real, complex) numbers.
    """

    name: str
    formula: str
    table: int
    moved: int
    flops: tuple[int, int]


OPERATIONS = (
    Operation("assign", "y = α", 3, 1, (1, 1)),
    Operation("scale", "x = α x", 4, 2, (1, 6)),
    Operation("axpy", "y = α x + y", 5, 3, (2, 8)),
    Operation("multiply", "y = x y, element by element", 6, 3, (1, 6)),
    Operation("dot", "(x, y)", 7, 2, (2, 8)),
    Operation("norm", "‖x‖₂", 8, 1, (2, 5)),
    Operation("axpy_dots", "y = α x + y with (w, y) and (y, y), one pass", 0, 4, (6, 21)),
)
HEADER = ("h", "mean ms", "median ms", "GFLOP/s", "GB/s", "of copy")


def run(arguments) -> int:
    """Run the benchmark; return the exit status. ``arguments``: the parsed command line."""
    dtypes = [name.strip() for name in arguments.dtypes.split(",")]
    for name in dtypes:
        if name not in DTYPES:
            raise InputError(f"--dtypes: there is no {name!r}; expected some of {', '.join(DTYPES)}")
    sizes = [max(1, round(arguments.scale * size)) for size in SIZES]
    space = make_space(arguments.device)
    with space.active():
        meter = engine.Meter(space)
        copy = f"copy {meter.copy_speed / 1e9:.1f} GB/s"
        findings = engine.Findings(f"swell bench blas1: vector operations, {copy}", space, arguments)
        for dtype in dtypes:
            records = findings.take(record for n in sizes for record in _measure(meter, n, np.dtype(dtype), arguments))
            for operation in OPERATIONS:
                of_operation = [r for r in records if r["operation"] == operation.name]
                _table(findings, operation, of_operation, f"{dtype}, {copy}")
    warn_of_nonsense(r["copy_share"] for r in findings.records)
    findings.report(*((f"{dtype}: bytes a second", _figure(findings.records, dtype, meter)) for dtype in dtypes))
    return 0


def _measure(meter, n, dtype, arguments):
    """Yield one record (dict of results) for each operation, on vectors of n entries; ``meter``: an
    ``engine.Meter``."""
    engine.tell(f"vector operations: {dtype.name}, {n}")
    space, repeat = meter.space, arguments.repeat or RUNS
    alpha = dtype.type(0.6 + 0.8j if dtype.kind == "c" else -1)  # modulus 1: repetitions cannot overflow
    x, y, w, out = (space.empty(n, dtype), space.empty(n, dtype), space.empty(n, dtype),
                    space.empty(2, accumulator(dtype)))
    for seed, v in enumerate((x, y, w)):
        space.random(seed, v)
        v += dtype.type(1j) * v[::-1].copy() if dtype.kind == "c" else 0
    space.xp.divide(x, abs(x) + np.finfo(dtype).tiny, out=x)     # modulus 1, for the products
    host = [space.to_host(v).copy() for v in (x, y, w)]          # NumPy's vectors, changed by all operations in turn
    room = np.empty(n, dtype)
    for operation in OPERATIONS:
        vectors = [v.copy() for v in (x, y, w)]
        ours = partial(_ours, space, operation.name, alpha, *vectors, out)
        error = _error(space, ours, operation.name, alpha, vectors, out)
        times = meter.times(ours, repeat)
        peers = {}
        if space.name == "cuda":
            t = space.empty(n, dtype)
            peers["CuPy"] = statistics.fmean(meter.times(partial(_theirs, space.xp, operation.name, alpha, *vectors, t),
                                                         repeat))
        theirs = partial(_theirs, np, operation.name, alpha, *host, room)
        counts = (repeat,) if space.name == "cpu" else (RUNS_BESIDE, 1)
        peers["NumPy"] = statistics.fmean(engine.wall_times(theirs, *counts))
        mean, median = statistics.fmean(times), statistics.median(times)
        bytes_, flops = operation.moved * n * dtype.itemsize, operation.flops[dtype.kind == "c"] * n
        yield {"benchmark": "blas1", "operation": operation.name, "table": operation.table, "n": n, "dtype": dtype.name,
               "mean_seconds": mean, "median_seconds": median, "runs": repeat, "flops": flops,
               "flops_per_second": flops / mean, "bytes": bytes_, "bytes_per_second": bytes_ / median,
               "copy_bytes_per_second": meter.copy_speed, "copy_share": bytes_ / median / meter.copy_speed,
               "relative_error": error, "peer_mean_seconds": peers, "scale": arguments.scale,
               **engine.circumstances(space)}


def _ours(space, name, alpha, x, y, w, out):
    """Do the operation ``name`` by swell's space, in place on x or y; ``alpha``: its scalar, w: a further input,
    ``out``: for its sums."""
    if name == "assign":
        space.assign(alpha, y)
    elif name == "scale":
        space.scale(alpha, x)
    elif name == "axpy":
        space.axpy(alpha, x, y)
    elif name == "multiply":
        space.multiply(x, y)
    elif name == "dot":
        space.dot(x, y, out)
    elif name == "norm":
        space.norm(x, out)
    else:
        space.axpy_dots(alpha, x, y, w, out)


def _theirs(xp, name, alpha, x, y, w, t):
    """Do the operation ``name`` with the scalar ``alpha`` by NumPy or CuPy (``xp``), in place; ``t`` is a work vector.
    Return a tuple of its sums, often empty."""
    if name == "assign":
        y.fill(alpha)
    elif name == "scale":
        xp.multiply(x, alpha, out=x)
    elif name == "multiply":
        xp.multiply(x, y, out=y)
    elif name in ("axpy", "axpy_dots"):
        xp.multiply(x, alpha, out=t)
        xp.add(y, t, out=y)
    if name == "dot":
        return (xp.vdot(x, y),)
    if name == "norm":
        return (xp.linalg.norm(x),)
    return (xp.vdot(w, y), xp.vdot(y, y)) if name == "axpy_dots" else ()


def _error(space, ours, name, alpha, vectors, out):
    """Return the relative error of the operation ``name`` when ``ours()`` does it on ``vectors`` and ``out``, against
    NumPy or CuPy in double.

    For vectors: largest difference over largest value. For sums: difference over the product of the norms.
    """
    xp = space.xp
    wide = [v.astype(out.dtype) for v in vectors]
    sums = _theirs(xp, name, out.dtype.type(alpha), *wide, xp.empty_like(wide[0]))
    out.fill(np.nan)
    ours()
    error = max(float(abs(a - b).max()) for a, b in zip(vectors, wide)) / max(float(abs(wide[1]).max()), 1)
    norms = [float(xp.linalg.norm(v)) for v in wide]
    scale = max(norms[0], norms[2]) * max(norms[1], 1)
    return max([error, *(float(abs(a - b)) / scale for a, b in zip(out, sums))])


def _table(findings, operation, records, facts):
    """Add one of the paper's tables, for an Operation, to ``findings``, an ``engine.Findings``, which prints it.
    ``facts``: a text for its title."""
    peers = list(records[0]["peer_mean_seconds"])
    header = (*HEADER, *(title for peer in peers for title in (f"{peer} ms", "ratio")))
    number = f"Table {operation.table}" if operation.table else "Fused"
    findings.table(f"{number}: {operation.name}, {operation.formula}; {facts}", header, [
        (f"{r['n']:,}", f"{1e3 * r['mean_seconds']:.4f}", f"{1e3 * r['median_seconds']:.4f}",
         f"{r['flops_per_second'] / 1e9:.2f}", f"{r['bytes_per_second'] / 1e9:.1f}", of_copy(r["copy_share"]),
         *(cell for peer in peers for cell in (f"{1e3 * r['peer_mean_seconds'][peer]:.4f}",
                                               f"{r['peer_mean_seconds'][peer] / r['mean_seconds']:.2f}")))
        for r in records])


def _figure(records, dtype, meter):
    """Return a figure for one type of numbers: bars of GB/s for every operation and size, beside a copy, whose speed
    ``meter`` has measured."""
    records = [r for r in records if r["dtype"] == dtype]
    sizes = list(dict.fromkeys(r["n"] for r in records))
    values = {op.name: [next(r["bytes_per_second"] for r in records if (r["operation"], r["n"]) == (op.name, n)) / 1e9
                        for n in sizes] for op in OPERATIONS}
    values["copy"] = [meter.copy_speed / 1e9] * len(sizes)
    return engine.bars([f"{n:,}" for n in sizes], list(values), values, "GB/s")
