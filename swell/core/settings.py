"""Settings: the frozen dataclasses by which a user says what should run, and their text form for the command line."""
from __future__ import annotations

import ast
import dataclasses
import numbers
import re

from swell.core.errors import InputError


def describe(setting) -> str:
    """One line for a settings object: its class and the fields that differ from their defaults."""
    if setting is None:
        return "none"
    changed = [f"{f.name}={getattr(setting, f.name)!r}" for f in dataclasses.fields(setting)
               if getattr(setting, f.name) != f.default]
    return f"{type(setting).__name__}({', '.join(changed)})"


def parse(text: str) -> tuple[str, dict]:
    """Split ``"gmres(restart=50)"`` into ``("gmres", {"restart": 50})``.

    Raises
    ------
    InputError
        If the text is neither a name nor a name with keyword arguments that are literals.
    """
    match = re.fullmatch(r"\s*([A-Za-z0-9_]+)\s*(?:\((.*)\))?\s*", text, re.DOTALL)
    if not match:
        raise InputError(f"cannot read {text!r}: expected a name such as gmres, or gmres(restart=50)")
    name, inside = match.groups()
    if not inside:
        return name, {}
    try:
        call = ast.parse(f"f({inside})", mode="eval").body
        if call.args:
            raise ValueError
        return name, {k.arg: ast.literal_eval(k.value) for k in call.keywords}
    except (SyntaxError, ValueError, TypeError):
        raise InputError(f"cannot read the settings in {text!r}: expected name(field=value, ...) with plain values, "
                         "such as gmres(restart=50)") from None


def construct(cls, arguments: dict):
    """Build a settings object; an unknown field is an error that names the fields there are."""
    known = [f.name for f in dataclasses.fields(cls)]
    for name in arguments:
        if name not in known:
            raise InputError(f"{cls.__name__} has no setting {name!r}; it has: {', '.join(known) or 'none'}")
    return cls(**arguments)


def positive(owner, name: str, minimum=1, most=None):
    """Raise InputError unless the integer field ``name`` of ``owner`` lies between ``minimum`` and ``most``."""
    value = getattr(owner, name)
    if (not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < minimum
            or (most is not None and value > most)):
        raise InputError(f"{type(owner).__name__}({name}={value!r}): expected an integer of at least {minimum}"
                         + (f" and at most {most}" if most is not None else ""))
