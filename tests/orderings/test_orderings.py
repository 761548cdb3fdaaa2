"""The contract of every ordering: a bijection that does what it is for, and a system that is solved as before."""
from __future__ import annotations

import gzip
import sys

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from tests.support.cases import rng
from tests.support.during import during

import swell
from swell import gallery
from swell.core.registry import names, resolve
from swell.core.devices import make_space
from swell.formats.csr import CSRMatrix
from swell.orderings.cuthill_mckee import bandwidth, layers
from swell.orderings.multicolor import by_color, greedy, jones_plassmann
from swell.orderings.ordering import adjacency
from swell.transforms.permutation import Permutation

MATRICES = {
    "shuffled mesh": lambda: shuffled(gallery.p1_laplacian(400)),
    "unsymmetric": lambda: shuffled(gallery.convection_diffusion((12, 12), 5.0, "upwind")),
    "in parts": lambda: shuffled(sp.block_diag([gallery.poisson2d(5), gallery.poisson1d(9), sp.eye_array(3)]).tocsr()),
    "triangular": lambda: sp.csr_array(sp.tril(gallery.poisson2d(7))),
    "star": lambda: star(1500),
    "dense": lambda: sp.csr_array(np.ones((70, 70))),
    "1 x 1": lambda: sp.csr_array([[2.0]]),
    "0 x 0": lambda: sp.csr_array((0, 0)),
}
REAL = ("foam_hump_p", "cage10", "bcsstk16", "rajat01", "west0479")
NARROWING = ("rcm", "cuthill_mckee")
COLORINGS = {"natural": greedy, "largest first": lambda A: greedy(A, "largest_first"),
             "jones_plassmann": jones_plassmann}


@pytest.fixture(params=names("ordering"))
def ordering(request):
    return request.param


def shuffled(A):
    order = rng().permutation(A.shape[0])
    return sp.csr_array(A)[order][:, order]


def star(n):
    """One row that is coupled to all others, which are coupled to nothing else."""
    A = sp.eye_array(n).tolil()
    A[7, :] = A[:, 7] = 1
    return A.tocsr()


def csr(A, space):
    A = sp.csr_array(A).astype(float)
    A.sort_indices()
    return CSRMatrix.from_scipy(A, space)


def read(data, name):
    with gzip.open(data / "matrices" / f"{name}.mtx.gz") as file:
        return sp.csr_array(scipy.io.mmread(file).tocsr())


def edges(A):
    """The ends of every stored entry off the diagonal."""
    A = A.tocoo()
    off = A.row != A.col
    return A.row[off], A.col[off]


def test_a_bijection_that_is_the_same_on_every_device(ordering, space):
    """Found twice there, and once on the CPU."""
    for name in MATRICES:
        with during(name=name):
            A, cpu = MATRICES[name](), make_space("cpu")
            settings = resolve("ordering", ordering)
            with space.active():
                found = [space.to_host(settings.order(csr(A, space))) for _ in range(2)]
            assert (np.sort(found[0]) == np.arange(A.shape[0])).all()
            assert (found[0] == found[1]).all() and (found[0] == settings.order(csr(A, cpu))).all()


def test_the_graph_of_a_matrix(space):
    for name in MATRICES:
        with during(name=name):
            A = MATRICES[name]()
            pattern = (abs(A) + abs(A).T).tolil()
            pattern.setdiag(0)
            expected = pattern.tocsr()
            expected.eliminate_zeros()
            expected.sort_indices()
            with space.active():
                indptr, neighbours = (space.to_host(a) for a in adjacency(csr(A, space)))
            assert (indptr == expected.indptr).all() and (neighbours == expected.indices).all()


# -- Cuthill–McKee -----------------------------------------------------------------------------------------------------

def test_every_narrowing_ordering_is_tested():
    assert set(NARROWING) <= set(names("ordering"))


def test_the_layers_of_a_graph(space):
    """On a GPU nothing is searched: a lower bound, by the bandwidth. Row 0 alone counts for its component."""
    grid, line = gallery.poisson2d(20), gallery.poisson1d(50)
    apart = sp.block_diag([sp.csr_array([[2.0]]), line]).tocsr()
    with space.active():
        found = [layers(csr(A, space)) for A in (grid, line, apart, sp.csr_array((3, 3)))]
    assert found == [39, 50, 1, 3] if space.name == "cpu" else found[0] <= 39 and found[1] <= 50


@pytest.mark.parametrize("ordering", NARROWING)
@pytest.mark.parametrize("name", ["shuffled mesh", "unsymmetric"])
def test_a_narrow_band(ordering, name, space):
    A = MATRICES[name]()
    with space.active():
        A = csr(A, space)
        before, after = bandwidth(A), bandwidth(A, resolve("ordering", ordering).order(A))
    assert after <= 4 * np.sqrt(A.shape[0]) < before / 2


@pytest.mark.data
@pytest.mark.parametrize("name", REAL)
def test_a_band_like_scipys(name, data, space):
    """SciPy begins each component in a vertex of least degree and sorts ties otherwise: a few percent either way."""
    from scipy.sparse.csgraph import reverse_cuthill_mckee
    A = read(data, name)
    pattern = sp.csr_matrix(abs(A) + abs(A).T)
    with space.active():
        A = csr(A, space)
        theirs = bandwidth(A, space.from_host(reverse_cuthill_mckee(pattern, symmetric_mode=True)))
        assert bandwidth(A, resolve("ordering", "rcm").order(A)) <= 1.05 * theirs


def test_one_is_the_reverse_of_the_other(space):
    with space.active():
        A = csr(MATRICES["shuffled mesh"](), space)
        orders = [space.to_host(resolve("ordering", name).order(A)) for name in NARROWING]
    assert (orders[0] == orders[1][::-1]).all()


def test_cuthill_mckee_by_its_definition(space):
    """From a first vertex of each component on: neighbours without a number, by degree, vertex after vertex."""
    for name in MATRICES:
        with during(name=name):
            A = MATRICES[name]()
            with space.active():
                found = csr(A, space)
                order = space.to_host(resolve("ordering", "cuthill_mckee").order(found)).tolist()
                indptr, neighbours = (space.to_host(a) for a in adjacency(found))
            degrees, seen, expected = np.diff(indptr), set(), []
            for vertex in order:
                if vertex not in seen:
                    queue = [vertex]
                    seen.add(vertex)
                    for u in queue:
                        new = [int(v) for v in neighbours[indptr[u]:indptr[u + 1]] if int(v) not in seen]
                        queue += sorted(new, key=lambda v: (degrees[v], v))
                        seen.update(new)
                    expected += queue
            assert order == expected


def test_the_first_vertex_lies_far_out(space):
    """A strip with one vertex more, hung to its middle: that is the vertex of least degree, and levels that begin there
    are twice as wide as those from an end of the strip."""
    line = [sp.diags_array([np.ones(n - 1), np.ones(n), np.ones(n - 1)], offsets=[-1, 0, 1]) for n in (4, 60)]
    A = sp.block_diag([sp.kron(line[1], line[0]), sp.eye_array(1)]).tolil()
    A[240, 120] = A[120, 240] = 1
    with space.active():
        assert bandwidth(csr(A, space), resolve("ordering", "rcm").order(csr(A, space))) <= 2 * 4 + 1


# -- colours -----------------------------------------------------------------------------------------------------------

def check_colors(A, coloring, space):
    """No edge within a colour, every colour used, and at most one more than the largest degree."""
    with space.active():
        matrix = csr(A, space)
        colors = COLORINGS[coloring](matrix)
        rows, ptr = by_color(space, colors)
        colors, rows = space.to_host(colors), space.to_host(rows)
        largest = int(np.diff(space.to_host(adjacency(matrix)[0])).max(initial=0))
    i, j = edges(A)
    assert colors.dtype == np.int32 and colors.shape == (A.shape[0],) and not (colors[i] == colors[j]).any()
    assert len(ptr) - 1 == colors.max(initial=-1) + 1 <= largest + 1
    for color, (first, end) in enumerate(zip(ptr, ptr[1:])):
        assert (rows[first:end] == np.flatnonzero(colors == color)).all() and end > first
    return len(ptr) - 1


@pytest.mark.parametrize("coloring", COLORINGS)
def test_no_edge_within_a_color(coloring, space):
    for name in MATRICES.keys() - {"0 x 0"}:
        with during(name=name):
            check_colors(MATRICES[name](), coloring, space)


@pytest.mark.data
@pytest.mark.parametrize("name", REAL)
def test_no_edge_within_a_color_of_real_matrices(name, space, data):
    for coloring in COLORINGS:
        with during(coloring=coloring):
            check_colors(read(data, name), coloring, space)


def test_what_is_known_of_the_number_of_colors(space):
    assert check_colors(gallery.poisson2d(20), "natural", space) == 2            # red and black
    assert check_colors(star(1500), "largest first", space) == 2
    assert check_colors(sp.csr_array(np.ones((70, 70))), "jones_plassmann", space) == 70


def test_jones_plassmann_is_greedy_by_weight(space):
    """Rounds do not show: the colours are those of the greedy method, heaviest vertex first."""
    def weight(i, seed):
        """Splitmix64 of i and the seed, modulo 2⁶⁴."""
        z = i + (seed + 1) * 0x9E3779B97F4A7C15 & ones
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & ones
        z = (z ^ z >> 27) * 0x94D049BB133111EB & ones
        return z ^ z >> 31

    ones = 2**64 - 1
    A = MATRICES["shuffled mesh"]()
    turn = sorted(range(A.shape[0]), key=lambda i: -weight(i, 3))
    expected = np.full(A.shape[0], -1)
    pattern = sp.csr_array(A)
    for i in turn:
        around = expected[pattern.indices[pattern.indptr[i]:pattern.indptr[i + 1]]]
        expected[i] = next(c for c in range(99) if c not in around)
    with space.active():
        found = space.to_host(jones_plassmann(csr(A, space), seed=3))
    assert (found == expected).all()


# -- parts -------------------------------------------------------------------------------------------------------------

def in_slices(A, order, height):
    """The share of entries off the diagonal that lie in the slice of their row."""
    place = np.empty(order.size, np.int64)
    place[order] = np.arange(order.size)
    i, j = edges(A)
    return float((place[i] // height == place[j] // height).mean())


MESHES = {"shuffled mesh": lambda: shuffled(gallery.p1_laplacian(9000)),
          "box": lambda: shuffled(gallery.poisson3d(20)),
          "disconnected": lambda: shuffled(sp.block_diag([gallery.poisson2d(40), gallery.poisson2d(60),
                                                          sp.eye_array(50)]))}


@pytest.mark.parametrize("mesh", MESHES)
def test_partition_interiors_are_not_coupled(mesh):
    """Every slice holds one part; no entry couples interior rows of two; separators are few, and come last."""
    A, height = sp.csr_array(MESHES[mesh]()), 128
    n = A.shape[0]
    parts = resolve("ordering", f"partition(height={height})").split(csr(A, make_space("cpu")))
    place = np.empty(n, np.int64)
    place[parts.order] = np.arange(n)
    interior = parts.interior[place]
    i, j = edges(A)
    both = interior[i] & interior[j]
    assert (place[i[both]] // height == place[j[both]] // height).all()
    assert not parts.interior[parts.count * height:].any()
    assert 0 < parts.separator_share < (0.5 if mesh == "box" else 0.25)
    assert f"{parts.separator_share:.1%} of the rows are separators" in parts.describe()


@pytest.mark.parametrize("separators", [True, False])
@pytest.mark.parametrize("mesh", MESHES)
def test_partition_keeps_entries_in_slices(mesh, separators):
    """A cube of 5³ cells keeps 80 % of its couplings, a disc of 128 vertices about 90 %: most of that is reached."""
    A = sp.csr_array(MESHES[mesh]())
    matrix = csr(A, make_space("cpu"))
    share = in_slices(A, resolve("ordering", f"partition(height=128, separators={separators})").order(matrix), 128)
    assert share > (0.6 if mesh == "box" else 0.7)
    assert share > 2 * in_slices(A, resolve("ordering", "rcm").order(matrix), 128) or mesh == "disconnected"


@pytest.mark.parametrize("height", [2, 127, 128, 8999, 9000, 10000])
def test_partition_of_any_height(height):
    """All rows once, whatever is left over; a single slice is the matrix as it came."""
    A = csr(MESHES["shuffled mesh"](), make_space("cpu"))
    for separators in (True, False):
        order = resolve("ordering", f"partition(height={height}, separators={separators})").order(A)
        assert (np.sort(order) == np.arange(9000)).all()
        assert height < 9000 or (order == np.arange(9000)).all()


@pytest.mark.data
def test_partition_of_a_real_mesh(data):
    A = read(data, "foam_hump_p")
    parts = resolve("ordering", "partition").split(csr(A, make_space("cpu")))
    assert in_slices(A, parts.order, 512) > 0.75 and parts.separator_share < 0.25


def test_partition_is_told_with_the_result():
    A = MESHES["box"]()
    r = swell.solve(A, np.ones(A.shape[0]), method="cg", ordering="partition(height=64)")
    assert r.converged and any("of the rows are separators" in line for line in r.configuration)


def test_what_is_missing_without_metis(monkeypatch):
    monkeypatch.setitem(sys.modules, "pymetis", None)
    with pytest.raises(swell.MissingDependency, match=r"pip install 'swell\[partition\]'"):
        swell.solve(gallery.poisson2d(40), np.ones(1600), ordering="partition")


@pytest.mark.parametrize("settings, said", [
    ("greedy_coloring(visit='random')", "expected 'natural' or 'largest_first'"),
    ("partition(height=1)", "expected an integer of at least 2"),
    ("partition(separators=3)", "expected True or False"),
    ("jones_plassmann(seed=-1)", "expected an integer from 0"),
])
def test_settings_that_mean_nothing(settings, said):
    with pytest.raises(swell.InputError, match=said):
        resolve("ordering", settings)


# -- the system as a whole ---------------------------------------------------------------------------------------------

@pytest.mark.parametrize("scaling", [None, "jacobi"])
def test_the_solution_is_that_of_the_system_as_given(ordering, scaling, device):
    A = MATRICES["unsymmetric"]()
    A = A + sp.diags_array(rng().random(A.shape[0]))
    x = rng().standard_normal(A.shape[0])
    r = swell.solve(A, A @ x, method="gmres", ordering=ordering, scaling=scaling, device=device, rtol=1e-11, x0=0.9 * x)
    assert r.converged and np.allclose(r.x, x, atol=1e-8) and r.ordering == ordering


def test_permuted_matrix(ordering, space):
    A = MATRICES["unsymmetric"]()
    A.sort_indices()
    with space.active():
        matrix = csr(A, space)
        permutation = resolve("ordering", ordering).build(matrix)
        found = permutation.matrix(matrix).to_scipy()
        order = space.to_host(permutation.order)
    expected = A[order][:, order]
    expected.sort_indices()
    assert (found != expected).nnz == 0 and (found.indices == expected.indices).all()


def test_rows_of_any_length_are_permuted(space):
    """The star's centre has 1500 entries, its other rows two; the dense matrix's 70 each."""
    for name in ("star", "dense", "shuffled mesh"):
        A = sp.csr_array(MATRICES[name]())
        A.data = rng().standard_normal(A.nnz)
        order = rng().permutation(A.shape[0])
        with space.active():
            matrix = csr(A, space)
            found = Permutation(matrix, space.from_host(order.astype(matrix.indices.dtype))).matrix(matrix).to_scipy()
        expected = A[order][:, order]
        expected.sort_indices()
        assert (found.indices == expected.indices).all() and (found.data == expected.data).all()
        assert (found.indptr == expected.indptr).all()
