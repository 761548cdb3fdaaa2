"""Differentiable solves: swell's solves with A and Aᵀ inside ``jax.lax.custom_linear_solve``.

JAX derives all derivatives from the two solves and the product A x. With x = A⁻¹ b: the tangent is A⁻¹ (ḃ − Ȧ x). For a
cotangent g, λ = A⁻ᵀ g is the gradient in b, and −λᵢ xⱼ the gradient in aᵢⱼ, on the pattern of A. Each is one more
solve, which must converge as the first one.
"""
from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import sparse

from swell import inputs
from swell.autodiff.options import Options, relative
from swell.autodiff.pattern import Pattern
from swell.core.errors import InputError
from swell.core.settings import DTYPES, shown
from swell.jax.call import Info, call
from swell.jax.pattern import arrange, product
from swell.autodiff.system import System

KEPT = 8                # setups that `solve` keeps
SINGLE_RTOL = 1e-6      # smallest tolerance in single precision
X64 = "jax.config.update('jax_enable_x64', True) before the first array is made"


class Prepared:
    """A function of (values, b) that solves systems of one pattern; made by `swell.jax.prepare`."""

    def __init__(self, pattern: Pattern, options: Options):
        self.pattern, self.options = pattern, checked(options)
        self.system = System(pattern, options)
        self._compiled = jax.jit(functools.partial(_linear_solve, self.system))

    def __repr__(self):
        return f"Prepared({self.pattern.n} unknowns, values of shape {self.pattern.stored}: call it with (values, b))"

    def __call__(self, values, b, has_aux=False):
        """Solve for A's values, in the order in which A stores them, and b of shape (n,) or (n, k).

        Returns
        -------
        x : array like b, or (x, info)
            See `swell.jax.solve`.

        Raises
        ------
        InputError
            For wrong shapes, types or devices.
        """
        values, b = self._checked(values, b)
        x, info = self._compiled(values, b)
        return (x, info) if has_aux else x

    def _checked(self, values, b):
        """Return the values and b as JAX arrays of the type in which to solve."""
        pattern = self.pattern
        values, b = _array(values, "values"), _array(b, "b")
        if values.shape != pattern.stored:
            raise InputError(f"values has shape {values.shape}: expected {pattern.stored}, one number for each that A "
                             "stores, in its order; for several matrices use jax.vmap")
        if b.ndim not in (1, 2) or b.shape[0] != pattern.n or 0 in b.shape:
            raise InputError(f"b has shape {b.shape}: expected ({pattern.n},) or ({pattern.n}, k); for other axes use "
                             "jax.vmap")
        _check_devices(values, b)
        dtype = solve_dtype(self.options, values.dtype, b.dtype)
        return values.astype(dtype), b.astype(dtype)


def prepared(pattern, options) -> Prepared:
    """Return a Prepared of the cache; a new one for options that cannot be hashed, such as arrays."""
    try:
        hash(options)
    except TypeError:
        return Prepared(pattern, options)
    return _kept(pattern, options)


_kept = functools.lru_cache(KEPT)(Prepared)      # by the contents of the pattern and of the options


def _linear_solve(system, values, b) -> tuple[jax.Array, Info]:
    """Solve A x = b, differentiable in A's values, as the user gives them, and in b."""
    values = arrange(system.pattern, values)
    return jax.lax.custom_linear_solve(
        lambda x: product(system.pattern, values, x), b,
        lambda _, b: call(system, values, b),
        lambda _, b: call(system, values, b, transposed=True), has_aux=True)


def checked(options: Options) -> Options:
    """Return the options; InputError for a misspelt name, and for an absolute tolerance alone."""
    options.configuration                        # the settings of all names
    relative(options.criterion)
    return options


def solve_dtype(options, values, b) -> np.dtype:
    """The type in which to solve: the ``dtype`` of the options, or else the common type of the values and b.

    ``values``, ``b``: their types.

    Raises
    ------
    InputError
        For a type that swell or JAX does not compute in, and if it cannot reach the tolerance.
    """
    dtype, x64 = jnp.result_type(values, b), jax.config.jax_enable_x64
    dtype = jnp.result_type(float) if dtype.kind in "iub" else dtype
    if options.dtype is not None:
        asked = np.dtype(options.dtype)
        inputs.check_not_real(asked, dtype, "A or b")
        if asked.name in ("float64", "complex128") and not x64:
            raise InputError(f"dtype={asked.name!r}: JAX's double precision is off; call {X64}")
        dtype = asked
    if dtype.name not in DTYPES:
        raise InputError(f"A's values and b are together of type {dtype.name}: expected one of {', '.join(DTYPES)}; "
                         "convert them, or ask for it with dtype='float32'")
    rtol = options.criterion.for_type(dtype).rtol
    if dtype.name in ("float32", "complex64") and rtol < SINGLE_RTOL:
        remedy = f"convert A's values or b to {'complex128' if dtype.kind == 'c' else 'float64'}" if x64 else X64
        raise InputError(f"rtol={shown(rtol)} is out of reach in {dtype.name}: expected at least {SINGLE_RTOL:g}, or "
                         f"double precision: {remedy}")
    return dtype


def _array(value, name):
    """Return an array of numbers as a JAX array; InputError for anything else."""
    if isinstance(value, sparse.JAXSparse):
        raise InputError(f"{name} is a JAX {type(value).__name__}: expected a dense array; convert it with "
                         f"{name}.todense()")
    try:
        array = jnp.asarray(value)
    except TypeError as error:
        raise InputError(f"{name} is no array of numbers ({error}): expected a JAX array") from None
    return array


def _check_devices(values, b):
    """Raise InputError if concrete arrays do not lie on one device together."""
    placed = {}
    for name, array in (("A's values", values), ("b", b)):
        if isinstance(array, jax.core.Tracer) or not array.committed:
            continue
        devices = sorted(map(str, array.devices()))
        if len(devices) > 1:
            raise InputError(f"{name} is sharded over {len(devices)} devices ({', '.join(devices)}): expected one "
                             "device; move it with jax.device_put(array, device)")
        placed[name] = devices[0]
    if len(set(placed.values())) > 1:
        where = ", ".join(f"{name} on {device}" for name, device in placed.items())
        raise InputError(f"the arrays lie on different devices ({where}): expected one device; move one with "
                         "jax.device_put(array, device)")
