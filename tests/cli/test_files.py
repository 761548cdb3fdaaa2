"""Matrices and vectors from files that hold several: ``FILE:NAME``."""
import json

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from swell import InputError, gallery
from swell.cli.source import file_and_name

A = gallery.poisson2d(6)
B = A @ np.ones(36)


@pytest.fixture
def system(tmp_path):
    path = tmp_path / "system.mat"
    scipy.io.savemat(path, {"K": A, "M": sp.identity(36, format="csc"), "b": B, "x0": np.ones(36)})
    return path


def test_names_choose_the_matrix_and_the_vectors(cli, system, tmp_path):
    status, out, err = cli("solve", f"{system}:K", "--rhs", f"{system}:b", "--x0", f"{system}:x0", "--json",
                           "--out", tmp_path / "x.npy")
    found = json.loads(out)
    assert status == 0 and not err and found["converged"] and found["iterations"] == 0
    assert np.allclose(np.load(tmp_path / "x.npy"), 1)


def test_info_reads_them_too(cli, system):
    status, out, err = cli("info", f"{system}:M", "--json")
    assert status == 0 and not err and json.loads(out)["nnz"] == 36


def test_without_a_name_the_error_lists_names_and_shapes(cli, system):
    status, out, err = cli("solve", system)
    assert status == 2 and not out
    assert "several matrices: choose one with name=, on a command line as system.mat:NAME" in err
    assert "K (36 x 36, sparse), M (36 x 36, sparse)" in err
    status, out, err = cli("solve", f"{system}:K", "--rhs", f"{system}:c")
    assert status == 2 and "holds no 'c'" in err and "b (1 x 36)" in err


def test_one_matrix_needs_no_name_and_notes_reach_the_output(cli, tmp_path):
    np.savez(tmp_path / "A.npz", data=A.data, indices=A.indices, indptr=A.indptr)
    status, out, err = cli("info", tmp_path / "A.npz", "--json")
    assert status == 0 and json.loads(out)["notes"][0] == "no shape is stored: 36 x 36 was taken"
    status, out, err = cli("solve", tmp_path / "A.npz")
    assert status == 0 and "no shape is stored" in out


def test_an_output_may_not_replace_a_file_that_is_read(cli, tmp_path):
    np.savez(tmp_path / "s.npy", A=A.toarray())          # numpy appends .npz
    status, out, err = cli("solve", f"{tmp_path / 's.npy.npz'}:A", "--out", tmp_path / "x.npz")
    assert status == 2 and "the extension is .npz" in err
    np.save(tmp_path / "b.npy", B)
    scipy.io.mmwrite(tmp_path / "A.mtx", A)
    status, out, err = cli("solve", tmp_path / "A.mtx", "--rhs", f"{tmp_path / 'b.npy'}:b", "--out", tmp_path / "b.npy")
    assert status == 2 and "would replace a file that is read" in err


def test_a_file_whose_name_has_a_colon_is_not_split(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scipy.io.mmwrite("a:b.mtx", A)
    assert file_and_name("a:b.mtx") == ("a:b.mtx", None)
    assert file_and_name("absent.mat:K") == ("absent.mat:K", None)
    assert file_and_name("A.mtx") == ("A.mtx", None)
    scipy.io.savemat("s.mat", {"K": A})
    assert file_and_name("s.mat:K") == ("s.mat", "K")
    with pytest.raises(InputError, match="NUL"):
        file_and_name("a\0:b")
