"""BDDC, balancing domain decomposition by constraints, on two levels and more; settings.py says what and from where."""
