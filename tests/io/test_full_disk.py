"""The k-th write fails, for every k: swell's own error names the file, and no half of a file stays."""
from __future__ import annotations

import itertools

import numpy as np
import pytest
from tests.support.full_disk import full_at

import swell
from swell import report
from swell.advisor.store import Store
from swell.io import write_vector
from swell.pde import fvm
from swell.pde.fvm.foam_writer import write_field

MESH = fvm.box((2, 2))
RESULT = swell.solve(swell.gallery.poisson2d(4), np.ones(16), method="cg")
WRITERS = {
    "x.npy": lambda folder: write_vector(folder / "x.npy", np.ones(3)),
    "x.mtx": lambda folder: write_vector(folder / "x.mtx", np.ones(3)),
    "x.txt": lambda folder: write_vector(folder / "x.txt", np.ones(3)),
    "report": lambda folder: report.html(RESULT, folder / "report.html"),
    "picture": lambda folder: report.plot(RESULT, folder / "residuals.png"),
    "polymesh": lambda folder: fvm.write_polymesh(MESH, folder / "case"),
    "field": lambda folder: write_field(folder / "case" / "0", "p", "volScalarField", "[0 2 -2 0 0 0 0]", np.ones(4), {}),
    "decompose": lambda folder: fvm.decompose(MESH, [0, 0, 1, 1], folder / "case"),
    "vtu": lambda folder: fvm.write_vtu(folder / "mesh.vtu", MESH, {"p": np.ones(4)}),
}


def failures(write, folder):
    """Call ``write`` once for each k until no write fails; yield (k, the files that stayed, the error or None)."""
    for k in itertools.count(1):
        there = folder / str(k)
        there.mkdir()
        error = None
        with full_at(k) as writes:
            try:
                write(there)
            except Exception as raised:
                error = raised
        yield k, {str(path.relative_to(there)): path.read_bytes() for path in there.rglob("*") if path.is_file()}, error
        if len(writes) < k:
            return


@pytest.mark.parametrize("name", WRITERS)
def test_the_kth_write_fails(tmp_path, name):
    *failed, (k, whole, error) = failures(WRITERS[name], tmp_path)
    assert error is None and whole and failed
    for k, files, error in failed:
        assert isinstance(error, swell.InputError) and "No space left on device" in str(error), (k, error)
        assert files.items() <= whole.items(), k                 # each file is whole, or not there


def test_a_choice_is_not_kept(tmp_path):
    complaints = []

    def put(folder):
        choices = Store(folder / "tuning.json")
        choices.put("key", {"a": 1}, "k")
        complaints.append(choices.complaints)
    (_, files, error), (_, whole, none) = failures(put, tmp_path)
    assert error is none is None and not files and list(whole) == ["tuning.json"]
    assert "cannot be written (No space left on device), so the measurement is not kept" in complaints[0][0]
