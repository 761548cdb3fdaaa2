"""The choices that contend for a system on one device, with predicted seconds, the fastest first.

They contend if the user names no preconditioner, scaling, ordering, smoother or null space. The class of A decides:

- Hermitian with a positive diagonal: cg with Jacobi and with IC(0). A real A also has AMG, or smoothed aggregation if
  its unknowns come in groups that are coupled as in elasticity. On a GPU resident_cg, if its vectors may fit on the
  chip. Minres, unless A is diagonally dominant.
- Complex symmetric: cocg with ILU(0), with Jacobi, and with the shifted Laplacian, for meshes too coarse for their
  waves.
- Other Hermitian matrices: minres, and bicgstab as below.
- Everything else: bicgstab with ILU(0) and with Jacobi.
- A zero on the diagonal: minres or gmres without a preconditioner.
- Every class: the direct solver, if the device has one. Gmres with Jacobi, unless the diagonal has a zero.
"""
from __future__ import annotations

from dataclasses import replace
from functools import cache

from swell.advisor import estimate
from swell.advisor.costs import COSTS
from swell.advisor.plan import fastest_choice
from swell.core.registry import load
from swell.formats.parts import most_rows
from swell.preconditioners.amg.nodes import like_elasticity
from swell.preconditioners.amg.strength import FEW
from swell.preconditioners.direct import unavailable


@cache
def setting(kind, name):
    """Return the settings object registered as ``name`` under ``kind``, with its defaults; nothing changes it."""
    return load(kind, name)()


def shifted_laplacian():
    """Return settings of the shifted Laplacian by ILU(1), for Helmholtz operators."""
    return load("precond", "shifted_laplacian")(inner=load("precond", "iluk")(level=1))


def contenders(A, facts, named, form, machine, resident, incomplete_lu) -> list:
    """Return configurations with estimates of their time, the one predicted to be fastest first.

    Parameters
    ----------
    A : CSRMatrix
    facts : Facts
    named : Configuration
        The user's choices.
    form : format settings
        For iterative methods.
    machine : Machine
    resident : bool
        True if the resident form of cg may be taken.
    incomplete_lu : callable
        Returns (settings of the incomplete LU that suits A, a text on its blocks).
    """
    why, multigrid = f"A is {facts.symmetry}", False

    def choice(method, part, note=""):
        scaling = precond = None
        if (method, part) == ("cg", "jacobi"):
            scaling = setting("scaling", "jacobi")
        elif part == "ilu0" and not facts.symmetric:
            precond, word = incomplete_lu()
            note += word
        elif part != "none":
            precond = setting("precond", part)
        return replace(named, method=setting("method", method), scaling=scaling, precond=precond, format=form,
                       why=(why + note,))

    def waves():
        found = [choice("cocg", "ilu0"), choice("cocg", "jacobi")]
        return [*found, replace(found[0], precond=shifted_laplacian(),
                                why=(why + "; for a Helmholtz operator, a shift helps",))]

    if facts.zero_diagonal:
        what = "rows are empty" if facts.empty_rows == facts.zero_diagonal else "diagonal entries are zero"
        why = (f"{facts.zero_diagonal} of {facts.n} {what} (the first in row {facts.first_zero}), where Jacobi and "
               "incomplete factors cannot start")
        found = [choice("minres" if facts.hermitian else "gmres", "none")]
    elif facts.hermitian and facts.positive_diagonal:
        why += " with a positive diagonal" + (
            " and diagonally dominant, which makes it positive definite" if facts.dominant
            else ", so it may be positive definite; cg will tell")
        found = [choice("cg", "jacobi"), choice("cg", "ic0")]
        if resident and may_reside(A):
            found.append(in_parts(found[0]))
        if not facts.complex and facts.n >= COSTS[A.space.name].multigrid_from:
            multigrid = is_m_matrix(A, facts)
            elastic = not multigrid and like_elasticity(A)
            found.append(choice("cg", "smoothed_aggregation", "; its unknowns come in groups, coupled as in elasticity")
                         if elastic else
                         choice("cg", "amg", "; its couplings are negative: AMG suits it" if multigrid else ""))
        if not facts.dominant:
            found.append(choice("minres", "jacobi", "; and it need not be definite for minres"))
            found += waves() if facts.complex and facts.symmetric else []
    elif facts.symmetric and facts.complex:
        found = waves()
    else:
        if facts.hermitian:
            why += " but its diagonal is not positive, so it is not positive definite"
        found = [choice("bicgstab", "ilu0"), choice("bicgstab", "jacobi")]
        found += [choice("minres", "none")] if facts.hermitian else []
    if not facts.zero_diagonal:
        found.append(choice("gmres", "jacobi", "; the residual of gmres never grows"))
    if not unavailable(A):
        found.append(replace(named, method=setting("method", "direct"),
                             why=(why + "; a factorisation takes no iterations",)))
    estimates = [estimate.direct(A, machine, estimate.CERTAIN[A.space.name]) if c.name("method") == "direct" else
                 estimate.iterative(A, facts, c, machine, multigrid) for c in found]

    def seconds(k):
        return estimates[k].setup + estimates[k].margin + estimates[k].solve

    first = fastest_choice(estimates, range(len(found)), seconds)        # which may look into a lower bound
    order = sorted(range(len(found)), key=lambda k: (k != first, seconds(k)))
    return [replace(found[k], estimate=estimates[k]) for k in order]


def may_reside(A) -> bool:
    """True on a GPU if the vectors of resident_cg for A may fit on its multiprocessors."""
    space = A.space
    return space.name != "cpu" and space.bulk_copies and A.shape[0] <= most_rows(space.multiprocessors, A.dtype)


def in_parts(choice):
    """Return the Configuration ``choice``, scaled cg, with the method resident_cg in place of cg."""
    method = setting("method", "resident_cg")
    return replace(choice, method=method, format=method.format, why=(
        choice.why[0] + "; its vectors fit on the multiprocessors, where resident_cg keeps them",))


def is_m_matrix(A, facts) -> bool:
    """True if the rows of a real CSRMatrix A are dominant and all but a few off-diagonal entries are negative.

    AMG suits such matrices. ``facts``: `Facts` of A."""
    return facts.dominant and A.space.find_true(A.data > 0)[1] <= (1 + FEW) * facts.n
