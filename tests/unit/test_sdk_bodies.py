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
from headrace import GraphColumns, InvalidInput, Update
from headrace._amounts import dumps
from headrace._bodies import CHUNK_BYTES, Body, graph_body, graph_params


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
        {"capacity": [Decimal("0.1"), 1]},
        {"capacity": [2**70, 1]},
        {"capacity": [2**53 + 1, 0.5]},
        {"capacity": np.array([2.0**60, 0.5])},
        {"edge_ids": ["a", "b"]},
        {"tail": ["A", "A"], "head": ["B", "C"]},
        {"vertex_labels": [10, 20, 30], "tail": [10, 10], "head": [20, 30]},
    ],
)
def test_labels_and_what_no_float_holds_travel_as_json(special: dict[str, Any]) -> None:
    columns = {"tail": [0, 0], "head": [1, 2], "capacity": [3, 4], **special}
    fields = as_json(graph_body(None, columns))  # type: ignore[arg-type]
    assert set(fields) >= set(columns)
    assert ("n_vertices" in fields) == ("vertex_labels" not in special and "tail" not in special)


@pytest.mark.parametrize(
    "capacity",
    [
        [3, 2.5, math.inf],
        [np.int32(3), np.float64(2.5), math.inf],
        np.array([3, 2.5, math.inf]),
        np.array([3, 2.5, math.inf], object),
        np.array([3, 2.5, math.inf], np.float32),
        [np.float32(3), np.float32(2.5), np.float32(math.inf)],
    ],
)
def test_floats_travel_as_npz(capacity: Any) -> None:
    """The service reads each as its shortest decimal, as it reads JSON."""
    body = graph_body(None, {"tail": [0, 0, 0], "head": [1, 2, 3], "capacity": capacity})
    assert as_npz(body)["capacity"] == [3, 2.5, math.inf]


def test_npz_has_the_columns_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """That of NumPy 2.0 takes each keyword for the name of an array."""
    written: list[set[str]] = []
    monkeypatch.setattr(np, "savez", lambda _, **arrays: written.append({*arrays}))
    graph_body(None, {"tail": [0], "head": [1], "capacity": [2]})
    assert written == [{"tail", "head", "capacity", "n_vertices"}]


def test_decimals_and_rounding_stand_beside_any_body(tmp_path: Path) -> None:
    (tmp_path / "a.csv").touch()
    options: GraphColumns = {"decimals": 6, "rounding": "nearest"}
    assert graph_params(options) == {"decimals": "6", "rounding": "nearest"}
    assert graph_params({"decimals": 0}) == {"decimals": "0"}
    assert "decimals" not in as_npz(graph_body(None, {"tail": [0], "head": [1], "capacity": [3], **options}))
    assert graph_body(tmp_path / "a.csv", options).data == tmp_path / "a.csv"
    with pytest.raises(InvalidInput, match="needs decimals="):
        graph_params({"rounding": "up"})


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


@pytest.mark.parametrize("kind", [nx.DiGraph, nx.MultiDiGraph])
def test_a_function_may_say_the_capacities_of_a_networkx_graph(kind: type) -> None:
    """As NetworkX's own flows take one: of tail, head and attributes, None for an edge that is hidden."""
    graph = kind()
    graph.add_edge("s", "a", lanes=2)
    graph.add_edge("a", "t", lanes=3)
    graph.add_edge("s", "t", lanes=0)

    def width(tail: str, head: str, attributes: dict[str, int]) -> int | None:
        return 100 * attributes["lanes"] + (tail == "s") if attributes["lanes"] else None

    sent = as_json(graph_body(graph, {"capacity": width}))
    ends = zip(sent["tail"], sent["head"], sent["capacity"], strict=True)
    assert sorted(ends) == [("a", "t", 300), ("s", "a", 201), ("s", "t", 0)]
    with pytest.raises(InvalidInput, match="names an edge attribute, or is a function of an edge's tail, head"):
        graph_body(graph, {"capacity": [1, 2, 3]})


def test_attributes_of_edges_may_be_their_ids_and_say_which_are_closed() -> None:
    graph = nx.DiGraph()
    graph.add_edge(0, 1, capacity=3, id="a", shut=True)
    graph.add_edge(1, 2, capacity=2, id="b")
    sent = as_json(graph_body(graph, {"edge_ids": "id", "closed": "shut"}))
    assert (sent["edge_ids"], sent["closed"]) == (["a", "b"], [True, False])
    assert not any(as_npz(graph_body(graph, {"closed": "closed"}))["closed"])  # as `to_networkx` with no closed edge
    assert as_npz(graph_body(graph, {"edge_ids": [7, 8], "closed": [False, True]}))["edge_ids"] == [7, 8]
    with pytest.raises(InvalidInput, match="no edge has the attribute 'shutt', which closed= names"):
        graph_body(graph, {"closed": "shutt"})
    with pytest.raises(InvalidInput, match="edge 1 has no attribute 'shut', which edge_ids= names"):
        graph_body(graph, {"edge_ids": "shut"})
    graph.edges[1, 2]["shut"] = "yes"
    with pytest.raises(InvalidInput, match="the attribute 'shut' of edges is True or False, not 'yes'"):
        graph_body(graph, {"closed": "shut"})


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


def test_a_networkx_graph_without_the_attribute_is_refused() -> None:
    graph = nx.DiGraph()
    graph.add_edge("s", "t", weight=3, km=4)
    for capacity in ({}, {"capacity": "capacty"}):
        with pytest.raises(InvalidInput, match=r"no edge has the attribute .*: use capacity= with one of km, weight"):
            graph_body(graph, capacity)  # type: ignore[arg-type]  # what a caller must not send
    with pytest.raises(InvalidInput, match="no attributes at all"):
        graph_body(nx.path_graph(3), {})
    assert as_npz(graph_body(nx.empty_graph(3), {}))["n_vertices"] == 3


def test_networkx_floats() -> None:
    graph = nx.DiGraph()
    graph.add_edge(0, 1, capacity=1 / 3)
    graph.add_edge(0, 2, capacity=0.1 + 0.2)
    graph.add_edge(0, 3, capacity=1)
    assert as_npz(graph_body(graph, {}))["capacity"] == [1 / 3, 0.1 + 0.2, 1]


def test_networkx_nodes_of_other_kinds_go_by_their_text() -> None:
    graph = nx.grid_2d_graph(1, 2)
    nx.set_edge_attributes(graph, 1, "capacity")
    fields = as_json(graph_body(graph, {"source": (0, 0)}))  # type: ignore[typeddict-item]
    assert fields["vertex_labels"] == ["(0, 0)", "(0, 1)"]
    assert fields["source"] == "(0, 0)"
    graph = nx.DiGraph([("1", 1)])
    with pytest.raises(InvalidInput, match="the nodes '1' and 1 have the same str"):
        graph_body(graph, {})


def test_networkx_integers_with_gaps_are_labels() -> None:
    fields = as_json(graph_body(nx.DiGraph([(10, 30, {"capacity": 1})]), {}))
    assert (fields["tail"], fields["head"], fields["vertex_labels"]) == ([10], [30], [10, 30])


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.coo_array])
def test_scipy(kind: Any) -> None:
    body = graph_body(kind(np.array([[0, 3], [0, 0]])), {"sink": 1})
    assert as_npz(body) == {"tail": [0], "head": [1], "capacity": [3], "n_vertices": 2, "sink": 1}
    with pytest.raises(InvalidInput, match="square"):
        graph_body(sp.csr_matrix(np.zeros((2, 3))), {})


@pytest.mark.parametrize("kind", [int, float, bool, np.uint64])
def test_dense_arrays(kind: Any) -> None:
    body = graph_body(np.array([[0, 3, 0], [0, 0, 2], [0, 0, 0]], kind), {"source": 0})
    capacity = [1, 1] if kind is bool else [3, 2]
    assert as_npz(body) == {"tail": [0, 1], "head": [1, 2], "capacity": capacity, "n_vertices": 3, "source": 0}
    for shape in ((2, 3), (4,), (1, 1, 1)):
        with pytest.raises(InvalidInput, match="square"):
            graph_body(np.zeros(shape), {})


class Series:
    """What pandas and Polars have in common."""

    def __init__(self, values: list[Any]) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def to_numpy(self) -> Any:
        kind = None if all(isinstance(value, int | float) for value in self.values) else object
        return np.array(self.values, kind)


class Table(dict[str, Series]):
    """A frame that is no mapping to callers of `columns`."""

    @property
    def columns(self) -> list[str]:
        return list(self)


def frames() -> list[Any]:
    kinds: list[Any] = [lambda data: Table({name: Series(column) for name, column in data.items()})]
    try:
        import pandas as pd
    except ImportError:
        return kinds
    return [*kinds, pd.DataFrame]


def series_kinds() -> list[Any]:
    try:
        import pandas as pd
    except ImportError:
        return [Series]
    return [Series, pd.Series]


@pytest.mark.parametrize("frame", [dict, *frames()])
def test_tables(frame: Any) -> None:
    table = frame({"tail": [0, 0], "head": [1, 2], "capacity": [1.5, math.inf], "name": ["x", "y"]})
    assert as_npz(graph_body(table, {})) == {
        "tail": [0, 0],
        "head": [1, 2],
        "capacity": [1.5, math.inf],
        "n_vertices": 3,
    }
    table = frame(
        {"from": ["A", "A"], "to": ["B", "C"], "km": [3, 4], "edge_ids": ["x", "y"], "undirected": [True, False]}
    )
    fields = as_json(graph_body(table, {"tail": "from", "head": "to", "capacity": "km", "source": "A"}))
    assert fields == {
        "tail": ["A", "A"],
        "head": ["B", "C"],
        "capacity": [3, 4],
        "edge_ids": ["x", "y"],
        "undirected": [True, False],
        "source": "A",
    }
    fields = as_json(graph_body(table, {"tail": "from", "head": "to", "capacity": [1, 2], "edge_ids": "km"}))
    assert (fields["capacity"], fields["edge_ids"]) == ([1, 2], [3, 4])
    with pytest.raises(InvalidInput, match="no column 'tail' for tail=; its columns are from, to"):
        graph_body(table, {"head": "to", "capacity": "km"})


@pytest.mark.parametrize("series", series_kinds())
def test_series_are_columns(series: Any) -> None:
    body = graph_body(None, {"tail": series([0, 0]), "head": series([1, 2]), "capacity": series([1.5, 2])})
    assert as_npz(body)["capacity"] == [1.5, 2]
    update = Update(edges=series(["a", "b"]), set=series([0.1, 2.5]))
    assert json.loads(dumps(update.as_json())) == {"edges": ["a", "b"], "set": [0.1, 2.5]}
    with pytest.raises(InvalidInput, match="set has 1 amount for 2 edges"):
        Update(edges=series([1, 2]), set=series([1])).as_json()


@pytest.mark.parametrize("wrong", ["from", b"abcd", 3, {"a": 1}])
def test_a_column_is_no_scalar(wrong: Any) -> None:
    with pytest.raises(InvalidInput, match="tail is a column"):
        graph_body(None, {"tail": wrong, "head": [1], "capacity": [1]})


@pytest.mark.parametrize(
    ("name", "begins", "media_type", "encoding"),
    [
        ("a.npz", b"PK", "application/x-npz", None),
        ("a.b.max", b"p max", "text/x-dimacs", None),
        ("a.csv.gz", b"\x1f\x8b", "text/csv", "gzip"),
        ("a.csv", b"\x1f\x8b", "text/csv", "gzip"),
        ("a.csv.gz", b"tail", "text/csv", None),
        ("a.mtx.zst", b"\x28\xb5\x2f\xfd", "text/x-matrix-market", "zstd"),
        ("a.arrow", b"\xff\xff\xff\xff", "application/vnd.apache.arrow.stream", None),
        ("A.CSV.GZ", b"\x1f\x8b", "text/csv", "gzip"),
    ],
)
def test_files_go_by_their_suffix_and_by_how_they_begin(
    tmp_path: Path, name: str, begins: bytes, media_type: str, encoding: str | None
) -> None:
    path = tmp_path / name
    path.write_bytes(begins.ljust(CHUNK_BYTES + 5, b"x"))
    body = graph_body(str(path), {})
    assert body == graph_body(path, {})
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


def test_a_table_that_has_not_been_computed_is_no_graph() -> None:
    """As a LazyFrame of Polars."""

    class LazyFrame(Table):
        def collect(self) -> Table:
            return Table(self)

    lazy = LazyFrame({name: Series([0]) for name in ("tail", "head", "capacity")})
    with pytest.raises(InvalidInput, match=r"LazyFrame has not been computed; send the table of its collect\(\)"):
        graph_body(lazy, {})
    assert as_npz(graph_body(lazy.collect(), {}))["tail"] == [0]


def test_nodes_that_are_integers_of_numpy_are_integers() -> None:
    """As `add_edges_from` finds them in an array; by their `str()` nobody who asks for vertex 1 would find them."""
    graph = nx.DiGraph()
    graph.add_edges_from(np.array([[0, 1], [1, 2]]), capacity=1)
    graph.add_edge(2, np.uint8(3), capacity=2)
    assert as_npz(graph_body(graph, {}))["tail"] == [0, 1, 2]
    named = nx.relabel_nodes(graph, {0: np.int64(70)})
    assert as_json(graph_body(named, {}))["vertex_labels"] == [70, 1, 2, 3]
