"""HDF5: Matlab's version 7.3, PETSc's vectors, and plain datasets. h5py writes each layout as its program does."""
import builtins

import numpy as np
import pytest
import scipy.sparse as sp

from swell.core.errors import InputError, MissingDependency, OutOfMemory
from swell.io import read_matrix, read_matrix_with_notes, read_vector

h5py = pytest.importorskip("h5py", reason="HDF5 needs h5py: pip install 'swell[files]'")

A = sp.random_array((5, 4), density=0.5, rng=np.random.default_rng(0)).tocsc()
B = np.arange(1.0, 5.0)
PAIR = [("real", "f8"), ("imag", "f8")]


def matlab(path, **variables):
    """Write variables as ``save -v7.3`` does: a user block, groups for sparse matrices, dense arrays transposed."""
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, value in variables.items():
            put(file, name, value)
    with open(path, "r+b") as stream:
        stream.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM")
    return path


def put(group, name, value):
    if isinstance(value, dict):
        inner = group.create_group(name)
        inner.attrs["MATLAB_class"] = np.bytes_("struct")
        for key, one in value.items():
            put(inner, key, one)
    elif sp.issparse(value):
        value, inner = value.tocsc(), group.create_group(name)
        inner.attrs["MATLAB_sparse"], inner.attrs["MATLAB_class"] = np.uint64(value.shape[0]), np.bytes_("double")
        inner["jc"] = value.indptr.astype(np.uint64)
        if value.nnz:
            inner["ir"], inner["data"] = value.indices.astype(np.uint64), pairs(value.data)
    elif isinstance(value, str):
        group[name] = np.frombuffer(value.encode("utf-16-le"), np.uint16)[:, None]
        group[name].attrs["MATLAB_class"] = np.bytes_("char")
    else:
        group[name] = pairs(np.atleast_2d(value).T)
        group[name].attrs["MATLAB_class"] = np.bytes_("double")


def pairs(values):
    """Complex numbers as Matlab stores them."""
    if values.dtype.kind != "c":
        return values
    return np.stack([values.real, values.imag], axis=-1).view(np.dtype(PAIR))[..., 0]


@pytest.mark.parametrize("matrix", [A, (1 + 2j) * A, sp.csc_array((3, 4)), A.toarray(), 1j * A.toarray()],
                         ids=["sparse", "complex", "empty", "dense", "dense complex"])
def test_matlabs_matrices_round_trip(tmp_path, matrix):
    expected = matrix.toarray() if sp.issparse(matrix) else matrix
    found = read_matrix(matlab(tmp_path / "A.mat", A=matrix))
    assert found.format == "csr" and found.dtype.name == ("complex128" if expected.dtype.kind == "c" else "float64")
    assert found.indices.dtype == np.int32
    np.testing.assert_array_equal(found.toarray(), expected)


@pytest.mark.parametrize("x", [B, 1j * B, B[:, None], np.arange(8.0).reshape(4, 2)],
                         ids=["row", "complex", "column", "two"])
def test_matlabs_vectors_round_trip(tmp_path, x):
    found = read_vector(matlab(tmp_path / "b.mat", A=A, b=x))
    np.testing.assert_array_equal(found, x[:, 0] if x.shape == (4, 1) else x)


def test_names_structs_and_the_suitesparse_collection(tmp_path):
    path = matlab(tmp_path / "s.mat", Problem={"A": A, "Zeros": 2 * A, "b": B[:, None], "title": "text"})
    np.testing.assert_array_equal(read_matrix(path).toarray(), A.toarray())
    np.testing.assert_array_equal(read_vector(path), B)
    np.testing.assert_array_equal(read_matrix(path, name="Problem.Zeros").toarray(), 2 * A.toarray())
    path = matlab(tmp_path / "s.mat", K=A, M=2 * A, title="text")
    with pytest.raises(InputError, match=r"several matrices.*s.mat:NAME.*: K \(5 x 4, sparse\), M \(5 x 4, sparse\)\."):
        read_matrix(path)


@pytest.mark.parametrize("x", [B, 1j * B + 2], ids=["real", "complex"])
def test_petscs_vectors_round_trip(tmp_path, x):
    path = tmp_path / "b.h5"
    with h5py.File(path, "w") as file:           # as VecView does: complex numbers in a last dimension of 2
        file["fields/b"] = np.stack([x.real, x.imag], axis=-1) if x.dtype.kind == "c" else x
        if x.dtype.kind == "c":
            file["fields/b"].attrs["complex"] = 1
        file["fields/step"] = x.real[None]
        file["fields/step"].attrs["timestepping"] = 1
        file["fields/steps"] = np.ones((3, 4))
        file["fields/steps"].attrs["timestepping"] = 1
    np.testing.assert_array_equal(read_vector(path, "fields/b"), x)
    np.testing.assert_array_equal(read_vector(path, "fields/step"), x.real)
    with pytest.raises(InputError, match="3 time steps, expected one vector"):
        read_vector(path, "fields/steps")
    with pytest.raises(InputError, match=r"several vectors.*fields/b \(4\), fields/step \(4\)"):
        read_vector(path)


def test_plain_datasets_are_read_as_they_lie(tmp_path):
    with h5py.File(tmp_path / "s.h5", "w") as file:
        file["A"], file["b"] = A.toarray(), B
        file["text"] = "hello"
    found, notes = read_matrix_with_notes(tmp_path / "s.h5")
    np.testing.assert_array_equal(found.toarray(), A.toarray())
    assert notes == [f"dense storage: {A.nnz} of 20 entries are not zero and were kept"]
    np.testing.assert_array_equal(read_vector(tmp_path / "s.h5"), B)


BAD = {
    "index outside": (lambda group: group["ir"].write_direct(np.full(A.nnz, 9, np.uint64)), "damaged.*save -v7.3"),
    "pointers decrease": (lambda group: group["jc"].write_direct(np.array([0, 9, 1, 1, 1], np.uint64)), "damaged"),
    "no pointers": (lambda group: group.pop("jc"), "no pointers jc"),
    "no rows of entries": (lambda group: group.pop("ir"), "damaged.*ir"),
    "values that are text": (lambda group: (group.pop("data"), group.create_dataset("data", data="text")), "damaged"),
    "absurd rows": (lambda group: group.attrs.modify("MATLAB_sparse", np.uint64(10**15)), "declares 10{15} x 4"),
}


@pytest.mark.parametrize("case", BAD)
def test_damaged_groups(tmp_path, case):
    damage, message = BAD[case]
    path = matlab(tmp_path / "A.mat", A=A)
    with h5py.File(path, "r+") as file:
        damage(file["A"])
    with pytest.raises(InputError, match=message):
        read_matrix(path)


def test_a_small_file_cannot_declare_a_large_array(tmp_path):
    with h5py.File(tmp_path / "A.h5", "w") as file:
        file.create_dataset("A", (1 << 24, 1 << 24), "f8", chunks=(1 << 10, 1 << 10))
    with pytest.raises(OutOfMemory, match="an array of shape"):
        read_matrix(tmp_path / "A.h5")


@pytest.mark.parametrize("keep", [0.3, 0.7, 0.95])
def test_truncated(tmp_path, keep):
    path = matlab(tmp_path / "A.mat", A=sp.random_array((40, 40), density=0.3, rng=np.random.default_rng(1)))
    content = path.read_bytes()
    path.write_bytes(content[:int(keep * len(content))])
    with pytest.raises(InputError, match="A.mat is damaged, truncated.*Fetch it again"):
        read_matrix(path)


def test_nothing_to_read(tmp_path):
    with h5py.File(tmp_path / "A.h5", "w") as file:
        file["text"] = "hello"
    with pytest.raises(InputError, match="holds no matrix, sparse or dense. It holds no array of numbers"):
        read_matrix(tmp_path / "A.h5")


def test_without_h5py_the_message_installs_it(tmp_path, monkeypatch):
    path = matlab(tmp_path / "A.mat", A=A)
    load = builtins.__import__
    def missing(name, *rest):
        if name == "h5py":
            raise ImportError("No module named 'h5py'")
        return load(name, *rest)
    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(MissingDependency, match=r"A.mat is an HDF5 file, which h5py reads .*pip install 'swell\[files"):
        read_matrix(path)
