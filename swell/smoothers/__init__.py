"""Smoothers: sweeps that reduce the oscillating part of an error; alone, as preconditioners, in multigrid."""
