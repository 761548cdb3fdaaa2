"""What users bring: every kind of matrix and vector is taken, and every kind of nonsense is one clear InputError."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spla
from tests.support.cases import rng
from tests.conftest import DTYPES, space_or_skip

import swell
from swell import InputError, gallery
from swell.core.errors import MissingDependency, OutOfMemory
from swell.formats.csr import CSRMatrix
from swell.formats.sell import SELL
from swell.inputs import read_system

A = sp.csr_array(gallery.convection_diffusion((8, 8), 5.0))
X = rng().standard_normal(64)
B = A @ X


def solved(matrix, b=B, **named):
    return swell.solve(matrix, b, method="gmres", rtol=1e-10, **named)


# -- kinds of matrices -------------------------------------------------------------------------------------------------

SPARSE = [*(f"{kind}_matrix" for kind in ("csr", "csc", "coo", "bsr", "dia", "lil", "dok")),
          *(f"{kind}_array" for kind in ("csr", "csc", "coo", "bsr", "dia", "lil", "dok"))]


@pytest.mark.parametrize("kind", SPARSE)
def test_scipy_sparse(kind):
    r = solved(getattr(sp, kind)(A))
    assert r.converged and np.allclose(r.x, X)


@pytest.mark.parametrize("make", [lambda: A.toarray(), lambda: np.asmatrix(A.toarray()), lambda: A.toarray(order="F"),
                                  lambda: A.toarray()[::-1, ::-1][::-1, ::-1]], ids=["array", "matrix", "F", "view"])
def test_dense(make):
    r = solved(make())
    assert r.converged and np.allclose(r.x, X)


def test_linear_operator():
    r = solved(spla.aslinearoperator(A))
    assert r.converged and np.allclose(r.x, X) and any("matrix-free" in note for note in r.notes)
    assert swell.solve(spla.aslinearoperator(A), B).converged        # nothing named


@pytest.mark.parametrize("setting", [swell.CSR(), SELL(), SELL(window=1)], ids=["csr", "sell", "unsorted"])
def test_own_formats(setting):
    own = setting.build(CSRMatrix.from_scipy(A, space_or_skip("cpu")))
    solver = swell.prepare(own, method="gmres")
    assert solver._prepared[0].setup.matrix is own
    assert np.allclose(solver.solve(B).x, X)
    assert swell.solve(own, B).converged


def test_an_own_matrix_whose_values_were_changed_is_looked_at_again():
    own = CSRMatrix.from_scipy(sp.csr_array(gallery.poisson2d(8)), space_or_skip("cpu"))
    solver = swell.prepare(own, method="cg", format="csr")
    own.facts()
    own.data *= 100
    assert swell.prepare(own, method="cg")._prepared[0].setup.norm_A == 800
    own.data[1] = 7
    with pytest.raises(InputError, match="Hermitian"):
        swell.prepare(own, method="cg")
    own.data[1] = np.nan
    for again in (lambda: swell.prepare(own, method="cg"), lambda: solver.update(own)):
        with pytest.raises(InputError, match="NaN or Inf .1 entries"):
            again()


@pytest.mark.parametrize("dtype", ["int8", "int64", "bool", "float32"])
def test_csr_of_a_scipy_matrix(dtype):
    own = CSRMatrix.from_scipy(sp.csr_array(np.diag([1, 1, 0])).astype(dtype), space_or_skip("cpu"))
    assert own.dtype == ("float32" if dtype == "float32" else "float64")
    assert own.times(np.arange(3.0).astype(own.dtype)).tolist() == [0, 1, 0]


def unsorted():
    C = A.copy()
    C.indices[:2], C.has_canonical_format = C.indices[1::-1].copy(), False
    return C


@pytest.mark.parametrize("make, words", [
    (lambda: A.tocoo(), "A is a coo_array: expected a CSR matrix"), (lambda: A.toarray(), "A is a ndarray"),
    (lambda: replaced("csr", data=lambda data: data.astype("f2")), "A has dtype float16: expected one of"),
    (unsorted, "not sorted, or entries stored twice.*sum_duplicates")])
def test_what_csr_is_not_made_of(make, words):
    with pytest.raises(InputError, match=words):
        CSRMatrix.from_scipy(make(), space_or_skip("cpu"))


def test_own_matrices_of_integers_are_refused():
    space = space_or_skip("cpu")
    own = CSRMatrix(space, np.array([0, 1]), np.array([0]), np.array([2]), (1, 1))
    with pytest.raises(InputError, match="A is int64: expected one of float32"):
        swell.solve(own, np.ones(1))


def test_torch():
    torch = pytest.importorskip("torch", reason="needs torch")
    for matrix in (torch.from_numpy(A.toarray()).to_sparse_csr(), torch.from_numpy(A.toarray()).to_sparse_coo(),
                   torch.from_numpy(A.toarray())):
        r = solved(matrix, torch.from_numpy(B))
        assert isinstance(r.x, torch.Tensor) and np.allclose(r.x.numpy(), X)
        several = solved(matrix, torch.from_numpy(np.column_stack([B, 2 * B])))
        assert tuple(several.x.shape) == (64, 2)


def torch_or_skip():
    return pytest.importorskip("torch", reason="needs torch: pip install torch")


@pytest.mark.parametrize("layout", ["csr", "csc", "coo", "bsr", "bsc"])
def test_every_sparse_layout_of_torch(layout):
    dense = torch_or_skip().from_numpy(A.toarray())
    blocks = ((2, 4),) if layout.startswith("bs") else ()
    assert np.allclose(solved(getattr(dense, f"to_sparse_{layout}")(*blocks)).x, X)


def test_a_large_sparse_tensor_is_not_taken_for_a_dense_one():
    """n² numbers would not fit into any memory."""
    torch, n = torch_or_skip(), 2_000_000
    eye = torch.sparse_coo_tensor(torch.arange(n).repeat(2, 1), torch.ones(n, dtype=torch.float64), (n, n))
    assert swell.prepare(eye, method="cg").A.nnz == n


def test_tensors_that_are_conjugated_or_negated_only_by_a_flag():
    torch = torch_or_skip()
    b = torch.from_numpy(B)
    assert np.allclose(solved(A, (b + 0j).conj()).x.numpy(), X)
    assert np.allclose(solved(A, torch.complex(b, b).conj().imag).x.numpy(), -X)
    assert np.allclose(solved(A, b[:, None].to_sparse_coo()).x.numpy()[:, 0], X)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float8_e4m3fn", "complex32"])
@pytest.mark.parametrize("argument", ["A", "b", "x0"])
def test_types_of_torch_that_are_not_computed_in(dtype, argument):
    torch = torch_or_skip()
    given = {"A": torch.from_numpy(A.toarray()), "b": torch.from_numpy(B), "x0": torch.from_numpy(B)}
    given[argument] = given[argument].to(getattr(torch, dtype))
    with pytest.raises(InputError, match=rf"{argument} has dtype {dtype}.*{argument}\.to\(torch.float64\)"):
        swell.solve(**given, method="gmres")


def test_tensors_of_no_use():
    torch = torch_or_skip()
    dense = torch.from_numpy(A.toarray())
    with pytest.raises(InputError, match="device 'meta': expected cpu or cuda"):
        solved(dense.to("meta"))
    with pytest.raises(InputError, match="layout torch.sparse_coo: expected .* two sparse dimensions"):
        solved(dense.to_sparse(1))


def jax_or_skip():
    jax = pytest.importorskip("jax", reason="needs JAX: pip install jax")
    jax.config.update("jax_enable_x64", True)
    from jax.experimental import sparse
    return jax, sparse


@pytest.mark.parametrize("kind", ["BCOO", "BCSR"])
@pytest.mark.parametrize("padded", [0, 7])
def test_jax_sparse(kind, padded):
    jax, sparse = jax_or_skip()
    matrix = getattr(sparse, kind).fromdense(jax.numpy.asarray(A.toarray()), nse=A.nnz + padded)
    solver = swell.prepare(matrix, method="gmres", rtol=1e-10)
    assert solver.A.nnz == A.nnz and np.allclose(solver.solve(jax.numpy.asarray(B)).x, X)


def test_jax_that_is_refused():
    jax, sparse = jax_or_skip()
    dense = jax.numpy.asarray(A.toarray())
    for matrix, words in ((sparse.CSR.fromdense(dense), "a JAX CSR.*expected a BCOO or BCSR"),
                          (sparse.BCOO.fromdense(dense, n_dense=1), "a JAX BCOO.*two sparse dimensions"),
                          (dense.astype("bfloat16"), "bfloat16")):
        with pytest.raises(InputError, match=words):
            solved(matrix)


class Container:
    """What has a shape and numbers and says nothing of arrays; NumPy would ask for them one by one."""

    def __init__(self, values):
        self.values, self.shape, self.asked = values, values.shape, 0

    def __len__(self):
        return len(self.values)

    def __getitem__(self, index):
        self.asked += 1
        return self.values[index]


@pytest.mark.parametrize("argument", ["A", "b", "x0", "nullspace"])
def test_a_container_is_not_read_element_by_element(argument):
    container = Container(A.toarray() if argument == "A" else B)
    with pytest.raises(InputError, match=f"{argument} is a .*Container, which NumPy cannot read as a whole"):
        swell.solve(**{"A": A, "b": B, argument: container}, method="gmres")
    assert not container.asked


@pytest.mark.parametrize("kind", ["dense", "csr", "coo", "bsr", "dia", "b", "x0", "indices"])
@pytest.mark.parametrize("canonical", [True, False])
def test_big_endian(kind, canonical):
    matrix, b, x0 = A.copy(), B, None
    if not canonical:
        matrix.indices[:2] = matrix.indices[1::-1]
        matrix.data[:2] = matrix.data[1::-1]
        matrix.has_canonical_format = False
    if kind == "dense":
        matrix = A.toarray().astype(">f8")
    elif kind == "indices":
        matrix.indices, matrix.indptr = matrix.indices.astype(">i4"), matrix.indptr.astype(">i4")
    elif kind in ("b", "x0"):
        b, x0 = (part.astype(">f8") for part in (B, B))
    else:
        matrix = matrix.asformat(kind)
        matrix.data = matrix.data.astype(">f8")
    assert np.allclose(solved(matrix, b, x0=x0).x, X)


def test_unsorted_and_duplicate_entries():
    C = A.tocoo()
    order = rng().permutation(C.nnz)
    doubled = [np.concatenate([part[order], part[:5]]) for part in (C.data, *C.coords)]
    doubled[0][-5:] = 0
    matrix = sp.coo_array((doubled[0], tuple(doubled[1:])), shape=A.shape)
    r = solved(matrix)
    assert np.allclose(r.x, X) and "5 duplicate entries of A were summed" in r.notes
    assert matrix.nnz == C.nnz + 5                               # the user's matrix is as it was


@pytest.mark.parametrize("dtype", DTYPES)
def test_types(dtype):
    r = swell.solve(A.astype(dtype), B.astype(dtype), method="gmres", rtol=1e-5)
    assert r.converged and r.x.dtype == dtype and r.dtype == dtype


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint16", "int64", "bool"])
def test_integers_become_double(dtype):
    matrix = sp.csr_array(sp.eye_array(9) * 1).astype(dtype)
    r = swell.solve(matrix, np.arange(9), method="gmres")
    assert r.dtype == "float64" and np.allclose(r.x, np.arange(9))


def test_complex_b_makes_a_real_matrix_complex():
    b = B + 2j * B
    r = solved(A, b)
    assert r.dtype == "complex128" and np.allclose(r.x, (1 + 2j) * X)
    assert solved(A.astype("float32"), b.astype("complex64"), dtype=None).dtype == "complex64"


def test_real_b_with_a_complex_matrix():
    r = solved(A * 1j)
    assert r.x.dtype == "complex128" and np.allclose(r.x, -1j * X)


def test_dtype_is_said():
    r = swell.solve(A, B, method="gmres", dtype="float32", rtol=1e-4)
    assert r.x.dtype == "float32" and "A was converted from float64 to float32" in r.notes


# -- kinds of vectors --------------------------------------------------------------------------------------------------

def test_lists_integers_and_views():
    for b in (list(B), B.tolist(), np.stack([B, B])[1], np.repeat(B, 2)[::2]):
        assert np.allclose(solved(A, b).x, X)
    assert solved(A, np.arange(64)).converged


@pytest.mark.parametrize("columns", [1, 3])
def test_several_right_hand_sides(columns):
    exact = rng().standard_normal((64, columns))
    r = solved(A, A @ exact, x0=np.zeros((64, columns)))
    assert r.x.shape == (64, columns) and np.allclose(r.x, exact)
    assert len(r) == columns and r.converged and r.iterations == sum(c.iterations for c in r)
    assert r.as_dict()["converged"] and len(r.as_dict()["columns"]) == columns
    assert f"{columns} of {columns} right-hand sides converged" in str(r)
    for k in range(columns):
        assert (r[k].x == r.x[:, k]).all()


def test_a_matrix_of_right_hand_sides():
    for b in (sp.csr_array(B[:, None]), np.asmatrix(B).T, np.asfortranarray(B[:, None])):
        assert np.allclose(solved(A, b).x[:, 0], X)


def test_x_is_a_fresh_array():
    solver = swell.prepare(A, method="gmres")
    first = solver.solve(B)
    kept = first.x.copy()
    second = solver.solve(2 * B)
    assert (first.x == kept).all() and not np.shares_memory(first.x, second.x)
    first.x[:] = 7
    assert np.allclose(solver.solve(B).x, X)


def test_inputs_are_left_alone():
    matrix, b = A.copy(), B.copy()
    solver = swell.prepare(matrix, method="gmres", scaling="jacobi", precond="jacobi", ordering="rcm", maxiter=3)
    solver.solve(b, x0=b)
    solver.update(2 * matrix)
    assert (matrix != A).nnz == 0 and (b == B).all()
    matrix.data[:] = 5                                           # nor does the solver follow the user's array
    assert solver.A.data[0] == 2 * A.data[0]


# -- a whole system ----------------------------------------------------------------------------------------------------

class Counted:
    """An array that counts how often NumPy asks for its numbers."""

    def __init__(self, values):
        self.values, self.shape, self.dtype, self.reads = values, values.shape, values.dtype, 0

    def __array__(self, dtype=None, copy=None):
        self.reads += 1
        return self.values


def test_a_system_is_read_once():
    b, x0 = Counted(B + 1j * B), Counted(B)
    given, rhs, guess = read_system(A, b, x0)
    assert b.reads == x0.reads == 1
    assert given.A.dtype == "complex128" and (rhs == b.values).all() and (guess == B).all()
    assert read_system(A, B)[2] is None


@pytest.mark.parametrize("b, x0, dtype, words", [
    (B[1:], None, None, r"b has shape \(63,\): expected"), (B, B[:, None], None, r"x0 has shape \(64, 1\): expected"),
    (1j * B, None, "float64", "b is complex and the system was prepared real"), (B, 1j * B, None, "x0 is complex"),
    (np.full(64, np.nan), None, None, "b contains NaN or Inf .64 entries.")])
def test_a_system_whose_parts_do_not_fit(b, x0, dtype, words):
    with pytest.raises(InputError, match=words):
        read_system(A, b, x0, dtype=dtype)


# -- nonsense ----------------------------------------------------------------------------------------------------------

def with_nan():
    C = A.copy()
    C.data[3] = np.nan
    return C


def beyond(**changes):
    """A CSR matrix with arrays that contradict each other; SciPy does not look again."""
    C = sp.csr_array(A)
    for name, (place, value) in changes.items():
        array = getattr(C, name).copy()
        array[place] = value
        setattr(C, name, array)
    return C


def coo_beyond():
    C = A.tocoo()
    C.coords = (C.coords[0], np.where(np.arange(C.nnz) == 3, 64, C.coords[1]))
    return C


def replaced(kind, **arrays):
    """A sparse matrix of which an array was replaced."""
    C = A.asformat(kind, copy=True)
    for name, change in arrays.items():
        setattr(C, name, change(getattr(C, name)))
    return C


def short(array):
    return array[:-1]


def unsigned_and_descending(indptr):
    indptr = indptr.astype(np.uint32)
    indptr[3] = 0
    return indptr


BAD_MATRICES = {
    "csr short data": (lambda: replaced("csr", data=short), r"A.data has shape .*: expected"),
    "csr long data": (lambda: replaced("csr", data=lambda data: np.append(data, 1.0)), r"A.data has shape"),
    "csc short data": (lambda: replaced("csc", data=short), r"A.data has shape"),
    "csr columns of data": (lambda: replaced("csr", data=lambda data: data[:, None]), r"A.data has shape"),
    "csr short indptr": (lambda: replaced("csr", indptr=short), "indptr"),
    "csr fractional indices": (lambda: replaced("csr", indices=lambda i: i.astype(float)), "expected integers"),
    "csr indices in two dimensions": (lambda: replaced("csr", indices=lambda i: i[:, None]), "expected integers"),
    "csr fractional indptr": (lambda: replaced("csr", indptr=lambda p: p + 0.5 * (p == p[3])), "indptr"),
    "csc unsigned indptr descends": (lambda: replaced("csc", indptr=unsigned_and_descending), "indptr"),
    "coo short data": (lambda: replaced("coo", data=short), r"A.data has shape"),
    "coo short rows": (lambda: replaced("coo", coords=lambda ij: (ij[0][:-1], ij[1])), r"A.data has shape"),
    "bsr short data": (lambda: replaced("bsr", data=short), r"A.data has shape"),
    "dia short data": (lambda: replaced("dia", data=short), r"A.data has shape"),
    "lil rows": (lambda: replaced("lil", rows=lambda rows: np.stack([rows, rows])), "inconsistent lil_array"),
    "masked": (lambda: np.ma.masked_equal(A.toarray(), 0), "masked entries: expected a number in every place"),
    "rectangular": (lambda: sp.csr_array((4, 5)), "square"),
    "rectangular dense": (lambda: np.ones((4, 5)), "square"),
    "rectangular operator": (lambda: spla.aslinearoperator(np.ones((4, 5))), "square"),
    "vector": (lambda: np.ones(5), "square"),
    "nothing": (lambda: None, "square"),
    "text": (lambda: "A.mtx", r"A is str .* square matrix.*from a file: A = swell.read_matrix\(path\)"),
    "matrix and notes": (lambda: (A, []), r"A is tuple with shape None: expected a square matrix"),
    "coordinates": (lambda: (A.data, (A.indices, A.indices)), r"A is tuple .*arrays \(data, indices, indptr\)"),
    "rows in a list": (lambda: [[2.0, 1.0], [1.0, 3.0]], r"A is list .*np\.array\(A\)"),
    "NaN": (with_nan, "NaN or Inf"),
    "NaN dense": (lambda: np.diag([1, np.nan]), "NaN or Inf"),
    "Inf": (lambda: sp.csr_array([[np.inf]]), "NaN or Inf"),
    "float16": (lambda: np.eye(3, dtype=np.float16), "float16"),
    "longdouble": (lambda: sp.csr_array(np.eye(3, dtype=np.longdouble)), "expected one of"),
    "object": (lambda: np.array([[1, None], [2, 3]], object), "object"),
    "text entries": (lambda: np.array([["1"]]), "expected one of"),
    "column beyond": (lambda: beyond(indices=(3, 64)), "index of 64"),
    "column negative": (lambda: beyond(indices=(3, -1)), "index of -1"),
    "row pointers descend": (lambda: beyond(indptr=(3, 10_000)), "indptr"),
    "row pointers too many": (lambda: beyond(indptr=(-1, 10_000)), "indptr"),
    "coo column beyond": (coo_beyond, "column index of 64"),
}


@pytest.mark.parametrize("name", BAD_MATRICES)
@pytest.mark.parametrize("method", [None, "cg"])
def test_bad_matrices(name, method):
    make, words = BAD_MATRICES[name]
    with pytest.raises(InputError, match=words) as raised:
        swell.solve(make(), np.ones(64), method=method)
    check_message(raised, "A")


BAD_VECTORS = {
    "masked": (lambda: np.ma.masked_less(np.arange(64.0), 3), r"3 masked entries.*filled\(0\)"),
    "short": (lambda: np.ones(63), r"shape \(63,\): expected \(64,\)"),
    "row": (lambda: np.ones((1, 64)), "shape"),
    "cube": (lambda: np.ones((64, 1, 1)), "shape"),
    "scalar": (lambda: 3.0, "shape"),
    "nothing": (lambda: None, "expected"),
    "text": (lambda: "ones", "expected"),
    "ragged": (lambda: [[1, 2], [3]], "expected"),
    "NaN": (lambda: np.full(64, np.nan), r"NaN or Inf \(64 entries\)"),
    "Inf": (lambda: np.append(np.ones(63), np.inf), r"NaN or Inf \(1 entries\)"),
    "float16": (lambda: np.ones(64, np.float16), "float16"),
    "longdouble": (lambda: np.ones(64, np.longdouble), "expected one of"),
    "object": (lambda: np.full(64, None), "expected"),
}


@pytest.mark.parametrize("name", BAD_VECTORS)
@pytest.mark.parametrize("argument", ["b", "x0"])
def test_bad_vectors(name, argument):
    make, words = BAD_VECTORS[name]
    if argument == "x0" and name == "nothing":
        pytest.skip("x0=None is the default")
    given = {"b": make()} if argument == "b" else {"b": B, "x0": make()}
    with pytest.raises(InputError, match=words) as raised:
        swell.solve(A, method="gmres", **given)
    check_message(raised, argument)


def check_message(raised, argument):
    """One line that begins with the argument and says what is expected or what to do."""
    message = str(raised.value)
    assert argument in message.replace("=", " ").replace(".", " ").split(), message
    assert "\n" not in message and len(message) > 30
    assert raised.value.__cause__ is None


def test_vectors_of_the_wrong_field():
    with pytest.raises(InputError, match="b is complex .* prepare"):
        swell.prepare(A, method="gmres").solve(B * 1j)
    with pytest.raises(InputError, match="x0 is complex"):
        swell.solve(A, B, method="gmres", x0=B * 1j)
    with pytest.raises(InputError, match="imaginary part"):
        swell.solve(A * 1j, B, dtype="float64")
    with pytest.raises(InputError, match=r"x0 has shape \(64,\): expected \(64, 2\)"):
        swell.solve(A, np.ones((64, 2)), x0=B)


@pytest.mark.parametrize("size", [1e200, 1e-200])
def test_b_whose_square_is_out_of_range(size):
    with pytest.raises(InputError, match="b has entries up to 1.*divided by that"):
        swell.solve(A, np.full(64, size), method="gmres")


def test_a_masked_array_without_masked_entries_is_an_array():
    assert np.allclose(solved(np.ma.masked_array(A.toarray()), np.ma.masked_array(B)).x, X)


def test_x0_whose_residual_is_out_of_range():
    for size in (1e150, 1e200, 1e308):
        with pytest.raises(InputError, match="x0 leaves a residual of .*smaller x0"):
            swell.solve(A, B, x0=np.full(64, size), method="gmres")


@pytest.mark.parametrize("stopping", [swell.Stopping(atol=1e200), swell.Stopping(growth=1e200)])
def test_tolerances_whose_square_is_out_of_range(stopping):
    assert swell.solve(A, B, method="gmres", stopping=stopping).converged


@pytest.mark.parametrize("monitor", [5, "print", [print]])
def test_a_monitor_that_cannot_be_called_is_refused_before_the_setup(monitor, monkeypatch):
    with pytest.raises(InputError, match="monitor=.*expected a function of"):
        swell.prepare(A, method="gmres").solve(B, monitor=monitor)
    monkeypatch.setattr("swell.inputs.read_matrix", lambda *given: pytest.fail("the matrix was read first"))
    with pytest.raises(InputError, match="monitor=.*expected a function of"):
        swell.solve(A, B, monitor=monitor)


BAD_SETTINGS = {
    "dtype number": ({"dtype": 5}, "dtype=5: expected one of float32"),
    "dtype object": ({"dtype": [("x", 3)]}, "dtype=.*: expected one of float32"),
    "null space empty": ({"nullspace": [], "method": "gmres"}, r"nullspace has shape \(0, 1\): expected \(64,\)"),
    "null space number": ({"nullspace": 3, "method": "gmres"}, r"nullspace has shape \(\)"),
    "null space ragged": ({"nullspace": [[1], [2, 3]], "method": "gmres"}, "nullspace is no array"),
    "null space text": ({"nullspace": ["a"] * 64, "method": "gmres"}, "nullspace has dtype"),
    "null space object": ({"nullspace": [None] * 64, "method": "gmres"}, "nullspace has dtype object"),
    "null space masked": ({"nullspace": np.ma.masked_less(np.arange(64.0), 3), "method": "gmres"}, "3 masked entries"),
    "method unknown": ({"method": "gmress"}, "did you mean 'gmres'"),
    "method far off": ({"method": "zzz"}, "There are: cg"),
    "method number": ({"method": 42}, "method=42"),
    "method type": ({"method": int}, "method="),
    "method of another kind": ({"method": swell.Jacobi()}, "expected one of cg"),
    "setting unknown": ({"method": "gmres(restrat=3)"}, "no setting 'restrat'; it has: restart"),
    "setting wrong": ({"method": "gmres(restart=0)"}, "at least 1"),
    "settings of 100 000 characters": ({"method": f"gmres(restart={'(' * 100_000}"}, "cannot read '?gmres.{,200}$"),
    "settings nested too deeply": ({"method": f"gmres(restart={'-' * 50_000}1)"}, "cannot read the settings"),
    "settings as a long sum": ({"method": f"gmres(restart={'1+' * 50_000}1)"}, "cannot read the settings"),
    "settings in settings": ({"method": f"gmres(restart={'f(' * 190}{')' * 190})"}, "cannot read|restart="),
    "method of 100 000 characters": ({"method": "g" * 100_000}, "unknown method '.{,110}': There are"),
    "rtol of 5000 digits": ({"rtol": 10**5000}, "rtol=an integer of 16610 bits"),
    "setting of 5000 digits": ({"method": swell.GMRES, "maxiter": 10**5000}, "maxiter=an integer of 16610 bits"),
    "setting twice": ({"method": "gmres(restart=5, restart=6)"}, "names a setting twice"),
    "settings by stars": ({"method": "gmres(**{})"}, "cannot read the settings"),
    "setting text": ({"method": "gmres(restart=x)"}, "restart='x'.: expected an integer"),
    "setting formula": ({"method": "gmres(restart=x+1)"}, "cannot read the settings"),
    "setting without name": ({"method": "gmres(30)"}, "cannot read the settings"),
    "settings twice": ({"method": "gmres(restart=5)(restart=7)"}, "cannot read the settings"),
    "a sum of methods": ({"method": "gmres(restart=5)+cg()"}, "cannot read the settings"),
    "setting word misspelt": ({"method": "stationary(smoother=chebishev)"}, "did you mean 'chebyshev'"),
    "setting inside": ({"precond": "ic0(solve=sweeps(count=0))"}, r"Sweeps\(count=0\)"),
    "smoother none": ({"method": "stationary(smoother=None)"}, "smoother=None.: expected one of jacobi"),
    "omega": ({"precond": "jacobi_sweeps(omega=much)"}, "omega='much'.: expected a number"),
    "fraction": ({"precond": "chebyshev(fraction=x)"}, "fraction='x'.: expected a number"),
    "inner omega": ({"precond": "block_jacobi_sweeps(omega=x)"}, "omega='x'.: expected a number"),
    "inner tolerance": ({"precond": "block_jacobi_sweeps(inner_tolerance=x)"}, "inner_tolerance='x'.: expected a number"),
    "asynchronous": ({"precond": "block_jacobi_sweeps(asynchronous=yes)"}, "asynchronous='yes'.: expected True or False"),
    "setting unfinished": ({"method": "gmres(restart=3"}, "cannot read"),
    "precond unknown": ({"precond": "jakobi"}, r"precond \(or M\) 'jakobi': did you mean 'jacobi'"),
    "M and precond": ({"M": lambda r: r, "precond": "jacobi"}, "both M and precond"),
    "scaling unknown": ({"scaling": "ruits"}, "unknown scaling"),
    "ordering unknown": ({"ordering": "rmc"}, "did you mean 'rcm'"),
    "format unknown": ({"format": "selll"}, "did you mean 'sell'"),
    "rtol negative": ({"rtol": -1e-8}, "rtol=-1e-08: expected"),
    "rtol zero": ({"rtol": 0}, "give one of them a positive value"),
    "rtol NaN": ({"rtol": float("nan")}, "rtol=nan"),
    "rtol text": ({"rtol": "1e-8"}, "rtol='1e-8'"),
    "rtol one": ({"rtol": 1.0}, "less than 1"),
    "atol negative": ({"atol": -1.0}, "atol=-1.0"),
    "maxiter negative": ({"maxiter": -1}, "maxiter=-1"),
    "maxiter fraction": ({"maxiter": 10.5}, "maxiter=10.5"),
    "maxiter huge": ({"maxiter": 10**12}, "maxiter=1000000000000"),
    "stopping and rtol": ({"stopping": swell.Stopping(), "rtol": 1e-3}, "stopping was given beside"),
    "stopping wrong": ({"stopping": 1e-8}, "stopping=1e-08: expected"),
    "device unknown": ({"device": "gpu"}, "device='gpu': expected 'cpu'"),
    "device empty": ({"device": ""}, "device='': expected .* or 'cuda:all' in swell.solve"),
    "device number": ({"device": 0}, "device=0: expected"),
    "dtype unknown": ({"dtype": "float63"}, "dtype='float63'"),
    "dtype float16": ({"dtype": "float16"}, "float16"),
    "M wrong": ({"M": 5}, "M=5: expected"),
}


@pytest.mark.parametrize("name", BAD_SETTINGS)
def test_bad_settings(name):
    given, words = BAD_SETTINGS[name]
    with pytest.raises(InputError, match=words) as raised:
        swell.solve(A, B, **given)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("kind, words", [("preconditioner", "did you mean 'precond'"), (5, "unknown kind 5"),
                                         ([], "There are: method, precond")])
def test_names_of_no_kind(kind, words):
    with pytest.raises(InputError, match=words):
        swell.names(kind)


@pytest.mark.parametrize("given", [
    {"scaling": "ruiz(p=inf)", "method": "cg"}, {"method": "stationary(smoother=chebyshev, every=5)"},
    {"precond": "ic0(solve=sweeps(count=5), ordering=rcm)", "method": "cg"}, {"precond": "ic0(ordering='rcm')", "method": "cg"}])
def test_words_among_settings_need_no_quotes(given):
    assert swell.solve(gallery.poisson2d(8), B, **given).converged


@pytest.mark.parametrize("make, words", [
    (lambda: swell.Stopping(window=-1), "window=-1"), (lambda: swell.Stopping(growth=1), "growth=1"),
    (lambda: swell.Stopping(relative_to="x0"), "relative_to='x0'"), (lambda: swell.GMRES(restart=2.0), "restart=2.0"),
    (lambda: swell.BiCGSTAB(seed=-1), "seed=-1"), (lambda: swell.GMRES(10**5000), "restart=an integer of 16610 bits"), (lambda: swell.Direct(largest=-1), "largest=-1")])
def test_bad_settings_objects(make, words):
    with pytest.raises(InputError, match=words):
        make()


def test_numpy_numbers_are_numbers():
    r = swell.solve(A, B, method=swell.GMRES(restart=np.int64(20)), rtol=np.float32(1e-6), maxiter=np.int32(200))
    assert r.converged


def test_a_matrix_free_system_has_no_entries_to_work_on():
    operator = spla.aslinearoperator(A)
    for given in ({"precond": "jacobi"}, {"scaling": "jacobi"}, {"ordering": "rcm"}, {"format": "sell"},
                  {"method": "direct"}):
        with pytest.raises(InputError, match="matrix-free"):
            swell.solve(operator, B, **{"method": "gmres", **given})


def test_a_gpu_where_there_is_none():
    try:
        space_or_skip("cuda")
    except pytest.skip.Exception:
        with pytest.raises(MissingDependency, match="device='cpu'"):
            swell.solve(A, B, device="cuda")
    else:
        pytest.skip("there is a GPU")


def test_memory_is_estimated_before_it_is_taken(monkeypatch):
    from swell.core.cpu import CpuSpace
    monkeypatch.setattr(CpuSpace, "memory", lambda self: (10_000, 20_000))
    with pytest.raises(OutOfMemory, match="needs about .* GiB .* are free: "):
        swell.solve(A, B)
    monkeypatch.setattr(CpuSpace, "memory", lambda self: (100_000, 200_000))
    with pytest.raises(OutOfMemory, match="smaller restart"):
        swell.solve(A, B, method="gmres(restart=500)")
    monkeypatch.undo()
    assert swell.solve(A, B).converged


def test_a_setup_takes_one_pass_over_the_entries(monkeypatch):
    from swell.formats import csr
    passes, gather = [], csr.gather
    monkeypatch.setattr(csr, "gather", lambda matrix, search: passes.append(matrix) or gather(matrix, search))
    for named in ({}, {"method": "cg"}, {"method": "bicgstab"}):
        passes.clear()
        prepared = swell.prepare(gallery.poisson2d(6), **named)
        assert sum(matrix is prepared.A for matrix in passes) == 1
