"""Media: speed of sound, density and damping; one medium for the mesh, or one for each region."""
from __future__ import annotations

import cmath
import difflib
import math
import numbers
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from swell.core.errors import InputError


@dataclass(frozen=True)
class Medium:
    """A fluid.

    Attributes
    ----------
    speed : float
        Speed of sound, m/s.
    density : float
        kg/m³.
    damping : float
        Structural loss factor η ≥ 0: c² becomes c² (1 + iη). A wave loses about the fraction πη of its amplitude on
        each wavelength.
    """

    speed: float = 343.0
    density: float = 1.204
    damping: float = 0.0

    def __post_init__(self):
        for name, least in (("speed", "more than 0"), ("density", "more than 0"), ("damping", "0 or more")):
            value = getattr(self, name)
            good = isinstance(value, numbers.Real) and math.isfinite(value) and value >= 0
            if not good or (value == 0 and name != "damping"):
                raise InputError(f"Medium({name}={value!r}): expected a finite number, {least}" + (
                    "; a negative loss factor would feed energy into the sound" if name == "damping" else ""))

    @property
    def complex_speed(self) -> complex:
        """c √(1 + iη)."""
        return self.speed * cmath.sqrt(1 + 1j * self.damping)

    @property
    def impedance(self) -> complex:
        """ρ c, the characteristic impedance of a plane wave, Pa s/m."""
        return self.density * self.complex_speed


def of_cells(mesh, media) -> tuple:
    """Return (list of distinct media, index of each cell's medium), from one Medium or a dict by region.

    Raises
    ------
    InputError
        For a region without a medium, an unknown name, cells in no region, or in two regions of different media.
    """
    if isinstance(media, Medium):
        return [media], np.zeros(len(mesh.cells), np.intp)
    if not isinstance(media, Mapping):
        raise InputError(f"medium is of type {type(media).__name__}: expected a Medium(speed, density, damping), or a "
                         "dictionary from names of regions to them")
    has = f"The mesh has the regions {', '.join(mesh.regions)}" if mesh.regions else "The mesh names no regions"
    for name, medium in media.items():
        if name not in mesh.regions:
            near = difflib.get_close_matches(str(name), mesh.regions, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]!r}? " if near else ""
            advice = "" if mesh.regions else ": name them in the mesh (physical volumes), or give one Medium for all"
            raise InputError(f"there is no region {name!r}: {hint}{has}{advice}")
        if not isinstance(medium, Medium):
            raise InputError(f"the medium of region {name!r} is {medium!r}: expected a Medium(speed, density, damping)")
    distinct = list(dict.fromkeys(media.values()))
    number = np.full(len(mesh.cells), -1, np.intp)
    for name, medium in media.items():
        cells, own = mesh.regions[name], distinct.index(medium)
        clash = (number[cells] >= 0) & (number[cells] != own)
        if clash.any():
            raise InputError(f"cell {cells[np.argmax(clash)]} lies in region {name!r} and in another of a different "
                             "medium: regions with media must not overlap")
        number[cells] = own
    if (number < 0).any():
        missing = [name for name, cells in mesh.regions.items() if (number[cells] < 0).any()]
        what = f"region{'s' if len(missing) > 1 else ''} {', '.join(missing)}" if missing else "cells in no region"
        raise InputError(f"no medium for {what} ({np.count_nonzero(number < 0)} cells): give each region a Medium. "
                         f"{has}")
    return distinct, number
