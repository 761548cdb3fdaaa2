"""FiPy's examples of diffusion in one and two dimensions, time steps and steady; one line: ``solver=SwellSolver()``."""
import os

os.environ.setdefault("FIPY_SOLVERS", "scipy")
PACKAGE = "fipy"


def cases():
    """examples/diffusion/mesh1D.py, mesh20x20.py, and steady diffusion."""
    import fipy as fp
    from fipy.solvers.scipy.linearLUSolver import LinearLUSolver

    from swell.guests.fipy import SwellSolver

    def run(mesh, steps, make):
        phi = fp.CellVariable(mesh=mesh, value=0.0)
        phi.constrain(1.0, mesh.facesLeft)
        phi.constrain(0.0, mesh.facesRight)
        equation = fp.TransientTerm() == fp.DiffusionTerm(coeff=1.0) if steps > 1 else fp.DiffusionTerm(coeff=1.0)
        solver = make()
        for _ in range(steps):
            equation.solve(var=phi, solver=solver, **({"dt": 0.9} if steps > 1 else {}))
        return phi.value.copy()

    for words, mesh, steps in (("mesh1D, 50 steps", fp.Grid1D(nx=50, dx=1.0), 50),
                               ("mesh20x20, 20 steps", fp.Grid2D(nx=20, ny=20), 20),
                               ("100 × 100, 5 steps", fp.Grid2D(nx=100, ny=100), 5),
                               ("200 × 200, steady", fp.Grid2D(nx=200, ny=200), 1)):
        yield (words, mesh.numberOfCells, lambda m=mesh, s=steps: run(m, s, LinearLUSolver),
               lambda m=mesh, s=steps: run(m, s, lambda: SwellSolver(tolerance=1e-10)))
