"""A second level for domain decomposition: a few vectors for each subdomain. Nicolaides 1987; Mandel 1993.

One level of subdomains passes values one subdomain on in an iteration, so that iterations grow with their number. The
coarse space has, for each subdomain, the near null vectors restricted to the rows it owns and smoothed by one step, as
in smoothed aggregation with subdomains as aggregates (amg/aggregation.py). P has these vectors as columns:

    B = (I − Q A) M (I − A Q) + Q,    Q = P (Pᵀ A P)⁻¹ Pᵀ.

This is the balancing form. The additive form, M + Q, takes 1.3 to 1.7 times the iterations on plates, beams and
Poisson's equation. B is symmetric if M is, and needs no special start vector.

An application: M, two products with A, and twice Q: two thin products and a dense one each. Storage: P, Pᵀ, the dense
inverse, which also serves a singular A, and four vectors. For symmetric positive (semi)definite real matrices.
"""
import numpy as np

from swell.core.errors import FactorisationError, InputError
from swell.core.operator import Composite
from swell.formats.product import Product
from swell.formats.symmetry import require_hermitian
from swell.formats.transpose import transposed
from swell.preconditioners.amg.aggregation import SmoothedInterpolation, blocks, tentative
from swell.preconditioners.amg.coarsest import DenseInverse
from swell.preconditioners.near_nullspace import checked

MAX_SIZE = 4096         # most coarse unknowns; their inverse is dense


class CoarseSpace(Composite):
    """z = B r around a one-level preconditioner M, ``inner``.

    Parameters
    ----------
    A : CSRMatrix
    inner : LinearOperator
        M.
    owner : int array, shape (n,)
        The subdomain of each row, on the host.
    near_nullspace : "constants" or array
        As in `Schwarz`.
    name : str
        The settings' class, for messages.

    Attributes
    ----------
    size : int
        Number of coarse unknowns.
    """

    scratch = ("_q", "_r", "_z", "_c", "_e")

    def __init__(self, A, inner, owner, near_nullspace, name):
        super().__init__(A.shape, A.dtype, A.space)
        self.inner, self._name, space, n = inner, name, A.space, A.shape[0]
        self._check(A)
        double = A.in_double()
        constants = isinstance(near_nullspace, str)
        modes = (blocks(double, A.block_size)[1] if constants else
                 space.from_host(checked(near_nullspace, A, name)))
        count = int(owner.max(initial=-1)) + 1
        if count * modes.shape[1] > MAX_SIZE:
            raise InputError(f"{name}: {count} subdomains with {modes.shape[1]} near null vectors each make more than "
                             f"{MAX_SIZE} coarse unknowns, whose inverse is dense: take fewer and larger subdomains")
        members = space.from_host(owner.astype(double.indices.dtype))
        T, _, _ = tentative(double, members, count, modes)
        self._interpolation = SmoothedInterpolation(double, T)
        P = self._interpolation.P
        self._restriction, self._order = transposed(P)
        self._AP = Product(double, P)
        self._coarse = Product(self._restriction, self._AP.C)
        self.size = P.shape[1]
        self._ones = space.xp.ones(self.size)
        self._P, self._R = (M if A.dtype == np.float64 else M.astype(A.dtype) for M in (P, self._restriction))
        self._inverse = self._inverted(lambda: DenseInverse(self._coarse.C, self._ones, A.dtype))
        self._q, self._r, self._z = (space.empty(n, A.dtype) for _ in range(3))
        self._c, self._e = (space.empty(self.size, A.dtype) for _ in range(2))
        self._A = A
        self.self_adjoint, self.spd = inner.self_adjoint, inner.spd
        space.synchronize()                      # a product may read P before the preceding kernel has ended

    def _check(self, A):
        """Raise InputError unless A is real and symmetric."""
        if A.dtype.kind == "c":
            raise InputError(f"{self._name}(coarse='nicolaides') got a matrix of {A.dtype.name}: expected a real one; "
                             "for waves leave coarse out")
        require_hermitian(A, f"{self._name}(coarse='nicolaides')")

    def _inverted(self, invert):
        """Return ``invert()``, which inverts Pᵀ A P. A FactorisationError then says that the coarse matrix is
        indefinite."""
        try:
            return invert()
        except FactorisationError as error:
            raise FactorisationError(f"{self._name}(coarse='nicolaides') needs a positive definite matrix, and the "
                                     f"coarse one is indefinite ({error}): leave coarse out") from None

    def update(self, A):
        """Recompute M and the coarse matrix, in place, for new values of A with the same pattern."""
        self._check(A)
        self.inner.update(A)
        double = A.in_double()
        self._interpolation.update(double)
        P, R = self._interpolation.P, self._restriction
        R.data[...] = P.data[self._order]
        R.discard_adjoint()
        self._AP.update(double, P)
        self._coarse.update(R, self._AP.C)
        for kept, new in ((self._P, P), (self._R, R)):
            if kept is not new:
                kept.data[...] = new.data
        self._inverted(lambda: self._inverse.update(self._coarse.C, self._ones))
        self._A = A
        self.space.synchronize()

    def apply(self, x, out, alpha=1, beta=0):
        self._balanced(self.inner.apply, x, out, alpha, beta)

    def apply_adjoint(self, x, out, alpha=1, beta=0):
        self._balanced(self.inner.apply_adjoint, x, out, alpha, beta)

    def _balanced(self, inner, x, out, alpha, beta):
        """out = alpha B x + beta out; ``inner(r, z)`` applies M or its adjoint."""
        q, r, z, A = self._q, self._r, self._z, self._A
        self._correct(x, q, 0)                                                 # q = Q x
        self.space.copy(x, r)
        A.apply(q, r, -1, 1)                                                   # r = x − A q
        inner(r, z)                                                            # z = M r
        self.space.copy(x, r)
        A.apply(z, r, -1, 1)                                                   # r = x − A z
        self._correct(r, z, 1)                                                 # z = z + Q (x − A z)
        self.space.axpby(alpha, z, beta, out)

    def _correct(self, r, z, share):
        """z = Q r + share · z."""
        self._R.apply(r, self._c)                                              # c = Pᵀ r
        self._inverse.solve(self._c, self._e)                                  # e = (Pᵀ A P)⁻¹ c
        self._P.apply(self._e, z, 1, share)                                    # z = P e + share z

    @property
    def nbytes(self):
        kept = self._interpolation, self._restriction, self._P, self._R, self._AP.C, self._coarse.C, self._inverse
        return self.inner.nbytes + sum(part.nbytes for part in kept)

    def describe(self):
        return f"{self.inner.describe()}; a coarse space of {self.size} vectors"
