"""Text for a stdout that lacks characters: ASCII in place of ‖, − or ᴴ, so that ``print(result)`` never fails."""
from __future__ import annotations

import codecs
import functools
import sys

ASCII = {"‖": "||", "−": "-", "–": "-", "×": "x", "·": "*", "…": "...", "→": "->", "≤": "<=", "≥": ">=", "≈": "~",
         "±": "+-", "⁻": "^-", "ᴴ": "^H", "ᵀ": "^T", "¹": "1", "²": "^2", "³": "^3", "⁴": "^4", "⁶": "^6", "⁸": "^8",
         "ᵢ": "_i", "ⱼ": "_j", "₀": "_0", "₁": "_1", "₂": "_2", "√": "sqrt", "Σ": "sum", "∞": "inf", "ρ": "rho",
         "σ": "sigma", "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "eps", "λ": "lambda", "µ": "mu",
         "μ": "mu", "ν": "nu", "ω": "omega", "θ": "theta", "φ": "phi", "π": "pi", "∇": "grad ", "∂": "d",
         "°": " degrees"}
HANDLER = "swell.ascii"


def _replaced(error):
    """Codec error handler: ASCII for the characters that an encoding lacks; a question mark for those without any."""
    return "".join(ASCII.get(character, "?") for character in error.object[error.start:error.end]), error.end


codecs.register_error(HANDLER, _replaced)


def encodable(text: str) -> str:
    """Return ``text``, with ASCII in place of the characters that stdout's encoding lacks."""
    encoding = getattr(sys.stdout, "encoding", None)
    return text.encode(encoding, HANDLER).decode(encoding) if encoding else text


def printable(method):
    """Decorate ``__str__`` or ``__repr__``: stdout can show the text that it returns."""
    @functools.wraps(method)
    def shown(self):
        return encodable(method(self))
    return shown
