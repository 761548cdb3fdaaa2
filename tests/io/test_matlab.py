"""Matlab's .mat files of versions 5 to 7, as SciPy writes them."""
import io
import zlib

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.damage import damaged, require_own_errors

from swell.core.errors import InputError
from swell.io import read_matrix, read_matrix_with_notes, read_vector

RNG = np.random.default_rng(0)
A = sp.random_array((5, 4), density=0.5, rng=RNG).tocsr()
B = np.arange(1.0, 5.0)


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 7), st.integers(2, 7), st.sampled_from([np.float64, np.complex128, bool, np.int32]),
       st.booleans(), st.booleans(), st.integers(0, 2**32 - 1))
def test_matrices_round_trip(tmp_path_factory, m, n, dtype, sparse, packed, seed):
    rng = np.random.default_rng(seed)
    dense = (rng.integers(-3, 4, (m, n)) * (rng.random((m, n)) < 0.5)).astype(dtype)
    path = tmp_path_factory.mktemp("mat") / "A.mat"
    scipy.io.savemat(path, {"A": sp.csc_array(dense) if sparse else dense}, do_compression=packed)
    found = read_matrix(path)
    assert found.format == "csr" and found.dtype == (np.complex128 if dtype is np.complex128 else np.float64)
    assert found.indices.dtype == np.int32 and found.has_sorted_indices
    np.testing.assert_array_equal(found.toarray(), dense)


@pytest.mark.parametrize("oned_as", ["row", "column"])
@pytest.mark.parametrize("x", [B, 1j * B, np.ones((4, 2)), sp.csc_array(B[:, None])],
                         ids=["real", "complex", "two", "sparse"])
def test_vectors_round_trip_as_rows_and_as_columns(tmp_path, x, oned_as):
    scipy.io.savemat(tmp_path / "b.mat", {"b": x}, oned_as=oned_as)
    expected = x.toarray().ravel() if sp.issparse(x) else x
    found = read_vector(tmp_path / "b.mat")
    assert found.shape == expected.shape
    np.testing.assert_array_equal(found, expected)


def test_a_system_needs_no_names(tmp_path):
    scipy.io.savemat(tmp_path / "s.mat", {"A": A, "b": B, "tolerance": 1e-6, "title": "a system", "parts": [A, B]})
    np.testing.assert_array_equal(read_matrix(tmp_path / "s.mat").toarray(), A.toarray())
    np.testing.assert_array_equal(read_vector(tmp_path / "s.mat"), B)


def test_of_several_a_name_chooses_one(tmp_path):
    path = tmp_path / "s.mat"
    scipy.io.savemat(path, {"K": A, "M": 2 * A, "D": np.ones((3, 3)), "b": B, "x": 2 * B})
    with pytest.raises(InputError, match=r"several matrices: choose one with name=, on a command line as s.mat:NAME. "
                                         r"It holds: K \(5 x 4, sparse\), M \(5 x 4, sparse\)\."):
        read_matrix(path)
    with pytest.raises(InputError, match=r"several vectors.*b \(1 x 4\), x \(1 x 4\)"):
        read_vector(path)
    with pytest.raises(InputError, match=r"holds no 'L'. It holds: K .*D \(3 x 3\)"):
        read_matrix(path, name="L")
    np.testing.assert_array_equal(read_matrix(path, name="M").toarray(), 2 * A.toarray())
    np.testing.assert_array_equal(read_matrix(path, name="D").toarray(), np.ones((3, 3)))
    np.testing.assert_array_equal(read_vector(path, name="x"), 2 * B)


def test_the_suitesparse_collection_names_its_matrix_and_right_hand_side(tmp_path):
    path = tmp_path / "nos.mat"
    problem = {"A": A, "Zeros": A, "b": B[:, None], "name": "HB/nos", "id": 3.0, "aux": {"C": A, "x0": B[:, None]}}
    scipy.io.savemat(path, {"Problem": problem})
    np.testing.assert_array_equal(read_matrix(path).toarray(), A.toarray())
    np.testing.assert_array_equal(read_vector(path), B)
    np.testing.assert_array_equal(read_vector(path, "Problem.aux.x0"), B)
    scipy.io.savemat(path, {"Problem": {"A": A, "svals": B}})
    with pytest.raises(InputError, match=r"no 'Problem.b'. It holds: .*Problem.svals \(1 x 4\)"):
        read_vector(path)


def test_no_matrix_and_no_vector(tmp_path):
    scipy.io.savemat(tmp_path / "s.mat", {"text": "hello"})
    for read, what in ((read_matrix, "matrix"), (read_vector, "vector")):
        with pytest.raises(InputError, match=f"holds no {what}, sparse or dense. It holds no array of numbers"):
            read(tmp_path / "s.mat")
    scipy.io.savemat(tmp_path / "s.mat", {"b": np.ones((2, 2, 2))})
    with pytest.raises(InputError, match=r"b has shape \(2, 2, 2\), expected a matrix"):
        read_matrix(tmp_path / "s.mat", "b")


def test_notes_say_that_a_matrix_was_dense(tmp_path):
    scipy.io.savemat(tmp_path / "A.mat", {"A": np.eye(3)})
    assert read_matrix_with_notes(tmp_path / "A.mat")[1] == ["dense storage: 3 of 9 entries are not zero and were kept"]


@pytest.mark.data
def test_a_file_that_matlab_wrote(data):
    path = data / "car_cabin" / "carinterior.mat"
    with pytest.raises(InputError, match=r"mesh.Nodes \(34306 x 4\), mesh.Elements \(31011 x 12\)"):
        read_matrix(path)
    nodes = scipy.io.loadmat(path)["mesh"]["Nodes"].item()
    np.testing.assert_array_equal(read_vector(path, "mesh.Nodes"), nodes)


@pytest.mark.data
@pytest.mark.parametrize("name", ["west0479", "young1c", "mhd1280b"])
def test_real_matrices_round_trip(data, tmp_path, name):
    real = scipy.io.mmread(data / "matrices" / f"{name}.mtx.gz").tocsr()
    scipy.io.savemat(tmp_path / "A.mat", {"Problem": {"A": real}}, do_compression=True)
    assert abs(read_matrix(tmp_path / "A.mat") - real).max() == 0


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("keep", [130, 0.5, 0.97])
def test_truncated(tmp_path, keep, packed):
    scipy.io.savemat(tmp_path / "A.mat", {"A": sp.random_array((40, 40), density=0.3, rng=RNG)}, do_compression=packed)
    content = (tmp_path / "A.mat").read_bytes()
    (tmp_path / "A.mat").write_bytes(content[:keep if isinstance(keep, int) else int(keep * len(content))])
    with pytest.raises(InputError, match="A.mat is (truncated|damaged).*(Fetch|save)"):
        read_matrix(tmp_path / "A.mat")


def test_a_small_file_cannot_declare_a_large_matrix(tmp_path):
    scipy.io.savemat(tmp_path / "A.mat", {"A": np.ones((8, 8))}, do_compression=True)
    content = (tmp_path / "A.mat").read_bytes()
    inside = bytearray(zlib.decompress(content[136:]))
    inside[4:8] = np.uint32(4_000_000_000).tobytes()
    packed = zlib.compress(bytes(inside))
    (tmp_path / "A.mat").write_bytes(content[:128] + np.array([15, len(packed)], "<u4").tobytes() + packed)
    with pytest.raises(InputError, match="4000000000 bytes is declared, which .* compressed bytes cannot hold"):
        read_matrix(tmp_path / "A.mat")


@pytest.mark.parametrize("sparse, place, value", [(False, 176, 0), (False, 177, 7), (True, 176, 14), (True, 178, 3),
                                                  (True, 180, 0), (True, 224, 128)])
def test_damage_at_which_scipys_reader_crashes(tmp_path, sparse, place, value):
    scipy.io.savemat(tmp_path / "A.mat", {"A": sp.eye_array(3).tocsc() if sparse else np.eye(3)})
    content = bytearray((tmp_path / "A.mat").read_bytes())
    content[place] = value
    (tmp_path / "A.mat").write_bytes(content)
    with pytest.raises(InputError, match="damaged, truncated or inconsistent .an element .*save it again"):
        read_matrix(tmp_path / "A.mat")


def test_version_4_is_named(tmp_path):
    scipy.io.savemat(tmp_path / "A.mat", {"A": np.eye(3)}, format="4")
    with pytest.raises(InputError, match="save it again with -v7"):
        read_matrix(tmp_path / "A.mat")


def test_extension_that_lies(tmp_path):
    np.save(tmp_path / "A.npy", np.eye(2))
    (tmp_path / "A.npy").rename(tmp_path / "A.mat")
    with pytest.raises(InputError, match="ends in .mat but its content looks like a NumPy .npy array"):
        read_matrix(tmp_path / "A.mat")


@settings(max_examples=150, deadline=None)
@given(st.booleans(), st.booleans(), st.data())
def test_damage_never_escapes_as_another_error(tmp_path_factory, sparse, packed, data):
    path, stream = tmp_path_factory.mktemp("mat") / "A.mat", io.BytesIO()
    scipy.io.savemat(stream, {"A": sp.eye_array(3).tocsc() if sparse else {"B": np.eye(3)}}, do_compression=packed)
    require_own_errors(path, damaged(stream.getvalue(), data))
