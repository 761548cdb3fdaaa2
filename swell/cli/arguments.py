"""Arguments that several commands share: for the solver and for the output."""
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
        From a part of the solver to a phrase for the help: the command's default.
    """
    for part, words in PARTS.items():
        default = f"; {unnamed[part]}" if part in (unnamed or {}) else ""
        offered = [*names(part), *(() if part == "method" else ("none",)), "auto"]
        parser.add_argument(f"--{part}", metavar="NAME", help=f"{words}{default}: {', '.join(offered)}")


def named_solver(arguments) -> dict:
    """Return keyword arguments for ``swell.prepare``: for each part a settings object, "none", "auto", or None if the
    user did not name it.

    Raises
    ------
    InputError
        For an unknown name or setting.
    """
    given = {part: getattr(arguments, part) for part in PARTS}
    return {part: name.lower() if name and name.lower() in ("none", "auto") else resolve(part, name)
            for part, name in given.items()}


def add_output(parser):
    """Add the options --json and --quiet to a parser."""
    parser.add_argument("--json", action="store_true", help="print the result as one JSON object")
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors (and the JSON object)")
