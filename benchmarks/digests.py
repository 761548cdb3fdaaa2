"""Print iterations and a digest of x for some 400 small solves, to compare two checkouts bit by bit.

    OPENBLAS_NUM_THREADS=1 python benchmarks/digests.py > before     # in one checkout, and > after in the other
    diff before after

Systems, methods, preconditioners, scalings and formats are combined; a combination that is refused prints the error's
class. Former names of preconditioners are used, so that older checkouts run the same list.
"""
from __future__ import annotations

import hashlib
import warnings

import numpy as np
import scipy.sparse as sp

import swell
from swell import gallery

SPD, SQUARE = np.array([[4.0, 1, 0], [1, 5, 1], [0, 1, 6]]), np.array([[4.0, 1, 0], [2, 5, 1], [0, 3, 6]])
GENERAL = ("jacobi", "ilu0", "iluk(level=1)", "iluk(level=2)", "ilut", "ilut(fill=5)", "ilut(drop=1e-2)", "block_ilu0",
            "block_ilu0(block=3)", "block_iluk(level=1)", "block_ilut", "air", "amg", "block_gauss_seidel",
            "ilu0(solve='sweeps')", "ilu0(ordering='rcm')", "schwarz", "block_jacobi_sweeps")
DEFINITE = ("jacobi", "ic0", "ick(level=1)", "amg", "smoothed_aggregation", "block_jacobi", "chebyshev", "gauss_seidel",
            "jacobi_sweeps", "ic0(solve='sweeps')", "ic0(solve='isai')", "ic0(ordering='rcm')")
FORMATS = ("csr", "sell", "ell", "bsr", "modified_sell", "block_sell")


def systems() -> dict:
    """Return the matrices by name; the names in upper case are positive definite."""
    poisson, convection = gallery.poisson3d(12), gallery.get("convection_diffusion2d", 900)
    scale = sp.diags(10.0 ** np.random.default_rng(3).uniform(-3, 3, poisson.shape[0]))
    return {"POISSON": poisson, "SINGLE": poisson.astype(np.float32), "SCALED": (scale @ poisson @ scale).tocsr(),
            "BLOCKS": sp.kron(poisson, SPD).tobsr((3, 3)), "ELASTIC": gallery.get("elasticity2d", 900),
            "convection": convection, "blocks": sp.kron(convection, SQUARE).tobsr((3, 3)),
            "waves": gallery.helmholtz((10, 10, 6)), "complex": (poisson * (1 + 0.1j)).tocsr()}


def cases(name):
    """Yield the options of each solve with the system ``name``."""
    if name.isupper():
        yield from ({"method": "cg", "precond": p} for p in DEFINITE)
        yield from ({"method": "cg", "scaling": s} for s in ("jacobi", "ruiz"))
        yield from ({"method": m, "precond": "ic0"} for m in ("minres", "block_cg"))
    yield from ({"method": "gmres", "precond": p} for p in GENERAL)
    yield from ({"method": m, "precond": "ilu0"} for m in ("bicgstab", "fgmres", "tfqmr", "qmr", "block_gmres"))
    yield from ({"method": m} for m in ("direct", "cocg", "cocr", "stationary", None))
    yield from ({"method": "gmres", "precond": "ilu0", "format": f} for f in FORMATS)


def main():
    warnings.simplefilter("ignore", FutureWarning)
    for name, A in systems().items():
        b = np.random.default_rng(1).random(A.shape[0]).astype(A.dtype)
        for options in cases(name):
            try:
                r = swell.solve(A.copy(), b, maxiter=300, **options)
                print(name, options, r.reason.name, r.iterations, hashlib.sha1(np.ascontiguousarray(r.x)).hexdigest()[:12])
            except swell.SwellError as error:
                print(name, options, type(error).__name__)


if __name__ == "__main__":
    main()
