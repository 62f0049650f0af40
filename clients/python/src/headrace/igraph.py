"""Maximum flows of igraph's graphs, as igraph answers them: `igraph.Flow` with value, flow, cut and partition.

```python
from headrace.igraph import as_flow, maxflow

flow = maxflow(graph, 0, 3, capacity="width")  # in place of graph.maxflow(0, 3, capacity="width")
```
or, of a graph that stays in the service and changes there,
`as_flow(graph, roads.max_flow(0, 3, fields=["flow", "cut"]))`.
Needs igraph.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace._amounts import Amount
from headrace._errors import InvalidInput
from headrace._floats import rounded
from headrace._flows import MaxFlowResult
from headrace._kept import Content, kept
from headrace._mistakes import counted


def maxflow(graph: Any, source: Any, target: Any, capacity: str | Sequence[Amount] | None = None) -> Any:
    """`igraph.Flow` of a maximum flow, as `graph.maxflow` gives it, with the same parameters.

    `source` and `target` are vertices by number, by name, or themselves (`igraph.Vertex`). `capacity` is an attribute
    of edges, or a list with one for each; by default each edge has 1. The service is the one that `HEADRACE_URL` names.

    Raises `ValueError` for a name that no vertex has, as igraph does.
    """
    ends_of_flow = _number(graph, source), _number(graph, target)
    ends = np.array(graph.get_edgelist(), np.int64).reshape(-1, 2)
    amounts = graph.es[capacity] if isinstance(capacity, str) else [1] * len(ends) if capacity is None else capacity
    if len(amounts) != len(ends):
        raise InvalidInput(f"capacity has {counted(len(amounts), 'amount')} for {counted(len(ends), 'edge')}")
    content = Content.of(
        {
            "n_vertices": graph.vcount(),
            "tail": ends[:, 0],
            "head": ends[:, 1],
            "capacity": rounded(amounts),
            "undirected": not graph.is_directed(),
        }
    )
    found = kept("igraph").ask(
        graph, content, lambda resident: resident.max_flow(*ends_of_flow, fields=["flow", "cut"])
    )
    return as_flow(graph, found)


def _number(graph: Any, vertex: Any) -> Any:
    """The number of a vertex that igraph would take for one; anything else as it is, which the client refuses."""
    import igraph

    if isinstance(vertex, str):
        vertex = graph.vs.find(vertex)
    return vertex.index if isinstance(vertex, igraph.Vertex) else vertex


def as_flow(graph: Any, found: MaxFlowResult) -> Any:
    """`igraph.Flow` of an answer with the fields "flow" and "cut" about the igraph graph that `put_graph` was given.

    `flow` has one float for each edge, negative where an undirected edge is used from its larger to its smaller
    vertex; `cut` has rows of edges; `partition` the vertices on the source's side and those on the target's. Raises
    `InvalidInput` for an answer without these fields, about another graph, or with edge ids of your own.
    """
    import igraph

    if found.flow is None or found.cut is None:
        raise InvalidInput("the answer has no flow or no cut: ask with fields=['flow', 'cut']")
    side = found.cut.mask
    edges, cut = np.asarray(found.flow.edges), np.asarray(found.cut.edges)
    if len(side) != graph.vcount() or any(rows.dtype.kind not in "iu" for rows in (edges, cut)):
        raise InvalidInput("the answer is about another graph, or about edges with ids of your own")
    flow = np.zeros(graph.ecount())
    flow[edges] = np.asarray(found.flow.amount)
    return igraph.Flow(graph, float(found.value), flow.tolist(), cut.tolist(), np.flatnonzero(side).tolist())
