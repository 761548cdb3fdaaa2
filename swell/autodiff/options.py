"""Options: how the solves of one pattern run, forward, adjoint and in batches."""
from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property

from swell import inputs, options
from swell.batch import solve as batch
from swell.batch.settings import named
from swell.core.errors import InputError
from swell.core.settings import DTYPES, differs, shown
from swell.core.stopping import Stopping

IN_BATCH = (*batch.OPTIONS.names, "on_failure")


class OptionsDict(options.OptionsDict, total=False):
    """The options of `swell.torch.prepare` as keyword arguments, for type checkers."""

    together: bool | None
    keep_preconditioner: bool
    on_failure: str


@dataclass(frozen=True, kw_only=True)
class Options(options.Options):
    """The options of `swell.torch.prepare`, which documents them, and of `swell.jax.prepare`.

    ``dtype`` becomes the name of the type. Options without arrays can be hashed.
    """

    together: bool | None = None
    keep_preconditioner: bool = False
    on_failure: str = "raise"

    def __post_init__(self):
        if self.dtype is not None:
            name = str(self.dtype).removeprefix("torch.")        # NumPy does not know the types of torch
            dtype = inputs.solve_dtype(name if name in DTYPES else self.dtype, None, None)
            object.__setattr__(self, "dtype", dtype.name)
        if self.on_failure not in ("raise", "warn"):
            raise InputError(f"on_failure={shown(self.on_failure)}: expected 'raise' or 'warn'")
        if not isinstance(self.keep_preconditioner, bool):
            raise InputError(f"keep_preconditioner={shown(self.keep_preconditioner)}: expected True or False")

    def check_batch(self):
        """Raise InputError for an option that `swell.solve_batch` does not take."""
        for name in (field.name for field in fields(self)):
            if name not in IN_BATCH and differs(self, name):
                raise InputError(f"{name}={shown(getattr(self, name))} has no effect in a batch: leave it out, or "
                                 "solve the systems one by one")
        named(self.method, self.precond)

    @cached_property
    def has_batch_form(self) -> bool:
        """True if `swell.solve_batch` takes all options that were given."""
        try:
            self.check_batch()
        except InputError:
            return False
        return True


def relative(stopping: Stopping) -> Stopping:
    """Return the stopping of a derivative's solves: relative only, since an absolute tolerance turns small gradients
    into zeros.

    Raises
    ------
    InputError
        If ``stopping`` has an absolute tolerance only.
    """
    if stopping.rtol == 0:
        raise InputError(f"rtol=0 with atol={shown(stopping.atol)}: a derivative needs a relative tolerance, since its "
                         "size is unknown; give rtol, too")
    return replace(stopping, atol=0.0)
