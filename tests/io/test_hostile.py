"""Files that ask for far more memory or time than their size: refused by name, after little of either."""
from __future__ import annotations

import bz2
import gzip
import io
import signal
import subprocess
import sys
import tracemalloc
import zipfile
from contextlib import contextmanager

import numpy as np
import pytest
import scipy.sparse as sp

from swell.core import memory
from swell.core.errors import InputError, OutOfMemory
from swell.io import files, matrix_market, petsc, read_matrix, read_vector, rows

GENERAL = b"%%MatrixMarket matrix coordinate real general\n"
MANY = 300_000_000


@contextmanager
def little_memory(limit=8 << 20):
    """Fail if what runs within allocates more than `limit` bytes, of NumPy's arrays and Python's objects."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < limit
    finally:
        tracemalloc.stop()


def npy(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def npz_of(**arrays):
    """An archive of arrays; bytes go into it as they are."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            archive.writestr(f"{name}.npy", array if isinstance(array, bytes) else npy(np.asarray(array)))
    return stream.getvalue()


def header(shape, dtype="<f8"):
    """The beginning of an array in NumPy's format, without its values."""
    text = repr({"descr": dtype, "fortran_order": False, "shape": shape}).ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


def petsc_of(*numbers):
    return np.array(numbers, ">i4").tobytes()


EMPTY_ROWS = {
    "A.mtx": GENERAL + b"%d %d 1\n1 1 1\n" % (MANY, MANY),
    "columns.mtx": GENERAL + b"1 %d 1\n1 1 1\n" % MANY,
    "A.mtx.gz": gzip.compress(GENERAL + b"%d %d 1\n1 1 1\n" % (MANY, MANY)),
    "A.mtx.bz2": bz2.compress(GENERAL + b"%d %d 1\n1 1 1\n" % (MANY, MANY)),
    "symmetric.mtx": b"%%%%MatrixMarket matrix coordinate real symmetric\n%d %d 1\n1 1 1\n" % (MANY, MANY),
    "array.mtx": b"%%%%MatrixMarket matrix array real general\n%d 0\n" % MANY,
    "coo.npz": npz_of(format="coo", shape=[MANY, MANY], row=[0], col=[0], data=[1.0]),
    "csc.npz": npz_of(format="csc", shape=[MANY, 1], indptr=[0, 1], indices=[0], data=[1.0]),
    "dia.npz": npz_of(format="dia", shape=[MANY, MANY], offsets=[0], data=[[1.0]]),
    "A.npy": header((MANY, 0)),
    "dense.petsc": petsc_of(1211216, MANY, 0, -1),
}


@pytest.mark.parametrize("name", EMPTY_ROWS)
def test_far_more_rows_than_entries(tmp_path, name):
    (tmp_path / name).write_bytes(EMPTY_ROWS[name])
    with little_memory(), pytest.raises(InputError, match=f"{name} declares .*{MANY}.* empty, so that it is singular"):
        read_matrix(tmp_path / name)


def test_many_empty_rows_are_no_fault_of_their_own(tmp_path):
    (tmp_path / "A.mtx").write_bytes(GENERAL + b"900000 900000 1\n1 1 1\n")
    assert read_matrix(tmp_path / "A.mtx").shape == (900_000, 900_000)
    (tmp_path / "b.mtx").write_bytes(GENERAL + b"2000000 1 1\n3 1 1\n")         # a load at one point
    assert read_vector(tmp_path / "b.mtx").sum() == 1


@pytest.mark.parametrize("name", ["A.mtx", "A.mtx.gz"])
def test_far_more_rows_than_entries_in_parts(tmp_path, name):
    (tmp_path / name).write_bytes(EMPTY_ROWS[name])
    with little_memory(), pytest.raises(InputError, match="so that it is singular"):
        rows.open_rows(tmp_path / name)


@pytest.fixture
def small_limits(monkeypatch):
    """The same limits, for files that are made quickly."""
    monkeypatch.setattr(files, "LONGEST_LINE", 1 << 12)
    monkeypatch.setattr(matrix_market, "_MOST_COMMENTS", 1 << 16)


LONG = 12 << 20
PADDED = {
    "a comment": (b"%" + b"x" * LONG + b"\n1 1 1\n1 1 1\n", "line 2: the line has more than 4096 bytes"),
    "comments": (b"% x\n" * (LONG // 4) + b"1 1 1\n1 1 1\n", "more than 65536 bytes of text"),
    "blank lines": (b"\n" * LONG + b"1 1 1\n1 1 1\n", "more than 65536 bytes of text"),
    "a line of sizes": (b"1" * LONG, "line 2: the line has more than 4096 bytes"),
    "blanks after the entries": (b"1 1 1\n1 1 1\n" + b" " * LONG, "more than 68608 bytes of text"),
    "a number": (b"1 1 1\n1 1 " + b"1" * LONG + b"\n", "more than 68608 bytes of text"),
    "entries": (b"1 1 1\n" + b"1 1 1\n" * (LONG // 6), "more than 68608 bytes of text"),
    "a wrong line": (b"1 1 1\n1 1 x" + b"1" * LONG + b"\n", "more than 4096 bytes"),
}


@pytest.mark.parametrize("name, pack, ending", [*((name, gzip.compress, ".gz") for name in PADDED),
                                                ("a comment", bz2.compress, ".bz2")])
def test_text_that_is_mostly_padding(tmp_path, small_limits, name, pack, ending):
    content, message = PADDED[name]
    path = tmp_path / f"A.mtx{ending}"
    path.write_bytes(pack(GENERAL + content))
    with little_memory(), pytest.raises(InputError, match=message):
        read_matrix(path)


@pytest.mark.parametrize("name", ["blanks after the entries", "a number", "entries"])
def test_padding_in_parts(tmp_path, small_limits, monkeypatch, name):
    monkeypatch.setattr(rows, "PIECE", 1 << 14)
    (tmp_path / "A.mtx.gz").write_bytes(gzip.compress(GENERAL + PADDED[name][0]))
    source = rows.open_rows(tmp_path / "A.mtx.gz")
    with little_memory(), pytest.raises(InputError, match="bytes of text|not a number|1 entries"):
        source.share(0, 1, [0, 1])


def test_a_text_vector_that_is_mostly_padding(tmp_path, small_limits, monkeypatch):
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(b"1\n# " + b"x" * LONG))
    with little_memory(), pytest.raises(InputError, match="line 2: the line has more than 4096 bytes"):
        read_vector(tmp_path / "b.txt.gz")
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(b"1.5\n" * 10_000))
    assert read_vector(tmp_path / "b.txt.gz").shape == (10_000,)
    monkeypatch.setattr(memory, "free", lambda: 100_000)
    with pytest.raises(InputError, match="more than 12500 bytes of text"):
        read_vector(tmp_path / "b.txt.gz")


def test_a_zip_bomb_is_not_inflated(tmp_path, monkeypatch):
    sp.save_npz(tmp_path / "A.npz", sp.csr_matrix(np.zeros((3, 3))))
    bomb = npz_of(format="csr", shape=[3, 3], indptr=np.zeros(4), indices=np.zeros(LONG, np.int8), data=np.zeros(LONG // 8))
    (tmp_path / "A.npz").write_bytes(bomb)
    (tmp_path / "x.npz").write_bytes(npz_of(x=np.zeros(LONG // 8)))
    monkeypatch.setattr(memory, "free", lambda: 10 << 20)
    for read, name in ((read_matrix, "A.npz"), (read_vector, "x.npz")):
        with little_memory(), pytest.raises(OutOfMemory, match=f"{name} declares arrays of .* bytes"):
            read(tmp_path / name)
    (tmp_path / "A.npz").write_bytes(npz_of(format="csr", shape=[3, 3], indptr=np.zeros(LONG // 8)))
    with little_memory(), pytest.raises(OutOfMemory):
        rows.open_rows(tmp_path / "A.npz")


def lying(content, name, size):
    """The archive with another uncompressed size of a member, in its central directory."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        true = archive.getinfo(f"{name}.npy").file_size
    at = content.rindex(b"PK\x01\x02", 0, content.rindex(f"{name}.npy".encode()))
    assert content[at + 24:at + 28] == true.to_bytes(4, "little")
    return content[:at + 24] + size.to_bytes(4, "little") + content[at + 28:]


@pytest.mark.parametrize("content", [
    lying(npz_of(x=np.ones(5)), "x", 2**31), npz_of(x=header((10**12,))), npz_of(x=header((10**12,)) + bytes(1000)),
    npz_of(x=b"\x93NUMPY\x02\x00" + (2**31).to_bytes(4, "little") + b" " * 1000)],
    ids=["the directory's size", "a shape", "a shape and some bytes", "a header"])     # the bytes hold the time of day
def test_an_archive_that_lies_about_sizes(tmp_path, content):
    (tmp_path / "x.npz").write_bytes(content)
    with little_memory(), pytest.raises(InputError, match="x.npz.* Fetch (it|the file) again"):
        read_vector(tmp_path / "x.npz")


def test_arrays_larger_than_what_is_free(tmp_path, monkeypatch):
    np.save(tmp_path / "x.npy", np.ones(1000))
    (tmp_path / "x.petsc").write_bytes(petsc_of(1211214, 1000) + np.ones(1000, ">f8").tobytes())
    (tmp_path / "A.petsc").write_bytes(petsc_of(1211216, 100, 1, 100, *[1] * 100, *[0] * 100)
                                       + np.ones(100, ">f8").tobytes())
    monkeypatch.setattr(memory, "free", lambda: 1000)
    for read, name in ((read_vector, "x.npy"), (read_vector, "x.petsc"), (read_matrix, "A.petsc")):
        with pytest.raises(OutOfMemory, match=f"{name} declares"):
            read(tmp_path / name)


def test_a_petsc_file_of_many_empty_objects(tmp_path, monkeypatch):
    monkeypatch.setattr(petsc, "_MOST_OBJECTS", 20)
    (tmp_path / "A.petsc").write_bytes(petsc_of(1211214, 0) * 30)
    with pytest.raises(InputError, match="more than 20 PETSc objects"):
        read_matrix(tmp_path / "A.petsc")


def test_names_that_no_file_can_have(tmp_path):
    (tmp_path / "circle").symlink_to("circle")
    (tmp_path / "folder").symlink_to("folder")
    for name, words in (("a\0b", "NUL character"), ("a" * 5000, "File name too long"),
                        ("a/" * 2500 + "b", "File name too long"), ("circle", "Too many levels of symbolic links"),
                        ("folder/A.mtx", "Too many levels of symbolic links")):
        from swell.io import write_vector
        for use in (read_matrix, read_vector, lambda path: write_vector(f"{path}.npy", np.ones(2))):
            if name == "circle" and use not in (read_matrix, read_vector):
                continue                         # circle.npy is another name
            with pytest.raises(InputError, match=words) as caught:
                use(f"{tmp_path}/{name}")
            assert len(str(caught.value)) < 400


@pytest.mark.parametrize("name", ["SIGTERM", "SIGKILL"])
def test_a_write_that_is_ended_leaves_nothing(tmp_path, name):
    """SIGKILL, which no process can answer, leaves the unfinished file; the one that was there stays as it was."""
    program = ("import os, signal, sys\nfrom pathlib import Path\nfrom swell.io.files import write_atomically\n"
               "def write(stream):\n    stream.write(b'half')\n    stream.flush()\n"
               f"    os.kill(os.getpid(), signal.{name})\n"
               "write_atomically(Path(sys.argv[1]), write)\n")
    (tmp_path / "x.npy").write_bytes(b"before")
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path / "x.npy")], capture_output=True, text=True)
    assert done.returncode == -getattr(signal, name), done.stderr        # as without a handler
    assert (tmp_path / "x.npy").read_bytes() == b"before"
    assert len(list(tmp_path.iterdir())) == (1 if name == "SIGTERM" else 2)


def test_handlers_of_signals_stay(tmp_path):
    heard = []
    before = signal.signal(signal.SIGTERM, lambda *_: heard.append(1))
    try:
        files.write_atomically(tmp_path / "x.txt", lambda stream: signal.raise_signal(signal.SIGTERM))
    finally:
        signal.signal(signal.SIGTERM, before)
    files.write_atomically(tmp_path / "x.txt", lambda stream: None)
    assert heard == [1] and signal.getsignal(signal.SIGTERM) is before


def test_the_longest_name_can_be_written(tmp_path):
    files.write_atomically(tmp_path / ("x" * 255), lambda stream: stream.write(b"1"))
    assert [path.name for path in tmp_path.iterdir()] == ["x" * 255]


@pytest.mark.parametrize("arrays, words", [
    ({"indices": np.array([0.9, 1.9]), "indptr": [0, 1, 2], "data": np.ones(2)}, "'indices' has dtype float64, expected integers"),
    ({"indices": np.zeros(5, int), "indptr": [0, 1, 2], "data": np.zeros(10**7)}, r"'indices' has shape \(5,\) beside 10000000"),
    ({"indices": [0, 1], "indptr": np.array([0, 1, 2.5]), "data": np.ones(2)}, "'indptr' has dtype float64")])
def test_indices_are_checked_before_anything_is_inflated(tmp_path, arrays, words):
    (tmp_path / "A.npz").write_bytes(npz_of(**arrays, shape=[2, 2], format=np.array(b"csr")))
    with little_memory(), pytest.raises(InputError, match=words):
        read_matrix(tmp_path / "A.npz")


@pytest.mark.parametrize("lines, words", [
    (b"%b 3 1\n1 1 1\n" % (b"9" * 5000), "line 2: the sizes are '9+"),
    (b"3 3 1\n%b 1 1\n" % (b"9" * 5000), r"line 3: .* row '?9+.* is outside 1 to 3"),
    (b"3 3 1\n1 1 %bx\n" % (b"1" * 1_000_000), "line 3: .* is not a number")])     # 10^12 steps with an expression that
def test_numbers_of_very_many_digits(tmp_path, lines, words):                      # gives back what it took
    (tmp_path / "A.mtx").write_bytes(GENERAL + lines)
    with pytest.raises(InputError, match=words):
        read_matrix(tmp_path / "A.mtx")


def test_a_format_of_very_wide_lines(tmp_path):
    lines = [b"title".ljust(72) + b"key", b" 3 1 1 1 0", b"RUA 1 1 1 0", b"(999999999I9)   (1I9)           (1E20.12)",
             b"1 2x", b"1", b"1.0"]
    (tmp_path / "A.rua").write_bytes(b"\n".join(lines) + b"\n")
    with pytest.raises((InputError, OutOfMemory)):
        read_matrix(tmp_path / "A.rua")
