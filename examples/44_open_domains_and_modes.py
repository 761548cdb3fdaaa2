"""Sound that leaves: a sphere in free field, by a perfectly matched layer. Sound that stays: the modes of a room."""
import pathlib
import tempfile

import numpy as np

from swell.pde import helmholtz as h

folder = pathlib.Path(tempfile.mkdtemp(prefix="swell-"))

# 1. A monopole in free field. The mesh outside the box of ± 0.45 m is a layer that takes all sound.
free = h.Helmholtz(h.box((10, 10, 10), lower=-0.75, upper=0.75), degree=2, pml=h.PML((-0.45,) * 3, (0.45,) * 3))
ears = np.array([(0.4, 0.1, 0.05), (-0.3, 0.3, 0.2)])
r = free.response((0.0, 0.0, 0.0), ears, [150.0], method="direct", fields=[150.0])
k, distance = 2 * np.pi * 150 / 343, np.linalg.norm(ears, axis=1)
exact = 1j * k * 343 * 1.204 * 1e-3 * np.exp(-1j * k * distance) / (4 * np.pi * distance)
print(f"monopole: off by {abs(r.pressure[0] / exact - 1).max():.2%}")
print({name: f"{power:.2e} W" for name, power in r.fields[150.0].dissipation().items()})
assert r.converged and abs(r.pressure[0] / exact - 1).max() < 0.01

# 2. The modes of a room, against c/2 √((i/Lx)² + (j/Ly)² + (l/Lz)²), and the response that they give.
size = np.array([2.0, 1.3, 0.9])
room = h.Helmholtz(h.box((10, 7, 5), upper=size), h.Medium(damping=0.02), degree=2)
modes = room.modes(10)
print(modes)
orders = np.stack(np.meshgrid(*[np.arange(5)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
exact = np.sort(171.5 * np.linalg.norm(orders / size, axis=1))[:10]
assert modes.converged and np.allclose(modes.frequencies, exact, rtol=2e-3)

band, ear = h.band("20:160:10"), (1.5, 0.4, 0.3)
direct = room.response("ymin", ear, band, method="direct")
modal = modes.response("ymin", ear, band)
print(f"by {modal.modes} modes, off by {abs(modal.pressure / direct.pressure - 1).max():.2%} of the direct response at most")
direct.plot(folder / "room.png", modes)
modes.write(folder / "modes.vtu")
h.write_wav(direct, folder / "impulse.wav")
shown = room.response("ymin", ear, [90.0], method="direct", fields=[90.0])
shown.fields[90.0].plot(folder / "field.png")    # the level on the surface and in a cut
print(f"{folder} has a picture of the sound at 90 Hz, the response with the modes marked, their shapes, and the sound of an impulse")
