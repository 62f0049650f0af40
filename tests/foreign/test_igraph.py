"""The networks of igraph's documentation: the service answers what igraph does."""

from collections.abc import Iterator
from typing import NamedTuple

import igraph
import numpy as np
import pytest
from headrace import Client, InvalidInput
from headrace.igraph import as_flow, maxflow


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
def client(service_url: str) -> Iterator[Client]:
    with Client(service_url) as client:
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
    flow = np.array(ours.flow.amount)
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


@pytest.mark.parametrize("directed", [True, False], ids=["directed", "undirected"])
def test_maxflow_as_igraph_answers(service_url: str, directed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same object with the same value; partition and cut agree with each other."""
    monkeypatch.setenv("HEADRACE_URL", service_url)
    tail, head, capacity, source, sink, _ = TUTORIAL
    network = igraph.Graph(list(zip(tail, head, strict=True)), directed=directed, edge_attrs={"width": capacity})
    ours, theirs = maxflow(network, source, sink, "width"), network.maxflow(source, sink, "width")
    assert type(ours) is type(theirs)
    assert ours.value == theirs.value
    assert sum(capacity[edge] for edge in ours.cut) == ours.value
    assert source in ours.partition[0]
    assert sink in ours.partition[1]
    ends = np.array(network.get_edgelist())
    excess = np.bincount(ends[:, 1], ours.flow, 6) - np.bincount(ends[:, 0], ours.flow, 6)
    assert excess[[source, sink]].tolist() == [-ours.value, ours.value]
    assert maxflow(network, source, sink).value == network.maxflow(source, sink).value


def test_ends_are_named_as_igraph_takes_them(service_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_URL", service_url)
    network = igraph.Graph([(0, 1), (1, 2)], directed=True, vertex_attrs={"name": ["s", "a", "t"]})
    for source, target in (("s", "t"), (network.vs[0], network.vs[2]), (np.int64(0), "t")):
        assert maxflow(network, source, target).value == network.maxflow(source, target).value == 1
    with pytest.raises(ValueError, match="no such vertex: 'b'"):
        maxflow(network, "s", "b")


def test_answers_about_a_resident_graph_as_igraph_has_them(client: Client) -> None:
    network = igraph.Graph([(0, 1), (1, 2)], directed=True, edge_attrs={"capacity": [2.5, 4]})
    resident = client.put_graph("igraph-resident", network)
    resident.patch(edges=[0], set=[3])
    flow = as_flow(network, resident.max_flow(0, 2, fields=["flow", "cut"]))
    assert (flow.value, flow.flow, flow.cut, flow.partition) == (3.0, [3.0, 3.0], [0], [[0], [1, 2]])
    with pytest.raises(InvalidInput, match="no cut"):
        as_flow(network, resident.max_flow(0, 2, fields=["flow"]))
    with pytest.raises(InvalidInput, match="another graph"):
        as_flow(igraph.Graph(2), resident.max_flow(0, 2, fields=["flow", "cut"]))
