"""Cases: systems with what is known of how their solution ends. The contract tests run all of them.

A case whose right-hand side is "A·1" has the solution of all ones; "ones" is a right-hand side of all ones, which in
badly scaled systems is much harder. What ``ends`` says was found by running, and judged: CONVERGED is checked against
the residual that SciPy computes, whatever stands here, and every other reason has its why in a comment.
"""
from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Callable

import numpy as np
import scipy.io
import scipy.sparse as sp

from swell import gallery
from swell.core.stopping import Reason

C, INDEFINITE, SINGULAR = Reason.CONVERGED, Reason.INDEFINITE, Reason.SINGULAR
RIGHT_HAND_SIDES = ("A·1", "ones", "A·random")


def rng():
    """The same numbers in every test."""
    return np.random.default_rng(7)


@dataclass(frozen=True)
class Case:
    """A system made by a function.

    Attributes
    ----------
    name : str
    make : callable
        Gives A.
    rhs : str
        One of RIGHT_HAND_SIDES.
    ends : dict of str to Reason
        For each method, without preconditioner, and for "auto", the advisor: the reason. A method that is not named
        here is not tried.
    limit : int
        The iteration limit of the methods.
    """

    name: str
    make: Callable
    rhs: str
    ends: dict
    limit: int = 500

    def system(self):
        """A and b."""
        A = self.make()
        return A, right_hand_side(A, self.rhs)


def right_hand_side(A, kind):
    """b of the kind that the case names; the solution that belongs to it is known but for "ones"."""
    n = A.shape[0]
    if kind == "ones":
        return np.ones(n, A.dtype)
    x = np.ones(n) if kind == "A·1" else rng().standard_normal(n)
    return np.asarray(A @ x).reshape(-1)


def of(*methods, **others):
    """``ends`` for methods that converge, and others that do not."""
    return {**{m: C for m in methods}, **others}


SHORT = ("bicgstabl", "tfqmr", "qmr", "idrs")    # besides bicgstab
SYMMETRIC = ("cocg", "cocr")
KRYLOV = ("cg", "gmres", "fgmres", "bicgstab")
ALL = (*KRYLOV, "minres", *SHORT, "direct", "auto")
GENERAL = ("gmres", "fgmres", "bicgstab", *SHORT, "direct", "auto")


def badly_scaled():
    """SPD, condition 1e8 of which scaling by the diagonal removes all but 1e2."""
    A = gallery.poisson2d(12)
    d = sp.diags_array(10.0 ** rng().uniform(-2, 2, A.shape[0]))
    return sp.csr_array(d @ A @ d)


def hermitian():
    """Hermitian positive definite: Poisson's matrix with phases."""
    A = gallery.poisson2d(12)
    phase = sp.diags_array(np.exp(1j * rng().uniform(0, 6, A.shape[0])))
    return sp.csr_array(phase @ A @ phase.conj())


def complex_symmetric():
    """A damped wave: complex symmetric, not Hermitian."""
    return gallery.helmholtz((15, 15), 0.3, 0.2)


def unsymmetric():
    """Random, with a dominant diagonal."""
    A = sp.random_array((200, 200), density=0.03, rng=rng())
    return sp.csr_array(A + 6 * sp.eye_array(200))


def neumann():
    """Free boundaries: singular."""
    return gallery.neumann((12, 12))


def zero_diagonal():
    """A permutation with a twist: every diagonal entry is zero."""
    return sp.csr_array(np.kron(np.eye(30), [[0.0, 2.0], [1.0, 0.0]]))


def empty_rows():
    """Three rows and columns without entries."""
    A = gallery.poisson2d(8).tolil()
    for k in (0, 20, 63):
        A[k, :] = 0
        A[:, k] = 0
    A = A.tocsr()
    A.eliminate_zeros()
    return A


def indefinite():
    """Eigenvalues of both signs, a positive diagonal."""
    return gallery.shifted_laplacian((10, 10), 0.5)


def hermitian_indefinite():
    """Complex Hermitian with eigenvalues of both signs: a shifted Laplacian with phases."""
    A = indefinite()
    phase = sp.diags_array(np.exp(1j * rng().uniform(0, 6, A.shape[0])))
    return sp.csr_array(phase @ A @ phase.conj())


SMALL = [
    Case("spd", lambda: gallery.poisson2d(15), "A·random", of(*ALL, *SYMMETRIC)),
    # Condition 1e9: 2000 iterations do not do without scaling, which the advisor applies, or n vectors, as GMRES takes.
    Case("badly scaled spd", badly_scaled, "A·random",
         of("gmres", "direct", "auto", cg=Reason.MAXITER, bicgstab=Reason.MAXITER), 2000),
    Case("hermitian", hermitian, "A·random", of(*ALL)),
    Case("complex symmetric", complex_symmetric, "A·random", of(*GENERAL, *SYMMETRIC)),
    Case("unsymmetric", unsymmetric, "A·random", of(*GENERAL)),
    Case("convection", lambda: gallery.convection_diffusion((16, 16), 10.0, "upwind"), "ones", of(*GENERAL)),
    Case("diagonal", lambda: sp.diags_array(np.arange(1.0, 41)).tocsr(), "ones", of(*ALL, *SYMMETRIC)),
    Case("identity", lambda: sp.eye_array(50).tocsr(), "A·random", of(*ALL, *SYMMETRIC)),
    Case("1 x 1", lambda: sp.csr_array([[3.0]]), "ones", of(*ALL, *SYMMETRIC)),
    Case("singular, consistent", neumann, "A·random", of(*KRYLOV, "minres", *SHORT, *SYMMETRIC, "auto")),
    # The right-hand side is the null space: cg sees (p, A p) = 0, the others divide by what is left of rounding.
    Case("singular, inconsistent", neumann, "ones",
         {"cg": INDEFINITE, "gmres": SINGULAR, "direct": SINGULAR, "auto": SINGULAR,
          **{m: Reason.BREAKDOWN for m in ("minres", "bicgstab", "bicgstabl", "tfqmr", "idrs", *SYMMETRIC)}}),
    Case("indefinite", indefinite, "A·random", of(*GENERAL, "minres", *SYMMETRIC, cg=INDEFINITE)),
    Case("hermitian indefinite", hermitian_indefinite, "A·random", of(*GENERAL, "minres", cg=INDEFINITE)),
    Case("negative definite", lambda: -gallery.poisson2d(8), "ones", of(*GENERAL, "minres", cg=INDEFINITE)),
    Case("saddle point", lambda: gallery.saddle_point(6), "A·random",
         of(*GENERAL, "minres", *SYMMETRIC, cg=INDEFINITE)),
    Case("zero diagonal", zero_diagonal, "ones", of(*GENERAL)),
    Case("empty rows, consistent", empty_rows, "A·random",
         of(*KRYLOV, "minres", *SHORT, *SYMMETRIC, "auto", direct=SINGULAR)),
    Case("empty rows, inconsistent", empty_rows, "ones",
         {"cg": Reason.DIVERGED, "gmres": Reason.STAGNATED, "direct": SINGULAR, "auto": SINGULAR}),
]


@dataclass(frozen=True)
class RealCase:
    """One of the real systems and how the advisor's solve of it ends.

    Attributes
    ----------
    name : str
    ends : pair of Reason, or of tuples of them, or None
        For b = A·1 (A·random where A·1 vanishes) and for b = ones; several where the machine's rounding decides
        whether the last digit is reached; None for a solve that takes long and shows what others do.
    """

    name: str
    ends: tuple = (C, C)


ATTAINABLE = Reason.ATTAINABLE_ACCURACY
EITHER = (C, ATTAINABLE)
REAL = [
    RealCase("1138_bus"),
    RealCase("4elt_lap", (C, SINGULAR)),     # a graph Laplacian: constants are its null space
    RealCase("Grond4e4"),
    RealCase("add32"),
    RealCase("bcsstk14"),
    RealCase("bcsstk16"),
    RealCase("bcsstk18"),
    RealCase("bcsstm13", (C, SINGULAR)),    # 762 empty rows; ones is not in its range
    RealCase("cage10"),
    RealCase("dwg961b"),
    RealCase("epb0"),
    RealCase("fasp_spe01_bsr3"),
    RealCase("foam_hump_U"),
    RealCase("foam_hump_p", (C, None)),         # for ones ‖|A||x|‖ is 1e8 ‖b‖, as of nos7: flat cells, no outlet
    RealCase("foam_motorBike_ldu"),
    RealCase("fs_183_6"),
    RealCase("gr_30_30"),
    RealCase("hangGlider_2"),
    RealCase("hypre_ams_A", (C, ATTAINABLE)),     # ‖|A||x|‖ is 1e11 ‖b‖ for the ones
    RealCase("hypre_beam_tet_dof2475"),
    RealCase("jpwh_991"),
    RealCase("mhd1280b"),
    RealCase("ml_elasticity"),
    RealCase("muelu_condif2"),
    RealCase("nos5"),
    RealCase("nos7", (EITHER, EITHER)),    # ‖|A||x|‖ is 1e8 ‖b‖ for either b
    RealCase("orsirr_1"),
    RealCase("pde2961"),
    RealCase("pyamg_helmholtz_2D"),
    RealCase("qc324"),
    RealCase("rajat01", (SINGULAR, None)),
    RealCase("rdb2048"),
    RealCase("resolve_ACTIVSg200_KKT"),
    RealCase("sherman4"),
    RealCase("sherman5"),
    RealCase("teko_ns_F"),
    RealCase("west0156", (C, SINGULAR)),   # condition 2e31
    RealCase("west0479"),
    RealCase("young1c"),
    RealCase("car_cabin"),
]


@functools.cache
def real_matrix(folder, name):
    """A real matrix by name; the car cabin at 300 Hz is put together from its parts."""
    if name == "car_cabin":
        K, M, B = (sp.load_npz(folder / "car_cabin" / f"{part}.npz") for part in "KMB")
        k = 2 * np.pi * 300 / 340
        return (K - k**2 * M + 0.05j * k * B).tocsr()
    packed = folder / "matrices" / f"{name}.npz"
    return sp.csr_matrix(sp.load_npz(packed) if packed.exists() else scipy.io.mmread(packed.with_name(f"{name}.mtx.gz")))


def flat_bilinear(columns, rows, aspect):
    """The Laplacian by bilinear elements ``aspect`` long and 1 high, zero on the boundary; many entries are positive."""
    def bands(n, side, middle):
        return sp.diags_array([np.full(n - 1, side), np.full(n, middle), np.full(n - 1, side)], offsets=[-1, 0, 1])
    along, across = (bands(n, -1 / h, 2 / h) for n, h in ((columns, aspect), (rows, 1)))
    masses = [bands(n, h / 6, 4 * h / 6) for n, h in ((columns, aspect), (rows, 1))]
    return sp.csr_array(sp.kron(along, masses[1]) + sp.kron(masses[0], across))


def of_type(A, dtype):
    """A SciPy matrix in another type; its real part in a real one."""
    A = sp.csr_array(A)
    return (A if np.dtype(dtype).kind == "c" else A.real).astype(dtype)
