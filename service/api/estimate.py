"""Bytes of a graph at rest, from its counts alone."""

from collections.abc import Sequence

from gpu_engine.types import WORKING_BYTES
from service.models.graphs import EstimateBody, EstimateInfo
from service.queue.models import WorkerInfo


def estimate(body: EstimateBody, workers: Sequence[WorkerInfo], budget_bytes: int) -> EstimateInfo:
    """Upper bounds (every edge its own link), and whether the emptiest worker has room for graph and state.

    Network: per edge capacity 8, arc 4, undirected and closed 2; per arc head 4 and reverse 4; per vertex an offset 4.
    Flow state: per arc residual 8; per vertex excess 8, height 4, first arc and queue 8.
    To fit, the working memory of a solve needs room as well.
    """
    n, m = body.n_vertices, body.n_edges
    graph_bytes = 14 * m + 16 * m + 4 * (n + 1) + 1
    state_bytes = 16 * m + 20 * n
    free_bytes = max((budget_bytes - worker.bytes for worker in workers if worker.alive and worker.ready), default=0)
    return EstimateInfo(
        bytes=graph_bytes,
        bytes_per_flow_state=state_bytes,
        fits=graph_bytes + state_bytes + WORKING_BYTES * n <= free_bytes,
        free_bytes=max(0, free_bytes),
    )
