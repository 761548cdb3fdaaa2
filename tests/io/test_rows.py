"""Shares of a matrix from files: together they are the matrix, in every format, and damage is an error on the rank that sees it."""
from __future__ import annotations

import gzip

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

import swell
from swell import distributed, gallery
from swell.distributed import distribute
from swell.distributed.partition import consecutive
from swell.io import rows


def unsymmetric():
    A = gallery.poisson2d(13) + sp.diags_array(np.arange(1.0, 169.0), offsets=1)
    return sp.csr_matrix(A)


def write_petsc(path, A):
    with open(path, "wb") as stream:
        for numbers, kind in (([1211216, *A.shape, A.nnz], ">i4"), (np.diff(A.indptr), ">i4"), (A.indices, ">i4"),
                              (A.data, ">f8")):
            stream.write(np.asarray(numbers, kind).tobytes())


@pytest.fixture
def files(tmp_path):
    """(path, matrix) of every format that can be read in parts."""
    A = unsymmetric()
    S, H = sp.csr_matrix(gallery.poisson2d(13)), sp.csr_matrix(A + 1j * sp.eye_array(169))
    scipy.io.mmwrite(tmp_path / "a.mtx", A)
    scipy.io.mmwrite(tmp_path / "h.mtx", H)
    scipy.io.mmwrite(tmp_path / "s.mtx", S, symmetry="symmetric")
    (tmp_path / "s.mtx.gz").write_bytes(gzip.compress((tmp_path / "s.mtx").read_bytes()))
    sp.save_npz(tmp_path / "a.npz", A)
    write_petsc(tmp_path / "a.petsc", A)
    return {name: (tmp_path / name, matrix) for name, matrix in
            {"a.mtx": A, "h.mtx": H, "s.mtx": S, "s.mtx.gz": S, "a.npz": A, "a.petsc": A}.items()}


@pytest.mark.parametrize("name", ["a.mtx", "h.mtx", "s.mtx", "s.mtx.gz", "a.npz", "a.petsc"])
@pytest.mark.parametrize("ranks", [1, 3])
def test_shares_make_the_matrix(files, name, ranks, monkeypatch):
    monkeypatch.setattr(rows, "PIECE", 500)      # many pieces, whose ends are in the middle of lines
    path, A = files[name]
    starts, found, total = consecutive(169, ranks), 0, sp.csr_matrix(A.shape, dtype=A.dtype)
    for rank in range(ranks):
        source = rows.open_rows(path)
        part = source.share(rank, ranks, starts)
        if source.by_rows:
            above, below = starts[rank], 169 - starts[rank + 1]
            part = sp.vstack([sp.csr_array((above, 169)), part, sp.csr_array((below, 169))])
        total = total + sp.csr_matrix(part)
        found += source.found
    assert found == source.nnz and abs(total - A).max() <= 1e-15 * abs(A).max()


@pytest.mark.parametrize("content, message", [
    ("%%MatrixMarket matrix coordinate real general\n3 3 3\n1 1 1\n2 2 1\n", "holds 2 entries and announces 3"),
    ("%%MatrixMarket matrix coordinate real general\n3 3 3\n1 1 1\n2 2 x\n3 3 1\n", "not a number"),
    ("%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n1 1 1\n1 2 1\n", "above the diagonal"),
    ("%%MatrixMarket matrix array real general\n1 1\n1\n", "dense matrix"),
    ("%%MatrixMarket matrix coordinate real general\n2 3 1\n1 1 1\n", "expected a square one")])
def test_damaged_matrix_market(tmp_path, content, message):
    (tmp_path / "a.mtx").write_text(content)
    with pytest.raises(swell.InputError, match=message):
        distributed.run(2, distributed.read, tmp_path / "a.mtx")


@pytest.mark.parametrize("name, sent", [("a.mtx", True), ("a.npz", False), ("a.petsc", False)])
def test_rows_that_each_rank_reads_are_not_sent(files, name, sent, monkeypatch):
    """Messages need the entries three times, and some MPIs send no object of 2 GiB."""
    calls, gathered = [], distribute.gathered
    monkeypatch.setattr(distribute, "gathered", lambda *given: calls.append(1) or gathered(*given))
    distributed.run(2, lambda ranks: distributed.read(ranks, files[name][0], block=1))
    assert bool(calls) == sent


def test_what_cannot_be_read_in_parts(tmp_path):
    sp.save_npz(tmp_path / "a.npz", sp.coo_matrix(np.eye(3)))
    with pytest.raises(swell.InputError, match="no matrix in CSR"):
        rows.open_rows(tmp_path / "a.npz")
    np.save(tmp_path / "a.npy", np.eye(3))
    with pytest.raises(swell.InputError, match="ranks cannot read their rows"):
        rows.open_rows(tmp_path / "a.npy")


@pytest.mark.parametrize("name", ["a.npz", "a.petsc"])
def test_truncated_binary_files(files, name):
    path, _ = files[name]
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(swell.InputError):
        distributed.run(2, distributed.read, path)


def test_columns_out_of_range(tmp_path):
    A = unsymmetric()
    A.indices[-1] = 400
    write_petsc(tmp_path / "a.petsc", A)
    with pytest.raises(swell.InputError, match="columns range from"):
        distributed.run(2, distributed.read, tmp_path / "a.petsc")


@pytest.mark.parametrize("lengths", [[2, -1, 1], [2, 2, 2], [0, 0, 0]])
def test_lengths_of_rows_that_are_not_announced(tmp_path, lengths):
    content = np.array([1211216, 3, 3, 2, *lengths, 0, 1], ">i4").tobytes() + np.ones(2, ">f8").tobytes()
    (tmp_path / "a.petsc").write_bytes(content)
    with pytest.raises(swell.InputError, match="entries in all, but the header announces 2"):
        rows.open_rows(tmp_path / "a.petsc").share(0, 1, [0, 3])
