"""Coordinates of vertices: what is refused of them, what becomes of them in memory and in what is stored, and maps."""

import json
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_engine.errors import EngineError, InvalidNetwork
from gpu_engine.formats import _vertices, pack, read_arrow, read_json, read_npz, unpack, write_arrow
from gpu_engine.formats.geojson import write_floats, write_lines
from gpu_engine.networks.coordinates import SAME_AS_WGS84, Coordinates, check_crs, is_wgs84, joined_places
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.growing import grow, growing_bytes
from gpu_engine.networks.network import Network
from gpu_engine.networks.structure import Structure, only, since_load, with_inserted
from gpu_engine.text.texts import Texts
from gpu_engine.types import INFINITE
from service.console.files import assets
from service.protocol import EdgesArgs, EdgesOperation, EmptyArgs, Kind, MaxFlowArgs, VerticesArgs
from service.store.blobs import Blobs
from service.store.keys import Keys
from service.store.structures import pack_structure, unpack_structure
from tests.cases import cases
from tests.service_fixtures import Caller, StartWorker, code_of

X, Y = np.array([8.69, -0.0, 1e-300]), np.array([49.41, 0.1 + 0.2, -91.0])
PLAIN = EdgeList(
    n_vertices=3,
    tail=np.array([0, 1], np.int32),
    head=np.array([1, 2], np.int32),
    capacity=np.array([3, 4]),
    vertex_labels=["a", "b", "c"],
)
CITY = replace(PLAIN, coordinates=Coordinates(X, Y))
MORE = Structure(n_vertices=2, vertex_labels=["d", "e"], x=np.array([1.0, 2.0]), y=np.array([3.0, 4.0]))


def stream(edges: dict[str, Any], vertices: dict[str, Any] | None = None, **metadata: str) -> bytes:
    sink = pa.BufferOutputStream()
    for columns, said in ((edges, metadata), (vertices, {})):
        if columns is not None:
            table = pa.table(columns).replace_schema_metadata(said)
            with pa.ipc.new_stream(sink, table.schema) as writer:
                writer.write_table(table)
    body: bytes = sink.getvalue().to_pybytes()
    return body


EDGES = {"tail": [0, 1], "head": [1, 2], "capacity": [3, 4]}


def test_an_arrow_file_of_numbered_vertices() -> None:
    edges = read_arrow(stream(EDGES, {"x": [1, 2, 3], "y": pa.array([1.5, 2, 3], pa.float32())}, crs="EPSG:3857"))
    assert edges.coordinates is not None
    assert (edges.coordinates.x.tolist(), edges.coordinates.y.tolist()) == ([1, 2, 3], [1.5, 2, 3])
    assert edges.coordinates.crs == "EPSG:3857"


@pytest.mark.parametrize(
    ("vertices", "metadata", "field"),
    [
        ({"x": [1, 2, 3]}, {}, "/y"),
        ({"x": [1, 2, 3], "y": ["1", "2", "3"]}, {}, "/y"),
        ({"x": [1, 2, None], "y": [1, 2, 3]}, {}, "/x"),
        ({"x": [1, 2, float("inf")], "y": [1, 2, 3]}, {}, "/x"),
        ({"x": [1, 2], "y": [1, 2]}, {}, "/x"),
        ({"x": [1, 2, 3], "y": [1, 2, 3]}, {"crs": "\n"}, "/crs"),
        ({"x": [1, 2, 3], "y": [1, 2, 3]}, {"crs": "E" * 65}, "/crs"),
        ({"label": ["a", "b", "c"]}, {"crs": "EPSG:4326"}, "/crs"),
        (None, {"crs": "EPSG:4326"}, "/crs"),
    ],
)
def test_arrow_files_that_are_refused(vertices: Any, metadata: Any, field: str) -> None:
    with pytest.raises(InvalidNetwork) as refused:
        read_arrow(stream(EDGES, vertices, **metadata))
    assert refused.value.where.field == field


def test_the_name_of_coordinates_is_a_text() -> None:
    with pytest.raises(InvalidNetwork) as refused:
        read_json(b'{"tail":[0],"head":[1],"capacity":[1],"x":[0,1],"y":[0,1],"crs":1.5}')
    assert refused.value.where.field == "/crs"


def test_spaces_around_the_name_of_coordinates_are_no_part_of_it() -> None:
    places = {"x": [1, 2, 3], "y": [1, 2, 3]}
    columns = {"tail": [0, 1], "head": [1, 2], "capacity": [1, 1], **places, "crs": "  EPSG:4326 "}
    for edges in (read_json(json.dumps(columns).encode()), read_arrow(stream(EDGES, places, crs=" EPSG:4326  "))):
        assert edges.coordinates is not None
        assert edges.coordinates.crs == "EPSG:4326"
        assert edges.coordinates.is_wgs84


@pytest.mark.parametrize("crs", ["epsg:4326", "WGS84", "OGC:CRS84", "urn:ogc:def:crs:OGC:1.3:CRS84"])
def test_names_of_longitudes_and_latitudes(crs: str) -> None:
    """OSMnx writes the first, and QGIS the last."""
    assert is_wgs84(crs)


def test_the_console_knows_the_same_names() -> None:
    """It draws longitudes as short as they are there, and other coordinates as they stand."""
    told = re.search(r"const DEGREES = new Set\(\[(.+)\]\)", assets()["network.js"].content.decode())
    assert told is not None
    assert set(re.findall(r'"([^"]+)"', told[1])) == SAME_AS_WGS84


@pytest.mark.parametrize("crs", [3000 * "\n", [3000 * "x"], 300 * ["x"], {3000 * "x": 1}, 10**4000])
def test_a_refusal_quotes_little_of_what_is_no_name_of_them(crs: object) -> None:
    with pytest.raises(InvalidNetwork, match="crs is a text such as") as refused:
        check_crs(crs)
    assert len(refused.value.message) < 200


def test_names_have_no_order_for_a_stream_of_coordinates() -> None:
    with pytest.raises(InvalidNetwork, match="tail and head must be indices"):
        read_arrow(stream(EDGES | {"tail": ["a", "b"], "head": ["b", "c"]}, {"x": [1, 2, 3], "y": [1, 2, 3]}))


@pytest.mark.parametrize(
    ("arrays", "field"),
    [
        ({"x": X}, "/y"),
        ({"x": X[:2], "y": Y}, "/x"),
        ({"x": X.astype(str), "y": Y}, "/x"),
        ({"x": X.reshape(1, 3), "y": Y}, "/x"),
        ({"x": X, "y": Y, "crs": np.array(["a", "b"])}, "/crs"),
        ({"x": X, "y": Y, "crs": np.array(4326)}, "/crs"),
    ],
)
def test_npz_files_that_are_refused(arrays: dict[str, Any], field: str, tmp_path: Any) -> None:
    np.savez(tmp_path / "g.npz", **EDGES, n_vertices=3, **arrays)
    with pytest.raises(InvalidNetwork) as refused:
        read_npz(tmp_path / "g.npz")
    assert refused.value.where.field == field


def test_an_earlier_release_refuses_what_it_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    """It knows no such columns of a stream of vertices; and reads what has none, as today's reads what it wrote."""
    packed = pack(CITY)
    assert pack(replace(CITY, coordinates=None)) == pack(PLAIN)
    assert unpack(pack(PLAIN)).coordinates is None
    monkeypatch.setattr(_vertices, "COLUMNS", ("label", "capacity", "unlimited"))
    with pytest.raises(EngineError):
        unpack(packed)
    with pytest.raises(EngineError):
        read_arrow(write_arrow(CITY))
    assert unpack(pack(PLAIN)).n_vertices == 3


def test_they_are_counted() -> None:
    assert Network(CITY).nbytes == Network(PLAIN).nbytes + 3 * 16
    grown = [
        grow(Network(edges), more).network for edges, more in ((CITY, MORE), (PLAIN, replace(MORE, x=None, y=None)))
    ]
    assert grown[0].nbytes == grown[1].nbytes + 5 * 16
    assert growing_bytes(Network(CITY), MORE) == growing_bytes(Network(PLAIN), MORE) + 5 * 16


def test_a_network_that_grows() -> None:
    network = Network(CITY)
    grown = grow(network, MORE).network
    assert network.coordinates is not None
    assert grown.coordinates is not None
    assert len(network.coordinates.x) == 3
    assert grown.coordinates.x.tolist() == [*X, 1, 2]
    assert grow(network, Structure(tail=MORE.tail)).network.coordinates is network.coordinates
    since = since_load(grown, None)
    assert since is not None
    again = unpack_structure(pack_structure(since))
    assert again.x is not None
    assert again.y is not None
    assert (again.x.tolist(), again.y.tolist()) == ([1, 2], [3, 4])
    edges = with_inserted(CITY, [again])
    assert edges.coordinates is not None
    assert edges.coordinates.y.tolist() == [*Y, 3, 4]
    first = only(edges, np.ones(2, np.bool_), np.arange(5) < 4, 2)
    assert first.coordinates is not None
    assert first.coordinates.x.tolist() == [*X, 1]
    none_of_first = only(edges, np.zeros(2, np.bool_), np.arange(5) > 0, 2)
    assert none_of_first.coordinates is not None
    assert none_of_first.coordinates.y.tolist() == [*Y[1:], 3, 4]
    assert unpack_structure(pack_structure(replace(MORE, x=None, y=None))).x is None


def test_they_come_just_where_there_are_some() -> None:
    here, one = CITY.coordinates, np.ones(1)
    assert joined_places(None, (None, None), (None, None), 1) == (None, None)
    x, y = joined_places(here, (one, one), ([2], [3]), 1)
    assert x is not None
    assert y is not None
    assert (x.tolist(), y.tolist()) == ([1, 2], [1, 3])
    for known, given_, count in (
        (None, (one, one), 1),
        (here, (None, None), 1),
        (here, (one, one), 2),
        (here, (one, None), 1),
    ):
        with pytest.raises(InvalidNetwork):
            joined_places(known, (None, None), given_, count)
    with pytest.raises(InvalidNetwork, match="row 0: y is not finite"):
        joined_places(here, (None, None), (one, one * np.nan), 1)


def insert(caller: Caller, name: str, x: float, y: float) -> None:
    new = EdgesOperation(op="insert", vertices=[name], x=[x], y=[y])
    caller.ask(Kind.PATCH_EDGES, "g", EdgesArgs(batch=[new]))


def test_through_restarts(caller: Caller, start_worker: StartWorker, client: Any, keys: Keys) -> None:
    """From the base, from the log, from a snapshot, and from a snapshot and the log."""
    worker = start_worker()
    caller.wait_ready()
    caller.load("g", CITY)
    expected = X.tolist(), Y.tolist()
    for step in ("loaded", "logged", "saved", "logged again"):
        if step.startswith("logged"):
            insert(caller, step, len(step), -1.5)
            expected[0].append(len(step))
            expected[1].append(-1.5)
        if step == "saved":
            caller.ask(Kind.SNAPSHOT, "g", EmptyArgs())
        worker.graphs.residents.drop("g")
        page = caller.ask(Kind.VERTICES, "g", VerticesArgs(all=True))
        assert (page["x"], page["y"]) == expected, step
    held = worker.graphs._copies.find("g").held
    assert held is not None
    base = unpack(Blobs(client, keys).get(held.base))
    assert base.coordinates is not None
    assert len(base.coordinates.x) == 3, "the base stays as it was loaded"


def test_a_graph_without_any(caller: Caller, start_worker: StartWorker) -> None:
    start_worker()
    caller.wait_ready()
    caller.load("g", PLAIN)
    assert "x" not in caller.ask(Kind.VERTICES, "g", VerticesArgs(all=True))
    new = EdgesOperation(op="insert", vertices=["z"], x=[1], y=[1])
    assert code_of(lambda: caller.reply(Kind.PATCH_EDGES, "g", EdgesArgs(batch=[new]))) == "invalid_body"
    asked = MaxFlowArgs(sources=["a"], sinks=["c"], encoding="geojson")
    assert code_of(lambda: caller.reply(Kind.MAX_FLOW, "g", asked)) == "not_acceptable"


FLOATS = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(FLOATS, max_size=40))
@settings(max_examples=cases(200), deadline=None)
def test_floats_are_what_json_reads(floats: list[float]) -> None:
    assert json.loads(b"[" + write_floats(np.array(floats, np.float64)) + b"]") == floats


ROW = st.tuples(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
    st.tuples(FLOATS, FLOATS, FLOATS, FLOATS),
    st.integers(-(10**12), 10**12),
    st.one_of(st.integers(0, 10**12), st.just(INFINITE)),
    st.booleans(),
)


@given(st.lists(ROW, min_size=1, max_size=20), st.booleans())
@settings(max_examples=cases(200), deadline=None)
def test_lines_are_what_json_reads(rows: list[Any], numbered: bool) -> None:
    names, places, flow, capacity, cut = zip(*rows, strict=True)
    x1, y1, x2, y2 = (np.array(column, np.float64) for column in zip(*places, strict=True))
    ids: Any = np.arange(len(rows)) if numbered else Texts.of(names)
    text = write_lines(ids, (x1, y1), (x2, y2), np.array(flow), np.array(capacity), np.array(cut), 0)
    assert json.loads(b"[" + text + b"]") == [
        {
            "type": "Feature",
            "geometry": {"type": "LineString", "coordinates": [list(row[1][:2]), list(row[1][2:])]},
            "properties": {
                "id": i if numbered else row[0],
                "flow": row[2],
                "capacity": "inf" if row[3] == INFINITE else row[3],
                "in_cut": row[4],
            },
        }
        for i, row in enumerate(rows)
    ]
