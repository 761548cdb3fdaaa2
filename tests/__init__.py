"""The tests lie in folders as the package does; what several of them share is in ``support``."""
