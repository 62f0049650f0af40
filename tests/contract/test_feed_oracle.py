"""The feed against an oracle: NetworkX solves each version anew, and the events are what has changed between two."""

import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

from tests.contract.test_feed_live import ids, kept, reading
from tests.serving import Service, eventually, serving

VERTICES = 8
EDGES = 20
WATCHES = {"near": (0, 7), "far": (1, 6)}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with serving(tmp_path_factory.mktemp("oracle"), environment={"HEADRACE_LEASE_S": "2"}) as service:
        yield service


def solved(edges: list[tuple[int, int]], capacity: list[int], source: int, sink: int) -> tuple[int, set[str]]:
    """The value, and the edges out of what the sources reach in the residual network: the cut nearest the sources."""
    graph = nx.DiGraph()
    graph.add_nodes_from(range(VERTICES))
    for (tail, head), amount in zip(edges, capacity, strict=True):
        before = graph.get_edge_data(tail, head, {"capacity": 0})["capacity"]
        graph.add_edge(tail, head, capacity=before + amount)
    residual = nx.algorithms.flow.preflow_push(graph, source, sink, value_only=False)
    reached = {source}
    waiting = [source]
    while waiting:
        vertex = waiting.pop()
        for other, arc in residual[vertex].items():
            if arc["capacity"] > arc["flow"] and other not in reached:
                reached.add(other)
                waiting.append(other)
    leaves = [tail in reached and head not in reached for tail, head in edges]
    cut = {f"e{i}" for i, amount in enumerate(capacity) if leaves[i] and amount}
    return int(residual.graph["flow_value"]), cut


@pytest.mark.parametrize("seed", range(4))
def test_each_version_is_told_as_it_is(service: Service, seed: int) -> None:
    print(f"seed {seed}")
    rng, http, name = random.Random(seed), service.http, f"random{seed}"
    edges = [(rng.randrange(VERTICES), rng.randrange(VERTICES)) for _ in range(EDGES)]
    edges = [(tail, head if head != tail else (tail + 1) % VERTICES) for tail, head in edges]
    capacity = [rng.randrange(6) for _ in edges]
    body = {"n_vertices": VERTICES, "tail": [t for t, _ in edges], "head": [h for _, h in edges], "capacity": capacity}
    generation = http.put(f"/v1/graphs/{name}", json=body | {"edge_ids": [f"e{i}" for i in range(EDGES)]}).json()[
        "generation"
    ]
    for watch, (source, sink) in WATCHES.items():
        answer = http.put(f"/v1/graphs/{name}/watches/{watch}", json={"sources": [source], "sinks": [sink]})
        assert answer.status_code == 201, answer.text
    history = [capacity]
    for _ in range(12):
        capacity = capacity.copy()
        for edge in rng.sample(range(EDGES), rng.randrange(1, 4)):
            capacity[edge] = rng.randrange(6)
        changed = [i for i, (a, b) in enumerate(zip(history[-1], capacity, strict=True)) if a != b] or [0]
        patch = {"edges": [f"e{i}" for i in changed], "set": [capacity[i] for i in changed]}
        query = rng.choice(["", "?solve=none"])
        assert http.patch(f"/v1/graphs/{name}/capacities{query}", json=patch).status_code == 200
        history.append(capacity)
    expected: list[str] = [f"{generation}-1-version"]
    data: dict[str, tuple[int, int, set[str], set[str]]] = {}
    for version, (old, new) in enumerate(pairwise(history), 2):
        expected.append(f"{generation}-{version}-version")
        for watch, (source, sink) in sorted(WATCHES.items()):
            (value, cut), (new_value, new_cut) = solved(edges, old, source, sink), solved(edges, new, source, sink)
            for end, is_told in (("value", value != new_value), ("cut", cut != new_cut)):
                if is_told:
                    expected.append(f"{generation}-{version}-{watch}-{end}")
                    data[expected[-1]] = value, new_value, new_cut - cut, cut - new_cut
    events = kept(http, name, len(expected))
    assert ids(events) == expected
    for event in events:
        if event["id"] in data:
            told = event["data"]
            added, removed = set(told["cut_added"]), set(told["cut_removed"])
            assert (told["old_value"], told["value"], added, removed) == data[event["id"]]


def test_a_reader_sees_a_takeover_as_nothing(tmp_path: Path) -> None:
    """The worker dies for good, with a version committed and perhaps not told: another takes its graphs."""
    with serving(tmp_path, environment={"HEADRACE_WORKERS": "2", "HEADRACE_LEASE_S": "0.5"}) as service:
        http = service.http
        body = {"n_vertices": 3, "tail": [0, 1], "head": [1, 2], "capacity": [5, 5], "source": 0, "sink": 2}
        generation = http.put("/v1/graphs/g", json=body).json()["generation"]
        http.put("/v1/graphs/g/watches/w", json={"on": ["value"]})
        with reading(http, "g") as reader:
            for version in range(2, 8):
                answer = http.patch("/v1/graphs/g/capacities", json={"edges": [0], "set": [version % 5]})
                assert answer.json()["version"] == version
            eventually(lambda: len(reader.events) == 12)
        assert ids(reader.events)[1::2] == [f"{generation}-{version}-w-value" for version in range(2, 8)]
