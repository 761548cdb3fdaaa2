"""BDDC across ranks with a GPU each, by threads of one process: the operator and the iterations of one CPU."""
from __future__ import annotations

import numpy as np
import pytest
from tests.support.across import on_gpus

import swell
from swell import distributed, gallery
from swell.pde.poisson_cube import PoissonCube

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("cube, settings", [(PoissonCube(4, 3), {}), (PoissonCube(3, 4, levels=3), {}),
                                            (PoissonCube(4, 3, coefficient="channels"), {"adaptive": 10})])
def test_it_is_that_of_one_device(count, cube, settings):
    settings = {"interior": "blocks", "levels": cube.levels, **settings}
    whole, b = cube.assemble(), np.random.default_rng(1).standard_normal(cube.n)
    z = np.empty(cube.n)
    bddc = swell.BDDC(subdomains=whole.subdomains, **settings)
    bddc.build(whole.A).apply(b, z)
    one_rank = swell.solve(whole.A, b, method="cg", precond=bddc)

    def on_rank(communicator):
        parts = cube.rank_subdomains(communicator.rank, communicator.size)
        A, S = distributed.from_subdomains(communicator, parts, device="cuda", groups=cube.groups())
        bddc, space = swell.BDDC(subdomains=S, **settings), A.space
        with space.active():
            mine = space.from_host(b[A.rows])
            bddc.build(A).apply(mine, mine)
        result = swell.solve(A, b[A.rows], method="cg", precond=bddc)
        return A.gather(mine), A.gather(result.x), result

    for mine, x, result in on_gpus(count, on_rank):
        assert abs(mine - z).max() < 1e-10 * abs(z).max()
        assert result.converged and abs(result.iterations - one_rank.iterations) <= 1
        assert np.linalg.norm(b - whole.A.to_scipy() @ x) <= 1e-8 * np.linalg.norm(b)


def test_an_assembled_matrix(count):
    A = gallery.poisson3d(20)
    b = np.random.default_rng(1).standard_normal(8000)

    def on_rank(communicator):
        M = distributed.scatter(communicator, A if communicator.rank == 0 else None, device="cuda")
        bddc = swell.BDDC(domains=8, partition="rows", interior="blocks")
        result = swell.solve(M, b[M.rows], method="cg", precond=bddc)
        return M.gather(result.x), result

    for x, result in on_gpus(count, on_rank):
        assert result.converged and result.iterations < 30
        assert np.linalg.norm(b - A @ x) <= 1e-8 * np.linalg.norm(b)
