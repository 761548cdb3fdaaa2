"""Options: how the solves of one prepared system run, forward and backward."""
from __future__ import annotations

from dataclasses import dataclass, fields

from swell.api import SolveOptions
from swell.core.errors import InputError
from swell.core.settings import DTYPES, shown

ON_FAILURE = ("raise", "warn")
BATCH = ("method", "precond", "rtol", "atol", "maxiter", "dtype", "on_failure")


@dataclass(frozen=True, eq=False)
class Options(SolveOptions):
    """The options of `swell.torch.solve`, which documents them."""

    together: bool | None = None
    keep_preconditioner: bool = False
    on_failure: str = "raise"

    def __post_init__(self):
        dtype = None if self.dtype is None else str(self.dtype).removeprefix("torch.")
        if dtype is not None and dtype not in DTYPES:
            raise InputError(f"dtype={shown(self.dtype)}: expected one of {', '.join(DTYPES)}")
        object.__setattr__(self, "dtype", dtype)
        if self.on_failure not in ON_FAILURE:
            raise InputError(f"on_failure={shown(self.on_failure)}: expected 'raise' or 'warn'")
        if not isinstance(self.keep_preconditioner, bool):
            raise InputError(f"keep_preconditioner={shown(self.keep_preconditioner)}: expected True or False")

    @property
    def forward(self) -> dict:
        """Arguments of `swell.prepare`."""
        return {**self.parts, "block": self.block, "rtol": self.rtol, "atol": self.atol, "maxiter": self.maxiter,
                "stopping": self.stopping}

    @property
    def batch(self) -> dict:
        """Arguments of `swell.prepare_batch`.

        Raises
        ------
        InputError
            For options that have no effect in a batch.
        """
        idle = [f.name for f in fields(self) if f.name not in BATCH and getattr(self, f.name) is not f.default]
        if idle:
            raise InputError(f"{idle[0]}={shown(getattr(self, idle[0]))} has no effect in a batch: leave it out, or "
                             "solve the systems one by one")
        return {name: getattr(self, name) for name in ("method", "precond", "rtol", "atol", "maxiter")}
