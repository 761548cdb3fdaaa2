"""One size of dense blocks for all ranks, where settings have it detected: each rank sees its own rows alone."""
from __future__ import annotations

import math
from dataclasses import fields, is_dataclass

from swell.distributed.words import merged
from swell.formats.blocks import detect


def agree_on_blocks(matrix, settings, communicator):
    """Have the ranks' matrices (a CSRMatrix on each) made into blocks of one size; a call of all ranks together.

    The size divides the sizes that the ranks find. Blocks of s with hardly any fill have no more of it in blocks of a
    divisor of s. Nothing is done for settings that detect no blocks.
    """
    if not detects_blocks(settings) or matrix.block_divisor:
        return
    sizes = communicator.allgather(detect(matrix))
    matrix.block_divisor, most = math.gcd(*sizes), max(sizes)
    if matrix.block_divisor < most:
        found = merged([f"blocks of {size}" for size in sizes])
        matrix.notes = (f"the ranks' rows have {found}, and all ranks take blocks of {matrix.block_divisor}: where A "
                        f"has blocks of {most}, keep them together, by scatter or read with block={most}",)


def detects_blocks(settings) -> bool:
    """True for settings whose size of blocks is to be detected, by themselves or by settings within them."""
    values = {field.name: getattr(settings, field.name) for field in fields(settings)}
    return values.get("block") == 0 or any(detects_blocks(value) for value in values.values()
                                           if is_dataclass(value) and not isinstance(value, type))
