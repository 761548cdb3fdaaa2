"""Launches for several right-hand sides on a GPU: one launch serves every column of `Columns`.

A kernel for one vector runs once for each column: the grid's second dimension counts columns, and a wrapper that the
loader writes moves the arguments to its column, the judge's context among them (``each_column.py``).
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
from swell.core.cuda_kernels import WIDE, Kernel
from swell.core.cuda_sources import signatures
from swell.core.each_column import EACH
from swell.core.errors import InputError

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
        self._steps = {}
        pointers = [p.name for p in self.signature.parameters if p.form]
        self._pointers, self._launches = pointers, self._launcher("q" * len(pointers))

    def __call__(self, *arguments):
        self._steps = {}
        if not any(type(a) is Columns for a in arguments):
            super().__call__(*arguments)
        elif self._twin is not None:
            self._twin.run_together(arguments)
        elif self.all_at_once:
            for j in range(self.space.columns):
                self._run_one(j, arguments)
        else:
            self._run_each(arguments)

    def _function(self, values, shared, form=""):
        """Like `Kernel._function`; it also refuses columns at a distance that is no multiple of 16 bytes, if the kernel
        reads 16 bytes at once. `Space.buffer` makes columns at such distances."""
        for k in self._form.wide:
            name = self.signature.parameters[k].name
            if self._steps.get(name, 0) * values[k].itemsize % WIDE:
                raise InputError(f"{self.path.name}: {self.signature.name} takes {name} 16 bytes at a time, and its "
                                 "columns do not begin at multiples of 16 bytes: copy them to Space.buffer")
        return super()._function(values, shared, form)

    def _run_each(self, arguments):
        """Launch once for all columns, each with its own blocks."""
        self._steps = {p.name: a.step for p, a in zip(self.signature.parameters, arguments) if type(a) is Columns}
        values = [a.array[0] if type(a) is Columns else a for a in arguments]
        grid, block, shared, cluster = self._complete(values)
        if not grid:
            return
        function = self._function(values, shared, EACH)
        pack, buffer, launch = self._launches
        pack(buffer, 0, self.space.context.data.ptr, *self._flatten(values),
             *(self._steps.get(name, 0) for name in self._pointers))
        launch(function.kernel.ptr, grid, block, self.space.current_stream(), shared, cluster, self.space.columns)
        self.space.launches += 1

    def _run_one(self, j, arguments):
        """Launch for column j alone."""
        values = [a.array[j] if type(a) is Columns else a for a in arguments]
        grid, block, shared, cluster = self._complete(values)
        if not grid:
            return
        function = self._function(values, shared)
        self._pack(self._buffer, 0, self._context_of(j), *self._flatten(values))
        self._launch(function.kernel.ptr, grid, block, self.space.current_stream(), shared, cluster)
        self.space.launches += 1

    def _context_of(self, j):
        """The address of column j's context."""
        return self.space.context.data.ptr + j * (self.space.context.size // self.space.columns)

    def run_together(self, arguments):
        """Launch this twin with the arguments of its kernel: its blocks for each tile of columns."""
        columns, tile = self.space.columns, tile_for(self.space.columns)
        self._steps = {p.name: a.step for p, a in zip(self.signature.parameters, arguments) if type(a) is Columns}
        values = [*(a.array[0] if type(a) is Columns else a for a in arguments), tile, columns]
        grid, block, shared, cluster = self._complete(values)
        if not grid:
            return
        while tile > TILES[0] and grid * block * -(-columns // tile) < BUSY * self.space.multiprocessors:
            tile //= 2
        values[self._form.at["tile"]] = tile
        function = self._function(values, shared)
        self._pack(self._buffer, 0, self.space.context.data.ptr, *self._flatten(values))
        self._launch(function.kernel.ptr, grid, block, self.space.current_stream(), shared, cluster,
                     -(-columns // tile))
        self.space.launches += 1

    def _measure(self, values, extra):
        name, _, what = extra.rpartition("_")
        return self._steps.get(name, 0) if what == "step" else super()._measure(values, extra)
