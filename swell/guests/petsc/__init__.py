"""swell inside PETSc, through petsc4py: a preconditioner for PETSc's Krylov methods, and a KSP of its own.

    python app.py -pc_type python -pc_python_type swell.guests.petsc.PC -pc_swell_precond ilu0(ordering=twisted)
    python app.py -ksp_type python -ksp_python_type swell.guests.petsc.KSP -ksp_swell_method gmres(restart=50)

Options come from PETSc's database with the object's prefix, at setFromOptions; a misspelt one is an error. Matrices and
vectors are read over PETSc's own memory (`swell.guests.petsc.views`). New values in the same pattern refresh the setup,
a new pattern makes a new one. An input that swell refuses is raised through PETSc with swell's message.

Cost: an application of PC works on PETSc's vectors where they lie; on a GPU, or in another type, it moves two vectors.
A solve by KSP moves b and x once, and all its iterations are swell's: the way to a GPU.

On several ranks KSP solves with all of them, each on its own device: a `swell.distributed.DistributedMatrix` of PETSc's
own parts. PC acts on the rank's own diagonal block, which is block Jacobi and needs no mpi4py; schwarz takes in its
neighbours.
"""
from __future__ import annotations

from swell.core.lazy import public

__getattr__, __dir__, __all__ = public(__name__, {"KSP": "ksp", "PC": "pc", "reason_of": "ksp"})
