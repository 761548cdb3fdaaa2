"""Operations of BDDC's setup for a subdomain, in layers and by nested dissection, as a Markdown table.

    SWELL_DATA=FOLDER python benchmarks/bddc_operations.py

The subdomains of bddc_beside_petsc.py; of each case the one with the most interior dofs. Multiplications and additions
with the symmetry of real matrices: s rows with b below and a interface dofs take s³/3 + s² b + s b² for the factors,
s² a + 2 s b a + s a² for the Schur complement. n: interface dofs. Entries: of the interior's factors, as they are kept.
"""
from __future__ import annotations

import numpy as np
from bddc_beside_petsc import CASES, case_of

import swell
from swell.core.devices import make_space
from swell.formats.csr import CSRMatrix
from swell.preconditioners.bddc.dissection import dissect, structure
from swell.preconditioners.bddc.interface import Interface
from swell.preconditioners.bddc.layers import distances, layers
from swell.preconditioners.bddc.problems import _inside, _sides, eliminations
from swell.preconditioners.bddc.renumbering import numbers, pattern, renumbered
from swell.preconditioners.bddc.unknowns import Unknowns

THIN = 90               # the limit of layers on a CPU before they were fronts


def counts(one, order, ends, whole):
    """(fronts, operations of the factors, of the Schur complement, entries) for fronts of the interior of a subdomain;
    ``whole``: each front's rows below are all of the next one."""
    space, n, A = one.A.space, order.size, one.A
    place = numbers(space, np.concatenate((one.inner[order], one.own)), A.shape[0])
    below, _ = structure(renumbered(A, place, place, A.shape), ends)
    s, a = np.diff(ends).astype(float), np.array([float((rows >= n).sum()) for rows in below])
    b = np.append(s[1:], 0) if whole else np.array([float((rows < n).sum()) for rows in below])
    factors, schur = s**3 / 3 + s**2 * b + s * b**2, s**2 * a + 2 * s * b * a + s * a**2
    return s.size, factors.sum(), schur.sum(), (2 * s**2 if whole else s * (s + 2 * b)).sum()


def main():
    print("| case | interior, n | layers: factors, Schur | fronts: factors, Schur | LU and inverse 8/3 n³, Cholesky n³ | "
          "entries an application reads |\n" + "|---" * 6 + "|")
    for name in CASES:
        parts, modes, points = case_of(name)
        S = swell.Subdomains(parts)
        A = CSRMatrix.from_scipy(S.assemble(), make_space("cpu"))
        subdomains = S.present()
        interface = Interface(A, subdomains, Unknowns.of(A, swell.BDDC(
            subdomains=S, near_nullspace=modes if modes.size else "constants")))
        one = max((one for interior in eliminations(A.space, subdomains, interface) for one in interior.subdomains),
                  key=lambda one: one.inner.size)
        A_II = _inside(one)
        graph, (sides, coupling) = pattern(A_II.to_scipy()), _sides(one, interface)
        old = counts(one, *layers(graph, sides, coupling, THIN), True)
        new = counts(one, *dissect(graph, [distances(graph, side) for side in ([], *sides)]), False)
        n = float(one.own.size)
        print(f"| {name} | {one.inner.size}, {one.own.size} | {old[0]}: {old[1]:.1e}, {old[2]:.1e} | {new[0]}: "
              f"{new[1]:.1e}, {new[2]:.1e} | {8 / 3 * n**3:.1e}, {n**3:.1e} | {old[3]:.1e}, {new[3]:.1e} |")


if __name__ == "__main__":
    main()
