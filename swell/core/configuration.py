"""A configuration: one complete choice of what runs, by settings objects."""
from __future__ import annotations

from dataclasses import dataclass

from swell.core.registry import name_of


@dataclass(frozen=True)
class Configuration:
    """Settings for every part of a solve; None leaves a part out (or, for ``format``, takes the default).

    ``why`` holds the advisor's sentences where it chose, and ``estimate`` what it predicts, or None. ``without`` names
    the parts that the user asked to leave out ("none"), which the advisor then does not fill in.
    """

    method: object
    precond: object = None
    scaling: object = None
    ordering: object = None
    format: object = None
    nullspace: object = None
    smoother: object = None
    why: tuple[str, ...] = ()
    estimate: object = None
    without: frozenset[str] = frozenset()

    def free(self, kind: str) -> bool:
        """True if the user said nothing of this part."""
        return getattr(self, kind) is None and kind not in self.without

    @property
    def unusable(self) -> str | None:
        """A part that the method has no place for, such as "precond", or None."""
        if self.precond is not None and not self.method.preconditionable:
            return "precond"
        return "smoother" if self.smoother is not None and not self.method.smooths else None

    @property
    def part(self) -> str:
        """What speeds the method up: its preconditioner by name, else its scaling, else "none"."""
        return self.name("precond") if self.precond is not None else self.name("scaling")

    @property
    def parts(self) -> list[str]:
        """The parts whose kernels are compiled ahead, in the order in which they run: "precond ic0", "method cg"."""
        return [f"{kind} {self.name(kind)}" for kind in ("precond", "method") if getattr(self, kind) is not None]

    def name(self, kind: str) -> str:
        """The registry name of one part: "none" where there is none, "user" for what the user brought."""
        setting = getattr(self, kind)
        if setting is None:
            return "none"
        return name_of(kind, type(setting))
