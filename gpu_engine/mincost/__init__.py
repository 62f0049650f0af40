"""Flows of least cost: OR-tools solves them, in a process that can be stopped; potentials prove them."""
