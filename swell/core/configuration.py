"""A configuration: one complete choice of what runs, by settings objects."""
from __future__ import annotations

from dataclasses import dataclass

from swell.core.registry import name_of


@dataclass(frozen=True)
class Configuration:
    """Settings for every part of a solve; None leaves a part out (or, for ``format``, takes the default).

    ``why`` holds the advisor's sentences where it chose.
    """

    method: object
    precond: object = None
    scaling: object = None
    ordering: object = None
    format: object = None
    nullspace: object = None
    smoother: object = None
    why: tuple[str, ...] = ()

    def name(self, kind: str) -> str:
        """The registry name of one part: "none" where there is none, "user" for what the user brought."""
        setting = getattr(self, kind)
        if setting is None:
            return "none"
        if type(setting).__name__ == "User":
            return "user"
        return name_of(kind, type(setting))
