"""Heat conduction in a packaged chip: from the geometry to the linear system A x = b."""
import numpy as np

from swell.core.errors import InputError
from swell.gallery.poisson import diffusion

_SIZE = (4e-3, 20e-3, 20e-3)                                # package, z y x, in m
_DIE = ((1e-3, 1.75e-3), (5e-3, 15e-3), (5e-3, 15e-3))      # (from, to) along z y x, in m
_CORES = (((1e-3, 1.75e-3), (7e-3, 13e-3), (6e-3, 9e-3)), ((1e-3, 1.75e-3), (7e-3, 13e-3), (11e-3, 14e-3)))
_SPREADER_FROM = 1.75e-3                                    # copper above this z
_INSULATOR, _SILICON, _COPPER = 0.8, 148.0, 400.0           # conductivity in W/(m K)
_CORE_POWER = (60.0, 40.0)                                  # W
_COOLING = 5000.0                                           # heat transfer to the cold plate on top, W/(m^2 K)


def chip_heat(cells=64):
    """Steady temperature in a chip package: -div(k grad T) = q, cell-centred finite volumes.

    The package measures 20 x 20 x 4 mm. A silicon die (148 W/(m K)) of 10 x 10 x 0.75 mm is embedded in moulding
    compound (0.8 W/(m K)), under a copper heat spreader (400 W/(m K)) 2.25 mm thick. Two cores in the die release 60 W
    and 40 W. A cold plate cools the top face with 5000 W/(m^2 K); no heat leaves through the other five faces.

    Parameters
    ----------
    cells : int
        Cells along each of the three sides; at least 8. The default, 64, gives 262 144 unknowns.

    Returns
    -------
    A : scipy.sparse.csr_matrix, shape (n, n), n = cells**3, in W/K
        Symmetric positive definite. Conductivities jump by a factor of 500; cells are five times as wide as high.
    b : numpy.ndarray, shape (n,), in W
        Heat released in each cell.
    shape : tuple of int
        (cells, cells, cells), for the axes z (upwards), y and x. The solution x is the temperature above the coolant
        in K; ``x.reshape(shape)`` is its field.
    description : str
        The problem in a sentence, for the user.
    """
    if not isinstance(cells, int | np.integer) or cells < 8:
        raise InputError(f"cells={cells!r}: expected an integer of at least 8, which resolves the chip's parts.")
    shape = (int(cells),) * 3
    spacing = tuple(size / cells for size in _SIZE)
    centres = np.meshgrid(*(width * (np.arange(cells) + 0.5) for width in spacing), indexing="ij", sparse=True)

    conductivity = np.full(shape, _INSULATOR)
    conductivity[_within(centres, _DIE)] = _SILICON
    conductivity[np.broadcast_to(centres[0] >= _SPREADER_FROM, shape)] = _COPPER

    heat = np.zeros(shape)
    for core, power in zip(_CORES, _CORE_POWER):
        inside = _within(centres, core)
        heat[inside] = power / inside.sum()

    # Conductance from a cell's centre to the coolant: half a cell of copper and the cold plate's film, in series.
    to_coolant = np.zeros(shape)
    face = spacing[1] * spacing[2]
    to_coolant[-1] = face / (spacing[0] / (2 * conductivity[-1]) + 1 / _COOLING)

    A = diffusion(conductivity, spacing, to_coolant)
    description = (f"steady heat conduction in a 20 x 20 x 4 mm chip package (silicon, copper, moulding compound), "
                   f"{sum(_CORE_POWER):g} W, finite volumes on {cells} x {cells} x {cells} cells; "
                   "x is the temperature above the coolant in K")
    return A, heat.ravel(), shape, description


def _within(centres, region):
    """Return a bool array over the cells: True if a cell's centre lies in the box ``region``.

    ``centres``: coordinates along each axis. ``region``: (from, to) along each axis."""
    return np.logical_and.reduce(np.broadcast_arrays(
        *((low <= centre) & (centre < high) for centre, (low, high) in zip(centres, region))))
