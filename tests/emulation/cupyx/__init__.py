"""What swell uses of CuPyX: sparse matrices in CSR."""
from __future__ import annotations

import contextlib


@contextlib.contextmanager
def errstate(**named):
    yield
