"""Sound from many sources to many ears: one sweep gives the transfer matrix. Several scalars on one matrix."""
import pathlib
import tempfile

import numpy as np

from swell.pde import fvm, helmholtz

folder = pathlib.Path(tempfile.mkdtemp(prefix="swell-"))

# 1. A room with a lined ceiling. Each source sounds on its own: a wall, and loudspeakers as monopoles along a line.
room = helmholtz.Helmholtz(helmholtz.box((14, 11, 9), upper=(2.8, 2.2, 1.8)), helmholtz.Medium(damping=0.01),
                           {"zmax": helmholtz.Impedance(900.0)})
loudspeakers = [(x, 0.4, 0.3) for x in np.linspace(0.3, 2.5, 6)]
ears = [(0.7, 1.6, 1.2), (1.4, 1.6, 1.2), (2.1, 1.6, 1.2)]
band = helmholtz.band("40:120:10")
r = room.response(sources=["xmin", *loudspeakers], ear=ears, frequencies=band, method="cocg", precond="ilu0")
print(r)
assert r.converged and r.pressure.shape == (len(band), 7, 3)             # (frequency, source, ear)

# At each frequency all sources share A(ω), the preconditioner and one solve. Column j is the response to source j.
third = room.response(loudspeakers[1], ears, band, method="cocg", precond="ilu0")
assert np.allclose(r.pressure[:, 2], third.pressure, rtol=1e-4)
print(f"{r.setups} preconditioner for {len(band)} frequencies; the last solve: {r.points[-1].result.notes[0]}")

# 2. With the transfer matrix any excitation of the sources is a product: here one that is silent at two of the ears.
H = r.pressure[4, 1:]                                                    # at 80 Hz, loudspeakers to ears
weights = np.linalg.lstsq(H.T, np.array([0.0, 0.0, 0.02]), rcond=None)[0]
together = room.response([helmholtz.Monopole(x, 1e-3 * w) for x, w in zip(loudspeakers, weights)], ears, [80.0],
                         method="direct")                                # a list as source=: all at the same time
print("levels at the ears:", ", ".join(f"{level:.0f} dB" for level in together.level[0]))
assert together.level[0, 2] > together.level[0, :2].max() + 40

# 3. Files: a row for each frequency, source and ear; a picture with a line for each pair.
r.write_csv(folder / "transfer.csv")
r.plot(folder / "transfer.png")
print((folder / "transfer.csv").read_text().splitlines()[1])

# 4. Sweep does the same for matrices without a mesh: b has a column for each source.
K, M, B = room.matrices
sweep = helmholtz.Sweep(K, M, B, method="cocg", precond="ilu0", rtol=1e-6)
b = np.zeros((K.shape[0], 16), complex)
b[np.arange(16) * 100, np.arange(16)] = 1
for f in (60.0, 65.0):
    results = sweep.solve(2 * np.pi * f, b)
    print(f"{f:g} Hz: {len(results)} columns, {results.iterations} iterations, x {results.x.shape}")
    assert results.converged

# 5. Scalars in one flow: the matrix is the same; sources and boundary values differ.
mesh = fvm.box((32, 16), upper=(2.0, 1.0, 1.0))
inlets = [{"xmin": fvm.Dirichlet(value), "*": fvm.Neumann()} for value in (1.0, 0.0, 20.0)]
smoke = lambda x: np.exp(-80 * ((x[:, 0] - 0.5) ** 2 + (x[:, 1] - 0.5) ** 2))        # noqa: E731
fields = fvm.solve_together([fvm.ScalarTransport(mesh, walls, (1.0, 0.2, 0.0), 0.01, q)
                             for walls, q in zip(inlets, (0.0, smoke, 5.0))])
assert all(field.converged for field in fields)
print("three scalars at the outlet:", ", ".join(f"{field.p[-1]:.3g}" for field in fields))
