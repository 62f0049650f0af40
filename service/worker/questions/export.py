"""The whole graph as a file: all that another load of it needs, as it is now or was at an earlier version."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Final

import numpy as np

from gpu_engine import formats
from gpu_engine.footprint import Footprint
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.structure import only, present_of
from service.protocol import Envelope, ExportArgs
from service.store.catalogue import check_version
from service.store.jobs.record import Result
from service.worker.copies import Copies
from service.worker.graph import Graph
from service.worker.past import Past
from service.worker.result_writer import unless_cancelled, written
from service.worker.running.results import WRITING_BYTES, Results
from service.worker.running.task import Task

EDGE_BYTES: Final = 48
"""Bytes of memory for each edge while a graph is written: its columns, and what they are made from."""
COST_BYTES: Final = 16
"""More bytes for each edge with costs, and with lower bounds."""

WRITERS: Final[Mapping[str, Callable[[EdgeList], Iterator[bytes]]]] = MappingProxyType(
    {
        "npz": formats.npz_pieces,
        "arrow": formats.arrow_pieces,
        "dimacs": formats.dimacs_pieces,
        "dimacs-min": formats.dimacs_min_pieces,
        "packed": partial(formats.arrow_pieces, packed=True),
    }
)


class Export:
    """Answers the command EXPORT with the name of the blob where the file lies.

    A file for a caller goes as long results do. A packed one may become another graph's edges: this worker does not
    remove it, and it expires if nobody adopts it.
    """

    def __init__(self, copies: Copies, results: Results, past: Past) -> None:
        self._copies = copies
        self._results = results
        self._past = past

    def __call__(self, task: Task) -> Result:
        args = ExportArgs.model_validate(task.command.args)
        graph = self._copies.ensure(task.command.graph, limited=True)
        version = graph.version if args.version is None else args.version
        check_version(graph.name, version, args.if_match, graph.generation)
        n_beside = (graph.costs is not None) + (graph.lowers is not None)
        edge_bytes = EDGE_BYTES + COST_BYTES * n_beside
        needed = edge_bytes * graph.network.n_edges + WRITING_BYTES
        self._copies.residents.take(graph.name, Footprint(needed))
        edges = present(graph) if version == graph.version else self._earlier(graph, version)
        pieces = WRITERS[args.format](edges)
        text = unless_cancelled(pieces, task.control)
        blob, n_bytes = self._results.store(text, graph.generation, keeps=args.format != "packed")
        answer = {"graph": graph.name, "version": version, "format": args.format, "bytes": n_bytes, "blob": blob}
        return written(self._results, answer, Envelope(version=version, generation=graph.generation))

    def _earlier(self, graph: Graph, version: int) -> EdgeList:
        """The graph as it was at an earlier version. Raises version_unavailable."""
        then, edges = self._past.values_at(graph, version), graph.network.edge_list()
        if graph.costs is not None:
            edges = replace(edges, cost=then.cost, cost_decimals=graph.costs.decimals)
        edges = replace(edges, lower=then.lower)
        if then.vertex is not None:
            edges = replace(edges, limited=then.vertex.vertices, vertex_capacity=then.vertex.capacity)
        source, sink = graph.network.loaded_ends  # which may have been there then, and not be now
        edges = replace(edges, source=source, sink=sink)
        edges = replace(edges, capacity=then.own, closed=then.closed if then.closed.any() else None)
        return only(edges, then.there, then.vertices_there, then.n_edges)


def present(graph: Graph) -> EdgeList:
    """The graph as it is now: the edges' own capacities, which of them are closed, and what they cost."""
    edges, closed = graph.network.edge_list(), graph.table.closed
    if graph.costs is not None:
        edges = replace(edges, cost=graph.costs.cost, cost_decimals=graph.costs.decimals)
    if graph.lowers is not None:
        edges = replace(edges, lower=graph.lowers.lower)
    if graph.vertices is not None:
        edges = replace(edges, limited=graph.vertices.vertices, vertex_capacity=graph.vertices.capacity)
    if closed.any():
        edges = replace(edges, capacity=graph.table.own(np.arange(edges.n_edges)), closed=closed)
    return present_of(edges, graph.network)
