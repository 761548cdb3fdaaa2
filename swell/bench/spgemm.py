"""Sparse products A A and Pᵀ A P: time, products a second, numeric phase alone; SciPy or CuPy (the peer) beside them.

P is a smoothed aggregation: (I − ω D⁻¹ A) T, with ω = 2/3 and T constant on groups of consecutive rows. swell's results
have sorted columns, SciPy's do not, so the peer is timed with and without sorting.
"""
from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from swell.bench import engine
from swell.core.devices import make_space
from swell.formats.csr import CSRMatrix
from swell.formats.product import Product, TripleProduct

AGGREGATE, DAMPING = 8, 2 / 3
HEADER = ("matrix", "product", "rows", "entries", "products", "ms", "10⁶ products/s", "numeric ms", "peer", "its ms",
          "sorted ms", "ratio", "sorted", "numeric")


def run(arguments) -> int:
    """Run the benchmark; return the exit status. ``arguments``: the parsed command line."""
    systems, space = engine.systems(arguments), make_space(arguments.device)
    with space.active():
        meter = engine.Meter(space)
        findings = engine.Findings("swell bench spgemm: sparse products", space, arguments)
        findings.take(record for name, A in systems for record in _measure(meter, name, A, arguments.repeat or 5))
    findings.table("Sparse products; ratios: the peer's time with sorting, and the numeric phase's time", HEADER,
                   _rows(findings.records))
    findings.report(("Products a second", _figure(findings.records)))
    return 0


def interpolation(A):
    """Return P = (I − ω D⁻¹ A) T, smoothed aggregation, of a SciPy matrix; rows without a diagonal entry are not
    smoothed."""
    n, d = A.shape[0], A.diagonal()
    group = np.arange(n) // AGGREGATE
    T = sp.csr_array((np.ones(n, A.dtype), (np.arange(n), group)), shape=(n, n and int(group[-1]) + 1))
    weights = np.divide(DAMPING, d, out=np.zeros_like(d), where=d != 0)
    return _canonical(T - sp.diags_array(weights) @ A @ T)


def _canonical(A):
    A = sp.csr_matrix(A)
    A.sum_duplicates()
    return A


def _measure(meter, name, A, repeat):
    """Yield the records (dicts of results) of one matrix: A A, then Pᵀ A P. ``meter``: an ``engine.Meter``."""
    engine.tell(f"sparse products: {name}")
    A = _canonical(A)
    P = interpolation(A)
    R = _canonical(P.T)
    yield _record(meter, name, "A A", (A, A), Product, repeat)
    yield _record(meter, name, "Pᵀ A P", (R, A, P), TripleProduct, repeat)


def _record(meter, name, case, factors, kind, repeat):
    """Time a product by the class ``kind`` and by the peer, SciPy or CuPy; return the record, a dict. ``case``: the
    product's name; ``factors``: SciPy matrices."""
    space = meter.space
    ours = [CSRMatrix.from_scipy(M, space) for M in factors]
    peer, theirs = _peer(space, ours, factors)
    seconds = meter.seconds(lambda: kind(*ours), repeat)
    product = kind(*ours)
    numeric = meter.seconds(lambda: product.update(*ours), repeat)
    multiply = lambda: theirs[0] @ (theirs[1] if len(theirs) == 2 else theirs[1] @ theirs[2])
    peer_seconds = meter.seconds(multiply, repeat)
    peer_sorted = meter.seconds(lambda: multiply().sort_indices(), repeat)
    computed = product.C.to_scipy()
    expected = factors[0] @ (factors[1] if len(factors) == 2 else factors[1] @ factors[2])
    error = sp.linalg.norm(computed - expected) / max(sp.linalg.norm(expected), np.finfo(np.float64).tiny)
    products = _products(*factors[-2:]) + (0 if len(factors) == 2 else _products(factors[0], factors[1] @ factors[2]))
    return {"benchmark": "spgemm", "matrix": name, "product": case, "n": factors[0].shape[0],
            "nnz": [M.nnz for M in factors], "entries": product.C.nnz, "dtype": product.C.dtype.name,
            "products": products, "seconds": seconds, "numeric_seconds": numeric,
            "products_per_second": products / seconds, "relative_error": float(error), "peer": peer,
            "peer_seconds": peer_seconds, "peer_sorted_seconds": peer_sorted, "ratio": peer_seconds / seconds,
            "sorted_ratio": peer_sorted / seconds, "numeric_ratio": peer_seconds / numeric,
            **engine.circumstances(space)}


def _products(A, B) -> int:
    """Return the number of multiplications of two entries in A B, for CSR matrices A and B."""
    return int(np.diff(B.indptr).astype(np.int64)[A.indices].sum())


def _peer(space, ours, factors):
    """Return (name of the library beside swell, the factors as its matrices); ``ours``: the factors as CSRMatrix,
    ``factors``: as SciPy's."""
    if space.name == "cpu":
        return "SciPy", factors
    from cupyx.scipy.sparse import csr_matrix
    return "CuPy", [csr_matrix((M.data, M.indices, M.indptr), shape=M.shape) for M in ours]


def _rows(records):
    return [(r["matrix"], r["product"], r["n"], r["entries"], r["products"], f"{1e3 * r['seconds']:.2f}",
             f"{r['products_per_second'] / 1e6:.0f}", f"{1e3 * r['numeric_seconds']:.2f}", r["peer"],
             f"{1e3 * r['peer_seconds']:.2f}", f"{1e3 * r['peer_sorted_seconds']:.2f}", f"{r['ratio']:.2f}",
             f"{r['sorted_ratio']:.2f}", f"{r['numeric_ratio']:.2f}") for r in records]


def _figure(records):
    """Return a figure: bars of 10⁶ products a second, for swell and the peer."""
    groups = [f"{r['matrix']}, {r['product']}" for r in records]
    peer = records[0]["peer"] if records else "peer"
    values = {"swell": [r["products_per_second"] / 1e6 for r in records],
              "swell, numeric phase": [r["products"] / r["numeric_seconds"] / 1e6 for r in records],
              peer: [r["products"] / r["peer_seconds"] / 1e6 for r in records]}
    return engine.bars(groups, list(values), values, "10⁶ products a second")
