"""Prepared: a matrix whose setup outlives training steps."""
from __future__ import annotations

from operator import attrgetter

import torch

from swell.autodiff.options import Options
from swell.autodiff.pattern import Pattern
from swell.core.errors import InputError
from swell.torch.arrays import on_torch_stream
from swell.torch.function import Task, solved
from swell.torch.inputs import alike, check_device, check_narrow, check_values, check_vector
from swell.torch.options import SOLVE
from swell.torch.pattern import Index, index_of, read_matrix, read_pattern
from swell.torch.system import System, key_of


class Prepared:
    """A matrix that is set up once, and solved and differentiated often; made by `swell.torch.prepare`.

    Threads may share it; their solves run one after the other. A copy or a pickle holds the values without their graph,
    and repeats the setup.

    Attributes
    ----------
    values : tensor
        A's values as A stores them, with their graph.
    solves, adjoint_solves : int
        Solves of the forward and the backward passes so far. Several columns, or a batch, count once.
    setups, updates : int
        How often a setup was made from nothing, and for new values of a pattern that was set up before.
    result, adjoint_result : Result, Results, BatchResult or None
        The outcome of the last solve of each kind.
    """

    solves, adjoint_solves = (property(attrgetter(f"_system.{name}")) for name in ("solves", "adjoint_solves"))
    setups, updates = (property(attrgetter(f"_system.{name}")) for name in ("setups", "updates"))
    result, adjoint_result = (property(attrgetter(f"_system.{name}")) for name in ("result", "adjoint_result"))

    def __init__(self, pattern: Pattern, values: torch.Tensor, options: Options):
        check_narrow(values, "A", options.dtype)
        self._hold(values)
        self._pattern, self._index, self._options = pattern, index_of(pattern), options
        self._system = System(pattern, options)
        self._token = token_of(self._system)

    def __repr__(self):
        dtype = str(self.values.dtype).removeprefix("torch.")
        return (f"Prepared({self._pattern.n} unknowns, {dtype}, {self.values.device}: {self.solves} solves, "
                f"{self.adjoint_solves} adjoint ones, {self.setups} setups, {self.updates} updates)")

    def update(self, A) -> Prepared:
        """Take a matrix of the same pattern, or its values; return self.

        The setup follows at the next solve, and only if the values differ. Graphs of earlier solves stay valid: a
        backward pass through them sets up their values again.

        Raises
        ------
        InputError
            For another pattern, device or shape.
        """
        if isinstance(A, torch.Tensor) and A.layout == torch.strided and self._index.crow is not None:
            self._index.arrange(A, A.ndim == self.values.ndim == len(self._index.stored) + 1)
            pattern, values = self._pattern, A
        else:
            pattern, values = read_matrix(A)
        check_device(self.values, "the prepared matrix", values, "the new one")
        with on_torch_stream(values.device):
            if pattern is not self._pattern and pattern != self._pattern:
                raise InputError("update needs a matrix with the pattern, block size and device of the prepared one: "
                                 "prepare again")
        check_narrow(values, "A", self._options.dtype)
        self._hold(values)
        return self

    def _hold(self, values):
        """Keep the values; and, since a compiled graph takes no view of a sparse tensor, a tensor without a base."""
        self.values, self._without_graph = values, None if values.requires_grad else values.data

    def solve(self, b: torch.Tensor, values: torch.Tensor | None = None) -> torch.Tensor:
        """Return x with A x = b, differentiable in b and in A's values.

        Parameters
        ----------
        b : tensor, shape (n,) or (n, k)
        values : tensor, optional
            Solve with these values instead of the prepared ones, in the order in which A stores them.

        Raises
        ------
        NotConverged
            If the solve, or later the adjoint solve of a backward pass, does not converge.
        InputError
            For input that cannot be solved as given, and if a gradient is asked for and the method has no adjoint.
        """
        compiling = torch.compiler.is_compiling()
        if values is None:
            values = self._without_graph if compiling else self.values
            if values is None:
                raise InputError("the prepared values have a graph, which torch.compile cannot see: pass them, as in "
                                 "p.solve(b, values)")
        return _solve(values, b, self._index, None if compiling else self._token, self._system.key, self._options.dtype)

    def __reduce__(self):
        return Prepared, (self._pattern, self.values.detach(), self._options)


def from_csr(values, crow, col, b, options: dict) -> torch.Tensor:
    """Solve for a matrix given by its CSR arrays; ``options``: as `swell.torch.solve_values` takes them."""
    if torch.compiler.is_compiling():            # the pattern is known, and checked, when the operation runs
        index = Index(crow.numel() - 1, tuple(col.shape), crow, col)
        return _solve(values, b, index, None, *_key(options))
    check_values(values)
    pattern = read_pattern(crow, col, values.shape[-1])
    system = System(pattern, SOLVE.read(options))
    return _solve(values, b, index_of(pattern), token_of(system), system.key, system.options.dtype)


def _solve(values, b, index: Index, token, key, dtype) -> torch.Tensor:
    """Check values and b, and solve by the System of a key."""
    batched = values.ndim == len(index.stored) + 1
    check_vector(b, values, index.n, batched)
    values, b = alike(index.arrange(values, batched), b, dtype)
    return solved(values, b, index.crow, index.col, token, Task(key, batched=batched))


def token_of(system) -> torch.Tensor:
    """Return a tensor that keeps a System alive. Graphs free it with the other tensors of a backward pass."""
    token = torch.empty(0)
    token.system = system
    return token


@torch.compiler.assume_constant_result
def _key(options) -> tuple[int, str | None]:
    """Return a key for options, and the name of their type."""
    made = SOLVE.read(options)
    return key_of(made), made.dtype
