"""SciPy .npz and NumPy .npy files."""
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.damage import damaged, require_own_errors

from swell.core.errors import InputError
from swell.io import read_matrix, read_matrix_with_notes, read_vector

DATA = Path(os.environ.get("SWELL_DATA", Path(__file__).parents[2] / "../shared/data"))
MOTOR_BIKE = DATA / "matrices" / "foam_motorBike_ldu.npz"


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 8), st.integers(1, 8), st.sampled_from(["csr", "csc", "coo", "bsr", "dia"]),
       st.sampled_from([np.float64, np.float32, np.int64, bool, np.complex64, np.complex128]),
       st.sampled_from([sp.csr_matrix, sp.csr_array]), st.integers(0, 2**32 - 1))
def test_sparse_round_trip(tmp_path_factory, m, n, layout, dtype, kind, seed):
    rng = np.random.default_rng(seed)
    dense = (rng.integers(-3, 4, (m, n)) * (rng.random((m, n)) < 0.4)).astype(dtype)
    path = tmp_path_factory.mktemp("npz") / "A.npz"
    sp.save_npz(path, kind(dense).asformat(layout))
    A, notes = read_matrix_with_notes(path)
    assert A.format == "csr" and A.dtype == (np.complex128 if np.issubdtype(dtype, np.complexfloating) else np.float64)
    assert A.indices.dtype == np.int32 and A.has_sorted_indices and notes == []
    np.testing.assert_array_equal(A.toarray(), dense)


def test_unsorted_duplicates_are_summed_and_indices_shrunk(tmp_path):
    A = sp.csr_matrix((np.array([1.0, 2.0, 4.0]), np.array([2, 0, 2], np.int64), np.array([0, 3, 3], np.int64)),
                      shape=(2, 3))
    A.indices, A.indptr = A.indices.astype(np.int64), A.indptr.astype(np.int64)
    sp.save_npz(tmp_path / "A.npz", A)
    B, notes = read_matrix_with_notes(tmp_path / "A.npz")
    assert B.toarray().tolist() == [[2, 0, 5], [0, 0, 0]] and B.indices.dtype == np.int32
    assert notes == ["1 duplicate entry was summed"]


def test_dense_npy_becomes_sparse(tmp_path):
    np.save(tmp_path / "A.npy", np.array([[0, 2], [np.nan, 0]]))
    A, notes = read_matrix_with_notes(tmp_path / "A.npy")
    np.testing.assert_array_equal(A.toarray(), [[0, 2], [np.nan, 0]])
    assert A.nnz == 2 and notes == ["dense storage: 2 of 4 entries are not zero and were kept"]


@pytest.mark.parametrize("x, shape", [(np.arange(3), (3,)), (np.ones((3, 1)), (3,)), (np.ones((3, 2)), (3, 2))])
def test_vector_from_npy_and_npz(tmp_path, x, shape):
    np.save(tmp_path / "x.npy", x)
    np.savez(tmp_path / "x.npz", b=x)
    for name in ("x.npy", "x.npz"):
        y = read_vector(tmp_path / name)
        assert y.shape == shape and y.dtype == np.float64
        np.testing.assert_array_equal(y.ravel(), x.ravel())


CSR = {"format": b"csr", "shape": (2, 2), "data": np.ones(2), "indices": np.array([0, 1]),
       "indptr": np.array([0, 1, 2])}
BAD = {
    "no sparse matrix": (lambda path: np.savez(path, a=np.ones(2), b=np.ones(3)), r"no matrix.*It holds: a \(2\), b \(3\)"),
    "index outside": (lambda path: np.savez(path, **CSR | {"indices": np.array([0, 7])}), "damaged.*save_npz"),
    "negative index": (lambda path: np.savez(path, **CSR | {"indices": np.array([0, -1])}), "damaged.*save_npz"),
    "pointers decrease": (lambda path: np.savez(path, **CSR | {"indptr": np.array([0, 2, 1])}), "damaged"),
    "pointers return to zero": (lambda path: np.savez(path, **CSR | {"indptr": np.array([0, 2, 0])}), "pointers decrease"),
    "data missing": (lambda path: np.savez(path, format=b"csr", shape=(2, 2)), "damaged"),
    "unknown layout": (lambda path: np.savez(path, **CSR | {"format": b"xyz"}), "damaged"),
    "coordinate outside": (lambda path: np.savez(path, format=b"coo", shape=(2, 2), row=np.array([0, 5]),
                                                 col=np.array([0, 1]), data=np.ones(2)), "damaged"),
    "objects": (lambda path: np.savez(path, **CSR | {"data": np.array([None, 1])}), "Python objects.*dtype=float"),
    "text": (lambda path: np.savez(path, **CSR | {"data": np.array(["a", "b"])}), "damaged|expected numbers"),
    "another zip": (lambda path: zipfile.ZipFile(path, "w").writestr("x.txt", "hello"), "no array of numbers"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_archives(tmp_path, case):
    make, message = BAD[case]
    make(tmp_path / "A.npz")
    with pytest.raises(InputError, match=message):
        read_matrix(tmp_path / "A.npz")


@pytest.mark.parametrize("keep", [10, 0.5, 0.95])
def test_truncated(tmp_path, keep):
    x = np.random.default_rng(0).random((50, 20))
    sp.save_npz(tmp_path / "whole.npz", sp.csr_matrix(x))
    np.save(tmp_path / "whole.npy", x)
    for suffix in (".npz", ".npy"):
        content = (tmp_path / f"whole{suffix}").read_bytes()
        path = tmp_path / f"cut{suffix}"
        path.write_bytes(content[:keep if isinstance(keep, int) else int(keep * len(content))])
        with pytest.raises(InputError, match="damaged, truncated.*Fetch it again"):
            read_matrix(path)


def test_absurd_size_is_not_allocated(tmp_path):
    np.save(tmp_path / "x.npy", np.ones(100))
    content = (tmp_path / "x.npy").read_bytes()
    (tmp_path / "x.npy").write_bytes(content.replace(b"(100,), }" + b" " * 11, b"(99999999999999,), }"))
    with pytest.raises(InputError, match="damaged, truncated"):
        read_vector(tmp_path / "x.npy")


@settings(max_examples=150, deadline=None)
@given(st.sampled_from([".npz", ".npy"]), st.data())
def test_damage_never_escapes_as_another_error(tmp_path_factory, suffix, data):
    path = tmp_path_factory.mktemp("npz") / f"A{suffix}"
    if suffix == ".npz":
        sp.save_npz(path, sp.csr_matrix(np.eye(3)), compressed=False)
    else:
        np.save(path, np.eye(3))
    require_own_errors(path, damaged(path.read_bytes(), data))


@pytest.mark.parametrize("values, message", [
    (np.ones((2, 2, 2)), "expected a matrix"), (np.array(["a"]), "expected a matrix"),
    (np.array([["a"]]), "expected numbers"), (np.array([[None]]), "Python objects")])
def test_arrays_that_are_no_matrix(tmp_path, values, message):
    np.save(tmp_path / "A.npy", values)
    with pytest.raises(InputError, match=message):
        read_matrix(tmp_path / "A.npy")


def test_of_two_vectors_a_name_chooses_one(tmp_path):
    np.savez(tmp_path / "x.npz", a=np.ones(2), b=np.ones(3))
    with pytest.raises(InputError, match=r"several vectors: choose one with name=.*x.npz:NAME.*a \(2\), b \(3\)"):
        read_vector(tmp_path / "x.npz")
    assert read_vector(tmp_path / "x.npz", "b").tolist() == [1, 1, 1]


def test_extension_that_lies(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((2, 2)))
    (tmp_path / "x.npy").rename(tmp_path / "x.npz")
    with pytest.raises(InputError, match="ends in .npz but its content looks like a NumPy .npy array"):
        read_matrix(tmp_path / "x.npz")


@pytest.mark.data
@pytest.mark.skipif(not MOTOR_BIKE.exists(), reason=f"no {MOTOR_BIKE}; set SWELL_DATA")
def test_real_matrix_equals_scipy():
    A = read_matrix(MOTOR_BIKE)
    B = sp.load_npz(MOTOR_BIKE)
    assert np.array_equal(A.indptr, B.indptr) and np.array_equal(A.indices, B.indices)
    assert np.array_equal(A.data, B.data)


@pytest.mark.parametrize("dtype", [">f8", ">i4", ">c16"])
def test_big_endian_array(tmp_path, dtype):
    np.save(tmp_path / "A.npy", np.eye(3, dtype=dtype))
    assert read_matrix(tmp_path / "A.npy").toarray().tolist() == np.eye(3).tolist()


RAW = sp.random_array((4, 4), density=0.5, rng=np.random.default_rng(2)).tocsr()
PARTS = {"data": RAW.data, "indices": RAW.indices, "indptr": RAW.indptr}
TRIPLES = {"data": RAW.data, "row": RAW.tocoo().row, "col": RAW.tocoo().col}


@pytest.mark.parametrize("parts", [PARTS, TRIPLES], ids=["csr", "coordinates"])
@pytest.mark.parametrize("prefix", ["", "K_", "K."])
def test_raw_arrays_of_a_matrix(tmp_path, parts, prefix):
    for shape in ((4, 4), (4, 6)):
        stored = {**parts, "shape": shape}
        np.savez(tmp_path / "A.npz", b=np.ones(4), **{prefix + key: value for key, value in stored.items()})
        A, notes = read_matrix_with_notes(tmp_path / "A.npz")
        assert A.shape == shape and notes == []
        np.testing.assert_array_equal(A[:, :4].toarray(), RAW.toarray())
    assert read_vector(tmp_path / "A.npz").tolist() == [1, 1, 1, 1]
    np.savez(tmp_path / "A.npz", **{prefix + key: value for key, value in parts.items()})
    A, notes = read_matrix_with_notes(tmp_path / "A.npz")
    assert notes == ["no shape is stored: 4 x 4 was taken"]
    np.testing.assert_array_equal(A.toarray(), RAW.toarray())


def test_raw_arrays_of_several_matrices_need_a_name(tmp_path):
    np.savez(tmp_path / "A.npz", D=np.eye(3), **{f"K_{key}": value for key, value in PARTS.items()},
             **{f"M_{key}": value for key, value in TRIPLES.items()})
    with pytest.raises(InputError, match=r"several matrices.*A.npz:NAME.*: K \(4 x 4, sparse\), M \(4 x 4, sparse\)\."):
        read_matrix(tmp_path / "A.npz")
    np.testing.assert_array_equal(read_matrix(tmp_path / "A.npz", "M").toarray(), RAW.toarray())
    np.testing.assert_array_equal(read_matrix(tmp_path / "A.npz", "D").toarray(), np.eye(3))


def test_a_matrix_of_scipys_has_no_name(tmp_path):
    sp.save_npz(tmp_path / "A.npz", RAW)
    with pytest.raises(InputError, match="has no name, and name='A' came: leave it out"):
        read_matrix(tmp_path / "A.npz", name="A")
    with pytest.raises(InputError, match="holds a sparse matrix.*expected a vector"):
        read_vector(tmp_path / "A.npz")


@pytest.mark.parametrize("changed, message", [
    ({"indices": RAW.indices + 3}, "damaged"), ({"indptr": RAW.indptr[::-1]}, "damaged"),
    ({"indices": RAW.indices.astype(float)}, "'indices' has dtype float64, expected integers"),
    ({"indices": RAW.indices[:-1]}, "'indices' has shape .* beside"), ({"shape": 4}, "damaged"),
    ({"data": np.array([None] * RAW.nnz)}, "Python objects"), ({"data": np.array(["a"] * RAW.nnz)}, "numbers|damaged")])
def test_damaged_raw_arrays(tmp_path, changed, message):
    np.savez(tmp_path / "A.npz", **PARTS | {"shape": (4, 4)} | changed)
    with pytest.raises(InputError, match=message):
        read_matrix(tmp_path / "A.npz")


def test_notes_go_to_the_log(tmp_path, caplog):
    np.savez(tmp_path / "A.npz", **PARTS)
    with caplog.at_level("INFO", logger="swell"):
        read_matrix(tmp_path / "A.npz")
    assert [(record.name, record.getMessage()) for record in caplog.records] == [
        ("swell.io", f"{tmp_path / 'A.npz'}: no shape is stored: 4 x 4 was taken")]
