"""The command line: ``swell <command>``, one module a command.

Exit status: 0 converged (or done), 1 not converged, 2 bad input or environment, 130 interrupted before there was a
solution. Errors are one line on stderr. Nothing heavy is imported before a command runs.
"""
from __future__ import annotations

import argparse
import errno
import importlib
import os
import sys
import time

from swell.core.compilation import quiet
from swell.core.errors import SwellError

COMMANDS = ("solve", "info", "fvm", "decompose", "helmholtz", "demo", "doctor", "warm-up", "bench")

ACROSS_RANKS = ("solve", "fvm", "helmholtz")          # what mpiexec may start

CONVERGED, BAD_INPUT, INTERRUPTED = 0, 2, 130
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
UNSOLVED = "interrupted before there was a solution; nothing was written"


class Parser(argparse.ArgumentParser):
    """A parser that reports a wrong command line as every other error is reported: in one line."""

    def error(self, message):
        self.exit(BAD_INPUT, f"swell: {message} (see {self.prog} --help)\n")

    def exit(self, status=0, message=None):
        super().exit(status, message if _says(status) else None)

    def print_help(self, file=None):
        if _says(CONVERGED):
            print(self.format_help(), end="", file=file)         # argparse would pass over an output that is full


def parser() -> Parser:
    """The parser of the whole command line; each command's module adds its own arguments."""
    top = Parser(prog="swell", description="Solve the large sparse linear systems that discretised PDEs produce.",
                 epilog="Exit status: 0 converged or done, 1 not converged, 2 bad input or environment, "
                        "130 interrupted before there was a solution.")
    top.add_argument("--version", action="store_true", help="print the version and end")
    commands = top.add_subparsers(dest="command", metavar="command")
    for name in COMMANDS:
        module = importlib.import_module(f"swell.cli.{name.replace('-', '_')}")
        command = commands.add_parser(name, help=module.HELP, description=module.__doc__,
                                      formatter_class=argparse.RawDescriptionHelpFormatter)
        command.add_argument("--debug", action="store_true", help="show the traceback of an unexpected error")
        module.add_arguments(command)
        if name in ACROSS_RANKS:
            command.add_argument("--share-gpus", action="store_true", help="started by mpiexec: let ranks take turns "
                                 "on a GPU where there are fewer, to try things out; slow")
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
        for stream in filter(None, (sys.stdout, sys.stderr)):    # a terminal without ‖ shows a question mark, not a
            stream.reconfigure(errors="replace")                 # traceback; a closed stream is None
    try:
        status = _run(argv)
        if sys.stdout is not None:
            sys.stdout.flush()                   # what cannot be written is told now, not lost at the end
        return status
    except BrokenPipeError:                      # the reader of our output, such as head, has seen enough
        _discard_output()
        return CONVERGED
    except OSError as error:
        if error.errno not in FULL:
            raise
        _discard_output()
        return _complain(f"the output cannot be written: {error.strerror}; make room, or send it elsewhere", BAD_INPUT)


def _discard_output():
    """Let what is still to be printed go nowhere: Python would try again at its end, and complain."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _run(argv) -> int:
    """Parse the arguments and run their command; every error becomes a line, except errors of writing the output."""
    try:
        arguments = parser().parse_args(argv)
    except SystemExit as end:                        # after --help, or a wrong command line
        return end.code
    except KeyboardInterrupt:
        return _complain(UNSOLVED, INTERRUPTED)
    if arguments.command is None:
        return _without_command(arguments)
    try:
        if arguments.command not in ACROSS_RANKS and _among_others():
            return _of_all(f"swell {arguments.command} does not run across ranks: start it without mpiexec; those that "
                           f"do are {', '.join(ACROSS_RANKS[:-1])} and {ACROSS_RANKS[-1]}", BAD_INPUT)
        if vars(arguments).get("quiet"):
            quiet()                              # of what is compiled, too
        return arguments.run(arguments)
    except SwellError as error:
        return _complain(error, BAD_INPUT)
    except KeyboardInterrupt:
        return _complain(UNSOLVED, INTERRUPTED)
    except MemoryError as error:
        return _complain(f"out of memory: {str(error) or 'an array did not fit'}; use a machine with more of it, a "
                         "method with short recurrences (cg, bicgstab), or --dtype float32", BAD_INPUT)
    except Exception as error:
        if arguments.debug or _of_output(error):
            raise
        return _complain(f"{type(error).__name__}: {error}; swell did not expect this: run it again with --debug and "
                         "report what it prints", BAD_INPUT)


def _of_output(error) -> bool:
    """True for an error of writing to stdout; errors of files are `InputError`, or name their file."""
    return isinstance(error, BrokenPipeError) or (
        isinstance(error, OSError) and error.errno in FULL and error.filename is None)


def _without_command(arguments) -> int:
    """``swell`` and ``swell --version``."""
    if not arguments.version:
        return _of_all("which command? There are: " + ", ".join(COMMANDS) + " (see swell --help)", BAD_INPUT)
    from swell import __version__
    if _says(CONVERGED):
        print(f"swell {__version__}")
    return CONVERGED


def _among_others() -> bool:
    """Did a launcher start several of this command?"""
    from swell.distributed.launcher import launched
    return launched() > 1


def _says(status) -> bool:
    """Is it this process that says what all that a launcher started find in their command line? The others wait if it
    is wrong: some launchers end all as soon as one has ended with an error."""
    from swell.distributed.launcher import PATIENCE, first
    if status and not first():
        time.sleep(PATIENCE)
    return first()


def _of_all(message, status) -> int:
    """A complaint that every process of a launcher has."""
    return _complain(message, status) if _says(status) else status


def _complain(message, status) -> int:
    """Print one line on stderr."""
    print("swell: " + " ".join(str(message).split()), file=sys.stderr)
    return status
