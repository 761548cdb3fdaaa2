"""Iterations, operator complexity and CPU seconds of AMG by strength of connection, on finite elements and differences.

    SWELL_NUM_THREADS=1 python benchmarks/strength.py [FILE.npz | FILE.mtx.gz ...]

Each system has up to 50 000 rows; files are symmetric positive definite matrices. b is A times random numbers in
[0, 1). Least of two runs. Needs scikit-fem.
"""
from __future__ import annotations

import sys
import time

import numpy as np
import scipy.io
import scipy.sparse as sp
import skfem
from skfem.helpers import dot, grad
from skfem.models.elasticity import lame_parameters, linear_elasticity

import swell

CHOICES = ("strength=0.25", "strength=0.5", "strength=None", "max_row_sum=0.3, degree=3")


def bilinear(cells, sides):
    """The Laplacian of bilinear or trilinear elements in a box, zero on its boundary; ``sides``: of a cell, by axis."""
    total, n = 0, cells - 1
    for axis in range(len(sides)):
        term = sp.eye_array(1)
        for k, h in enumerate(sides):
            side, middle = (-1 / h, 2 / h) if k == axis else (h / 6, 4 * h / 6)
            term = sp.kron(term, sp.diags_array([side, middle, side], offsets=[-1, 0, 1], shape=(n, n)))
        total = total + term
    return total


def inside(A, basis, dofs):
    """A without the rows and columns of ``dofs``."""
    free = basis.complement_dofs(dofs)
    return A[free][:, free]


def laplacian(mesh, element):
    """The Laplacian on a scikit-fem mesh, zero on its boundary."""
    basis = skfem.Basis(mesh, element)
    A = skfem.BilinearForm(lambda u, v, w: dot(grad(u), grad(v))).assemble(basis)
    return inside(A, basis, basis.get_dofs())


def squares(cells, aspect=1):
    """A mesh of ``cells`` × ``cells`` rectangles."""
    return skfem.MeshQuad.init_tensor(np.arange(cells + 1) * float(aspect), np.arange(cells + 1.0))


def elasticity(cells, aspect):
    """Plane elasticity by bilinear elements, held on the left."""
    basis = skfem.Basis(squares(cells, aspect), skfem.ElementVector(skfem.ElementQuad1()))
    A = linear_elasticity(*lame_parameters(1.0, 0.3)).assemble(basis)
    return inside(A, basis, basis.get_dofs(lambda x: x[0] == 0))


def systems(files):
    """Yield (name, matrix)."""
    for aspect in (1, 2, 3, 10, 100, 1000):
        yield f"bilinear, {aspect}:1", bilinear(161, (aspect, 1))
    for aspect in (2, 10, 100, 1000):
        yield f"trilinear, {aspect}:{aspect}:1", bilinear(33, (aspect, aspect, 1))
        yield f"trilinear, {aspect}:1:1", bilinear(33, (aspect, 1, 1))
    yield "biquadratic, 1:1", laplacian(squares(80), skfem.ElementQuad2())
    yield "biquadratic, 10:1", laplacian(squares(80, 10), skfem.ElementQuad2())
    triangles, boxes = (kind.init_tensor(*[np.linspace(0, 1, n)] * dimension) for kind, n, dimension in (
        (skfem.MeshTri, 51, 2), (skfem.MeshTet, 15, 3)))
    yield "cubic, triangles", laplacian(triangles, skfem.ElementTriP3())
    yield "quartic, triangles", laplacian(triangles, skfem.ElementTriP4())
    yield "linear, tetrahedra", laplacian(boxes.refined(), skfem.ElementTetP1())
    yield "quadratic, tetrahedra", laplacian(boxes, skfem.ElementTetP2())
    for order, cells in ((2, 80), (4, 40), (6, 27)):
        yield f"hierarchical, order {order}", laplacian(squares(cells), skfem.ElementQuadP(order))
    yield "elasticity, 1:1", elasticity(80, 1)
    yield "elasticity, 10:1", elasticity(80, 10)
    ones = sp.diags_array([1.0, 1.0, 1.0], offsets=[-1, 0, 1], shape=(30, 30))
    yield "27 points", 27 * sp.eye_array(27000) - sp.kron(sp.kron(ones, ones), ones)
    yield "7 points", swell.gallery.poisson3d(40)
    yield "jumps", swell.gallery.jumping_diffusion((40, 40, 40), contrast=1e8)
    for path in files:
        yield path, sp.load_npz(path) if path.endswith(".npz") else scipy.io.mmread(path)


def measured(A, choice):
    """Return the cell of a table: iterations, operator complexity, CPU seconds of setup and of solve."""
    setups, solves = [], []
    b = A @ np.random.default_rng(0).random(A.shape[0])
    for _ in range(2):
        times = [time.process_time()]
        solver = swell.prepare(A, method="cg", precond=f"amg({choice})", maxiter=1000)
        times.append(time.process_time())
        result = solver.solve(b)
        times.append(time.process_time())
        setups.append(times[1] - times[0])
        solves.append(times[2] - times[1])
    end = "" if result.converged else " not converged"
    return (f"{result.iterations}{end}; {solver.M.hierarchy.operator_complexity:.2f}; "
            f"{min(setups):.3f} + {min(solves):.3f}")


def main():
    print("| system | rows | " + " | ".join(CHOICES) + " |\n|" + "---|" * (2 + len(CHOICES)))
    for name, A in systems(sys.argv[1:]):
        A = sp.csr_array(A)
        A.eliminate_zeros()
        print(f"| {name} | {A.shape[0]} | " + " | ".join(measured(A, choice) for choice in CHOICES) + " |", flush=True)


if __name__ == "__main__":
    main()
