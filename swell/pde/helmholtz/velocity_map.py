"""VelocityMap: the normal velocity of a panel, measured at points, by a scanning vibrometer for example."""
from __future__ import annotations

from pathlib import Path

import numpy as np

from swell.core.arrays import check_finite
from swell.core.errors import InputError
from swell.pde.helmholtz.table import Table, read_rows

NEAREST = 4             # measured points that a value combines
APART = 3.0             # largest distance from a measured point, in mean distances between measured points


class VelocityMap:
    """Normal velocities at measured points, one set for all frequencies or one for each.

    Between points it takes the mean of the four nearest, weighted by the inverse square of their distances (Shepard
    1968); between frequencies it is linear.

    Parameters
    ----------
    points : array, shape (p, 2 or 3)
        m.
    velocities : array, shape (p,), or (frequencies, p)
        m/s, complex amplitudes, positive into the fluid.
    frequencies : sequence of float, optional
        Hz, ascending.
    name : str
        Its name in messages.
    """

    def __init__(self, points, velocities, frequencies=None, name="the velocity map"):
        try:
            self.name, self.points = name, np.asarray(points, float)
            self.velocities = np.asarray(velocities, complex)
        except (TypeError, ValueError):
            raise InputError(f"{name}: expected points, coordinates in m, and as many velocities, numbers in m/s") \
                from None
        if self.points.ndim != 2 or self.points.shape[1] not in (2, 3) or not len(self.points):
            raise InputError(f"{name}: points of shape {self.points.shape}: expected (p, 2) or (p, 3)")
        check_finite(f"{name}: a coordinate", self.points)
        check_finite(f"{name}: a velocity", self.velocities)
        expected = self.points.shape[:1] if frequencies is None else (len(frequencies), len(self.points))
        if self.velocities.shape != expected:
            raise InputError(f"{name}: velocities of shape {self.velocities.shape}: expected {expected}")
        self._places = None if frequencies is None else Table(frequencies, np.arange(float(len(frequencies))), name)

    def at(self, frequency):
        """Return a function of points (k, dim) that gives the velocity at this frequency in Hz, complex, shape (k,)."""
        if self._places is None:
            velocities = self.velocities
        else:
            place = float(self._places.at(frequency))
            low = int(place)
            high, share = min(low + 1, len(self.velocities) - 1), place - low
            velocities = (1 - share) * self.velocities[low] + share * self.velocities[high]
        return lambda x: self._interpolated(x, velocities)

    def _interpolated(self, x, velocities):
        from scipy.spatial import cKDTree
        if x.shape[1] != self.points.shape[1]:
            raise InputError(f"{self.name} has points of {self.points.shape[1]} coordinates, and the mesh has "
                             f"{x.shape[1]}")
        tree, count = cKDTree(self.points), min(NEAREST, len(self.points))
        distance, near = (array.reshape(len(x), count) for array in tree.query(x, count))
        if len(self.points) > 1:
            spacing = float(tree.query(self.points, 2)[0][:, 1].mean())
            far = int(distance[:, 0].argmax())
            if distance[far, 0] > APART * spacing:
                place = ", ".join(f"{v:.4g}" for v in x[far])
                raise InputError(f"{self.name} does not cover the boundary: the nearest measured point to ({place}) is "
                                 f"{distance[far, 0]:.3g} m away, and measured points are {spacing:.3g} m apart: "
                                 "measure there, or give that part a boundary of its own")
        weights = 1 / np.maximum(distance, 1e-12 * (1 + distance.max())) ** 2
        return (weights * velocities[near]).sum(axis=1) / weights.sum(axis=1)

    def __repr__(self):
        band = "" if self._places is None else f", {len(self.velocities)} frequencies"
        return f"VelocityMap({self.name!r}, {len(self.points)} points{band})"


def read_velocity_map(path) -> VelocityMap:
    """Read a map from a CSV file.

    Each line has x, y, z, real and imaginary part of the velocity; or x, y, z, frequency, real and imaginary part, with
    the same points at each frequency. A first line of names and lines that begin with # are skipped."""
    rows, name = read_rows(path, (5, 6)), Path(path).name
    if rows.shape[1] == 5:
        return VelocityMap(rows[:, :3], rows[:, 3] + 1j * rows[:, 4], name=name)
    frequencies = np.unique(rows[:, 3])
    sets = [rows[rows[:, 3] == f] for f in frequencies]
    sets = [one[np.lexsort(one[:, 2::-1].T)] for one in sets]
    for f, one in zip(frequencies, sets):
        if one.shape != sets[0].shape or not np.allclose(one[:, :3], sets[0][:, :3]):
            raise InputError(f"{path}: the {len(one)} points at {f:g} Hz are not the {len(sets[0])} points at "
                             f"{frequencies[0]:g} Hz: expected the same points at each frequency")
    return VelocityMap(sets[0][:, :3], [one[:, 4] + 1j * one[:, 5] for one in sets], frequencies, name)
