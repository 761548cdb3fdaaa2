"""Block Jacobi smoothing: all slices of rows solve their own blocks at once, with values of the other rows.

Section 4.3 of the paper that smoother.py names. For matrices with a diagonal without zeros. A sweep solves
A_ll ŷ = (b − A x)_l for every block l, equation (4.8), and adds ŷ to x_l (4.9). The inner solver starts from zero:

- "jacobi": sweeps of (4.1) inside the block. With one inner sweep, the smoother is the method of Jacobi.
- "gauss_seidel": warp-wise forward sweeps, equation (4.14): warps of 32 rows take turns. Inside a warp, the rows are
  solved in the order of their dependencies, so that the result is the exact forward sweep.
- "cg": conjugate gradients, for Hermitian positive definite blocks.
- "exact": the blocks' inverses, dense, computed once at setup.

A synchronous sweep reads one vector and writes another. An asynchronous sweep works in place: a block reads the values
that other blocks have written by then. So two runs differ, and M is not a fixed linear map.

With exact inner solves it converges in the A-norm if A and 2 blockdiag(A) − A are SPD, as for every M-matrix of the
paper.

A sweep is one launch: it reads the matrix in modified SELL (12 bytes an off-diagonal, double), its diagonal, b and x,
and writes x. On a GPU the local system stays on chip while the inner sweeps run (10 bytes an entry of the
block). Storage: the matrix and two vectors; "exact" also n · height scalars.

Differs from the paper:

- Local columns have 16 bits. Rows are scaled by the diagonal, so that an inner sweep has no division. An inner sweep
  has two local vectors, and so only one barrier. Rows of up to 12 couplings are in registers.
- The tolerance is absolute, for the squared norm. Inner sweeps end if the squared residual of each row is at most
  tolerance / height: a barrier tests this without a sum.
- (4.11) to (4.14) swap the roles of lower and upper parts: here the block-lower part multiplies the new values.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swell.core.errors import InputError
from swell.core.settings import one_of, positive, real, share, switch, without_effect
from swell.formats.diagonal import nonzero_diagonal
from swell.formats.modified_sell import ModifiedSELL
from swell.smoothers.smoother import Smoother, TwoBufferOperator

INNER = ("jacobi", "gauss_seidel", "cg", "exact")
CHUNK = 256 << 20       # bytes of the blocks that are inverted at once
HELD = 4, 8, 12         # row lengths for which a kernel keeps the row in registers
STATIC = 2048           # bytes of shared memory for the kernel and the device, with a margin


def check_inner(settings):
    """Raise InputError unless the fields of the inner solver are valid; ``settings``: of a block smoother."""
    name = type(settings).__name__
    one_of(settings, "inner", INNER)
    positive(settings, "height", 32, 1024)
    if settings.height % 32:
        raise InputError(f"{name}(height={settings.height}): expected a multiple of 32, the rows of a warp")
    positive(settings, "inner_sweeps")
    if not real(settings.omega) or not 0 < settings.omega <= 2:
        raise InputError(f"{name}(omega={settings.omega!r}): expected a number above 0 and at most 2, such as 0.7")
    share(settings, "inner_tolerance")
    if settings.inner != "jacobi":
        without_effect(settings, f"with inner={settings.inner!r}", "give inner='jacobi'", "omega")
    if settings.inner == "exact":
        without_effect(settings, "with inner='exact'", "name an inner iteration, such as inner='jacobi'",
                       "inner_sweeps", "inner_tolerance")


@dataclass(frozen=True)
class BlockJacobiSmoother(Smoother):
    """Block Jacobi with an inner iteration on every slice of rows.

    Attributes
    ----------
    inner : str
        "jacobi", "gauss_seidel", "cg" or "exact".
    asynchronous : bool
        True: sweep in place, with the latest values of the other blocks.
    height : int
        Rows of a block, a multiple of 32 up to 1024.
    inner_sweeps : int
        Largest number of inner sweeps.
    inner_tolerance : float
        Squared norm of a block's residual at which its inner sweeps end. With 0, all sweeps are done: only
        then can M be a fixed linear map.
    omega : float
        Damping of inner Jacobi sweeps, above 0 and at most 2; take less than 1 if 2D − A is indefinite.
    """

    inner: str = "jacobi"
    asynchronous: bool = False
    height: int = 512
    inner_sweeps: int = 5
    inner_tolerance: float = 0.0
    omega: float = 1.0

    problem = "any matrix with a diagonal without zeros; converges if A and 2 blockdiag(A) − A are SPD"
    cost = "a sweep: 1 launch, the matrix and 4 words a row, and inner sweeps in shared memory"

    def __post_init__(self):
        super().__post_init__()
        check_inner(self)
        switch(self, "asynchronous")

    def build(self, A):
        return BlockJacobiOperator(A, self)


class Blocks:
    """The diagonal blocks of a matrix, in the form that the inner solvers need.

    Parameters
    ----------
    A : CSRMatrix
    settings : BlockJacobiSmoother or BlockGaussSeidel
    owner : str
        Name of the smoother, for messages.

    Attributes
    ----------
    matrix : ModifiedSELLMatrix
        The matrix; each slice is a block.
    width : int
        Largest number of off-diagonals of a row inside its block.
    held : int
        Entries of a row that a thread of a GPU holds in registers; 0: they stay in shared memory.
    shared : int
        Bytes of shared memory that a block needs on a GPU.
    inverse : array of the space
        With inner="exact": inverse[s, j, t] is entry (t, j) of the inverse of block s.
    variable : bool
        True if the inner solver is not a fixed linear map.

    Raises
    ------
    InputError
        If a diagonal entry is zero, a block is singular, or a local system does not fit in a GPU's shared memory.
    OutOfMemory
        If the dense inverses of the blocks do not fit.
    """

    def __init__(self, A, settings, owner):
        self.settings, self.owner, self.space, self.dtype = settings, owner, A.space, A.dtype
        nonzero_diagonal(A, owner)
        self.exact = settings.inner == "exact"
        self.variable = settings.inner == "cg" or (not self.exact and settings.inner_tolerance > 0)
        self.height = settings.height
        self.matrix = ModifiedSELL(height=self.height).build(A)
        self.width = local_width(A, self.height)
        entries = self.width * A.dtype.itemsize // 8
        self.held = next((h for h in HELD if self.width <= h and entries <= HELD[-1]), 0)
        self.shared = self._shared_bytes()
        slices = self.matrix.slice_ptr.size - 1 if self.exact else 0
        if self.exact:
            self.space.check_fits(3 * CHUNK + slices * self.height**2 * A.dtype.itemsize, "inverting the blocks",
                                  f"choose a height below {self.height}, or inner='jacobi'")
        self.inverse = A.space.empty((slices, self.height, self.height), A.dtype)
        self._invert(A)

    def arrays(self):
        """Return the first arguments of every kernel: the slice pointers, diagonal, off-diagonals and columns of A."""
        m = self.matrix
        return m.slice_ptr, m.diag, m.entries, m.col_idx

    def update(self, A):
        """Recompute ``matrix`` and ``inverse`` in place, for new values of A, of the same pattern."""
        nonzero_diagonal(A, self.owner)
        self.matrix.update(A)
        self._invert(A)

    def _shared_bytes(self):
        """Return the bytes of shared memory that a block needs; raise InputError if the GPU has less."""
        size = self.dtype.itemsize
        row = 2 * size + (0 if self.exact else self.width * (size + 2))
        if self.space.name == "cuda" and row * self.height > self.space.shared_memory - STATIC:
            fits = (self.space.shared_memory - STATIC) // row // 32 * 32
            remedy = f"height={fits} or less fits" if fits else "no height fits: use inner='exact' or GaussSeidel"
            raise InputError(f"{type(self.settings).__name__}(height={self.height}): the local systems have up to "
                             f"{self.width} entries a row beside the diagonal and need {row * self.height} bytes of "
                             f"shared memory, and a block of {self.space.describe()} has {self.space.shared_memory}: "
                             + remedy)
        return row * self.height

    def _invert(self, A):
        """Write the inverses of A's diagonal blocks to ``inverse``. Raise InputError if one is singular."""
        slices, H, n, xp = self.inverse.shape[0], self.height, A.shape[0], self.space.xp
        if not slices:
            return
        rows = A.rows()
        local = xp.nonzero(rows // H == A.indices // H)[0]
        rows, columns, data = rows[local], A.indices[local], A.data[local]
        begins = self.space.to_host(xp.searchsorted(rows, xp.arange(slices + 1) * H))
        step = max(1, CHUNK // (H * H * self.dtype.itemsize))
        for first in range(0, slices, step):
            last = min(first + step, slices)
            part = slice(int(begins[first]), int(begins[last]))
            blocks = xp.zeros((last - first, H, H), self.dtype)
            blocks[rows[part] // H - first, rows[part] % H, columns[part] % H] = data[part]
            if last == slices:                   # identity in the rows beyond the matrix
                beyond = xp.arange(n - (slices - 1) * H, H)
                blocks[-1, beyond, beyond] = 1
            try:
                self.inverse[first:last] = xp.linalg.inv(blocks).transpose(0, 2, 1)
            except np.linalg.LinAlgError:
                self.inverse[first:last] = np.inf
        if not self.space.finite(self.inverse):  # sync
            raise InputError(f"{self.owner}: a diagonal block of {H} rows is singular: choose another height, or "
                             "inner='jacobi'")

    @property
    def nbytes(self):
        """Bytes of the matrix and of the inverses."""
        return self.matrix.nbytes + self.inverse.nbytes

    def describe(self):
        """Return a short text about the blocks and their inner solver, for a printed result."""
        s = self.settings
        inner = "exact inverses" if self.exact else f"up to {s.inner_sweeps} inner sweeps of {s.inner}"
        if s.inner == "jacobi" and s.omega != 1:
            inner += f" damped by {s.omega:g}"
        if not self.exact and s.inner_tolerance:
            inner += f" to {s.inner_tolerance:g}"
        return f"{type(s).__name__}(sweeps={s.sweeps}), blocks of {self.height} rows, {inner}"

    def check_adjoint(self):
        """Raise InputError if the sweeps have no adjoint here: with inner="gauss_seidel"."""
        if self.settings.inner == "gauss_seidel":
            raise InputError(f"{self.describe()}: forward inner sweeps have no adjoint here; use inner='jacobi' or "
                             "'exact', or a method without adjoint products")


class BlockJacobiOperator(TwoBufferOperator):
    """Block Jacobi sweeps on one matrix; `Blocks` lists the errors that it can raise."""

    def __init__(self, A, settings):
        super().__init__(A, settings)
        self.blocks = Blocks(A, settings, "the block Jacobi smoother")
        self.variable = self.blocks.variable or settings.asynchronous
        self.self_adjoint = settings.inner in ("jacobi", "exact") and not self.variable
        self._kernels = A.space.kernels("swell.smoothers", "block_jacobi", A.dtype)

    @property
    def _kernel(self):
        """The kernel of the inner method."""
        return getattr(self._kernels, {"cg": "conjugate_gradients"}.get(self.settings.inner, self.settings.inner))

    def update(self, A):
        super().update(A)
        self.blocks.update(A)

    def _step(self, b, x, out, k, zero):
        blocks, s = self.blocks, self.settings
        if blocks.exact:
            self._kernel(*blocks.arrays(), blocks.inverse, b, x, out, zero, s.height, blocks.shared)
        else:
            self._kernel(*blocks.arrays(), b, x, out, s.omega, zero, s.inner_sweeps, s.inner_tolerance, blocks.width,
                         blocks.held, s.height, blocks.shared)

    def smooth(self, b, x, sweeps=None):
        if not self.settings.asynchronous:
            super().smooth(b, x, sweeps)
            return
        for _ in range(self.settings.sweeps if sweeps is None else sweeps):
            self._step(b, x, x, 0, 0)

    def _from_zero(self, b, x):
        if not self.settings.asynchronous:
            super()._from_zero(b, x)
            return
        x.fill(0)                                # a block may read the x of another before it is written
        self.smooth(b, x)

    def apply_adjoint(self, x, out, alpha=1, beta=0):
        self.blocks.check_adjoint()
        super().apply_adjoint(x, out, alpha, beta)

    @property
    def nbytes(self):
        return self.blocks.nbytes + self._other.nbytes + self._y.nbytes

    def describe(self):
        return self.blocks.describe() + (", asynchronous" if self.settings.asynchronous else "")


def local_width(A, height):
    """Return the largest number of off-diagonals of a row inside its own slice of ``height`` rows."""
    rows = A.rows()
    local = (rows // height == A.indices // height) & (rows != A.indices)
    return int(A.space.max_on_host(A.space.count(rows[local], max(A.shape[0], 1))))  # sync
