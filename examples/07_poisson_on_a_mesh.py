"""Heat in a wall of two layers on a distorted mesh: conditions, corrections, conservation, convergence order."""
import pathlib
import tempfile

import numpy as np

from swell.pde import fvm

# 1. Two layers whose conductivities differ by a factor of 100; warm inside (Dirichlet), cooled by air outside (Robin).
mesh = fvm.box((24, 16, 8), upper=(0.3, 0.2, 0.1), perturb=0.2)
k = np.where(mesh.centres[:, 1] < 0.1, 2.0, 0.02)
wall = fvm.Poisson(mesh, {"ymin": fvm.Dirichlet(20.0),
                          "ymax": fvm.Robin(a=8.0, b=0.02, c=8.0 * -5.0),          # 8 (T + 5) = −k ∂T/∂n
                          "xmin": fvm.Neumann(), "xmax": fvm.Neumann(), "zmin": fvm.Neumann(), "zmax": fvm.Neumann()},
                   diffusivity=k)
solution = wall.solve()
print(solution)
balance = solution.conservation()
area = 0.3 * 0.1
in_series = 25.0 * area / (0.1 / 2.0 + 0.1 / 0.02 + 1 / 8.0)       # resistances in series: the two layers, then the air
print(f"heat through the wall {balance['patches']['ymax']:.4f} W, exact for plane layers {in_series:.4f} W")
assert solution.converged and balance["relative"] < 1e-6
assert abs(balance["patches"]["ymax"] / in_series - 1) < 0.05      # the interface follows the distorted cells

folder = pathlib.Path(tempfile.mkdtemp(prefix="swell-"))
solution.write(folder / "wall.vtu")
print(f"{folder / 'wall.vtu'} opens in ParaView")

# 2. No fixed value anywhere: the solution is determined only up to a constant, and the sources must balance. A note
# says so.
floating = fvm.Poisson(mesh, {name: fvm.Neumann() for name in ("xmin", "xmax", "ymin", "ymax", "zmin", "zmax")},
                       source=1000.0)
print(floating.solve(balance=True).notes[0])

# 3. The effect of the non-orthogonal correction: a known solution on sheared meshes, refined twice.
exact = lambda x: np.sin(np.pi * x[:, 0]) * np.cos(np.pi * x[:, 1])                 # noqa: E731
errors = {}
for correction in ("none", "over_relaxed"):
    for n in (16, 32, 64):
        sheared = fvm.box((n, n), skew=(0.5, 0.0))
        p = fvm.Poisson(sheared, {name: fvm.Dirichlet(exact) for name in ("xmin", "xmax", "ymin", "ymax")},
                        source=lambda x: 2 * np.pi**2 * exact(x), correction=correction).solve()
        errors[correction, n] = np.sqrt(np.mean((p.p - exact(sheared.centres)) ** 2))
        print(f"{n} × {n} cells sheared by 27 degrees, correction {correction}: error {errors[correction, n]:.2e}, "
              f"{p.corrections} corrections")
assert np.log2(errors["over_relaxed", 32] / errors["over_relaxed", 64]) > 1.8
assert np.log2(errors["none", 32] / errors["none", 64]) < 1
