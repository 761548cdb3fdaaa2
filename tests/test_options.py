"""The options of a solve: one record, its names in every signature, and errors for names that do not exist."""
from __future__ import annotations

import inspect
import typing
from dataclasses import fields

import numpy as np
import pytest

import swell
from swell.core.registry import resolve
from swell.core.settings import describe
from swell.options import Accepted, Options, OptionsDict
from swell.pde import fvm, helmholtz

A, b = swell.gallery.poisson2d(8), np.ones(64)
NAMES = [f.name for f in fields(Options)]
DOORS = {
    swell.solve: (), swell.prepare: (),
    swell.solve_batch: ("M", "scaling", "ordering", "format", "nullspace", "smoother", "block", "stopping"),
    fvm.Poisson.solve: ("nullspace", "block", "atol", "stopping"),
    fvm.ScalarTransport.advance: ("nullspace", "block", "atol", "stopping"),
    helmholtz.Sweep: ("M", "block"), helmholtz.Helmholtz.solve: ("M", "block"),
    helmholtz.Helmholtz.response: ("M", "block"), helmholtz.Helmholtz.modes: ("M", "block", "atol", "stopping", "dtype"),
}


def test_type_checkers_know_the_same_names():
    hints = typing.get_type_hints(OptionsDict)
    assert list(hints) == NAMES


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__qualname__)
def test_a_signature_shows_all_names(door):
    parameters = inspect.signature(door).parameters.values()
    assert [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.name in NAMES] == [
        name for name in NAMES if name not in DOORS[door]]
    assert not any(p.kind is p.VAR_KEYWORD for p in parameters)


def test_the_documentation_stands_in_every_call_that_says_so():
    for door in (swell.solve, swell.prepare):
        for name in NAMES:
            assert name in door.__doc__, name
        assert "See `swell.Options`" not in door.__doc__


@pytest.mark.parametrize("call", [lambda **o: swell.solve(A, b, **o), lambda **o: swell.prepare(A, **o),
                                  lambda **o: swell.solve_batch(A, A.data[None], b[None], **o),
                                  lambda **o: fvm.Poisson(fvm.box((4, 4)), {"*": fvm.Dirichlet(0.0)}).solve(**o)])
def test_an_unknown_name_is_refused_with_the_nearest(call):
    with pytest.raises(swell.InputError, match=r"metod='cg': no such option; did you mean method\?"):
        call(metod="cg")
    with pytest.raises(TypeError, match="colour='red': no such option; expected method, precond, "):
        call(colour="red")


def test_an_option_without_effect_is_no_option():
    with pytest.raises(swell.InputError, match="stopping"):
        swell.solve_batch(A, A.data[None], b[None], stopping=swell.Stopping(rtol=1e-3))


def test_options_pass_on():
    options = Options(method="cg", precond="jacobi", rtol=1e-4)
    assert options.keywords() == {"method": "cg", "precond": "jacobi", "rtol": 1e-4}
    result = swell.solve(A, b, **options.keywords())
    assert (result.method, result.precond) == ("cg", "jacobi") and result.converged
    assert options.criterion == swell.Stopping(rtol=1e-4)


def test_a_stopping_replaces_default_tolerances():
    taken = Accepted(rtol=1e-3).read({"stopping": swell.Stopping(rtol=1e-6)})
    assert taken.rtol is None and taken.criterion.rtol == 1e-6


def test_both_M_and_precond():
    with pytest.raises(swell.InputError, match="both M and precond"):
        swell.solve(A, b, M=lambda r: r, precond="jacobi")


def test_helmholtz_takes_all_options():
    """Front ends pass on every option, so what `solve` can do, they can."""
    K, M = swell.gallery.poisson2d(8), np.eye(64) * (1 - 0.05j)
    sweep = helmholtz.Sweep(K, M, np.eye(64), method="gmres(restart=50)", precond="ilu0", atol=1e-3)
    assert sweep.solve(0.3, b).converged
    with pytest.raises(swell.InputError, match="stopping was given beside rtol"):
        helmholtz.Sweep(K, M, np.eye(64), rtol=1e-3, stopping=swell.Stopping()).solve(0.3, b)


@pytest.mark.parametrize("text, field, former", [
    ("format csr", "lanes", 0), ("format sell", "height", 0), ("format sell", "task", 0), ("format bsr", "block", 0),
    ("format block_sell", "height", 0), ("precond direct", "ordering", "auto"), ("precond direct", "package", "auto"),
    ("precond direct", "largest", 0), ("precond deflation", "steps", 0), ("precond schwarz", "domains", 0),
    ("precond bddc", "domains", 0), ("precond block_jacobi", "block", 0), ("triangular exact", "schedule", "auto"),
    ("precond amg", "strength", "auto"), ("precond amg", "coarsest", 0), ("precond air", "coarsest", 0),
    ("precond smoothed_aggregation", "block", 0)])
def test_swells_choice_is_none(text, field, former):
    """The former words for it, 0 and "auto", still mean it, and a warning says so."""
    kind, name = text.split()
    with pytest.warns(FutureWarning, match=rf"\({field}={former!r}\) is now .*\({field}=None\)"):
        setting = resolve(kind, f"{name}({field}={former!r})")
    assert describe(setting) == describe(resolve(kind, name)) and getattr(setting, field) is None
