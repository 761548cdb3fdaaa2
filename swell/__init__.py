"""swell: sparse linear solvers for PDEs, on GPUs and CPUs, from Python.

    import swell
    r = swell.solve(A, b)
    print(r)

Names are imported when they are first used, so that the command line starts at once.
"""
from __future__ import annotations

import importlib

from swell.core.caches import for_numba as _caches_for_numba

__version__ = "0.1.0"

_caches_for_numba()     # before any module imports Numba

_PLACES = {
    "solve": "swell.api", "prepare": "swell.api", "Solver": "swell.api",
    "CG": "swell.krylov.cg", "ResidentCG": "swell.krylov.resident_cg",
    "SingleReductionCG": "swell.krylov.single_reduction_cg",
    "GMRES": "swell.krylov.gmres", "FGMRES": "swell.krylov.fgmres",
    "BiCGSTAB": "swell.krylov.bicgstab", "COCG": "swell.krylov.cocg", "COCR": "swell.krylov.cocr",
    "BiCGSTABL": "swell.krylov.bicgstabl", "TFQMR": "swell.krylov.tfqmr",
    "IDRS": "swell.krylov.idrs", "QMR": "swell.krylov.qmr",
    "Direct": "swell.preconditioners.direct",
    "JacobiSmoother": "swell.smoothers.jacobi", "GaussSeidel": "swell.smoothers.gauss_seidel",
    "BlockJacobiSmoother": "swell.smoothers.block_jacobi", "BlockGaussSeidel": "swell.smoothers.block_gauss_seidel",
    "Chebyshev": "swell.smoothers.chebyshev", "Stationary": "swell.smoothers.stationary",
    "Jacobi": "swell.preconditioners.jacobi", "BlockJacobi": "swell.preconditioners.block_jacobi",
    "Schwarz": "swell.preconditioners.schwarz", "User": "swell.preconditioners.user",
    "ShiftedLaplacian": "swell.preconditioners.shifted_laplacian",
    "Deflation": "swell.preconditioners.deflation",
    "BDDC": "swell.preconditioners.bddc.settings", "Subdomains": "swell.preconditioners.bddc.subdomains",
    "NullSpace": "swell.transforms.nullspace", "rigid_body_modes": "swell.transforms.nullspace",
    "IC0": "swell.preconditioners.ic0", "ICK": "swell.preconditioners.ick",
    "ILU0": "swell.preconditioners.ilu0", "ILUK": "swell.preconditioners.iluk", "ILUT": "swell.preconditioners.ilut",
    "BlockILU0": "swell.preconditioners.block_ilu0",
    "Exact": "swell.preconditioners.triangular", "Sweeps": "swell.preconditioners.sweeps",
    "ISAI": "swell.preconditioners.isai",
    "Twisted": "swell.orderings.twisted",
    "JacobiScaling": "swell.transforms.jacobi", "RuizScaling": "swell.transforms.ruiz",
    "CSR": "swell.formats.csr", "CSRMatrix": "swell.formats.csr", "SELL": "swell.formats.sell",
    "ELL": "swell.formats.ell", "StaircaseSELL": "swell.formats.staircase_sell",
    "ModifiedSELL": "swell.formats.modified_sell", "BSR": "swell.formats.bsr", "BSRMatrix": "swell.formats.bsr",
    "BlockSELL": "swell.formats.block_sell", "Tuned": "swell.advisor.tuning",
    "ReverseCuthillMcKee": "swell.orderings.cuthill_mckee", "CuthillMcKee": "swell.orderings.cuthill_mckee",
    "GreedyColoring": "swell.orderings.multicolor", "JonesPlassmann": "swell.orderings.multicolor",
    "Partition": "swell.orderings.partition", "Bisection": "swell.orderings.bisection",
    "transversal": "swell.orderings.transversal",
    "Stopping": "swell.core.stopping", "Reason": "swell.core.stopping",
    "Result": "swell.core.result", "Results": "swell.core.result",
    "LinearOperator": "swell.core.operator", "names": "swell.core.registry",
    "SwellError": "swell.core.errors", "InputError": "swell.core.errors", "MissingDependency": "swell.core.errors",
    "OutOfMemory": "swell.core.errors",
    "read_matrix": "swell.io", "read_vector": "swell.io",
}
_MODULES = ("dense", "distributed", "gallery", "io", "pde", "scipy_like", "report")

__all__ = ["__version__", *_PLACES, *_MODULES]


def __getattr__(name):
    if name in _PLACES:
        return getattr(importlib.import_module(_PLACES[name]), name)
    if name in _MODULES:
        return importlib.import_module(f"swell.{name}")
    raise AttributeError(f"module 'swell' has no attribute {name!r}")


def __dir__():
    return __all__
