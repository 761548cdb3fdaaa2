"""A notebook: results, solvers and hierarchies show themselves; a live line; the log. Cells begin at "# %%".

Editors run this file cell by cell. `jupytext --to ipynb` makes a notebook of it.
"""
# %%
import logging
import sys

import numpy as np

import swell

A = swell.gallery.poisson3d(24)
b = np.random.default_rng(1).standard_normal(A.shape[0])

# %% The last line of a cell shows a Result: the outcome, the residuals, and what ran and why.
r = swell.solve(A, b, method="cg", progress=True)
r

# %% Its repr is a line, so a list of results is readable; print shows all of it as text.
print([r, swell.solve(A, b, method="cg", maxiter=10)])
print(r)
assert r.converged and "\n" not in repr(r)

# %% Several right-hand sides: the worst ones, as a table and a picture.
several = swell.solve(A, np.stack([b, np.ones_like(b)], axis=1), method="cg")
several

# %% A Solver shows what is set up; with multigrid, its levels too.
s = swell.prepare(A, method="cg", precond="amg")
s

# %%
print(repr(s), repr(s.M), sep="\n")
s.M

# %% An automatic choice that changes its mind: earlier attempts are dashed.
plate = swell.gallery.poisson2d(60)
choice = swell.solve(plate @ plate, np.ones(plate.shape[0]), progress=True)
choice

# %% The log says what is chosen, set up, tried; a failure is a warning.
log = logging.getLogger("swell")
log.setLevel(logging.INFO)
log.addHandler(logging.StreamHandler(sys.stdout))
failed = swell.solve(A, b, method="cg", maxiter=10)
failed

# %%
assert not failed.converged and choice.attempts
for made in (r, several, s, s.M, choice, failed):
    assert made._repr_html_().startswith("<div") and "<script" not in made._repr_html_()
log.handlers.pop()
log.setLevel(logging.NOTSET)
