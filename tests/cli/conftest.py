"""What the tests of the command line share: a way to run it, and small systems as files."""
import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from swell import gallery
from swell.cli import main


@pytest.fixture
def cli(capsys):
    """Run the command line in this process: ``cli("solve", ...) -> (status, stdout, stderr)``."""
    def run(*arguments):
        capsys.readouterr()
        status = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return status, out, err
    return run


@pytest.fixture
def folder(tmp_path):
    """A folder with the systems that the tests solve."""
    A = gallery.poisson2d(12)
    scipy.io.mmwrite(tmp_path / "A.mtx", A)
    np.save(tmp_path / "b.npy", np.random.default_rng(11).random(144))
    rectangular = sp.csr_matrix(np.ones((3, 4)))
    scipy.io.mmwrite(tmp_path / "rectangular.mtx", rectangular)
    complex_matrix = A + 0.5j * sp.identity(144)
    scipy.io.mmwrite(tmp_path / "complex.mtx", complex_matrix)
    return tmp_path
