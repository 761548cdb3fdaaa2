"""The error of a differentiable solve that does not converge."""
from __future__ import annotations

from swell.core.errors import SwellError


class NotConverged(SwellError):
    """A solve of the forward or of the backward pass did not converge.

    Attributes
    ----------
    result : Result, Results or BatchResult
        The outcome: its reason, true residual and history.
    """

    def __init__(self, message, result):
        super().__init__(message)
        self.result = result

    def __reduce__(self):
        return NotConverged, (str(self), self.result)
