"""The direct solver beside SuperLU's own orderings, and its seconds as foretold from the count of minimum degree.

    python benchmarks/direct_orderings.py [FOLDER of matrices] [--only NAME,NAME]

CPU seconds of one thread, the least of some, of `splu(A).solve(b)` with COLAMD, of the same with MMD_AT_PLUS_A,
SymmetricMode and a threshold of 0.1, and of `swell.solve(A, b, method="direct")`; the exchange of rows and the order
alone; the entries of swell's factors over those foretold. MMD_AT_PLUS_A is left out where diagonal entries are small:
it may take minutes there, and nothing can interrupt it. Then seconds = c₀ + c₁ nnz + c₂ entries + c₃ flops are fitted to every second
system and tested on the others. A complex entry counts as two, a complex flop as four.
"""
from __future__ import annotations

import argparse
import math
import pathlib
import re
import time
import warnings

import numpy as np
import scipy.sparse as sp
from scipy.optimize import least_squares
from scipy.sparse.linalg import splu

import swell
from swell import gallery
from swell.bench import engine
from swell.bench.families import FITTED, JUDGED
from swell.core.devices import make_space
from swell.formats.csr import CSRMatrix
from swell.orderings.pivots import eliminate_with_pivots

MMD = {"permc_spec": "MMD_AT_PLUS_A", "diag_pivot_thresh": 0.1, "options": {"SymmetricMode": True}}
LARGEST = 4e10          # flops foretold beyond which a system is left out


def random_matrix(n, row, seed, diagonal=1.0):
    """Entries at random places, and a diagonal."""
    rng = np.random.default_rng(seed)
    A = sp.random_array((n, n), density=row / n, rng=rng, data_sampler=rng.standard_normal)
    d = rng.standard_normal(n)
    return A + sp.diags_array(d + diagonal * np.sign(d))


def circuit(n, hubs, seed):
    """Conductances over six decades on a tree with loops, some nodes that touch many, controlled and voltage sources,
    whose diagonal is zero."""
    rng = np.random.default_rng(seed)
    child = np.arange(1, n)
    loops = rng.integers(0, n, n // 3)
    far = [rng.choice(n, n // 20, replace=False) for _ in range(hubs)]
    i = np.concatenate([child, loops, *far])
    j = np.concatenate([child - 1 - rng.integers(0, np.minimum(child, 30)), np.minimum(loops + 7, n - 1),
                        *(np.full(f.size, rng.integers(0, n)) for f in far)])
    W = sp.coo_array((10 ** rng.uniform(-3, 3, i.size), (i, j)), shape=(n, n)).tocsr()
    W = W + W.T
    L = sp.diags_array(W.sum(axis=1) + 1e-3) - W + sp.random_array((n, n), density=0.3 / n, rng=rng)
    m = n // 20
    B = sp.coo_array((np.ones(m), (rng.choice(n, m, replace=False), np.arange(m))), shape=(n, m))
    return sp.block_array([[L, B], [B.T, None]])


def kkt(n, m, seed):
    """[[H, Bᵀ], [B, 0]] with m constraints on n unknowns."""
    rng = np.random.default_rng(seed)
    H = sp.diags_array(abs(rng.standard_normal(n)) + 0.1) + sp.random_array((n, n), density=0.5 / n, rng=rng)
    B = sp.random_array((m, n), density=2 / n, rng=rng) + sp.eye_array(m, n)
    return sp.block_array([[H + H.T, B.T], [B, None]])


def banded(n, width, seed):
    """All entries within a band."""
    rng = np.random.default_rng(seed)
    return sp.diags_array([rng.standard_normal(n - abs(k)) for k in range(-width, width + 1)],
                          offsets=range(-width, width + 1))


def arrow(n, rows):
    """Some full rows and columns, and a diagonal."""
    A = sp.diags_array(np.full(n, 12.0)).tolil()
    for k in range(rows):
        A[k, :] = A[:, k] = 0.1
        A[k, k] = 20
    return A


def shuffled(A, columns=True, seed=3):
    """Rows in a random order, and columns in the same."""
    order = np.random.default_rng(seed).permutation(A.shape[0])
    A = sp.csr_array(A)[order]
    return A[:, order] if columns else A


GENERATED = {
    **{f"poisson2d, {m}²": lambda m=m: gallery.poisson2d(m) for m in (25, 80, 200, 400)},
    **{f"poisson3d, {m}³": lambda m=m: gallery.poisson3d(m) for m in (9, 16, 25, 30)},
    "anisotropic2d, 90²": lambda: gallery.anisotropic2d(90),
    "jumping, 120²": lambda: gallery.jumping_diffusion((120,) * 2),
    "jumping, 20³": lambda: gallery.jumping_diffusion((20,) * 3), "elasticity2d, 40²": lambda: gallery.elasticity2d(40),
    "elasticity2d, 110²": lambda: gallery.elasticity2d(110),
    "convection, 100²": lambda: gallery.convection_diffusion((100,) * 2),
    "convection, 18³": lambda: gallery.convection_diffusion((18,) * 3),
    "upwind, 150²": lambda: gallery.convection_diffusion((150,) * 2, 10.0, "upwind"),
    "helmholtz, 90²": lambda: gallery.helmholtz((90,) * 2), "helmholtz, 14³": lambda: gallery.helmholtz((14,) * 3),
    "shifted laplacian, 100²": lambda: gallery.shifted_laplacian((100,) * 2),
    "saddle point, 30": lambda: gallery.saddle_point(30), "saddle point, 80": lambda: gallery.saddle_point(80),
    "p1, 20 000 shuffled": lambda: shuffled(gallery.p1_laplacian(20_000)),
    "transport3, 11³": lambda: gallery.coupled_transport((11,) * 3, 3),
    "multiconductor": lambda: gallery.multiconductor(2500, 2), "thermal plate": lambda: gallery.thermal_plate(2000, 4),
    "circuit, 1000": lambda: circuit(1000, 1, 0), "circuit, 8000": lambda: circuit(8000, 3, 1),
    "circuit, 60 000": lambda: circuit(60_000, 0, 2), "kkt, 2000 + 100": lambda: kkt(2000, 100, 0),
    "kkt, 1500 + 700": lambda: kkt(1500, 700, 1), "banded, 5000 × 10": lambda: banded(5000, 10, 0),
    "banded, rows shuffled": lambda: shuffled(banded(2000, 20, 1), columns=False),
    "poisson2d, rows shuffled": lambda: shuffled(gallery.poisson2d(60), columns=False),
    "arrow, 5000": lambda: arrow(5000, 1), "arrow, 3000 × 5": lambda: arrow(3000, 5),
    "tridiagonal, 20 000": lambda: banded(20_000, 1, 2), "random, 1000 × 3": lambda: random_matrix(1000, 3, 0),
    "random, 4000 × 2": lambda: random_matrix(4000, 2, 1), "dominant, 1000 × 5": lambda: random_matrix(1000, 5, 2, 20.0),
    "kronecker": lambda: (sp.kron(gallery.poisson2d(25), sp.eye_array(6))
                          + sp.kron(sp.eye_array(625), np.ones((6, 6)))),
    "triangular": lambda: sp.tril(random_matrix(3000, 6, 9)) + 3 * sp.eye_array(3000),
    "dense, 300": lambda: banded(300, 299, 5),
}


def systems(folder):
    """(name, A) of all."""
    for path in sorted(folder.iterdir()) if folder else ():
        if path.name.endswith((".mtx.gz", ".mtx")):
            yield path.name.split(".")[0], swell.io.read_matrix(path)
    for name, make in {**GENERATED, **FITTED, **JUDGED}.items():
        yield name, make()


def least(function, most=0.3, times=5):
    """(CPU seconds, result) of the quickest of some calls; None as the result where there are no factors."""
    best, spent, count = np.inf, 0.0, 0
    while count == 0 or (spent < most and count < times):
        start = time.process_time()
        try:
            result = function()
        except RuntimeError:
            result = None
        taken = time.process_time() - start
        best, spent, count = min(best, taken), spent + taken, count + 1
    return best, result


def measured(A, space):
    """One row of numbers, or None where there are no factors."""
    A = sp.csr_matrix(A)
    A.sum_duplicates()
    A = A.astype(np.result_type(A.dtype, np.float64))
    matrix, b = CSRMatrix.from_scipy(A, space), A @ np.ones(A.shape[0])

    def analysed():
        matrix.elimination = None
        return eliminate_with_pivots(matrix)
    ordering, (found, match) = least(analysed)
    if found.cost.flops > LARGEST:
        return None
    colamd, x = least(lambda: splu(A.tocsc()).solve(b))
    if x is None or not np.isfinite(x).all():
        return None
    mmd = math.inf if match else least(lambda: splu(A.tocsc(), **MMD).solve(b))[0]
    ours, r = least(lambda: swell.solve(A, b, method="direct"))
    entries = re.search(r"SuperLU, .* (\d+) entries in the factors", str(r))
    kind = 4 if A.dtype.kind == "c" else 1
    return {"n": A.shape[0], "nnz": A.nnz, "colamd": colamd, "mmd": mmd, "swell": ours, "order": ordering,
            "symmetric": (abs(A).sign() != abs(A).T.sign()).nnz == 0,
            "fill": (int(entries[1]) if entries else math.nan) / (found.cost.entries + A.shape[0]), "converged": r.converged, "notes": len(r.notes),
            "terms": (1.0, A.nnz * min(kind, 2), found.cost.entries * min(kind, 2), found.cost.flops * kind)}


def foretold(rows, column):
    """The constants that fit every second system best, by the logarithm, and the factors on the others."""
    terms, times = np.array([row["terms"] for row in rows]), np.array([row[column] for row in rows])
    fit = least_squares(lambda c: np.log(terms[::2] @ np.exp(c) / times[::2]), np.log([1e-3, 1e-7, 1e-8, 1e-10]),
                        loss="soft_l1")
    c = np.exp(fit.x)
    factors = np.exp(abs(np.log(terms[1::2] @ c / times[1::2])))
    return c, np.median(factors), factors.max()


def geometric(values):
    """The geometric mean."""
    return float(np.exp(np.mean(np.log(list(values)))))


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path, nargs="?")
    parser.add_argument("--only", default="", help="parts of names, with commas between them")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    space, rows = make_space("cpu"), {}
    swell.solve(gallery.poisson2d(20), np.ones(400), method="direct")
    for name, A in systems(arguments.folder):
        if any(part in name for part in arguments.only.split(",")):
            rows[name] = measured(A, space)
            engine.tell(f"{name}{'' if rows[name] else ': left out'}")
    rows = {name: row for name, row in rows.items() if row}
    engine.show("CPU seconds, in ms",
                ("system", "n", "nnz", "COLAMD", "MMD", "swell", "order alone", "over the better", "entries over foretold"),
                [(name, r["n"], r["nnz"], *(f"{1e3 * r[k]:.2f}" for k in ("colamd", "mmd", "swell", "order")),
                  f"{r['swell'] / min(r['colamd'], r['mmd']):.2f}",
                  f"{r['fill']:.2f}{'' if r['converged'] else ' FAILED'}")
                 for name, r in rows.items()])
    small = {name: r for name, r in rows.items() if r["colamd"] < 5e-3}
    large = {name: r for name, r in rows.items() if name not in small}
    engine.show("Geometric means, and the worst",
                ("systems", "over COLAMD", "over MMD", "over the better", "worst", "order over COLAMD", "worst"),
                [(f"{label}: {len(part)}", *(f"{geometric(r['swell'] / r[k] for r in part.values()):.2f}"
                                             for k in ("colamd", "mmd")),
                  f"{geometric(r['swell'] / min(r['colamd'], r['mmd']) for r in part.values()):.2f}",
                  f"{max(r['swell'] / min(r['colamd'], r['mmd']) for r in part.values()):.2f}",
                  f"{geometric(r['order'] / r['colamd'] for r in part.values()):.2f}",
                  f"{max(r['order'] / r['colamd'] for r in part.values()):.2f}")
                 for label, part in (("COLAMD < 5 ms", small), ("the others", large), ("all", rows)) if part])
    full = [row for row in rows.values() if row["symmetric"]]
    fits = [(f"{column}, {label}: {len(part)}", *foretold(part, column)) for column in ("swell", "colamd")
            for label, part in (("all", list(rows.values())), ("symmetric patterns", full)) if len(part) > 9]
    engine.show("Seconds foretold: fitted to one half, tested on the other",
                ("of", "µs", "ns an entry of A", "ns an entry of L + U", "ns a flop", "median factor", "worst"),
                [(column, f"{1e6 * c[0]:.0f}", *(f"{1e9 * part:.3g}" for part in c[1:]), f"{median:.2f}", f"{worst:.2f}")
                 for column, c, median, worst in fits])


if __name__ == "__main__":
    main()
