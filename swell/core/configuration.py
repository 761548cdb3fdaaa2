"""Configuration: the settings objects of all parts of one solve."""
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from swell.core.ahead import CHOICE
from swell.core.registry import name_of
from swell.core.renamed import renamed

if TYPE_CHECKING:
    from swell.core.preconditioner import Preconditioner


@dataclass(frozen=True)
class Configuration:
    """Settings for every part of a solve; None leaves a part out (or, for ``format``, takes the default).

    A choice of the advisor is a configuration with the reasons ``why``, one sentence each, and a ``prediction``; if the
    user chose, they are empty and None. ``without`` names the parts that the user set to "none": the advisor leaves
    them out.
    """

    method: Any                                  # Any: the class is in a layer above, which core does not know
    precond: Preconditioner | None = None
    scaling: Any = None
    ordering: Any = None
    format: Any = None
    nullspace: Any = None
    smoother: Preconditioner | None = None
    why: tuple[str, ...] = ()
    prediction: Any = None
    without: frozenset[str] = frozenset()
    estimate = renamed("estimate", "prediction")

    def free(self, kind: str) -> bool:
        """True if the user has neither chosen the part ``kind``, such as "precond", nor set it to "none"."""
        return getattr(self, kind) is None and kind not in self.without

    @property
    def unusable(self) -> str | None:
        """The part that the method cannot use ("precond" or "smoother"), or None."""
        if self.precond is not None and not self.method.preconditionable:
            return "precond"
        return "smoother" if self.smoother is not None and not self.method.smooths else None

    @property
    def part(self) -> str:
        """The name of the part that accelerates the method: its preconditioner, else its scaling, else "none"."""
        return self.name("precond") if self.precond is not None else self.name("scaling")

    @property
    def parts(self) -> list[str]:
        """The parts whose kernels are compiled ahead, in order of use, such as "precond ic" and "method cg"."""
        named = [f"{kind} {self.name(kind)}" for kind in ("precond", "method") if getattr(self, kind) is not None]
        return named if self.method is not None else [*named, CHOICE]

    def name(self, kind: str) -> str:
        """The registry name of the part ``kind``, such as "precond"; "none", or "user" for the user's own M."""
        setting = getattr(self, kind)
        if setting is None:
            return "none"
        return name_of(kind, type(setting))
