"""What one rank prints is true of all: settings that ranks find in their own rows are agreed, or said as ranges or by rank."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.support.across import system
from tests.support.cases import rng

import swell
from swell import distributed, gallery
from swell.core.registry import names
from swell.distributed.partition import consecutive
from swell.distributed.words import merged, merged_notes


def blocks(n):
    """A symmetric, definite matrix of n × n dense blocks of 3."""
    return sp.csr_array(sp.kron(gallery.poisson2d(n), np.full((3, 3), 0.2) + np.eye(3)))


def uneven():
    """Dense blocks in the first half, three entries a row in the second: what ranks find in their rows differs."""
    first = blocks(10)
    second = sp.csr_array(sp.diags_array([np.full(299, -1.0), np.full(300, 2.05), np.full(299, -1.0)], offsets=[-1, 0, 1]))
    A = sp.block_diag([first, second]).tolil()
    A[299, 300] = A[300, 299] = -0.1
    return sp.csr_array(A)


def said(communicator, A, settings, cut=False, **parts):
    """``cut``: the ranks bring rows that begin anywhere."""
    if cut:
        first, stop = consecutive(A.shape[0], communicator.size)[communicator.rank:communicator.rank + 2]
        M = distributed.from_rows(communicator, A[first:stop])
    else:
        M = distributed.scatter(communicator, A if communicator.rank == 0 else None, **parts)
    b = rng().standard_normal(A.shape[0])
    result = swell.solve(M, b[M.rows], **{"method": "gmres", "rtol": 1e-6, "maxiter": 5, **settings})
    return result.configuration, result.notes, result.format


@pytest.mark.parametrize("precond", ["ilu(block=None)", "schwarz(inner='ilu(block=None)')",
                                     "deflation(vectors=2, inner='ilu(block=None)')"])
def test_a_detected_size_of_blocks_is_that_of_all_ranks(precond):
    """Of five ranks the last three have 29 or 28 rows, which no block of 3 divides."""
    found = distributed.run(5, said, blocks(7), {"precond": precond}, True)
    assert all(one == found[0] for one in found)
    assert not any("blocks of 3" in line for line in found[0][0])
    assert any("inside blocks of 3, so that all ranks take blocks of 1" in note and "block=3" in note for note in found[0][1])


@pytest.mark.parametrize("given", [{}, {"block": 3}])
def test_blocks_that_the_partition_keeps_together(given):
    by_blocks = {"precond": "ilu(block=None)"}
    for configuration, notes, _ in distributed.run(5, lambda c: said(c, blocks(7), by_blocks, **given)):
        assert any("blocks of 3" in line for line in configuration) and not any("all ranks take" in note for note in notes)


@pytest.mark.parametrize("precond", names("precond"))
def test_all_ranks_say_the_same(precond):
    """Whatever each has found in its rows."""
    def of(communicator):
        try:
            return said(communicator, uneven(), {"precond": precond})
        except swell.InputError as error:        # not for this matrix, or not across ranks
            return str(error)

    found = distributed.run(3, of)
    assert all(one == found[0] for one in found)


def test_formats_that_differ():
    """Each rank takes the format for its rows, and the result names all."""
    for configuration, _, format in distributed.run(2, said, uneven(), {"method": "cg", "precond": None}):
        assert format == "on rank 0: bsr; on rank 1: sell"
        assert any(line.strip().startswith("matrix: on rank 0: bsr, block 3") for line in configuration)


def test_a_shift_of_another_rank_is_told():
    """Rank 0's rows need none."""
    A, _ = system()
    A = sp.lil_array(A)
    A[430, 430] = 1e-3
    A = sp.csr_array(A)
    for _, notes, _ in distributed.run(2, said, A, {"precond": "ic0", "method": "gmres"}):
        assert any(note.startswith("on rank 1: IC: the pivot of row") for note in notes)


@pytest.mark.parametrize("texts, text", [
    (["fill 1.5, 20 rows"] * 2, "fill 1.5, 20 rows"), (["ilu0, fill 1.50", "ilu0, fill 1.25"], "ilu0, fill 1.25 to 1.50"),
    (["csr", "sell, 16-bit", "sell, 16-bit", "csr"], "on ranks 0, 3: csr; on ranks 1 to 2: sell, 16-bit"),
    (["shifted by 1e-3", "shifted by 0.1"], "shifted by 1e-3 to 0.1"), ([""] * 3, "")])
def test_texts_of_all_ranks_as_one(texts, text):
    assert merged(texts) == text


def test_notes_of_all_ranks():
    assert merged_notes([["a", "row 3"], ["a"], ["a", "row 7"]]) == ["a", "on ranks 0, 2: row 3 to 7"]
    assert merged_notes([[], []]) == [] and merged_notes([["b"], []]) == ["on rank 0: b"]
