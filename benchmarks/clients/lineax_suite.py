"""Run lineax's own tests with swell's Solver in place of lineax's solvers.

    python benchmarks/clients/lineax_suite.py CLONE_OF_LINEAX [arguments of pytest]

The clone is of the installed version (its wheel has no tests). The suite asks for strict dtype promotion and double
precision. Its lists of solvers get swell's, with the tags that swell uses; tests of one solver of lineax's alone, such
as of LSMR, stay out. docs/JAX.md has the counts.
"""
from __future__ import annotations

import importlib.util
import os
import pathlib
import sys

import pytest

FILES = ("adjoint", "invert", "jvp", "jvp_jvp1", "jvp_jvp2", "transpose", "vmap", "vmap_jvp", "vmap_vmap", "well_posed")


class InPlaceOfTheirs:
    """A plugin of pytest that changes lineax's lists of solvers before its test modules read them."""

    def pytest_collection(self):
        import jax
        jax.config.update("jax_enable_x64", True)                # before the helpers choose their tolerance
        import lineax as lx
        from tests import helpers

        from swell.jax.lineax import Solver
        definite = lx.positive_semidefinite_tag, lx.negative_semidefinite_tag
        ours = [(Solver(rtol=1e-12), tags, False) for tags in ((), *definite)]
        helpers.solvers_tags_pseudoinverse[:] = ours
        helpers.solvers_tags[:] = [(solver, tags) for solver, tags, _ in ours]
        helpers.solvers[:] = [solver for solver, *_ in ours[:1]]
        helpers.pseudosolvers_tags[:] = []


def main(clone, *arguments):
    """Run the tests of a clone; return pytest's exit status."""
    if importlib.util.find_spec("lineax") is None:
        print("lineax is not installed: pip install 'swell[jax]'")
        return 0
    folder = pathlib.Path(clone).resolve()
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    files = [f"tests/test_{name}.py" for name in FILES]
    return pytest.main(["-q", "-p", "no:cacheprovider", *files, *arguments], plugins=[InPlaceOfTheirs()])


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
