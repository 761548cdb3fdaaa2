"""Media: speed of sound, density and damping; one medium for the mesh, or one for each region."""
from __future__ import annotations

import cmath
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from swell.core.errors import InputError, meant
from swell.core.settings import real
from swell.pde.helmholtz.table import Table


@dataclass(frozen=True)
class Medium:
    """A fluid.

    Attributes
    ----------
    speed : float or Table
        Speed of sound, m/s. A `Table` may be complex, as of a porous absorber.
    density : float or Table
        kg/m³. A `Table` may be complex.
    damping : float or Table
        Structural loss factor η ≥ 0: c² becomes c² (1 + iη). A wave loses about the fraction πη of its amplitude on
        each wavelength.
    """

    speed: float | Table = 343.0
    density: float | Table = 1.204
    damping: float | Table = 0.0

    def __post_init__(self):
        for name, least in (("speed", "more than 0"), ("density", "more than 0"), ("damping", "0 or more")):
            value = getattr(self, name)
            if isinstance(value, Table):
                values = value.values
                good = (values.real > 0 if name != "damping" else values.real >= 0).all()
                good = good and (name != "damping" or not np.iscomplexobj(values))
                least = f"numbers whose real part is {least}" if name != "damping" else f"real numbers, {least}"
            else:
                good = real(value) and math.isfinite(value) and value >= 0
                good = good and (value != 0 or name == "damping")
                least = f"a finite number, {least}, or a Table"
            if not good:
                raise InputError(f"Medium({name}={value!r}): expected {least}" + (
                    "; a negative loss factor would feed energy into the sound" if name == "damping" else ""))
        if isinstance(self.speed, Table) and (self.speed.values.imag < 0).any():
            raise InputError(f"Medium(speed={self.speed!r}): its imaginary part is negative, which feeds energy into "
                             "the sound: with e^{+iωt} a loss has Im c > 0")

    @property
    def varies(self) -> bool:
        """True if a Table gives a part of it."""
        return any(isinstance(value, Table) for value in (self.speed, self.density, self.damping))

    @property
    def absorbs(self) -> bool:
        """True if it takes energy out of the sound."""
        values = [value.values if isinstance(value, Table) else value for value in (self.speed, self.density)]
        damping = self.damping.values if isinstance(self.damping, Table) else self.damping
        return bool(np.any(damping) or any(np.iscomplexobj(v) and np.any(np.imag(v)) for v in values))

    @property
    def slowest(self) -> float:
        """The lowest speed of sound, m/s."""
        return float(self.speed.values.real.min()) if isinstance(self.speed, Table) else self.speed

    def at(self, frequency) -> tuple:
        """Return (ρ, ρc²) at a frequency in Hz; complex where the medium absorbs."""
        speed, density, damping = (value.at(frequency) if isinstance(value, Table) else value
                                   for value in (self.speed, self.density, self.damping))
        return density, density * speed ** 2 * ((1 + 1j * damping) if damping else 1)

    @property
    def complex_speed(self) -> complex:
        """c √(1 + iη), of a medium without a Table."""
        return self.speed * cmath.sqrt(1 + 1j * self.damping)

    @property
    def impedance(self) -> complex:
        """ρ c, the characteristic impedance of a plane wave, Pa s/m, of a medium without a Table."""
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
            advice = "" if mesh.regions else ": name them in the mesh (physical volumes), or give one Medium for all"
            raise InputError(f"there is no region {name!r}: {meant(name, mesh.regions)}{has}{advice}")
        if not isinstance(medium, Medium):
            raise InputError(f"the medium of region {name!r} is {medium!r}: expected a Medium(speed, density, damping)")
    distinct = list(dict.fromkeys(media.values()))
    number = np.full(len(mesh.cells), -1, np.intp)
    for name, medium in media.items():
        cells, index = mesh.regions[name], distinct.index(medium)
        clash = (number[cells] >= 0) & (number[cells] != index)
        if clash.any():
            raise InputError(f"cell {cells[np.argmax(clash)]} lies in region {name!r} and in another of a different "
                             "medium: regions with media must not overlap")
        number[cells] = index
    if (number < 0).any():
        missing = [name for name, cells in mesh.regions.items() if (number[cells] < 0).any()]
        what = f"region{'s' if len(missing) > 1 else ''} {', '.join(missing)}" if missing else "cells in no region"
        raise InputError(f"no medium for {what} ({np.count_nonzero(number < 0)} cells): give each region a Medium. "
                         f"{has}")
    return distinct, number
