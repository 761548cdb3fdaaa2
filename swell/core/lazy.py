"""Lazy imports: a package imports a public name at its first use, so that ``import swell`` stays light."""
from __future__ import annotations

import importlib


def public(package: str, places: dict, modules=()):
    """Make ``__getattr__``, ``__dir__`` and ``__all__`` for a package's ``__init__``.

    Parameters
    ----------
    package : str
        Its ``__name__``.
    places : dict
        For each public name, the module of the package that defines it. A module must not have the name of a public
        name, which it would hide.
    modules : sequence of str
        Modules of the package that are public themselves.

    Returns
    -------
    The three, in this order.
    """
    names = [*places, *modules]

    def find(name):
        if name in places:
            return getattr(importlib.import_module(f"{package}.{places[name]}"), name)
        if name in modules:
            return importlib.import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return find, lambda: names, names
