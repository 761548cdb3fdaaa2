"""Solves inside JAX programs: the diffusivity of two halves of a plate, found from measured temperatures."""
import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.sparse import BCSR

import swell

jax.config.update("jax_enable_x64", True)                     # before the first array: swell's tolerance is 1e-8

side = 40
A = swell.gallery.poisson2d(side).tocsr()
pattern = BCSR((jnp.asarray(A.data), jnp.asarray(A.indices), jnp.asarray(A.indptr)), shape=A.shape)
heat = jnp.ones(side * side)
solve = swell.jax.prepare(pattern)                            # reads the pattern once; new values update the setup

rows, columns = np.repeat(np.arange(side * side), np.diff(A.indptr)), A.indices
between = rows != columns
walls = jnp.asarray(4 - np.bincount(rows[between]))           # neighbours that are a wall
left = jnp.arange(side * side) % side < side // 2


def values(diffusivity):
    """The values of A for the diffusivities of both halves, in the order of the pattern."""
    k = jnp.where(left, *diffusivity)
    flux = jnp.where(between, (k[rows] + k[columns]) / 2, 0)
    diagonal = jax.ops.segment_sum(flux, rows, side * side) + walls * k
    return jnp.where(between, -flux, diagonal[rows])


@jax.jit
def temperature(diffusivity):
    return solve(values(diffusivity), heat)


truth = jnp.array([1.0, 3.0])
measured = temperature(truth)[::37]                           # a few thermometers


@jax.jit
def step(diffusivity):
    """One step of Gauss and Newton; the Jacobian takes forward derivatives, both in one solve of two columns."""
    residual = temperature(diffusivity)[::37] - measured
    jacobian = jax.jacfwd(lambda d: temperature(d)[::37])(diffusivity)
    return diffusivity - jnp.linalg.lstsq(jacobian, residual)[0], jnp.linalg.norm(residual)


diffusivity = jnp.array([2.0, 2.0])
for k in range(7):
    diffusivity, misfit = step(diffusivity)
    print(f"step {k}: diffusivities {diffusivity[0]:.6f} and {diffusivity[1]:.6f}, misfit {misfit:.1e}")
assert jnp.allclose(diffusivity, truth, rtol=1e-6)

# Reverse mode: the gradient in both parameters, or in all of b, is one more solve, with Aᵀ.
mean = jax.value_and_grad(lambda d: temperature(d).mean())
value, gradient = mean(truth)
h = 1e-5
difference = (mean(truth.at[0].add(h))[0] - mean(truth.at[0].add(-h))[0]) / (2 * h)
print(f"mean temperature {value:.4f}, its gradient {gradient}, by differences {difference:.6f} in the first")
assert abs(gradient[0] - difference) < 1e-4 * abs(difference)

# vmap over b: the columns of one solve. vmap over the values: one setup for each matrix, here in turn, since n > 1000.
many = jax.vmap(solve, (None, 0))(values(truth), jnp.stack([heat, 2 * heat]))
assert jnp.allclose(many[1], 2 * many[0])
x, info = solve(values(truth), heat, has_aux=True)
print(f"{info.iterations} iterations, ‖b − Ax‖/‖b‖ = {info.residual:.1e}")
assert info.residual <= 1e-8
