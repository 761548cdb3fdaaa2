"""The part of CuPyX with SciPy's interface."""
