"""Arrays as users have them: whatever their layout, the result is the contiguous array's to the bit, and nothing is
written into them. A matrix in disorder gives the result of the tidy one."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.support.layouts import LAYOUTS, WHOLE_NUMBERS, arrays_of, in_disorder, with_arrays

import swell
from swell import AMS, BDDC, FieldSplit, NullSpace, Schwarz, SmoothedAggregation, Subdomains, distributed, gallery
from swell.core.devices import make_space
from swell.core.registry import resolve
from swell.formats.bsr import BSRMatrix
from swell.formats.csr import CSRMatrix
from swell.pde import fvm
from swell.pde import helmholtz as h

N = 64
A = sp.csr_array(gallery.convection_diffusion((8, 8), 5.0))
P = sp.csr_array(gallery.poisson2d(8))
K = sp.csr_array(sp.kron(gallery.poisson((4, 8)), sp.eye_array(2)))
BLOCKS = sp.bsr_array(P, blocksize=(2, 2))
BLOCKS.sort_indices()
EDGES, G, ALONG = gallery.curl_curl((3, 3, 3))
MASS = sp.csr_array(sp.eye_array(N) * 0.3 + 0 * P)
COUPLED = sp.csr_array(sp.block_array([[P, sp.eye_array(N)], [sp.eye_array(N), P]]))
BESIDE = sp.csr_array(0.5 * P)
B = np.arange(3.0 * N).reshape(N, 3) % 7 - 3
b = B[:, 0].copy()
POINTS = np.stack(np.meshgrid(np.arange(8.0), np.arange(4.0)), -1).reshape(-1, 2)
LOCAL = sp.csr_array([[2.0, -1, 0], [-1, 2, -1], [0, -1, 2]])
DENSE = np.arange(400.0).reshape(20, 20) % 13 + 50 * np.eye(20)
BOX = fvm.box((4, 3, 2))
WALLS = {"xmin": fvm.Dirichlet(1.0), "*": fvm.Neumann()}
WAVES = h.box((3, 3, 3))
space = make_space("cpu")


def solved(matrix, rhs=b, method="gmres", **named):
    return swell.solve(matrix, rhs, method=method, **named).x


def matrix(like, **arrays):
    return with_arrays(like, **arrays)


def arrays(like):
    return {"data": like.data, "indices": like.indices, "indptr": like.indptr}


def from_rows(rows):
    return distributed.run(1, lambda c: solved(distributed.from_rows(c, rows), method="cg", precond="jacobi"))[0]


def subdomains(local=LOCAL, dofs=np.arange(3)):
    parts = [(local, dofs), (LOCAL, np.arange(2, 5))]
    whole = sum(sp.coo_array((LOCAL.data, (at[LOCAL.tocoo().row], at[LOCAL.tocoo().col])), shape=(5, 5))
                for at in (np.arange(3), np.arange(2, 5)))
    return solved(whole, np.arange(5.0), "cg", precond=BDDC(subdomains=Subdomains(parts)))


def geometry(**parts):
    mesh = fvm.Mesh.from_faces(**parts, patches=BOX.patches)
    return np.concatenate([mesh.volumes, mesh.face_areas.ravel(), mesh.centres.ravel()])


def own(data, indices, indptr):
    return CSRMatrix(space, indptr, indices, data, P.shape)


def own_blocks(data, indices, indptr):
    return BSRMatrix(space, indptr, indices, data, P.shape)


def sweep(K=P, M=MASS, loads=B, rows=np.array([1, 5])):
    return np.array(h.sweep_matrices(K, M, 0.1 * MASS, loads, rows, [0.1, 0.2], settings={"method": "direct"}).values)


def factored(name):
    return lambda lu: resolve("decomposer", name).factor(lu).lu


# name: (what is done with the arrays, the arrays)
DOORS = {
    "solve": (lambda rhs, x0: solved(A, rhs, x0=x0, precond="ilu0"), {"rhs": B, "x0": B[::-1].copy()}),
    "solve, matrix": (lambda **of: solved(matrix(A, **of)), arrays(A)),
    "solve, arrays": (lambda **of: solved(tuple(of.values())), arrays(A)),
    "solve, dense": (solved, {"matrix": A.toarray()}),
    "multiply": (lambda **of: swell.multiply(matrix(A, **of), A).data, arrays(A)),
    "lstsq": (lambda rhs, **of: swell.lstsq(matrix(A, **of), rhs).x, {"rhs": b, **arrays(A)}),
    "transversal": (lambda **of: swell.transversal(matrix(A, **of)), arrays(A)),
    "batch": (lambda values, rhs: swell.solve_batch(P, values, rhs).x,
              {"values": np.outer([1.0, 2.0], P.data), "rhs": np.stack([b, 2 * b])}),
    "scipy_like": (lambda rhs, x0: swell.scipy_like.cg(P, rhs, x0)[0], {"rhs": B[:, :1].copy(), "x0": b}),
    "CSRMatrix": (lambda **of: solved(own(**of), method="cg"), arrays(P)),
    "BSRMatrix": (lambda **of: solved(own_blocks(**of), method="cg"), arrays(BLOCKS)),
    "from_blocks": (lambda data, indices, indptr: BSRMatrix.from_blocks(space, indptr, indices, data, P.shape).data,
                    arrays(BLOCKS)),
    "from_rows": (lambda **of: from_rows(matrix(P, **of)), arrays(P)),
    "nullspace": (lambda basis: solved(gallery.neumann((8, 8)), b - b.mean(), nullspace=NullSpace(basis)),
                  {"basis": np.ones((N, 1))}),
    "rigid_body_modes": (swell.rigid_body_modes, {"points": POINTS}),
    "near_nullspace": (lambda modes: solved(P, method="cg", precond=SmoothedAggregation(near_nullspace=modes)),
                       {"modes": np.stack([np.ones(N), np.arange(N)], axis=1)}),
    "nodes": (lambda nodes: solved(K, method="cg", precond=SmoothedAggregation(nodes=nodes)),
              {"nodes": np.repeat(np.arange(32), 2)}),
    "coordinates": (lambda points: solved(K, method="cg", precond=SmoothedAggregation(coordinates=points)),
                    {"points": POINTS}),
    "Schwarz": (lambda modes: solved(P, method="cg", precond=Schwarz(
        domains=4, coarse="nicolaides", kind="additive", near_nullspace=modes)), {"modes": np.ones((N, 1))}),
    "Subdomains": (lambda dofs, **of: subdomains(matrix(LOCAL, **of), dofs), {"dofs": np.arange(3), **arrays(LOCAL)}),
    "AMS": (lambda edges, **of: solved(EDGES, np.ones(EDGES.shape[0]), "cg", precond=AMS(matrix(G, **of), edges)),
            {"edges": ALONG, **arrays(G)}),
    "fields": (lambda fields: solved(COUPLED, np.ones(2 * N), precond=FieldSplit(fields)),
               {"fields": np.repeat(np.arange(2), N)}),
    "schur": (lambda **of: solved(COUPLED, np.ones(2 * N), precond=FieldSplit(
        {"u": slice(0, N), "p": slice(N, None)}, schur=matrix(BESIDE, **of))), arrays(BESIDE)),
    "dense": (lambda matrix, rhs: swell.dense.solve(matrix, rhs, mixed=False).x, {"matrix": DENSE, "rhs": DENSE[:, :2]}),
    **{name: (factored(name), {"lu": DENSE}) for name in ("getrf", "gem", "cm", "pcm")},
    "dense batch": (lambda rhs: swell.dense.solve_batch(resolve("decomposer", "getrf").factor_batch(DENSE[None]), rhs),
                    {"rhs": DENSE[None, :, :3].copy()}),
    "Mesh": (geometry, {name: getattr(BOX, name) for name in ("points", "face_ptr", "face_points", "owner", "neighbour")}),
    "Poisson": (lambda k, q, value: fvm.Poisson(BOX, {**WALLS, "xmin": fvm.Dirichlet(value)}, k, q).solve().p,
                {"k": np.arange(1.0, 25), "q": np.arange(24.0), "value": np.arange(6.0)}),
    "transport": (lambda u: fvm.ScalarTransport(BOX, WALLS, u, 0.1).solve().p, {"u": np.arange(72.0).reshape(24, 3)}),
    "Pattern": (lambda flux: fvm.Pattern(space, 24, BOX.owner, BOX.neighbour).collect(flux), {"flux": np.arange(98.0)}),
    "waves": (lambda points, cells: h.Mesh(points, WAVES.shape, cells).points, {"points": WAVES.points, "cells": WAVES.cells}),
    "sweep": (lambda loads, rows: sweep(loads=loads, rows=rows), {"loads": B, "rows": np.array([1, 5])}),
}
CASES = [(door, name) for door, (_, given) in DOORS.items() for name in given]


def check(door, name, array):
    """The result with ``array`` in place of the array ``name`` is the same to the bit; the array has not changed."""
    run, given = DOORS[door]
    before = array.tobytes()
    found, wanted = (np.asarray(run(**{**given, name: each})) for each in (array, given[name].copy()))
    assert found.dtype == wanted.dtype and found.tobytes() == wanted.tobytes() and array.tobytes() == before


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("door, name", CASES)
def test_any_layout(door, name, layout):
    array = LAYOUTS[layout](DOORS[door][1][name])
    if door == "dense" and name == "matrix" and layout == "columns first":
        pytest.skip("BLAS sums in another order, and the order in memory is kept")
    check(door, name, array)


@pytest.mark.parametrize("dtype", WHOLE_NUMBERS)
@pytest.mark.parametrize("door, name", [(door, name) for door, name in CASES if DOORS[door][1][name].dtype.kind == "i"])
def test_any_type_of_whole_numbers(door, name, dtype):
    check(door, name, DOORS[door][1][name].astype(dtype))


@pytest.mark.parametrize("lock", [False, True])
@pytest.mark.parametrize("given, use", [
    (A, solved), (A, swell.transversal), (P, from_rows), (P, sweep), (LOCAL, subdomains),
    (MASS, lambda M: sweep(M=M)), (A, lambda M: swell.multiply(M, A).toarray()), (A, lambda M: swell.lstsq(M, b).x),
    (G, lambda G: solved(EDGES, np.ones(EDGES.shape[0]), "cg", precond=AMS(G, ALONG))),
    (BESIDE, lambda S: solved(COUPLED, np.ones(2 * N), precond=FieldSplit({"u": slice(0, N), "p": slice(N, None)}, schur=S)))])
def test_a_matrix_in_disorder(given, use, lock):
    """SciPy's own functions sort and sum in place, fail where arrays may only be read, and where their types differ."""
    matrix = in_disorder(given, lock)
    before = arrays_of(matrix)
    assert np.allclose(use(matrix), use(given), rtol=1e-6)
    assert all(map(np.array_equal, arrays_of(matrix), before))


@pytest.mark.parametrize("lock", [False, True])
def test_an_update_writes_into_no_array_of_scipys(lock):
    tidy = P.copy()
    tidy.data.flags.writeable = not lock
    solver = swell.prepare(CSRMatrix.from_scipy(tidy, space), method="cg", rtol=1e-10)
    assert np.allclose(solver.update(2 * P).solve(b).x * 2, solved(P, method="cg", rtol=1e-10))
    assert np.array_equal(tidy.data, P.data)
