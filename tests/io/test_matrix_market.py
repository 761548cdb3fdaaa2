"""Matrix Market: every variant reads as SciPy reads it, and every kind of damage is named with its remedy."""
import bz2
import gzip
import os
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.damage import require_own_errors

from swell.core import memory
from swell.core.errors import InputError, OutOfMemory
from swell.io import read_matrix, read_matrix_with_notes, read_vector, write_vector

DATA = Path(os.environ.get("SWELL_DATA", Path(__file__).parents[2] / "../shared/data"))
REAL_MATRICES = sorted((DATA / "matrices").glob("*.mtx.gz"))
COORDINATE = "%%MatrixMarket matrix coordinate "
ARRAY = "%%MatrixMarket matrix array "


@pytest.fixture
def write(tmp_path):
    """Write a file of the given text; return its path."""
    def write_text(text, name="A.mtx"):
        path = tmp_path / name
        path.write_bytes(text.encode())
        return path
    return write_text


def assert_canonical(A):
    assert sp.issparse(A) and A.format == "csr" and A.dtype in (np.float64, np.complex128)
    assert A.indices.dtype == A.indptr.dtype == np.int32
    checked = A.copy()
    checked.has_canonical_format = False
    checked.sum_duplicates()
    assert np.array_equal(checked.indices, A.indices)


numbers = st.floats(-1e300, 1e300) | st.sampled_from([0.0, -0.0, 1e-310, 5e-324, 1.0, np.inf, np.nan])


@st.composite
def stored(draw):
    """Entries as a file lists them: (symmetry, field, shape, rows, columns, values), duplicates included."""
    symmetry = draw(st.sampled_from(["general", "symmetric", "skew-symmetric", "hermitian"]))
    fields = ["real", "integer", "complex"] + ["pattern"] * (symmetry in ("general", "symmetric"))
    field = draw(st.sampled_from(fields))
    m = draw(st.integers(1, 6))
    n = m if symmetry != "general" else draw(st.integers(1, 6))
    places = [(i, j) for i in range(m) for j in range(n)
              if symmetry == "general" or i > j or (i == j and symmetry != "skew-symmetric")]
    chosen = draw(st.lists(st.sampled_from(places), max_size=12)) if places else []
    values = []
    for i, j in chosen:
        if field == "pattern":
            values.append(1.0)
        elif field == "integer":
            values.append(float(draw(st.integers(-10**6, 10**6))))
        elif field == "real":
            values.append(draw(numbers))
        else:       # finite, as SciPy negates an infinite complex number to NaN
            real, imaginary = draw(st.floats(-1e300, 1e300)), draw(st.floats(-1e300, 1e300))
            values.append(complex(real, 0.0 if symmetry == "hermitian" and i == j else imaginary))
    return symmetry, field, (m, n), chosen, values


def spelled(field, value):
    real, imaginary = float(value.real), float(value.imag)
    return {"pattern": "", "integer": f"{real:.0f}", "real": f"{real!r}", "complex": f"{real!r} {imaginary!r}"}[field]


@settings(max_examples=150, deadline=None)
@given(stored(), st.sampled_from(["", ".gz", ".bz2"]), st.sampled_from(["\n", "\r\n"]))
def test_coordinate_variants_equal_scipy(tmp_path_factory, entries, packing, newline):
    symmetry, field, shape, places, values = entries
    lines = [f"{COORDINATE}{field} {symmetry}", "% a comment", f"{shape[0]} {shape[1]} {len(places)}"]
    lines += [f"{i + 1} {j + 1} {spelled(field, v)}" for (i, j), v in zip(places, values)]
    content = (newline.join(lines) + newline).encode()
    path = tmp_path_factory.mktemp("mm") / f"A.mtx{packing}"
    path.write_bytes({"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress}[packing](content))

    A, notes = read_matrix_with_notes(path)
    assert_canonical(A)
    with np.errstate(all="ignore"):
        expected = scipy.io.mmread(path).tocsr()
        np.testing.assert_array_equal(A.toarray(), expected.toarray())
    assert A.nnz == expected.nnz
    assert any("duplicate" in note for note in notes) == (len(set(places)) < len(places))
    assert any("expanded" in note for note in notes) == (symmetry != "general")
    assert any("pattern" in note for note in notes) == (field == "pattern")


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 5), st.sampled_from(["general", "symmetric", "skew-symmetric", "hermitian"]), st.booleans(),
       st.integers(0, 2**32 - 1))
def test_array_variants(tmp_path_factory, n, symmetry, is_complex, seed):
    rng = np.random.default_rng(seed)
    B = rng.integers(-3, 4, (n, n)) + (1j * rng.standard_normal((n, n)) if is_complex else 0.0)
    full = {"general": B, "symmetric": B + B.T, "skew-symmetric": B - B.T, "hermitian": B + B.conj().T}[symmetry]
    kept = [full[i, j] for j in range(n) for i in range(n)
            if symmetry == "general" or i > j or (i == j and symmetry != "skew-symmetric")]
    field = "complex" if is_complex else "real"
    path = tmp_path_factory.mktemp("mm") / "A.mtx"
    path.write_text("\n".join([f"{ARRAY}{field} {symmetry}", f"{n} {n}", *(spelled(field, v) for v in kept), ""]))
    A, notes = read_matrix_with_notes(path)
    assert_canonical(A)
    np.testing.assert_array_equal(A.toarray(), full)
    assert A.nnz == np.count_nonzero(full) and "dense storage" in notes[0]


@pytest.mark.parametrize("spelling, value", [
    ("1.5D+02", 150.0), ("-2.5d-1", -0.25), ("+3", 3.0), ("+.5E+01", 5.0), ("7.", 7.0), ("NaN", np.nan),
    ("-Infinity", -np.inf), ("1e-310", 1e-310)])
def test_spellings_of_numbers(write, spelling, value):
    A = read_matrix(write(f"{COORDINATE}real general\n1 1 1\n1 1 {spelling}\n"))
    np.testing.assert_array_equal(A.data, [value])


@pytest.mark.parametrize("text", [
    "%%MATRIXMARKET MATRIX Coordinate REAL General\n1 1 1\n1 1 2\n",
    f"{COORDINATE}double general\n% c\n\n%\n 1  1\t1 \n\n\n  1\t1  2  ",
    f"{COORDINATE}integer general\n1 1 1\n1 1 2\n\n  \n\t\n",
    f"  {COORDINATE}integer general\r\n\r\n1 1 1\r\n\r\n1 1 2\r\n \r\n"])
def test_lenient_where_nothing_is_lost(write, text):
    assert read_matrix(write(text)).toarray() == [[2.0]]


def test_notes_are_sentences_with_counts(write):
    A, notes = read_matrix_with_notes(write(f"{COORDINATE}real symmetric\n2 2 4\n1 1 1\n2 1 1\n2 1 2\n2 2 4\n"))
    assert notes == ["1 duplicate entry was summed", "symmetric storage expanded to 4 entries"]
    assert A.toarray().tolist() == [[1, 3], [3, 4]]


GENERAL = f"{COORDINATE}real general\n"
BAD = {
    "empty": ("", "is empty.*write or fetch it again"),
    "only white space": ("\n \n", "is empty"),
    "no header": ("2 2 1\n1 1 1.0\n", "without a Matrix Market header.*first line must be a header"),
    "byte-order mark": ("\ufeff" + GENERAL + "1 1 1\n1 1 1\n", "byte-order mark.*plain ASCII"),
    "another format": ("<!DOCTYPE html><p>404", "a web page.*fetch the file itself"),
    "a pointer": ("version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
    "words missing": ("%%MatrixMarket matrix coordinate real\n1 1 1\n1 1 1\n", "line 1.*4 words, expected 5.*Mend"),
    "unknown word": (f"{COORDINATE}quaternion general\n1 1 1\n1 1 1\n", "line 1: 'quaternion' came, expected real or"),
    "a vector object": ("%%MatrixMarket vector array real general\n1\n1\n", "'vector' came, expected matrix"),
    "pattern array": (f"{ARRAY}pattern general\n1 1\n", "does not exist.*'coordinate'"),
    "no sizes": (GENERAL + "% only comments\n", "truncated.*line of sizes"),
    "two sizes": (GENERAL + "2 2\n1 1 1\n", "line 2.*expected 3 integers"),
    "negative size": (GENERAL + "-2 2 1\n1 1 1\n", "line 2.*expected 3 integers"),
    "symmetric and not square": (f"{COORDINATE}real symmetric\n2 3 1\n1 1 1\n", "not square.*'general'"),
    "too few": (GENERAL + "2 2 3\n1 1 1.0\n2 2 2.0\n", "ends after 2 of 3 entries.*Fetch it again, or mend the count"),
    "cut in a line": (GENERAL + "2 2 2\n1 1 1.0\n2 2", "line 4: '2 2' breaks off.*Fetch"),
    "too many": (GENERAL + "2 2 1\n1 1 1.0\n2 2 2.0\n", "line 4.*1 entries that line 2.*remove what follows"),
    "row zero": (GENERAL + "2 2 1\n0 1 1.0\n", "line 3.*row 0 is outside 1 to 2.*start at 1"),
    "row beyond": (GENERAL + "2 2 2\n1 1 1\n3 1 1.0\n", "line 4.*row 3 is outside 1 to 2.*sizes in line 2"),
    "column beyond": (GENERAL + "2 2 1\n1 99999999999999999999 1.0\n", "column 99999999999999999999 is outside"),
    "index not whole": (GENERAL + "2 2 1\n1.0 1 1.0\n", "the row '1.0' is not a positive integer"),
    "word": (GENERAL + "2 2 1\n1 1 abc\n", "line 3.*'abc' is not a number"),
    "word after number": (GENERAL + "2 2 1\n1 1 1.5abc\n", "'1.5abc' is not a number"),
    "exponent without E": (GENERAL + "2 2 1\n1 1 1.0-103\n", "'1.0-103' is not a number"),
    "hexadecimal": (GENERAL + "2 2 1\n1 1 0x10\n", "'0x10' is not a number"),
    "comma": (GENERAL + "2 2 1\n1 1 1,5\n", "'1,5' is not a number"),
    "two dots": (GENERAL + "2 2 1\n1 1 1.5.5x\n", "'1.5.5x' is not a number"),
    "form feed": (GENERAL + "2 2 1\n1\f1 1\n", "characters other than.*plain ASCII"),
    "comment inside": (GENERAL + "2 2 2\n1 1 1\n% x\n2 2 1\n", "line 4.*comment among the entries.*Move it"),
    "real with complex columns": (GENERAL + "2 2 2\n1 1 1 0\n2 2 1 0\n", "4 numbers.*'complex' in place of 'real'"),
    "complex with real columns": (f"{COORDINATE}complex general\n1 1 1\n1 1 1\n", "'real' in place of 'complex'"),
    "pattern with values": (f"{COORDINATE}pattern general\n1 1 1\n1 1 1\n", "'real' in place of 'pattern'"),
    "real without values": (GENERAL + "2 2 2\n1 1\n2 2\n", "'pattern' in place of 'real'"),
    "symmetric, both triangles": (f"{COORDINATE}real symmetric\n2 2 2\n2 1 1\n1 2 1\n",
                                  "entry 2 of the list, at row 1, column 2, lies above the diagonal.*'general'"),
    "skew with diagonal": (f"{COORDINATE}real skew-symmetric\n2 2 1\n2 2 1\n", "on the diagonal, which is zero"),
    "hermitian, complex diagonal": (f"{COORDINATE}complex hermitian\n1 1 1\n1 1 1 1\n", "not real.*'symmetric'"),
    "more entries than bytes": (GENERAL + "2 2 999999999\n1 1 1\n", "cannot hold them.*fetch it again or mend"),
    "rows beyond memory": (GENERAL + "9999999999999 1 1\n1 1 1\n", "nearly all its rows.*Mend the sizes"),
    "array too short": (f"{ARRAY}real general\n3 1\n1\n2\n", "ends after 2 of 3 entries"),
    "array too long": (f"{ARRAY}real general\n1 1\n1\n2\n", "follows the 1 entries"),
    "array beyond file": (f"{ARRAY}real general\n100000 100000\n1\n", "cannot hold them"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files_name_the_fault_and_the_remedy(write, case):
    text, message = BAD[case]
    path = write(text)
    with pytest.raises(InputError, match=message) as caught:
        read_matrix(path)
    assert str(path) in str(caught.value)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from([text for text, _ in BAD.values() if len(text) > 30]), st.data())
def test_damage_never_escapes_as_another_error(tmp_path_factory, text, data):
    """SciPy's reader alone crashes the process on some of these."""
    content = bytearray(text.encode())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(15, len(content)))
        piece = data.draw(st.sampled_from([b" ", b"\n", b"\r", b"\0", b"9", b"-", b".e", b"%", b"\xff", b"1 1 1\n"]))
        content[at:at + data.draw(st.integers(0, 3))] = piece
    require_own_errors(tmp_path_factory.mktemp("mm") / "A.mtx", bytes(content))


@pytest.mark.parametrize("end", ["", " ", "  ", "\n", "\n ", "\r\n\r\n"])
def test_every_end_of_file(write, end):
    assert read_matrix(write(GENERAL + "1 1 1\n1 1 2" + end)).toarray() == [[2.0]]


def test_sizes_are_checked_before_anything_is_allocated(write, monkeypatch):
    monkeypatch.setattr(memory, "free", lambda: 1000)
    with pytest.raises(OutOfMemory, match="declares 30 entries.*Check the sizes"):
        read_matrix(write(GENERAL + "9 9 30\n" + "1 1 1\n" * 30))
    with pytest.raises(OutOfMemory, match="a dense 90 x 9 array"):
        read_vector(write(GENERAL + "90 9 1\n1 1 1\n"))


def test_places_that_hold_no_file(tmp_path):
    with pytest.raises(InputError, match="does not exist; check the name"):
        read_matrix(tmp_path / "absent.mtx")
    with pytest.raises(InputError, match="is a folder; name a file in it"):
        read_matrix(tmp_path)


@pytest.mark.parametrize("given", [None, 3, sp.eye_array(2), np.ones(2)])
def test_what_is_no_path(given):
    from swell.pde.fvm import read_mesh
    for read in (read_matrix, read_vector, read_mesh, lambda path: write_vector(path, np.ones(2))):
        with pytest.raises(InputError, match=f"a path is expected.*{type(given).__name__}"):
            read(given)


def test_compression_is_checked(tmp_path):
    text = (GENERAL + "300 1 300\n" + "".join(f"{i} 1 {i / 7}\n" for i in range(1, 301))).encode()
    packed = gzip.compress(text)
    damaged = bytearray(packed)
    damaged[len(packed) // 2] ^= 0xFF
    for name, content, message in [
            ("cut.mtx.gz", packed[:-200], "truncated.*Fetch or copy it again"),
            ("flipped.mtx.gz", bytes(damaged), "again"),
            ("plain.mtx.gz", text, "looks uncompressed.*Rename it to plain.mtx"),
            ("packed.mtx", packed, "looks gz-compressed.*Rename it to packed.mtx.gz"),
            ("other.mtx.gz", bz2.compress(text), "looks bz2-compressed"),
            ("npy.npy.gz", gzip.compress(b"\x93NUMPY\x01\x00"), "decompress it first")]:
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(InputError, match=message):
            read_matrix(path)


def test_unknown_extension_is_read_by_content(write):
    assert read_matrix(write(GENERAL + "1 1 1\n1 1 2\n", "matrix.dat")).toarray() == [[2.0]]


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 8), st.integers(1, 3), st.booleans(), st.sampled_from([".mtx", ".txt", ".npy"]), st.data())
def test_vectors_round_trip_exactly(tmp_path_factory, n, k, is_complex, extension, data):
    parts = data.draw(st.lists(numbers, min_size=2 * n * k, max_size=2 * n * k))
    x = np.array(parts[:n * k]).reshape(n, k)
    if is_complex:
        x = x.astype(complex)
        x.imag = np.array(parts[n * k:]).reshape(n, k)
    if k == 1:
        x = x[:, 0]
    folder = tmp_path_factory.mktemp("vector")
    write_vector(folder / f"x{extension}", x)
    y = read_vector(folder / f"x{extension}")
    assert y.shape == x.shape and y.dtype == x.dtype
    np.testing.assert_array_equal(y, x)
    assert [path.name for path in folder.iterdir()] == [f"x{extension}"]


def test_sparse_vector_reads_as_dense(write):
    x = read_vector(write(GENERAL + "4 1 2\n4 1 2.5\n1 1 1\n", "b.mtx"))
    assert x.tolist() == [1, 0, 0, 2.5]


@pytest.mark.parametrize("text, message", [
    ("1.0\ntwo\n", r"not a vector in plain text.*'two'[^.]*\. Expected one number a line"),
    ("1 2\n3\n", "number of columns changed"), ("# nothing\n", "holds no number")])
def test_bad_text_vectors(write, text, message):
    with pytest.raises(InputError, match=message):
        read_vector(write(text, "b.txt"))


def test_text_is_no_matrix(write):
    with pytest.raises(InputError, match="scipy.io.mmwrite"):
        read_matrix(write("1 2\n3 4\n", "A.txt"))


def test_failed_write_leaves_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "x.npy"
    write_vector(path, [1.0, 2.0])

    def interrupted(stream, x):
        stream.write(b"half")
        raise KeyboardInterrupt
    monkeypatch.setattr("swell.io.npy.write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_vector(path, [3.0, 4.0])
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.npy"]
    assert read_vector(path).tolist() == [1.0, 2.0]


@pytest.mark.parametrize("name, x, message", [
    ("x.csv", [1.0], "End the name in .npy, .mtx or .txt"), ("x", [1.0], "extension is missing"),
    ("no/folder/x.npy", [1.0], "is not a folder. Make it first"), ("x.npy", ["a"], "expected numbers"),
    ("x.npy", np.zeros((2, 2, 2)), "expected \\(n,\\) or \\(n, k\\)"), ("x.npy", 1.0, "Reshape")])
def test_bad_writes(tmp_path, name, x, message):
    with pytest.raises(InputError, match=message):
        write_vector(tmp_path / name, x)


@pytest.mark.data
@pytest.mark.skipif(not REAL_MATRICES, reason=f"no real matrices in {DATA}; set SWELL_DATA")
def test_real_matrices_equal_scipy():
    for path in REAL_MATRICES:
        A = read_matrix(path)
        B = scipy.io.mmread(path).tocsr()
        assert A.shape == B.shape and A.dtype == (np.complex128 if B.dtype.kind == "c" else np.float64), path
        assert np.array_equal(A.indptr, B.indptr) and np.array_equal(A.indices, B.indices), path
        assert np.array_equal(A.data, B.data), path


def test_a_square_sparse_matrix_is_no_vector(tmp_path):
    path = tmp_path / "A.mtx"
    path.write_text(f"{COORDINATE}real general\n3 3 1\n1 1 2\n")
    with pytest.raises(InputError, match="sparse matrix of shape .3, 3., expected a vector.*read_matrix"):
        read_vector(path)
