"""What only Linux has must not stop the CPU half elsewhere. This imitates such a system; it is no test on one."""
from __future__ import annotations

import ast
import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

import swell
from swell.core import memory
from swell.core.errors import OutOfMemory
from swell.core.devices import make_space
from swell.io import files

PACKAGE = pathlib.Path(swell.__file__).parent
# Of os; Windows or macOS lacks them.
ABSENT = {"sysconf", "sched_getaffinity", "sched_setaffinity", "register_at_fork", "fork", "forkpty", "getuid",
          "geteuid", "getgid", "uname", "getloadavg", "killpg", "setsid", "mkfifo", "wait4", "statvfs", "posix_fadvise",
          "O_DIRECT", "memfd_create", "sendfile", "nice", "pipe2", "chown", "getpgid"}
MODULES = {"fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog", "posix", "crypt", "spwd"}
GUARDED = {("core/memory.py", "sysconf"), ("core/ahead.py", "sched_getaffinity"),
           ("core/forking.py", "register_at_fork"), ("solving/choice_cost.py", "getloadavg")}


def test_what_other_systems_lack_is_named_where_it_is_guarded():
    named, imported = set(), set()
    for path in PACKAGE.rglob("*.py"):
        where = path.relative_to(PACKAGE).as_posix()
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os":
                named |= {(where, node.attr)} if node.attr in ABSENT else set()
            elif isinstance(node, ast.Import):
                imported |= {(where, name.name) for name in node.names if name.name in MODULES}
            elif isinstance(node, ast.ImportFrom) and node.module in MODULES:
                imported.add((where, node.module))
    assert named == GUARDED and not imported


def test_the_cpu_half_runs_without_them(tmp_path):
    script = f"""
        import errno, io, os, signal, sys
        import numpy as np, scipy.io, scipy.sparse, scipy.sparse.linalg                  # they have their own guards
        for name in {sorted(ABSENT)!r}:
            if hasattr(os, name):
                delattr(os, name)
        for name in {sorted(MODULES)!r}:
            sys.modules[name] = None                                 # importing it fails
        for name in ("SIGHUP", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGKILL", "SIGPIPE"):
            delattr(signal, name)
        def without_proc(real):
            def call(path, *arguments, **named):
                if str(path).startswith(("/proc", "/sys", "/dev")):
                    raise FileNotFoundError(errno.ENOENT, "there is none", path)
                return real(path, *arguments, **named)
            return call
        os.stat, io.open = without_proc(os.stat), without_proc(io.open)

        import swell
        from swell import cli, gallery
        A = gallery.poisson2d(20)
        b = np.ones(400)
        for named in ({{}}, {{"method": "direct"}}, {{"method": "gmres", "precond": "ilu(drop=0.001)"}},
                      {{"method": "cg", "format": "tuned"}}):
            assert swell.solve(A, b, **named).converged, named
        from swell.distributed import mpi
        mpi.share_cores(1)
        scipy.io.mmwrite("A.mtx", A)
        sys.exit(cli.main(["solve", "A.mtx"]))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], cwd=tmp_path, capture_output=True, text=True,
                          env={name: value for name, value in os.environ.items() if name != "SWELL_NUM_THREADS"})
    assert done.returncode == 0, done.stdout + done.stderr


def test_memory_that_the_system_does_not_tell_refuses_nothing(monkeypatch):
    monkeypatch.delattr(os, "sysconf")
    monkeypatch.setattr(memory, "MEMINFO", pathlib.Path("/nowhere/meminfo"))
    space = make_space("cpu")
    assert space.memory() == (sys.maxsize, sys.maxsize)
    space.check_fits(2**50, "a matrix", "take a smaller one")
    files.check_memory("A.mtx", 2**50, "a matrix")


def test_where_only_the_whole_memory_is_known_that_is_the_limit(monkeypatch):
    """As on macOS."""
    def sysconf(name):
        if name == "SC_AVPHYS_PAGES":
            raise ValueError("unrecognized configuration name")
        return {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 1000}[name]

    monkeypatch.setattr(os, "sysconf", sysconf)
    monkeypatch.setattr(memory, "MEMINFO", pathlib.Path("/nowhere/meminfo"))
    space = make_space("cpu")
    assert space.memory() == (4096_000, 4096_000)
    with pytest.raises(OutOfMemory, match="take a smaller one"):
        space.check_fits(4096_001, "a matrix", "take a smaller one")


def test_memory_of_linux(tmp_path, monkeypatch):
    meminfo = tmp_path / "meminfo"
    monkeypatch.setattr(memory, "MEMINFO", meminfo)
    meminfo.write_text("MemTotal:  9000 kB\nMemFree:  10 kB\nMemAvailable:  700 kB\n")
    assert make_space("cpu").memory()[0] == 700 * 1024
    meminfo.write_text("MemTotal:  9000 kB\nMemFree:  10 kB\n")                     # before Linux 3.14
    assert 0 < make_space("cpu").memory()[0] <= make_space("cpu").memory()[1]
