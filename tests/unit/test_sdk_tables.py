"""Tables as graphs: what they say beside the columns of `put_graph` counts, or is refused."""

import io
import json
import math
from typing import Any, get_args, get_type_hints

import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from headrace import Amounts, GraphColumns, Ids, InvalidInput, Series, Terminals
from headrace._bodies import Body, graph_body

from gpu_engine.formats.arrow import read_tables, write_arrow
from gpu_engine.formats.limits import DEFAULT_LIMITS
from gpu_engine.formats.npz import read_npz, write_npz
from gpu_engine.networks.edgelist import EdgeList

TABLE: dict[str, Any] = {"tail": [0, 0], "head": [1, 2], "capacity": [3, 0]}


def as_json(body: Body) -> dict[str, Any]:
    assert isinstance(body.data, bytes)
    fields: dict[str, Any] = json.loads(body.data)
    return fields


def as_npz(body: Body) -> dict[str, Any]:
    assert isinstance(body.data, bytes)
    with np.load(io.BytesIO(body.data), allow_pickle=False) as archive:
        return {name: archive[name].tolist() for name in archive.files}


@pytest.mark.parametrize("of", [dict, pa.table, lambda data: {name: np.array(each) for name, each in data.items()}])
def test_an_unlimited_edge_has_no_capacity_of_zero(of: Any) -> None:
    sent = as_npz(graph_body(of(TABLE | {"unlimited": [False, True], "closed": [True, False]}), {"decimals": 0}))
    assert (sent["capacity"], sent["closed"]) == ([3, math.inf], [True, False])
    whole = as_npz(graph_body(of(TABLE | {"unlimited": [False, False]}), {"decimals": 0}))
    assert whole["capacity"] == [3, 0]
    named = as_npz(
        graph_body(of(TABLE | {"km": [1, 2], "unlimited": [True, False]}), {"capacity": "km", "decimals": 0})
    )
    assert named["capacity"] == [math.inf, 2]
    beside = as_npz(graph_body(of(TABLE | {"unlimited": [True, False]}), {"capacity": [7, 8]}))
    assert beside["capacity"] == [7, 8]


def test_arrow_arrays_of_texts_are_columns() -> None:
    """An array of Arrow by itself, which gives texts away by a copy alone; one in a table gives them anyhow."""
    texts = {"tail": pa.array(["s", "a"]), "head": pa.array(["a", "t"]).dictionary_encode()}
    columns: dict[str, Any] = texts | {"capacity": pa.array([3, 2]), "closed": pa.array([True, False])}
    sent = as_json(graph_body(None, columns))  # type: ignore[arg-type]  # a dict, and no `GraphColumns`
    assert (sent["tail"], sent["head"], sent["closed"]) == (["s", "a"], ["a", "t"], [True, False])
    assert as_json(graph_body(pa.RecordBatch.from_pydict(columns), {}))["head"] == ["a", "t"]


def test_a_large_amount_beside_an_unlimited_one_stays_exact() -> None:
    sent = as_json(
        graph_body(pa.table(TABLE | {"capacity": [2**60 + 1, 0], "unlimited": [False, True]}), {"decimals": 0})
    )
    assert sent["capacity"] == [2**60 + 1, "inf"]


@pytest.mark.parametrize("flag", ["unlimited", "closed"])
@pytest.mark.parametrize("wrong", [["yes", "no"], [1, 0], [True, None]])
def test_a_flag_is_true_or_false(flag: str, wrong: list[Any]) -> None:
    with pytest.raises(InvalidInput, match=f"the column '{flag}' .* other values than true and false"):
        graph_body(TABLE | {flag: wrong}, {"decimals": 0})


def exported() -> EdgeList:
    """Undirected edges of 2.5 and without limit, the second one closed; the last vertex has none."""
    return read_npz(
        npz(
            tail=[0, 1],
            head=[1, 2],
            capacity=[25, 0],
            unlimited=[False, True],
            closed=[False, True],
            decimals=1,
            lower=None,
            n_vertices=4,
            undirected=True,
            source=0,
            sink=2,
        )
    )


def npz(**columns: Any) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **{name: np.asarray(column) for name, column in columns.items() if column is not None})
    return buffer.getvalue()


def tables() -> list[Any]:
    archive = np.load(io.BytesIO(write_npz(exported())), allow_pickle=False)
    return [archive, read_tables(write_arrow(exported()), DEFAULT_LIMITS, (100, 100))[0]]


@pytest.mark.parametrize("table", tables(), ids=["npz", "arrow"])
def test_what_a_file_of_the_service_says_beside_its_columns_counts(table: Any) -> None:
    sent = as_json(graph_body(table, {}))
    assert sent["capacity"] == [2.5, "inf"]
    assert sent["closed"] == [False, True]
    assert (np.all(sent["undirected"]), sent["n_vertices"], sent["source"], sent["sink"]) == (True, 4, 0, 2)
    assert as_json(graph_body(table, {"source": 1}))["source"] == 1


@pytest.mark.parametrize(
    "drop",
    [
        lambda table: table.to_pandas(),
        lambda table: table.replace_schema_metadata(None),
        lambda table: table.to_pydict(),
        lambda table: table.to_pandas().astype(object),
    ],
    ids=["pandas", "arrow", "lists", "objects"],
)
def test_units_of_which_nothing_says_the_size_are_no_amounts(drop: Any) -> None:
    """Of 2.5 to one decimal they would make 25."""
    table = drop(read_tables(write_arrow(exported()), DEFAULT_LIMITS, (100, 100))[0])
    said: list[GraphColumns] = [{}, {"decimals": 1}]
    for each in said:
        with pytest.raises(
            InvalidInput, match=r"beside whole capacities.*with decimals=0 they are taken as they stand"
        ):
            graph_body(table, each)
    assert as_npz(graph_body(table, {"decimals": 0}))["capacity"] == [25, math.inf]
    assert as_npz(graph_body(table, {"capacity": [2.5, 3]}))["capacity"] == [2.5, 3]


def test_units_that_were_divided_are_amounts() -> None:
    table = read_tables(write_arrow(exported()), DEFAULT_LIMITS, (100, 100))[0].to_pandas()
    table["capacity"] /= 10
    assert as_npz(graph_body(table, {}))["capacity"] == [2.5, math.inf]


def test_a_page_says_how_many_decimals_its_amounts_have() -> None:
    """As `GET capacities` answers in npz and in Arrow."""
    said = {"version": 1, "decimals": 1, "cost_decimals": 2}
    columns = {"tail": [0], "head": [1], "capacity": [25], "unlimited": [False], "cost": [375], "lower": [5]}
    answer = np.frombuffer(json.dumps(said).encode(), np.uint8)
    page = np.load(io.BytesIO(npz(**columns, answer=answer)), allow_pickle=False)
    metadata = {"decimals": "1", "cost_decimals": "2", "answer": json.dumps(said)}
    for table in (page, pa.table(columns).replace_schema_metadata(metadata)):
        sent = as_json(graph_body(table, {}))
        assert (sent["capacity"], sent["cost"], sent["lower"]) == ([2.5], [3.75], [0.5])


def test_a_page_in_npz_keeps_its_texts() -> None:
    """Each column of them is two arrays: ids that were not seen would be numbers."""
    told = np.frombuffer(b'{"version": 1, "decimals": 0}', np.uint8)
    ids = {"edge_ids.utf8": np.frombuffer("aé".encode(), np.uint8), "edge_ids.offsets": [0, 1, 3]}
    page = np.load(io.BytesIO(npz(**TABLE, **ids, answer=told)), allow_pickle=False)
    assert as_json(graph_body(page, {}))["edge_ids"] == ["a", "é"]


def test_what_a_mapping_says_of_the_graph_counts() -> None:
    table = {"tail": ["a"], "head": ["b"], "capacity": [3], "vertex_labels": ["a", "b", "c"], "source": "a"}
    sent = as_json(graph_body(table, {}))
    assert (sent["vertex_labels"], sent["source"]) == (["a", "b", "c"], "a")
    limited = {"vertices": np.array([0, 1]), "vertex_capacity": np.array([2, 0]), "vertex_unlimited": [False, True]}
    assert as_npz(graph_body(TABLE | limited, {}))["vertex_capacity"] == [2, math.inf]
    with pytest.raises(InvalidInput, match="decimals= is no column"):
        graph_body(TABLE | {"decimals": 2}, {})


@pytest.mark.parametrize(
    "beside",
    [
        {},
        {"n_vertices": 3},
        {"vertex_labels": ["s", "a", "t"], "tail": ["s", "s", "a"], "head": ["a", "t", "t"]},
        {"tail": ["s", "s", "a"], "head": ["a", "t", "t"]},
        {"tail": [0, 1], "head": [1, 2], "capacity": [1, 1]},
    ],
    ids=["indices", "counted", "labels", "texts", "fewer edges"],
)
def test_a_mapping_says_where_its_vertices_lie(beside: dict[str, Any]) -> None:
    """As the same columns do as keywords, with no `crs` among them, and as JSON does."""
    columns = {
        "tail": [0, 0, 1],
        "head": [1, 2, 2],
        "capacity": [2, 1, 3],
        "x": [8.5, 8.7, 9.5],
        "y": [49.5, 49.7, 50.5],
    }
    columns |= beside
    keywords: Any = columns
    of_dict, of_keywords = graph_body(columns, {}), graph_body(None, keywords)
    read = as_json if of_dict.media_type == "application/json" else as_npz
    assert read(of_dict) == read(of_keywords)
    assert (read(of_dict)["x"], read(of_dict)["y"]) == (columns["x"], columns["y"])
    assert b"x" in bytes(graph_body(columns, {"crs": "EPSG:3857"}).data)  # type: ignore[arg-type]  # no file


@pytest.mark.parametrize("said", [{}, {"n_vertices": 4}, {"vertex_labels": [0, 1, 2, 3]}])
def test_places_of_edges_are_no_places_of_vertices(said: GraphColumns) -> None:
    table = {"tail": [0, 2], "head": [1, 3], "capacity": [2, 1], "x": [8.5, 8.7], "y": [49.5, 49.7]}
    assert graph_body(table, said) == graph_body({name: table[name] for name in ("tail", "head", "capacity")}, said)


@pytest.mark.parametrize("labels", [["s", "a", "t"], [2, 0, 1]])
@pytest.mark.parametrize("read", [lambda archive: archive, dict], ids=["archive", "dict"])
def test_an_archive_has_indices_of_its_names(labels: list[Any], read: Any) -> None:
    """As every export of a graph with named vertices; integers would be taken for other vertices."""
    columns = {"tail": [0, 1], "head": [1, 2], "capacity": [3, 4], "decimals": 0, "source": 0, "sink": 2}
    limited = {"vertices": [1], "vertex_capacity": [2], "vertex_unlimited": [False]}
    archive = np.load(io.BytesIO(npz(**columns, **limited, vertex_labels=labels)), allow_pickle=False)
    sent = as_json(graph_body(read(archive), {}))
    assert sent["vertex_labels"] == labels
    assert (sent["tail"], sent["head"]) == (labels[:2], labels[1:])
    assert (sent["source"], sent["sink"], sent["vertices"]) == (labels[0], labels[2], [labels[1]])
    assert as_json(graph_body(read(archive), {"source": labels[1]}))["source"] == labels[1]
    wrong = np.load(io.BytesIO(npz(**columns | {"tail": [0, 3]}, vertex_labels=labels)), allow_pickle=False)
    with pytest.raises(InvalidInput, match="tail of the archive has other values than indices of its 3 names"):
        graph_body(read(wrong), {})


@pytest.mark.parametrize(
    ("name", "meant", "way"),
    [
        ("undirceted", "undirected", "say undirected='undirceted'"),
        ("undirectd", "undirected", "say undirected='undirectd'"),
        ("clsoed", "closed", "say closed='clsoed'"),
        ("edge_idss", "edge_ids", "say edge_ids='edge_idss'"),
        ("unlimitd", "unlimited", "call it so"),
        ("csot", "cost", "say cost='csot'"),
        ("lowre", "lower", "say lower='lowre'"),
        ("vertex_lables", "vertex_labels", "call it so"),
        ("n_vertcies", "n_vertices", "call it so"),
        ("soruce", "source", "call it so"),
    ],
)
def test_a_misspelt_column_is_not_passed_over(name: str, meant: str, way: str) -> None:
    with pytest.raises(
        InvalidInput, match=rf"a column '{name}': did you mean '{meant}'\? Then {way}; if it is something"
    ):
        graph_body(TABLE | {name: [True, False]}, {})
    if "say" in way:
        said: Any = {meant: [0, 0] if meant in ("cost", "lower") else [True, False]}
        graph_body(TABLE | {name: [True, False]}, said)


def test_a_column_may_have_levels_of_names() -> None:
    table = pd.DataFrame({("a", "u"): [0], ("a", "v"): [1], ("b", "km"): [2.5], ("b", "shut"): [True]})
    names: Any = {"tail": ("a", "u"), "head": ("a", "v"), "capacity": ("b", "km"), "closed": ("b", "shut")}
    sent = as_npz(graph_body(table, names))
    assert (sent["tail"], sent["head"], sent["capacity"], sent["closed"]) == ([0], [1], [2.5], [True])
    assert as_npz(graph_body(TABLE, {"tail": (1, 1)}))["tail"] == [1, 1]  # type: ignore[arg-type]  # a tuple of values


def test_an_array_of_fields_is_told_how_to_become_columns() -> None:
    array = np.array([(0, 1, 2.5)], [("tail", int), ("head", int), ("capacity", float)])
    with pytest.raises(
        InvalidInput, match=r"of the fields tail, head, capacity; send \{name: array\[name\] for name in"
    ):
        graph_body(array, {})
    assert array.dtype.names
    assert as_npz(graph_body({name: array[name] for name in array.dtype.names}, {}))["capacity"] == [2.5]


def test_a_column_may_be_called_as_the_caller_says() -> None:
    assert as_npz(graph_body(TABLE | {"clsoed": [True, False]}, {"closed": "clsoed"}))["closed"] == [True, False]


ORDINARY = """
id ids name names edge edges edge_id edge_idx edge_no length lanes label labels type kind weight weights distance dist
capacity_max max_capacity cap capacities lower_bound lowest slower flower power costs cast post coast lost fixed_cost
upper direct directed oneway one_way undirect limited limit unlimited_speed close closes closer closing enclosed open
opened disclosed sources target sinks link links node nodes vertex n n_nodes from to u v key osmid ref maxspeed highway
geometry time travel_time speed flow value color colour group layer level year date start end head_id tail_id heads
tails header detail lon lat lng z decimal precision comment note tag tags Undirected Closed Cost Lower Id Edge_IDs
"""


@pytest.mark.parametrize("of", [dict, pa.table])
def test_ordinary_columns_of_a_table_are_left_alone(of: Any) -> None:
    others = {name: [1, 2] for name in ORDINARY.split()}
    assert graph_body(of(TABLE | others), {}) == graph_body(of(TABLE), {})


def test_names_in_a_second_table_are_not_lost() -> None:
    table = pa.table(TABLE).replace_schema_metadata({"labelled": "true"})
    with pytest.raises(InvalidInput, match="send the file, by its path"):
        graph_body(table, {})


@pytest.mark.parametrize(
    ("graph", "columns", "told"),
    [
        (nx.DiGraph([(0, 1, {"capacity": 1})]), {"undirected": True}, "its own undirected"),
        (nx.DiGraph([(0, 1, {"capacity": 1})]), {"n_vertices": 9}, "its own n_vertices"),
        (nx.DiGraph([(0, 1, {"capacity": 1})]), {"vertex_labels": ["a", "b"]}, "its own vertex_labels"),
        (sp.csr_array(np.array([[0, 1], [0, 0]])), {"tail": [0]}, "its own tail"),
        (np.array([[0, 1], [0, 0]]), {"capacity": [4]}, "its own capacity"),
    ],
)
def test_what_a_graph_says_itself_is_not_said_twice(graph: Any, columns: Any, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        graph_body(graph, columns)


def test_what_agrees_with_the_graph_may_be_said() -> None:
    graph = nx.DiGraph([(0, 1, {"capacity": 1})])
    assert as_npz(graph_body(graph, {"undirected": False, "n_vertices": 2}))["n_vertices"] == 2


def test_types_know_that_a_series_may_go_wherever_a_column_may() -> None:
    columns = get_type_hints(GraphColumns)
    lists = [name for name, taken in columns.items() if any("Sequence" in str(each) for each in get_args(taken))]
    assert len(lists) == 11
    for taken in (Amounts, Ids, Terminals, *(columns[name] for name in lists)):
        assert Series in get_args(taken)
