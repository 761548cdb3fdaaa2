"""CPU instructions for Numba kernels that neither Python nor NumPy offers."""
from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

LANES = 16              # number of keys that `count_below` compares


@intrinsic
def zeros_behind(context, word):
    """Return the number of trailing zero bits of a 64-bit word that is not 0. Called as ``zeros_behind(word)``.

    Numba gives ``context``, its typing context."""
    def build(context, builder, signature, values):
        return builder.cttz(values[0], ir.Constant(ir.IntType(1), 1))
    return types.uint64(types.uint64), build


@intrinsic
def prefetch(context, array, at):
    """Prefetch the cache line of array[at]; ``at`` may lie outside the array. Called as ``prefetch(array, at)``.

    No value changes. Numba gives ``context``, its typing context."""
    def build(context, builder, signature, values):
        i8, i32 = ir.IntType(8).as_pointer(), ir.IntType(32)
        name = builder.module.declare_intrinsic("llvm.prefetch", [i8], ir.FunctionType(ir.VoidType(), [i8, *3 * [i32]]))
        builder.call(name, [_address(context, builder, signature, values, i8), i32(0), i32(3), i32(1)])
        return context.get_dummy_value()
    return types.void(array, at), build


@intrinsic
def fma(context, a, b, c):
    """Return a b + c of doubles with one rounding, on every processor. Called as ``fma(a, b, c)``.

    Numba gives ``context``, its typing context."""
    def build(context, builder, signature, values):
        return builder.fma(*values)
    return types.float64(types.float64, types.float64, types.float64), build


@intrinsic
def count_below(context, keys, at, key):
    """Return how many of the `LANES` keys from keys[at] on are less than ``key``; all have the same type.

    Called as ``count_below(keys, at, key)``; Numba gives ``context``, its typing context."""
    def build(context, builder, signature, values):
        vector = ir.VectorType(context.get_value_type(signature.args[0].dtype), LANES)
        found = builder.load(_address(context, builder, signature, values, vector.as_pointer()))
        found.align = context.get_abi_sizeof(vector.element)
        undefined = ir.Constant(vector, ir.Undefined)
        first = builder.insert_element(undefined, values[2], ir.IntType(32)(0))
        every = builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(ir.IntType(32), LANES), LANES * [0]))
        mask = builder.bitcast(builder.icmp_signed("<", found, every), ir.IntType(LANES))
        return builder.zext(builder.ctpop(mask), ir.IntType(64))
    return types.int64(keys, at, keys.dtype), build


def _address(context, builder, signature, values, pointer):
    """Return LLVM code for the address of values[0][values[1]], as a pointer of type ``pointer``.

    ``context``, ``builder``: Numba's code generator. ``signature``: types of the call's arguments ``values``."""
    data = context.make_array(signature.args[0])(context, builder, values[0]).data
    return builder.bitcast(builder.gep(data, [values[1]]), pointer)
