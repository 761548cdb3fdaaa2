"""Sound of a vibrating firewall at a driver's ears: a cabin meshed by gmsh, its frequency response, and checks."""
import pathlib
import tempfile

import numpy as np

from swell.pde import helmholtz

folder = pathlib.Path(tempfile.mkdtemp(prefix="swell-"))

# 1. A duct with a known solution: a piston sends a plane wave, ρ c v = 0.413 Pa, towards an absorbing end.
duct = helmholtz.Helmholtz(helmholtz.box((60, 2, 2), upper=(2.0, 0.1, 0.1)), boundary={"xmax": helmholtz.Absorbing()})
r = duct.response(source="xmin", ear=(1.5, 0.05, 0.05), frequencies=[100, 200])
exact = 1.204 * 343 * 1e-3 * np.exp(-2j * np.pi * r.frequencies / 343 * 1.5)         # with e^{+iωt}
print(f"duct: errors of {abs(r.pressure[:, 0] / exact - 1).max():.1%}")
assert r.converged and abs(r.pressure[:, 0] / exact - 1).max() < 0.02

# 2. The cabin, heard at the driver's ears: the firewall vibrates with 1 mm/s, the roof is lined, the air's loss factor
# is 2 %.
mesh = helmholtz.car_cabin(size=0.16)
print(mesh)
air = helmholtz.Medium(speed=343.0, density=1.204, damping=0.02)
cabin = helmholtz.Helmholtz(mesh, air, {"roof": helmholtz.Impedance(2000 - 1000j)}, degree=2)
ears = [(0.95, 0.27, 0.9), (0.95, 0.43, 0.9)]
r = cabin.response(source="firewall", ear=ears, frequencies=helmholtz.band("20:140:10"), fields=[60.0])
print(r)
assert r.converged and max(p.result.residual for p in r.points) <= 1e-6
r.write_csv(folder / "ears.csv")
r.plot(folder / "ears.png")
r.fields[60.0].write(folder / "cabin_60Hz.vtu")
print(f"{folder} has the table, the picture and a field for ParaView")

# 3. Two checks: exchanging source and ear must not change the pressure; lining and air dissipate the source's power.
there, back = (cabin.response(helmholtz.Monopole(a, 1e-4), b, [90.0], rtol=1e-9).pressure[0, 0]
               for a, b in ((ears[0], (0.1, 0.65, 0.3)), ((0.1, 0.65, 0.3), ears[0])))
print(f"reciprocity: {there:.6f} and {back:.6f} Pa")
assert abs(there / back - 1) < 1e-6
print({name: f"{power:.2e} W" for name, power in r.fields[60.0].dissipation().items()})

# 4. How fine must the mesh be? The rule asks for ten nodes a wavelength. Linear elements, for comparison:
coarse = helmholtz.Helmholtz(mesh, air, {"roof": helmholtz.Impedance(2000 - 1000j)})
print(f"10 nodes a wavelength up to {coarse.finest:.0f} Hz with linear elements, {cabin.finest:.0f} Hz with quadratic ones")
difference = coarse.response("firewall", ears, r.frequencies).level - r.level
print(f"linear elements are up to {abs(difference[r.frequencies <= coarse.finest]).max():.1f} dB off")

# 5. Many frequencies: deflation finds the modes that ILU(0) handles worst at the first one, and reuses them later.
plain, recycled = (cabin.response("firewall", ears, helmholtz.band("20:140:4"), method="cocg", precond=precond)
                   for precond in ("ilu0", "deflation(inner=ilu0, vectors=30)"))
before, after = (sum(p.result.iterations for p in response.points) for response in (plain, recycled))
print(f"{before} iterations with ILU(0), {after} with 30 vectors deflated")
assert recycled.converged and after < before / 2 and np.allclose(recycled.pressure, plain.pressure, rtol=1e-3)
