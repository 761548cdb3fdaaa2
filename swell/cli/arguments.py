"""Arguments that several commands share: what solves the system, and what is printed."""
from __future__ import annotations

from swell.core.registry import names, resolve

PARTS = {"method": "method", "precond": "preconditioner", "scaling": "two-sided scaling", "format": "matrix format",
         "ordering": "ordering of the unknowns"}


def add_solver(parser, unnamed=None):
    """Add --method, --precond, --scaling, --format and --ordering.

    Parameters
    ----------
    parser : argparse.ArgumentParser
    unnamed : dict, optional
        For a part of the solver, what the command takes where none is named; in words, for the help.
    """
    for part, words in PARTS.items():
        default = f"; {unnamed[part]}" if part in (unnamed or {}) else ""
        offered = names(part) if part == "method" else [*names(part), "none"]
        parser.add_argument(f"--{part}", metavar="NAME", help=f"{words}{default}: {', '.join(offered)}")


def named_solver(arguments) -> dict:
    """The settings objects that these arguments name, for ``swell.prepare``; None where none is named.

    Raises
    ------
    InputError
        For an unknown name or setting.
    """
    return {part: resolve(part, getattr(arguments, part)) for part in PARTS}


def add_output(parser):
    """Add --json and --quiet."""
    parser.add_argument("--json", action="store_true", help="print the result as one JSON object")
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors (and the JSON object)")
