"""From a matrix and a configuration to a result: set up once, run for each right-hand side."""
