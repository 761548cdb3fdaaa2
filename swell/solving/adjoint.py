"""The adjoint system Aᴴ x = b of a prepared system A x = b, with the same matrices, transforms and factors.

With A' = L A R (`core/transform.py`), the adjoint is A'ᴴ x' = Rᴴ b, x = Lᴴ x', and Mᴴ preconditions it. Products with
A'ᴴ take the adjoint that a stored matrix keeps; every preconditioner applies its own adjoint: transposed triangular
factors, P and R of a multigrid hierarchy exchanged. Nothing is factored again.

A Hermitian A needs none of this. For a complex symmetric A, A = Aᵀ, the solver takes x = conj(A⁻¹ conj(b)).
"""
from __future__ import annotations

import numpy as np

from swell.core.compilation import Stopwatch
from swell.core.errors import InputError
from swell.core.operator import Wrapper
from swell.formats.csr import CSRMatrix
from swell.formats.matrix import Matrix
from swell.preconditioners.factors import Factors
from swell.solving.setup import SetUp

EQUAL = 4               # aᵢⱼ and conj(aⱼᵢ) are equal if they differ by at most EQUAL eps minᵢ |aᵢᵢ|


class Adjoint(Wrapper):
    """Aᴴ for an operator A, ``inner``: products and adjoint products change places."""

    def __init__(self, inner):
        super().__init__(inner.shape[::-1], inner.dtype, inner.space)
        self.inner, self.has_entries = inner, inner.has_entries

    def apply(self, x, out, alpha=1, beta=0):
        self.inner.apply_adjoint(x, out, alpha, beta)

    def apply_adjoint(self, x, out, alpha=1, beta=0):
        self.inner.apply(x, out, alpha, beta)

    def apply_dots(self, x, out, w, dots):
        if isinstance(self.inner, Matrix):
            self.inner.adjoint().apply_dots(x, out, w, dots)
        else:
            super().apply_dots(x, out, w, dots)

    def apply_dot(self, x, out, w, dots):
        if isinstance(self.inner, Matrix):
            self.inner.adjoint().apply_dot(x, out, w, dots)
        else:
            super().apply_dot(x, out, w, dots)

    def residual_terms(self, x, b, out, terms):
        if isinstance(self.inner, Matrix):
            return self.inner.adjoint().residual_terms(x, b, out, terms)
        super().residual_terms(x, b, out, terms)
        if self.has_entries:
            moduli = self.absolute()
            sizes = self.space.buffer(x.size, moduli.dtype)
            moduli.apply(abs(x), sizes)
            terms[...] = abs(b) + sizes
        return None

    def precise_residual(self, x, b, out, low):
        return isinstance(self.inner, Matrix) and self.inner.adjoint().precise_residual(x, b, out, low)

    def modulus_sums(self):
        """‖aᵢ‖₁ of each row of Aᴴ."""
        moduli = self.absolute()
        rows = self.space.ranks.local_rows(self.shape[0])
        ones, sums = (self.space.empty(rows, moduli.dtype) for _ in range(2))
        ones.fill(1)
        moduli.apply(ones, sums)
        return sums

    @property
    def diagonal_block(self):
        return Adjoint(self.inner.diagonal_block)

    def absolute(self):
        """|A|ᵀ for a matrix A."""
        return Adjoint(self.inner.absolute())

    def norm_inf(self):
        """‖Aᴴ‖∞, the largest sum of moduli of a column of A; NaN for an A without entries."""
        return self.space.norms(self.modulus_sums())[1] if self.has_entries else float("nan")

    def describe(self):
        return f"adjoint of {self.inner.describe()}"


class AdjointFactors(Adjoint):
    """A⁻ᴴ by the `Factors` of A."""

    @property
    def loose(self):
        return None if self.inner.loose is None else Adjoint(self.inner.loose)

    @property
    def repairs(self):
        return self.inner.repairs

    def repair(self, why):
        self.inner.repair(why)


class AdjointSetup(SetUp):
    """The setup of Aᴴ x = b, made from a `Setup` of A x = b, whose parts it shares.

    Raises
    ------
    InputError
        If a part has no adjoint; the message names it.
    """

    def __init__(self, setup):
        watch = Stopwatch()
        c = self.configuration = self.chosen = setup.configuration
        if not c.method.has_adjoint:
            raise InputError(f"adjoint=True: {c.name('method')} has no form for Aᴴ where A is not Hermitian: choose "
                             "method='gmres', or prepare(A.conj().T)")
        if setup.S is not None:
            raise InputError(f"adjoint=True: {c.name('method')} with a smoother needs a Hermitian A, and A is not: "
                             "leave smoother out, or prepare(A.conj().T)")
        self.space, self.notes, self.failure = setup.space, setup.notes, setup.failure
        self.A, self.matrix = Adjoint(setup.A), Adjoint(setup.matrix)
        self.M, self.S = None if setup.M is None else _adjoint_of(setup.M), None
        self.transforms = [transform.adjoint() for transform in setup.transforms]
        self.nullspace = None if setup.nullspace is None else self.transforms[0]
        self.permutation, self.effects, self.scaled = setup.permutation, [], setup.scaled
        self._setup = setup
        with self.space.ranks.agreed():
            self._build_adjoints()
        self.norm_A = self.A.norm_inf()
        self.descriptions, self.part_notes = dict(setup.descriptions), setup.part_notes
        self.descriptions["matrix"] = f"adjoint of {self.descriptions['matrix']}"
        self.timings = {"setup": watch.seconds, "compile": watch.compiled}

    def _build_adjoints(self):
        """Apply each operator once: the first use of an adjoint builds it, which a captured graph must not do."""
        rows = self.space.ranks.local_rows(self.A.shape[0])
        x, out = (self.space.empty(rows, self.A.dtype) for _ in range(2))
        x.fill(0)
        for operator, what in ((self.A, "A"), (self.matrix, "A"), (self.M, "the preconditioner")):
            if operator is None:
                continue
            if operator.variable:
                raise InputError(f"adjoint=True: {what}, {operator.inner.describe()}, is not a fixed linear map and "
                                 "has no adjoint: choose another precond, or prepare(A.conj().T)")
            try:
                operator.apply(x, out)
            except InputError as error:
                raise InputError(f"adjoint=True: {what}, {operator.inner.describe()}, has no adjoint: give a "
                                 "LinearOperator with rmatvec, name another precond, or prepare(A.conj().T)") from error

    @property
    def nbytes(self):
        sizes = {id(A): A.nbytes for A in (operator.inner.adjoint() for operator in (self.A, self.matrix)
                                           if isinstance(operator.inner, Matrix))}
        return self._setup.nbytes | {"matrix": self._setup.nbytes["matrix"] + sum(sizes.values())}


def _adjoint_of(M):
    return AdjointFactors(M) if isinstance(M, Factors) else Adjoint(M)


def own_adjoint(A) -> str | None:
    """Return "hermitian" if A = Aᴴ, "symmetric" if A is complex and A = Aᵀ, both to rounding; None otherwise.

    A matrix without entries returns None. So does a distributed one: a comparison would need entries of other ranks."""
    if not isinstance(A, CSRMatrix):
        return None
    facts = A.facts(search=True)
    rounding = EQUAL * np.finfo(A.dtype).eps * A.diagonal_range()[0]
    if facts.hermitian_difference <= rounding:
        return "hermitian"
    return "symmetric" if facts.difference <= rounding else None
