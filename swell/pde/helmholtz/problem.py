"""Helmholtz: the sound pressure in a mesh at one frequency, or over a band at the ears of a listener.

Weak form, with e^{+iωt}:

    ∫ 1/ρ ∇p·∇q − ω² ∫ 1/(ρc²) p q + iω ∫ 1/Z p q = iω ∫ v q + iω Σ Q q(x_s)       for all q,

where p is prescribed and q = 0 on walls of given pressure. In matrices: A(ω) p = iω f with A(ω) = K − ω² M + iω B.
A(ω) is complex symmetric; K, M, B and f are assembled once. Structural damping replaces c² by c² (1 + iη), in M.
Tables over the frequency, and perfectly matched layers, add parts that are computed for each frequency (parts.py).
"""
from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property, partial
from typing import Unpack

import numpy as np

from swell.core.compilation import Stopwatch
from swell.core.errors import InputError, SwellError
from swell.core.stopping import Reason
from swell.options import Accepted, OptionsDict
from swell.pde.helmholtz import conditions as walls
from swell.pde.helmholtz import modes, parts, remarks
from swell.pde.helmholtz.across_ranks import Part
from swell.pde.helmholtz.discretisation import Discretisation
from swell.pde.helmholtz.field import Field
from swell.pde.helmholtz.frequencies import checked, finest
from swell.pde.helmholtz.frequency_response import Point, Response
from swell.pde.helmholtz.interfaces import Faces
from swell.pde.helmholtz.locating import locate
from swell.pde.helmholtz.media import Medium, of_cells
from swell.pde.helmholtz.meshes import Mesh
from swell.pde.helmholtz.pml import PML
from swell.pde.helmholtz.sources import Load, drives, label, separate, vibrating
from swell.pde.helmholtz.sweeping import REMEMBERED, Sweep, columns_of
from swell.pde.helmholtz.table import Table

AIR = Medium()
OPTIONS = Accepted(without=("M", "block"), device="cpu", dtype="complex128")
MIN_FREQUENCIES, MIN_ITERATIONS = 20, 30     # at each frequency; for more, deflation is recommended


class Helmholtz:
    """The acoustics of a closed or open domain.

    Parameters
    ----------
    mesh : Mesh
    medium : Medium, or dict of str to Medium
        One medium for the whole mesh, or a dictionary from regions to media. Air by default.
    boundary : dict, optional
        Name → ``Rigid()``, ``Pressure(p)``, ``Velocity(v)``, ``Impedance(Z)`` or ``Absorbing()``; walls without a
        condition are rigid.
    degree : {1, 2}
        Degree of the elements: P1 or Q1; P2 or Q2.
    pml : PML, optional
        A perfectly matched layer, for an open domain.

    Attributes
    ----------
    finest : float
        The frequency in Hz up to which the mesh has 10 nodes a wavelength everywhere, as the paper requires.

    Raises
    ------
    InputError
        For unknown names, contradictory conditions, or regions without a medium.

    Examples
    --------
    >>> from swell.pde import helmholtz
    >>> mesh = helmholtz.box((40, 2, 2), upper=(2.0, 0.1, 0.1))
    >>> duct = helmholtz.Helmholtz(mesh, boundary={"xmax": helmholtz.Absorbing()})
    >>> r = duct.response(source="xmin", ear=(2.0, 0.05, 0.05), frequencies=[100, 200])
    >>> [round(float(level)) for level in r.level[:, 0]]        # ρ c v = 0.41 Pa: a plane wave, damped by nothing
    [83, 83]
    """

    def __init__(self, mesh, medium=AIR, boundary=None, *, degree=1, pml=None):
        if not isinstance(mesh, Mesh):
            raise InputError(f"mesh is of type {type(mesh).__name__}: expected a Mesh, such as read_mesh('cabin.msh'), "
                             "box((32, 16, 16)) or car_cabin(0.1)")
        if degree not in (1, 2):
            raise InputError(f"degree={degree!r}: expected 1 or 2")
        self.mesh, self.degree = mesh, degree
        self.media, self.medium_of = of_cells(mesh, medium)
        self.conditions = walls.checked(mesh, boundary)
        self.finest = finest(mesh, self._of_cells([m.slowest for m in self.media]), degree)
        if pml is not None and not isinstance(pml, PML):
            raise InputError(f"pml is of type {type(pml).__name__}: expected PML(lower, upper), the box that it is "
                             "around")
        self.pml = pml
        self.in_layer = np.zeros(len(mesh.cells), bool) if pml is None else pml.cells(mesh)

    def _of_cells(self, values):
        return np.asarray(values)[self.medium_of]

    @cached_property
    def space(self) -> Discretisation:
        """The finite element space."""
        return Discretisation(self.mesh, self.degree)

    @cached_property
    def matrices(self):
        """(K, M, B) over all dofs, as SciPy CSR matrices; complex where coefficients are complex."""
        return parts.constant(self)

    @cached_property
    def varying(self) -> list:
        """The parts of A(ω) that are no polynomial in ω: a list of `Varying`."""
        return parts.varying(self)

    def fluids(self, omega):
        """Return (ρ, ρc²) of the cells at an angular frequency (1/s), each of shape (cells,)."""
        properties = [m.at(omega / (2 * math.pi)) for m in self.media]
        return tuple(self._of_cells(values) for values in zip(*properties))

    @property
    def coefficients(self):
        """Return (1/ρ, 1/(ρc²)) of the cells, each of shape (cells,); the second is complex if a medium is damped.

        Cells of media with a Table hold 1."""
        properties = [(1.0, 1.0) if m.varies else m.at(0.0) for m in self.media]
        return tuple(self._of_cells(1 / np.array(values)) for values in zip(*properties))

    def admittances(self):
        """Yield (facets, 1/Z of each facet) for every Impedance or Absorbing wall that is the same at all frequencies.
        """
        plane = np.array([np.nan if m.varies else m.impedance for m in self.media])
        for name, facets in walls.disjoint_facets(self.mesh, self.conditions):
            condition = self.conditions[name]
            if isinstance(condition, walls.Impedance) and not isinstance(condition.value, Table):
                admittance = np.full(len(facets), 1 / complex(condition.value))
            elif isinstance(condition, walls.Absorbing):
                admittance = 1 / self._of_cells(plane)[self.mesh.fem.f2t[0, facets]]
                facets, admittance = (v[np.isfinite(admittance)] for v in (facets, admittance))
            else:
                continue
            yield facets, admittance.real if not admittance.imag.any() else admittance

    @cached_property
    def _given(self):
        """Return (mask of the dofs on Pressure walls, pressures there (0 elsewhere), notes on contradictions)."""
        mask, value, notes = np.zeros(self.space.n, bool), np.zeros(self.space.n, complex), []
        for name, condition in self.conditions.items():
            if isinstance(condition, walls.Pressure):
                dofs = self.space.facet_dofs(self.mesh.boundaries[name])
                new = walls.values(condition.value, self.space.points[dofs], f"boundary {name!r}")
                differ = int(np.count_nonzero(mask[dofs] & (value[dofs] != new)))
                if differ:
                    notes.append(f"boundary {name!r} meets another wall of given pressure, and at {differ} points "
                                 f"their values differ: there the value of {name!r}, named later, is used")
                value[dofs], mask[dofs] = new, True
        return mask, value, notes

    @property
    def damped(self) -> bool:
        """True if a wall or a medium takes energy out of the sound."""
        resists = any(isinstance(c, walls.Absorbing) or isinstance(c, walls.Impedance) and c.resists
                      for c in self.conditions.values())
        return resists or self.pml is not None or any(m.absorbs for m in self.media)

    def _sound(self, source, what="") -> Load:
        """Return the Load of ``source``, as in `response`; messages begin with ``what``."""
        try:
            vibration = vibrating(self.mesh, self.conditions, source)
            if not drives(*vibration, self.conditions):
                raise InputError("nothing makes sound: name a source (a boundary such as source="
                                 f"{next(iter(self.mesh.boundaries))!r}, or a point), or give a boundary a Velocity or "
                                 "a Pressure other than 0")
            return Load(self, *vibration)
        except InputError as error:
            raise InputError(f"{what}{error}") from None

    def _right_hand_side(self, source, sources=None):
        """Return the `RightHandSide` of ``source`` and ``sources``, as in `response`."""
        loads = [self._sound(source)] if sources is None else [
            self._sound(one, f"sources[{j}]: ") for j, one in enumerate(sources)]
        return parts.RightHandSide(self, loads, sources is not None, self._free())

    def _free(self):
        """Return the free dofs, whose pressure is not given, ascending."""
        mask = self._given[0]
        free = np.flatnonzero(~mask)
        if mask.any() and not free.size:
            raise InputError("every dof lies on a wall of given pressure: refine the mesh, or free a wall")
        return free

    def _system(self, free, part=None):
        """Return ((K, M, B) of the free dofs, varying parts for `System`). With ``part``, the matrices hold only the
        rows of this rank's dofs."""
        matrices = self.matrices if part is None else [part.own(A) for A in parts.constant(self, part.cells)]
        varying = [(v, v.numbers) for v in self.varying]
        if free.size < self.space.n:
            matrices = [A[free][:, free] for A in matrices]
            varying = [(v, numbers[free][:, free]) for v, numbers in varying]
        return matrices, varying

    def system(self, frequency, source=None) -> tuple:
        """Assemble A(ω) and b at one frequency, for another solver or a file.

        Parameters
        ----------
        frequency : float
            Hz.
        source
            See `response`.

        Returns
        -------
        A : scipy.sparse.csr_matrix, complex
            The matrix over the free dofs, whose pressure is not given.
        b : ndarray, complex
        dofs : ndarray of int
            The dof of each row; ``self.space.points[dofs]`` are their positions.

        Examples
        --------
        >>> from swell.pde import helmholtz
        >>> room = helmholtz.Helmholtz(helmholtz.box((4, 4, 4)), helmholtz.Medium(damping=0.01))
        >>> A, b, dofs = room.system(100.0, "xmin")
        >>> A.shape, bool(abs(A - A.T).max() == 0)
        ((125, 125), True)
        """
        frequencies = checked(frequency)
        if len(frequencies) != 1:
            raise InputError(f"frequency={frequency!r}: expected one frequency in Hz, and {len(frequencies)} came")
        omega = 2 * math.pi * float(frequencies[0])
        free = self._free()
        (K, M, B), _ = self._system(free)
        A = (K - omega ** 2 * M + 1j * omega * B).tocsr()
        for varying in self.varying:
            A = A + varying.matrix(omega)[free][:, free]
        A.sort_indices()
        return A, self._right_hand_side(source).on_host(omega), free

    @OPTIONS.shown
    def solve(self, frequency, source=None, **options: Unpack[OptionsDict]) -> Field:
        """Solve at one frequency (Hz); return the Field. See `response` for the parameters.

        rtol is 1e-8 by default, and 1e-4 in complex64."""
        chosen = _with_tolerance(OPTIONS.read(options), 1e-8)
        response = self.response(source, None, [frequency], fields=[frequency], **chosen.keywords())
        if not response.fields:
            raise KeyboardInterrupt                              # Ctrl-C came before the first iterate
        return response.fields[float(frequency)]

    @OPTIONS.shown
    def response(self, source=None, ear=None, frequencies=(), *, reuse=True, remember=REMEMBERED, together=None,
                 fields=(), watch=None, ranks=None, sources=None, **options: Unpack[OptionsDict]) -> Response:
        """Compute the frequency response at one ear or several, to one source or to each of several.

        Parameters
        ----------
        source : str, point, Monopole, dict, or a list of these, optional
            Sources besides the walls with a Velocity or a Pressure. The name of a boundary: it vibrates with 1 mm/s.
            ``{name: Velocity(v)}``: it vibrates with v. A point: a Monopole of 1e-3 m³/s. The sources of a list sound
            at the same time.
        ear : point, or sequence of points
            Positions of the listeners, m.
        frequencies : sequence of float
            Hz; `band` makes such a sequence.
        reuse, remember, together
            See `Sweep`.
        fields : sequence of float
            Frequencies at which the whole field is kept.
        watch : callable, optional
            ``watch(point)`` is called after each frequency with its `Point`; a true return value ends the sweep.
        ranks : Communicator, optional
            Share the work with the ranks that MPI started (``swell.distributed.init()``). Each rank assembles the rows
            of its own dofs. All ranks call this with the same arguments, and all get the whole response.
        sources : list, optional
            Several sources in place of ``source``, each one as ``source`` takes it. Each sounds on its own, and the
            pressure has shape (frequencies, sources, ears): the transfer matrix. They share the preconditioner and
            each solve.
        method, precond, ..., dtype
            See `swell.Options`. rtol is 1e-6 by default, and 1e-4 in complex64, which cannot reach less.

        Returns
        -------
        Response
            The solved frequencies, including failed ones, which are marked. An interrupted sweep keeps its results.

        Raises
        ------
        InputError
            For an ear or a source outside the mesh, or a frequency of 0 in a domain without a given pressure.
        """
        if sources is not None and source is not None:
            raise InputError("both source and sources were given: put all sources into sources")
        chosen = _with_tolerance(OPTIONS.read(options), 1e-6)
        sources = None if sources is None else separate(sources)
        frequencies, fields = checked(frequencies), checked(fields) if len(fields) else np.zeros(0)
        strange = ~np.isin(fields, frequencies)
        if strange.any():
            raise InputError(f"fields: {fields[np.argmax(strange)]:g} Hz is not among the frequencies of the sweep")
        ears = self._ears(ear)
        listeners = [self.space.at(*locate(self.mesh, x, "ear")) for x in ears]
        part = None if ranks is None or ranks.size == 1 else Part(ranks, self)
        free, rhs = self._free(), self._right_hand_side(source, sources)
        (K, M, B), varying = self._system(free, part)
        if not frequencies.all() and free.size == self.space.n:
            raise InputError("frequency 0: without a wall of given pressure K is singular (a constant pressure solves "
                             "it): begin above 0 Hz, or give a boundary a Pressure")
        for omega in 2 * math.pi * np.unique([frequencies.min(), frequencies.max()]):
            rhs.on_host(omega)                   # a table that does not cover the band is an error before any solve
            for varies, _ in varying:
                varies.values(omega)
        sweep = Sweep(K, M, B, reuse=reuse, remember=remember, together=together if sources else None, part=part,
                      free=free, varying=varying, interface=None if part or varying else partial(Faces, self, free),
                      **chosen.keywords())
        answer = Response(self, np.array(ears).reshape(-1, self.mesh.dim), sweep.space.describe(), len(frequencies),
                          sources=None if sources is None else [label(one) for one in sources])
        answer.notes += remarks.of_band(self, frequencies)
        with sweep.space.active(sweep.n):
            rhs.bind(sweep.space, sweep.rows, np.dtype(chosen.dtype))
        try:
            for frequency in frequencies:
                point = self._one(sweep, frequency, rhs, free, listeners, frequency in fields, answer)
                if any(r.reason is Reason.INTERRUPTED for r in point.results):
                    raise KeyboardInterrupt
                answer.points.append(point)
                if sweep.any(watch is not None and watch(point)):
                    answer.notes.append(f"stopped after {frequency:g} Hz as asked")
                    break
        except KeyboardInterrupt:                                # finished frequencies are kept
            answer.notes.append(f"interrupted at {frequency:g} Hz: {len(answer.points)} of {len(frequencies)} "
                                "frequencies were solved")
        except SwellError as error:
            if not answer.points:
                raise
            answer.notes.append(f"ended at {frequency:g} Hz, {len(answer.points)} of {len(frequencies)} frequencies "
                                f"were solved: {error}")
        answer.setups = sweep.setups
        costs = [r.iterations for point in answer.points for r in point.results if r.precond != "deflation"]
        if reuse and sweep.space.name == "cpu" and len(costs) >= MIN_FREQUENCIES and np.mean(costs) > MIN_ITERATIONS:
            answer.notes.append(f"{np.mean(costs):.0f} iterations a frequency: precond='deflation' finds the slow "
                                "modes once and removes them at all frequencies; on a cabin it took two fifths of the "
                                "time")
        return answer

    @modes.OPTIONS.shown
    def modes(self, count=10, near=0.0, **options: Unpack[OptionsDict]) -> modes.Modes:
        """Find the ``count`` eigenfrequencies nearest to ``near`` (Hz), and their modes; see `modes.find`."""
        return modes.find(self, count, near, **options)

    def _one(self, sweep, frequency, rhs, free, listeners, keep, answer):
        """Solve for one frequency by ``sweep``, a Sweep; return its Point. ``rhs``: the `RightHandSide`; ``free``: the
        free dofs; ``listeners``: for each ear (dofs, weights). With ``keep`` the Field is stored in ``answer``, a
        Response."""
        watch, omega = Stopwatch(), 2 * math.pi * float(frequency)
        with sweep.space.active(sweep.n):
            b = rhs.at(omega)
        result = sweep.solve(omega, b)
        with sweep.space.active(sweep.n):
            p = np.repeat(self._given[1][:, None], len(columns_of(result)), axis=1).reshape(-1, *result.x.shape[1:])
            p[free] = sweep.gather(result.x)
        for r in (result, *columns_of(result)):
            r.x = None                           # or the results would hold their vectors of every frequency
        heard = np.array([p[dofs].T @ weights for dofs, weights in listeners], complex)
        failed_first = sorted(columns_of(result), key=lambda r: r.converged)
        advice = next(filter(None, map(partial(remarks.advice, self), failed_first)), "")
        point = Point(float(frequency), heard.reshape(len(listeners), *p.shape[1:]).T, result, watch.seconds,
                      advice, watch.compiled)
        if keep:
            each = zip(p.reshape(len(p), -1).T.copy(), columns_of(result))
            fields = [Field(self, float(frequency), *one) for one in each]
            answer.fields[float(frequency)] = fields[0] if answer.sources is None else fields
        return point

    def _ears(self, ear):
        """Return ``ear``, a point or a list of points, as a list of arrays; raise InputError for anything else."""
        if ear is None:
            return []
        try:
            ears = np.asarray(ear, float)
        except (TypeError, ValueError):
            raise InputError(f"ear={ear!r}: expected a point of {self.mesh.dim} coordinates in m, or a list of them") \
                from None
        if ears.ndim > 2 or not ears.size:
            raise InputError(f"ear has shape {ears.shape}: expected a point of {self.mesh.dim} coordinates in m, or a "
                             "list of them")
        return list(np.atleast_2d(ears))


def _with_tolerance(options, usual):
    """Return the options with a tolerance: ``usual`` if none was given, and 1e-4 in complex64."""
    if options.rtol is not None or options.stopping is not None:
        return options
    return replace(options, rtol=1e-4 if str(options.dtype) == "complex64" else usual)
