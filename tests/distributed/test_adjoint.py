"""Aᴴ x = b across ranks, by the setup of A x = b."""
from __future__ import annotations

import numpy as np
import pytest
from tests.distributed.test_all_gpus import prepared
from tests.support.across import system

import swell
from swell import InputError, distributed
from swell.distributed.launcher import launched

NAMED = [{}, {"method": "gmres"}, {"method": "gmres", "precond": "ilu0"}, {"method": "bicgstab", "precond": "schwarz"},
         {"method": "qmr", "precond": "schwarz(kind='additive', inner='ilu0')"}, {"method": "idrs", "precond": "jacobi"},
         {"method": "tfqmr", "precond": "block_jacobi"}, {"method": "gmres", "scaling": "ruiz(symmetric=False)"},
         {"method": "cg", "precond": "ic0"}, {"method": "cg", "precond": "amg"}]          # the last two real only


def both_ways(communicator, A, b, named):
    M = distributed.scatter(communicator, A if communicator.rank == 0 else None)
    s = swell.prepare(M, **named)
    mine = b[M.rows]
    back, columns = s.solve(mine, adjoint=True), s.solve(np.stack([mine, 2 * mine], axis=1), adjoint=True)
    s.update(M)
    after = s.solve(mine, adjoint=True)
    assert s.solve(mine).converged
    return M.gather(back.x), M.gather(columns.x), M.gather(after.x), back


@pytest.mark.parametrize("named", NAMED, ids=str)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_every_part(ranks, named, dtype):
    if dtype == "complex128" and named.get("method") == "cg":
        pytest.skip("the complex system is not Hermitian")
    A, b = system(dtype, symmetric=named.get("method") == "cg")
    for x, columns, after, result in ranks.run(both_ways, A, b, named):
        assert result.converged, result
        for k, found in ((1, x), (1, columns[:, 0]), (2, columns[:, 1]), (1, after)):
            assert np.linalg.norm(k * b - A.conj().T @ found) <= 1.01e-8 * np.linalg.norm(k * b)


@pytest.mark.skipif(launched() > 1, reason="of threads")
def test_all_gpus_of_a_machine():
    A, b = system(symmetric=False)
    s = prepared(A, 2, method="gmres", precond="ilu0")
    s.require_adjoint()
    x = s.solve(b, adjoint=True).x
    assert np.linalg.norm(b - A.T @ x) <= 1.01e-8 * np.linalg.norm(b)
    with pytest.raises(InputError, match="stationary has no form for Aᴴ"):
        prepared(A, 2, method="stationary").require_adjoint()
