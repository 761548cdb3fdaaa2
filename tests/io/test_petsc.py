"""PETSc binary files, written here by the format's description, independently of the reader."""
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from swell.core.errors import InputError, OutOfMemory
from swell.io import read_matrix, read_matrix_with_notes, read_vector

MAT, VEC = 1211216, 1211214


def mat_bytes(A, integer=">i4", scalar=">f8"):
    """MatView of a CSR matrix."""
    parts = [np.array([MAT, *A.shape, A.nnz]), np.diff(A.indptr), A.indices]
    return b"".join(part.astype(integer).tobytes() for part in parts) + A.data.astype(scalar).tobytes()


def vec_bytes(x, integer=">i4", scalar=">f8"):
    """VecView."""
    return np.array([VEC, len(x)]).astype(integer).tobytes() + x.astype(scalar).tobytes()


def random_csr(m, n, is_complex, seed):
    rng = np.random.default_rng(seed)
    A = sp.csr_matrix(rng.random((m, n)) * (rng.random((m, n)) < 0.4))
    return A + 1j * A.power(2) if is_complex else A


def put(folder, content, name="A.petsc"):
    path = folder / name
    path.write_bytes(content)
    return path


@settings(max_examples=80, deadline=None)
@given(st.integers(1, 8), st.integers(1, 8), st.booleans(), st.sampled_from([">i4", ">i8"]), st.booleans(),
       st.integers(0, 2**32 - 1))
def test_matrix_round_trip(tmp_path_factory, m, n, is_complex, integer, followed, seed):
    A = random_csr(m, n, is_complex, seed)
    scalar = ">c16" if is_complex else ">f8"
    b = np.arange(1.0, m + 1)
    content = mat_bytes(A, integer, scalar) + (vec_bytes(b, integer, scalar) if followed else b"")
    path = put(tmp_path_factory.mktemp("petsc"), content)
    B, notes = read_matrix_with_notes(path)
    np.testing.assert_array_equal(B.toarray(), A.toarray())
    assert B.indices.dtype == np.int32 and len(notes) == followed
    assert B.dtype == (np.complex128 if is_complex and A.nnz else np.float64)
    if followed:
        np.testing.assert_array_equal(read_vector(path), b)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 20), st.sampled_from([">f8", ">c16", ">f4"]), st.sampled_from([">i4", ">i8"]))
def test_vector_round_trip(tmp_path_factory, n, scalar, integer):
    x = np.random.default_rng(n).integers(-9, 9, n).astype(scalar)
    y = read_vector(put(tmp_path_factory.mktemp("petsc"), vec_bytes(x, integer, scalar), "x.bin"))
    assert y.shape == (n,) and y.dtype == (np.complex128 if scalar == ">c16" and n else np.float64)
    np.testing.assert_array_equal(y, x)


def test_dense_matrix(tmp_path):
    A = np.array([[1.0, 0.0, 2.0], [0.0, 0.0, -3.0]])
    path = put(tmp_path, np.array([MAT, 2, 3, -1], ">i4").tobytes() + A.astype(">f8").tobytes())
    B, notes = read_matrix_with_notes(path)
    assert B.toarray().tolist() == A.tolist() and B.nnz == 3
    assert "dense storage" in notes[0]


def test_unsorted_duplicates_are_summed(tmp_path):
    content = (np.array([MAT, 2, 3, 3, 3, 0, 2, 0, 2], ">i4").tobytes() + np.array([1.0, 2.0, 4.0], ">f8").tobytes())
    A, notes = read_matrix_with_notes(put(tmp_path, content))
    assert A.toarray().tolist() == [[2, 0, 5], [0, 0, 0]] and notes == ["1 duplicate entry was summed"]


GOOD = mat_bytes(sp.csr_matrix(np.array([[2.0, -1.0], [0.0, 3.0]])))
BAD = {
    "cut in the values": (GOOD[:-1], "truncated.*copy it again"),
    "cut in the sizes": (GOOD[:10], "truncated.*[Ww]rite or copy it again"),
    "too long": (GOOD + b"\0" * 4, "fits neither real nor complex"),
    "another object": (np.array([1211218, 3, 0, 1, 2], ">i4").tobytes(), "class 1211218.*MatView or VecView"),
    "negative sizes": (np.array([MAT, -2, 2, 0], ">i4").tobytes(), "negative"),
    "absurd sizes": (np.array([MAT, 2**31 - 1, 2**31 - 1, 2**31 - 1], ">i4").tobytes(), "truncated"),
    "rows do not add up": (np.array([MAT, 2, 2, 2, 1, 2, 0, 1], ">i4").tobytes() + bytes(16), "3 entries.*MatView"),
    "column outside": (np.array([MAT, 2, 2, 2, 1, 1, 0, 5], ">i4").tobytes() + bytes(16), "outside 0 to 1.*MatView"),
    "only a vector": (vec_bytes(np.ones(3)), "holds no PETSc matrix.*MatView"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files(tmp_path, case):
    content, message = BAD[case]
    with pytest.raises(InputError, match=message):
        read_matrix(put(tmp_path, content))


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_damage_never_escapes_as_another_error(tmp_path_factory, data):
    content = bytearray(GOOD + vec_bytes(np.ones(2)))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(4, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = put(tmp_path_factory.mktemp("petsc"), content)
    for read in (read_matrix, read_vector):
        try:
            read(path)
        except (InputError, OutOfMemory):
            pass


def test_vector_wanted_but_only_a_matrix(tmp_path):
    with pytest.raises(InputError, match="holds no PETSc vector.*VecView"):
        read_vector(put(tmp_path, GOOD))


def test_little_endian_is_no_petsc_file(tmp_path):
    with pytest.raises(InputError, match="binary data of no format"):
        read_matrix(put(tmp_path, np.array([MAT, 1, 1, 0], "<i4").tobytes()))
