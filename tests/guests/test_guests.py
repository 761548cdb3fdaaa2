"""The register of guests: libraries are found by the names of their modules, and imported only when one is there."""
from __future__ import annotations

import ast
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from swell.core.guests import HOME, TABLE, ArrayLibrary, Guest, guest_of

FOLDER = pathlib.Path(__file__).parents[2] / "swell" / "guests"
READERS = sorted({*TABLE.values(), HOME})


def of_library(module, base=object):
    """An object whose class says that it comes from a module."""
    return type("Theirs", (base,), {"__module__": module})()


@pytest.mark.parametrize("row", READERS)
def test_every_row_is_a_guest_that_loads_without_its_library(row):
    code = (f"import sys; from swell.core.guests import Guest, _loaded; assert isinstance(_loaded({row!r}), Guest)\n"
            "print([m for m in ('torch', 'jax', 'cupy', 'petsc4py') if m in sys.modules])")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


@pytest.mark.parametrize("root", TABLE)
def test_an_object_is_known_by_the_module_of_its_class(root):
    given = of_library(f"{root}.inside")
    assert type(guest_of(given)) is type(guest_of(of_library("mine", type(given))))      # users derive classes
    assert f"{type(guest_of(given)).__module__}:{type(guest_of(given)).__name__}" == TABLE[root]


@pytest.mark.parametrize("given", [np.ones(3), sp.eye_array(3), [1.0, 2.0], 5, None, "A.mtx", of_library("torchlike")])
def test_everything_else_is_for_numpy_and_scipy(given):
    assert f"{type(guest_of(given)).__module__}:{type(guest_of(given)).__name__}" == HOME
    assert isinstance(guest_of(given), ArrayLibrary) and guest_of(given).device_of(given) == "cpu"


def test_a_solve_of_numpys_arrays_imports_no_other_guest():
    code = ("import sys, numpy as np, swell; swell.solve(swell.gallery.poisson2d(4), np.ones(16), method='cg')\n"
            "print(sorted(m for m in sys.modules if m.startswith('swell.guests.')))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "['swell.guests.scipy']", done.stdout + done.stderr


@pytest.mark.parametrize("row", READERS)
def test_readers_need_core_alone(row):
    """What inputs asks for lies below it, wherever the package is that holds it."""
    path = FOLDER / (row.partition(":")[0].removeprefix("swell.guests.").replace(".", "/") + ".py")
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module.startswith("swell."):
            assert node.module.startswith("swell.core."), node.module
        assert not (isinstance(node, ast.Import) and any(alias.name.startswith("swell") for alias in node.names))


def test_a_guest_must_read_both():
    with pytest.raises(TypeError, match="read_matrix"):
        type("Half", (Guest,), {"read_vector": lambda self, v, name: v})()
