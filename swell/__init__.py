"""swell: sparse linear solvers for PDEs, on GPUs and CPUs, from Python.

    import swell
    r = swell.solve(A, b)                   # swell chooses; print(r) says what it chose
    r = swell.solve(A, b, method="gmres(restart=50)", precond=swell.ILU(), device="cuda")
    s = swell.prepare(A)                    # set up once; then s.solve(b) as often as needed

The public names by group. Brackets hold the argument that takes them, as objects or by the names
that `swell.names("method")` lists. `help(swell.GMRES)` explains one of them and its settings.

solve                     solve, prepare, Solver, Recurring, Options, lstsq, multiply, Stopping,
                          names, LinearOperator, SolutionMonitor, quiet; scipy_like, SciPy's calls
many small systems        solve_batch, prepare_batch, BatchSolver
results                   Result, Results, BatchResult, LeastSquaresResult, Reason
errors                    SwellError, InputError, NotConverged, MissingDependency, OutOfMemory
methods (method)          CG, SingleReductionCG, ResidentCG, MINRES, COCG, COCR, if A is symmetric;
                          GMRES, FGMRES, BiCGSTAB, BiCGSTABL, TFQMR, QMR, IDRS, for any A;
                          BlockCG, BlockGMRES, for several right-hand sides; Direct, Stationary
methods of lstsq          LSQR, LSMR
preconditioners (precond) Jacobi, BlockJacobi, IC and ILU, also IC0 and ILU0, Direct;
                          AMG, SmoothedAggregation, AIR, multigrid; AMS, for curl-curl problems;
                          FieldSplit, for several fields of unknowns;
                          Schwarz, BDDC and its Subdomains, for A in parts;
                          Deflation, ShiftedLaplacian; User, for your own
smoothers (smoother)      JacobiSmoother, BlockJacobiSmoother, GaussSeidel, BlockGaussSeidel,
                          Chebyshev; preconditioners too
triangular solves (solve) Exact, Sweeps, ISAI, inside a preconditioner
scalings (scaling)        JacobiScaling, RuizScaling
orderings (ordering)      ReverseCuthillMcKee, CuthillMcKee, MinimumDegree, Partition, Bisection,
                          Twisted, GreedyColoring, JonesPlassmann; transversal, which matches rows
null spaces (nullspace)   NullSpace, rigid_body_modes
formats (format)          CSR, SELL, ELL, StaircaseSELL, ModifiedSELL, BSR, BlockSELL, Tuned
matrices in a format      CSRMatrix, BSRMatrix
front ends                pde, equations on meshes; gallery, model problems; dense, LU of dense
                          matrices; distributed, many ranks
reports and files         report, io, read_matrix, read_vector
gradients                 torch, jax: solves with derivatives, of tensors and inside jitted programs

swell imports a name when it is first used, so that `import swell` takes little time.
"""
from swell.core.lazy import public as _public

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = _public(__name__, {
    "solve": "api", "prepare": "api", "Solver": "solver",
    "Recurring": "recurring", "Options": "options", "multiply": "sparse_product",
    "lstsq": "least_squares.solve", "LeastSquaresResult": "least_squares.result",
    "solve_batch": "batch.solve", "prepare_batch": "batch.solve", "BatchSolver": "batch.solver",
    "BatchResult": "batch.result",
    "LSQR": "least_squares.lsqr", "LSMR": "least_squares.lsmr",
    "CG": "krylov.cg", "ResidentCG": "krylov.resident_cg",
    "SingleReductionCG": "krylov.single_reduction_cg",
    "BlockCG": "krylov.block_cg", "BlockGMRES": "krylov.block_gmres",
    "MINRES": "krylov.minres", "GMRES": "krylov.gmres", "FGMRES": "krylov.fgmres",
    "BiCGSTAB": "krylov.bicgstab", "COCG": "krylov.cocg", "COCR": "krylov.cocr",
    "BiCGSTABL": "krylov.bicgstabl", "TFQMR": "krylov.tfqmr",
    "IDRS": "krylov.idrs", "QMR": "krylov.qmr",
    "Direct": "preconditioners.direct",
    "JacobiSmoother": "smoothers.jacobi", "GaussSeidel": "smoothers.gauss_seidel",
    "BlockJacobiSmoother": "smoothers.block_jacobi", "BlockGaussSeidel": "smoothers.block_gauss_seidel",
    "Chebyshev": "smoothers.chebyshev", "Stationary": "krylov.stationary",
    "Jacobi": "preconditioners.jacobi", "BlockJacobi": "preconditioners.block_jacobi",
    "Schwarz": "preconditioners.schwarz", "User": "preconditioners.user",
    "ShiftedLaplacian": "preconditioners.shifted_laplacian",
    "Deflation": "preconditioners.deflation",
    "BDDC": "preconditioners.bddc.settings", "Subdomains": "preconditioners.bddc.subdomains",
    "AMG": "preconditioners.amg.settings",
    "SmoothedAggregation": "preconditioners.amg.smoothed_aggregation",
    "AIR": "preconditioners.amg.air", "AMS": "preconditioners.ams", "FieldSplit": "preconditioners.field_split",
    "NullSpace": "transforms.nullspace", "rigid_body_modes": "transforms.nullspace",
    "IC": "preconditioners.ic", "IC0": "preconditioners.ic",
    "ILU": "preconditioners.ilu", "ILU0": "preconditioners.ilu",
    "Exact": "preconditioners.exact", "Sweeps": "preconditioners.sweeps",
    "ISAI": "preconditioners.isai",
    "Twisted": "orderings.twisted",
    "JacobiScaling": "transforms.jacobi", "RuizScaling": "transforms.ruiz",
    "CSR": "formats.csr", "CSRMatrix": "formats.csr", "SELL": "formats.sell",
    "ELL": "formats.ell", "StaircaseSELL": "formats.staircase_sell",
    "ModifiedSELL": "formats.modified_sell", "BSR": "formats.bsr", "BSRMatrix": "formats.bsr",
    "BlockSELL": "formats.block_sell", "Tuned": "advisor.tuning",
    "ReverseCuthillMcKee": "orderings.cuthill_mckee", "CuthillMcKee": "orderings.cuthill_mckee",
    "GreedyColoring": "orderings.multicolor", "JonesPlassmann": "orderings.multicolor",
    "Partition": "orderings.partition", "Bisection": "orderings.bisection",
    "MinimumDegree": "orderings.minimum_degree",
    "transversal": "orderings.transversal",
    "Stopping": "core.stopping", "Reason": "core.stopping", "SolutionMonitor": "core.monitor",
    "Result": "solving.result", "Results": "solving.results",
    "LinearOperator": "core.operator", "names": "core.registry",
    "SwellError": "core.errors", "InputError": "core.errors", "MissingDependency": "core.errors",
    "NotConverged": "core.errors", "OutOfMemory": "core.errors", "quiet": "core.compilation",
    "read_matrix": "io", "read_vector": "io",
}, modules=("dense", "distributed", "gallery", "io", "jax", "pde", "scipy_like", "report", "torch"), former={
    "ICK": ("IC", {"level": 1}), "ILUK": ("ILU", {"level": 1}), "ILUT": ("ILU", {"drop": 0.001}),
    "BlockILU0": ("ILU", {"block": None}), "BlockILUK": ("ILU", {"level": 1, "block": None}),
    "BlockILUT": ("ILU", {"drop": 0.001, "block": None}),
})
__all__.insert(0, "__version__")
