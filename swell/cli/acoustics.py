"""Acoustic arguments on the command line, parsed: numbers and tables, points, walls, media, sources and layers."""
from __future__ import annotations


from swell.core.errors import InputError, meant

WALLS = {"rigid": 0, "pressure": 1, "velocity": 1, "impedance": 1, "absorbing": 0}     # numbers in each condition
EXAMPLE = "such as roof=impedance:2000, window=absorbing, inlet=pressure:1 or floor=velocity:0.001+0.002j"


def number(text, option) -> complex:
    """Return ``text`` as a complex number, or raise InputError, whose message names ``option``."""
    try:
        return complex(text.replace(" ", "").replace("i", "j"))
    except ValueError:
        raise InputError(f"{option} {text}: expected a number, such as 0.001 or 2+1j") from None


def point(text, option) -> tuple:
    """Parse two or three coordinates; return a tuple, or raise InputError, whose message names ``option``."""
    try:
        point = tuple(float(part) for part in text.split(","))
    except ValueError:
        point = ()
    if len(point) not in (2, 3):
        raise InputError(f"{option} {text}: expected coordinates in m, such as 0.9,0.35,0.9")
    return point


def quantity(text, option):
    """Return a number, or the Table of a .csv file."""
    if str(text).lower().endswith(".csv"):
        from swell.pde.helmholtz import read_table
        return read_table(text)
    return number(text, option)


def real_quantity(text, option):
    """Return a real number, or the Table of a .csv file."""
    number = quantity(text, option)
    if isinstance(number, complex):
        if number.imag:
            raise InputError(f"{option} {text}: expected a real number, or a .csv file of a table")
        return number.real
    return number


def velocity(text, option):
    """Return a Velocity: a number, a .csv file with a spectrum (frequency and amplitude), or one with a measured map (a
    point and amplitude in each line)."""
    from swell.pde import helmholtz
    if not text.lower().endswith(".csv"):
        return helmholtz.Velocity(number(text, option))
    from swell.pde.helmholtz.table import read_rows
    several = read_rows(text, (2, 3, 5, 6)).shape[1] > 3
    return helmholtz.Velocity(helmholtz.read_velocity_map(text) if several else helmholtz.read_table(text))


def layer(text):
    """Parse LOWER:UPPER, two corners of a box; return a PML."""
    from swell.pde.helmholtz import PML
    corners = text.split(":")
    if len(corners) != 2:
        raise InputError(f"--pml {text}: expected two corners of the box, such as -0.5,-0.5,-0.5:0.5,0.5,0.5")
    return PML(*(point(corner, "--pml") for corner in corners))


def wall(text):
    """Parse NAME=CONDITION; return (name, condition), or raise InputError."""
    from swell.pde import helmholtz
    name, _, words = text.rpartition("=")
    kind, *numbers = words.split(":")
    kind = kind.lower()
    if not name or kind not in WALLS or len(numbers) != WALLS.get(kind):
        hint = "" if kind in WALLS else meant(kind, WALLS)
        if name and kind in WALLS:
            hint = f"{kind} takes {'one number' if WALLS[kind] else 'no number'}. "
        raise InputError(f"--wall {text}: {hint}Expected NAME=CONDITION with one of {', '.join(WALLS)}, {EXAMPLE}")
    if kind == "velocity":
        return name, velocity(*numbers, f"--wall {text}:")
    read = quantity if kind == "impedance" else number
    return name, getattr(helmholtz, kind.capitalize())(*(read(word, f"--wall {text}:") for word in numbers))


def medium(text):
    """Parse NAME=C:RHO or NAME=C:RHO:ETA; return (region, Medium), or raise InputError."""
    from swell.pde.helmholtz import Medium
    name, _, words = text.rpartition("=")
    words = words.split(":")
    if not name or len(words) not in (2, 3):
        raise InputError(f"--medium {text}: expected NAME=SPEED:DENSITY or NAME=SPEED:DENSITY:DAMPING, each a number "
                         "or a .csv file, such as foam=180:30:0.3")
    return name, Medium(*(real_quantity(word, f"--medium {text}:") for word in words))


def conditions(walls) -> dict:
    """Return the pairs (name, condition) as a dict; raise InputError for a name that comes twice."""
    by_name = {}
    for name, condition in walls:
        if name in by_name:
            raise InputError(f"--wall: boundary {name!r} has two conditions; give one")
        by_name[name] = condition
    return by_name


def source(text, mesh, velocity):
    """Return a source for `Helmholtz.response`: a point as a tuple, {name of a boundary: velocity}, or, for
    wave:DIRECTION@BOUNDARY, a PlaneWave."""
    if text.startswith("wave:"):
        from swell.pde.helmholtz import PlaneWave
        direction, _, on = text.removeprefix("wave:").partition("@")
        if not on:
            raise InputError(f"--source {text}: expected wave:DIRECTION@BOUNDARY, such as wave:1,0,0@body")
        return PlaneWave(point(direction, "--source wave:"), on)
    if text in mesh.boundaries or "," not in text:
        return {text: velocity}
    return point(text, "--source")
