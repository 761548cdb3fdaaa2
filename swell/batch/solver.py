"""BatchSolver: many small systems of one pattern, each solved by one block of a GPU or one thread of a CPU.

A solve is one launch for all systems. If no method was named, two more launches of an update see whether all systems
are Hermitian. Every system has its own stopping and its own record. On a GPU a system lies on the chip: ``batch.hpp``
has the parts of the kernels, ``placement.py`` the sizes. The traffic to memory is the values, b and x. Nothing is
stored from one solve to the next: to read stored factors would cost as much as to read the values.
"""
from __future__ import annotations

import logging
from typing import Any

import numpy as np

from swell import inputs
from swell.batch.pattern import Pattern
from swell.batch.placement import Placement, fits, place
from swell.batch.result import BatchResult
from swell.batch.settings import MAX_LU_UNKNOWNS, Choice, check_diagonal, chosen
from swell.batch.slots import Record
from swell.core.arrays import checked_dtype
from swell.core.compilation import Stopwatch, compiling_for
from swell.core.errors import InputError
from swell.core.guests import guest_of
from swell.core.log import LOG
from swell.core.registry import load
from swell.core.stopping import Reason
from swell.core.turn import Turn

SHADOWS = 3             # shadow vectors of BiCGSTAB: one for each attempt after a breakdown
SYMMETRY = {"f": 1e-5, "F": 1e-5, "d": 1e-12, "D": 1e-12}        # of the largest entry, as in formats/facts.py
SURVEY_THREADS = 128
MOST_ITERATIONS = 2**31 - 1          # that the kernels count


class BatchSolver:
    """A prepared batch; made by `swell.prepare_batch`.

    Threads may share a BatchSolver; their calls run one after the other.

    Attributes
    ----------
    pattern : Pattern
    space : Space
    dtype : numpy.dtype
    """

    def __init__(self, pattern: Pattern, space, dtype, named: Choice | None, stopping):
        self.pattern, self.space, self.dtype, self.stopping = pattern, space, np.dtype(dtype), stopping
        self._named, self._turn = named, Turn()
        self._values: Any = None                 # on the device
        self._choice: Any = None                 # the user's, or the rule's for these values
        self._launches = 0                       # of the last update
        self._timings = {"setup": 0.0, "compile": 0.0}
        if named is not None:
            check_diagonal(named, pattern)
        watch = Stopwatch()
        with space.active():
            self._indptr, self._indices, self._diagonal = map(space.from_host, (
                pattern.indptr, pattern.indices, pattern.diagonal))
            self._order = None if pattern.order is None else space.from_host(pattern.order)
            self._held: dict[str, Any] = {}      # arrays that only some methods need, by name
        self._add_timings(watch)

    def _add_timings(self, watch):
        self._timings = {"setup": self._timings["setup"] + watch.seconds,
                         "compile": self._timings["compile"] + watch.compiled}

    def update(self, values) -> BatchSolver:
        """Take new values, of shape (batch, nnz), in the order that `swell.solve_batch` explains; return self.

        The number of systems may change. The values are copied.

        Raises
        ------
        InputError
            For another shape, or complex values in a real solver. The solver is then unchanged.
        """
        with self._turn:
            return self._take(values, keep=True)

    def _take(self, values, keep):
        """Read the user's values, and choose a method if none was named. ``keep``: copy them, since they may change."""
        watch, before = Stopwatch(), launches_of(self.space)
        read = read_values(values, self.pattern.nnz)
        if read.dtype.kind == "c" and self.dtype.kind != "c":
            raise InputError("values are complex and the solver was prepared real: prepare_batch(A, "
                             "dtype='complex128')")
        space = self.space
        space.check_fits(2 * read.size * self.dtype.itemsize, f"a batch of {read.shape[0]} systems",
                         "solve it in parts, or use dtype='float32'")
        with space.active(read.size):
            entries = space.from_host(read).astype(self.dtype, copy=False)
            if self._order is not None:
                entries = space.xp.ascontiguousarray(space.xp.take(entries, self._order, axis=1))
            elif keep and space.same_memory(entries, read):
                entries = entries.copy()
            entries = space.xp.ascontiguousarray(entries)
            choice = self._named or chosen(self.pattern, self._definite(entries), self._fits)
        self._values, self._choice, self._launches = entries, choice, launches_of(space) - before
        self._add_timings(watch)
        return self

    def _definite(self, values) -> bool:
        """True if every finite system is Hermitian with a positive diagonal, by one kernel over the batch."""
        if not self.pattern.symmetric:
            return False
        space = self.space
        definite = space.empty(values.shape[0], np.int32)
        space.kernels("swell.batch", "survey", self.dtype).survey(
            self._indptr, self._indices, self._diagonal, self._array("mirror", lambda: self.pattern.mirror), values,
            SYMMETRY[self.dtype.char], definite, SURVEY_THREADS)
        return not space.find_true(definite == 0)[1]  # sync

    def _fits(self, choice) -> bool:
        """True if a choice fits on the device, for systems with one right-hand side."""
        return fits(choice, self.pattern.n, self.pattern.nnz, 1, self.dtype, self.space)

    def _array(self, name, make):
        """Return the array ``name`` of the pattern on the device; ``make()`` computes it at its first use."""
        if name not in self._held:
            self._held[name] = self.space.from_host(make())
        return self._held[name]

    def solve(self, B, x0=None) -> BatchResult:
        """Solve for B of shape (batch, n) or (batch, n, k), from the starting vectors x0 or from zero.

        Raises
        ------
        InputError
            If no values were given yet, for another shape, and for systems too large for the chip.
        """
        with self._turn:
            if self._values is None:
                raise InputError("this BatchSolver has no values yet: call update(values) first")
            rhs, guess = self._read(B, "B"), None if x0 is None else self._read(x0, "x0")
            if guess is not None and self._named is not None and self._named.name == "lu":
                raise InputError("method='lu' solves directly and has no use for x0: leave x0 out")
            if guess is not None and guess.shape != rhs.shape:
                raise InputError(f"x0 has shape {tuple(guess.shape)}: expected {tuple(rhs.shape)}, the shape of B")
            return self._run(rhs, guess, B)

    def _read(self, v, name):
        """Check right-hand sides or starting vectors; return them as an array of NumPy or CuPy."""
        batch, n = self._values.shape[0], self.pattern.n
        v = read_vectors(v, name)
        if v.ndim not in (2, 3) or v.shape[:2] != (batch, n) or 0 in v.shape:
            raise InputError(f"{name} has shape {tuple(v.shape)}: expected ({batch}, {n}) or ({batch}, {n}, k) with k "
                             f"of at least 1, for {batch} systems of {n} unknowns")
        if v.dtype.kind == "c" and self.dtype.kind != "c":
            raise InputError(f"{name} is complex and the solver was prepared real: prepare_batch(A, "
                             "dtype='complex128')")
        return v

    def _run(self, rhs, guess, original) -> BatchResult:
        """Solve for checked arrays; x is converted to the array type of ``original``."""
        space, choice, values = self.space, self._choice, self._values
        columns, batch = (1 if rhs.ndim == 2 else rhs.shape[2]), values.shape[0]
        placement = place(choice, self.pattern.n, self.pattern.nnz, columns, self.dtype, space)
        compiling_for(f"a batch by {choice.name}")
        watch, before, notes = Stopwatch(), launches_of(space), []
        if guess is not None and choice.name == "lu":
            notes.append("x0 has no effect: LU was chosen, which solves directly")
        full, outer = (batch, self.pattern.n, columns), (batch, *rhs.shape[2:])
        with space.active(values.size):
            b = space.xp.ascontiguousarray(space.from_host(rhs).astype(self.dtype, copy=False)).reshape(full)
            x = space.empty(full, self.dtype)
            if guess is not None:
                x[...] = space.from_host(guess).astype(self.dtype, copy=False).reshape(full)
            record = self._launch(choice, placement, values, b, x, guess is not None)
            if choice.why and choice.name != "lu":
                self._again(choice, record, values, b, x, notes)
            out = inputs.returned(x.reshape(rhs.shape), space, original)
        residual, backward, steps, codes = (record[..., place].reshape(outer).copy() for place in Record)
        why = f"{choice.describe()}" + (f", since {choice.why}" if choice.why else "")
        result = BatchResult(
            out, codes == Reason.CONVERGED.code, steps.astype(np.int32), residual, backward, codes.astype(np.int32),
            choice.name, choice.precond_name, space.device_name, self.dtype.name, [why],
            timings={"setup": self._timings["setup"], "solve": watch.seconds,
                     "compile": self._timings["compile"] + watch.compiled},
            memory={"matrix": values.nbytes, "vectors": b.nbytes + x.nbytes, "chip": placement.shared},
            launches=self._launches + launches_of(space) - before, notes=notes)
        LOG.log(logging.INFO if result.all_converged else logging.WARNING, "%r", result)
        return result

    def _launch(self, choice, placement: Placement, values, b, x, guess):
        """Launch the kernel of a choice for some systems, and wait; return their record, (batch, columns, places).

        The record lies on the host; a GPU's kernel writes it there."""
        space, p, s, on_gpu = self.space, placement, self.stopping, self.space.name == "cuda"
        n, batch, columns = self.pattern.n, b.shape[0], b.shape[2]
        record, host = space.mapped((batch, columns, len(Record)), np.float64)
        tolerances = float(s.rtol), float(s.atol)
        ell = self._array("ell", lambda: self.pattern.ell if on_gpu else np.zeros(1, np.uint16))
        shared_by_all = self._indptr, self._indices, ell, self._diagonal
        out = (array.reshape(batch, -1) for array in (b, x, record))
        kernel = getattr(space.kernels("swell.batch", choice.name, self.dtype), p.kernel)
        if choice.name == "lu":
            places = self._array("places", lambda: self.pattern.places if on_gpu else np.zeros(1, np.uint32))
            width = (p.unknowns, p.sides) if p.kernel == "lu_rows" else ()
            kernel(*shared_by_all, places, values, *out, n, columns, p.lanes, *width, *tolerances, p.threads, p.shared)
        else:
            lower, upper, order = self._levels(choice)
            shadow = (self._shadow(choice.method.seed),) if choice.name == "bicgstab" else ()
            restart = (choice.method.restart,) if choice.name == "gmres" else ()
            kernel(*shared_by_all, lower, upper, order, values, *out, *shadow, n, columns, p.lanes, choice.kind,
                   choice.block, p.held, int(guess), min(s.limit(n), MOST_ITERATIONS), *tolerances, *restart,
                   p.threads, p.shared)
        space.synchronize()  # sync
        return host

    def _levels(self, choice):
        """Return the levels of ILU(0) on the device, or stand-ins of one entry: no levels."""
        if choice.precond_name != "ilu" or self.space.name == "cpu":
            return (self._array("no levels", lambda: np.zeros(1, np.int32)),) * 3
        return tuple(self._array(f"levels {k}", lambda k=k: self.pattern.levels[k]) for k in range(3))

    def _shadow(self, seed):
        """Return BiCGSTAB's random shadow vectors, one after the other; all systems share them."""
        name = f"shadow {seed}"
        if name not in self._held:
            shadow = self.space.empty(SHADOWS * self.pattern.n, self.dtype)
            self.space.random(seed, shadow)
            self._held[name] = shadow
        return self._held[name]

    def _again(self, choice, record, values, b, x, notes):
        """Solve by LU, in one batch, the finite systems that an automatic choice did not solve; in place in x and the
        record. ``notes`` gets a sentence on it."""
        space, (batch, n, columns) = self.space, b.shape
        codes = record[..., Record.VERDICT_CODE]
        rows = np.flatnonzero(((codes != Reason.CONVERGED.code) & (codes != Reason.NONFINITE.code)).any(axis=1))
        if not rows.size:
            return
        lu = Choice(load("method", "direct")())
        what = f"{rows.size} of {batch} systems did not converge by {choice.name}"
        if n > MAX_LU_UNKNOWNS[space.name] or not self._fits(lu):
            notes.append(f"{what}, and LU of n = {n} does not fit")
            return
        here, again = space.from_host(rows), space.empty((rows.size, n, columns), self.dtype)
        placement = place(lu, n, self.pattern.nnz, columns, self.dtype, space)
        values, b = (space.xp.take(part, here, axis=0) for part in (values, b))
        record[rows] = self._launch(lu, placement, values, b, again, False)
        x[here] = again
        notes.append(f"{what} and were solved again by LU")


def launches_of(space) -> int:
    """The number of kernels that a space has launched; 0 on a CPU."""
    return 0 if space.name == "cpu" else space.launches


def read_values(values, nnz):
    """Check the user's values; return them as an array of NumPy or CuPy of shape (batch, nnz).

    Raises
    ------
    InputError
        For another shape or type, and for an empty batch.
    """
    values = read_vectors(values, "values")
    if values.ndim != 2 or values.shape[1] != nnz or not values.shape[0]:
        hint = ": give values[None] for one system" if values.shape == (nnz,) else ""
        raise InputError(f"values has shape {tuple(values.shape)}: expected (batch, {nnz}) with a batch of at least 1, "
                         f"a row of A's {nnz} entries for each system{hint}")
    return values


def read_vectors(v, name):
    """Read an array of any library as one of NumPy or CuPy; NaN and Inf are allowed, since a system is one record.

    Raises
    ------
    InputError
        For an unsupported type.
    """
    v = guest_of(v).read_vector(v, name)
    if v.dtype.kind not in "fciub":
        raise InputError(f"{name} has dtype {v.dtype}: expected numbers")
    checked_dtype(v.dtype, name)
    return v
