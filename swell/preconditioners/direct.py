"""Complete LU factors of a sparse matrix, by the best library for the device.

SuperLU through SciPy on a CPU (Demmel et al. 1999), cuDSS through nvmath-python on a GPU. For any nonsingular matrix
of moderate fill. The method of the same name refines by these factors (krylov/direct.py).

An application: 1 solve with the factors. Storage: the factors.
"""
from __future__ import annotations

import importlib.util
import logging
import pathlib
import warnings
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from swell.core.errors import FactorisationError, InputError, MissingDependency
from swell.core.operator import LinearOperator
from swell.core.preconditioner import Preconditioner
from swell.core.settings import ON_GPU, Idle, circumstances, idle_notes, positive, switch
from swell.core.sharing import Shareable
from swell.formats.csr import CSRMatrix
from swell.orderings.cuthill_mckee import bandwidth, reverse_order

SYMMETRIC = {"permc_spec": "MMD_AT_PLUS_A", "diag_pivot_thresh": 0.1, "options": {"SymmetricMode": True}}
SMALL = 10_000          # unknowns up to which no estimate is needed: the factors always fit


@dataclass(frozen=True)
class Direct(Preconditioner):
    """Sparse LU: SuperLU on a CPU, cuDSS on a GPU. As the method it refines iteratively.

    Attributes
    ----------
    largest : int
        On a CPU, entries of the factors, by estimate, above which the factorisation is refused; 0: never. A GPU's
        memory is checked by cuDSS.
    symmetric : bool
        On a CPU, for a symmetric pattern and a good diagonal, as of finite elements: minimum degree of A + Aᵀ, and
        pivots on the diagonal down to a tenth of their columns' largest entries: mostly less fill. cuDSS orders
        symmetrically in any case.
    """

    largest: int = 0
    symmetric: bool = False

    problem = "any nonsingular matrix of moderate fill"
    cost = "1 solve with the factors"
    method = "direct"
    idle = (Idle("largest", ON_GPU, "cuDSS checks what fits in the GPU's memory"),
            Idle("symmetric", ON_GPU, "cuDSS orders symmetrically in any case"))

    def __post_init__(self):
        positive(self, "largest", 0)
        switch(self, "symmetric")

    def build(self, A):
        M = SuperLUOperator(A, self.largest, self.symmetric) if A.space.name == "cpu" else CuDSSOperator(A)
        M.notes += idle_notes(self, circumstances(A))
        return M


class SuperLUOperator(LinearOperator):
    """A⁻¹ by SuperLU, factored and applied in double precision.

    Raises
    ------
    FactorisationError
        If a pivot is exactly zero or the factors do not fit in memory.
    """

    capturable = False

    def __init__(self, A, largest=0, symmetric=False):
        super().__init__(A.shape, A.dtype, A.space)
        self._how = SYMMETRIC if symmetric else {}
        if largest and A.shape[0] > SMALL and (entries := factor_entries(A)) > largest:
            raise FactorisationError(f"the factors would have about {entries:.1e} entries, too many to be tried "
                                     "unasked: method='direct' tries it")
        self.update(A)

    def update(self, A):
        """Factor a new matrix."""
        from scipy.sparse.linalg import MatrixRankWarning, splu
        wide = np.result_type(A.dtype, np.float64)
        matrix = A.to_scipy().astype(wide).tocsc()
        if matrix.indices.dtype != np.int32:
            raise FactorisationError(f"SuperLU takes 32-bit indices, and this matrix has {A.nnz} entries")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", MatrixRankWarning)
                self.factors = splu(matrix, **self._how)
        except RuntimeError as error:
            raise FactorisationError(f"SuperLU met a zero pivot ({error}): the matrix is singular", True) from None
        except MemoryError:
            raise FactorisationError(f"SuperLU ran out of memory on {A.shape[0]} unknowns") from None
        self.wide = wide

    def apply(self, x, out, alpha=1, beta=0):
        self._solve(x, out, alpha, beta, "N")

    def apply_adjoint(self, x, out, alpha=1, beta=0):
        self._solve(x, out, alpha, beta, "H")

    def _solve(self, x, out, alpha, beta, trans):
        y = self.factors.solve(x.astype(self.wide, copy=False), trans)
        if beta == 0:
            out[...] = alpha * y
        else:
            out[...] = alpha * y + beta * out

    @property
    def nbytes(self):
        return self.factors.nnz * (self.wide.itemsize + 4)

    def describe(self):
        return f"Direct({'symmetric=True' if self._how else ''}) by SuperLU, {self.factors.nnz} entries in the factors"


def factor_entries(A) -> float:
    """Estimated entries of the factors of a CSR matrix: n times its bandwidth after Cuthill–McKee.

    With SuperLU's own ordering they hold about as many on three-dimensional grids, a third on two-dimensional ones.
    """
    return float(A.shape[0]) * float(bandwidth(A, reverse_order(A)))


class CuDSSOperator(LinearOperator, Shareable):
    """A⁻¹ by cuDSS on a GPU. Copies factor anew, since one thread alone may use a cuDSS object.

    The bits of its results vary from run to run. cuDSS 0.8 has a deterministic mode, which is not used: racecheck finds
    a race in its kernel factorize_dtmn_ker, and one factorisation of a test run was wrong.

    Raises
    ------
    MissingDependency
        Without nvmath-python and cuDSS.
    InputError
        For a matrix with 64-bit indices.
    """

    capturable = False

    def __init__(self, A):
        super().__init__(A.shape, A.dtype, A.space)
        if A.indices.dtype.itemsize != 4:
            raise InputError(f"cuDSS takes 32-bit indices, and this matrix has {A.nnz} entries")
        try:
            from nvmath.sparse.advanced import DirectSolver, DirectSolverOptions
        except ImportError as error:
            raise MissingDependency(f"the direct solver on a GPU needs nvmath-python and cuDSS ({error}): "
                                    "pip install 'swell[cuda13]'") from None
        if A.facts(search=False).empty_rows:
            raise FactorisationError("A has empty rows: the matrix is singular", singular=True)
        from cupyx.scipy.sparse import csr_matrix
        self._rhs = A.space.empty(A.shape[0], A.dtype)
        self._rhs.fill(1)
        # Its own values, so that update can write new ones where the analysis expects them.
        self._matrix = csr_matrix((A.data.copy(), A.indices, A.indptr), shape=A.shape)
        options = DirectSolverOptions(multithreading_lib=threading_library(), logger=logging.getLogger("swell.cudss"))
        with self._failure("analyse"):
            self.solver = DirectSolver(self._matrix, self._rhs, options=options)
            self.solver.plan()
        self.update(A)

    def shared(self, sharing):
        A = self._matrix
        return CuDSSOperator(CSRMatrix(sharing.space, A.indptr, A.indices, A.data, A.shape))

    def update(self, A):
        """Factor a new matrix; the analysis is kept, since the pattern is the same."""
        self._matrix.data[...] = A.data
        with self._failure("factor"):
            self.solver.factorize()

    @staticmethod
    @contextmanager
    def _failure(step):
        try:
            yield
        except Exception as error:               # nvmath raises many kinds; each means that there are no factors
            raise FactorisationError(f"cuDSS could not {step} the matrix: {error}") from error

    def apply(self, x, out, alpha=1, beta=0):
        self._rhs[...] = x
        y = self.solver.solve()
        if beta == 0:
            out[...] = alpha * y
        else:
            out[...] = alpha * y + beta * out

    def describe(self):
        return "Direct() by cuDSS"


def unavailable(space) -> str | None:
    """Why there is no direct solver in a space, with the line that installs it; None where there is one."""
    if space.name == "cpu" or importlib.util.find_spec("nvmath"):
        return None
    return "the direct solver on a GPU needs nvmath-python and cuDSS: pip install 'swell[cuda13]'"


def threading_library() -> str | None:
    """cuDSS's own layer for OpenMP, which its analysis on the host is several times faster with, or None."""
    logging.getLogger("swell.cudss").setLevel(logging.ERROR)
    spec = importlib.util.find_spec("nvidia")
    for folder in spec.submodule_search_locations if spec else ():
        for path in sorted(pathlib.Path(folder).glob("cu*/lib/libcudss_mtlayer_gomp.so*")):
            return str(path)
    return None
