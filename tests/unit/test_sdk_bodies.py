"""What a graph looks like on the wire, whatever it was given as."""

import io
import json
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from headrace import InvalidInput
from headrace._bodies import CHUNK_BYTES, Body, graph_body


def as_json(body: Body) -> dict[str, Any]:
    assert body.media_type == "application/json"
    assert isinstance(body.data, bytes)
    fields: dict[str, Any] = json.loads(body.data)
    return fields


def as_npz(body: Body) -> dict[str, Any]:
    assert body.media_type == "application/x-npz"
    assert isinstance(body.data, bytes)
    with np.load(io.BytesIO(body.data), allow_pickle=False) as archive:
        return {name: archive[name].tolist() for name in archive.files}


@pytest.mark.parametrize("column", [list, tuple, np.array, lambda values: np.array(values, np.float64)])
def test_whole_columns_travel_as_npz(column: Any) -> None:
    columns = {"tail": [0, 0, 1], "head": np.array([1, 2, 2]), "capacity": column([3, 2, 4])}
    body = graph_body(None, {**columns, "edge_ids": [7, 8, 9], "undirected": True, "source": 0, "sink": None})
    assert as_npz(body) == {
        "tail": [0, 0, 1],
        "head": [1, 2, 2],
        "capacity": [3, 2, 4],
        "edge_ids": [7, 8, 9],
        "undirected": True,
        "source": 0,
        "n_vertices": 3,
    }


@pytest.mark.parametrize(
    "special",
    [
        {"capacity": [3, 2.5]},
        {"capacity": [Decimal("0.1"), 1]},
        {"capacity": np.array([1.0, math.inf])},
        {"capacity": [2**70, 1]},
        {"edge_ids": ["a", "b"]},
        {"tail": ["A", "A"], "head": ["B", "C"]},
        {"vertex_labels": [10, 20, 30], "tail": [10, 10], "head": [20, 30]},
        {"decimals": 2},
    ],
)
def test_labels_decimals_and_inf_travel_as_json(special: dict[str, Any]) -> None:
    columns = {"tail": [0, 0], "head": [1, 2], "capacity": [3, 4], **special}
    fields = as_json(graph_body(None, columns))  # type: ignore[arg-type]
    assert set(fields) >= set(columns)
    assert ("n_vertices" in fields) == ("vertex_labels" not in special and "tail" not in special)


def test_booleans_are_not_made_numbers() -> None:
    fields = as_npz(graph_body(None, {"tail": [0], "head": [1], "capacity": [True]}))
    assert fields["capacity"] == [True]  # for the service to refuse


def test_networkx_by_index() -> None:
    graph = nx.DiGraph()
    graph.add_nodes_from(range(4))
    graph.add_edge(0, 2, capacity=5)
    assert as_npz(graph_body(graph, {"source": 0, "sink": 2})) == {
        "tail": [0],
        "head": [2],
        "capacity": [5],
        "undirected": False,
        "n_vertices": 4,
        "source": 0,
        "sink": 2,
    }


def test_networkx_by_label_and_unlimited_edges() -> None:
    graph = nx.MultiGraph()
    graph.add_edge("s", "t", width=Decimal("1.5"))
    graph.add_edge("s", "t")
    fields = as_json(graph_body(graph, {"capacity": "width"}))
    assert fields == {
        "capacity": [1.5, "inf"],
        "tail": ["s", "s"],
        "head": ["t", "t"],
        "undirected": True,
        "vertex_labels": ["s", "t"],
    }


def test_networkx_nodes_of_other_kinds_go_by_their_text() -> None:
    graph = nx.grid_2d_graph(1, 2)
    fields = as_json(graph_body(graph, {"source": (0, 0)}))  # type: ignore[typeddict-item]
    assert fields["vertex_labels"] == ["(0, 0)", "(0, 1)"]
    assert fields["source"] == "(0, 0)"
    graph = nx.DiGraph([("1", 1)])
    with pytest.raises(InvalidInput, match="same str"):
        graph_body(graph, {})


def test_networkx_integers_with_gaps_are_labels() -> None:
    fields = as_json(graph_body(nx.DiGraph([(10, 30)]), {}))
    assert (fields["tail"], fields["head"], fields["vertex_labels"]) == ([10], [30], [10, 30])


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.coo_array])
def test_scipy(kind: Any) -> None:
    body = graph_body(kind(np.array([[0, 3], [0, 0]])), {"sink": 1})
    assert as_npz(body) == {"tail": [0], "head": [1], "capacity": [3], "n_vertices": 2, "sink": 1}
    with pytest.raises(InvalidInput, match="square"):
        graph_body(sp.csr_matrix(np.zeros((2, 3))), {})


@pytest.mark.parametrize(
    ("name", "media_type", "encoding"),
    [
        ("a.npz", "application/x-npz", None),
        ("a.b.max", "text/x-dimacs", None),
        ("a.csv.gz", "text/csv", "gzip"),
        ("a.mtx.zst", "text/x-matrix-market", "zstd"),
        ("a.arrow", "application/vnd.apache.arrow.stream", None),
    ],
)
def test_files_go_by_their_suffix(tmp_path: Path, name: str, media_type: str, encoding: str | None) -> None:
    path = tmp_path / name
    path.write_bytes(b"x" * (CHUNK_BYTES + 5))
    body = graph_body(path, {})
    sent: list[int] = []
    assert (body.media_type, body.encoding, body.n_bytes) == (media_type, encoding, CHUNK_BYTES + 5)
    assert b"".join(body.chunks(sent.append)) == path.read_bytes()
    assert sent == [CHUNK_BYTES, CHUNK_BYTES + 5]


def test_what_is_no_graph(tmp_path: Path) -> None:
    (tmp_path / "a.txt").touch()
    for graph, columns in (
        (tmp_path / "a.txt", {}),
        (tmp_path / "missing.npz", {}),
        (tmp_path, {"source": 1}),
        ([[0, 1]], {}),
        (None, {"tail": [0]}),
    ):
        with pytest.raises(InvalidInput):
            graph_body(graph, columns)  # type: ignore[arg-type]
