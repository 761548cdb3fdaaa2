"""The baseline of ``swell bench block-gmres --petsc``: GMRES(30) with ILU(0) of each rank's block by PETSc, on a CPU.

``benchmarks/petsc_bjacobi.c`` is the program. Both sides get the same matrix, blocks, right-hand side and tolerance.
"""
from __future__ import annotations

import json
import shlex
import shutil
import subprocess

import numpy as np

from swell.core.errors import InputError, SwellError

MATRIX, VECTOR = 1211216, 1211214       # the first number of each object in PETSc's binary files


def write_system(path, A, b):
    """Write SciPy's CSR matrix A and the vector b to a file in PETSc's binary form: big-endian, 32-bit indices."""
    with open(path, "wb") as stream:
        for part in ([MATRIX, *A.shape, A.nnz], np.diff(A.indptr), A.indices):
            stream.write(np.asarray(part, ">i4").tobytes())
        stream.write(A.data.astype(">f8").tobytes())
        stream.write(np.asarray([VECTOR, b.size], ">i4").tobytes())
        stream.write(b.astype(">f8").tobytes())


def check(command):
    """Raise InputError if a command for ``measure`` has no place for the number of ranks, or its program is not
    there."""
    try:
        words, wrong = shlex.split(command), None
    except ValueError as error:
        words, wrong = [], str(error)
    if wrong is None and "{ranks}" not in command:
        wrong = "it has no {ranks}"
    elif wrong is None and shutil.which(words[0]) is None:
        wrong = f"there is no {words[0]}"
    if wrong is not None:
        raise InputError(f"--petsc {command}: {wrong}; expected a command such as 'mpiexec -n {{ranks}} "
                         "./petsc_bjacobi', with the program compiled from benchmarks/petsc_bjacobi.c")


def measure(command, ranks, path, block, rtol, maxiter) -> dict:
    """Solve the system of a file by PETSc; return the record that the program prints.

    Parameters
    ----------
    command : str
        Starts the program, such as "mpiexec -n {ranks} ./petsc_bjacobi".
    ranks : int
        Number of ranks, put in the place of "{ranks}".
    path : path
        From ``write_system``.
    block : int
    rtol : float
        Tolerance, relative to the first residual.
    maxiter : int

    Raises
    ------
    SwellError
        If it fails, or prints no record.
    """
    words = [word.replace("{ranks}", str(ranks)) for word in shlex.split(command)]
    words += ["-f", str(path), "-block", str(block), "-rtol", str(rtol), "-maxiter", str(maxiter)]
    done = subprocess.run(words, capture_output=True, text=True, encoding="utf-8")
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        raise SwellError(f"--petsc {command}: it ended with status {done.returncode} and printed no record: "
                         f"{done.stderr.strip()[-500:]}")
    return json.loads(lines[-1])
