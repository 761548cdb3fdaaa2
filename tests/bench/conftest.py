"""What benchmarks that start ranks need."""
from __future__ import annotations

import pathlib
import shutil
import sys

import pytest


@pytest.fixture(scope="module")
def mpi():
    """A skip that says what is missing."""
    pytest.importorskip("mpi4py", reason="ranks need mpi4py and an MPI: pip install 'swell[mpi]' mpich")
    beside = shutil.which("mpiexec", path=str(pathlib.Path(sys.executable).parent))
    if beside is None and shutil.which("mpiexec") is None:
        pytest.skip("there is no mpiexec: pip install mpich, or an MPI of your system")
