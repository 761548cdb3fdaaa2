"""BDDC, balancing domain decomposition by constraints, on two or more levels; settings.py describes it."""
