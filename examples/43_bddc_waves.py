"""BDDC beyond symmetric positive definite matrices: sound in a room, convection, coefficients that jump anywhere."""
import numpy as np

import swell
from swell import gallery
from swell.pde import helmholtz
from swell.pde.poisson_cube import PoissonCube

# 1. Sound in a room at 250 Hz. The front end makes the subdomains, and BDDC keeps the complex symmetry: COCG works.
room = helmholtz.Helmholtz(helmholtz.box((14, 8, 8), upper=(2.0, 1.1, 1.1)),
                           boundary={"xmax": helmholtz.Impedance(2000)})
A, b, dofs = room.system(250.0, "xmin")
parts = helmholtz.subdomains(room, 250.0, 16)
k = 2 * np.pi * 250 / 343
for name, modes in (("averages", "constants"), ("plane waves", helmholtz.plane_waves(room.space.points[dofs], k))):
    r = swell.solve(A, b, method="cocg", precond=swell.BDDC(subdomains=parts, near_nullspace=modes))
    print(f"{name}: {r.iterations} iterations")
    assert r.converged
shifted = swell.solve(A, b, method="gmres", precond="shifted_laplacian")
print(f"shifted Laplacian: {shifted.iterations} iterations of gmres")
assert r.iterations < shifted.iterations

# 2. Convection by an upwind scheme: A is split into subdomains whose symmetric parts are semidefinite.
C = gallery.convection_diffusion((40, 40), 10.0, "upwind")
f = np.ones(C.shape[0])
for interior in ("direct", "ilu0"):
    s = swell.solve(C, f, method="bicgstab", precond=swell.BDDC(domains=16, partition="rows", interior=interior))
    print(f"convection, interiors by {interior}: {s.iterations} iterations of bicgstab")
    assert s.converged

# 3. Coefficients from 1e-3 to 1e3 in every element, on three levels: adaptive constraints on edges and faces.
cube = PoissonCube(4, 4, 3, coefficient=10.0 ** np.random.default_rng(0).uniform(-3, 3, (16, 16, 16))).assemble()
g = np.random.default_rng(1).standard_normal(cube.cube.n)
for threshold in (0, 3):
    solved = cube.solve(b=g, adaptive=threshold)
    print(f"adaptive={threshold}: {solved.result.iterations} iterations, eigenvalues to {solved.extremes[1]:.1f}")
assert solved.extremes[1] < 9

# 4. A closed room without losses, in two halves: at a resonance of an interior BDDC refuses, and says where it is.
closed = helmholtz.Helmholtz(helmholtz.box((8, 8, 8)))
half = (closed.mesh.centres[:, 0] > 0.5).astype(int)
left, right = helmholtz.subdomains(closed, 100.0, half).dofs
inside = np.setdiff1d(left, right)
K, M = (matrix[inside][:, inside].toarray() for matrix in closed.matrices[:2])
frequency = np.sqrt(np.linalg.eigvals(np.linalg.solve(M, K)).real.min()) / (2 * np.pi)
system, load, _ = closed.system(frequency, "xmin")
parts = helmholtz.subdomains(closed, frequency, half)
r = swell.solve(system, load, method="gmres", precond=swell.BDDC(subdomains=parts))
print(r.notes[-1])
assert not r.converged
