"""Copies of prepared systems: they share what is only read (matrices, factors) and own what a solve writes to.

An operator names in ``scratch`` the attributes that its applications write to. A copy gets its own arrays there and its
own space (on a GPU: its own stream), and the very arrays of the original everywhere else. Two threads may then solve at
the same time, one with the original and one with the copy.
"""
from __future__ import annotations

import dataclasses
import types
from abc import ABC, abstractmethod

from swell.core.space import Space


class Sharing:
    """Copies objects of swell for another space.

    Parameters
    ----------
    space : Space
        Where the copies work; it takes the place of every space that the originals hold.
    """

    def __init__(self, space):
        self.space = space
        self._made = {}                          # by the original's id: (copy, original, so that the id stays taken)

    def __call__(self, original):
        """The copy of one object; the same copy wherever the object occurs."""
        if id(original) not in self._made:
            self._made[id(original)] = self._copy(original), original
        return self._made[id(original)][0]

    def _copy(self, original):
        if isinstance(original, Space):
            return self.space
        if isinstance(original, tuple):
            copies = [self(item) for item in original]
            return type(original)(*copies) if hasattr(original, "_fields") else tuple(copies)
        if isinstance(original, list):
            return [self(item) for item in original]
        if isinstance(original, self.space.xp.ndarray):
            return self._array(original)
        if isinstance(original, set):
            return set(original)                 # of numbers
        if isinstance(original, dict):
            return {key: self(value) for key, value in original.items()}
        if isinstance(original, types.MethodType):
            return types.MethodType(original.__func__, self(original.__self__))
        if (not type(original).__module__.startswith("swell.") or _frozen(original)
                or isinstance(original, Exception)):
            return original                      # functions, modules, factors of libraries; settings; errors
        return original.shared(self) if isinstance(original, Shareable) else self.attributes(original)

    def _array(self, original):
        """The array itself, or the same view of the copy where it is a view of what is copied."""
        if original.base is None or id(original.base) not in self._made:
            return original
        return self.space.same_view(original, self._made[id(original.base)][0])

    def attributes(self, original):
        """A copy attribute by attribute; arrays in ``scratch`` are copied, all others shared."""
        made = object.__new__(type(original))
        self._made[id(original)] = made, original        # objects may refer to one another
        scratch = scratch_of(type(original)) & vars(original).keys()
        for name in scratch:                     # first, so that views of these arrays are known as such
            setattr(made, name, self._own(getattr(original, name)))
        for name in vars(original).keys() - scratch:
            setattr(made, name, self(getattr(original, name)))
        return made

    def _own(self, value):
        """A copy of what an operator writes to: an array, several of them, or nothing yet."""
        if value is None:
            return None
        if isinstance(value, (tuple, list)):
            return type(value)(self._own(item) for item in value)
        if id(value) not in self._made:
            self._made[id(value)] = value.copy(), value
        return self._made[id(value)][0]


class Shareable(ABC):
    """An object that makes its copies itself."""

    @abstractmethod
    def shared(self, sharing: Sharing):
        """The copy."""


def scratch_of(cls) -> set[str]:
    """The attributes that a class and its bases name in ``scratch``."""
    return {name for base in cls.__mro__ for name in vars(base).get("scratch", ())}


def _frozen(value) -> bool:
    """True for settings, which nobody changes."""
    return dataclasses.is_dataclass(value) and type(value).__dataclass_params__.frozen
