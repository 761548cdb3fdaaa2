"""The public calls of `swell.torch`. torch is imported by the first of them."""
from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from swell.autodiff.options import OptionsDict
from swell.core.errors import InputError, MissingDependency
from swell.torch.options import BATCH, PREPARE, SOLVE

if TYPE_CHECKING:
    from torch import Tensor

    from swell.torch.prepared import Prepared


@SOLVE.shown
def solve(A, b, **options: Unpack[OptionsDict]) -> Tensor:
    """Solve A x = b, differentiably in b and in A's values. A backward pass is one adjoint solve with the same setup.

    Parameters
    ----------
    A : tensor, shape (n, n) or (m, n, n)
        COO, CSR, CSC, BSR, BSC or dense. The gradient has A's layout and pattern. Three dimensions are a batch; see
        `solve_batch`.
    b : tensor, shape (n,) or (n, k), or with a leading batch axis
        On A's device, which is the device of the solve.
    dtype : {"float32", "float64", "complex64", "complex128"}, optional
        The type to solve in, and x's. Default: A's type, made complex if b is complex. Half precision is converted only
        if a type is named here.
    on_failure : {"raise", "warn"}
        What happens if a solve, forward or backward, does not converge.
    together
        As in `swell.solve`.
    options
        As in `swell.Options`. An adjoint solve has the same rtol, and atol = 0.

    Returns
    -------
    tensor, shape of b

    Raises
    ------
    NotConverged
        If the solve does not converge; ``error.result`` is the `Result`.
    InputError
        For input that cannot be solved as given, and if a gradient is asked for and the method has no adjoint.
    MissingDependency
        If torch, or CuPy for a tensor on a GPU, is missing.
    """
    return _prepared(A, SOLVE.read(options)).solve(b)


@PREPARE.shown
def prepare(A, **options: Unpack[OptionsDict]) -> Prepared:
    """Prepare a matrix, or a batch, for many solves and training steps. `solve` documents the other parameters.

    Parameters
    ----------
    keep_preconditioner : bool
        Keep the preconditioner of the first values when values change. Solves may then need more iterations.

    Returns
    -------
    Prepared
        Call ``.solve(b)`` as often as needed, and ``.update(A2)`` for new values. The setup is made at the first solve.
    """
    return _prepared(A, PREPARE.read(options))


@BATCH.shown
def solve_batch(A, b, **options: Unpack[OptionsDict]) -> Tensor:
    """Solve many small systems of one pattern, by `swell.solve_batch`, differentiably in b and in A's values.

    Parameters
    ----------
    A : tensor, shape (m, n, n)
        CSR, CSC, BSR or BSC with one pattern for all, or dense.
    b : tensor, shape (m, n) or (m, n, k)
    method, precond, maxiter
        As in `swell.solve_batch`.
    dtype, rtol, atol, on_failure
        As in `solve`.

    Returns
    -------
    tensor, shape of b
    """
    if getattr(A, "ndim", 3) != 3:
        raise InputError(f"A has shape {tuple(A.shape)}: expected a batch (m, n, n); swell.torch.solve takes one "
                         "matrix")
    return _prepared(A, BATCH.read(options)).solve(b)


@SOLVE.shown
def solve_values(values, crow, col, b, **options: Unpack[OptionsDict]) -> Tensor:
    """Solve A x = b for a matrix given by its CSR arrays. torch.compile and torch.func take this form.

    Parameters
    ----------
    values : tensor, shape (nnz,) or (m, nnz)
        Two dimensions are a batch of matrices with one pattern.
    crow, col : tensors of int32 or int64, shapes (n + 1,) and (nnz,)
        Row pointers and columns.
    b : tensor, shape (n,) or (n, k), or with a leading batch axis
    options
        As in `solve`.

    Inside torch.compile a backward pass repeats the setup. `prepare` outside of the compiled function avoids that.

    Returns
    -------
    tensor, shape of b
    """
    _require_torch()
    from swell.torch.prepared import from_csr
    return from_csr(values, crow, col, b, options)


def _prepared(A, options) -> Prepared:
    """Read A, and return it as `Prepared`."""
    _require_torch()
    from swell.torch.pattern import read_matrix
    from swell.torch.prepared import Prepared
    return Prepared(*read_matrix(A), options)


def _require_torch():
    """Raise MissingDependency, with the line that installs torch, if it is missing."""
    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise MissingDependency(f"swell.torch needs torch ({error}): pip install 'swell[torch]'") from None
