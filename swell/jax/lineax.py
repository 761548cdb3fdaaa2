"""swell inside lineax: `Solver`, for ``lineax.linear_solve``, and `BCSROperator`, lineax's sparse operator.

    import lineax as lx
    import numpy as np
    from swell.jax.lineax import BCSROperator, Solver
    solution = lx.linear_solve(BCSROperator(A), b, Solver(method="cg", precond="ic0"))

lineax derives the derivatives itself. A solve that does not converge becomes one of lineax's RESULTS, which
``throw=False`` returns.
"""
from __future__ import annotations

from typing import Unpack

from swell.core.errors import InputError, MissingDependency

try:
    import equinox as eqx
    import equinox.internal as eqxi
    import jax
    import jax.numpy as jnp
    import lineax as lx
    import numpy as np
    from lineax.internal import pack_structures, ravel_vector, transpose_packed_structures, unravel_solution
except ImportError as error:
    raise MissingDependency(f"swell.jax.lineax needs JAX and lineax ({error}): pip install 'swell[jax]'") from None

from swell.autodiff.options import Options
from swell.autodiff.pattern import Pattern
from swell.core.stopping import Reason
from swell.jax import OPTIONS
from swell.jax.call import call
from swell.jax.linear_solve import checked, prepared, solve_dtype
from swell.jax.pattern import arrange, product, read_matrix
from swell.options import OptionsDict

RESULTS = {Reason.MAXITER: lx.RESULTS.max_steps_reached, Reason.STAGNATED: lx.RESULTS.stagnation,
           Reason.ATTAINABLE_ACCURACY: lx.RESULTS.stagnation, Reason.FALSE_CONVERGENCE: lx.RESULTS.stagnation,
           Reason.SINGULAR: lx.RESULTS.singular, Reason.NOT_FACTORED: lx.RESULTS.singular,
           Reason.NONFINITE: lx.RESULTS.singular}        # all others: breakdown


class BCSROperator(lx.AbstractLinearOperator):
    """A sparse matrix as an operator of lineax.

    Parameters
    ----------
    A : BCSR or BCOO
        Its indices must be concrete; its values may be traced. Duplicates are summed. Or (pattern, values).
    tags : lineax tag, or several
        Properties that you promise, such as ``lineax.symmetric_tag``.
    """

    values: jax.Array                            # one for each entry of the pattern
    pattern: Pattern = eqx.field(static=True)
    tags: frozenset = eqx.field(static=True)

    def __init__(self, A, tags=()):
        pattern, values = A if isinstance(A, tuple) else read_matrix(A)
        self.pattern, self.values = pattern.canonical, arrange(pattern, values)
        self.tags = frozenset(tags if isinstance(tags, (frozenset, set, tuple, list)) else [tags])

    def mv(self, vector):
        """Return A x."""
        return product(self.pattern, self.values, vector)

    def as_matrix(self):
        """Return A as a dense array."""
        n = self.pattern.n
        return jnp.zeros((n, n), self.values.dtype).at[self.pattern.host.rows, self.pattern.indices].set(self.values)

    def transpose(self):
        """Return the operator of Aᵀ."""
        if lx.is_symmetric(self):
            return self
        pattern, order = self.pattern.transposed
        return BCSROperator((pattern, self.values[order]), lx.transpose_tags(self.tags))

    def in_structure(self):
        """Return the shape and the type of x."""
        return jax.ShapeDtypeStruct((self.pattern.n,), self.values.dtype)

    def out_structure(self):
        """Return the shape and the type of A x."""
        return self.in_structure()

    def diagonal(self, offset=0):
        """Return the diagonal ``offset`` columns to the right of the main one."""
        rows, columns = self.pattern.host.rows, self.pattern.indices
        on = np.flatnonzero(columns - rows == offset)
        places = np.minimum(rows, columns)[on]
        return jnp.zeros(max(self.pattern.n - abs(offset), 0), self.values.dtype).at[places].set(self.values[on])


@lx.linearise.register(BCSROperator)
@lx.materialise.register(BCSROperator)
def _(operator):
    return operator


@lx.conj.register(BCSROperator)
def _(operator):
    return BCSROperator((operator.pattern, operator.values.conj()), operator.tags)


@lx.diagonal.register(BCSROperator)
def _(operator):
    return operator.diagonal()


@lx.tridiagonal.register(BCSROperator)
def _(operator):
    return operator.diagonal(), operator.diagonal(-1), operator.diagonal(1)


@lx.is_symmetric.register(BCSROperator)
def _(operator):
    definite = {lx.positive_semidefinite_tag, lx.negative_semidefinite_tag} & operator.tags
    return bool({lx.symmetric_tag, lx.diagonal_tag} & operator.tags) or (
        bool(definite) and not jnp.iscomplexobj(operator.values))        # a definite complex matrix is Hermitian


def _register(ask, *tags):
    """Make lineax's function ``ask`` return True for an operator with any of these tags."""
    ask.register(BCSROperator)(lambda operator: bool(operator.tags.intersection(tags)))


_register(lx.is_diagonal, lx.diagonal_tag)
_register(lx.is_tridiagonal, lx.tridiagonal_tag, lx.diagonal_tag)
_register(lx.has_unit_diagonal, lx.unit_diagonal_tag)
_register(lx.is_lower_triangular, lx.lower_triangular_tag, lx.diagonal_tag)
_register(lx.is_upper_triangular, lx.upper_triangular_tag, lx.diagonal_tag)
_register(lx.is_positive_semidefinite, lx.positive_semidefinite_tag)
_register(lx.is_negative_semidefinite, lx.negative_semidefinite_tag)


class Solver(lx.AbstractLinearSolver):
    """swell as a solver of lineax.

    It takes a `BCSROperator`. Any other square operator becomes a dense matrix. ``solution.stats`` has "num_steps", the
    iterations, and "residual", the true relative residual.

    Parameters
    ----------
    options
        See `swell.jax.solve`.
    """

    options: Options = eqx.field(static=True)

    @OPTIONS.shown
    def __init__(self, **options: Unpack[OptionsDict]):
        self.options = checked(OPTIONS.read(options))
        try:
            hash(self.options)
        except TypeError as error:
            raise InputError(f"an option cannot be hashed ({error}), as lineax needs it: give settings or names, or "
                             "use swell.jax.prepare") from None

    def init(self, operator, options):
        """Return the state of an operator: its values, its pattern, and whether it is transposed."""
        _refuse(options)
        packed = pack_structures(operator)
        while isinstance(operator, lx.TaggedLinearOperator):
            operator = operator.operator
        if not isinstance(operator, BCSROperator):
            operator = BCSROperator(read_matrix(operator.as_matrix()))
        return operator.values, eqxi.Static((operator.pattern, False)), packed

    def compute(self, state, vector, options):
        """Return (x, one of lineax's RESULTS, statistics)."""
        _refuse(options)
        values, static, packed = state
        pattern, transposed = static.value
        b = ravel_vector(vector, packed)
        dtype = solve_dtype(self.options, values.dtype, b.dtype)
        finite, regular = jnp.isfinite(values).all(), pattern.host.rows == pattern.indices
        regular = jnp.asarray(regular, values.dtype)       # strict dtype promotion casts nothing
        values, finite = jnp.where(finite, values, regular), finite & jnp.isfinite(b).all()
        x, info = call(prepared(pattern, self.options).system, values.astype(dtype),
                       jnp.where(finite, b, 0).astype(dtype), transposed, must_converge=False)
        x = jnp.where(finite, x, jnp.nan)        # lineax turns NaN into a failed result; swell would raise
        result = lx.RESULTS.breakdown
        for reason, name in RESULTS.items():
            result = lx.RESULTS.where(info.code == reason.code, name, result)
        result = lx.RESULTS.where(info.code == Reason.CONVERGED.code, lx.RESULTS.successful, result)
        return unravel_solution(x, packed), result, {"num_steps": info.iterations, "residual": info.residual}

    def transpose(self, state, options):
        """Return the state of Aᵀ."""
        values, static, packed = state
        pattern, transposed = static.value
        return (values, eqxi.Static((pattern, not transposed)), transpose_packed_structures(packed)), options

    def conj(self, state, options):
        """Return the state of the conjugate of A."""
        values, *rest = state
        return (values.conj(), *rest), options

    def assume_full_rank(self):
        """Return True: A is square and regular."""
        return True


def _refuse(options):
    """Raise InputError for options of ``lineax.linear_solve``, of which this solver has none."""
    if options:
        raise InputError(f"options={sorted(options)}: swell's Solver takes its options when it is made, as in "
                         "Solver(rtol=1e-10)")
