"""Sequences of updates and questions about small networks, drawn by a seed, against a model of the graph that knows
nothing of the service, and oracles that know nothing of its solvers (NetworkX, and linear programs by HiGHS).

``python -m tests.fuzz sequences`` runs many, against a service of its own; `tests/contract/test_sequences.py` runs a
few.
"""
