"""Vectors that may only be read, as PETSc hands them to a preconditioner."""
from __future__ import annotations

import numpy as np
import pytest

from swell import gallery
from swell.core.registry import names, resolve
from swell.inputs import read_matrix

OTHER_SYSTEMS = "shifted_laplacian", "ams", "field_split"


@pytest.mark.parametrize("name", [name for name in names("precond") if name not in OTHER_SYSTEMS])
def test_a_vector_that_may_only_be_read(name):
    A = read_matrix(gallery.poisson2d(12), "cpu").A
    M, x, out = resolve("precond", name).build(A), np.ones(144), np.full(144, np.nan)
    x.flags.writeable = False
    M.apply(x, out)
    assert np.isfinite(out).all()
