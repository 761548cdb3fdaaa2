"""Matrices from files of other programs, and arrays of any library: x comes back as b came."""
import tempfile
from pathlib import Path

import array_api_strict as xp
import h5py
import numpy as np
import scipy.io
import scipy.sparse as sp
import sparse

import swell

A = sp.csr_array(swell.gallery.convection_diffusion((12, 12), 4.0))
n = A.shape[0]
x = np.linspace(0, 1, n)
b = A @ x

with tempfile.TemporaryDirectory() as name:
    folder = Path(name)

    # Matlab's variables have names. One sparse matrix and one vector need none.
    scipy.io.savemat(folder / "system.mat", {"A": A, "b": b})
    print(swell.solve(swell.read_matrix(folder / "system.mat"), swell.read_vector(folder / "system.mat")))

    # Of several, name= chooses one. The error lists them.
    scipy.io.savemat(folder / "two.mat", {"K": A, "M": sp.eye_array(n)})
    try:
        swell.read_matrix(folder / "two.mat")
    except swell.InputError as error:
        print(str(error).partition(": ")[2])
    assert abs(swell.read_matrix(folder / "two.mat", name="K") - A).max() == 0

    # The raw arrays of a matrix, and Harwell-Boeing, whose numbers are text.
    np.savez(folder / "raw.npz", data=A.data, indices=A.indices, indptr=A.indptr)
    found, notes = swell.io.read_matrix_with_notes(folder / "raw.npz")
    print(notes)
    scipy.io.hb_write(folder / "A.rua", A)
    assert abs(found - A).max() == 0 and abs(swell.read_matrix(folder / "A.rua") - A).max() < 1e-14

    # HDF5: a sparse matrix as Matlab 7.3 lays it out, by columns; a vector as PETSc's VecView does.
    columns = A.tocsc()
    with h5py.File(folder / "system.h5", "w") as file:
        group = file.create_group("A")
        group.attrs["MATLAB_sparse"] = n
        group["jc"], group["ir"], group["data"] = columns.indptr, columns.indices, columns.data
        file["b"] = b
    assert abs(swell.read_matrix(folder / "system.h5") - A).max() == 0
    assert np.array_equal(swell.read_vector(folder / "system.h5"), b)

# An array of a library that swell does not know. The array API standard and DLPack are enough.
r = swell.solve(A, xp.asarray(b))
print(type(r.x))
assert isinstance(r.x, type(xp.asarray(b))) and np.allclose(np.from_dlpack(r.x), x)

# Sparse matrices of other libraries, and three arrays in CSR.
for matrix in (sparse.COO.from_scipy_sparse(A), sparse.GCXS.from_scipy_sparse(A), (A.data, A.indices, A.indptr)):
    assert np.allclose(swell.solve(matrix, b).x, x)

# Half precision is refused. Who wants it converted says so.
try:
    swell.solve(A, b.astype(np.float16))
except swell.InputError as error:
    print(error)
