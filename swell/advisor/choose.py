"""Choose method, scaling and preconditioner by facts about A, and the choices to try after a failure.

On one device, if the user names none of these parts, predicted seconds decide (choices.py). Fixed rules decide if the
user names a part, or if ranks share A:

1. A Hermitian A with a positive diagonal gets cg. On a CPU it has IC(0). On a GPU it has Jacobi scaling, as resident_cg
   if the vectors fit on the chip, and then IC(0). A singular A has Jacobi scaling. A named preconditioner that is not
   its own adjoint excludes cg.
2. A complex symmetric A gets cocg. So does an A of complex type with real entries, such as undamped waves: after cg, or
   at once if its diagonal is not positive. A named preconditioner that is not symmetric excludes cocg.
3. Everything else gets bicgstab. 2. and 3. have ILU(0) on a CPU, and Jacobi on a GPU and for a singular A.
4. After cocg follows cocg with the shifted Laplacian by ILU(1), for meshes too coarse for their waves. Then the direct
   solver, unless its factors would be huge. Then gmres with Jacobi, whose residual never grows.
5. An A with a zero on the diagonal gets the direct solver and gmres only, since 1. to 3. cannot start.

Across ranks a real symmetric A with a positive diagonal and many rows first gets cg with multigrid, of aggregates if it
is elastic. The other choices have an incomplete factorisation of each rank's diagonal block. The direct solver is not
tried.
"""
from __future__ import annotations

import logging
from dataclasses import replace

from swell.advisor.choices import RESIDENT_NOTE, may_reside, predicted_choices, setting, shifted_laplacian
from swell.advisor.machine import machine
from swell.core.configuration import Configuration
from swell.core.errors import InputError
from swell.core.log import LOG
from swell.core.registry import load, resolve
from swell.formats.blocks import detect
from swell.formats.symmetry import asymmetry, hermitian, tolerance
from swell.preconditioners.amg.nodes import like_elasticity
from swell.preconditioners.dense_factors import nearly_full
from swell.preconditioners.direct import unavailable
from swell.preconditioners.triangular import resolve_solve
from swell.solving.choice_cost import paired

FREE = "precond", "scaling", "ordering", "nullspace", "smoother"         # predictions decide if the user names none
SYMMETRIC = ("none", "jacobi", "jacobi_sweeps", "block_jacobi", "chebyshev", "direct")    # symmetric where A = Aᵀ
MAX_DIRECT = 300_000        # largest number of unknowns for which a factorisation is tried unasked
MULTIGRID_FROM = 20_000     # least number of rows for which multigrid is the first choice across ranks
BLOCKS_FROM = 3             # least block size for which blocks are the default; for 2 × 2 SELL is as fast
MAX_FILL = 1.05             # largest fill of blocks for which they are the default
MAX_LONGEST = 1.5           # largest ratio of the longest row to the mean for which block SELL has little padding
MAX_FACTORS = 100_000_000   # largest estimated number of entries of factors tried unasked: about a minute and 2 GB


def default_format(A):
    """Return settings of a format for A: SELL if rows are about equally long, as on PDE meshes; else CSR.

    If dense blocks of 3 × 3 or more hold A with hardly any fill: BSR on a CPU; on a GPU block SELL if the block rows
    are about equally long, else BSR.
    """
    if A.shape[0] < 256:
        return setting("format", "csr")
    longest, mean = A.facts(search=False).longest_row, A.nnz / A.shape[0]
    size = detect(A, MAX_FILL)
    if size >= BLOCKS_FROM:
        padded = A.space.name == "cpu" or longest > MAX_LONGEST * mean
        return load("format", "bsr" if padded else "block_sell")(block=size)
    ragged = longest > 64 and longest > 8 * mean
    return setting("format", "csr" if ragged else "sell")


def choose(A, named: Configuration, resident=True) -> tuple[list[Configuration], list[str]]:
    """Return (the choices to try, in order; a sentence for each choice that was left out).

    Every choice has all parts that the user named. A method that has no place for a named part is left out.

    Parameters
    ----------
    A : CSRMatrix or matrix-free LinearOperator
    named : Configuration
        The parts that the user named; ``method`` is None.
    resident : bool
        False if the resident form of cg was tried, and the matrix does not fit.
    """
    every = _choices(A, named, resident)
    able = [choice for choice in every if choice.unusable is None] or every[:1]      # its setup reports the error
    notes = [f"method='{choice.name('method')}' was not tried, since it has no place for {choice.unusable}="
             f"'{choice.name(choice.unusable)}', which you named" for choice in every if choice not in able]
    if LOG.isEnabledFor(logging.INFO):
        choices = (f"{paired(choice.name('method'), choice.part)}, since {'; '.join(choice.why)}" for choice in able)
        LOG.info("choices for %d unknowns, %s, %s: %s", A.shape[0], A.dtype.name, A.space.device_name,
                 ". Or ".join((*choices, *notes)))
    return able, notes


def _choices(A, named, resident) -> list[Configuration]:
    """Return the choices that suit A, in the order in which to try them. For the arguments see `choose`."""
    if not A.has_entries:
        return [replace(named, method=setting("method", "gmres"), why=("A is matrix-free, so nothing is known of it",))]
    if not A.space.ranks.single:
        return _across_ranks(A, named)
    resident, by_user = resident and named.format is None and named.smoother is None, named
    if nearly_full(A):                           # a search for blocks would not pay: iterations are a last resort
        named = replace(named, format=named.format or setting("format", "csr"))
    named = replace(named, format=named.format or default_format(A))
    facts = A.facts()
    if all(map(named.free, FREE)):
        return predicted_choices(A, facts, by_user, named.format, machine(A.space), resident, lambda: incomplete_lu(A))
    singular = "; its rows sum to zero, so it is singular, and b must sum to zero too" if facts.zero_row_sums else ""
    if facts.zero_diagonal:
        what = "rows are empty" if facts.empty_rows == facts.zero_diagonal else "diagonal entries are zero"
        choices, why = [], f"{facts.zero_diagonal} of {facts.n} {what}, where Jacobi and cg cannot start"
    else:
        choices, why = [_iterative(A, facts, named, singular)], "the iterative choice failed"
        if choices[0].scaling is not None and named.scaling is None and named.free("precond") and not singular:
            choices.append(replace(choices[0], scaling=None, precond=setting("precond", "ic"),
                                 why=("Jacobi scaling was not enough",)))
        if choices[0].name("method") == "cg" and not facts.dominant and not singular:
            wave = _indefinite(A, facts, named, singular, "A is real in a complex type, as waves without damping are")
            choices += [wave] if wave.name("method") == "cocg" else []
        if resident:
            choices[0] = _resident(A, choices[0])
    free = named.free("precond") and not (singular or named.scaling or named.ordering)
    if choices and choices[-1].name("method") == "cocg" and free:
        why += ", and if A is a Helmholtz operator, a shift may help"
        choices.append(replace(choices[-1], precond=shifted_laplacian(), why=(why,)))
        why = "the shifted Laplacian failed too"
    missing = unavailable(A)
    if missing:
        why += f", and {missing}"
    elif facts.n <= MAX_DIRECT:
        limit = MAX_FACTORS if A.space.name == "cpu" else None     # cuDSS checks the GPU's memory itself
        choices.append(replace(named, method=load("method", "direct")(largest=limit), why=(why,)))
        why = "the direct solver failed"
    else:
        why += f", and a factorisation of more than {MAX_DIRECT} unknowns is not tried unasked"
    jacobi = setting("precond", "jacobi") if named.free("precond") and not facts.zero_diagonal else named.precond
    choices.append(replace(named, method=setting("method", "gmres"), precond=jacobi, why=(why,)))
    return choices


def _across_ranks(A, named):
    """Return the choices for a matrix distributed over ranks, in the order in which to try them.

    Its symmetry is estimated. Large symmetric systems get multigrid across the ranks; otherwise each rank
    preconditions with its own diagonal block. ``named``: see `choose`."""
    d = A.diagonal()
    real = not A.space.max_on_host(abs(d.imag)) if A.dtype.kind == "c" else True
    if A.space.max_on_host(-abs(d)) >= 0:
        raise InputError("diagonal entries of A are zero, where incomplete factorisations cannot start: name the "
                         "method and precond='none', or solve on one rank")
    definite = real and A.space.max_on_host(-d.real) < 0 and hermitian(A) and not breaks_symmetry(named.precond)
    waves = A.dtype.kind == "c" and asymmetry(A, conjugate=False) <= tolerance(A)
    alike = waves and keeps_symmetry(named.precond) and named.name("scaling") in ("none", "jacobi")
    free = named.free("precond") and not named.scaling
    # On a GPU an exact triangular solve takes a step for each level.
    solve = {} if A.space.name == "cpu" else {"solve": "sweeps(count=2)"}
    named = replace(named, format=named.format or default_format(A.diagonal_block))

    def choice(method, factor, why):
        return replace(named, method=setting("method", method), why=(why,),
                       precond=load("precond", factor)(**solve) if named.free("precond") else named.precond)

    choices, why = [], "the iterative choice failed"
    elastic = definite and A.space.ranks.max(A.dtype.kind == "f" and like_elasticity(A.diagonal_block))
    if definite and free and A.dtype.kind == "f" and A.shape[0] >= MULTIGRID_FROM:
        kind, of = ("smoothed_aggregation", ", coupled as in elasticity") if elastic else ("amg", "")
        choices.append(replace(named, method=setting("method", "cg"), precond=setting("precond", kind), why=(
            f"A is Hermitian with a positive diagonal, and has {MULTIGRID_FROM} rows or more{of}",)))
    if definite:
        choices.append(choice("cg", "ic", "A is Hermitian with a positive diagonal"))
    if alike:
        choices.append(choice("cocg", "ilu", "A is real in a complex type, as waves without damping are" if real and
                            hermitian(A) else "A is complex symmetric"))
    elif not definite:
        odd = breaks_symmetry(named.precond)
        but = "with a preconditioner that is not" if odd else "but its diagonal is not positive"
        what = f"Hermitian, {but}" if hermitian(A) else "not Hermitian"
        choices.append(choice("bicgstab", "ilu", f"A is {'complex symmetric' if waves else what}"))
    if alike and free:
        why += ", and if A is a Helmholtz operator, a shift may help"
        choices.append(replace(choices[-1], precond=shifted_laplacian(), why=(why,)))
        why = "the shifted Laplacian failed too"
    return [*choices, choice("gmres", "ilu", why)]


def _resident(A, choice):
    """Return ``choice``; scaled cg becomes resident_cg if its vectors may fit on the GPU's multiprocessors."""
    scaled = choice.name("method") == "cg" and choice.scaling is not None and choice.precond is None
    if not (scaled and may_reside(A)):
        return choice
    method = setting("method", "resident_cg")
    return replace(choice, method=method, format=method.format, why=(choice.why[0] + RESIDENT_NOTE,))


def incomplete_lu(A):
    """Return (settings of an incomplete LU without fill for A on a CPU, a text on the blocks of A).

    If dense blocks are full, ILU(0) by points has the factors of block ILU(0). Its setup takes half as long and its
    application 1.1 to 1.5 times as long, which pays up to about fifty iterations. If blocks are nearly full, block
    ILU(0) also keeps the entries that fill them, which saves iterations.
    """
    size = 1 if nearly_full(A) else detect(A)
    full = detect(A, MAX_FILL) if size > 1 else 1
    if full == 1 and size >= BLOCKS_FROM:
        return load("precond", "ilu")(block=size), f"; its blocks of {size} are nearly full, and are filled up"
    return setting("precond", "ilu"), (
        f"; its blocks of {full} are full, so ILU(0) by points has their factors" if full > 1 else "")


def keeps_symmetry(precond) -> bool:
    """True if the preconditioner with settings ``precond``, or None, is symmetric (M = Mᵀ) where A = Aᵀ."""
    name = Configuration(None, precond).name("precond")
    if name in ("shifted_laplacian", "deflation") or (name == "schwarz" and precond.kind != "restricted"):
        return keeps_symmetry(resolve("precond", precond.inner))
    if name == "ilu":                            # on a pattern, symmetric if A is, and its solves are alike
        return precond.threshold is None and resolve_solve(precond.solve).alike
    if name == "gauss_seidel":
        return precond.direction == "symmetric"
    return name in SYMMETRIC


def breaks_symmetry(precond) -> bool:
    """True if the preconditioner with settings ``precond``, or None, is not Hermitian even where A is."""
    name = Configuration(None, precond).name("precond")
    if name in ("schwarz", "shifted_laplacian", "deflation"):
        return name == "schwarz" and precond.kind == "restricted" or breaks_symmetry(resolve("precond", precond.inner))
    if name == "ilu":
        return not keeps_symmetry(precond)
    return name == "gauss_seidel" and precond.direction != "symmetric"


def _iterative(A, facts, named, singular):
    """Return the Configuration, with an iterative method, that the symmetry and diagonal of A suggest.

    ``facts``: `Facts` of A. ``named``: the parts that the user named. ``singular``: a text for its reasons, or ""."""
    space = A.space
    why = f"A is {facts.symmetry}"
    if facts.hermitian and breaks_symmetry(named.precond):
        return _indefinite(A, facts, named, singular, why + ", with a preconditioner that is not")
    if facts.hermitian and facts.positive_diagonal:
        scaling, precond = named.scaling, named.precond
        if scaling is None and precond is None:
            if space.name == "cpu" and not singular and named.free("precond"):
                precond = setting("precond", "ic")
            elif named.free("scaling"):
                scaling = setting("scaling", "jacobi")
        why += " with a positive diagonal"
        if facts.dominant and not singular:
            why += " and diagonally dominant, which makes it positive definite"
        elif not singular:
            why += ", so it may be positive definite; cg will tell"
        return replace(named, method=setting("method", "cg"), scaling=scaling, precond=precond,
                       why=(why + singular,))
    if facts.hermitian:
        why += " but its diagonal is not positive, so it is not positive definite"
    return _indefinite(A, facts, named, singular, why)


def _indefinite(A, facts, named, singular, why):
    """Return the Configuration for a matrix to which cg does not apply: cocg or bicgstab.

    ``facts``: `Facts` of A. ``named``: the parts that the user named. ``why``: a text on A. ``singular``: a text added
    to the reasons, or ""."""
    space = A.space
    precond, more = named.precond, ""
    if named.free("precond") and not named.scaling:
        precond = setting("precond", "jacobi")
        if space.name == "cpu" and not singular:
            precond, more = (setting("precond", "ilu"), "") if facts.symmetric else incomplete_lu(A)
        elif space.name != "cpu":
            more = "; Jacobi is a pass over a vector, an exact solve with triangles a step for each of their levels"
    alike = keeps_symmetry(named.precond) and named.name("scaling") in ("none", "jacobi")
    if facts.complex and facts.symmetric and alike:
        why += ", where cocg needs one product an iteration and the fewest in all" + singular + more
        return replace(named, method=setting("method", "cocg"), precond=precond, why=(why,))
    return replace(named, method=setting("method", "bicgstab"), precond=precond,
                   why=(why + ", where bicgstab is quick if it converges" + singular + more,))
