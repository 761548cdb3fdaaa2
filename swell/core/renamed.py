"""Old names of public attributes, which keep working."""
from __future__ import annotations

import warnings


def renamed(old: str, new: str) -> property:
    """Return a property that reads the attribute ``new`` by its name ``old``, with a FutureWarning."""
    def read(self):
        warnings.warn(f"{type(self).__name__}.{old} is called {new} now", FutureWarning, stacklevel=2)
        return getattr(self, new)
    return property(read, doc=f"The old name of `{new}`.")
