"""Prepared: a matrix whose setup outlives training steps."""
from __future__ import annotations

from dataclasses import fields
from typing import Any

import torch

from swell.core.errors import InputError
from swell.core.settings import DTYPES
from swell.torch.function import solved
from swell.torch.options import Options
from swell.torch.pattern import Pattern, read_matrix, read_pattern
from swell.torch.system import System, key_of

HALF = (torch.float16, torch.bfloat16)
COMPLEX = {torch.float32: torch.complex64, torch.float64: torch.complex128}
TYPES = tuple(getattr(torch, name) for name in DTYPES)
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
        check_half(values, "A", options.dtype)
        self._hold(values)
        self._pattern, self._options = pattern, options
        self._system = System(pattern, options)
        self._token = token_of(self._system)

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
        check_half(values, "A", self._options.dtype)
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


def alike(values, b, dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Convert both to the type to solve in, as in `swell.solve`: the named one, or A's own, made complex if b is complex.

    Raises
    ------
    InputError
        For half precision without a named type, and for a real type with complex input.
    """
    if dtype is None:
        wanted = values.dtype if values.dtype in TYPES else torch.float64
        wanted = COMPLEX.get(wanted, wanted) if b.is_complex() else wanted
    else:
        wanted = getattr(torch, dtype) if isinstance(dtype, str) else dtype
    for given, name in ((values, "A"), (b, "b")):
        check_half(given, name, dtype)
        if given.is_complex() and not wanted.is_complex:
            raise InputError(f"dtype={dtype} would drop the imaginary part of a complex {name}: use complex64 or "
                             "complex128")
    return values.to(wanted), b.to(wanted)


def check_half(given, name, dtype):
    """Raise InputError for a half-precision tensor, unless a wider type was named."""
    if given.dtype in HALF and dtype is None:
        raise InputError(f"{name} has dtype {str(given.dtype).removeprefix('torch.')}, in which swell does not compute: "
                         "ask for a wider type, as in dtype='float32', or convert it with "
                         f"{name}.to(torch.float32)")


def check_vector(b, values, n, batched):
    """Raise InputError unless b is a dense tensor that fits the system and lies on its device."""
    if not isinstance(b, torch.Tensor):
        raise InputError(f"b is a {type(b).__name__}: expected a torch tensor; swell.solve takes arrays of other "
                         "libraries")
    if b.layout != torch.strided:
        raise InputError(f"b is a tensor of layout {b.layout}: expected a dense one; convert it with b.to_dense()")
    lead = (values.shape[0],) if batched else ()
    if b.ndim not in (1 + len(lead), 2 + len(lead)) or tuple(b.shape[:len(lead) + 1]) != (*lead, n) or not b.numel():
        sizes = ", ".join(map(str, (*lead, n)))
        raise InputError(f"b has shape {tuple(b.shape)}: expected ({sizes}{',' * (not lead)}) or ({sizes}, k) with k "
                         "of at least 1")
    check_device(values, "A", b, "b")


def check_device(one, name, other, other_name):
    """Raise InputError unless two tensors lie on one device, which must be a CPU or a CUDA GPU."""
    if one.device.type not in ("cpu", "cuda"):
        raise InputError(f"{name} lies on device {str(one.device)!r}: expected cpu or cuda; move it with .cpu()")
    if one.device != other.device:
        raise InputError(f"{name} lies on {one.device} and {other_name} on {other.device}: move one of them, as in "
                         f"{other_name}.to({str(one.device)!r})")
