"""Options: how the solves of one pattern run, forward, adjoint and in batches."""
from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property

from swell import inputs
from swell.api import SolveOptions, _named, _stopping
from swell.api import relative as relative_only
from swell.batch.settings import named as named_in_batch
from swell.core.errors import InputError
from swell.core.settings import DTYPES, shown
from swell.core.stopping import Stopping

ON_FAILURE = ("raise", "warn")
BATCH = ("method", "precond", "device", "dtype", "rtol", "atol", "maxiter", "on_failure")


@dataclass(frozen=True)
class Options(SolveOptions):
    """The options of `swell.torch.solve` and `swell.jax.solve`, which document them.

    They are checked here, before a matrix is read. ``dtype`` becomes the name of the type.
    """

    device: str | None = None
    together: bool | None = None
    keep_preconditioner: bool = False
    on_failure: str = "raise"

    def __post_init__(self):
        _named(**self.parts)
        self.stopping_of()
        if self.dtype is not None:
            name = str(self.dtype).removeprefix("torch.")        # NumPy does not know the types of torch
            dtype = inputs.solve_dtype(name if name in DTYPES else self.dtype, None, None)
            object.__setattr__(self, "dtype", dtype.name)
        if self.on_failure not in ON_FAILURE:
            raise InputError(f"on_failure={shown(self.on_failure)}: expected 'raise' or 'warn'")
        if not isinstance(self.keep_preconditioner, bool):
            raise InputError(f"keep_preconditioner={shown(self.keep_preconditioner)}: expected True or False")

    def stopping_of(self, relative=False) -> Stopping:
        """Return when solves stop; ``relative``: solves for derivatives, which have no absolute tolerance."""
        stopping = _stopping(self.stopping, self.rtol, self.atol, self.maxiter)
        return relative_only(stopping) if relative else stopping

    def check_batch(self):
        """Raise InputError for an option that `swell.solve_batch` does not take."""
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name not in BATCH and value is not field.default:
                raise InputError(f"{field.name}={shown(value)} has no effect in a batch: leave it out, or solve the "
                                 "systems one by one")
        named_in_batch(self.method, self.precond)

    @cached_property
    def has_batch_form(self) -> bool:
        """True if `swell.solve_batch` takes all options that were given."""
        try:
            self.check_batch()
        except InputError:
            return False
        return True
