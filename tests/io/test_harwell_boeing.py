"""Harwell-Boeing and Rutherford-Boeing files, written here with Fortran's fixed columns, and by SciPy."""
import gzip

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.damage import damaged, require_own_errors

from swell.core.errors import InputError
from swell.io import read_matrix, read_matrix_with_notes, read_vector


def text(A, kind="RUA", b=None, rutherford=False):
    """The file of a matrix; of symmetric types A is the stored triangle. b: one right-hand side, or several columns."""
    A = A.tocsc()
    A.sort_indices()
    def block(values, each, form):
        return [("".join(form % value for value in values[k:k + each])) for k in range(0, len(values), each)]
    def scalars(values):
        values = np.asarray(values)
        return block(np.stack([values.real, values.imag], -1).ravel() if kind[0] == "C" else values.real, 3, "%25.18E")
    pointers, indices = block(A.indptr + 1, 10, "%8d"), block(A.indices + 1, 10, "%8d")
    values = [] if kind[0] == "P" else scalars(A.data)
    sides = [] if b is None else scalars(b.T.ravel())
    counts = [len(pointers), len(indices), len(values)] + ([] if rutherford else [len(sides)])
    lines = [f"{'A title':72}{'key':8}", "".join(f"{n:14d}" for n in [sum(counts), *counts]),
             f"{kind:14}" + "".join(f"{n:14d}" for n in [*A.shape, A.nnz, 0]),
             f"{'(10I8)':16}{'(10I8)':16}" f"{'' if kind[0] == 'P' else '(1P,3E25.18)':20}"
             f"{'(3D25.18)' if sides else '':20}"]
    if b is not None:
        lines.append(f"{'F':14}{1 if b.ndim == 1 else b.shape[1]:14d}{0:14d}")
    return "\n".join([*lines, *pointers, *indices, *values, *sides, ""])


def matrix(m, n, seed=0, is_complex=False):
    rng = np.random.default_rng(seed)
    A = sp.random_array((m, n), density=0.4, rng=rng, data_sampler=rng.standard_normal).tocsc()
    return (A * (1 + 2j)).tocsc() if is_complex else A


@pytest.fixture
def write(tmp_path):
    def write(content, name="A.rua"):
        (tmp_path / name).write_text(content)
        return tmp_path / name
    return write


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 9), st.integers(1, 9), st.booleans(), st.booleans(), st.integers(0, 2**32 - 1))
def test_matrices_round_trip(tmp_path_factory, m, n, is_complex, rutherford, seed):
    A = matrix(m, n, seed, is_complex)
    path = tmp_path_factory.mktemp("hb") / "A.rb"
    path.write_text(text(A, "CUA" if is_complex else "RRA", rutherford=rutherford))
    found = read_matrix(path)
    assert found.format == "csr" and found.dtype == (np.complex128 if is_complex else np.float64)
    np.testing.assert_array_equal(found.toarray(), A.toarray())


def test_scipys_files_round_trip(tmp_path):
    A = matrix(7, 5) - 2 * matrix(7, 5, 1)
    scipy.io.hb_write(tmp_path / "A.hb", A)
    np.testing.assert_allclose(read_matrix(tmp_path / "A.hb").toarray(), A.toarray(), rtol=1e-15)


@pytest.mark.parametrize("kind, mirror", [("RSA", lambda L: L.T), ("CSA", lambda L: L.T), ("CHA", lambda L: L.conj().T),
                                          ("RZA", lambda L: -L.T), ("csa", lambda L: L.T), ("ISA", lambda L: L.T)])
@pytest.mark.parametrize("lower", [True, False])
def test_a_stored_triangle_is_expanded(write, kind, mirror, lower):
    A = matrix(6, 6, 3, kind[0] in "Cc").toarray()
    L = np.tril(A, -1) if lower else np.triu(A, 1)
    D = np.zeros(6) if kind[1] == "Z" else np.arange(1.0, 7.0)
    content = text(sp.csc_array(L + np.diag(D)), kind.upper()).replace(kind.upper(), kind)
    found, notes = read_matrix_with_notes(write(content))
    np.testing.assert_array_equal(found.toarray(), L + mirror(L) + np.diag(D))
    assert notes[-1].endswith(f"storage expanded to {found.nnz} entries")


def test_a_pattern_becomes_ones(write):
    found, notes = read_matrix_with_notes(write(text(matrix(5, 4), "PUA"), "A.pua"))
    np.testing.assert_array_equal(found.toarray(), matrix(5, 4).toarray() != 0)
    assert notes == ["pattern matrix: every entry is 1"]


@pytest.mark.parametrize("b", [np.arange(5.0), np.arange(10.0).reshape(5, 2)])
def test_right_hand_sides(write, b):
    path = write(text(matrix(5, 4), b=b))
    np.testing.assert_array_equal(read_vector(path), b)
    np.testing.assert_array_equal(read_matrix(path).toarray(), matrix(5, 4).toarray())


def test_spellings_of_fortran(write):
    content = text(sp.csc_array(np.diag([1.0, 2.0])))
    for spelling, value in [("1.000000000000000000D+00", 1.0), ("1.50000000000000000-103", 1.5e-103), ("-1.e5", -1e5)]:
        found = read_matrix(write(content.replace(f"{1:25.18E}", f"{spelling:>25}")))
        assert found[0, 0] == value, spelling
    for form in ("(3(1PE25.18))", "(1P3E25.18)", "(3d25.18e3)"):
        found = read_matrix(write(content.replace(f"{'(1P,3E25.18)':20}", f"{form:20}")))
        np.testing.assert_array_equal(found.toarray(), np.diag([1.0, 2.0]), err_msg=form)


def test_compressed_and_by_content(tmp_path):
    content = text(matrix(5, 4)).encode()
    (tmp_path / "A.rua.gz").write_bytes(gzip.compress(content))
    (tmp_path / "A.dat").write_bytes(content.replace(b"\n", b"\r\n"))
    for name in ("A.rua.gz", "A.dat"):
        np.testing.assert_array_equal(read_matrix(tmp_path / name).toarray(), matrix(5, 4).toarray())


GOOD = text(matrix(5, 5, 1))
BAD = {
    "elements": (GOOD.replace("RUA", "RUE"), "type is RUE.*not assembled.*Assemble it first"),
    "truncated": (GOOD[:-40], "truncated: line 2 announces"),
    "header alone": ("\n".join(GOOD.split("\n")[:3]), "damaged, truncated"),
    "format": (GOOD.replace("3E25.18", "3Q25.18"), r"format of the values is '\(1P,3Q25.18\)', expected one such"),
    "both triangles": (GOOD.replace("RUA", "RSA"), "says symmetric.*both. Write U as the second letter"),
    "text for a number": (GOOD.replace("E-01", "Q-01", 1), "damaged.*mmwrite"),
    "row outside": (GOOD.replace(f"{5:14d}{5:14d}", f"{3:14d}{5:14d}"), "damaged, truncated or inconsistent"),
    "columns announced": (GOOD.replace(f"{5:14d}{5:14d}", f"{5:14d}{50:14d}"), "51 pointers are announced"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files(write, case):
    content, message = BAD[case]
    assert content != GOOD
    with pytest.raises(InputError, match=message):
        read_matrix(write(content))


def test_a_file_without_right_hand_side(write):
    with pytest.raises(InputError, match="holds a matrix and no right-hand side"):
        read_vector(write(GOOD))
    with pytest.raises(InputError, match="line 5: the right-hand sides have type 'M  ', expected F"):
        read_vector(write(text(matrix(5, 5), b=np.ones(5)).replace("\nF ", "\nM ")))
    with pytest.raises(InputError, match="in which nothing has a name, and name='A' came"):
        read_matrix(write(GOOD), name="A")


def test_extension_that_lies(write):
    with pytest.raises(InputError, match="ends in .rsa but its content looks like plain text"):
        read_matrix(write("1 2\n3 4\n", "A.rsa"))


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(["RUA", "CUA", "PUA"]), st.data())
def test_damage_never_escapes_as_another_error(tmp_path_factory, kind, data):
    path = tmp_path_factory.mktemp("hb") / "A.hb"
    content = text(matrix(4, 4, 2), kind, b=np.ones(4)).encode()
    require_own_errors(path, damaged(content, data, 32, 126))
