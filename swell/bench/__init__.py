"""Benchmarks: one engine, and a module for each ``swell bench`` command."""
