"""The command line ``swell <command>``: one module for each command.

Exit status: 0 converged (or done), 1 not converged, 2 bad input or environment, 3 exact to rounding and the tolerance
asks for more, 130 interrupted before there was a solution. Errors are one line on stderr. Nothing heavy is imported
before a command runs.
"""
from __future__ import annotations

import argparse
import difflib
import errno
import importlib
import os
import sys
import time

from swell.cli.output import for_shell
from swell.core.compilation import quiet
from swell.core.errors import SwellError

COMMANDS = ("solve", "info", "fvm", "flow", "decompose", "helmholtz", "demo", "doctor", "warm-up", "bench",
            "reproduce")

ACROSS_RANKS = ("solve", "fvm", "flow", "helmholtz")          # commands that mpiexec may start

CONVERGED, BAD_INPUT, INTERRUPTED = 0, 2, 130
SYNONYMS = {"o": "out", "b": "rhs", "pc": "precond", "solver": "method", "tolerance": "rtol", "iterations": "maxiter"}
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
UNSOLVED = "interrupted before there was a solution; nothing was written"


class Parser(argparse.ArgumentParser):
    """A parser that reports a wrong command line in one line, as swell reports all errors."""

    def parse(self, argv) -> argparse.Namespace:
        """Parse a whole command line. An unknown option is reported with the nearest one, and with the help of the
        command that it was given to."""
        arguments, unknown = self.parse_known_args(argv)
        if not unknown:
            return arguments
        commands = next(action for action in self._actions if action.dest == "command").choices
        parser = commands.get(arguments.command, self)
        word = next((word for word in unknown if word.startswith("-")), unknown[0])
        offered = [name.lstrip("-") for action in parser._actions for name in action.option_strings]
        parser.error(f"unrecognized arguments: {' '.join(unknown)}{_meant(word, offered)}")

    def error(self, message):
        self.exit(BAD_INPUT, f"swell: {message} (see {self.prog} --help)\n")

    def exit(self, status=0, message=None):
        super().exit(status, message if _reports(status) else None)

    def print_help(self, file=None):
        if _reports(CONVERGED):
            print(self.format_help(), end="", file=file)         # argparse ignores errors of writing, as on a full disk


def parser() -> Parser:
    """Return the parser of the whole command line; each command's module adds its own arguments."""
    top = Parser(prog="swell", description="Solve the large sparse linear systems that discretised PDEs produce.",
                 epilog="Exit status: 0 converged or done, 1 not converged, 2 bad input or environment, 3 exact "
                        "to rounding where the tolerance asks for more, 130 interrupted before there was a solution.")
    top.add_argument("--version", action="store_true", help="print the version and end")
    commands = top.add_subparsers(dest="command", metavar="command")
    for name in COMMANDS:
        module = importlib.import_module(f"swell.cli.{name.replace('-', '_')}")
        command = commands.add_parser(name, help=module.HELP, description=module.__doc__,
                                      formatter_class=argparse.RawDescriptionHelpFormatter)
        command.add_argument("--debug", action="store_true", help="show the traceback of an unexpected error")
        module.add_arguments(command)
        if name in ACROSS_RANKS:
            command.add_argument("--share-gpus", action="store_true", help="under mpiexec: let ranks take turns on a "
                                 "GPU if there are fewer GPUs than ranks; slow, for tests")
        command.set_defaults(run=module.run)
    return top


def main(argv=None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : list of str, optional
        The arguments; default: the arguments of the process.

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
            sys.stdout.flush()                   # raises errors of writing now; at exit they would be lost
        return status
    except BrokenPipeError:                      # the reader of the output, such as head, has ended
        _discard_output()
        return CONVERGED
    except OSError as error:
        if error.errno not in FULL:
            raise
        _discard_output()
        return _complain(f"the output cannot be written: {error.strerror}; make room, or send it elsewhere", BAD_INPUT)


def _discard_output():
    """Redirect stdout to the null device: at exit Python would try again to write the rest, and complain."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _run(argv) -> int:
    """Parse the arguments ``argv``, run the command, and return the exit status. Errors become one line on stderr,
    except errors of writing to stdout, which are raised."""
    try:
        arguments = parser().parse(argv)
    except SystemExit as end:                        # after --help, or a wrong command line
        return end.code
    except KeyboardInterrupt:
        return _complain(UNSOLVED, INTERRUPTED)
    if arguments.command is None:
        return _without_command(arguments)
    try:
        if arguments.command not in ACROSS_RANKS and _launched_with_others():
            return _complain_once(f"swell {arguments.command} does not run across ranks: start it without mpiexec; "
                                  f"those that do are {', '.join(ACROSS_RANKS[:-1])} and {ACROSS_RANKS[-1]}", BAD_INPUT)
        if vars(arguments).get("quiet"):
            quiet()                              # also of messages on compilation
        if arguments.command in ACROSS_RANKS:
            from swell.cli.ranks import run_on_all
            return run_on_all(arguments, arguments.run)
        return arguments.run(arguments)
    except SwellError as error:
        return _complain(for_shell(error, vars(arguments)), BAD_INPUT)
    except KeyboardInterrupt:
        return _complain(UNSOLVED, INTERRUPTED)
    except MemoryError as error:
        return _complain(f"out of memory: {str(error) or 'an array did not fit'}; {_smaller(arguments)}", BAD_INPUT)
    except Exception as error:
        if arguments.debug or _writing_output(error):
            raise
        return _complain(f"{type(error).__name__}: {error}; swell did not expect this: run it again with --debug and "
                         "report the output", BAD_INPUT)


def _meant(word, offered) -> str:
    """Return "; did you mean --…?" for an unknown word of the command line, or an empty text. ``offered``: names of
    the command's options."""
    if not word.startswith("-"):
        return f"; is it --rhs {word}?" if "rhs" in offered else ""
    name = word.lstrip("-").split("=")[0]
    near = [SYNONYMS[name]] if SYNONYMS.get(name) in offered else difflib.get_close_matches(name, offered, n=1)
    return f"; did you mean --{near[0]}?" if near else ""


def _smaller(arguments) -> str:
    """Return advice on how to run a command in less memory, with the options that it has."""
    has = vars(arguments)
    ways = ["--dtype float32"] if has.get("dtype") is None and "dtype" in has else []
    ways += ["a method with short recurrences (--method cg or bicgstab)"] if "method" in has else []
    ways += ["fewer --cells"] if "cells" in has else ["--small"] if "small" in has else []
    ways += [f"several machines (mpiexec -n 4 swell {arguments.command} ...)"] * (arguments.command in ACROSS_RANKS)
    return "use " + "".join(f"{way}, " for way in ways) + "or " * bool(ways) + "a machine with more memory"


def _writing_output(error) -> bool:
    """Return True for an error of writing to stdout. Errors of other files are an `InputError`, or name their file."""
    return isinstance(error, BrokenPipeError) or (
        isinstance(error, OSError) and error.errno in FULL and error.filename is None)


def _without_command(arguments) -> int:
    """Run ``swell`` or ``swell --version``, which name no command; return the exit status."""
    if not arguments.version:
        return _complain_once("which command? There are: " + ", ".join(COMMANDS) + " (see swell --help)", BAD_INPUT)
    from swell import __version__
    if _reports(CONVERGED):
        print(f"swell {__version__}")
    return CONVERGED


def _launched_with_others() -> bool:
    """True if a launcher started several processes of this command."""
    from swell.distributed.launcher import launched
    return launched() > 1


def _reports(status) -> bool:
    """Return True if this process reports for all processes that a launcher started; ``status``: the exit status to
    report.

    With an error status the others wait first: some launchers end all processes when one has ended with an error.
    """
    from swell.distributed.launcher import GRACE_SECONDS, first
    if status and not first():
        time.sleep(GRACE_SECONDS)
    return first()


def _complain_once(message, status) -> int:
    """Print an error that every process of a launcher has, on one of them only; return ``status``, the exit status."""
    return _complain(message, status) if _reports(status) else status


def _complain(message, status) -> int:
    """Print ``message`` as one line on stderr; return ``status``."""
    print("swell: " + " ".join(str(message).split()), file=sys.stderr)
    return status
