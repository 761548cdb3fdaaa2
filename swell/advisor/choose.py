"""The first advisor: chooses method, scaling and preconditioner by what it finds in A, and what to try next."""
from __future__ import annotations

from dataclasses import replace

from swell.advisor.analyse import analyse
from swell.core.configuration import Configuration
from swell.core.registry import load

DIRECT_LIMIT = 300_000      # unknowns up to which a factorisation is tried unasked


def setting(kind, name, **fields):
    """A settings object by its registered name."""
    return load(kind, name)(**fields)


def default_format(A):
    """SELL where its padding and its offsets make a product cheaper than CSR's, as on PDE meshes; else CSR."""
    if A.shape[0] < 256:
        return setting("format", "csr")
    lengths = A.indptr[1:] - A.indptr[:-1]
    longest, mean = int(lengths.max()), A.nnz / A.shape[0]
    return setting("format", "csr" if longest > 64 and longest > 8 * mean else "sell")


def choose(A, named: Configuration) -> list[Configuration]:
    """Configurations to try in order; what the user named stays as it is.

    Parameters
    ----------
    A : CSRMatrix or matrix-free LinearOperator
    named : Configuration
        The user's choices, with ``method`` None.
    """
    if not hasattr(A, "indptr"):
        return [replace(named, method=setting("method", "gmres"), why=("A is matrix-free, so nothing is known of it",))]
    named = replace(named, format=named.format or default_format(A))
    facts = analyse(A)
    chain = []
    if facts.zero_diagonal or facts.empty_rows:
        why = f"{facts.zero_diagonal} of {facts.n} diagonal entries are zero, where Jacobi and cg cannot start"
    else:
        chain = _iterative(facts, named)
        why = "the iterative choice failed"
    if facts.n <= DIRECT_LIMIT:
        chain.append(Configuration(setting("method", "direct"), format=named.format, why=(why,)))
    elif not chain:
        chain.append(replace(named, method=setting("method", "gmres"),
                             why=(why, f"a factorisation of more than {DIRECT_LIMIT} unknowns is not tried unasked")))
    return chain


def _iterative(facts, named):
    """The method that the structure suggests."""
    scaling = None if named.precond is not None else named.scaling or setting("scaling", "jacobi")
    if facts.hermitian and facts.positive_diagonal:
        sure = "which makes it positive definite" if facts.dominant else "so it may be positive definite; cg will tell"
        why = f"A is {facts.symmetry} with a positive diagonal{' and diagonally dominant' if facts.dominant else ''}, {sure}"
        return [replace(named, method=setting("method", "cg"), scaling=scaling, why=(why,))]
    precond = named.precond if named.precond is not None or named.scaling else setting("precond", "jacobi")
    if facts.hermitian:
        why = f"A is {facts.symmetry} but its diagonal has both signs, so it is indefinite"
    else:
        why = f"A is {facts.symmetry}"
    if facts.dominant:
        return [replace(named, method=setting("method", "bicgstab"), precond=precond,
                        why=(why + " and diagonally dominant, where bicgstab is quick",))]
    return [replace(named, method=setting("method", "gmres"), precond=precond, why=(why,))]
