"""Arrays of any library: DLPack, the CUDA array interface, array-API namespaces, pydata's sparse arrays, CSR tuples."""
from __future__ import annotations

import enum

import numpy as np
import pytest
import scipy.sparse as sp

import swell
from swell import InputError, MissingDependency, gallery
from tests.conftest import space_or_skip

A = sp.csr_array(gallery.convection_diffusion((8, 8), 5.0))
X = np.random.default_rng(0).standard_normal(64)
B = A @ X
TRIPLE = A.data, A.indices, A.indptr


def solved(matrix, b=B, **named):
    r = swell.solve(matrix, b, method="gmres", rtol=1e-11, **named)
    assert r.converged
    return r


class Exporter:
    """An array with DLPack and nothing else; a class of no known library."""

    def __init__(self, array, kind=None):
        self.array, self.kind = array, kind

    def __dlpack__(self, **named):
        return self.array.__dlpack__(**named)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__() if self.kind is None else (enum.IntEnum("Kind", {"it": self.kind}).it, 0)


class Namespaced(Exporter):
    """An array of a library that follows the array API standard; it can be moved to a device of its own."""

    device = "there"

    def __array_namespace__(self):
        return Namespaced

    @staticmethod
    def from_dlpack(x):
        back = Namespaced(x)
        back.device = "here"
        return back

    def to_device(self, device):
        self.device = device
        return self


class Interface:
    """An array with the CUDA array interface and nothing else, of a producer whose work is on a stream."""

    def __init__(self, array, stream=None):
        self.array, self.stream = array, stream

    @property
    def __cuda_array_interface__(self):
        return {**self.array.__cuda_array_interface__, "version": 3, "stream": self.stream}


# -- on the host -------------------------------------------------------------------------------------------------------

def test_a_broken_export_is_an_error_of_input():
    class Broken:
        def __dlpack_device__(self):
            return 1, 0

        def __dlpack__(self, **named):
            raise AttributeError("no such thing")

    with pytest.raises(swell.InputError, match="which cannot be read .no such thing."):
        swell.solve(np.eye(3), Broken())


def test_dlpack_alone_gives_numpy():
    b, dense = Exporter(B.copy()), Exporter(A.toarray())
    r = solved(dense, b, x0=Exporter(np.zeros(64)))
    assert type(r.x) is np.ndarray and np.allclose(r.x, X)
    several = solved(A, Exporter(np.column_stack([B, 2 * B])))
    assert several.x.shape == (64, 2) and np.allclose(several.x[:, 1], 2 * X)


def test_an_import_is_never_written():
    shared = [np.column_stack([B, 2 * B]), A.toarray(), np.zeros((64, 2))]
    kept = [array.copy() for array in shared]
    for frozen in (False, True):
        for array in shared:
            array.flags.writeable = not frozen
        b, dense, x0 = map(Exporter, shared)
        solver = swell.prepare(dense, method="gmres", scaling="jacobi")
        solver.solve(b, x0=x0)
        solver.update(dense)
        solver.solve(Exporter(shared[0][:, 0]))
        swell.solve(dense, b, method="direct")
    for array, before in zip(shared, kept):
        np.testing.assert_array_equal(array, before)


def test_x_comes_back_by_the_namespace_on_the_device_of_b():
    x = solved(A, Namespaced(B)).x
    assert type(x) is Namespaced and x.device == "there" and np.allclose(x.array, X)


def strict():
    return pytest.importorskip("array_api_strict", reason="needs array-api-strict")


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_the_array_api_standard(dtype):
    xp = strict()
    scale = 1j if dtype.startswith("complex") else 1
    b = xp.asarray((scale * B).astype(dtype))
    dense = xp.asarray(A.toarray().astype(dtype))
    r = swell.solve(dense, b, method="direct")
    assert type(r.x) is type(b) and r.x.dtype == b.dtype
    assert np.allclose(np.from_dlpack(r.x), scale * X, atol=1e-3 if dtype in ("float32", "complex64") else 1e-10)
    both = swell.solve(dense, xp.stack([b, b], axis=1), x0=xp.zeros((64, 2), dtype=b.dtype), method="gmres")
    assert both.x.shape == (64, 2)


def test_integers_and_a_device_of_the_standards_own():
    xp = strict()
    device = xp.Device("device1")
    r = swell.solve(xp.eye(3, dtype=xp.int64), xp.asarray([1, 2, 3], device=device), method="direct")
    assert r.x.device == device and r.x.dtype == xp.float64
    assert np.from_dlpack(r.x.to_device(xp.Device("CPU_DEVICE"))).tolist() == [1, 2, 3]


def test_a_batch_and_least_squares():
    xp = strict()
    values = xp.asarray(np.stack([A.data, 2 * A.data]))
    r = swell.solve_batch(A, values, xp.asarray(np.stack([B, B])))
    assert type(r.x) is type(values) and np.allclose(np.from_dlpack(r.x), [X, X / 2])
    r = swell.lstsq(xp.asarray(A.toarray()), xp.asarray(B), rtol=1e-12)
    assert type(r.x) is type(values) and np.allclose(np.from_dlpack(r.x), X, atol=1e-6)


def test_float16_is_refused_with_the_way_to_convert_it():
    for name, given in {"A": (Exporter(A.toarray().astype(np.float16)), B), "b": (A, Exporter(B.astype("f2")))}.items():
        with pytest.raises(InputError, match=f"{name} has dtype float16: expected one of float32.*; convert it to "
                                             "float64 with its library"):
            swell.solve(*given)
    with pytest.raises(InputError, match=r"b has dtype float16.*xp.astype\(b, xp.float64\), where xp = b.__array_name"):
        swell.solve(A, Namespaced(B.astype(np.float16)))


def test_bfloat16_is_refused_with_its_name():
    torch = pytest.importorskip("torch", reason="needs torch, whose tensors have that type")
    b = Exporter(torch.ones(64, dtype=torch.bfloat16))
    b.dtype = b.array.dtype
    with pytest.raises(InputError, match="b is a .*Exporter of dtype torch.bfloat16, which cannot be read.*float64"):
        swell.solve(A, b)


@pytest.mark.parametrize("kind, name", [(10, "rocm"), (8, "metal"), (14, "oneapi"), (99, "99")])
def test_a_device_that_cannot_be_read_is_named(kind, name):
    for system in ((A, Exporter(B, kind)), (Exporter(A.toarray(), kind), B)):
        with pytest.raises(InputError, match=rf"Exporter lies on a device of kind {name} \(DLPack's number {kind}\)"):
            swell.solve(*system)


def test_an_export_that_fails_is_explained():
    class Broken(Exporter):
        def __dlpack__(self, **named):
            raise BufferError("the array requires grad")
    with pytest.raises(InputError, match=r"b is a .*Broken, which cannot be read \(the array requires grad\)"):
        swell.solve(A, Broken(B))


# -- sparse ------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("kind", ["COO", "GCXS", "DOK"])
def test_pydatas_sparse_arrays(kind):
    sparse = pytest.importorskip("sparse", reason="needs sparse")
    given = getattr(sparse, kind).from_numpy(A.toarray())
    solver = swell.prepare(given, method="gmres", rtol=1e-11)
    assert solver.A.nnz == A.nnz and np.allclose(solver.solve(B).x, X)
    assert np.allclose(solved(given, sparse.COO.from_numpy(B)).x, X)
    assert np.allclose(swell.multiply(given, given).toarray(), (A @ A).toarray())


def test_pydatas_sparse_arrays_that_are_no_matrix():
    sparse = pytest.importorskip("sparse", reason="needs sparse")
    with pytest.raises(InputError, match="sparse.COO with fill value 1.0: expected 0"):
        swell.solve(sparse.COO.from_numpy(A.toarray()) + 1, B)
    with pytest.raises(InputError, match=r"sparse.COO of shape \(2, 2, 2\): expected two dimensions"):
        swell.solve(sparse.COO.from_numpy(np.ones((2, 2, 2))), B)


def test_an_object_with_tocsr():
    class Theirs:
        shape = A.shape

        def tocsr(self):
            return A
    assert np.allclose(solved(Theirs()).x, X)


def test_three_arrays_are_a_matrix_in_csr():
    assert np.allclose(solved(TRIPLE).x, X)
    assert np.allclose(solved((A.data, A.indices.astype(np.int64), A.indptr)).x, X)
    assert np.allclose(solved(tuple(map(Exporter, TRIPLE))).x, X)
    solver = swell.prepare(TRIPLE, method="gmres", rtol=1e-11)
    assert np.allclose(solver.solve(B).x, X)
    solver.update((2 * A.data, *TRIPLE[1:]))
    assert np.allclose(solver.solve(2 * B).x, X)
    xp = strict()
    assert np.allclose(solved(tuple(map(xp.asarray, TRIPLE))).x, X)


@pytest.mark.parametrize("given, words", [
    ((A.data, A.tocoo().row, A.tocoo().col), "row pointers from 0 to 63 came, expected pointers from 0 to the number"),
    ((A.data[1:], *TRIPLE[1:]), "values, .* indices, and 65 row pointers from 0 to"),
    ((A.data, A.indices.astype(float), A.indptr), "indices has dtype float64, expected integers"),
    ((A.data.astype("f2"), *TRIPLE[1:]), "data has dtype float16"),
    ((A.data, A.indices + 1, A.indptr), "index of 64: expected 0 to 63"),
    ((A.data, A.indices, A.indptr[::-1]), "row pointers from .* to 0 came")])
def test_three_arrays_that_are_no_matrix(given, words):
    with pytest.raises(InputError, match=words):
        swell.solve(given, B)


def test_a_tuple_as_right_hand_side_stays_one():
    assert swell.solve(np.eye(3), (1.0, 2.0, 3.0), method="direct").x.tolist() == [1, 2, 3]
    assert swell.solve(np.eye(3), (np.ones(2), np.ones(2), np.ones(2)), method="direct").x.tolist() == [[1, 1]] * 3


def test_an_array_on_a_gpu_without_cupy_names_the_package():
    try:
        space_or_skip("cuda")
    except pytest.skip.Exception:
        with pytest.raises(MissingDependency, match=r"needs CuPy|no usable GPU"):
            swell.solve(A, Interface(type("Theirs", (), {"__cuda_array_interface__": {}})()))
        with pytest.raises(MissingDependency, match=r"needs CuPy|no usable GPU"):
            swell.solve(A, Exporter(B, 2))
    else:
        pytest.skip("there is a GPU")


# -- on a GPU ----------------------------------------------------------------------------------------------------------

@pytest.fixture
def gpu():
    return space_or_skip("cuda").xp


@pytest.mark.gpu
@pytest.mark.parametrize("wrap", [Interface, Exporter])
def test_protocols_on_a_gpu(gpu, wrap):
    b, dense = wrap(gpu.asarray(B)), wrap(gpu.asarray(A.toarray()))
    for matrix in (dense, A):
        r = solved(matrix, b)
        assert isinstance(r.x, gpu.ndarray) and np.allclose(gpu.asnumpy(r.x), X) and r.device.startswith("cuda")
    assert np.array_equal(gpu.asnumpy(b.array), B)
    on_host = solved(tuple(wrap(gpu.asarray(part)) for part in TRIPLE), B)
    assert type(on_host.x) is np.ndarray and np.allclose(on_host.x, X)


@pytest.mark.gpu
def test_x_comes_back_by_the_namespace_on_a_gpu(gpu):
    x = solved(A, Namespaced(gpu.asarray(B))).x
    assert type(x) is Namespaced and isinstance(x.array, gpu.ndarray) and np.allclose(gpu.asnumpy(x.array), X)


@pytest.mark.gpu
@pytest.mark.parametrize("number", [1, 2])
def test_the_stream_of_a_producer_is_waited_for(gpu, number, monkeypatch):
    """1 is the legacy stream, 2 the stream of each thread, and every other number a pointer."""
    b = Interface(gpu.asarray(B), number)
    assert np.allclose(gpu.asnumpy(solved(A, b).x), X)


@pytest.mark.gpu
def test_devices_that_differ(gpu):
    """The solve is on the GPU of A, else of b, else on the host; x is where b is."""
    on_gpu = gpu.asarray(B)
    theirs = Interface(gpu.asarray(A.toarray()))
    for matrix, b, named, device in ((theirs, B, {}, "cuda"), (A, on_gpu, {}, "cuda"),
                                     (A, on_gpu, {"device": "cpu"}, "cpu"), (theirs, on_gpu, {"device": "cpu"}, "cpu"),
                                     (A, B, {"device": "cuda"}, "cuda")):
        r = solved(matrix, b, **named)
        assert r.device.startswith(device) and isinstance(r.x, type(b)), (named, device)
        assert np.allclose(gpu.asnumpy(r.x), X)
    for together in (True, False):
        x = solved(A, gpu.asarray(np.column_stack([B, 2 * B])), device="cpu", together=together).x
        assert isinstance(x, gpu.ndarray) and np.allclose(gpu.asnumpy(x), np.column_stack([X, 2 * X]))
    with pytest.raises(InputError, match="A is a tuple of three arrays.* lie on cuda:0, cpu, cpu: put them on one"):
        swell.solve((gpu.asarray(A.data), *TRIPLE[1:]), B)


@pytest.mark.gpu
def test_two_gpus_that_differ(gpu):
    if gpu.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("needs two GPUs")
    with gpu.cuda.Device(1):
        b, matrix = gpu.asarray(B), gpu.asarray(A.toarray())
    with pytest.raises(InputError, match="b lies on cuda:1 and the solve is on cuda:0: copy b there"):
        swell.solve(gpu.asarray(A.toarray()), b, method="gmres")
    with pytest.raises(InputError, match="A lies on cuda:1 and the solve is on cuda:0"):
        swell.solve(matrix, b, method="gmres", device="cuda:0")
    assert np.allclose(gpu.asnumpy(solved(matrix, b).x), X)
    assert np.allclose(solved(matrix, B).x, X)


def test_types_of_b_that_numpy_does_not_know():
    pandas = pytest.importorskip("pandas", reason="needs pandas")
    A, ones = swell.gallery.poisson2d(6), [1.0] * 36
    for dtype in ("Int64", "Float64", "category"):
        assert swell.solve(A, pandas.Series(ones, dtype=dtype), method="cg").converged, dtype
    for given in (pandas.Series(["1"] * 36), pandas.Series([None] + ones[1:], dtype="Float64").astype(object)):
        with pytest.raises(InputError, match=r"b has dtype .*: expected numbers; b.astype\('float64'\) converts them"):
            swell.solve(A, given, method="cg")


class OwnType:
    """An array whose dtype is a library's own, as pandas' are."""

    dtype, shape = "Int64 of a library", (36,)

    def __array__(self, dtype=None, copy=None):
        return np.ones(36)


def test_a_dtype_of_another_library():
    assert swell.solve(swell.gallery.poisson2d(6), OwnType(), method="cg").converged


def test_a_sparse_b_that_would_fill_the_memory():
    A = swell.gallery.poisson2d(6)
    assert swell.prepare(A, method="cg").solve(sp.eye_array(36, format="csr")).converged
    B = sp.csr_array(([1.0], ([0], [0])), shape=(36, 30_000_000))
    with pytest.raises(InputError, match=r"b is sparse, of shape \(36, 30000000\): a dense copy takes 8.05 GiB, and x as "
                                         r"much; expected at most 1 GiB. Solve for some columns at a time, by "):
        swell.solve(A, B, method="cg")
