"""Complete LU factors of a sparse matrix, by the best library for the device.

SuperLU on a CPU (superlu_factors.py), or RSLAB for symmetric matrices, if it is installed (rslab_factors.py); cuDSS
through nvmath-python on a GPU; LAPACK or cuSOLVER for nearly full matrices, and small ones on a GPU (dense_factors.py);
LAPACK for bands that are mostly full, or small (banded_factors.py); by name, any decomposer of swell.dense. For any
nonsingular matrix of moderate fill. The method of the same name refines by these factors (krylov/direct.py).

An application: 1 solve with the factors. Storage: the factors.
"""
from __future__ import annotations

import ctypes
import functools
import importlib.util
import logging
import pathlib
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from swell.core.columns import plain
from swell.core.errors import FactorisationError, InputError, MissingDependency
from swell.core.preconditioner import Preconditioner
from swell.core.registry import resolve
from swell.core.settings import ON_GPU, Idle, choose_by_none, circumstances, idle_notes, positive, shown, without_effect
from swell.core.sharing import Shareable
from swell.formats.csr import CSRMatrix
from swell.orderings.minimum_degree import eliminate
from swell.preconditioners.banded_factors import BandedFactorsOperator, narrow_band
from swell.preconditioners.dense_factors import DecomposedOperator, DenseFactorsOperator, factored_full
from swell.preconditioners.factors import Factors
from swell.preconditioners.rslab_factors import BLOCKED, RSLABOperator, unsuited
from swell.preconditioners.superlu_factors import SuperLUOperator

ORDERINGS = None, "minimum_degree", "colamd"
PACKAGES = None, "superlu", "rslab"


@dataclass(frozen=True)
class Direct(Preconditioner):
    """LU factors: SuperLU or RSLAB on a CPU, cuDSS on a GPU. As the method it refines iteratively.

    A matrix that is more than a tenth full is factored as a full one by LAPACK or cuSOLVER. On a GPU so is every matrix
    of up to 4000 rows, and up to 10 000 rows if diagonal entries are zero. On a CPU LAPACK factors a band that is
    mostly full, and small matrices that have a narrow band in some order.

    Attributes
    ----------
    largest : int
        On a CPU, entries of the factors, by estimate, above which the factorisation is refused; None: never. A GPU's
        memory is checked by cuDSS.
    ordering : {"minimum_degree", "colamd"}, optional
        On a CPU: minimum degree of A + Aᵀ with pivots on the diagonal, down to a thousandth of their row's largest
        entry, where smaller ones wait or rows are exchanged and scaled, without entries of rounding errors' size; or
        COLAMD with the largest pivot of each column. None takes minimum degree, or factors a full matrix. RSLAB and
        cuDSS have their own.
    package : {"superlu", "rslab"}, optional
        What factors a sparse matrix on a CPU. RSLAB, ``pip install 'swell[direct]'``, takes symmetric ones, real or
        complex, as L D Lᵀ. None takes it, if it is installed, for matrices with much fill and no weak pivots on the
        diagonal, and else SuperLU, which also factors what RSLAB gives up; a note says so.
    dense_lu : str, Decomposer or None
        Factor A as a full matrix by a decomposer of `swell.dense`: "getrf", "pcm(x=8)", "icm(x=32)", …
    dense_solver : str or DenseSolver
        The solver with the factors of ``dense_lu``: "trsm", "getrs", "is(x=32)", "ss".
    """

    largest: int | None = None
    ordering: str | None = None
    package: str | None = None
    dense_lu: Any = None
    dense_solver: Any = "trsm"

    problem = "any nonsingular matrix of moderate fill"
    cost = "1 solve with the factors"
    method = "direct"
    idle = (Idle("largest", ON_GPU, "cuDSS checks what fits in the GPU's memory"),
            Idle("ordering", ON_GPU, "cuDSS has its own"),
            Idle("package", ON_GPU, "cuDSS factors there"))

    def __post_init__(self):
        choose_by_none(self, 0, "largest")
        choose_by_none(self, "auto", "ordering", "package")
        positive(self, "largest")
        if self.ordering not in ORDERINGS:
            raise InputError(f"Direct(ordering={shown(self.ordering)}): expected {', '.join(map(str, ORDERINGS))}")
        if self.package not in PACKAGES:
            raise InputError(f"Direct(package={shown(self.package)}): expected {', '.join(map(str, PACKAGES))}")
        if self.package == "rslab":
            without_effect(self, "with package='rslab', which has its own", "take package='superlu'", "ordering")
        if resolve("dense_solver", self.dense_solver) is None:
            raise InputError(f"Direct(dense_solver={shown(self.dense_solver)}): expected a solver, such as 'trsm'")
        if resolve("decomposer", self.dense_lu) is None:
            without_effect(self, "without a decomposer", "give dense_lu='getrf' or another one", "dense_solver")
        else:
            without_effect(self, f"with dense_lu={shown(self.dense_lu)}, which factors a full matrix",
                           "leave dense_lu out", "largest", "ordering", "package")

    def build(self, A):
        decomposer = resolve("decomposer", self.dense_lu)
        if decomposer is not None:
            return DecomposedOperator(A, decomposer, resolve("dense_solver", self.dense_solver))
        on_gpu = A.space.name != "cpu"
        unnamed = self.ordering is None and self.package is None
        free = on_gpu or unnamed and not (self.largest and self.largest < A.shape[0] ** 2)
        if free and factored_full(A):
            M = DenseFactorsOperator(A)
        elif free and (band := narrow_band(A)):
            M = BandedFactorsOperator(A, band)
        elif on_gpu:
            M = CuDSSOperator(A)
        else:
            M = self._sparse(A, unnamed)
        M.notes += idle_notes(self, circumstances(A))
        return M

    def _sparse(self, A, unnamed):
        """Return the factors by RSLAB or SuperLU on a CPU; ``unnamed``: the user has left the choice open."""
        blocked, elimination = self.package == "rslab", None
        if unnamed and unsuited(A) is None:
            # L has half of the entries of L and U: RSLAB may factor what exceeds `largest` as LU.
            elimination = eliminate(A, entries=2 * (self.largest or np.inf))
            blocked = not elimination.cost.complete or elimination.cost.flops > BLOCKED * elimination.cost.entries
        if blocked:
            return RSLABOperator(A, self.largest, lambda A: SuperLUOperator(A, self.largest, self.ordering))
        return SuperLUOperator(A, self.largest, self.ordering, elimination)


class CuDSSOperator(Factors, Shareable):
    """A⁻¹ by cuDSS on a GPU. Copies factor anew, since one thread alone may use a cuDSS object.

    cuDSS seeks pivots near the diagonal only. Where A has zeros there, a matching first permutes columns so that the
    product of the diagonal is largest (Duff and Koster 2001). The bits of its results vary from run to run. cuDSS 0.8
    has a deterministic mode, which is not used: racecheck finds a race in its kernel factorize_dtmn_ker, and one
    factorisation of a test run was wrong.

    Raises
    ------
    MissingDependency
        Without nvmath-python and cuDSS.
    InputError
        For a matrix with 64-bit indices.
    """

    def __init__(self, A):
        super().__init__(A.shape, A.dtype, A.space)
        if A.indices.dtype.itemsize != 4:
            raise InputError(f"cuDSS takes 32-bit indices, and this matrix has {A.nnz} entries")
        if sentence := missing():
            raise MissingDependency(sentence)
        from nvmath.sparse.advanced import DirectSolver, DirectSolverOptions
        facts = A.facts(search=False)
        if facts.empty_rows:
            raise FactorisationError("A has empty rows: the matrix is singular", singular=True)
        from cupyx.scipy.sparse import csr_matrix
        # cuDSS plans for one vector, or for a matrix of k columns.
        self._rhs = A.space.empty((A.space.columns, A.shape[0]) if A.space.columns > 1 else A.shape[0], A.dtype).T
        self._rhs.fill(1)
        # A copy of the values: the analysis keeps their address, and update writes new ones there.
        self._matrix = csr_matrix((A.data.copy(), A.indices, A.indptr), shape=A.shape)
        self._adjoint = None
        options = DirectSolverOptions(multithreading_lib=threading_library(), logger=logging.getLogger("swell.cudss"))
        with self._failure("analyse"):
            self.solver = DirectSolver(self._matrix, self._rhs, options=options)
            if facts.zero_diagonal:
                from nvmath.bindings.cudss import MatchingAlg
                self.solver.plan_config.matching_algorithm = MatchingAlg.MAX_DIAG_PRODUCT
            self.solver.plan()
        self.update(A)

    def shared(self, sharing):
        return CuDSSOperator(self._factored(sharing.space.local))

    def _factored(self, space):
        """The factored matrix as a CSRMatrix of ``space``; it shares the arrays."""
        A = self._matrix
        return CSRMatrix(space, A.indptr, A.indices, A.data, A.shape)

    def update(self, A):
        """Factor new values of A with the same pattern, and replace the factors; the analysis is kept."""
        self._matrix.data[...] = A.data
        self._adjoint = None
        with self._failure("factor"):
            self.solver.factorize()

    @staticmethod
    @contextmanager
    def _failure(step):
        """Context that turns any error of cuDSS into FactorisationError; ``step`` is the verb of the message."""
        try:
            yield
        except Exception as error:               # nvmath raises many kinds; each means that there are no factors
            raise FactorisationError(f"cuDSS could not {step} the matrix: {error}") from error

    def apply(self, x, out, alpha=1, beta=0):
        self._rhs.T[...] = plain(x)
        self.space.combine(alpha, self.solver.solve().T, beta, out)

    def apply_adjoint(self, x, out, alpha=1, beta=0):
        """``out = alpha A⁻ᴴ x + beta out``. The first use after an update factors Aᴴ: cuDSS 0.8 solves with A alone."""
        if self._adjoint is None:
            self._adjoint = CuDSSOperator(self._factored(self.space).transpose(conjugate=True))
        self._adjoint.apply(x, out, alpha, beta)

    def describe(self):
        return "Direct() by cuDSS"


def unavailable(A) -> str | None:
    """Return None if the direct method can factor A; else a sentence: which package is missing, how to install it."""
    return None if A.space.name == "cpu" or factored_full(A) else missing()


@functools.cache
def missing() -> str | None:
    """Return None if cuDSS can run; else a sentence: which of its two packages is missing, how to install it."""
    if importlib.util.find_spec("nvmath") is None:
        what = "nvmath-python is not installed"
    elif not (_libraries("libcudss.so*") or _loads("libcudss.so.0")):
        what = "cuDSS's library was not found"
    else:
        return None
    return f"the direct solver on a GPU needs nvmath-python and cuDSS, and {what}: pip install 'swell[cuda13]'"


def threading_library() -> str | None:
    """Return the path of cuDSS's library for OpenMP threads, or None. With it cuDSS's analysis on the host is several
    times faster."""
    logging.getLogger("swell.cudss").setLevel(logging.ERROR)
    return next(iter(_libraries("libcudss_mtlayer_gomp.so*")), None)


def _libraries(pattern) -> list[str]:
    """Return the paths of the libraries that NVIDIA's packages, or this environment, have under a name's pattern."""
    spec = importlib.util.find_spec("nvidia")
    folders = [path for root in (spec.submodule_search_locations if spec else ()) for path in
               sorted(pathlib.Path(root).glob("cu*/lib"))]
    folders = *folders, pathlib.Path(sys.prefix) / "lib"
    return [str(path) for folder in folders for path in sorted(folder.glob(pattern))]


def _loads(name) -> bool:
    """True if the system's loader finds the library ``name``."""
    try:
        ctypes.CDLL(name)
    except OSError:
        return False
    return True
