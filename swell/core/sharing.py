"""Copies of prepared systems. A copy shares the arrays that a solve only reads, and owns the arrays that it writes.

An operator lists in ``scratch`` the attributes that ``apply`` writes to. A copy has its own arrays for these, and its
own space (on a GPU: its own stream). It shares all other arrays, such as matrices and factors, with the original. Two
threads may then solve at the same time, one with the original and one with the copy.

An update writes new values into arrays, which copies then see. If it also replaces an array, a number or a part, copies
still have the old one: `Sharing.current` finds that out.
"""
from __future__ import annotations

import dataclasses
import types
from abc import ABC, abstractmethod

import numpy as np

from swell.core.cpu_columns import ColumnKernels
from swell.core.space import Space

PLAIN = int, float, complex, str, np.generic


class Sharing:
    """Copies objects of swell for another space.

    Parameters
    ----------
    space : Space
        The space of the copies; its parts replace the spaces that the originals hold (``Space.counterpart``).
    """

    def __init__(self, space):
        self.space = space
        self._made = {}     # id of the original: (copy, original); keeping the original keeps its id from being reused

    def __call__(self, original):
        """Return the copy of ``original``, made at its first call; an object that needs no copy is returned itself."""
        if id(original) not in self._made:
            self._made[id(original)] = self._copy(original), original
        return self._made[id(original)][0]

    def current(self) -> bool:
        """True if every copy still equals its original, in an array of its own or in the shared one."""
        return all(made is original or self._current(made, original) for made, original in [*self._made.values()])

    def _current(self, made, original):
        """True if a copy and its original have the same attributes or items; both may have other scratch arrays."""
        if isinstance(original, Shareable):
            return original.constant
        if isinstance(original, (list, tuple)):
            return len(made) == len(original) and all(map(self._same, made, original))
        if isinstance(original, dict):
            return made.keys() == original.keys() and all(self._same(made[key], original[key]) for key in original)
        if isinstance(original, Space) or not type(original).__module__.startswith("swell."):
            return True                          # arrays, modules, methods
        ours, theirs, cls = vars(made), vars(original), type(original)
        return all(self._same(ours.get(name), theirs.get(name))
                   for name in (ours.keys() | theirs.keys()) - scratch_of(cls) - listed(cls, "hints"))

    def _same(self, made, original):
        """True if ``made`` is the copy of ``original``, or equals it where neither is copied."""
        held = self._made.get(id(original))
        if held is not None and held[1] is original:
            return held[0] is made
        if isinstance(original, (list, tuple)):
            return type(made) is type(original) and len(made) == len(original) and all(map(self._same, made, original))
        return made is original or isinstance(original, PLAIN) and made == original

    def _copy(self, original):
        if isinstance(original, Space):
            return original.counterpart(self.space)
        if isinstance(original, tuple):
            copies = [self(item) for item in original]
            return type(original)(*copies) if hasattr(original, "_fields") else tuple(copies)
        if isinstance(original, list):
            return [self(item) for item in original]
        if isinstance(original, self.space.xp.ndarray):
            return self._array(original)
        if isinstance(original, set):
            return set(original)                 # our sets hold numbers only
        if isinstance(original, dict):
            return {key: self(value) for key, value in original.items()}
        if isinstance(original, types.MethodType):
            return types.MethodType(original.__func__, self(original.__self__))
        if (not type(original).__module__.startswith("swell.") or _frozen(original)
                or isinstance(original, Exception)):
            return original                      # functions, modules, factors of other libraries, settings, errors
        return original.shared(self) if isinstance(original, Shareable) else self.attributes(original)

    def _array(self, original):
        """Return the array itself, which is shared; for a view of a copied array, the same view of the copy."""
        if original.base is None or id(original.base) not in self._made:
            return original
        return self.space.same_view(original, self._made[id(original.base)][0])

    def attributes(self, original):
        """Return a copy of an object, made attribute by attribute; arrays listed in its class's ``scratch`` are copied.

        All other arrays are shared."""
        made = object.__new__(type(original))
        self._made[id(original)] = made, original        # objects may refer to one another
        scratch, attributes = scratch_of(type(original)), dict(vars(original))
        for name, value in attributes.items():   # first, so that `_array` recognises views of these arrays
            if name in scratch:
                setattr(made, name, self._copy_scratch(value))
        for name, value in attributes.items():   # in one order on all ranks, which copy exchanges together
            if name not in scratch:
                setattr(made, name, self(value))
        return made

    def _copy_scratch(self, value):
        """Return a copy of a scratch attribute: an array, a tuple or list of them, or None."""
        if value is None:
            return None
        if isinstance(value, (tuple, list)):
            return type(value)(self._copy_scratch(item) for item in value)
        if id(value) not in self._made:
            self._made[id(value)] = value.copy(), value
        return self._made[id(value)][0]


class Widening(Sharing):
    """Copies objects for a space of several right-hand sides: each scratch array becomes `Columns`.

    The copies' code is the same as the originals'; it works on `Columns` in place of vectors.
    """

    def _copy(self, original):
        if isinstance(original, types.SimpleNamespace):                  # of `native_kernels` in core/library.py
            return ColumnKernels(self.space.local, original)
        return super()._copy(original)

    def _copy_scratch(self, value):
        if not isinstance(value, self.space.xp.ndarray):
            return super()._copy_scratch(value)
        if id(value) not in self._made:
            made = self.space.buffer(value.shape, value.dtype)
            made[...] = value
            self._made[id(value)] = made, value
        return self._made[id(value)][0]


class Shareable(ABC):
    """An object that makes its own copies.

    Attributes
    ----------
    constant : bool
        True if no update changes what a copy has.
    """

    constant = False

    @abstractmethod
    def shared(self, sharing: Sharing):
        """Return a copy of this object for ``sharing.space``; ``sharing`` copies the objects it refers to."""


def scratch_of(cls) -> set[str]:
    """Return the names of the attributes that the class and its bases list in ``scratch``: arrays a solve writes."""
    return listed(cls, "scratch")


def listed(cls, kind) -> set[str]:
    """Return the names that the class and its bases list in the attribute ``kind``: "scratch", or "hints", attributes
    that setups read and no solve."""
    return {name for base in cls.__mro__ for name in vars(base).get(kind, ())}


def _frozen(value) -> bool:
    """True if ``value`` is a frozen dataclass, as all settings are; copies share such objects."""
    return dataclasses.is_dataclass(value) and type(value).__dataclass_params__.frozen
