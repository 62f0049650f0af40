"""Benchmarks as data: every run checks its answer and writes a JSON file with the machine it ran on.

``python -m benchmarks cold|warm|memory|http|all`` measures, ``python -m benchmarks table FILE...`` prints.
"""
