"""The buckets of all histograms of time; apart from `service.worker.metrics`, which imports the engine."""

from typing import Final

SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
"""Upper bounds: from a warm solve of a small graph to a cold one of a large graph."""
