"""Vertices with a capacity: split in two inside an engine, and nowhere else."""
