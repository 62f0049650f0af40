"""Attacks on a real service by one command, and how it bears them: see `tests.attacks.__main__`."""
