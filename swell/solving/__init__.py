"""Solves: a setup for one matrix and one configuration, then a run for each right-hand side, which gives a result."""
