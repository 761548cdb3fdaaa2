"""The registry: one name for an algorithm, whatever it is used for."""
import dataclasses
import gc
import re
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import swell
from swell.core.registry import RENAMED, TABLE, load, name_of, names, resolve
from swell.core.settings import describe, parse


def test_one_name_for_one_class():
    """A class that is registered for two kinds has the same name in both, so a printed name is always taken."""
    called = {}
    for rows in TABLE.values():
        for name, row in rows.items():
            called.setdefault(row, set()).add(name)
    assert [found for found in called.values() if len(found) > 1] == []


def test_every_smoother_is_a_preconditioner_by_its_printed_name():
    A, b = swell.gallery.poisson2d(12), np.ones(144)
    for smoother in names("smoother"):
        r = swell.solve(A, b, method="fgmres", precond=load("smoother", smoother)())
        assert r.converged and resolve("precond", r.precond) is not None, smoother


@pytest.mark.parametrize("kind, former", [(kind, former) for kind, rows in RENAMED.items() for former in rows])
def test_former_names_still_work(kind, former):
    now = RENAMED[kind][former]
    with pytest.warns(FutureWarning) as said:
        settings = resolve(kind, former)
    assert [str(warning.message) for warning in said] == [f"the {kind} {former!r} is called {now!r} now"]
    assert settings == resolve(kind, now) and name_of(kind, type(settings)) == now.partition("(")[0]
    assert former not in names(kind)


MEANT = {               # a former name with settings, and what it has always meant
    "iluk(level=2)": "ilu(level=2)", "ilut(fill=5)": "ilu(drop=0.001, fill=5)",
    "ilut(drop=0.1)": "ilu(drop=0.1)", "block_ilu0(block=3)": "ilu(block=3)",
    "ick(shift=0.5)": "ic(level=1, shift=0.5)",
    "block_iluk(pivot=error)": "ilu(level=1, block=None, pivot='error')",
}


@pytest.mark.parametrize("former", MEANT)
def test_former_names_keep_their_defaults_and_say_the_new_spelling(former):
    now = MEANT[former]
    with pytest.warns(FutureWarning) as said:
        assert resolve("precond", former) == resolve("precond", now)
    assert [str(warning.message).partition(" is called ")[2] for warning in said] == [f'{now!r} now']


def test_short_names_of_the_literature_are_silent():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for short, name in (("ilu0", "ilu"), ("ILU0(block=3)", "ilu(block=3)"),
                            ("ic0(ordering=rcm)", "ic(ordering=rcm)")):
            assert resolve("precond", short) == resolve("precond", name)
        assert swell.ILU0 is swell.ILU and swell.IC0 is swell.IC
        for wrong, remedy in (("ilu0(level=1)", "ilu(level=1)"), ("ilu0(drop=0.1)", "ilu(drop=0.1)"),
                              ("ic0(level=2)", "ic(level=2)")):
            with pytest.raises(swell.InputError, match=f"write {re.escape(remedy)}$"):
                resolve("precond", wrong)


def test_former_classes_still_work():
    now = {"ICK": swell.IC(level=1), "ILUK": swell.ILU(level=1), "ILUT": swell.ILU(drop=0.001),
           "BlockILU0": swell.ILU(block=None), "BlockILUK": swell.ILU(level=1, block=None),
           "BlockILUT": swell.ILU(drop=0.001, block=None)}
    for name, settings in now.items():
        with pytest.warns(FutureWarning, match=re.escape(f"swell.{name} is called swell.{describe(settings)} now")):
            former = getattr(swell, name)
        assert former() == settings == resolve("precond", former) and name not in swell.__all__
        assert former(shift=0.5) == dataclasses.replace(settings, shift=0.5)
    with pytest.warns(FutureWarning, match=r"ILU\(block=0\) is now ILU\(block=None\)"):
        assert resolve("precond", "ilu0(block=0)") == swell.ILU(block=None)


def test_threads_read_settings_side_by_side():
    """Python's garbage collection lets another thread run in the middle of a syntax tree; this one does so often."""
    def pause(phase, info):
        time.sleep(0)

    def read(depth):
        return read(depth - 1) if depth else [parse("schwarz(kind='additive', inner='ic0')") for _ in range(2000)]

    thresholds, interval = gc.get_threshold(), sys.getswitchinterval()
    gc.callbacks.append(pause)
    gc.set_threshold(50, 1000, 1000)
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(2) as threads:
            for found in threads.map(read, (0, 7)):
                assert all(settings == ("schwarz", {"kind": "additive", "inner": "ic0"}) for settings in found)
    finally:
        gc.callbacks.remove(pause)
        gc.set_threshold(*thresholds)
        sys.setswitchinterval(interval)
