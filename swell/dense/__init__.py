"""Dense LU decomposition with partial pivoting, and solution with its factors, on GPUs and CPUs.

    from swell import dense
    factors = dense.ICM(x=32).factor(A)
    X = factors.solve(B)
    factors.solve(B, trans="C"), factors.condition(), factors.slogdet()
    dense.solve(A, B).x                                  # factors in single precision, the answer in double
    every = dense.PCM(x=8).factor_batch(many)            # shape (m, n, n): matrices of one size together

Decomposers: GEM, CM, PCM, ICM, Getrf; solvers: SS, IS, Trsm, Getrs. The names, and the equations that the files of this
package cite, are from L. M. Čejka's thesis "Parallel computation of LU decomposition on GPUs" (Czech Technical
University in Prague, 2023).

The library computes large products and getrf: on a CPU their bits depend on the number of threads of NumPy's BLAS.
"""
from swell.core.lazy import public

__getattr__, __dir__, __all__ = public(__name__, {
    "GEM": "gem", "CM": "crout", "PCM": "parallel_crout",
    "ICM": "iterative_crout", "Getrf": "getrf",
    "SS": "sequential_solver", "IS": "iterative_solver", "Trsm": "trsm",
    "Getrs": "getrs",
    "LUFactors": "factors", "CroutFactors": "factors",
    "DoolittleFactors": "factors", "Metrics": "factors",
    "decomposition_accuracy": "accuracy", "solution_accuracy": "accuracy",
    "solve_batch": "batch", "BatchSolver": "batch",
    "solve": "refinement", "refine": "refinement", "Solution": "refinement",
})
