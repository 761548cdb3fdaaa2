"""Poisson's equation on the unit cube by trilinear hexahedra, in subdomains for BDDC: −∇·(k ∇u) = 1, u = 0 on the
boundary.

    cube = poisson_cube.PoissonCube(elements=8, subdomains=4, levels=2)
    r = cube.solve(dense_lu="icm(x=32)")
    print(r)                                     # times of loading, setup and Krylov; the spectrum by CG's coefficients

The benchmark of section 3.2 of L. M. Čejka's thesis, with its three parameters and its three stages. All elements are
equal cubes. Index arithmetic therefore assembles the 27 entries of a row from slices of k, for the whole matrix and
for each subdomain. What differs from the thesis: boundary values are eliminated, while the thesis keeps these dofs.
Subdomains at the boundary are therefore smaller (elements=5: 68 to 178 rows instead of 104 to 178).
"""
from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from swell.core.compilation import Stopwatch
from swell.core.errors import InputError
from swell.core.settings import positive, real
from swell.core.devices import make_space
from swell.formats.csr import CSRMatrix
from swell.formats.matrix import index_type
from swell.preconditioners.bddc.subdomains import Subdomains

KINDS = ("constant", "checkerboard", "channels")
ASSEMBLY = 1200         # bytes an unknown during assembly, counted from its arrays


@dataclass(frozen=True, eq=False)
class PoissonCube:
    """The problem, with the thesis' parameters.

    Attributes
    ----------
    elements : int
        Elements along an edge of a subdomain, H/h.
    subdomains : int
        Subdomains along an edge of the cube.
    levels : int
        Levels of BDDC. From each level to the next, except the last, 2 × 2 × 2 subdomains are joined into one.
    coefficient : str or array, shape (e, e, e)
        k > 0 in each element, with e = elements * subdomains; or a name. "constant": 1. "checkerboard": 1 and ``jump``
        in alternating subdomains. "channels": ``jump`` in a straight channel through the middle of every row of
        subdomains along the last axis, 1 around it.
    jump : float
        See ``coefficient``.
    """

    elements: int = 8
    subdomains: int = 4
    levels: int = 2
    coefficient: Any = "constant"
    jump: float = 1e4

    def __post_init__(self):
        positive(self, "elements", 2)
        positive(self, "subdomains", 2)
        positive(self, "levels", 2)
        if 2 ** (self.levels - 1) > self.subdomains:
            raise InputError(f"PoissonCube(levels={self.levels}, subdomains={self.subdomains}): the last level would "
                             f"have one subdomain; expected at least {2 ** (self.levels - 1)} subdomains an edge")
        if not real(self.jump) or not 0 < self.jump < np.inf:
            raise InputError(f"PoissonCube(jump={self.jump!r}): expected a positive number")
        if isinstance(self.coefficient, str):
            if self.coefficient not in KINDS:
                raise InputError(f"PoissonCube(coefficient={self.coefficient!r}): expected one of "
                                 f"{', '.join(KINDS)}, or an array")
            return
        k = np.asarray(self.coefficient)
        if k.shape != (self.edge,) * 3:
            raise InputError(f"PoissonCube(coefficient=...) is an array of shape {k.shape}: expected "
                             f"{(self.edge,) * 3}, a number for each element")
        good = (k > 0) & np.isfinite(k)
        if not good.all():
            at = np.unravel_index(good.argmin(), k.shape)
            raise InputError(f"PoissonCube(coefficient=...) is {k[at]} in element {tuple(map(int, at))}: expected "
                             "finite and positive numbers")

    @property
    def edge(self) -> int:
        """Elements along an edge of the cube."""
        return self.elements * self.subdomains

    @property
    def n(self) -> int:
        """Number of unknowns."""
        return (self.edge - 1) ** 3

    def coefficients(self, box=(slice(None),) * 3) -> np.ndarray:
        """Return k in every element, or in the elements of a box, given as a slice for each axis."""
        if not isinstance(self.coefficient, str):
            return np.asarray(self.coefficient, float)[box]
        at = np.ix_(*(np.arange(self.edge)[part] for part in box))
        k = np.ones([axis.size for axis in at])
        if self.coefficient == "checkerboard":
            k[sum(axis // self.elements for axis in at) % 2 == 1] = self.jump
        if self.coefficient == "channels":
            x, y, _ = (axis % self.elements == self.elements // 2 for axis in at)
            k[np.broadcast_to(x & y, k.shape)] = self.jump
        return k

    def assemble(self, device="cpu") -> "CubeSystem":
        """Assemble the matrix, the right-hand side and the subdomains; return a CubeSystem.

        Raises
        ------
        OutOfMemory
            If there is too little memory; the message says how much is needed.
        """
        space, watch = make_space(device), Stopwatch()
        space.check_fits(ASSEMBLY * self.n, f"assembly of {self.n} unknowns", "take fewer elements or subdomains")
        with space.active(self.n):
            box = (space.from_host(of) for of in (self.coefficients(), self._free((slice(None),) * 3)))
            entries = stencil_matrix(space.xp, *box, 1 / self.edge)
            A = CSRMatrix(space, *entries, (self.n, self.n))
            b = space.empty(self.n, np.float64)
            b.fill(self.load)
            subdomains = Subdomains(self._parts(range(self.subdomains ** 3), space), self.groups())
            space.synchronize()
        return CubeSystem(self, A, b, subdomains, watch.seconds)

    @property
    def load(self) -> float:
        """The right-hand side's entry in every row: a node has an eighth of each of eight elements."""
        return 1 / self.edge ** 3

    def rank_subdomains(self, rank, ranks, device="cpu") -> list:
        """Return one rank's subdomains, which are consecutive, for ``swell.distributed.from_subdomains``.

        Returns
        -------
        list of (scipy.sparse.csr_array, int array)
            Matrix and dofs of each subdomain.

        Raises
        ------
        InputError
            If there are more ranks than subdomains.
        """
        count, space = self.subdomains ** 3, make_space(device)
        if ranks > count:
            raise InputError(f"{ranks} ranks and {count} subdomains: start {count} ranks at most")
        starts = [k * count // ranks for k in (rank, rank + 1)]
        with space.active():
            return self._parts(range(*starts), space)

    def _free(self, box):
        """Return a bool mask of the nodes of a box (a slice for each axis): False on the cube's boundary."""
        at = np.ix_(*(np.arange(self.edge + 1)[part] for part in box))
        x, y, z = ((0 < axis) & (axis < self.edge) for axis in at)
        return x & y & z

    def _parts(self, which, space):
        """Return a list of (matrix, rows) for the subdomains with the numbers ``which``; equal subdomains share one
        matrix object."""
        m, parts, made = self.elements, [], {}
        for corner in zip(*np.unravel_index(which, (self.subdomains,) * 3), strict=True):
            cells = tuple(slice(c * m, (c + 1) * m) for c in corner)
            nodes = tuple(slice(c * m, (c + 1) * m + 1) for c in corner)
            k, free = self.coefficients(cells), self._free(nodes)
            what = k.tobytes(), free.tobytes()
            if what not in made:
                box = (space.from_host(of) for of in (k, free))
                made[what] = _scipy(space, stencil_matrix(space.xp, *box, 1 / self.edge))
            x, y, z = np.ix_(*(np.arange(part.start, part.stop) - 1 for part in nodes))
            number = (x * (self.edge - 1) + y) * (self.edge - 1) + z
            parts.append((made[what], number[free]))
        return parts

    def groups(self) -> list:
        """Return levels − 2 int arrays: for each subdomain of a level, the subdomain of the next level that it is
        joined into."""
        groups, edge = [], self.subdomains
        for _ in range(self.levels - 2):
            larger = -(-edge // 2)
            place = np.arange(edge) // 2
            groups.append(((place[:, None, None] * larger + place[:, None]) * larger + place).ravel())
            edge = larger
        return groups

    def solve(self, *, dense_lu="getrf", constraints="cef", weights="stiffness", interior="blocks", adaptive=0.0,
              method="cg", rtol=1e-8, maxiter=None, device="cpu", monitor=None) -> "CubeSolution":
        """Assemble, set up BDDC, and solve; return a CubeSolution.

        Parameters
        ----------
        dense_lu, constraints, weights, interior, adaptive
            See ``swell.BDDC``. Interiors use "blocks" by default: subdomains with equal k have equal interiors.
        method, rtol, maxiter, device, monitor
            See ``swell.solve``.
        """
        system = self.assemble(device)
        return system.solve(dense_lu=dense_lu, constraints=constraints, weights=weights, interior=interior,
                            adaptive=adaptive, method=method, rtol=rtol, maxiter=maxiter, monitor=monitor)


@dataclass(frozen=True, eq=False)
class CubeSystem:
    """The assembled problem.

    Attributes
    ----------
    cube : PoissonCube
    A : CSRMatrix
    b : array of the space, shape (n,)
    subdomains : Subdomains
    seconds : float
        Time of the assembly.
    """

    cube: PoissonCube
    A: CSRMatrix
    b: Any
    subdomains: Subdomains
    seconds: float

    def solve(self, *, dense_lu="getrf", constraints="cef", weights="stiffness", interior="blocks", adaptive=0.0,
              method="cg", rtol=1e-8, maxiter=None, b=None, monitor=None) -> "CubeSolution":
        """Set up BDDC and solve, with the right-hand side ``b`` (default: the problem's own); see ``PoissonCube.solve``
        for the other parameters.

        The problem's own b is symmetric, so that CG's spectrum shows only symmetric modes. A random b shows all modes.
        """
        from swell.api import prepare
        from swell.core.stopping import Stopping
        from swell.preconditioners.bddc.settings import BDDC
        settings = BDDC(self.cube.levels, constraints, weights, dense_lu, interior, self.subdomains, adaptive=adaptive)
        watch, space = Stopwatch(), self.A.space
        with space.active(self.cube.n):
            bddc = settings.build(self.A)
            space.synchronize()
        before = watch.seconds
        solver = prepare(self.A, method=method, M=bddc, stopping=Stopping(rtol=rtol, maxiter=maxiter))
        setup = watch.seconds
        return CubeSolution(self, solver.solve(self.b if b is None else b, monitor=monitor), bddc, setup,
                            setup - before)

    def bordered(self, k, constraints="cef"):
        """Return the scaled matrix [S Cᵀ; C 0] of subdomain k, an array of the space, for benchmarks of dense
        decomposers. S: the Schur complement on its interface; C: the constraints of BDDC."""
        from swell.preconditioners.bddc.constraints import Constraints
        from swell.preconditioners.bddc.interface import Interface
        from swell.preconditioners.bddc.local import bordered
        from swell.preconditioners.bddc.problems import eliminations
        from swell.preconditioners.bddc.schur import schur
        from swell.preconditioners.bddc.symmetry import HERMITIAN
        space, interface = self.A.space, Interface(self.A, self.subdomains)
        with space.active(self.cube.n):
            for interior in eliminations(space, self.subdomains, interface):
                for one in interior.subdomains:
                    if k in one.members:
                        S = schur(one.A, one.order, one.own, interior.factors(HERMITIAN))
                        return bordered(space, S, *Constraints(interface, constraints).matrix(k))[0]


@dataclass(frozen=True, eq=False)
class CubeSolution:
    """The solution of a cube's problem, with its solver's data.

    Attributes
    ----------
    system : CubeSystem
    result : Result
        The Krylov method's Result.
    bddc : BDDCOperator
    setup, method : float
        Seconds for the setup of the preconditioner and the method with its buffers; seconds for the method alone.
    """

    system: CubeSystem
    result: Any
    bddc: Any
    setup: float = field(repr=False)
    method: float = field(repr=False)

    @property
    def u(self) -> np.ndarray:
        """The solution at all nodes, on the host, shape (e + 1, e + 1, e + 1)."""
        e = self.system.cube.edge
        whole = np.zeros((e + 1,) * 3)
        whole[1:-1, 1:-1, 1:-1] = self.system.A.space.to_host(self.result.x).reshape((e - 1,) * 3)
        return whole

    @property
    def timings(self) -> dict:
        """Seconds of the stages loading, setup and krylov, and of the setup's parts: BDDC's, and "method".

        Compilation is left out."""
        return {"loading": self.system.seconds, "setup": self.setup, "krylov": self.result.timings["solve"],
                **self.bddc.timings, "method": self.method}

    @property
    def extremes(self) -> tuple[float, float]:
        """(smallest, largest) eigenvalue of the preconditioned operator, from CG's coefficients; (NaN, NaN) without
        them."""
        spectrum = self.result.spectrum
        return (float("nan"),) * 2 if spectrum is None else spectrum.extremes

    def __repr__(self):
        return f"CubeSolution({self.system.cube.n} unknowns, {self.result!r})"

    def _repr_html_(self):
        from swell.display import page
        from swell.solving.cards import of_result
        return page.fragment([*of_result(self.result),           # a notebook shows this
                              page.details("The cube and BDDC", page.preformatted(str(self).splitlines()))])

    def __str__(self):
        cube, (least, largest), t = self.system.cube, self.extremes, self.timings
        spectrum = "" if np.isnan(least) else (f"; eigenvalues of the preconditioned operator {least:.4f} to "
                                               f"{largest:.4f}")
        parts = ", ".join(f"{name} {t[name]:.2f} s" for name in (*self.bddc.timings, "method"))
        return "\n".join([
            f"Poisson on a cube: {cube.subdomains}³ subdomains of {cube.elements}³ elements, {cube.n} unknowns, "
            f"{cube.levels} levels",
            f"  {self.bddc.describe()}",
            f"  {self.result.reason.name.lower()} after {self.result.iterations} iterations, residual "
            f"{self.result.residual:.2e}{spectrum}",
            f"  loading {t['loading']:.2f} s, setup {t['setup']:.2f} s ({parts}), Krylov {t['krylov']:.2f} s",
            *(f"  note: {note}" for note in self.result.notes)])


def element_matrix(h) -> np.ndarray:
    """Return ∫ ∇u·∇v over a cube of edge h, shape (8, 8); node (i, j, k) has the index 4 i + 2 j + k."""
    stiff, mass = np.array([[1.0, -1], [-1, 1]]) / h, np.array([[2.0, 1], [1, 2]]) * h / 6
    return sum(np.kron(np.kron(*(stiff if axis == a else mass for a in (0, 1))), stiff if axis == 2 else mass)
               for axis in range(3))


def stencil_matrix(xp, k, free, h):
    """Assemble the stiffness matrix of a box of elements on its free nodes; return (indptr, indices, data).

    Parameters
    ----------
    xp : module
        The arrays' module, NumPy or CuPy.
    k : array, shape (a, b, c)
        The coefficient in every element.
    free : array of bool, shape (a + 1, b + 1, c + 1)
        True for nodes that are unknowns.
    h : float
        Edge of an element.
    """
    local, nodes, shape = element_matrix(h), list(product((0, 1), repeat=3)), k.shape
    offsets = list(product((-1, 0, 1), repeat=3))
    values = xp.zeros((len(offsets), *free.shape))
    for a, p in enumerate(nodes):
        at = tuple(slice(i, i + size) for i, size in zip(p, shape, strict=True))
        for b, q in enumerate(nodes):
            step = offsets.index(tuple(j - i for i, j in zip(p, q, strict=True)))
            values[(step, *at)] += float(local[a, b]) * k
    number = xp.full([size + 2 for size in free.shape], -1, np.int64)          # padded by a rim of absent nodes
    inside = number[1:-1, 1:-1, 1:-1]
    inside[free] = xp.arange(int(free.sum()))
    columns, data = [], []
    for step, offset in enumerate(offsets):
        shifted = number[tuple(slice(1 + o, 1 + o + size) for o, size in zip(offset, free.shape, strict=True))]
        columns.append(shifted[free])
        data.append(values[step][free])
    columns, data = xp.stack(columns, axis=1), xp.stack(data, axis=1)
    there = columns >= 0
    indptr = xp.zeros(columns.shape[0] + 1, np.int64)
    xp.cumsum(there.sum(axis=1), out=indptr[1:])
    return indptr, columns[there], data[there]


def _scipy(space, parts):
    """Return a SciPy CSR matrix from ``parts`` = (indptr, indices, data), arrays of the space."""
    import scipy.sparse as sp
    indptr, indices, data = parts
    narrow = index_type(data.size, data.size, data.size)
    indptr, indices, data = (space.to_host(a) for a in (indptr.astype(narrow), indices.astype(narrow), data))
    return sp.csr_array((data, indices, indptr), shape=(indptr.size - 1,) * 2)
