"""Options: how the solves of one pattern run, forward, transposed and in batches."""
from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from swell.api import _named, _stopping
from swell.batch.settings import named
from swell.core.errors import InputError
from swell.core.settings import shown
from swell.core.stopping import Stopping

SINGLE_RTOL = 1e-6      # smallest tolerance in single precision
SMALL = 1000            # unknowns up to which several matrices are solved as a batch
BATCH = ("method", "precond", "device", "dtype", "rtol", "atol", "maxiter")
X64 = "jax.config.update('jax_enable_x64', True) before the first array is made"


@dataclass(frozen=True)
class Options:
    """The options of `swell.jax.solve`, which documents them."""

    method: Any = None
    precond: Any = None
    M: Any = None
    scaling: Any = None
    ordering: Any = None
    format: Any = None
    nullspace: Any = None
    smoother: Any = None
    device: str | None = None
    dtype: Any = None
    block: int | None = None
    rtol: float = 1e-8
    atol: float = 0.0
    maxiter: int | None = None
    stopping: Stopping | None = None

    def __post_init__(self):
        _named(self.method, self.precond, self.M, self.scaling, self.ordering, self.format, self.nullspace,
               self.smoother)                    # raises an error for a misspelt name
        if self.forward_stopping.rtol == 0:
            raise InputError("rtol=0: a derivative needs a relative tolerance, since its size is unknown; give rtol, "
                             "too")

    @property
    def forward_stopping(self) -> Stopping:
        """The stopping of solves with A."""
        return _stopping(self.stopping, self.rtol, self.atol, self.maxiter)

    @property
    def transposed_stopping(self) -> Stopping:
        """The stopping of solves with Aᵀ: relative only, since an absolute tolerance turns small gradients into
        zeros."""
        return replace(self.forward_stopping, atol=0.0)

    @property
    def prepare(self) -> dict:
        """Arguments of `swell.prepare` besides the type and the stopping."""
        return {name: getattr(self, name) for name in (
            "method", "precond", "M", "scaling", "ordering", "format", "nullspace", "smoother", "device", "block")}

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
        rtol = self.forward_stopping.rtol
        if dtype.name in ("float32", "complex64") and rtol < SINGLE_RTOL:
            remedy = f"convert A's values or b to {'complex128' if dtype.kind == 'c' else 'float64'}" if x64 else X64
            raise InputError(f"rtol={shown(rtol)} is out of reach in {dtype.name}: expected at least "
                             f"{SINGLE_RTOL:g}, or double precision: {remedy}")
