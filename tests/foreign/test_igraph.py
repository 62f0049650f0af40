"""The networks of igraph's documentation: the service answers what igraph does."""

from collections.abc import Iterator
from typing import NamedTuple

import igraph
import numpy as np
import pytest
from headrace import Client

from service.host.sandbox import serving


class Example(NamedTuple):
    """A directed network, and what its documentation says."""

    tail: list[int]
    head: list[int]
    capacity: list[int]
    source: int
    sink: int
    value: int


TUTORIAL = Example([3, 3, 2, 4, 4, 1, 5], [2, 4, 1, 1, 5, 0, 0], [7, 8, 1, 2, 3, 4, 5], 3, 0, 6)
"""python.igraph.org, tutorial "Maximum Flow"."""

MANUAL_OF_R = Example([0, 2, 3, 0, 4, 5], [2, 3, 1, 4, 5, 1], [3, 1, 2, 1, 2, 10], 0, 1, 2)
"""r.igraph.org, max_flow: vertices count from 1 there."""

LEFT = [0, 0, 1, 1, 1, 2, 2, 2, 3, 3]
RIGHT = [4, 5, 4, 6, 7, 5, 7, 8, 6, 7]
MATCHING = Example([*LEFT, *[9] * 4, *range(4, 9)], [*RIGHT, *range(4), *[10] * 5], [1] * 19, 9, 10, 4)
"""python.igraph.org, tutorial "Maximum Bipartite Matching by Maximum Flow"."""


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp("igraph")
    with serving(folder, folder / "serve.log") as url, Client(url) as client:
        yield client


@pytest.mark.parametrize("directed", [True, False], ids=["directed", "undirected"])
@pytest.mark.parametrize("example", [TUTORIAL, MANUAL_OF_R, MATCHING], ids=["tutorial", "manual of R", "matching"])
def test_flow_and_cut(client: Client, example: Example, directed: bool) -> None:
    tail, head, capacity, source, sink, value = example
    theirs = igraph.Graph(list(zip(tail, head, strict=True)), directed=directed).maxflow(source, sink, capacity)
    graph = client.put_graph("igraph", tail=tail, head=head, capacity=capacity, undirected=not directed)
    ours = graph.max_flow(source, sink, fields=["cut", "flow"], zeros=True)
    assert ours.value == theirs.value
    assert ours.value == value or not directed

    assert ours.flow is not None
    flow = np.array(ours.flow.flow)
    assert (abs(flow) <= capacity).all()
    assert not directed or (flow >= 0).all()
    n_vertices = theirs.graph.vcount()
    excess = np.bincount(head, flow, n_vertices) - np.bincount(tail, flow, n_vertices)
    excess[source] += int(ours.value)
    excess[sink] -= int(ours.value)
    assert not excess.any()

    assert ours.cut is not None
    assert sum(ours.cut.pays) == ours.value
    if ours.cut.unique:
        assert list(ours.cut.edges) == sorted(theirs.cut)


def test_matching(client: Client) -> None:
    """A question of its own, without source and sink."""
    graph = client.put_graph("igraph-matching", tail=LEFT, head=RIGHT, capacity=[1] * len(LEFT))
    theirs = igraph.Graph(list(zip(LEFT, RIGHT, strict=True))).maximum_bipartite_matching([*[0] * 4, *[1] * 5])
    assert graph.matching().size == len(theirs) == MATCHING.value
