"""The edges that a question names, as rows."""

from typing import Literal

from gpu_engine.types import EdgeArray
from service.protocol import Operation
from service.worker.graph import Graph


def read_edges(graph: Graph, names: list[int] | list[str]) -> EdgeArray:
    """int64[k]: the rows of distinct edges, in the order they are named. Raises `UnknownEdge`, and `InvalidNetwork` for
    one that is named twice."""
    on_missing: Literal["error"] = "error"
    (rows,) = graph.table.locate([Operation(op="close", edges=names)], on_missing).found
    graph.table.refuse_twice(rows)
    return rows
