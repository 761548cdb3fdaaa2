"""Prepared: a matrix whose setup outlives training steps."""
from __future__ import annotations

from dataclasses import fields
from typing import Any

import torch

from swell.core.errors import InputError
from swell.torch.function import solved
from swell.torch.inputs import alike, check_device, check_narrow, check_values, check_vector
from swell.torch.options import Options
from swell.torch.pattern import Pattern, read_matrix, read_pattern
from swell.torch.system import System, key_of

FIELDS = [field.name for field in fields(Options)]


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
        How often a setup was made from nothing, and for new values.
    result, adjoint_result : Result, Results or None
        The outcome of the last solve of each kind.
    """

    def __init__(self, pattern: Pattern, values: torch.Tensor, options: Options):
        check_narrow(values, "A", options.dtype)
        self._hold(values)
        self._pattern, self._options = pattern, options
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
        if isinstance(A, torch.Tensor) and A.layout == torch.strided and not self._pattern.dense:
            self._pattern.arrange(A, A.ndim == self.values.ndim == len(self._pattern.stored) + 1)
            values = A
        else:
            pattern, values = read_matrix(A)
            if not pattern.same(self._pattern):
                raise InputError("update needs a matrix with the pattern, block size and device of the prepared one: "
                                 "prepare again")
        check_device(self.values, "the prepared matrix", values, "the new one")
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
        pattern, compiling = self._pattern, torch.compiler.is_compiling()
        if values is None:
            values = self._without_graph if compiling else self.values
            if values is None:
                raise InputError("the prepared values have a graph, which torch.compile cannot see: pass them, as in "
                                 "p.solve(b, values)")
        return _solve(values, b, pattern, None if compiling else self._token, self._system.key, self._options.dtype)

    @property
    def solves(self) -> int:
        """Solves of forward passes."""
        return self._system.solves

    @property
    def adjoint_solves(self) -> int:
        """Solves of backward passes."""
        return self._system.adjoint_solves

    @property
    def setups(self) -> int:
        """Setups from nothing."""
        return self._system.setups

    @property
    def updates(self) -> int:
        """Setups for new values of a pattern that was set up before."""
        return self._system.updates

    @property
    def result(self) -> Any:
        """The outcome of the last forward solve."""
        return self._system.result

    @property
    def adjoint_result(self) -> Any:
        """The outcome of the last adjoint solve."""
        return self._system.adjoint_result

    def __reduce__(self):
        return Prepared, (self._pattern, self.values.detach(), self._options)


def from_csr(values, crow, col, b, *options) -> torch.Tensor:
    """Solve for a matrix given by its CSR arrays; ``options``: the fields of `Options`."""
    if torch.compiler.is_compiling():            # the pattern is known, and checked, when the operation runs
        pattern = Pattern(crow.numel() - 1, crow, col, None, tuple(col.shape))
        return _solve(values, b, pattern, None, _key(*options), options[FIELDS.index("dtype")])
    check_values(values)
    pattern = read_pattern(crow, col, values.shape[-1])
    system = System(pattern, Options(*options))
    return _solve(values, b, pattern, token_of(system), system.key, system.options.dtype)


def _solve(values, b, pattern, token, key, dtype) -> torch.Tensor:
    """Check values and b, and solve by the System of a key."""
    batched = values.ndim == len(pattern.stored) + 1
    check_vector(b, values, pattern.n, batched)
    values, b = alike(pattern.arrange(values, batched), b, dtype)
    return solved(values, b, pattern.crow, pattern.col, token, key, batched=batched)


def token_of(system) -> torch.Tensor:
    """A tensor that keeps a System alive. Graphs save it, and free it with the other tensors of a backward pass."""
    token = torch.empty(0)
    token.system = system
    return token


@torch.compiler.assume_constant_result
def _key(*options) -> int:
    return key_of(Options(*options))
