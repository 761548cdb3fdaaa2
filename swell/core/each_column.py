"""The source of a device kernel that runs once for every column of `Columns`: a wrapper around the kernel for one."""
from __future__ import annotations

import re

EACH = "_each"          # ends the name of such a kernel


def for_each_column(text: str, signature) -> str:
    """Return the source ``text`` with one kernel as a device function, and a kernel that calls it for column
    blockIdx.y.

    After the kernel's parameters the new one takes NAME_step for each array: the distance between its columns, in
    elements; 0 for an array that all columns share."""
    d, arrays = signature.declared, [p.name for p in signature.parameters if p.form]
    steps = ", ".join(f"long long {name}_step" for name in arrays)
    moved = {"": "{0}", "Blocks": "{0}", "*": "{0} + right_hand_side * {0}_step"}      # all columns share blocks
    arguments = ", ".join(moved.get(p.form, "{0}.moved(right_hand_side * {0}_step)").format(p.name)
                          for p in signature.parameters)
    types, context = ", ".join(name for _, name in signature.template), d["parameters"].split(",")[0].split()[-1]
    before, after = text.split(f"{d['head']}{d['name']}(", 1)
    return f"""{before}DEVICE void {d['name']}({after}
template <{d['template']}> {d['head']}{d['name']}{EACH}({d['parameters']}, {steps}) {{
  const long long right_hand_side = blockIdx.y;
  {d['name']}<{types}>({context} + right_hand_side, {arguments});
}}
"""
