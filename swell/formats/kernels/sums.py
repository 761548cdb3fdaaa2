"""Sums of products a x in registers: one number for real types, a vector of four partial sums for complex types.

Numba's own complex sum takes eight scalar operations an entry, which LLVM does not vectorise. Here a sum is the vector
(Σ aʳxʳ, Σ aʳxⁱ, Σ aⁱxⁱ, Σ aⁱxʳ), and an entry adds (aʳ, aʳ, aⁱ, aⁱ) · (xʳ, xⁱ, xⁱ, xʳ), element by element. This takes
two loads, two shuffles and one fused multiplication. (With x as (xʳ, xⁱ, xʳ, xⁱ) LLVM loads xʳ and xⁱ separately.)
"""
from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, overload, register_model

FUSED = ("contract",)   # a multiplication and an addition may be fused, with one rounding


class FourSums(types.Type):
    """Numba type: the vector of four partial sums for a complex type."""

    def __init__(self, number):
        self.number = number
        super().__init__(f"FourSums({number})")


@register_model(FourSums)
class FourSumsModel(models.PrimitiveModel):
    """Data model of `FourSums`: an LLVM vector of four numbers."""

    def __init__(self, manager, kind):
        part = manager.lookup(kind.number.underlying_float).get_value_type()
        super().__init__(manager, kind, ir.VectorType(part, 4))


def empty_sum(zero):
    """Return an empty sum, for numbers of the type of ``zero``; see `plus_product` and `sum_value`."""


def plus_product(total, a, x):
    """Return ``total`` + a x. ``total``: a sum that began with `empty_sum`."""


def sum_value(total):
    """Return the value of a sum as one real or complex number."""


@intrinsic
def _no_products(context, zero):
    kind = FourSums(zero)

    def build(context, builder, signature, values):
        return cgutils.get_null_value(context.get_value_type(kind))
    return kind(zero), build


@intrinsic
def _four_products(context, total, a, x):
    def build(context, builder, signature, values):
        sums = values[0]
        pairs = [_pair(context, builder, kind, value) for kind, value in zip(signature.args[1:], values[1:])]
        a, x = (builder.shuffle_vector(pair, pair, ir.Constant(ir.VectorType(ir.IntType(32), 4), order))
                for pair, order in zip(pairs, ([0, 0, 1, 1], [0, 1, 1, 0])))
        return builder.fadd(sums, builder.fmul(a, x, flags=FUSED), flags=FUSED)
    return total(total, total.number, total.number), build


def _pair(context, builder, kind, value):
    """Return LLVM code that makes a complex number a vector (real, imaginary).

    ``context``, ``builder``: Numba's code generator. ``kind``: Numba's complex type. ``value``: the number."""
    number = context.make_complex(builder, kind, value=value)
    pair = ir.Constant(ir.VectorType(number.real.type, 2), ir.Undefined)
    for k, part in enumerate((number.real, number.imag)):
        pair = builder.insert_element(pair, part, ir.IntType(32)(k))
    return pair


@intrinsic
def _number(context, total):
    def build(context, builder, signature, values):
        rr, ri, ii, ir_ = (builder.extract_element(values[0], ir.IntType(32)(k)) for k in range(4))
        number = context.make_complex(builder, total.number)
        number.real, number.imag = builder.fsub(rr, ii), builder.fadd(ri, ir_)
        return number._getvalue()
    return total.number(total), build


@overload(empty_sum)
def _empty_sum(zero):
    if isinstance(zero, types.Complex):
        return lambda zero: _no_products(zero)
    return lambda zero: zero


@overload(plus_product)
def _plus_product(total, a, x):
    if isinstance(total, FourSums):
        return lambda total, a, x: _four_products(total, a, x)
    return lambda total, a, x: total + a * x


@overload(sum_value)
def _sum_value(total):
    if isinstance(total, FourSums):
        return lambda total: _number(total)
    return lambda total: total
