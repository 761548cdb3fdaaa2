"""Launches for several right-hand sides on a GPU: one launch serves every column of `Columns`.

A kernel for one vector runs once for each column: the grid's second dimension counts columns, and a wrapper that the
loader writes moves the arguments to its column, the judge's context among them (``cuda_sources.py``).
Blocks of a column that has stopped end at once. A kernel whose blocks wait for one another is launched for one column
after the other.

A kernel NAME may have a twin NAME_columns that treats several columns at a time, and so reads a matrix once for them
(``kernels/columns.cuh``). After the arguments of NAME the twin takes ``tile``, the columns of a block, which is a
template argument TILE too, and ``vectors``, how many columns there are. Then come the values that the loader adds; one
more is X_step, the distance between the columns of the array X in elements, 0 if all columns share it. ``ctx`` is the
first column's. The twin writes nothing for a column that has stopped.
"""
from __future__ import annotations

from swell.core.columns import Columns
from swell.core.cuda_kernels import Kernel
from swell.core.cuda_sources import EACH, signatures

TILES = 2, 4, 8         # columns that a block may treat together
BUSY = 2048             # threads a multiprocessor that hide latency: a short matrix gets a smaller tile, so more blocks


def tile_for(columns: int) -> int:
    """Return the tile, the number of columns of a twin's block, for this number of columns."""
    return next((tile for tile in TILES if tile >= columns), TILES[-1])


def for_columns(path, expression: str, columns: int) -> str:
    """Return the instantiation that replaces ``expression``, a kernel of the file ``path``, for these columns."""
    name, types = expression.removesuffix(">").split("<", 1)
    twin = f"{name}_columns" in signatures(path)
    return f"{name}_columns<{types}, {tile_for(columns)}>" if twin else f"{name}{EACH}<{types}>"


class ColumnKernel(Kernel):
    """A kernel of a space with several right-hand sides; `Columns` among its arguments make it run for all of them."""

    def __init__(self, space, path, name, dtype):
        super().__init__(space, path, name, dtype)
        twin = f"{name}_columns"
        self._twin = type(self)(space, path, twin, dtype) if twin in signatures(path) else None

    def __call__(self, *arguments):
        if not any(type(a) is Columns for a in arguments):
            super().__call__(*arguments)
        elif self._twin is not None:
            self._twin.run_together(arguments)
        elif self.all_at_once:
            for j in range(self.space.columns):
                self._run_one(j, arguments)
        else:
            self._run_each(arguments)

    def _run_each(self, arguments):
        """Launch once for all columns, each with its own blocks."""
        self._run(self._form.launcher(EACH), _first(arguments), self._steps(arguments), self.space.columns)

    def _run_one(self, j, arguments):
        """Launch for column j alone."""
        values = tuple([a.array[j] if type(a) is Columns else a for a in arguments])
        self._run(self._form.launcher(), values, None, 1, j * (self.space.context.size // self.space.columns))

    def run_together(self, arguments):
        """Launch this twin with the arguments of its kernel: its blocks for each tile of columns."""
        columns, tile = self.space.columns, tile_for(self.space.columns)
        launcher, steps, values = self._form.launcher(), self._steps(arguments), _first(arguments)
        grid, block = launcher.geometry((*values, tile, columns), steps)
        while tile > TILES[0] and grid * block * -(-columns // tile) < BUSY * self.space.multiprocessors:
            tile //= 2
        self._run(launcher, (*values, tile, columns), steps, -(-columns // tile))

    def _run(self, launcher, values, steps, columns, offset=0):
        """Launch with ``columns`` blocks in the grid's second dimension, and the context ``offset`` bytes behind the
        first one."""
        space = self.space
        context = space.context.data.ptr + offset
        space.launches += launcher.launch(context, space.current_stream(), values, steps, columns)

    def _steps(self, arguments):
        """Return the distance between the columns of each parameter, a tuple; 0 for what all columns share."""
        given = [a.step if type(a) is Columns else 0 for a in arguments]
        return tuple(given + [0] * (len(self.signature.parameters) - len(given)))


def _first(arguments):
    """Return the arguments of the first column, a tuple."""
    return tuple([a.array[0] if type(a) is Columns else a for a in arguments])
