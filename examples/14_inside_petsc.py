"""swell inside PETSc: a preconditioner for PETSc's methods, a KSP, and a PETSc matrix passed to swell.solve.

The Options set here can also be given on the command line, which takes precedence:

    python examples/14_inside_petsc.py -pc_swell_precond "ilu0(ordering=twisted)" -ksp_view
    mpiexec -n 2 python examples/14_inside_petsc.py        # PC and KSP across ranks; -ksp_swell_device cuda for GPUs
"""
import sys

try:
    import petsc4py
except ImportError as error:
    raise SystemExit(f"this example needs petsc4py ({error}): pip install petsc petsc4py") from None

petsc4py.init(sys.argv)
from petsc4py import PETSc                   # noqa: E402

import swell                                 # noqa: E402
from swell.guests.petsc import reason_of     # noqa: E402

n = 60                                                           # convection and diffusion of heat on n × n points
A = PETSc.Mat().createAIJ((n * n, n * n), nnz=5)
for row in range(*A.getOwnershipRange()):
    i, j = divmod(row, n)
    for k, l, value in ((i, j, 4.8), (i - 1, j, -1.4), (i + 1, j, -1.0), (i, j - 1, -1.4), (i, j + 1, -1.0)):
        if 0 <= k < n and 0 <= l < n:
            A[row, k * n + l] = value
A.assemble()
x, b = A.createVecs()
b.set(1)


def ksp_with(**options):
    """A KSP for A with these options, unless the command line has others."""
    database = PETSc.Options()
    added = {name: value for name, value in options.items() if name not in database}
    for name, value in added.items():
        database[name] = value
    ksp = PETSc.KSP().create()
    ksp.setOperators(A)
    ksp.setFromOptions()
    for name in added:
        del database[name]
    return ksp


def solve(ksp, name):
    ksp.solve(b, x)
    r = b.duplicate()
    A.mult(x, r)
    PETSc.Sys.Print(f"{name}: {ksp.getIterationNumber()} iterations, {(b - r).norm() / b.norm():.1e}: "
                    f"{reason_of(ksp).sentence}")
    assert reason_of(ksp) is swell.Reason.CONVERGED


own = dict(pc_type="python", pc_python_type="swell.guests.petsc.PC", pc_swell_precond="ilu0(ordering=twisted)")
ksp = ksp_with(ksp_type="gmres", ksp_pc_side="right", **own)
solve(ksp, "PETSc's gmres, swell's ilu0")
A.scale(2)                                                       # new values: swell updates its setup
solve(ksp, "after the update")

ilu0 = "ilu0(ordering=twisted)" if A.comm.size == 1 else "schwarz(overlap=1, inner=ilu0(ordering=twisted))"
ksp = ksp_with(ksp_type="python", ksp_python_type="swell.guests.petsc.KSP",
               ksp_swell_method="gmres(restart=50)", ksp_swell_precond=ilu0)
solve(ksp, "swell's gmres and ilu0")                             # each rank solves its rows on its own core or GPU
PETSc.Sys.Print(ksp.getPythonContext().result)                   # swell's Result: method, iterations, times

if A.comm.size == 1:
    r = swell.solve(A, b)                                        # reads A without a copy; x is a Vec, like b
    assert r.converged and isinstance(r.x, PETSc.Vec)
    print(r)
