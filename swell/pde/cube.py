"""Cubes and squares of equal elements in subdomains, for BDDC: shared by Poisson's and the elastic cube.

`stencil_matrix` assembles the whole matrix and each subdomain's; equal subdomains share one matrix object.
"""
from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from swell.core.compilation import Stopwatch
from swell.core.devices import make_space
from swell.core.encoding import printable
from swell.core.errors import InputError
from swell.core.settings import positive
from swell.formats.csr import CSRMatrix
from swell.formats.matrix import index_type
from swell.pde.stencils import stencil_matrix
from swell.preconditioners.bddc.subdomains import Subdomains

KINDS = ("constant", "checkerboard", "channels")


@dataclass(frozen=True, eq=False)
class Cube(ABC):
    """The unit cube, or square, cut into equal subdomains of equal elements.

    Attributes
    ----------
    elements : int
        Elements along an edge of a subdomain, H/h.
    subdomains : int
        Subdomains along an edge of the cube.
    levels : int
        Levels of BDDC. From each level to the next, except the last, 2 subdomains along each axis are joined into one.
    """

    elements: int = 8
    subdomains: int = 4
    levels: int = 2

    title = ""
    size = 1                # unknowns of a node
    axes = 3
    reach = 1               # intervals along an edge of the largest element
    assembly = 1200         # bytes an unknown during assembly, counted from its arrays
    near_nullspace = "constants"

    def __post_init__(self):
        positive(self, "elements", 2)
        positive(self, "subdomains", 2)
        positive(self, "levels", 2)
        if 2 ** (self.levels - 1) > self.subdomains:
            raise InputError(f"{type(self).__name__}(levels={self.levels}, subdomains={self.subdomains}): the last "
                             "level would have one subdomain; expected at least "
                             f"{2 ** (self.levels - 1)} subdomains an edge")

    @property
    def edge(self) -> int:
        """Elements along an edge of the cube."""
        return self.elements * self.subdomains

    def describe(self) -> str:
        """Return the problem in words, such as "Poisson on a cube: 4³ subdomains of 8³ elements"."""
        power = {2: "²", 3: "³"}[self.axes]
        return (f"{self.title} on a {'cube' if self.axes == 3 else 'square'}: {self.subdomains}{power} subdomains of "
                f"{self.elements}{power} elements")

    @property
    @abstractmethod
    def ends(self) -> list:
        """(first, last + 1) for each axis: the nodes that are unknowns."""

    @abstractmethod
    def terms(self, box) -> list:
        """Return the terms of the stiffness in a box, a slice for each axis: a list as for `stencil_matrix`."""

    @property
    @abstractmethod
    def load(self):
        """The right-hand side: a number for every unknown, or an array."""

    @property
    def n(self) -> int:
        """Number of unknowns."""
        return self.size * int(np.prod([stop - first for first, stop in self.ends]))

    def assemble(self, device="cpu") -> "CubeSystem":
        """Assemble the matrix, the right-hand side and the subdomains; return a CubeSystem.

        Raises
        ------
        OutOfMemory
            If there is too little memory; the message says how much is needed.
        """
        space, watch = make_space(device), Stopwatch()
        space.check_fits(self.assembly * self.n, f"assembly of {self.n} unknowns", "take fewer elements or subdomains")
        with space.active(self.n):
            A = CSRMatrix(space, *self._matrix((slice(None),) * self.axes, space), (self.n, self.n), block=self.size)
            b = space.empty(self.n, np.float64)
            b[...] = self.load if np.isscalar(self.load) else space.from_host(self.load)
            subdomains = Subdomains(self._parts(range(self.subdomains ** self.axes), space), self.groups())
            space.synchronize()
        return CubeSystem(self, A, b, subdomains, watch.seconds)

    def _matrix(self, box, space):
        """Assemble the elements of a box; return (indptr, indices, data), arrays of the space."""
        terms = [(local, space.from_host(np.ascontiguousarray(k)), step) for local, k, step in self.terms(box)]
        nodes = tuple(slice(part.start, None if part.stop is None else part.stop + 1) for part in box)
        return stencil_matrix(space.xp, terms, space.from_host(self._free(nodes)), self.reach)

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
        count, space = self.subdomains ** self.axes, make_space(device)
        if ranks > count:
            raise InputError(f"{ranks} ranks and {count} subdomains: start {count} ranks at most")
        starts = [k * count // ranks for k in (rank, rank + 1)]
        with space.active():
            return self._parts(range(*starts), space)

    def _free(self, nodes):
        """Return a bool mask of a box of nodes (a slice for each axis): True for nodes that are unknowns."""
        at = np.ix_(*(np.arange(self.edge + 1)[part] for part in nodes))
        free = True
        for axis, (first, stop) in zip(at, self.ends, strict=True):
            free = free & (first <= axis) & (axis < stop)
        return free

    def _parts(self, which, space):
        """Return a list of (matrix, rows) for the subdomains with the numbers ``which``; equal subdomains share one
        matrix object."""
        m, parts, made = self.elements, [], {}
        for corner in zip(*np.unravel_index(which, (self.subdomains,) * self.axes), strict=True):
            cells = tuple(slice(c * m, (c + 1) * m) for c in corner)
            nodes = tuple(slice(c * m, (c + 1) * m + 1) for c in corner)
            free = self._free(nodes)
            what = (*(k.tobytes() for _, k, _ in self.terms(cells)), free.tobytes())
            if what not in made:
                made[what] = _scipy(space, self._matrix(cells, space))
            number = np.zeros((1,) * self.axes, np.int64)
            for axis, part, (first, stop) in zip(range(self.axes), nodes, self.ends, strict=True):
                here = np.arange(part.start, part.stop) - first
                number = number * (stop - first) + here.reshape([-1 if a == axis else 1 for a in range(self.axes)])
            parts.append((made[what], (self.size * number[free][:, None] + np.arange(self.size)).ravel()))
        return parts

    def groups(self) -> list:
        """Return levels − 2 int arrays: for each subdomain of a level, the subdomain of the next level that it is
        joined into."""
        groups, edge = [], self.subdomains
        for _ in range(self.levels - 2):
            larger = -(-edge // 2)
            at = np.unravel_index(np.arange(edge ** self.axes), (edge,) * self.axes)
            groups.append(np.ravel_multi_index([place // 2 for place in at], (larger,) * self.axes))
            edge = larger
        return groups

    def solve(self, *, dense_lu="getrf", constraints="cef", weights="stiffness", interior="blocks", adaptive=0.0,
              near_nullspace=None, averages="constraints", dense_solver="inverse", method="cg", rtol=1e-8,
              maxiter=None, device="cpu", monitor=None) -> "CubeSolution":
        """Assemble, set up BDDC, and solve; return a CubeSolution.

        Parameters
        ----------
        dense_lu, constraints, weights, interior, adaptive, averages, dense_solver
            See ``swell.BDDC``. Interiors use "blocks" by default: subdomains with equal coefficients have equal
            interiors.
        near_nullspace
            See ``swell.BDDC``; None: the problem's own.
        method, rtol, maxiter, device, monitor
            See ``swell.solve``.
        """
        system = self.assemble(device)
        return system.solve(dense_lu=dense_lu, constraints=constraints, weights=weights, interior=interior,
                            adaptive=adaptive, near_nullspace=near_nullspace, averages=averages,
                            dense_solver=dense_solver, method=method, rtol=rtol, maxiter=maxiter, monitor=monitor)

    def check_values(self, name, coefficient):
        """Raise InputError unless ``coefficient`` is a coefficient: a word of KINDS, or numbers of a fitting shape."""
        if isinstance(coefficient, str):
            if coefficient not in KINDS:
                raise InputError(f"{type(self).__name__}({name}={coefficient!r}): expected one of {', '.join(KINDS)}, "
                                 "or an array")
            return
        shapes = (self.edge,) * self.axes, (self.subdomains,) * self.axes
        if np.shape(coefficient) not in shapes:
            raise InputError(f"{type(self).__name__}({name}=...) is an array of shape {np.shape(coefficient)}: "
                             f"expected {shapes[0]}, a number for each element, or {shapes[1]}, for each subdomain")
        if (dtype := np.asarray(coefficient).dtype).kind not in "iufb":
            raise InputError(f"{type(self).__name__}({name}=...) has dtype {dtype}: expected real numbers")

    def values(self, coefficient, jump, box) -> np.ndarray:
        """Return a coefficient in the elements of a box, a slice for each axis.

        ``coefficient``: a word of KINDS, or an array with a number for each element or each subdomain. ``jump``: the
        larger number of "checkerboard" and "channels"; the other is 1."""
        at = np.ix_(*(np.arange(self.edge)[part] for part in box))
        if not isinstance(coefficient, str):
            k = np.asarray(coefficient, float)
            return k[at] if k.shape[0] == self.edge else k[tuple(axis // self.elements for axis in at)]
        k = np.ones([axis.size for axis in at])
        if coefficient == "checkerboard":
            k[sum(axis // self.elements for axis in at) % 2 == 1] = jump
        if coefficient == "channels":
            middle = True
            for axis in at[:-1]:
                middle = middle & (axis % self.elements == self.elements // 2)
            k[np.broadcast_to(middle, k.shape)] = jump
        return k


@dataclass(frozen=True, eq=False)
class CubeSystem:
    """The assembled problem.

    Attributes
    ----------
    cube : Cube
    A : CSRMatrix
    b : array of the space, shape (n,)
    subdomains : Subdomains
    seconds : float
        Time of the assembly.
    """

    cube: Cube
    A: CSRMatrix
    b: Any
    subdomains: Subdomains
    seconds: float

    def solve(self, *, dense_lu="getrf", constraints="cef", weights="stiffness", interior="blocks", adaptive=0.0,
              near_nullspace=None, averages="constraints", dense_solver="inverse", method="cg", rtol=1e-8,
              maxiter=None, b=None, monitor=None) -> "CubeSolution":
        """Set up BDDC and solve, with the right-hand side ``b`` (default: the problem's own); see ``Cube.solve`` for
        the other parameters.

        The problem's own b is symmetric, so that CG's spectrum shows only symmetric modes. A random b shows all modes.
        """
        from swell.api import prepare
        from swell.core.stopping import Stopping
        from swell.preconditioners.bddc.settings import BDDC
        modes = self.cube.near_nullspace if near_nullspace is None else near_nullspace
        settings = BDDC(self.cube.levels, constraints, weights, dense_lu, interior, self.subdomains, adaptive=adaptive,
                        near_nullspace=modes, averages=averages, dense_solver=dense_solver)
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
        from swell.preconditioners.bddc.unknowns import Unknowns
        space, interface = self.A.space, Interface(self.A, self.subdomains, Unknowns(self.cube.size))
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
        """The solution at all nodes, on the host, shape (e + 1, e + 1, e + 1), with a last axis for vectors."""
        cube = self.system.cube
        whole = np.zeros((cube.edge + 1,) * cube.axes + (cube.size,) * (cube.size > 1))
        inside = whole[tuple(slice(*ends) for ends in cube.ends)]
        inside[...] = self.system.A.space.to_host(self.result.x).reshape(inside.shape)
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

    @printable
    def __str__(self):
        cube, (least, largest), t = self.system.cube, self.extremes, self.timings
        spectrum = "" if np.isnan(least) else (f"; eigenvalues of the preconditioned operator {least:.4f} to "
                                               f"{largest:.4f}")
        parts = ", ".join(f"{name} {t[name]:.2f} s" for name in (*self.bddc.timings, "method"))
        return "\n".join([
            f"{cube.describe()}, {cube.n} unknowns, {cube.levels} levels",
            f"  {self.bddc.describe()}",
            f"  {self.result.reason.name.lower()} after {self.result.iterations} iterations, residual "
            f"{self.result.residual:.2e}{spectrum}",
            f"  loading {t['loading']:.2f} s, setup {t['setup']:.2f} s ({parts}), Krylov {t['krylov']:.2f} s",
            *(f"  note: {note}" for note in self.result.notes)])


def _scipy(space, parts):
    """Return a SciPy CSR matrix from ``parts`` = (indptr, indices, data), arrays of the space."""
    import scipy.sparse as sp
    indptr, indices, data = parts
    narrow = index_type(data.size, data.size, data.size)
    indptr, indices, data = (space.to_host(a) for a in (indptr.astype(narrow), indices.astype(narrow), data))
    return sp.csr_array((data, indices, indptr), shape=(indptr.size - 1,) * 2)
