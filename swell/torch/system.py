"""System: the solvers of one pattern, as the passes of torch's graphs call them.

A graph holds numbers and tensors only. So operations name a System by an integer, ``System.key``, and the registry
finds it. The registry is weak: a System lives as long as its `Prepared`, or a graph that may still need it.
"""
from __future__ import annotations

import itertools
import warnings
import weakref
from typing import Any

import numpy as np
import torch

from swell.autodiff import system
from swell.autodiff.options import Options
from swell.autodiff.pattern import Pattern
from swell.core.errors import NotConverged, SwellError
from swell.torch.arrays import array_of, on_torch_stream

_registry: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
_options: list[Options] = []                     # of calls in compiled graphs, which set up at each call
_keys = itertools.count()


def found(key: int) -> System | Options:
    """Return the System or the Options of a key; SwellError if the System is gone."""
    one = _registry.get(key)
    if one is None:
        raise SwellError("the prepared system of this graph no longer exists: keep the object that swell.torch.prepare "
                         "returned for as long as the compiled function is called")
    return one


def key_of(one: System | Options) -> int:
    """Register a System, or Options for ever; return the key."""
    key = next(_keys)
    _registry[key] = one
    if isinstance(one, Options):
        _options.append(one)
    return key


class System(system.System):
    """The systems of one pattern, for tensors.

    Attributes
    ----------
    key : int
    solves, adjoint_solves : int
        Solves of the forward and of the backward pass; several columns or a batch count once.
    result, adjoint_result : Result, Results, BatchResult or None
        The outcome of the last solve of each kind.
    """

    def __init__(self, pattern: Pattern, options: Options):
        super().__init__(pattern, options)
        self.solves = self.adjoint_solves = 0
        self.result: Any = None
        self.adjoint_result: Any = None
        self.key = key_of(self)

    def solve_tensors(self, values, b, *, adjoint=False, batched=False, derivative=False,
                      differentiable=False) -> torch.Tensor:
        """Solve A x = b, or Aᴴ x = b; x is a new tensor of the type of b.

        Parameters
        ----------
        values, b : tensors of one type on one device
            Values in the order of the pattern. Their graphs are ignored.
        adjoint : bool
        batched : bool
            Both have a leading batch axis.
        derivative : bool
            x is a derivative: use the relative tolerance alone.
        differentiable : bool
            A backward pass may follow: raise an error now if the chosen method has no adjoint.
        """
        with on_torch_stream(b.device):
            values, b = array_of(_plain(values)), _plain(b)
            if batched:
                values = values.conj() if adjoint else values
                result = self.solve_batch(values, b, transposed=adjoint, relative=derivative)
            else:
                result = self.solve(values, b, adjoint=adjoint, relative=derivative, differentiable=differentiable)
        if adjoint:
            self.adjoint_solves, self.adjoint_result = self.adjoint_solves + 1, result
        else:
            self.solves, self.result = self.solves + 1, result
        if not np.all(result.converged):
            text = f"the {'adjoint solve, for the gradient,' if adjoint else 'solve'} did not converge: {result}"
            if self.options.on_failure == "raise":
                raise NotConverged(text, result)
            warnings.warn(text, UserWarning, stacklevel=1)
        return result.x.contiguous()


def _plain(tensor) -> torch.Tensor:
    """Return the tensor without a graph, contiguous, with conjugation and negation carried out."""
    return tensor.detach().resolve_conj().resolve_neg().contiguous()
