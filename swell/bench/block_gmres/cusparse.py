"""Block ILU(0) by cuSPARSE: the baseline cuSPARSEPrecond of the paper on block GMRES, algorithm 5, and its successor.

``bsrilu02`` factors A's blocks in place, entry by entry, as in the paper's figure 5(b). Up to rounding, L U is
block ILU(0), so iterations are the same. Two solves apply it: ``bsrsv2`` on the blocks (deprecated, but in the
libraries of CUDA 12 and 13), or the generic ``SpSV`` on the factor's entries in CSR. Both were analysed at setup.

CuPy wraps neither, so ctypes calls the library that CuPy has loaded. Only float64. Storage: A's blocks once, and with
``SpSV`` the entries in CSR twice, since an analysis belongs to a triangle.
"""
from __future__ import annotations

import ctypes
from abc import abstractmethod

from swell.bench.block_gmres.cases import BSRSV2, SPSV
from swell.core.errors import FactorisationError, InputError, MissingDependency, SwellError
from swell.core.operator import LinearOperator
from swell.formats.bsr import BSR, BSRMatrix

LIBRARY = "libcusparse.so.12"                    # of CUDA 12 and 13
ROW_MAJOR, PLAIN, BY_LEVELS = 0, 0, 1            # cusparseDirection_t, cusparseOperation_t, cusparseSolvePolicy_t
LOWER, UPPER = 0, 1                              # cusparseFillMode_t
NON_UNIT, UNIT = 0, 1                            # cusparseDiagType_t
FILL_MODE, DIAG_TYPE = 0, 1                      # cusparseSpMatAttribute_t
INT32, FLOAT64 = 2, 1                            # cusparseIndexType_t, cudaDataType
TRIANGLES = (LOWER, UNIT), (UPPER, NON_UNIT)


class Library:
    """cuSPARSE on one space's stream.

    Raises
    ------
    MissingDependency
        If the library is not there, or lacks bsrsv2.
    """

    def __init__(self, space):
        self.space = space
        self._handle = ctypes.c_void_p(space.xp.cuda.device.get_cusparse_handle())         # CuPy loads the library
        try:
            self._library = ctypes.CDLL(LIBRARY)
            self._library.cusparseDbsrsv2_solve
        except (OSError, AttributeError):
            raise MissingDependency(f"cuSPARSE's triangular solves on blocks need {LIBRARY} of CUDA 12 or 13: install "
                                    "it, or pass --no-cusparse") from None

    def call(self, name, *arguments):
        """Call a function that takes a handle, by its name without "cusparse"."""
        self.set("SetStream", self._handle, ctypes.c_void_p(self.space.stream.ptr))
        self.set(name, self._handle, *arguments)

    def create(self, name, *arguments):
        """Return a new object from a function that takes no handle, such as CreateBsrsv2Info."""
        made = ctypes.c_void_p()
        self.set(name, ctypes.byref(made), *arguments)
        return made

    def set(self, name, *arguments):
        """Call a function that takes no handle. Arrays are passed by address.

        Raises
        ------
        SwellError
            If it fails.
        """
        array = self.space.xp.ndarray
        status = getattr(self._library, "cusparse" + name)(
            *(ctypes.c_void_p(a.data.ptr) if isinstance(a, array) else a for a in arguments))
        if status:
            raise SwellError(f"cusparse{name} ended with status {status}, expected 0")

    def memory(self, name, size, *arguments):
        """Return as much device memory as a function ...bufferSize asks for. ``size``: ctypes number it writes to."""
        self.call(name, *arguments, ctypes.byref(size))
        return self.space.xp.empty(max(size.value, 1), "uint8")

    def factored(self, A, block) -> BSRMatrix:
        """Return L U of the CSRMatrix A on its blocks of ``block`` rows, as a new BSRMatrix: U, and L below the
        diagonal.

        Raises
        ------
        FactorisationError
            If a pivot is zero.
        """
        stored = BSR(block).build(A)
        factor = BSRMatrix(A.space, stored.indptr.astype("int32"), stored.indices.astype("int32"), stored.data, A.shape)
        info = self.create("CreateBsrilu02Info")
        arguments = ROW_MAJOR, *_described(factor, self.create("CreateMatDescr")), info
        memory = self.memory("Dbsrilu02_bufferSize", ctypes.c_int(), *arguments)
        self.call("Dbsrilu02_analysis", *arguments, BY_LEVELS, memory)
        self.call("Dbsrilu02", *arguments, BY_LEVELS, memory)
        A.space.synchronize()
        row = ctypes.c_int(-1)
        try:
            self.call("Xbsrilu02_zeroPivot", info, ctypes.byref(row))
        except SwellError:
            raise FactorisationError(f"cuSPARSE's ILU(0) has a zero pivot in block row {row.value}") from None
        return factor


def _described(factor, descriptor):
    """Return the arguments that describe a BSRMatrix to cuSPARSE: sizes, descriptor, arrays, block size."""
    return (factor.indptr.size - 1, factor.indices.size, descriptor, factor.data, factor.indptr, factor.indices,
            factor.block)


class Solves(LinearOperator):
    """z = U⁻¹ L⁻¹ r by cuSPARSE, with blocks of ``block`` rows of the CSRMatrix A.

    Raises
    ------
    InputError
        If A is not in double precision.
    """

    capturable = False

    def __init__(self, A, block):
        super().__init__(A.shape, A.dtype, A.space)
        if A.dtype != "float64":
            raise InputError(f"cuSPARSE's solves got a matrix of type {A.dtype}: expected float64")
        self._cusparse, self._one = Library(A.space), ctypes.c_double(1)
        self._between, self._z = (A.space.empty(A.shape[0], A.dtype) for _ in range(2))
        self._analyse(self._cusparse.factored(A, block))

    @abstractmethod
    def _analyse(self, factor):
        """Prepare both triangles of ``factor``, a BSRMatrix."""

    @abstractmethod
    def _solve(self, x, z):
        """Write z = U⁻¹ L⁻¹ x."""

    def apply(self, x, out, alpha=1, beta=0):
        if alpha == 1 and not beta:
            self._solve(x, out)
            return
        self._solve(x, self._z)
        out[...] = alpha * self._z + beta * out if beta else alpha * self._z


class BlockSolves(Solves):
    """Solves by ``bsrsv2``, on the blocks."""

    def _analyse(self, factor):
        cusparse, self._triangles = self._cusparse, []
        for fill, diagonal in TRIANGLES:
            matrix = cusparse.create("CreateMatDescr")
            cusparse.set("SetMatFillMode", matrix, fill)
            cusparse.set("SetMatDiagType", matrix, diagonal)
            rows, blocks, *arrays = *_described(factor, matrix), cusparse.create("CreateBsrsv2Info")
            sizes = ROW_MAJOR, PLAIN, rows, blocks
            memory = cusparse.memory("Dbsrsv2_bufferSize", ctypes.c_int(), *sizes, *arrays)
            cusparse.call("Dbsrsv2_analysis", *sizes, *arrays, BY_LEVELS, memory)
            self._triangles.append((sizes, arrays, memory))

    def _solve(self, x, z):
        for (sizes, arrays, memory), source, target in zip(self._triangles, (x, self._between), (self._between, z)):
            self._cusparse.call("Dbsrsv2_solve", *sizes, ctypes.byref(self._one), *arrays, source, target, BY_LEVELS,
                                memory)


class EntrySolves(Solves):
    """Solves by ``SpSV``, on the entries of the factor in CSR."""

    def _analyse(self, factor):
        cusparse, T, self._triangles = self._cusparse, factor.to_csr(), []
        n, count = (ctypes.c_int64(size) for size in (T.shape[0], T.data.size))
        arrays = T.indptr.astype("int32"), T.indices.astype("int32"), T.data
        for fill, diagonal in TRIANGLES:
            matrix = cusparse.create("CreateCsr", n, n, count, *arrays, INT32, INT32, 0, FLOAT64)
            for attribute, value in ((FILL_MODE, fill), (DIAG_TYPE, diagonal)):
                value = ctypes.c_int(value)
                cusparse.set("SpMatSetAttribute", matrix, attribute, ctypes.byref(value), ctypes.c_size_t(4))
            source, target = (cusparse.create("CreateDnVec", n, self._z, FLOAT64) for _ in range(2))
            arguments = (PLAIN, ctypes.byref(self._one), matrix, source, target, FLOAT64, 0,
                         cusparse.create("SpSV_createDescr"))
            memory = cusparse.memory("SpSV_bufferSize", ctypes.c_size_t(), *arguments)
            cusparse.call("SpSV_analysis", *arguments, memory)
            self._triangles.append((source, target, arguments, memory, arrays))

    def _solve(self, x, z):
        vectors = (x, self._between), (self._between, z)
        for (source, target, arguments, *_), (read, written) in zip(self._triangles, vectors):
            self._cusparse.set("DnVecSetValues", source, read)
            self._cusparse.set("DnVecSetValues", target, written)
            self._cusparse.call("SpSV_solve", *arguments)


BY_CUSPARSE = {BSRSV2: BlockSolves, SPSV: EntrySolves}
