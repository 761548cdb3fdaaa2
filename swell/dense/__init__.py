"""Dense LU decomposition with partial pivoting, and solution with its factors, on GPUs and CPUs.

    from swell import dense
    factors = dense.ICM(x=32).factor(A)
    X = factors.solve(B)
    every = dense.PCM(x=8).factor_batch(many)            # shape (m, n, n): matrices of one size together

Decomposers: GEM, CM, PCM, ICM, Getrf; solvers: SS, IS, Trsm, Getrs. The names are those of L. M. Čejka's thesis
"Parallel computation of LU decomposition on GPUs" (Czech Technical University in Prague, 2023), whose equations the
files of this package cite.

Large products and getrf are the library's: on a CPU their bits depend on the number of threads of NumPy's BLAS.
"""
from __future__ import annotations

import importlib

_PLACES = {
    "GEM": "swell.dense.gem", "CM": "swell.dense.crout", "PCM": "swell.dense.parallel_crout",
    "ICM": "swell.dense.iterative_crout", "Getrf": "swell.dense.getrf",
    "SS": "swell.dense.sequential_solver", "IS": "swell.dense.iterative_solver", "Trsm": "swell.dense.trsm",
    "Getrs": "swell.dense.getrs",
    "LUFactors": "swell.dense.factors", "CroutFactors": "swell.dense.factors",
    "DoolittleFactors": "swell.dense.factors", "Metrics": "swell.dense.factors",
    "decomposition_accuracy": "swell.dense.accuracy", "solution_accuracy": "swell.dense.accuracy",
    "solve_batch": "swell.dense.batch",
}
__all__ = list(_PLACES)


def __getattr__(name):
    if name in _PLACES:
        return getattr(importlib.import_module(_PLACES[name]), name)
    raise AttributeError(f"module 'swell.dense' has no attribute {name!r}")


def __dir__():
    return __all__
