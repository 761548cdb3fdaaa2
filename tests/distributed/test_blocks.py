"""One block size for the whole matrix: no partition, reader, overlap or rank cuts a block."""
from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from tests.support.cases import rng

import swell
from swell import distributed, gallery
from swell.core.cpu import CpuSpace
from swell.distributed.partition import consecutive
from swell.distributed.schwarz import layers
from swell.formats.csr import CSRMatrix
from swell.preconditioners.schwarz import overlapping, subdomains


def full(n=7):
    """Dense blocks of 3 on a grid of n × n points: the plain shares of 2 and 4 ranks begin inside one."""
    return sp.csr_array(sp.kron(gallery.poisson2d(n), np.full((3, 3), 0.2) + np.eye(3)))


def sparse(n=7):
    """Three unknowns a point, each coupled to itself at the neighbours and to one other at its own point."""
    point = np.array([[2.0, 1, 0], [0, 2, 1], [1, 0, 2]])
    A = sp.kron(gallery.poisson2d(n), np.eye(3)) + sp.kron(sp.eye_array(n * n), point)
    return sp.csr_array(A)


def rows_of(communicator, A, starts=None):
    starts = consecutive(A.shape[0], communicator.size) if starts is None else starts
    return A[starts[communicator.rank]:starts[communicator.rank + 1]]


def written(A, path, kind):
    """A as a file."""
    if kind == "mtx":
        import scipy.io
        scipy.io.mmwrite(path := path / "A.mtx", A)
    elif kind == "npz":
        sp.save_npz(path := path / "A.npz", sp.csr_array(A))
    else:
        A, path = sp.csr_array(A), path / "A.petsc"
        path.write_bytes(np.array([1211216, *A.shape, A.nnz], ">i4").tobytes() + np.diff(A.indptr).astype(">i4").tobytes()
                         + A.indices.astype(">i4").tobytes() + A.data.astype(">f8").tobytes())
    return path


def uncut(M, size):
    """Whether the matrix has this block size, and every rank whole blocks of the user's rows."""
    rows = np.arange(M.shape[0])[M.rows]
    return (M.block_size == M.own.block_size == size and (M.space.ranks.starts % size == 0).all()
            and (rows.reshape(-1, size) == rows[::size, None] + np.arange(size)).all())


@pytest.mark.parametrize("partition", ["rows", "graph"])
@pytest.mark.parametrize("A, block", [(full(), None), (sparse(), 3), (sp.bsr_array(full(), blocksize=(3, 3)), None),
                                      (sp.bsr_array(sparse(), blocksize=(3, 3)), None)])
def test_scatter(ranks, partition, A, block):
    if partition == "graph":
        pytest.importorskip("pymetis", reason="the partition of a graph needs pymetis")
    x = rng().standard_normal(A.shape[0])

    def scattered(communicator):
        M = distributed.scatter(communicator, A if communicator.rank == 0 else None, partition=partition, block=block)
        assert uncut(M, 3) and np.allclose(M.gather(M.times(x[M.rows])), A @ x, rtol=1e-13)
        for other in (M.astype("complex128"), M.scaled(x[M.rows] + 9, x[M.rows] + 9), M.absolute(), M.transpose()):
            assert uncut(other, 3)

    ranks.run(scattered)


def test_what_is_detected_leaves_no_rank_without_rows(ranks):
    """A dense matrix is one block of all rows."""
    A = sp.csr_array(np.ones((8, 8)) + 8 * np.eye(8))
    ranks.run(lambda c: distributed.scatter(c, A))


@pytest.mark.parametrize("partition", ["rows", "graph"])
@pytest.mark.parametrize("kind, A, block, info", [
    *((kind, A, block, None) for kind in ("mtx", "npz", "petsc") for A, block in ((full(), None), (sparse(), 3))),
    ("petsc", sparse(), None, 3)])
def test_read(ranks, partition, kind, A, block, info, tmp_path):
    if partition == "graph":
        pytest.importorskip("pymetis", reason="the partition of a graph needs pymetis")
    path = written(A, tmp_path, kind)
    if info:
        path.with_name(path.name + ".info").write_text(f"-matload_block_size {info}\n")
    x = rng().standard_normal(A.shape[0])

    def read(communicator):
        M = distributed.read(communicator, path, partition=partition, block=block)
        assert uncut(M, 3) and np.allclose(M.gather(M.times(x[M.rows])), A @ x, rtol=1e-13)

    ranks.run(read)


def test_the_block_size_of_a_file(tmp_path):
    path = written(full(), tmp_path, "petsc")
    assert swell.io.block_size(path) is None
    path.with_name("A.petsc.info").write_text("-vecload_block_size 2\n-matload_block_size 3\n")
    assert swell.io.block_size(path) == 3
    assert swell.io.block_size(written(full(), tmp_path, "npz")) is None
    sp.save_npz(tmp_path / "B.npz", sp.bsr_array(full(), blocksize=(3, 3)))
    assert swell.io.block_size(tmp_path / "B.npz") == 3 and swell.io.block_size(written(full(), tmp_path, "mtx")) is None


@pytest.mark.parametrize("bring", ["block=", "BSR"])
def test_rows_that_ranks_bring(ranks, bring):
    A, plain = sparse(), consecutive(147, ranks.size)
    starts = consecutive(147, ranks.size, 3)

    def brought(communicator, starts):
        rows = rows_of(communicator, A, starts)
        if bring == "BSR" and rows.shape[0] % 3 == 0:
            return distributed.from_rows(communicator, sp.bsr_array(rows, blocksize=(3, 3)))
        return distributed.from_rows(communicator, rows, block=3)

    assert all(ranks.run(lambda c: uncut(brought(c, starts), 3)))
    if ranks.size > 1:
        with pytest.raises(swell.InputError, match="rank 1 begins at row .*, inside a block of 3 rows: share whole"):
            ranks.run(brought, plain)
    with pytest.raises(swell.InputError, match="blocks of 5 rows do not divide the 147 rows of A"):
        ranks.run(lambda c: distributed.from_rows(c, rows_of(c, A), block=5))


def test_ranks_that_disagree_on_blocks(ranks):
    if ranks.size == 1:
        pytest.skip("one rank agrees with itself")
    with pytest.raises(swell.InputError, match="the ranks disagree on the size of blocks"):
        ranks.run(lambda c: distributed.from_rows(c, rows_of(c, full()), block=None if c.rank else 3))


def test_a_detected_size_divides_all_boundaries(ranks):
    A = full()
    for M in ranks.run(lambda c: distributed.from_rows(c, rows_of(c, A))):
        assert uncut(M, 3 if ranks.size == 1 else 1)
    for M in ranks.run(lambda c: distributed.from_rows(c, rows_of(c, A, consecutive(147, c.size, 3)))):
        assert uncut(M, 3) and not M.notes


def test_layers_have_whole_blocks(ranks):
    """And a matrix of the layers whose own blocks are those of A."""
    A = sparse()

    def overlapping(communicator):
        M = distributed.scatter(communicator, A, block=3)
        rows, ghosts = layers(M, 1)
        assert (ghosts.reshape(-1, 3) == ghosts[::3, None] + np.arange(3)).all() and (ghosts[::3] % 3 == 0).all()
        precond = swell.Schwarz(overlap=1, inner="ilu(block=None)")
        r = swell.solve(M, np.ones(M.own.shape[0]), method="gmres", precond=precond)
        assert r.converged and any("blocks of 3" in line for line in r.configuration)
        return M.gather(r.x), r.iterations

    found = ranks.run(overlapping)
    assert all(np.linalg.norm(A @ x - 1) <= 1e-7 for x, _ in found)


def test_iterations_are_fewer_with_whole_blocks():
    """Of block ILU(0), which needs no more where blocks are given than where they are detected."""
    A, counts = full(12), []
    for block in (1, 3, None):
        def solve(communicator):
            M = distributed.scatter(communicator, A, block=block)
            return swell.solve(M, np.ones(M.own.shape[0]), method="gmres", precond="ilu(block=None)").iterations
        counts.append(distributed.run(4, solve)[0])
    assert counts[1] == counts[2] <= counts[0]


def test_one_device():
    A = CSRMatrix.from_scipy(sparse(), CpuSpace(), 3)
    assert A.block_size == 3 and CSRMatrix.from_scipy(sparse(), CpuSpace()).block_size == 1
    for other in (A.astype("float32"), A.absolute(), A.scaled(None, A.diagonal()), A.power(2), A.transpose(),
                  A.with_values(A.data), swell.CSR(lanes=2).build(A)):
        assert other.block_size == 3
    assert swell.BSR().build(A).block == 3
    with pytest.raises(swell.InputError, match="blocks of 4 rows do not divide the 147 rows"):
        CSRMatrix.from_scipy(sparse(), CpuSpace(), 4)
    order = np.random.default_rng(0).permutation(147)
    assert swell.transforms.permutation.Permutation(A, order).matrix(A).block_size == 1


@pytest.mark.parametrize("A, given", [(sparse(), {"block": 3}), (sp.bsr_array(sparse(), blocksize=(3, 3)), {}), (full(), {})])
@pytest.mark.parametrize("parts", [{"precond": "ilu(block=None)", "method": "gmres"},
                                   {"format": "bsr", "method": "gmres"},
                                   {"precond": "schwarz(domains=2, inner='ilu(block=None)')", "method": "gmres"}])
def test_solve_knows_the_blocks(A, given, parts):
    """Also where a Solver is loaded from a pickle, and where a copy has the arrays before an update."""
    s = swell.prepare(A, **parts, **given)
    assert s.A.block_size == 3 and any("block 3" in line or "blocks of 3" in line for line in s.describe())
    other = pickle.loads(pickle.dumps(s))
    copied = s.copy()
    s.update(2 * A)
    for one in (s, other, copied):
        assert one.A.block_size == 3 and one.describe() == copied.describe() and one.solve(np.ones(147)).converged


@pytest.mark.parametrize("A, block, message", [
    (full(), 4, "blocks of 4 rows do not divide the 147 rows"), (full(), 0, "block=0: expected a number of rows"),
    (sp.linalg.aslinearoperator(full()), 3, "block=3 needs a matrix with entries"),
    (CSRMatrix.from_scipy(full(), CpuSpace()), 3, "has its block size already")])
def test_blocks_that_cannot_be(A, block, message):
    with pytest.raises(swell.InputError, match=message):
        swell.prepare(A, method="gmres", block=block)


def test_the_command_line(tmp_path, capsys):
    from swell.cli import main
    path = written(sparse(), tmp_path, "petsc")
    words = ["solve", str(path), "--method", "gmres", "--precond", "ilu(block=None)"]
    assert main(words) == 0 and "blocks of 3" not in capsys.readouterr().out
    assert main([*words, "--block", "3"]) == 0 and "blocks of 3" in capsys.readouterr().out
    path.with_name(path.name + ".info").write_text("-matload_block_size 3\n")
    assert main(words) == 0 and "blocks of 3" in capsys.readouterr().out
    assert main([*words, "--block", "1"]) == 0 and "blocks of 3" not in capsys.readouterr().out


@pytest.mark.parametrize("partition", ["rows", "graph"])
@pytest.mark.parametrize("layers", [0, 1, 2])
def test_subdomains_on_one_device_have_whole_blocks(partition, layers):
    if partition == "graph":
        pytest.importorskip("pymetis", reason="the partition of a graph needs pymetis")
    A = CSRMatrix.from_scipy(sparse(), CpuSpace(), 3)
    settings = swell.Schwarz(domains=4, partition=partition)
    owner = subdomains(A, settings).reshape(-1, 3)
    assert (owner == owner[:, :1]).all() and len(np.unique(owner)) == 4
    rows, domain, owned = (of.reshape(-1, 3) for of in overlapping(A, owner.reshape(-1), layers))
    assert (rows == rows[:, :1] + np.arange(3)).all() and (rows[:, 0] % 3 == 0).all()
    assert (domain == domain[:, :1]).all() and owned.sum() == 147
