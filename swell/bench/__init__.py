"""Benchmarks: a common engine, and one module for each ``swell bench`` command."""
