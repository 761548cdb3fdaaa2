"""The registry: one name for an algorithm, whatever it is used for."""
import numpy as np
import pytest

import swell
from swell.core.registry import RENAMED, TABLE, load, name_of, names, resolve


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
    with pytest.warns(FutureWarning, match=f"the {kind} '{former}' is called '{now}' now"):
        settings = resolve(kind, f"{former}(sweeps=3)")
    assert settings == resolve(kind, f"{now}(sweeps=3)") and name_of(kind, type(settings)) == now
    assert former not in names(kind)
