"""swell inside PETSc, through petsc4py: PC, a preconditioner for PETSc's Krylov methods, and KSP, swell's own solve.

    python app.py -pc_type python -pc_python_type swell.guests.petsc.PC -pc_swell_precond ilu0(ordering=twisted)
    python app.py -ksp_type python -ksp_python_type swell.guests.petsc.KSP -ksp_swell_method gmres(restart=50)

setFromOptions reads the options from PETSc's database, with the object's prefix; a misspelt option is an error. swell
reads matrices and vectors in PETSc's own memory (`swell.guests.petsc.views`). New values in the same pattern update the
setup; a new pattern repeats it. If swell refuses an input, PETSc raises an error with swell's message.

Cost: PC applies swell's preconditioner to PETSc's vectors directly; on a GPU, or in another type, it copies two vectors
at each application. KSP copies b and x once for each solve, and runs all iterations in swell: prefer it on a GPU.

On several ranks, KSP solves on all of them, each with its own device, with a `swell.distributed.DistributedMatrix` made
from PETSc's local parts. PC acts on each rank's diagonal block: this is block Jacobi, and needs no mpi4py. With schwarz
it also uses neighbouring ranks.
"""
from swell.core.lazy import public

__getattr__, __dir__, __all__ = public(__name__, {"KSP": "ksp", "PC": "pc", "reason_of": "ksp"})
