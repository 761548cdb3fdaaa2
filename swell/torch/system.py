"""System: the solvers of one pattern, as the passes of torch's graphs call them.

A graph holds numbers and tensors only. So operations name a System by an integer, ``System.key``, and the registry
finds it. The registry is weak: a System lives as long as its `Prepared`, or a graph that may still need it.
"""
from __future__ import annotations

import itertools
import threading
import warnings
import weakref
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import torch

from swell import api
from swell.batch.solve import prepare_batch
from swell.core.errors import InputError, SwellError
from swell.core.guests import guest_of
from swell.torch.failure import NotConverged
from swell.torch.options import Options
from swell.torch.pattern import Pattern

_systems: weakref.WeakValueDictionary[int, System] = weakref.WeakValueDictionary()
_options: dict[int, Options] = {}                # of calls in compiled graphs, which set up at each call
_keys = itertools.count()


def found(key: int) -> System | Options:
    """Return the System or the Options of a key.

    Raises
    ------
    SwellError
        If the System is gone.
    """
    one = _options.get(key) or _systems.get(key)
    if one is None:
        raise SwellError("the prepared system of this graph no longer exists: keep the object that swell.torch.prepare "
                         "returned for as long as the compiled function is called")
    return one


def key_of(options: Options) -> int:
    """Return a key for options."""
    key = next(_keys)
    _options[key] = options
    return key


class System:
    """A pattern, options, and the solver for the values that came last.

    Attributes
    ----------
    key : int
    solves, adjoint_solves : int
        Solves of the forward and of the backward pass; several columns or a batch count once.
    setups, updates : int
        How often a solver was prepared, and updated to new values.
    result, adjoint_result : Result, Results, BatchResult or None
        The outcome of the last solve of each kind.
    """

    def __init__(self, pattern: Pattern, options: Options):
        self.pattern, self.options = pattern, options
        self.solves = self.adjoint_solves = self.setups = self.updates = 0
        self.result: Any = None
        self.adjoint_result: Any = None
        self._solver: Any = None
        self._batches: dict[Any, Any] = {}       # BatchSolvers, by (adjoint, derivative, type)
        self._lock = threading.RLock()
        self.key = next(_keys)
        _systems[self.key] = self

    def solve(self, values, b, adjoint=False, batched=False, derivative=False, differentiable=False) -> torch.Tensor:
        """Solve A x = b, or Aᴴ x = b; x is a new tensor of the type of b.

        Parameters
        ----------
        values, b : tensors without a graph, of one type on one device
            Values in the order of the pattern.
        adjoint : bool
        batched : bool
            Both have a leading batch axis.
        derivative : bool
            x is a derivative: use the relative tolerance alone.
        differentiable : bool
            A backward pass may follow: raise an error now if the chosen method has no adjoint.
        """
        values, b = (_plain(given) for given in (values, b))
        with self._lock, on_torch_stream(b.device):
            if batched:
                result = self._batch(adjoint, derivative, values).solve(b)
                converged = result.all_converged
            else:
                result = self._solve(values, b, adjoint, derivative, differentiable)
                converged = result.converged
        if adjoint:
            self.adjoint_solves, self.adjoint_result = self.adjoint_solves + 1, result
        else:
            self.solves, self.result = self.solves + 1, result
        if not converged:
            self._complain(result, adjoint)
        return result.x.contiguous()

    def _complain(self, result, adjoint):
        which = "adjoint solve, for the gradient," if adjoint else "solve"
        text = f"the {which} did not converge: {result}"
        if self.options.on_failure == "raise":
            raise NotConverged(text, result)
        warnings.warn(text, UserWarning, stacklevel=2)

    def _solve(self, values, b, adjoint, derivative, differentiable):
        solver = self.solver_for(values)
        if differentiable:
            solver.require_adjoint()
        forward = solver.stopping
        relative = api.relative(forward) if derivative or differentiable else forward
        if not derivative or relative == forward:
            return solver.solve(b, together=self.options.together, adjoint=adjoint)
        solver.stop_by(relative)
        try:
            return solver.solve(b, together=self.options.together, adjoint=adjoint)
        finally:
            solver.stop_by(forward)

    def solver_for(self, values):
        """Return the Solver for these values: the present one, updated, or a new one.

        The values themselves are compared. So changes in place are seen, and equal values cost no setup."""
        values = _plain(values)
        with self._lock, on_torch_stream(values.device):
            csr = self._csr_of(values)
            solver = self._solver
            if solver is not None and self._same_pattern(csr):
                if not torch.equal(_tensor(solver.A.data), _tensor(csr.data)):
                    solver.update(csr, keep_preconditioner=self.options.keep_preconditioner)
                    self.updates += 1
                return solver
            self._solver = None                  # frees it before the next is set up
            solver = api.prepare(csr, **self.options.forward)
            if solver.A.nnz != csr.nnz:
                raise InputError("A stores an entry twice, so its values have no order: coalesce it")
            self._solver, self.setups = solver, self.setups + 1
            return solver

    def _same_pattern(self, csr) -> bool:
        """True if the solver has this type and pattern. Only a dense matrix can change its pattern, by zeros."""
        A = self._solver.A
        return A.dtype == csr.dtype and (not self.pattern.dense or A.nnz == csr.nnz and all(
            torch.equal(_tensor(mine), _tensor(given).to(_tensor(mine).dtype))
            for mine, given in ((A.indptr, csr.indptr), (A.indices, csr.indices))))

    def _csr_of(self, values):
        """Return a CSR matrix of SciPy or CuPy over the memory of the values; a dense matrix gives its nonzeros."""
        n = self.pattern.n
        if self.pattern.dense:
            return guest_of(values).read_matrix(values.to_sparse_csr())
        arrays = (_array(part) for part in (values, self.pattern.col, self.pattern.crow))
        if values.device.type == "cpu":
            from scipy.sparse import csr_matrix
        else:
            from cupyx.scipy.sparse import csr_matrix
        return csr_matrix(tuple(arrays), shape=(n, n))

    def _batch(self, adjoint, derivative, values):
        """Return the BatchSolver for the values of a batch; for ``adjoint``, one of the transposed pattern."""
        key = adjoint, derivative, values.dtype
        if key not in self._batches:
            options = self.options.batch | {"dtype": str(values.dtype).removeprefix("torch."), "b_like": values[0]}
            A = (self._transposed if adjoint else self._numbered)[0]
            self._batches[key] = prepare_batch(A, **options | ({"atol": 0.0} if derivative else {}))
            self.setups += 1
        values = values.reshape(values.shape[0], -1)
        if adjoint:
            values = values.index_select(1, self._transposed[1].to(values.device)).conj().resolve_conj()
        return self._batches[key].update(values)

    @cached_property
    def _numbered(self):
        """A matrix of SciPy with this pattern, whose values are the numbers of its entries; and these numbers."""
        from scipy.sparse import csr_matrix
        n, pattern = self.pattern.n, self.pattern
        crow = torch.arange(0, n * n + 1, n) if pattern.dense else pattern.crow.cpu()
        col = torch.arange(n).repeat(n) if pattern.dense else pattern.col.cpu()
        numbers = torch.arange(col.numel(), dtype=torch.float64)
        return csr_matrix(tuple(part.numpy() for part in (numbers, col, crow)), shape=(n, n)), numbers.long()

    @cached_property
    def _transposed(self):
        """The same of the transposed pattern, whose numbers are the places of its entries in the pattern."""
        A = self._numbered[0].T.tocsr()
        return A, torch.from_numpy(A.data).long()


@contextmanager
def on_torch_stream(device: torch.device):
    """Return a context in which CuPy uses torch's current device and stream.

    torch runs backward passes on a GPU in threads of its own, and CuPy's device and stream belong to a thread."""
    if device.type != "cuda":
        yield
        return
    import cupy
    stream = torch.cuda.current_stream(device).cuda_stream
    with cupy.cuda.Device(device.index), torch.cuda.device(device), cupy.cuda.ExternalStream(stream):
        yield


def _plain(tensor) -> torch.Tensor:
    """The tensor without a graph, contiguous, with conjugation and negation carried out."""
    return tensor.detach().resolve_conj().resolve_neg().contiguous()


def _array(tensor):
    """A NumPy or CuPy array over the memory of a tensor."""
    return guest_of(tensor).read_vector(tensor, "values")


def _tensor(array) -> torch.Tensor:
    """A tensor over the memory of a NumPy or CuPy array."""
    return torch.as_tensor(array) if type(array).__module__ == "numpy" else torch.from_dlpack(array)
