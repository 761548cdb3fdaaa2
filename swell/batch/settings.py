"""The methods and preconditioners that have a batch form, and the rule that chooses one.

The rule: if every system is Hermitian with a positive diagonal, CG with Jacobi. Else dense LU up to 64 unknowns. Else
BiCGSTAB with ILU(0), with Jacobi if that does not fit on the chip, or without a preconditioner if the pattern lacks a
diagonal entry. If the iteration of an automatic choice fails for some systems, these systems are gathered and solved by
LU, where it fits.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from swell.batch.slots import Kind
from swell.core.errors import InputError
from swell.core.registry import load, name_of, resolve
from swell.core.settings import describe, shown, without_effect
from swell.preconditioners.block_jacobi import WITHOUT_BLOCKS

if TYPE_CHECKING:
    from swell.batch.pattern import Pattern

# By the names of the registry: the fields of their settings that a batch uses. "lu" is a second name of "direct".
METHODS = {"cg": (), "bicgstab": ("seed",), "gmres": ("restart",), "direct": ()}
PRECONDS = {"jacobi": (), "block_jacobi": ("block",), "ilu": ()}
KINDS = {"jacobi": Kind.JACOBI, "block_jacobi": Kind.BLOCK_JACOBI, "ilu": Kind.ILU}
DENSE = 64              # unknowns up to which LU is chosen before BiCGSTAB
MAX_LU_UNKNOWNS = {"cpu": 1000, "cuda": 256}  # most for a second solve by LU where an iteration failed


@dataclass(frozen=True)
class Choice:
    """A method and a preconditioner of a batch.

    Attributes
    ----------
    method, precond : settings objects; precond may be None
    why : str
        The reason of an automatic choice; empty if the user named it.
    """

    method: Any
    precond: Any = None
    why: str = ""

    @property
    def name(self) -> str:
        """The method by the name of the registry; "lu" for the dense factorisation."""
        name = name_of("method", type(self.method))
        return "lu" if name == "direct" else name

    @property
    def precond_name(self) -> str:
        """The preconditioner by the name of the registry, or "none"."""
        return "none" if self.precond is None else name_of("precond", type(self.precond))

    @property
    def kind(self) -> int:
        """The preconditioner as kernels know it."""
        return Kind.PLAIN if self.precond is None else KINDS[self.precond_name]

    @property
    def block(self) -> int:
        """Rows of a block of block Jacobi; 1 otherwise."""
        return self.precond.block or WITHOUT_BLOCKS if self.kind == Kind.BLOCK_JACOBI else 1

    def describe(self) -> str:
        """The parts with their settings."""
        method = "dense LU" if self.name == "lu" else describe(self.method)
        return method + ("" if self.precond is None else f" with {describe(self.precond)}")


def named(method, precond) -> Choice | None:
    """Return the user's choice, checked; None if no method was named.

    Raises
    ------
    InputError
        For a method or a preconditioner without a batch form, and for settings that have no effect in a batch.
    """
    if isinstance(method, str) and method.lower() == "lu":
        method = "direct"
    method, precond = resolve("method", method), resolve("precond", precond)
    if method is None:
        if precond is not None:
            raise InputError(f"precond={shown(precond)} was given without a method: name one too, such as "
                             "method='bicgstab'")
        return None
    _check("method", method, METHODS)
    if precond is not None:
        _check("precond", precond, PRECONDS)
        if name_of("method", type(method)) == "direct":
            raise InputError("method='lu' solves directly and takes no preconditioner: leave precond out")
    return Choice(method, precond)


def _check(kind, settings, forms):
    """Raise InputError unless ``settings`` has a batch form, and only fields that a batch uses were changed.

    ``kind``: "method" or "precond". ``forms``: a table such as METHODS."""
    name = name_of(kind, type(settings))
    if name not in forms:
        listed = ", ".join("lu" if each == "direct" else each for each in forms)
        raise InputError(f"{kind}={name!r} has no form for a batch: expected {listed}; or solve the systems one by one "
                         "with swell.solve")
    idle = [field for field in type(settings).__dataclass_fields__ if field not in forms[name]]
    without_effect(settings, "in a batch", "solve the systems one by one with swell.solve", *idle)


def chosen(pattern: Pattern, definite: bool, fits) -> Choice:
    """Return the choice of the rule above.

    ``definite``: all systems are Hermitian with a positive diagonal. ``fits(choice)`` says whether the device has room.
    """
    if definite:
        return _of("cg", "jacobi", "all systems are Hermitian with a positive diagonal")
    why = "not all systems are Hermitian with a positive diagonal, and n = "
    if pattern.n <= DENSE:
        return _of("direct", None, f"{why}{pattern.n} is at most {DENSE}")
    why = f"{why}{pattern.n} is more than {DENSE}"
    if not pattern.full_diagonal:
        return _of("bicgstab", None, f"{why}, and A has no full diagonal")
    choice = _of("bicgstab", "ilu", why)
    return choice if fits(choice) else _of("bicgstab", "jacobi", f"{why}, and ILU(0) does not fit on the chip")


def _of(method, precond, why) -> Choice:
    """Return an automatic choice, by the names of the registry; ``why``: its reason."""
    return Choice(load("method", method)(), None if precond is None else load("precond", precond)(), why)


def check_diagonal(choice: Choice, pattern: Pattern):
    """Raise InputError if the preconditioner needs diagonal entries that the pattern lacks."""
    if choice.kind in (Kind.JACOBI, Kind.ILU) and not pattern.full_diagonal:
        row = int((pattern.diagonal < 0).argmax())
        raise InputError(f"precond={choice.precond_name!r} needs a diagonal entry in each row, and row {row} of A has "
                         "none: store it as a zero and reorder, or use method='lu' or precond=None")
