"""Deflation: a direct solve in the few directions where a preconditioner is worst; the preconditioner treats the rest.

M is the inner preconditioner. U holds the ``vectors`` harmonic Ritz vectors of A M whose values are smallest. One cycle
of ``steps`` steps of FGMRES with a random start finds them (Morgan 1995). They are recycled from system to system
(Parks, de Sturler, Mackey, Johnson and Maiti, Recycling Krylov subspaces for sequences of linear systems, 2006). With
W = A U and E = Lᴴ W:

    B = (I − U E⁻¹ Wᴴ) M (I − W E⁻¹ Uᴴ) + U E⁻¹ Uᴴ          A = Aᴴ, or A = Aᵀ with ᵀ in place of ᴴ: L = U
    B = M (I − W E⁻¹ Wᴴ) + U E⁻¹ Wᴴ                          any other A: L = W

The first is the abstract balancing preconditioner (Mandel 1993; BNN in Tang, Nabben, Vuik and Erlangga 2009). It is
symmetric if M is, and needs no special start vector. The second is their A-DEF1 with the least residual over U.

Deflation pays where one U serves many solves: several right-hand sides, or a sweep over frequencies. ``keep_for`` keeps
U and recomputes W and E for the new matrix; ``update`` finds all three anew.

An application, in addition to M (numbers in brackets: the second form). It reads U twice (once) and W twice, 32 (24)
bytes a row and vector of a complex system. It takes four (three) launches and two (one) small ones, and across ranks
2 (1) all-reduces.
Storage: U and W in single precision, and two vectors. If a front end says that A is a polynomial in ω, the three terms
of W are stored too; otherwise ``keep_for`` costs ``vectors`` products. Setup: ``steps`` products and applications of M,
with 2 ``steps`` temporary vectors in single precision.

Differs from the literature: U is rounded to single precision before W = A U is formed, and E is accumulated in double.
A pseudo-inverse replaces E⁻¹, so that linearly dependent vectors do no harm.
"""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from swell.core.errors import FactorisationError, InputError
from swell.core.operator import Composite
from swell.core.preconditioner import Preconditioner
from swell.core.registry import resolve
from swell.core.settings import choose_by_none, positive
from swell.core.space import accumulator
from swell.core.stopping import Stopping
from swell.core.workspace import Workspace
from swell.formats.symmetry import asymmetry, tolerance
from swell.krylov.fgmres import FGMRES
from swell.krylov.method import System
from swell.krylov.restarted import MAX_RESTART

SEED = 2006


@dataclass(frozen=True)
class Deflation(Preconditioner):
    """A preconditioner with a direct solve in its worst directions.

    Attributes
    ----------
    inner : str or settings object
        M, the preconditioner for all other directions.
    vectors : int
        Number of vectors in U.
    steps : int
        Steps of FGMRES that find them; None: four times ``vectors``. More steps make better vectors.
    family : object, or None
        How A depends on ω, from a front end: attributes ``A`` (the matrix) and ``omega``, and ``form(omega)``, which
        writes the values for another ω into ``A``. They are polynomials of second degree in ω. W and E then need no
        product.
    """

    inner: Any = "ilu0"
    vectors: int = 40
    steps: int | None = None
    family: Any = field(default=None, repr=False, compare=False)

    problem = "the problems of its inner preconditioner, solved many times"
    cost = "the inner preconditioner, and 4 passes over the kept vectors in single precision"
    across_ranks = True

    def __post_init__(self):
        positive(self, "vectors", most=MAX_RESTART // 2)
        choose_by_none(self, 0, "steps")
        positive(self, "steps", most=MAX_RESTART)
        if self.steps and self.steps < self.vectors:
            raise InputError(f"Deflation(vectors={self.vectors}, steps={self.steps}): expected at least as many "
                             "steps as vectors, better four times as many")
        if resolve("precond", self.inner) is None:
            raise InputError(f"Deflation(inner={self.inner!r}): expected a preconditioner, such as 'ilu0' or 'jacobi'")

    @property
    def as_given(self):
        """True if the inner preconditioner needs the system as the user gave it, neither scaled nor reordered."""
        return resolve("precond", self.inner).as_given

    def build(self, A):
        return DeflationOperator(A, self)


class DeflationOperator(Composite):
    """z = B r for one matrix.

    Attributes
    ----------
    inner : LinearOperator
        M.
    ritz : array
        The harmonic Ritz values of the kept vectors, on the host.
    """

    scratch = ("_t", "_z", "_sums", "_y")

    def __init__(self, A, settings):
        super().__init__(A.shape, A.dtype, A.space)
        self.settings = settings
        self._inner = inner = resolve("precond", settings.inner)
        self._whole = inner.across_ranks
        n = self.space.ranks.local_rows(A.shape[0])
        steps = settings.steps or min(4 * settings.vectors, MAX_RESTART)
        self._steps = min(steps, max(1, A.shape[0] // 2))
        self._single = np.dtype("complex64" if A.dtype.kind == "c" else "float32")
        k = min(settings.vectors, self._steps)
        self.space.check_fits(n * self._single.itemsize * 2 * (self._steps + k),
                              f"Deflation of {k} vectors on {A.shape[0]} unknowns", "keep fewer, from fewer steps")
        if not (self._whole or A.space.ranks.single):
            inner = inner.restricted(A, lambda array: array)
        self.inner = inner.build(self._inner_matrix(A))
        self._U, self._W = (self.space.empty((k, self.space.padded(n)), self._single) for _ in range(2))
        self._t, self._z = (self.space.empty(n, A.dtype) for _ in range(2))
        scalar = accumulator(A.dtype)
        self._inverse, self._adjoint_inverse = (self.space.empty((k, k), scalar) for _ in range(2))
        self._sums, self._y = (self.space.empty(k, scalar) for _ in range(2))
        self.space.reserve_sums(k)
        self._kernels = self.space.kernels("swell.preconditioners", "deflation", A.dtype)
        self._find_vectors(A)
        self.keep_for(A)

    def _inner_matrix(self, A):
        """Return the matrix for the inner preconditioner: A, or across ranks this rank's diagonal block of A if the
        preconditioner acts on one rank only."""
        return A if self._whole else A.diagonal_block

    def update(self, A):
        """Recompute everything, in place, for new values of A with the same pattern: the inner preconditioner, U, W = A
        U and E."""
        self.inner.update(self._inner_matrix(A))
        self._find_vectors(A)
        self.keep_for(A)

    def _find_vectors(self, A):
        """Set U, harmonic Ritz vectors of A M, by one cycle of FGMRES, their values ``ritz``, and the symmetry flags.
        For a ``family`` also set ``_terms``, the terms of W and E."""
        xp, n, m = self.space.xp, self._t.size, self._steps
        b, x = self._t, self._z
        self.space.random(SEED, b)
        x.fill(0)
        H, Z = arnoldi(System(A, self.inner, b, x, None, Workspace(self.space), None), m)
        if not len(Z):
            raise FactorisationError(f"Deflation: A times {self.inner.describe()} gave zero or NaN for a random "
                                     "vector: choose another inner preconditioner")
        self.ritz, P = harmonic_ritz(H, min(len(self._U), len(Z)))
        U = xp.matmul(xp.asarray(P.T.astype(self._single)), Z)
        self._U.fill(0)
        self._U[:len(U), :n] = U
        lengths = self.space.empty(len(U), accumulator(self._single))
        for k in range(len(U)):
            self.space.dot(self._U[k], self._U[k], lengths[k:])
        self.space.ranks.allreduce(lengths)
        self._U[:len(U)] /= xp.sqrt(lengths.real).astype(np.float32)[:, None]
        self._symmetric, self._conjugate = symmetry(A)
        self.self_adjoint = self.inner.self_adjoint if self._symmetric else False
        self._terms = self._find_terms(A)

    def _find_terms(self, A):
        """Return [(Aᵢ U, Eᵢ)], i = 0, 1, 2, of A = A₀ + (ω/s) A₁ + (ω/s)² A₂; or () without a usable ``family``.

        The family writes the values for ω = 0, s and −s into A, and at the end the values for the present ω again."""
        family = self.settings.family
        if family is None or family.A is not A or not self._symmetric:         # A was scaled, say, or E is not linear
            return ()
        now = family.omega
        self._scale = 4 * abs(now) or 1.0                                      # s above ω keeps rounding errors small
        terms = []
        for omega in (0.0, self._scale, -self._scale):
            family.form(omega)
            images = self.space.empty(self._W.shape, self._single)
            terms.append((images, self._multiply(A, images)))
        family.form(now)
        for zero, plus, minus in zip(*terms):                                  # for A U, then for E
            plus -= minus
            plus *= plus.dtype.type(0.5)                                       # (A(s) − A(−s))/2
            minus += plus
            minus -= zero                                                      # (A(s) + A(−s))/2 − A(0)
        return terms

    def keep_for(self, A):
        """Recompute W = A U and E⁻¹, in place, for the present values of A. The vectors U and the inner
        preconditioner stay."""
        self.inner.keep_for(self._inner_matrix(A))
        if self._terms:
            (P0, E0), (P1, E1), (P2, E2) = self._terms
            t = self.settings.family.omega / self._scale
            self._kernels.polynomial(P0, P1, P2, t, self._W)
            E = E0 + t * E1 + t * t * E2
        else:
            E = self._multiply(A, self._W)
        inverse = np.linalg.pinv(E, rcond=1e-14)
        self._inverse[...] = self.space.xp.asarray(inverse)
        self._adjoint_inverse[...] = self.space.xp.asarray(inverse.conj().T)

    def _multiply(self, A, images):
        """Write A U to ``images``, a device array of the shape of U. Returns E = Lᴴ A U, a new host array. L is U
        for a symmetric or Hermitian A, else A U."""
        u, w, sums = self._t, self._z, self._sums
        E = self.space.empty(self._inverse.shape, sums.dtype)
        images.fill(0)                                                         # also the padding of the rows
        U, images = self._U[:, :u.size], images[:, :u.size]
        for j in range(len(U)):
            u[...] = U[j]
            A.apply(u, w)
            images[j] = w
            if self._symmetric:
                self._kernels.dots(U, w, sums, self._conjugate)
                E[:, j] = sums
        for j in range(0 if self._symmetric else len(U)):
            w[...] = images[j]
            self._kernels.dots(images, w, sums, True)
            E[:, j] = sums
        self.space.ranks.allreduce(E)
        return self.space.to_host(E).copy()

    def apply(self, x, out, alpha=1, beta=0):
        if self._symmetric:
            self._balance(self.inner.apply, self._inverse, self._conjugate, False, x, out, alpha, beta)
            return
        self._coefficients(self._W, x, self._inverse, True, False)             # y = E⁻¹ Wᴴ x
        self._kernels.subtract(self._W[:, :x.size], self._y, x, self._t, False)
        self.inner.apply(self._t, self._z)                                     # z = M (x − W y)
        self._add(self._U, False, out, alpha, beta)                            # z + U y

    def apply_adjoint(self, x, out, alpha=1, beta=0):
        if self._symmetric:                      # for A = Aᵀ: ``_balance`` with U, W, E and M conjugated
            self._balance(self.inner.apply_adjoint, self._adjoint_inverse, True, not self._conjugate, x, out, alpha,
                          beta)
            return
        self._coefficients(self._U, x, self._adjoint_inverse, True, False)     # y = E⁻ᴴ Uᴴ x
        self.inner.apply_adjoint(x, self._z)                                   # z = Mᴴ x
        self._coefficients(self._W, self._z, self._adjoint_inverse, True, True)                # y = y − E⁻ᴴ Wᴴ z
        self._add(self._W, False, out, alpha, beta)                            # z + W y

    def _balance(self, inner, inverse, conjugate, conjugate_vectors, x, out, alpha, beta):
        """Write out = α B x + β out, or with Bᴴ, for B = (I − U E⁻¹ Wᴴ) M (I − W E⁻¹ Uᴴ) + U E⁻¹ Uᴴ.

        ``inner`` applies M, or Mᴴ for Bᴴ; ``inverse`` is E⁻¹ or E⁻ᴴ. ``conjugate``: inner products conjugate U and W,
        for A = Aᴴ, not for A = Aᵀ. ``conjugate_vectors``: U and W are replaced by their conjugates in the sums."""
        self._coefficients(self._U, x, inverse, conjugate, False)              # y = E⁻¹ Uᴴ x
        self._kernels.subtract(self._W[:, :x.size], self._y, x, self._t, conjugate_vectors)
        inner(self._t, self._z)                                                # z = M (x − W y)
        self._coefficients(self._W, self._z, inverse, conjugate, True)         # y = y − E⁻¹ Wᴴ z
        self._add(self._U, conjugate_vectors, out, alpha, beta)                # z + U y

    def _coefficients(self, V, x, inverse, conjugate, again):
        """Write ``self._y`` = F Vᴴ x; if ``again``, ``self._y`` = ``self._y`` − F Vᴴ x.

        F is ``inverse``, a small device matrix, E⁻¹ or E⁻ᴴ. The rows of V are vectors. Without ``conjugate`` Vᵀ
        replaces Vᴴ."""
        self._kernels.dots(V[:, :x.size], x, self._sums, conjugate)
        self.space.ranks.allreduce(self._sums)
        self._kernels.coefficients(inverse, self._sums, self._y, again)

    def _add(self, V, conjugate, out, alpha, beta):
        """Write out = α (z + V y) + β out with z = ``self._z`` and y = ``self._y``; the rows of V are vectors,
        conjugated if ``conjugate``. Overwrites ``self._z``."""
        kind = out.dtype.type
        self._kernels.correct(V[:, :out.size], self._y, self._z, out, kind(alpha), kind(beta), conjugate)

    @property
    def nbytes(self):
        terms = sum(images.nbytes for images, _ in self._terms)
        return self._U.nbytes + self._W.nbytes + terms + self._t.nbytes + self._z.nbytes + self.inner.nbytes

    def describe(self):
        return (f"Deflation() of {self.ritz.size} vectors from {self._steps} steps, with harmonic Ritz values of "
                f"{abs(self.ritz[0]):.1e} to {abs(self.ritz[-1]):.1e}; {self.inner.describe()}")


def symmetry(A):
    """Return two flags (symmetric, conjugate): (True, True) if A = Aᴴ, (True, False) if A = Aᵀ only, else (False,
    True). Equality is up to rounding."""
    for conjugate in (True, False):
        if asymmetry(A, conjugate) <= tolerance(A):
            return True, conjugate
    return False, True


def arnoldi(system, m):
    """Return H̄ (a host array) and Z = M V (a device array, a vector a row) of A Z = V H̄, from at most m steps of
    FGMRES; fewer if the Krylov space is exhausted.

    ``system`` is a `System` (krylov/method.py) with A, M, the right-hand side and the start vector. Raises
    KeyboardInterrupt if the user interrupts the steps."""
    loop = system.A.space.loop(Stopping(maxiter=m, window=0), system.A.shape[0])
    iteration = FGMRES(restart=m, basis="single").bind(system._replace(loop=loop))
    begun = 0

    def cycle():                                 # runs once, or again if the first was cut short
        nonlocal begun
        begun = loop.iterations
        iteration.body()

    loop.begin(0.0, np.inf, 0)
    iteration.start(True)
    loop.run(cycle, False, m)
    loop.end()
    if loop.abort:
        raise KeyboardInterrupt
    done = loop.iterations - begun
    H = np.triu(system.A.space.to_host(iteration.H)[:done + 1, :done], -1)     # undefined below
    done = int(np.isfinite(H).all(axis=0).cumprod().sum())
    return H[:done + 1, :done], iteration.Z[:done]


def harmonic_ritz(H, count):
    """Return the ``count`` smallest harmonic Ritz values of a Hessenberg matrix (m + 1) × m, and an orthonormal basis
    of the space of their vectors.

    (H̄ᴴ H̄) g = θ Hᴴ g; Morgan, Computing interior eigenvalues of large matrices, 1991. A real H gives a real basis.

    Returns
    -------
    values : array, shape (count,)
    basis : array, shape (m, count)
    """
    import scipy.linalg
    m = H.shape[1]
    values, vectors = scipy.linalg.eig(H.conj().T @ H, H[:m].conj().T)
    least = np.argsort(np.where(np.isfinite(values), abs(values), np.inf))[:count]
    wanted = vectors[:, least]
    if H.dtype.kind != "c":
        wanted = np.hstack([wanted.real, wanted.imag])
    return values[least], np.linalg.svd(wanted, full_matrices=False)[0][:, :count]
