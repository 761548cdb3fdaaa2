"""Settings: the frozen dataclasses with which a user chooses algorithms, and their text form for the command line."""
from __future__ import annotations

import ast
import dataclasses
import keyword
import math
import numbers
import re
import reprlib
import threading
import warnings
from typing import Any, NamedTuple

from swell.core.errors import InputError

REAL, COMPLEX = ("float32", "float64"), ("complex64", "complex128")
DTYPES = REAL + COMPLEX             # the types that swell computes in

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 100


def shown(value) -> str:
    """Return the text of a value for a message: on one line, and without its middle if it is long."""
    try:
        return " ".join(_SHORT.repr(value).split())
    except ValueError:                           # Python does not print an integer of more than 4300 digits
        return f"an integer of {value.bit_length()} bits"


def describe(setting) -> str:
    """One line of text for a settings object: its class and the fields that differ from their defaults, except those
    with ``repr=False``, such as arrays."""
    if setting is None:
        return "none"
    changed = [f"{f.name}={_words(getattr(setting, f.name))}" for f in dataclasses.fields(setting)
               if f.repr and differs(setting, f.name)]
    return f"{type(setting).__name__}({', '.join(changed)})"


def _words(value) -> str:
    """Return the text of a field's value, which may be a settings object."""
    return describe(value) if dataclasses.is_dataclass(value) and not isinstance(value, type) else shown(value)


# A word that Python reserves, such as the solver "is", as a value: with its settings, it is read as if it were quoted.
KEYWORD = re.compile(rf"=\s*((?:{'|'.join(set(keyword.kwlist) - {'None', 'True', 'False'})})\b(?:\([^()]*\))?)")


# CPython 3.11 counts the depth of a syntax tree in one place for all threads, and calls a tree wrong that two built.
ONE_PARSER = threading.Lock()


def parse(text: str) -> tuple[str, dict]:
    """Split ``"gmres(restart=50)"`` into ``("gmres", {"restart": 50})``: a name and its settings.

    Words need no quotes: ``stationary(smoother=chebyshev)``, ``ic0(solve=sweeps(count=5))``. The word inf is a number.

    Raises
    ------
    InputError
        If the text is not a name, or a name with keyword arguments that are literals or words.
    """
    match = re.fullmatch(r"\s*([A-Za-z0-9_]+)\s*(?:\((.*)\))?\s*", text, re.DOTALL)
    if not match:
        raise InputError(f"cannot read {shown(text)}: expected a name such as gmres, or gmres(restart=50)")
    name, inside = match.groups()
    if not inside:
        return name, {}
    try:
        inside = KEYWORD.sub(lambda found: f"={found[1]!r}", inside)
        with ONE_PARSER:
            call = ast.parse(f"f({inside})", mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):      # f(a=1)(b=2), f(a=1) + g(b=2)
            raise ValueError
        names = [keyword.arg for keyword in call.keywords]
        if call.args or None in names:           # None: **settings
            raise ValueError
        arguments = {k.arg: _value(k.value) for k in call.keywords}
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):    # the last two: nested too deeply
        raise InputError(f"cannot read the settings in {shown(text)}: expected name(field=value, ...) with plain "
                         "values, such as gmres(restart=50) or ic0(ordering=rcm)") from None
    if len(arguments) < len(names):
        raise InputError(f"{shown(text)} names a setting twice: name each once")
    return name, arguments


def _value(node):
    """The Python value of a node of ``ast``: a literal, infinity for inf, or the text of a word with its settings."""
    if isinstance(node, ast.Name):
        return math.inf if node.id == "inf" else node.id
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return ast.unparse(node)
    return ast.literal_eval(node)


def construct(cls, arguments: dict):
    """Return ``cls(**arguments)``, a settings object; InputError for an unknown field lists the known ones."""
    known = [f.name for f in dataclasses.fields(cls)]
    for name in arguments:
        if name not in known:
            raise InputError(f"{cls.__name__} has no setting {shown(name)}; it has: {', '.join(known) or 'none'}")
    return cls(**arguments)


def positive(owner, name: str, minimum=1, most=None):
    """Raise InputError unless the integer field ``name`` of ``owner`` is at least ``minimum`` and at most ``most``.

    ``most=None``: no upper bound. A field whose default is None may be None: swell chooses."""
    value = getattr(owner, name)
    if value is None and _default(owner, name) is None:
        return
    if (not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < minimum
            or (most is not None and value > most)):
        raise InputError(f"{type(owner).__name__}({name}={shown(value)}): expected an integer of at least {minimum}"
                         + (f" and at most {most}" if most is not None else ""))


def choose_by_none(owner, former, *names: str):
    """Replace the ``former`` word for "swell chooses", 0 or "auto", by None in these fields, with a FutureWarning."""
    for name in names:
        if type(getattr(owner, name)) is type(former) and getattr(owner, name) == former:
            cls = type(owner).__name__
            warnings.warn(f"{cls}({name}={former!r}) is now {cls}({name}=None), as everywhere: swell chooses",
                          FutureWarning, stacklevel=4)
            object.__setattr__(owner, name, None)


def _default(owner, name: str):
    """The default of the field ``name`` of ``owner``, which a dataclass keeps in its class."""
    return getattr(type(owner), name, dataclasses.MISSING)


def differs(owner, name: str) -> bool:
    """True unless the field ``name`` of ``owner`` has its default value."""
    default, value = _default(owner, name), getattr(owner, name)
    return value is not default and (default is None or hasattr(value, "shape") or value != default)


def without_effect(owner, where: str, remedy: str, *names: str):
    """Raise InputError if a field of ``owner`` that has no effect here differs from its default.

    Parameters
    ----------
    owner : settings object
    where : str
        The condition under which the fields have no effect: "with factor='exact'".
    remedy : str
        The change that would give them an effect: "give factor='sweeps'".
    *names : str
        Names of the fields.
    """
    for name in names:
        if differs(owner, name):
            raise InputError(f"{type(owner).__name__}({name}={shown(getattr(owner, name))}) has no effect {where}: "
                             f"{remedy}, or leave {name} out")


ON_CPU, ON_GPU, IN_SINGLE = "on a CPU", "on a GPU", "in a system of single precision"
AS_GIVEN = "for this matrix"


class Idle(NamedTuple):
    """A field that has no effect in a circumstance known only when the device and the matrix are known.

    Attributes
    ----------
    field : str
    where : str
        The circumstance, such as `ON_CPU`.
    why : str
        The reason, as the end of the note's sentence.
    value : object
        The only value that has no effect; None for every value except the default.
    """

    field: str
    where: str
    why: str
    value: Any = None


def circumstances(A) -> tuple[str, ...]:
    """The circumstances of a matrix: `ON_CPU` or `ON_GPU`, and `IN_SINGLE` if it is in single precision."""
    device = ON_CPU if A.space.name == "cpu" else ON_GPU
    return (device, IN_SINGLE) if A.dtype.char in "fF" else (device,)


def idle_notes(settings, where) -> tuple[str, ...]:
    """Return a text for each changed field that has no effect in the circumstances ``where`` (see `circumstances`).

    ``settings.idle`` lists such fields."""
    notes = []
    for row in settings.idle:
        value = getattr(settings, row.field)
        if row.where in where and differs(settings, row.field) and row.value in (None, value):
            notes.append(f"{type(settings).__name__}({row.field}={shown(value)}) has no effect {row.where}: {row.why}")
    return tuple(notes)


def share(owner, name: str, most=math.inf):
    """Raise InputError unless the field ``name`` of ``owner`` is a number from 0 to ``most``. A field whose default is
    None may be None: swell chooses."""
    value = getattr(owner, name)
    if value is None and _default(owner, name) is None:
        return
    if not real(value) or not 0 <= value <= most:
        raise InputError(f"{type(owner).__name__}({name}={shown(value)}): expected a number of at least 0"
                         + (f" and at most {most}" if most < math.inf else ""))


def one_of(owner, name: str, choices: tuple[str, ...]):
    """Raise InputError unless the field ``name`` of ``owner`` is one of the ``choices``."""
    value = getattr(owner, name)
    if not isinstance(value, str) or value not in choices:
        raise InputError(f"{type(owner).__name__}({name}={shown(value)}): expected "
                         f"{', '.join(map(repr, choices[:-1]))} or {choices[-1]!r}")


def switch(owner, name: str):
    """Raise InputError unless the field ``name`` of ``owner`` is True or False."""
    value = getattr(owner, name)
    if not isinstance(value, bool):
        raise InputError(f"{type(owner).__name__}({name}={shown(value)}): expected True or False")


def real(value) -> bool:
    """True for a real number; False for a bool."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)
