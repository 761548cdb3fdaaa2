"""Products y = A x: time, bytes by the model, share of the copy speed, the peer of the same run, and stored figures."""
from __future__ import annotations

from functools import partial

import numpy as np

from swell.bench import engine
from swell.core.registry import resolve
from swell.core.space import make_space
from swell.formats.csr import CSRMatrix

HEADER = ("matrix", "format", "n", "entries", "µs", "MB by the model", "GB/s", "of copy", "peer", "its µs", "ratio")


def run(arguments) -> int:
    """Measure, print, write."""
    formats = {name: resolve("format", name) for name in arguments.formats.split(",")}
    systems = engine.matrices(arguments.matrices, arguments.scale)
    space = make_space(arguments.device)
    with space.active():
        meter = engine.Meter(space)
        found = engine.Findings(f"swell bench spmv: products, copy {meter.copy_speed / 1e9:.1f} GB/s", space, arguments)
        found.take(record for name, A in systems for record in _measure(meter, name, A, formats, arguments))
    found.table(f"Products; copy {meter.copy_speed / 1e9:.1f} GB/s", HEADER, _rows(found.records))
    stored = _stored(found.records)
    if stored:
        found.table("Stored figures of others, µs", ("matrix", "figures"), stored)
    found.report(("Entries a second, each format beside the peer", _figure(found.records)))
    return 0


def _measure(meter, name, A, formats, arguments):
    """A record for each format."""
    engine.tell(f"products: {name}")
    space, repeat = meter.space, arguments.repeat or 50
    csr = CSRMatrix.from_scipy(A, space)         # the gallery's matrices are sorted and free of duplicates
    x, y = space.empty(A.shape[0], csr.dtype), space.empty(A.shape[0], csr.dtype)
    space.random(7, x)
    expected = A @ space.to_host(x)
    peer, product = _peer(space, csr, A, x)
    peer_seconds = meter.seconds(product, repeat)
    for label, settings in formats.items():
        matrix = settings.build(csr)
        seconds = meter.seconds(partial(matrix.apply, x, y), repeat)
        error = np.linalg.norm(space.to_host(y) - expected) / np.linalg.norm(expected)
        yield {"benchmark": "spmv", "matrix": name, "n": A.shape[0], "nnz": A.nnz, "dtype": csr.dtype.name,
               "format": label, "settings": matrix.describe(), "seconds": seconds, "bytes": matrix.product_bytes,
               "matrix_bytes": matrix.matrix_bytes, "bytes_per_second": matrix.product_bytes / seconds,
               "copy_bytes_per_second": meter.copy_speed,
               "copy_share": matrix.product_bytes / seconds / meter.copy_speed, "relative_error": float(error),
               "peer": peer, "peer_seconds": peer_seconds, "ratio": peer_seconds / seconds,
               "published_us": engine.published("spmv_us", space, name, arguments.scale), "scale": arguments.scale,
               **engine.circumstances(space)}


def _peer(space, csr, A, x):
    """The library that a user would otherwise take, and its product."""
    if space.name == "cpu":
        return "SciPy", lambda: A @ x
    from cupyx.scipy.sparse import csr_matrix
    theirs = csr_matrix((csr.data, csr.indices, csr.indptr), shape=csr.shape)
    return "CuPy", lambda: theirs @ x


def _rows(records):
    return [(r["matrix"], r["format"], r["n"], r["nnz"], f"{1e6 * r['seconds']:.1f}", f"{r['bytes'] / 1e6:.1f}",
             f"{r['bytes_per_second'] / 1e9:.1f}", f"{r['copy_share']:.0%}", r["peer"],
             f"{1e6 * r['peer_seconds']:.1f}", f"{r['ratio']:.2f}") for r in records]


def _stored(records):
    """A row for each matrix of which there are stored figures."""
    figures = {r["matrix"]: engine.in_microseconds(r["published_us"]) for r in records if r["published_us"]}
    return list(figures.items())


def _figure(records):
    """GB/s of the product, each format beside the peer."""
    names = list(dict.fromkeys(r["matrix"] for r in records))
    labels = list(dict.fromkeys(r["format"] for r in records))
    rate = {(r["matrix"], r["format"]): r["nnz"] / r["seconds"] / 1e9 for r in records}
    theirs = {r["matrix"]: r["nnz"] / r["peer_seconds"] / 1e9 for r in records}
    values = {f"swell {label}": [rate.get((name, label)) for name in names] for label in labels}
    values[records[0]["peer"] if records else "peer"] = [theirs[name] for name in names]
    return engine.bars(names, list(values), values, "10⁹ entries a second")
