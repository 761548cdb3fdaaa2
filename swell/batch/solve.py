"""The public calls ``solve_batch`` and ``prepare_batch``: many small systems of one pattern, or of a few."""
from __future__ import annotations

from typing import Unpack

import numpy as np

from swell import inputs
from swell.batch.pattern import Pattern, read_pattern
from swell.batch.result import BatchResult
from swell.batch.settings import named as named_choice
from swell.batch.solver import BatchSolver, read_values, read_vectors
from swell.core.arrays import checked_dtype
from swell.core.devices import make_space
from swell.core.errors import InputError
from swell.core.guests import guest_of
from swell.core.settings import shown
from swell.options import Accepted, OptionsDict

OPTIONS = Accepted(without=("M", "scaling", "ordering", "format", "nullspace", "smoother", "block", "stopping"))


@OPTIONS.shown
def solve_batch(A, values=None, B=None, *, x0=None, **options: Unpack[OptionsDict]) -> BatchResult:
    """Solve many small systems Aₛ xₛ = bₛ at once.

    Every system has its own stopping and its own record: a singular system, or one with NaN, is one record and has no
    effect on the others.

    Parameters
    ----------
    A : square matrix, n × n, or list of matrices
        The pattern that all systems share: sparse (CSR, CSC, COO, BSR), dense (its nonzeros), a torch tensor, or a
        matrix of swell. Its values are not used. With a list of matrices, leave ``values`` out: systems of one pattern
        are solved together, and the results have the order of the list.
    values : array, shape (batch, nnz)
        ``values[s, k]`` belongs to the entry ``A.data[k]`` of the matrix as it was given, whatever its order. For BSR
        that is ``A.data.ravel()[k]``, for a dense A the k-th nonzero, row by row, and for a tensor the k-th value of
        its CSR form. Each entry must be stored once.
    B : array, shape (batch, n) or (batch, n, k), or for a list of matrices a list of arrays (n,) or (n, k)
    method : str or settings object, optional
        "cg", "bicgstab", "gmres(restart=30)" or "lu" (dense LU with partial pivoting; "direct" is the same).
        Default: CG with Jacobi if every system is Hermitian with a positive diagonal; else LU for n <= 64; else
        BiCGSTAB with ILU(0), or Jacobi if ILU(0) does not fit on the chip. If that iteration fails for some systems,
        LU solves them where it fits. The result says what ran.
    precond : str or settings object, optional
        "jacobi", "block_jacobi(block=4)" or "ilu0", for the three iterative methods.
    rtol, atol, maxiter
        Converged means ‖b − A x‖₂ ≤ max(rtol ‖b‖₂, atol), computed with the original values and the returned x.
        ``maxiter`` limits the iterations; by default n, but at least 1000 and at most 20 000.
    x0 : array like B, optional
        Starting vectors. LU has no use for them: an error if you named it, else a note.
    device : {"cpu", "cuda", "cuda:1"}, optional
        Where to solve; by default where values or B are.
    dtype : {"float32", "float64", "complex64", "complex128"}, optional
        Convert to this type first. Default: the type of the values, made complex if B is complex.

    Returns
    -------
    BatchResult

    Raises
    ------
    InputError
        For input that cannot be solved as given; the message says what to do.
    MissingDependency
        If the GPU or a library is missing.

    Examples
    --------
    >>> import numpy as np, swell
    >>> A = swell.gallery.poisson2d(5)
    >>> values = np.outer([1.0, 2.0, 4.0], A.data)
    >>> r = swell.solve_batch(A, values, np.ones((3, 25)))
    >>> r.converged
    array([ True,  True,  True])
    >>> r.method, r[2].reason.name
    ('cg', 'CONVERGED')
    """
    if B is None:
        raise InputError("B is missing: give the right-hand sides, an array of shape (batch, n) or (batch, n, k)")
    if isinstance(A, (list, tuple)):
        if values is not None:
            raise InputError("A is a list of matrices and values were given too: give one of them; the matrices have "
                             "values")
        return _solve_list(A, B, x0, options)
    if values is None:
        raise InputError("values is missing: give an array of shape (batch, nnz), or a list of matrices as A")
    solver = _prepared(A, values, B, options)
    return solver._take(values, keep=False).solve(B, x0)


@OPTIONS.shown
def prepare_batch(A, values=None, *, b_like=None, **options: Unpack[OptionsDict]) -> BatchSolver:
    """Read the pattern of a batch once; `swell.solve_batch` documents the parameters.

    ``values`` may also come later, by ``update``. ``b_like`` is a right-hand side, or an array of its type on its
    device: it tells whether B will be complex, and on which device.

    Returns
    -------
    BatchSolver
        Call ``.update(values)`` for new values and ``.solve(B)`` for new right-hand sides.

    Examples
    --------
    >>> import numpy as np, swell
    >>> A = swell.gallery.poisson2d(5)
    >>> s = swell.prepare_batch(A, method="lu")
    >>> all(s.update(k * A.data[None]).solve(np.ones((1, 25))).all_converged for k in (1.0, 2.0))
    True
    """
    solver = _prepared(A, values, b_like, options)
    return solver if values is None else solver.update(values)


def _prepared(A, values, b, options) -> BatchSolver:
    """Return the solver of a batch, without its values."""
    chosen = OPTIONS.read(options)
    named = named_choice(chosen.method, chosen.precond)
    if named is not None and named.name == "lu" and chosen.maxiter is not None:
        raise InputError(f"maxiter={shown(chosen.maxiter)} has no effect with method='lu', which solves directly: "
                         "leave it out")
    pattern = A if isinstance(A, Pattern) else read_pattern(A)
    values_type = None
    if values is not None:
        values_type = read_values(values, pattern.nnz).dtype
    elif not isinstance(A, Pattern):
        values_type = inputs.dtype_of(A, "A") if chosen.dtype is None else None
    kind = _type(chosen.dtype, values_type, b)
    space = make_space(_device(chosen.device, values, b))
    return BatchSolver(pattern, space, kind, named, chosen.criterion.for_type(kind))


def _device(device, values, b) -> str:
    """The device to solve on: the named one, else where values are, else where b is."""
    if device is not None:
        return device
    devices = [inputs.device_of(operand) for operand in (values, b) if operand is not None]
    return next((one for one in devices if one != "cpu"), "cpu")


def _type(dtype, values_type, b) -> np.dtype:
    """The type to solve in: the named one, or the values' own, made complex if b is complex."""
    b_type = None if b is None else inputs.dtype_of(b[0] if isinstance(b, (list, tuple)) and len(b) else b, "B")
    wanted = inputs.solve_dtype(dtype, np.float64 if values_type is None else values_type, b_type)
    if values_type is not None:
        inputs.check_not_real(wanted, checked_dtype(values_type, "values"), "values")
    return wanted


def _solve_list(matrices, B, x0, options) -> BatchResult:
    """Solve for a list of matrices: each group of one pattern is one batch. The results have the user's order."""
    if not len(matrices):
        raise InputError("A is an empty list: expected at least one matrix")
    for name, vectors, what in (("B", B, "right-hand sides"), ("x0", x0, "vectors")):
        if vectors is None:
            continue
        if not isinstance(vectors, (list, tuple)) and not len(getattr(vectors, "shape", ())):
            raise InputError(f"{name}={shown(vectors)}: expected a list of {len(matrices)} arrays, one for each matrix")
        if len(vectors) != len(matrices):
            raise InputError(f"{name} has {len(vectors)} {what} and A {len(matrices)} matrices: expected as many")
    groups: list[tuple[Pattern, list[int], list]] = []
    for k, A in enumerate(matrices):
        pattern, entries = _with_values(A, k)
        group = next((each for each in groups if each[0].same(pattern)), None)
        if group is None:
            group = pattern, [], []
            groups.append(group)
        group[1].append(k)
        group[2].append(entries)
    results = []
    for pattern, places, entries in groups:
        values = _stacked(entries, "values")
        rhs = _stacked([B[k] for k in places], "B")
        guess = None if x0 is None else _stacked([x0[k] for k in places], "x0")
        canonical = Pattern(pattern.n, pattern.indptr, pattern.indices)
        solver = _prepared(canonical, values, rhs, options)
        results.append(solver._take(values, keep=False).solve(rhs, guess))
    return _merged([places for _, places, _ in groups], results, B)


def _with_values(A, k):
    """Return (the pattern of matrix number k, its values in the pattern's order)."""
    try:
        pattern = read_pattern(A)
    except InputError as error:
        raise InputError(f"matrix {k} of the list: {error}") from None
    guest = guest_of(A)
    A = A.to_csr() if hasattr(A, "to_csr") and not hasattr(A, "tocsr") else guest.read_matrix(A)
    data = A.data.reshape(-1) if hasattr(A, "tocsr") or hasattr(A, "indptr") else A[A != 0]
    return pattern, data if pattern.order is None else data[pattern.order]


def _stacked(arrays, name):
    """Stack the arrays of one group along a new first axis."""
    read = [read_vectors(each, name) for each in arrays]
    if len({each.shape for each in read}) > 1:
        shapes = sorted({str(tuple(each.shape)) for each in read})
        raise InputError(f"{name} of systems with one pattern has the shapes {', '.join(shapes)}: expected one shape")
    if any(type(each).__module__.startswith("cupy") for each in read):
        import cupy
        return cupy.stack([cupy.asarray(each) for each in read])
    return np.stack(read)


def _merged(places, results, B) -> BatchResult:
    """Return the results of all groups as one, in the user's order. ``places``: the systems of each group."""
    back = np.argsort(np.concatenate(places))
    if len({each.converged.shape[1:] for each in results}) > 1:
        raise InputError("B has right-hand sides with different numbers of columns: give all of them k columns")

    def joined(name):
        return np.concatenate([getattr(each, name) for each in results])[back]
    xs = [x for each in results for x in each.x]
    xs = [xs[k] for k in back]
    if isinstance(B, (list, tuple)):
        xs = [guest_of(like).give_back(x, like) for x, like in zip(xs, B)]
    else:
        xs = guest_of(B).give_back(_stacked(xs, "x"), B)

    def words(name):
        return ", ".join(dict.fromkeys(getattr(each, name) for each in results))

    def total(name):
        return {key: sum(getattr(each, name).get(key, 0) for each in results) for key in getattr(results[0], name)}
    notes = list(dict.fromkeys(note for each in results for note in each.notes))
    if len(results) > 1:
        notes.insert(0, f"{len(results)} patterns, each solved as one batch")
    return BatchResult(xs, joined("converged"), joined("iterations"), joined("residual"), joined("backward_error"),
                       joined("reasons"), words("method"), words("precond"), words("device"), words("dtype"),
                       list(dict.fromkeys(line for each in results for line in each.configuration)), total("timings"),
                       total("memory"), sum(each.launches for each in results), notes)
