"""The source of a device kernel that runs once for every column of `Columns`: a wrapper around the kernel for one."""
from __future__ import annotations

import re

EACH = "_each"          # ends the name of such a kernel


def for_each_column(text: str, signature) -> str:
    """Return the source ``text`` with one kernel as a device function, and a kernel that calls it for column
    blockIdx.y.

    After the kernel's parameters the new one takes NAME_step for each array: the distance between its columns, in
    elements; 0 for an array that all columns share."""
    d, pointers = signature.declared, [p.name for p in signature.parameters if p.pointer]
    steps = ", ".join(f"long long {name}_step" for name in pointers)
    arguments = ", ".join(f"{p.name} + right_hand_side * {p.name}_step" if p.pointer else p.name
                          for p in signature.parameters)
    types, head = ", ".join(name for _, name in signature.template), f"__global__ void {d['bounds'] or ''}{d['name']}("
    before, after = re.split(r"__global__ void\s+" + re.escape(d["bounds"] or "") + rf"{d['name']}\(", text, maxsplit=1)
    return f"""{before}DEVICE void {d['name']}({after}
template <{d['template']}> {head.replace(d['name'] + '(', d['name'] + EACH + '(')}{d['parameters']}, {steps}) {{
  const long long right_hand_side = blockIdx.y;
  {d['name']}<{types}>(ctx + right_hand_side, {arguments});
}}
"""
