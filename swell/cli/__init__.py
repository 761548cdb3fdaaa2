"""The command line: ``swell <command>``, one module a command.

Exit status: 0 converged (or done), 1 not converged, 2 bad input or environment, 130 interrupted before there was a
solution. Errors are one line on stderr. Nothing heavy is imported before a command runs.
"""
from __future__ import annotations

import argparse
import importlib
import sys

from swell.core.errors import InputError, SwellError

COMMANDS = ("solve", "info", "fvm", "helmholtz", "demo", "doctor", "bench")

ACROSS_RANKS = ("solve", "fvm", "helmholtz")          # what mpiexec may start

CONVERGED, NOT_CONVERGED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130
UNSOLVED = "interrupted before there was a solution; nothing was written"


class Parser(argparse.ArgumentParser):
    """A parser that reports a wrong command line as every other error is reported: in one line."""

    def error(self, message):
        self.exit(BAD_INPUT, f"swell: {message} (see {self.prog} --help)\n")


def parser() -> Parser:
    """The parser of the whole command line; each command's module adds its own arguments."""
    top = Parser(prog="swell", description="Solve the large sparse linear systems that discretised PDEs produce.",
                 epilog="Exit status: 0 converged or done, 1 not converged, 2 bad input or environment, "
                        "130 interrupted before there was a solution.")
    top.add_argument("--version", action="store_true", help="print the version and end")
    commands = top.add_subparsers(dest="command", metavar="command")
    for name in COMMANDS:
        module = importlib.import_module(f"swell.cli.{name}")
        command = commands.add_parser(name, help=module.HELP, description=module.__doc__,
                                      formatter_class=argparse.RawDescriptionHelpFormatter)
        command.add_argument("--debug", action="store_true", help="show the traceback of an unexpected error")
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    return top


def main(argv=None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : list of str, optional
        The arguments; those of the process by default.

    Returns
    -------
    int
        The exit status.
    """
    if argv is None:
        for stream in (sys.stdout, sys.stderr):      # a terminal without ‖ shows a question mark, not a traceback
            stream.reconfigure(errors="replace")
    try:
        arguments = parser().parse_args(argv)
    except SystemExit as end:                        # after --help, or a wrong command line
        return end.code
    except KeyboardInterrupt:
        return _complain(UNSOLVED, INTERRUPTED)
    if arguments.command is None:
        return _without_command(arguments)
    try:
        if arguments.command not in ACROSS_RANKS:
            _alone(arguments.command)
        return arguments.run(arguments)
    except SwellError as error:
        return _complain(error, BAD_INPUT)
    except KeyboardInterrupt:
        return _complain(UNSOLVED, INTERRUPTED)
    except MemoryError as error:
        return _complain(f"out of memory: {str(error) or 'an array did not fit'}; use a machine with more of it, a "
                         "method with short recurrences (cg, bicgstab), or --dtype float32", BAD_INPUT)
    except BrokenPipeError:                          # the reader of our output, such as head, has seen enough
        sys.stderr.close()
        return CONVERGED
    except Exception as error:
        if arguments.debug:
            raise
        return _complain(f"{type(error).__name__}: {error}; swell did not expect this: run it again with --debug and "
                         "report what it prints", BAD_INPUT)


def _without_command(arguments) -> int:
    """``swell`` and ``swell --version``."""
    if not arguments.version:
        return _complain("which command? There are: " + ", ".join(COMMANDS) + " (see swell --help)", BAD_INPUT)
    from swell import __version__
    print(f"swell {__version__}")
    return CONVERGED


def _alone(command):
    """Raise InputError where a launcher started several of a command that does not share its work."""
    from swell.distributed.launcher import launched
    if launched() > 1:
        raise InputError(f"swell {command} does not run across ranks: start it without mpiexec; those that do are "
                         f"{' and '.join(ACROSS_RANKS)}")


def _complain(message, status) -> int:
    """Print one line on stderr."""
    print("swell: " + " ".join(str(message).split()), file=sys.stderr)
    return status
