"""The differentiable solve, as functions of torch's autograd.

x = A⁻¹ b has the derivative dx = A⁻¹ (db − dA x). A backward pass with the cotangent g is one adjoint solve, Aᴴ λ = g.
Then b̄ = λ, and āᵢⱼ = −λᵢ conj(xⱼ) on A's pattern. The adjoint solve is the same function with ``adjoint`` reversed, so
derivatives of every order are right.

`Solve` works inside torch.compile; torch refuses a forward-mode rule there. `SolveEagerly` adds that rule. Both call
one custom operation, which a compiled graph treats as a black box.
"""
from __future__ import annotations

from typing import NamedTuple

import torch

from swell.autodiff.options import Options
from swell.torch.pattern import index_of, read_pattern
from swell.torch.system import System, found


class Task(NamedTuple):
    """A solve's arguments, as numbers that a graph can hold. torch.compile of torch 2.6 cannot trace ``_replace``."""

    key: int                        # of the System
    adjoint: bool = False           # solve Aᴴ x = b
    batched: bool = False           # values and b have a batch axis
    derivative: bool = False        # x is a derivative, whose size is unknown: only the relative tolerance holds
    differentiable: bool = False    # a backward pass may follow


@torch.library.custom_op(
    "swell::solve", mutates_args=(),
    schema="(Tensor values, Tensor b, Tensor? crow, Tensor? col, int key, *, bool adjoint, bool batched, "
           "bool derivative, bool differentiable) -> Tensor")
def solve_op(values, b, crow, col, key, *, adjoint, batched, derivative, differentiable):
    """Solve by the System of a key, or by a new one with the Options of a key."""
    system = found(key)
    if isinstance(system, Options):
        pattern = read_pattern(crow, col, values.shape[-1])
        system, values = System(pattern, system), index_of(pattern).arrange(values, batched)
    return system.solve_tensors(values, b, adjoint=adjoint, batched=batched, derivative=derivative,
                                differentiable=differentiable)


@solve_op.register_fake
def _(values, b, crow, col, key, *, adjoint, batched, derivative, differentiable):
    return torch.empty(b.shape, dtype=b.dtype, device=b.device)


def solved(values, b, crow, col, token, task: Task) -> torch.Tensor:
    """Return A⁻¹ b, or A⁻ᴴ b, with its derivatives.

    Parameters
    ----------
    values, b : tensors of one type on one device
        Values in the order of the pattern; ``b`` has shape (n,) or (n, k). In a batch, both have a batch axis.
    crow, col : integer tensors
        Row pointers and columns of the pattern; None for a dense matrix.
    token : tensor or None
        Its attribute ``system`` keeps the System alive for as long as a graph keeps the tensor.
    task : Task
    """
    differentiable = torch.is_grad_enabled() and (values.requires_grad or b.requires_grad)
    function = Solve if torch.compiler.is_compiling() else SolveEagerly
    return function.apply(values, b, crow, col, token, Task(
        task.key, task.adjoint, task.batched, task.derivative, differentiable))


class Solve(torch.autograd.Function):
    """A solve with its reverse rule and its rule for vmap."""

    @staticmethod
    def forward(values, b, crow, col, token, task):
        """Solve."""
        return solve_op(values, b, crow, col, task.key, adjoint=task.adjoint, batched=task.batched,
                        derivative=task.derivative, differentiable=task.differentiable)

    @staticmethod
    def setup_context(ctx, inputs, output):
        """Save the tensors for the derivatives; x only if the values have a derivative."""
        values, _, crow, col, token, ctx.task = inputs
        ctx.save_for_backward(values, output if ctx.needs_input_grad[0] else None, crow, col, token)

    @staticmethod
    def backward(ctx, g):
        """One adjoint solve gives the gradients for b and for the values."""
        (values, x, *fixed), task = ctx.saved_tensors, ctx.task
        y = solved(values, g, *fixed, Task(task.key, not task.adjoint, task.batched, derivative=True))
        of_values = None
        if ctx.needs_input_grad[0]:
            left, right = (x, y) if task.adjoint else (y, x)
            of_values = -outer(left, right, *fixed[:2], task.batched)
        return of_values, y if ctx.needs_input_grad[1] else None, *[None] * 4

    @staticmethod
    def vmap(info, in_dims, values, b, crow, col, token, task):
        """Many b of one matrix become columns of one solve. Many matrices become a batch."""
        of_values, of_b, *_ = in_dims
        if of_values is None:
            b = b.movedim(of_b, -1)
            x = solved(values, b.flatten(1 + task.batched), crow, col, token, task)
            return x.reshape(b.shape), b.ndim - 1
        values = values.movedim(of_values, 0)
        b = b.expand(info.batch_size, *b.shape) if of_b is None else b.movedim(of_b, 0)
        if task.batched:
            x = solved(values.flatten(0, 1), b.flatten(0, 1), crow, col, token, task)
            return x.unflatten(0, b.shape[:2]), 0
        return solved(values, b, crow, col, token, task._replace(batched=True)), 0


class SolveEagerly(Solve):
    """`Solve` with a forward-mode rule."""

    @staticmethod
    def setup_context(ctx, inputs, output):
        """Save the tensors for both modes."""
        Solve.setup_context(ctx, inputs, output)
        values, _, crow, col, token, _ = inputs
        ctx.save_for_forward(values, output, crow, col, token)

    @staticmethod
    def jvp(ctx, dvalues, db, *_):
        """dx = A⁻¹ (db − dA x), or the same for Aᴴ."""
        (values, x, *fixed), task = ctx.saved_tensors, ctx.task
        if dvalues is not None:
            change = product(dvalues, x, *fixed[:2], task.adjoint, task.batched)
            db = -change if db is None else db - change
        return solved(values, db, *fixed, task._replace(derivative=True))


def outer(left, right, crow, col, batched) -> torch.Tensor:
    """The entries of left · rightᴴ on a pattern, with a sum over columns."""
    columns = left.ndim - batched == 2
    if crow is None:
        left, right = (part if columns else part[..., None] for part in (left, right))
        return left @ right.mH
    axis, rows = int(batched), row_of_each(crow, col)
    if not columns:
        return left.index_select(axis, rows) * right.index_select(axis, col).conj()
    total = 0
    for one, other in zip(left.unbind(-1), right.unbind(-1)):      # column by column: nnz · k numbers take memory
        total = total + one.index_select(axis, rows) * other.index_select(axis, col).conj()
    return total


def product(values, x, crow, col, adjoint, batched) -> torch.Tensor:
    """The product of a matrix, or of its adjoint, with x."""
    columns = x.ndim - batched == 2
    if crow is None:
        values = values.mH if adjoint else values
        return values @ x if columns else (values @ x[..., None])[..., 0]
    axis, rows = int(batched), row_of_each(crow, col)
    source, target = (rows, col) if adjoint else (col, rows)
    values = values.conj() if adjoint else values
    terms = (values[..., None] if columns else values) * x.index_select(axis, source)
    return torch.zeros_like(x).index_add(axis, target, terms)


def row_of_each(crow, col) -> torch.Tensor:
    """The row of each entry of a pattern; computed anew, since it takes as much memory as ``col``."""
    rows = torch.arange(crow.numel() - 1, dtype=col.dtype, device=col.device)
    return rows.repeat_interleave((crow[1:] - crow[:-1]).long(), output_size=col.numel())
