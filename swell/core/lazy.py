"""Lazy imports: a package imports a public name at its first use, so that ``import swell`` stays light."""
from __future__ import annotations

import functools
import importlib
import warnings


def public(package: str, places: dict, modules=(), former=()):
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
    former : dict
        For each former name of a settings class, its name now and the settings that it meant. It still works, with a
        FutureWarning, and is not listed.

    Returns
    -------
    The three, in this order.
    """
    names = [*places, *modules]

    def find(name):
        if name in places:
            return getattr(importlib.import_module(f"{package}.{places[name]}"), name)
        if name in former:
            now, meant = former[name]
            inside = ", ".join(f"{field}={value!r}" for field, value in meant.items())
            warnings.warn(f"{package}.{name} is called {package}.{now}({inside}) now", FutureWarning, stacklevel=2)
            return functools.partial(find(now), **meant)
        if name in modules:
            return importlib.import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return find, lambda: names, names
