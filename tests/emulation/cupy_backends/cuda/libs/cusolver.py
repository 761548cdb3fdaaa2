"""cuSOLVER: its 64-bit functions are in the emulated runtime, whose library has the place of this file."""
from cupy.compiler import runtime

__file__ = runtime()._name
