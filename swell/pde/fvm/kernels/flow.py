"""One outer iteration of a flow, over faces and over cells, on the CPU; ``flow.cu`` is the GPU version.

Vectors have one row a component: u and ``start`` (k, n), gradients (k, 3, n), the axis of component i is axes[i].
``sides``, shape (4, k, nb): the boundary data of each component, by `Side`. Other arguments are as in `Metrics` and
`Pattern`.
"""
from __future__ import annotations

import numpy as np
from numba import prange

from swell.core.compiled import parallel
from swell.core.kernels.vector import CHUNKS, chunk_rows, total
from swell.pde.fvm.slots import Scheme, Side


@parallel
def follow(owner, distance, normal, mirror, turning, outward, u, entering, leaving, sides):
    """Set ``sides`` where it depends on the flow. Faces that are ``turning`` take ``entering`` if their flux
    ``outward`` is negative, else ``leaving``; on ``mirror`` ones, planes of symmetry, the other components' part of
    u·n is known. ``owner``: of the boundary faces."""
    k = u.shape[0]
    for f in prange(mirror.size):
        if turning[f]:
            for i in range(k):
                for q in range(4):
                    sides[q, i, f] = entering[q, i, f] if outward[f] < 0 else leaving[q, i, f]
        if mirror[f]:
            for i in range(k):
                others = 0.0
                for j in range(k):
                    if j != i:
                        others += normal[j, f] * u[j, owner[f]]
                sides[Side.OFFSET, i, f] = -normal[i, f] * others
                sides[Side.RATE, i, f] = -normal[i, f] * others / distance[f]


@parallel
def momentum_fluxes(owner, neighbour, weight, conductance, oblique, tangent, arm, far_arm, scheme, phi, u, gradient,
                    sides, mirror, a, b, deferred, held):
    """Write the fluxes of momentum, F = a u_O + b u_N + deferred, of which a and b serve all components.

    ``conductance``: ν g, at the boundary ν |s|; ``oblique``: ν (s − g d); ``arm``, ``far_arm``: from the two cells'
    centres to the face's. ``held`` gets what planes of symmetry add to a, for each component."""
    internal, k = neighbour.size, u.shape[0]
    for f in prange(phi.size):
        c, leaving, entering = owner[f], max(phi[f], 0.0), min(phi[f], 0.0)
        if f < internal:
            o, w = neighbour[f], weight[f]
            a[f] = conductance[f] + leaving
            b[f] = entering - conductance[f]
            if scheme == Scheme.CENTRAL:
                a[f] = conductance[f] + w * phi[f]
                b[f] = (1 - w) * phi[f] - conductance[f]
            for i in range(k):
                flux = 0.0
                for j in range(3):
                    flux -= oblique[j, f] * (w * gradient[i, j, c] + (1 - w) * gradient[i, j, o])
                if scheme == Scheme.LINEAR:
                    jump = u[i, o] - u[i, c]
                    flux += leaving * (1 - w) * jump - entering * w * jump
                elif scheme == Scheme.LINEAR_UPWIND:
                    for j in range(3):
                        flux += leaving * arm[j, f] * gradient[i, j, c] + entering * far_arm[j, f] * gradient[i, j, o]
                deferred[i, f] = flux
        else:
            e = f - internal
            size = conductance[f]
            a[f] = 0.0 if mirror[e] else size * sides[Side.SLOPE, 0, e] + leaving + entering * sides[Side.SHARE, 0, e]
            for i in range(k):
                share, slope, along = sides[Side.SHARE, i, e], sides[Side.SLOPE, i, e], 0.0
                offset, rate = sides[Side.OFFSET, i, e], sides[Side.RATE, i, e]
                for j in range(3):
                    along += tangent[j, e] * gradient[i, j, c]
                flux = size * (slope * along - rate) + entering * (share * along + offset)
                if scheme != Scheme.UPWIND:
                    flux += leaving * (share * (u[i, c] + along) + offset - u[i, c])
                deferred[i, f] = flux
                held[i, e] = size * slope if mirror[e] else 0.0


@parallel
def momentum_rows(ptr, faces, places, middle, indptr, owner, neighbour, a, b, deferred, held, phi, axes, volumes,
                  relaxation, rate, start, grad_p, values, diagonal, room, extra, rhs, lost, acting):
    """Assemble the momentum matrix and its right-hand sides, and measure the residual at ``start``.

    The matrix has Σ F − u Σ φ and the time term ``rate`` V, its diagonal D divided by ``relaxation``. All components
    share it if ``values`` has room for one matrix; else unknown k c + i is component i of cell c, and ``extra``, what
    planes of symmetry add to D, is on its diagonal.

    Writes D to ``diagonal``, D/α + Σ off-diagonal to ``room``, each cell's Σ |residual| to ``lost``, and the sum of the
    forces on it (pressure, flux through the boundary) to ``acting``."""
    internal, k = neighbour.size, start.shape[0]
    copies = values.size // indptr[middle.size]
    for c in prange(middle.size):
        first, width = indptr[c], indptr[c + 1] - indptr[c]
        own, away, beside, other, last = rate * volumes[c], 0.0, 0.0, 0.0, -1
        for at in range(ptr[c], ptr[c + 1]):
            f, place, part = faces[at], places[at], 0.0
            if f >= 0:
                own += a[f]
                away += phi[f]
                if f < internal:
                    part = b[f]
            else:
                own -= b[~f]
                away -= phi[~f]
                part = -a[~f]
            if place >= 0:
                other = other + part if place == last else part
                beside += part
                for i in range(copies):
                    values[copies * first + i * width + place - first] = other
            last = place
        own -= away
        diagonal[c] = own
        room[c] = own / relaxation + beside
        missing, force = 0.0, 0.0
        for i in range(k):
            x, more, known, product = start[i, c], 0.0, 0.0, 0.0
            for at in range(ptr[c], ptr[c + 1]):
                f = faces[at]
                if f < 0:
                    known += deferred[i, ~f]
                    product -= a[~f] * start[i, owner[~f]]
                else:
                    known -= deferred[i, f]
                    if f < internal:
                        product += b[f] * start[i, neighbour[f]]
                    else:
                        h = held[i, f - internal]
                        more += h
                        force += abs((a[f] + h) * x + deferred[i, f])
            D = own + more
            push = volumes[c] * grad_p[axes[i], c]
            known += (rate * volumes[c] + D / relaxation - D) * x - push
            missing += abs(known - D / relaxation * x - product)
            force += abs(push)
            rhs[i, c] = known
            if i < copies:
                values[copies * first + i * width + middle[c] - first] = D / relaxation
            if copies > 1:
                extra[i, c] = more
        lost[c] = missing
        acting[c] = force


@parallel
def rhie_chow(owner, neighbour, weight, s, d, g, tangent, closed, given, sides, p_share, p_offset, axes, relaxation,
              volumes, diagonal, room, u, before, old, p, grad_p, phi, a,
              b):
    """Write Rhie and Chow's fluxes to ``phi``, with Majumdar's term, from velocities u, those ``before`` the solve,
    and the fluxes ``old``; and the fluxes a p'_O + b p'_N of the pressure correction, with a = (V/room)_f g and b = −a.

    ``given``: boundary faces whose pressure is known, p_b = p_share p' + p_offset."""
    internal, k = neighbour.size, u.shape[0]
    for f in prange(phi.size):
        c = owner[f]
        mobility = relaxation * volumes[c] / diagonal[c]
        if f < internal:
            o, w = neighbour[f], weight[f]
            through, moved, seen = 0.0, old[f], p[o] - p[c]
            for i in range(k):
                area = s[axes[i], f]
                through += area * (w * u[i, c] + (1 - w) * u[i, o])
                moved -= area * (w * before[i, c] + (1 - w) * before[i, o])
            for j in range(3):
                seen -= d[j, f] * (w * grad_p[j, c] + (1 - w) * grad_p[j, o])
            mobility = w * mobility + (1 - w) * relaxation * volumes[o] / diagonal[o]
            phi[f] = through - mobility * g[f] * seen + (1 - relaxation) * moved
            a[f] = g[f] * (w * volumes[c] / room[c] + (1 - w) * volumes[o] / room[o])
            b[f] = -a[f]
        else:
            e = f - internal
            flux, coefficient = 0.0, 0.0
            if not closed[e]:
                for i in range(k):
                    flux += s[axes[i], f] * (sides[Side.SHARE, i, e] * u[i, c] + sides[Side.OFFSET, i, e])
            if given[e]:
                along, seen = 0.0, 0.0
                for j in range(3):
                    along += tangent[j, e] * grad_p[j, c]
                    seen -= d[j, f] * grad_p[j, c]
                flux -= mobility * g[f] * (p_share[e] * (p[c] + along) + p_offset[e] - p[c] + seen)
                coefficient = g[f] * volumes[c] / room[c]
            phi[f] = flux
            a[f] = coefficient


@parallel
def balance(ptr, faces, phi, way, imbalance, lost, through):
    """Write −Σ φ of each cell to ``imbalance``, its size to ``lost``, and Σ |φ| ``way`` of the cell's own faces to
    ``through``."""
    for c in prange(imbalance.size):
        net, flow = 0.0, 0.0
        for at in range(ptr[c], ptr[c + 1]):
            f = faces[at]
            if f >= 0:
                net += phi[f]
                flow += abs(phi[f]) * way[f]
            else:
                net -= phi[~f]
        imbalance[c] = -net
        lost[c] = abs(net)
        through[c] = flow


@parallel
def correct_fluxes(owner, neighbour, a, p, phi):
    """φ += a (p_O − p_N), at the boundary a p_O: the fluxes of a pressure correction p."""
    for f in prange(phi.size):
        phi[f] += a[f] * (p[owner[f]] - (p[neighbour[f]] if f < neighbour.size else 0.0))


@parallel
def correct_cells(axes, volumes, room, correction, gradient, share, u, p):
    """u −= V/room ∇p', p += ``share`` p', for the correction p' and its ``gradient``."""
    for c in prange(p.size):
        for i in range(u.shape[0]):
            u[i, c] -= volumes[c] / room[c] * gradient[axes[i], c]
        p[c] += share * correction[c]


@parallel
def sums(values, counted, out):
    """out[q] = Σ values[q, c] over the cells c with counted[c] = 1, for the four rows of ``values``."""
    parts = np.empty((4, CHUNKS))
    for part in prange(CHUNKS):
        for q in range(4):
            added = 0.0
            for c in chunk_rows(counted.size, part):
                added += values[q, c] * counted[c]
            parts[q, part] = added
    for q in range(4):
        out[q] = total(parts[q])
