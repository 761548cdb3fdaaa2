"""Families of systems for ``swell bench auto``, in two halves: rules may be fitted to one, and the other judges them.

Each family has several sizes or parameters. They go to ``FITTED`` and ``JUDGED`` alternately, and the first one of
every second family is judged; this split was fixed before any of them was solved. Each function returns a new SciPy CSR
matrix of about n rows; ``seed``: of the random numbers. ``swell.bench.elements`` has the finite elements.
"""
from functools import partial

import numpy as np
import scipy.sparse as sp
from scipy.ndimage import gaussian_filter

from swell import gallery
from swell.bench import elements
from swell.gallery.poisson import diffusion


def optimal_control(n, penalty=1e-4):
    """Return the optimality system of Poisson control, n / 3 points each for state, control and adjoint: symmetric,
    indefinite, zeros on the diagonal. ``penalty``: of the control.

    T. Rees, H. Dollar, A. Wathen, Optimal solvers for PDE-constrained optimization, 2010.
    """
    m = int(np.sqrt(n / 3))
    line, mass = gallery.poisson1d(m), sp.diags_array((1 / 6, 2 / 3, 1 / 6), offsets=(-1, 0, 1), shape=(m, m))
    K, M = sp.kron(line, mass) + sp.kron(mass, line), sp.kron(mass, mass) / (m + 1) ** 2
    return _csr(sp.block_array([[M, None, K], [None, penalty * M, -M], [K, -M, None]]))


def nodal_analysis(n, sources=0.05, gain=0.0, seed=0):
    """Return a circuit by modified nodal analysis: a net of resistors, voltage sources (a share ``sources`` of the
    nodes, zeros on the diagonal) and transistors' transconductances of mean ``gain`` (unsymmetric if not 0).

    C.-W. Ho, A. Ruehli, P. Brennan, The modified nodal approach to network analysis, 1975.
    """
    rng = np.random.default_rng(seed)
    nodes = int(n / (1 + sources))
    W = _wires(nodes, rng, loops=0.6, local=True)
    G = sp.diags_array(np.asarray(W.sum(axis=1)).ravel() + 1e-9) - W
    if gain:
        gates, drains = rng.integers(0, nodes, (2, nodes // 3))
        gm = gain * rng.exponential(size=gates.size)
        near = np.clip(gates + rng.integers(-20, 21, gates.size), 0, nodes - 1)
        G = G + sp.coo_array((np.r_[gm, -gm], (np.r_[drains, drains], np.r_[gates, near])), shape=G.shape)
    k = n - nodes
    plus = rng.choice(nodes, k, replace=False)
    B = sp.coo_array((np.ones(k), (plus, np.arange(k))), shape=(nodes, k))     # between a node and the ground
    return _csr(sp.block_array([[G, B], [B.T, None]]))


def power_flow(n, generators=0.2, swapped=0.3, seed=0):
    """Return the Jacobian of a power flow at the flat start, without losses: unsymmetric. A bus has the unknowns angle
    and voltage, or reactive power at ``generators``, and the equations of active and reactive power; a share
    ``swapped`` of the buses has them in the other order, which leaves zeros on the diagonal.

    W. Tinney, C. Hart, Power flow solution by Newton's method, 1967.
    """
    rng = np.random.default_rng(seed)
    buses = n // 2
    W = _wires(buses, rng, loops=0.4, local=False, decades=1)
    L = sp.csr_array(sp.diags_array(np.asarray(W.sum(axis=1)).ravel()) - W)
    pv = rng.random(buses) < generators
    charging = sp.diags_array(-0.02 - 0.1 * rng.random(buses))
    slack = sp.diags_array(1e3 * (np.arange(buses) == 0.0))                    # the reference angle
    Q = (L + charging) @ sp.diags_array(1.0 * ~pv) - sp.diags_array(1.0 * pv)
    A = sp.csr_array(sp.block_array([[L + slack, None], [None, Q]]))
    unknowns = np.arange(2 * buses).reshape(2, buses).T
    equations = np.where((rng.random(buses) < swapped)[:, None], unknowns[:, ::-1], unknowns)
    return _csr(A[equations.ravel()][:, unknowns.ravel()])


def flowsheet(n, components=6, seed=0):
    """Return a chemical plant's linearised balances: separators, mixers and recycles. Equations stand by units,
    unknowns by kinds (temperatures, pressures, flows of components): unsymmetric, the diagonal mostly zero.

    A. Westerberg, H. Hutchison, R. Motard, P. Winter, Process Flowsheeting, 1979.
    """
    rng = np.random.default_rng(seed)
    streams = n // (components + 2)
    source = np.arange(streams) - rng.integers(1, 6, streams)                  # the stream that a unit splits
    recycle = np.where(rng.random(streams) < 0.15, np.arange(streams) + rng.integers(1, 60, streams), -1)
    recycle[recycle >= streams] = -1
    rows, columns, values = [], [], []

    def add(row, column, value):
        kept = (np.broadcast_to(row, streams) >= 0) & (np.broadcast_to(column, streams) >= 0)
        for held, new in ((rows, row), (columns, column), (values, value)):
            held.append(np.broadcast_to(new, streams)[kept])

    s, width = np.arange(streams), components + 2
    fed, back = np.maximum(source, -1), recycle

    def column(stream, kind):
        return np.where(stream >= 0, kind * streams + stream, -1)

    heat = 10 ** rng.uniform(1.5, 2.5, components)                             # J / (mol K)
    for c in range(components):
        split, row = rng.uniform(0.02, 0.95, streams), s * width + c
        add(row, column(s, c + 2), 1.0)
        add(row, column(fed, c + 2), -split)
        add(row, column(back, c + 2), -0.3 * split)
    for c in range(components):                                                # enthalpy: flows of the order of 1 mol/s
        add(s * width + components, column(s, c + 2), heat[c] * 350.0)
        add(s * width + components, column(fed, c + 2), -heat[c] * rng.uniform(300, 400, streams) * 0.5)
    add(s * width + components, column(s, 0), heat.sum())
    add(s * width + components, column(fed, 0), -0.5 * heat.sum())
    add(s * width + components + 1, column(s, 1), 1.0)                         # pressure drop, with the flow
    add(s * width + components + 1, column(fed, 1), -1.0)
    add(s * width + components + 1, column(s, 2), 2e3)
    order = np.arange(streams * width).reshape(streams, width)[rng.permutation(streams)].ravel()
    return _csr(sp.coo_array((np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))),
                             shape=(streams * width,) * 2).tocsr()[order])


def feeder(n, seed=0):
    """Return a radial distribution network, a tree with loads, numbered at random: SPD, no fill in its factors."""
    rng = np.random.default_rng(seed)
    W = _wires(n, rng, loops=0, local=False)
    A = _csr(sp.diags_array(np.asarray(W.sum(axis=1)).ravel() + 1e-4 * rng.random(n)) - W)
    p = rng.permutation(n)
    return A[p][:, p]


def river(n, rows_too=False, seed=0):
    """Return an implicit step of river routing (Muskingum), reaches numbered at random: a permuted triangular matrix.
    ``rows_too``: equations and unknowns are permuted differently, which leaves zeros on the diagonal."""
    rng = np.random.default_rng(seed)
    below = (np.arange(1, n) * rng.uniform(0.8, 1, n - 1)).astype(int)
    steps = rng.uniform(0.1, 20, n)                              # storage time over the time step
    A = sp.csr_array(sp.diags_array(1 + steps) - sp.coo_array((np.ones(n - 1), (below, np.arange(1, n))), shape=(n, n)))
    p = rng.permutation(n)
    return _csr(A[p][:, rng.permutation(n) if rows_too else p])


def sweep(n, seed=0):
    """Return neutron transport along one direction, upwind on a 3D grid, cells numbered at random: a permuted
    triangular matrix with fill-free factors in the right order."""
    A = gallery.advection((round(n ** (1 / 3)),) * 3)
    p = np.random.default_rng(seed).permutation(A.shape[0])
    return _csr(A[p][:, p])


def permuted_rows(n, peclet=1.0, seed=0):
    """Return 2D convection and diffusion whose equations are in random order: unsymmetric, zeros on the diagonal."""
    A = gallery.convection_diffusion((int(np.sqrt(n)),) * 2, peclet=peclet)
    return _csr(A[np.random.default_rng(seed).permutation(A.shape[0])])


def kinetics(n, species=12, step=1e-3, seed=0):
    """Return I − step J of stiff chemistry in many cells, J from first-order reactions with rates over eight decades:
    block-diagonal, unsymmetric."""
    rng = np.random.default_rng(seed)
    cells = n // species
    J = 10 ** rng.uniform(-2, 6, (cells, species, species)) * (rng.random((cells, species, species)) < 0.4)
    J[:, np.arange(species), np.arange(species)] = 0
    J[:, np.arange(species), np.arange(species)] = -J.sum(axis=1)              # reactions conserve mass
    blocks = np.eye(species) - step * J
    return _csr(sp.bsr_array((blocks, np.arange(cells), np.arange(cells + 1))))


def boundary_layer(n, epsilon=1e-3):
    """Return 1D convection and diffusion, upwind, on Shishkin's mesh for a boundary layer of width ``epsilon``:
    tridiagonal, unsymmetric."""
    kink = 1 - min(0.5, 2 * epsilon * np.log(n))
    x = np.concatenate([np.linspace(0, kink, n // 2 + 1), np.linspace(kink, 1, n - n // 2 + 2)[1:]])
    h = np.diff(x)
    left, right = epsilon / h[:-1] + 1, epsilon / h[1:]
    return _csr(sp.diags_array((-left[1:], left + right, -right[:-1]), offsets=(-1, 0, 1)))


def smoothing(n, weight=1e6):
    """Return Whittaker's smoothing by third differences, I + ``weight`` DᵀD: banded, SPD (P. Eilers, 2003)."""
    D = sp.diags_array((-1.0, 3.0, -3.0, 1.0), offsets=(0, 1, 2, 3), shape=(n - 3, n))
    return _csr(sp.eye_array(n) + weight * (D.T @ D))


def kriging(n, length=0.1, seed=0):
    """Return an exponential covariance of n random points in a square plus a nugget: dense, SPD."""
    points = np.random.default_rng(seed).random((n, 2))
    distance = np.linalg.norm(points[:, None] - points[None], axis=2)
    return _csr(np.exp(-distance / length) + 1e-3 * np.eye(n))


def boundary_elements(n, layer="double", flat=4.0):
    """Return Laplace's single or double layer on an ellipse, by the trapezoidal rule: dense; only the
    double layer is symmetric. ``flat``: the ratio of the axes. R. Kress, Linear Integral Equations, 2014, chapter 12.
    """
    t = 2 * np.pi * np.arange(n) / n
    x, y = flat * np.cos(t), np.sin(t)
    dx, dy = x[:, None] - x, y[:, None] - y
    speed, square = np.hypot(flat * np.sin(t), np.cos(t)), dx**2 + dy**2 + np.eye(n)
    if layer == "double":
        K = (dx * np.cos(t) + dy * flat * np.sin(t)) / square
        np.fill_diagonal(K, -flat / (2 * speed**2))
        return _csr(np.eye(n) / 2 - K / n)
    return _csr(-(np.log(square) / 2 + np.diag(np.log(speed * np.pi / n) - 1)) * speed / n)


def badly_scaled(n, symmetric=True, decades=4.0, seed=0):
    """Return D A D with D over 10^±``decades``, as unknowns of different units give: A is Poisson's equation, SPD, or
    ``symmetric`` = False: convection and diffusion."""
    side = (int(np.sqrt(n)),) * 2
    A = gallery.poisson(side) if symmetric else gallery.convection_diffusion(side, peclet=1.0)
    D = sp.diags_array(10 ** np.random.default_rng(seed).uniform(-decades, decades, A.shape[0]))
    return _csr(D @ A @ D)


def permeable(n, axes=2, spread=3.0, correlation=3.0, seed=0):
    """Return groundwater flow by finite volumes, heads given at two ends: SPD. The permeability is log-normal, with
    standard deviation ``spread`` of its logarithm and a ``correlation`` length in cells."""
    shape = (round(n ** (1 / axes)),) * axes
    field = gaussian_filter(np.random.default_rng(seed).standard_normal(shape), correlation, mode="nearest")
    k = np.exp(spread * (field - field.mean()) / field.std())
    ends = np.zeros(shape)
    ends[0], ends[-1] = 2 * k[0], 2 * k[-1]
    return _csr(diffusion(k, (1.0,) * axes, ends))


def _wires(n, rng, loops, local, decades=3):
    """Return the symmetric matrix of the wires' conductances, over ``decades``, of a random tree of n nodes and
    ``loops`` n further wires; ``local``: between nodes that are near."""
    far = rng.integers(0, n, int(loops * n))
    near = np.clip(far + rng.integers(-int(np.sqrt(n)) - 1, int(np.sqrt(n)) + 2, far.size), 0, n - 1)
    back = np.minimum(rng.integers(1, 40, n - 1), np.arange(1, n)) if local else None
    parent = np.arange(1, n) - back if local else (np.arange(1, n) * rng.uniform(0.7, 1, n - 1)).astype(int)
    i, j = np.r_[np.arange(1, n), far], np.r_[parent, near]
    i, j = i[i != j], j[i != j]
    W = sp.coo_array((10 ** rng.uniform(-decades / 2, decades / 2, i.size), (i, j)), shape=(n, n)).tocsr()
    return W + W.T


def _csr(A):
    A = sp.csr_matrix(A)
    A.eliminate_zeros()
    return A


MEMBERS = {             # family: (function, members (n, further arguments)), sizes as mixed as in practice
    "triangles_p1": (elements.lagrange, [(1_500, {}), (15_000, {}), (60_000, {})]),
    "triangles_p2": (partial(elements.lagrange, degree=2), [(2_000, {}), (12_000, {}), (45_000, {})]),
    "triangles_p3": (partial(elements.lagrange, degree=3), [(3_000, {}), (30_000, {})]),
    "tetrahedra_p1": (partial(elements.lagrange, cells="tetrahedra"), [(4_000, {}), (40_000, {})]),
    "tetrahedra_p2": (partial(elements.lagrange, cells="tetrahedra", degree=2), [(3_000, {}), (20_000, {})]),
    "elastic_p2": (elements.elastic, [(3_000, {}), (30_000, {})]),
    "elastic_3d": (partial(elements.elastic, cells="tetrahedra", degree=1), [(3_000, {}), (24_000, {})]),
    "elastic_bed": (partial(elements.elastic, cells="bricks", degree=1, bed=1e-6), [(2_000, {}), (15_000, {})]),
    "darcy": (elements.darcy, [(2_000, {}), (12_000, {"spread": 2.0}), (30_000, {})]),
    "darcy_3d": (partial(elements.darcy, cells="tetrahedra"), [(3_000, {}), (12_000, {"spread": 2.0})]),
    "stokes": (elements.flow, [(2_000, {}), (20_000, {})]),
    "oseen": (elements.flow, [(3_000, {"reynolds": 100.0}), (15_000, {"reynolds": 400.0})]),
    "biot": (elements.biot, [(2_500, {}), (20_000, {"step": 1e3})]),
    "optimal_control": (optimal_control, [(3_000, {}), (30_000, {"penalty": 1e-6})]),
    "nodal_analysis": (nodal_analysis, [(1_500, {}), (20_000, {"seed": 1}), (60_000, {"sources": 0.1, "seed": 2})]),
    "transistors": (partial(nodal_analysis, gain=1.0), [(2_000, {}), (30_000, {"seed": 1})]),
    "power_flow": (power_flow, [(3_000, {"swapped": 0.16}), (8_000, {"swapped": 0.6, "seed": 1}),
                                (40_000, {"seed": 2})]),
    "flowsheet": (flowsheet, [(1_000, {}), (6_000, {"seed": 1}), (30_000, {"components": 10, "seed": 2})]),
    "feeder": (feeder, [(5_000, {}), (100_000, {"seed": 1})]),
    "river": (river, [(20_000, {}), (100_000, {"seed": 1})]),
    "river_permuted": (partial(river, rows_too=True), [(2_000, {}), (40_000, {"seed": 1})]),
    "sweep": (sweep, [(8_000, {}), (50_000, {"seed": 1})]),
    "permuted_rows": (permuted_rows, [(5_000, {}), (25_000, {"peclet": 0.3, "seed": 1})]),
    "kinetics": (kinetics, [(3_000, {}), (36_000, {"species": 30, "seed": 1})]),
    "boundary_layer": (boundary_layer, [(5_000, {}), (60_000, {"epsilon": 1e-5})]),
    "smoothing": (smoothing, [(4_000, {}), (60_000, {"weight": 1e3})]),
    "kriging": (kriging, [(250, {}), (700, {"length": 0.5, "seed": 1})]),
    "boundary_elements": (boundary_elements, [(200, {}), (600, {"layer": "single"}), (1_000, {"flat": 10.0})]),
    "badly_scaled": (badly_scaled, [(5_500, {}), (40_000, {"seed": 1})]),
    "badly_scaled_flow": (partial(badly_scaled, symmetric=False), [(5_000, {}), (30_000, {"seed": 1})]),
    "permeable": (permeable, [(10_000, {}), (50_000, {"spread": 2.0, "seed": 1})]),
    "permeable_3d": (partial(permeable, axes=3), [(8_000, {}), (50_000, {"spread": 2.0, "seed": 1})]),
    "stretched": (elements.stretched, [(6_000, {"aspect": 100.0}), (25_600, {}),
                                       (25_601, {"shuffled": True}), (50_000, {"aspect": 100.0, "shuffled": True})]),
    "hierarchical": (elements.hierarchical, [(2_500, {"degree": 2}), (40_000, {"degree": 2}), (4_000, {}), (20_000, {}),
                                             (5_000, {"degree": 10}), (25_000, {"degree": 10})]),
    "hierarchical_3d": (partial(elements.hierarchical, axes=3), [(2_200, {"degree": 6}), (12_000, {"degree": 4})]),
    "transport": (elements.transport, [(3_000, {}), (20_000, {"stabilised": False, "peclet": 5.0}), (50_000, {})]),
    "acoustics": (elements.acoustics, [(3_000, {}), (15_000, {"waves": 4}), (40_000, {})]),
    "acoustics_3d": (partial(elements.acoustics, cells="bricks", degree=1), [(4_000, {}), (20_000, {})]),
}
FAMILIES = {family: {f"{family}:{n}": partial(function, n, **options) for n, options in members}
            for family, (function, members) in MEMBERS.items()}
_PLACED = [(name, make, (place + first) % 2) for place, family in enumerate(FAMILIES.values())
           for first, (name, make) in enumerate(family.items())]
FITTED = {name: make for name, make, judged in _PLACED if not judged}
JUDGED = {name: make for name, make, judged in _PLACED if judged}
