"""Compiling is told apart from setup and solve, a line says so, and small systems compile little."""
from __future__ import annotations

import ast
import gc
import os
import pickle
import subprocess
import sys
import threading
import time

import numba
import numpy as np
import pytest
from tests.conftest import ROOT

import swell
from swell.core import compilation
from swell.core.compilation import Stopwatch, count_numba, counted
from swell.core.compiled import Helper, here, parallel
from swell.core.cpu import SERIAL, CpuSpace
from swell.core.kernels import vector
from swell.gallery import poisson


def test_a_stopwatch_tells_compiling_from_the_rest():
    start, watch = time.perf_counter(), Stopwatch()
    with counted():
        time.sleep(0.02)
        with counted():                          # a function that it calls
            time.sleep(0.02)
    time.sleep(0.02)
    assert watch.compiled >= 0.04 and watch.seconds >= 0.02
    assert watch.compiled + watch.seconds <= time.perf_counter() - start         # nothing is counted twice


def test_what_numba_compiles_counts_once():
    count_numba()
    inner = numba.njit(lambda x: x + 1)
    outer = numba.njit(lambda x: inner(x) * 2)
    start, watch = time.perf_counter(), Stopwatch()
    assert outer(1) == 4
    elapsed = time.perf_counter() - start
    assert 0 < watch.compiled <= elapsed
    again = Stopwatch()
    assert outer(2) == 6 and again.compiled == 0


def test_python_cannot_call_a_helper():
    parts = np.ones(3)
    assert isinstance(vector.total, Helper)
    assert numba.njit(lambda parts: vector.total(parts))(parts) == 3
    with pytest.raises(TypeError, match="Python called total, which only kernels can"):
        vector.total(parts)                      # compiled, it has no entry that Python could jump to


def test_results_tell_it():
    A = poisson((8, 8))
    solver = swell.prepare(A)
    solver.solve(np.ones(64))
    result = solver.solve(np.ones(64))
    assert result.timings["compile"] >= 0 and "compiling" not in str(swell.solve(A, np.ones(64)))


# -- the line on stderr ------------------------------------------------------------------------------------------------

@pytest.fixture
def clock(monkeypatch):
    """A clock that tells at once."""
    monkeypatch.setattr(compilation, "LONG", 0.01)
    made = compilation._Clock()
    made.quiet = False
    return made


def compile_for(clock, seconds=0.1):
    """Compile for so long."""
    clock.begin(lambda: "FOLDER")
    time.sleep(seconds)
    clock.end()


def test_a_line_tells_once_what_takes_long(clock, capsys):
    clock.serve("cg with ic0")
    for _ in range(2):
        compile_for(clock)
    clock.serve("gmres")
    threads = [threading.Thread(target=compile_for, args=[clock]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    out, err = capsys.readouterr()
    assert not out and err.splitlines() == [f"swell: compiling kernels for {name} (once; kept in FOLDER)…"
                                            for name in ("cg with ic0", "gmres")]


def test_the_first_line_holds_for_the_first_configuration(clock, capsys):
    compile_for(clock)
    clock.serve("cg")
    compile_for(clock)
    assert capsys.readouterr().err == "swell: compiling kernels (once; kept in FOLDER)…\n"


def test_no_line_if_quiet(clock, capsys):
    clock.quiet = True
    compile_for(clock)
    assert capsys.readouterr() == ("", "")


def test_quiet(monkeypatch):
    monkeypatch.setattr(compilation._clock, "quiet", False)
    swell.quiet()
    assert compilation._clock.quiet
    swell.quiet(False)
    assert not compilation._clock.quiet


@pytest.mark.parametrize("collects", [True, False])
def test_the_collector_rests_while_kernels_are_compiled(collects, clock):
    before = gc.isenabled()
    try:
        gc.enable() if collects else gc.disable()
        clock.begin(lambda: "")
        assert not gc.isenabled()
        clock.end()
        assert gc.isenabled() == collects
    finally:
        gc.enable() if before else gc.disable()


# -- the two variants of a kernel --------------------------------------------------------------------------------------

@parallel
def doubled(x, out):
    out[:] = 2 * x


def test_rows_choose_the_variant_and_threads_do_not(monkeypatch):
    space, chosen, threads = CpuSpace(), [], numba.get_num_threads()
    monkeypatch.setitem(vars(doubled), "serial", lambda *_: chosen.append("serial"))
    monkeypatch.setitem(vars(doubled), "threaded", lambda *_: chosen.append("threaded"))

    def choices():
        chosen.clear()
        for rows in (None, SERIAL - 1, SERIAL):
            with space.active(rows):
                doubled(2.0, np.ones(3))
                with space.active():             # within, without a number: the same
                    doubled(2.0, np.ones(3))
        return chosen
    try:
        for count in {1, threads}:
            numba.set_num_threads(count)
            assert choices() == 2 * ["threaded"] + 2 * ["serial"] + 2 * ["threaded"]
            assert numba.get_num_threads() == count
    finally:
        numba.set_num_threads(threads)


def test_threads_choose_for_themselves():
    seen = []
    with CpuSpace().active(10):
        thread = threading.Thread(target=lambda: seen.append(here.small))
        thread.start()
        thread.join()
        assert here.small and seen == [False]
    assert not here.small


def test_a_copy_of_a_kernel_is_the_kernel():
    assert pickle.loads(pickle.dumps(doubled)) is doubled


COMPLEX = """
import numpy as np
from swell.core.compilation import count_numba
from swell.core.compiled import njit
count_numba()
@njit(fastmath={"contract"})
def first(a, b):
    return a * b
for kind, digits in ((np.complex128, 30), (np.complex64, 13)):
    number = kind(complex(1 + 2.0**-digits, 1 + 2.0**-digits))
    assert first(number, number).real == 0, first(number, number)      # a fused product has the rounding error of re²
"""


def test_complex_products_are_not_fused_whatever_is_compiled_first():
    subprocess.run([sys.executable, "-c", COMPLEX], cwd=ROOT, check=True)


FIRST = """
import numpy as np, swell
from swell.core.compilation import compilations
from swell.core.compiled import ParallelKernel
for method, precond in (("cg", "ic0"), ("gmres", "ilu0"), ("bicgstab", "ilu0")):
    before = compilations()
    assert swell.solve(swell.gallery.poisson2d(20), np.ones(400), method=method, precond=precond).converged
    print(compilations() - before)
import sys
kernels = [k for m in list(sys.modules.values()) if m.__name__.startswith("swell.") and ".kernels." in m.__name__
           for k in vars(m).values() if isinstance(k, ParallelKernel)]
print(sum(len(k.threaded.signatures) for k in kernels))
"""


@pytest.mark.slow
def test_a_fresh_installation_compiles_few_functions_and_says_so(tmp_path):
    """Bounds on what one small solve after the other compiles, helpers of Numba included, and nothing for threads."""
    environment = {name: value for name, value in os.environ.items() if name != "SWELL_QUIET"}
    runs = [subprocess.run([sys.executable, "-c", FIRST], capture_output=True, text=True, cwd=ROOT, check=True,
                           env={**environment, "NUMBA_CACHE_DIR": str(tmp_path)}) for _ in range(2)]
    first, second, third, threaded = map(int, runs[0].stdout.split())
    assert first <= 72 and second <= 44 and third <= 16 and threaded == 0, runs[0].stdout
    assert runs[0].stderr.startswith("swell: compiling kernels") and str(tmp_path) in runs[0].stderr
    assert runs[1].stdout.split()[:3] == ["0", "0", "0"] and not runs[1].stderr


def kernels_of(path):
    """(name, node, flags, helps) of each function that Numba compiles apart, and the functions that the file imports.

    ``flags``: the text of ``fastmath``, "False" for a helper's default, or None if it is not stated. ``helps``: True
    for a helper."""
    tree = ast.parse(path.read_text())
    imported = {alias.asname or alias.name: (node.module, alias.name) for node in ast.walk(tree)
                if isinstance(node, ast.ImportFrom) for alias in node.names}
    found = []
    for node in tree.body:
        for decorator in node.decorator_list if isinstance(node, ast.FunctionDef) else ():
            called, *words = (decorator.func, *decorator.keywords) if isinstance(decorator, ast.Call) else (decorator,)
            words = {word.arg: ast.unparse(word.value) for word in words}
            if ast.unparse(called) in ("njit", "parallel", "helper") and words.get("inline") != "'always'":
                flags = words.get("fastmath", None if called.id == "njit" else "False")
                found.append((node.name, node, flags, called.id == "helper"))
    return found, imported


def calls_of(nodes, names):
    """Return the (module, name) of each function that is called by name under ``nodes``."""
    return {names.get(call.func.id) for node in nodes for call in ast.walk(node)
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name)}


def test_no_function_takes_the_flags_of_its_first_caller():
    """Numba gives a function without ``fastmath`` the flags of the kernel that is compiled first, and caches it so.

    Nor does Python call a helper, which only kernels can."""
    kernels, python = {}, set()
    for path in (ROOT / "swell").rglob("kernels/*.py"):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        own, imported = kernels_of(path)
        names = {**imported, **{name: (module, name) for name, _, _, _ in own}}
        for name, node, flags, helps in own:
            kernels[module, name] = flags, calls_of([node], names), helps
        plain = [node for node in ast.parse(path.read_text()).body if not getattr(node, "decorator_list", True)]
        python |= calls_of(plain, names)
    assert not [called for called in python if kernels.get(called, (0, 0, False))[2]], "Python calls these helpers"
    kernels = {name: found[:2] for name, found in kernels.items()}
    assert sum(flags not in (None, "False") for flags, _ in kernels.values()) > 20
    wrong = {called for flags, calls in kernels.values() if flags not in (None, "False")
             for called in calls if kernels.get(called, "stated")[0] is None}
    assert not wrong, f"helpers, or functions that need fastmath=False: {sorted(wrong)}"
