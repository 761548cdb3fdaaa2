"""Input for flow and scalars across ranks that is wrong, or other than the others', on one rank: every rank raises the
same error, and the ranks can go on."""
from __future__ import annotations

import shutil

import numpy as np
import pytest

import swell
from swell.pde import fvm

pytest.importorskip("pymetis", reason="the partition of a mesh needs pymetis")

AT_REST, LID = fvm.Dirichlet((0.0, 0.0, 0.0)), fvm.Dirichlet((1.0, 0.0, 0.0))
ONE = fvm.SIMPLE(maxiter=1)
SCALAR = {"xmin": fvm.Dirichlet(0.0), "*": fvm.Neumann(0.0)}


@pytest.fixture
def several(ranks):
    if ranks.size == 1:
        pytest.skip("one rank has no others")
    return ranks


def refused(ranks, call, words):
    """``call(communicator, last)`` raises one InputError on every rank; ``last``: on the last rank alone."""
    def caught(communicator):
        try:
            call(communicator, communicator.rank == communicator.size - 1)
        except swell.InputError as error:
            communicator.allgather(None)
            return str(error)
        raise AssertionError(f"no error on rank {communicator.rank}")

    found = ranks.run(caught)
    assert len(set(found)) == 1 and words in found[0], found


def flow(mesh, lid=LID, nu=0.1):
    return fvm.Flow(mesh, {"ymax": lid, "*": AT_REST}, nu)


def other_settings(c, last):
    flow(fvm.box((4, 4))).solve(fvm.SIMPLE(maxiter=1 + last), ranks=c)


def a_start_on_one(c, last):
    one = flow(fvm.box((4, 4)))
    one.solve(ONE, start=one.solve(ONE) if last else None, ranks=c)


@pytest.mark.parametrize("call, words", [
    (lambda c, last: flow(fvm.box((4, 4))).solve(ONE, start=3 if last else None, ranks=c), "start is of type int"),
    (lambda c, last: flow(fvm.box((4, 4))).march(fvm.PISO(1, 1), start=3 if last else None, ranks=c),
     "start is of type int"),
    (lambda c, last: flow(fvm.box((4, 4))).solve(fvm.PISO(1, 1) if last else ONE, ranks=c), "expected SIMPLE(...)"),
    (other_settings, "the ranks disagree on the settings: {'maxiter': 1} on rank 0, {'maxiter'"),
    (a_start_on_one, "the ranks disagree on whether there is a start: False on rank 0,"),
    (lambda c, last: flow(fvm.box((4, 4))).march(fvm.PISO(1, 1), watch=None if last else print, ranks=c),
     "the ranks disagree on whether to watch"),
    (lambda c, last: flow(fvm.box((4, 4))).solve(ONE, forces=("y*",) if last else (), ranks=c),
     "the ranks disagree on the walls whose forces are recorded"),
    (lambda c, last: fvm.Poisson(fvm.box((4, 4)), SCALAR, corrections=3 + last).solve(ranks=c),
     "the ranks disagree on the settings: {"),
    (lambda c, last: flow(fvm.box((4, 4)), fvm.Symmetry() if last else LID).solve(ONE, ranks=c),
     "the ranks disagree on the conditions of the patches"),
    (lambda c, last: flow(fvm.box((4, 5 if last else 4))).solve(ONE, ranks=c), "the ranks disagree on the mesh"),
    (lambda c, last: flow(fvm.box((4, 4)), nu="thick" if last else 1.0).solve(ONE, ranks=c),
     "is 'thick': expected numbers"),
    (lambda c, last: fvm.Poisson(fvm.box((4, 4)), SCALAR).solve(mean="low" if last else 0.0, ranks=c), "mean='low'"),
    (lambda c, last: fvm.Poisson(fvm.box((4, 4)), SCALAR).solve(method="magic" if last else "cg", ranks=c), "magic"),
    (lambda c, last: fvm.ScalarTransport(fvm.box((4, 4)), SCALAR).solve(precond="magic" if last else None, ranks=c),
     "magic")])
def test_of_a_whole_mesh(several, call, words):
    refused(several, call, words)


@pytest.mark.parametrize("call, words", [
    (lambda part, last: fvm.Flow(part, {"ymin" if last else "ymax": LID, "z*" if last else "*": AT_REST}, 0.1),
     "no condition for patch"),
    (lambda part, last: fvm.Flow(part, {"ymax": LID, "walls" if last else "*": AT_REST}, 0.1), "no patch 'walls'"),
    (lambda part, last: fvm.Poisson(part, {"xmin": 3 if last else fvm.Dirichlet(0.0), "*": fvm.Neumann(0.0)}),
     "the condition of patch 'xmin' is 3"),
    (lambda part, last: fvm.Poisson(part, {"walls" if last else "*": fvm.Dirichlet(0.0)}), "no patch 'walls'"),
    (lambda part, last: fvm.ScalarTransport(part, SCALAR, scheme="quick" if last else "upwind"), "scheme='quick'"),
    (lambda part, last: flow(part, nu=-1.0 if last else 1.0).solve(ONE), "must be positive everywhere"),
    (lambda part, last: flow(part, nu=np.ones(part.n_faces if last else part.n_cells)).solve(ONE),
     "the ranks disagree on whether the diffusivity has one value a face"),
    (lambda part, last: flow(part).fluxes_of(np.ones((3 if last else part.n_cells, 3))), "velocity has shape (3, 3)"),
    (lambda part, last: flow(part).forces(7 if last else flow(part).solve(ONE)), "solution is of type int")])
def test_of_parts(several, tmp_path, call, words):
    whole = fvm.box((4, 4, 4))
    fvm.decompose(whole, (whole.centres[:, 0] * several.size).astype(int), tmp_path)
    refused(several, lambda c, last: call(fvm.read_part(tmp_path, c), last), words)


def test_of_the_case_that_is_read(several, tmp_path):
    """A folder, or a file in it, that one rank alone lacks."""
    fvm.write_polymesh(fvm.box((4, 4)), tmp_path / "there")
    shutil.copytree(tmp_path / "there", tmp_path / "half")
    (tmp_path / "half" / "constant" / "polyMesh" / "owner").unlink()
    for read in (fvm.read_mesh, lambda path, ranks: fvm.read_case(path, ranks=ranks)):
        for name, words in (("none", "does not exist"), ("half", "owner")):
            refused(several, lambda c, last: read(tmp_path / (name if last else "there"), c), words)
    refused(several, lambda c, last: fvm.read_mesh(7 if last else tmp_path / "there", c), "a path is expected")
