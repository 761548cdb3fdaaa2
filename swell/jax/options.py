"""Options: how the solves of one pattern run, forward, transposed and in batches."""
from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np

from swell.api import SolveOptions, _named, _stopping, relative
from swell.batch.settings import named
from swell.core.errors import InputError
from swell.core.settings import shown
from swell.core.stopping import Stopping

SINGLE_RTOL = 1e-6      # smallest tolerance in single precision
SMALL = 1000            # unknowns up to which several matrices are solved as a batch
BATCH = ("method", "precond", "device", "dtype", "rtol", "atol", "maxiter")
X64 = "jax.config.update('jax_enable_x64', True) before the first array is made"


@dataclass(frozen=True)
class Options(SolveOptions):
    """The options of `swell.jax.solve`, which documents them."""

    device: str | None = None

    def __post_init__(self):
        _named(**self.parts)                     # raises an error for a misspelt name
        relative(self.forward_stopping)          # and for an absolute tolerance alone

    @property
    def forward_stopping(self) -> Stopping:
        """The stopping of solves with A."""
        return _stopping(self.stopping, self.rtol, self.atol, self.maxiter)

    @property
    def transposed_stopping(self) -> Stopping:
        """The stopping of solves with Aᵀ."""
        return relative(self.forward_stopping)

    @property
    def prepare(self) -> dict:
        """Arguments of `swell.prepare` besides the type and the stopping."""
        return {**self.parts, "device": self.device, "block": self.block}

    @cached_property
    def has_batch_form(self) -> bool:
        """True if `swell.solve_batch` takes all options that were given."""
        if any(getattr(self, f.name) is not f.default for f in fields(self) if f.name not in BATCH):
            return False
        try:
            named(self.method, self.precond)
        except InputError:
            return False
        return True

    def check(self, dtype: np.dtype, x64: bool):
        """Raise InputError if solves in ``dtype`` cannot reach the tolerance. ``x64``: JAX's double precision is on."""
        rtol = self.forward_stopping.for_type(dtype).rtol
        if dtype.name in ("float32", "complex64") and rtol < SINGLE_RTOL:
            remedy = f"convert A's values or b to {'complex128' if dtype.kind == 'c' else 'float64'}" if x64 else X64
            raise InputError(f"rtol={shown(rtol)} is out of reach in {dtype.name}: expected at least "
                             f"{SINGLE_RTOL:g}, or double precision: {remedy}")
