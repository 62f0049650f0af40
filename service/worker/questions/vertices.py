"""A page of the vertices that have capacities, or of all."""

import numpy as np

from gpu_engine.types import INFINITE
from gpu_engine.vertices.table import vertices_of
from service.protocol import TEXTS, Envelope, VerticesArgs
from service.store.catalogue import check_version
from service.store.jobs.record import Result
from service.worker import answers
from service.worker.columns import FlagColumn, each, listed
from service.worker.copies import Copies
from service.worker.features import FloatColumn
from service.worker.graph import Graph
from service.worker.result_writer import written_as
from service.worker.running.results import Results
from service.worker.running.task import Task


class VerticesPage:
    """Answers the command VERTICES."""

    def __init__(self, copies: Copies, results: Results) -> None:
        self._copies = copies
        self._results = results

    def __call__(self, task: Task) -> Result:
        args = VerticesArgs.model_validate(task.command.args)
        graph = self._copies.ensure(task.command.graph, limited=True)
        check_version(graph.name, graph.version, args.if_match, graph.generation)
        page, envelope = _page(graph, args), Envelope(version=graph.version, generation=graph.generation)
        return written_as(args.encoding, graph.network.decimals, self._results, page, envelope)


def _page(graph: Graph, page: VerticesArgs) -> dict[str, object]:
    """Vertices that were deleted are in no page. In arrays a flag says what is unlimited."""
    network, table = graph.network, vertices_of(graph.vertices, graph.network)
    n_rows = network.n_vertices if page.all else len(table.vertices)
    first, last = min(page.offset, n_rows), min(page.offset + page.limit, n_rows)
    rows = np.arange(first, last, dtype=np.int32) if page.all else table.vertices[first:last]
    rows = rows[~network.are_gone(rows)]
    own, places = table.of_vertices(rows), network.coordinates
    return {
        "version": graph.version,
        "vertices": answers.labels(network.vertex_labels, listed(rows)),
        "capacity": answers.amounts(network, own, each(own)),
        **({} if page.encoding in TEXTS else {"unlimited": FlagColumn(own == INFINITE)}),
        **({} if places is None else {"x": FloatColumn(places.x[rows]), "y": FloatColumn(places.y[rows])}),
        "next": last if last < n_rows else None,
    }
