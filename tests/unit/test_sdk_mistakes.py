"""What people pass to the client by mistake, and what they read: a table. Nothing of it is sent."""

import asyncio
import math
import os
import subprocess
import warnings
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx
import igraph
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from headrace import AsyncClient, Client, InvalidInput, Retry, Scenario, Update
from headrace._bodies import graph_body
from headrace._files import rewind, whole_file

from tests.unit.test_sdk_bodies import as_json, as_npz
from tests.unit.test_sdk_client import GRAPH
from tests.unit.test_sdk_options import client

TABLE = pd.DataFrame({"tail": ["s", None], "head": ["a", "t"], "capacity": [3.0, math.nan]})
GIVEN = {"tail": [0], "head": [1], "capacity": [3]}
LABELS = {"tail": ["s", "a"], "head": ["a", "t"], "capacity": [3, 2]}

LOADS: list[tuple[Any, dict[str, Any], str]] = [
    (None, LABELS | {"capacity": [3, math.nan]}, "row 1: capacity is missing (nan)"),
    (None, LABELS | {"capacity": np.array([math.nan, math.nan])}, "row 0: capacity is missing (nan) (and 1 more)"),
    (None, LABELS | {"cost": [None, 2]}, "row 0: cost is missing (None)"),
    (None, GIVEN | {"head": np.array([math.nan])}, "row 0: head is missing (nan)"),
    (None, LABELS | {"edge_ids": pd.Series([7, None], dtype="Int64")}, "row 1: edge_ids is missing (nan)"),
    (None, LABELS | {"edge_ids": np.array(["x", pd.NA])}, "row 1: edge_ids is missing (<NA>)"),
    (TABLE, {}, "row 1: tail is missing"),
    (TABLE.assign(tail="s"), {}, "row 1: capacity is missing (nan)"),
    (pd.concat([TABLE, TABLE], axis=1), {}, "the table has more than one column 'tail'"),
    (pa.Table.from_arrays([pa.array([1])] * 4, ["tail", "head", "km", "km"]), {"capacity": "km"}, "one column 'km'"),
    (None, GIVEN | {"tail": {0}}, "tail is a set, which has no order"),
    (None, GIVEN | {"capacity": frozenset([3])}, "capacity is a set, which has no order"),
    (
        None,
        GIVEN | {"capacity": [Fraction(1, 3)]},
        "capacity: row 0: cannot send Fraction Fraction(1, 3): an amount is",
    ),
    (None, GIVEN | {"tail": [date(2026, 11, 27)]}, "tail: row 0: cannot send date datetime.date(2026, 11, 27): "),
    (
        None,
        GIVEN | {"tail": [date(2026, 11, 27)]},
        "an amount is an int, a float or a Decimal, and a name an int or te",
    ),
    (None, GIVEN | {"head": np.array(["2026-11-27"], "M8[D]")}, "head: cannot send datetime64[D]: an amount is an int"),
    (None, GIVEN | {"capacity": np.ma.array([3], mask=[True])}, "row 0 of a masked array has no value"),
    (None, GIVEN | {"head": np.ma.array([1], mask=[True])}, "row 0 of a masked array has no value"),
    (None, GIVEN | {"tail": np.array([math.nan])}, "row 0: tail is missing (nan)"),
    (None, GIVEN | {"tail": pa.array([None], pa.int64())}, "row 0: tail is missing (nan)"),
    (None, LABELS | {"tail": pa.array(["s", None])}, "row 1: tail is missing (None)"),
    (None, LABELS | {"capacity": [3, Decimal("sNaN")]}, "row 1: capacity is missing (sNaN)"),
    ([(0, 1, 3)], {}, "tail, head, capacity = zip(*edges)"),
    (np.array([[0, 1, 5], [1, 2, 5]]), {}, "of rows of edges make columns: tail, head, capacity = edges.T"),
    (
        TABLE.set_index(["tail", "head"]),
        {},
        "no column 'tail' for tail=; 'tail' is its index: table.reset_index() has it",
    ),
    (TABLE.set_index("head"), {"head": "heads"}, "no column 'heads' for head=; its columns are tail, capacity"),
    (".", {}, ". is no file"),
    ("nothing.txt", {}, "nothing.txt is no file"),
    (igraph.Graph.Ring(3), {}, "edges have no attributes at all"),
    (igraph.Graph.Ring(3), {"cost": "km"}, "no edge has the attribute"),
]
CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any], str]] = [
    ("max_flow", ({"s": 3}, "t"), {}, "amounts by vertex are what supply= takes"),
    ("max_flow", ("s", {"t": 3}), {}, "amounts by vertex are what demand= takes"),
    ("max_flow", ((8.69, 49.41), "t"), {}, 'a node that is a tuple by its str(): "(8.69, 49.41)"'),
    ("max_flow", ("s", [(0, 1), (1, 1)]), {}, 'a node that is a tuple by its str(): "(0, 1)"'),
    ("max_flow", ("s", "t"), {"supply": [3, 4]}, "supply has 2 amounts for 1 terminal"),
    (
        "max_flow",
        (None, "t"),
        {"supply": {"s": 3, "a": pd.NA}},
        "supply: row 1: cannot send NAType <NA>: an amount is ",
    ),
    (
        "max_flow",
        (),
        {"supply": pd.Series({"s": 3}), "demand": {"t": 3}},
        "supply=series.to_dict() has them by their na",
    ),
    ("max_flow", (["s", "a"], "t"), {"supply": pd.Series({"a": 3, "s": 4})}, "whose index in another order does not c"),
    ("circulation", ("s", ["t", "u"]), {"min_demand": pd.Series({"u": 3, "t": 4})}, "min_demand=series.to_dict() has "),
    ("max_flow", (["s", "a"], "t"), {"supply": {3, 4}}, "supply is a set, which has no order"),
    ("max_flow", ("s", "t"), {"timeout_s": "3"}, "timeout_s is a number of seconds from 0 on, or None, not '3'"),
    ("max_flow", ("s", "t"), {"timeout_s": -1}, "timeout_s is a number of seconds from 0 on, or None, not -1"),
    ("max_flow", ("s", "t"), {"wait": "false"}, "wait is True or False, not 'false'"),
    ("max_flow", ("s", "t"), {"progress": "no"}, "progress is True or False, not 'no'"),
    ("pairs", ([0], [1]), {"stream": "no"}, "stream is True or False, not 'no'"),
    ("what_if", ([Scenario(close=[0])],), {"stream": "no"}, "stream is True or False, not 'no'"),
    ("closure_study", (), {"stream": 1}, "stream is True or False, not 1"),
    ("gomory_hu_tree", (), {"groups": "no"}, "groups is True or False, not 'no'"),
    ("max_flow", ("s", "t"), {"top": 3}, "top= says how many paths are shown, and 'paths' is not among the fields"),
    ("min_cost_flow", ("s", "t"), {"top": 3, "fields": ["flow"]}, "top= says how many paths are shown"),
    ("pairs", ([0], [1]), {"top": 3, "fields": "value"}, "top= says how many paths are shown"),
    ("what_if", ([Scenario(close=[0])],), {"top": 3}, "top= says how many paths are shown"),
    ("pairs", ([(0, 1), (2, 3)],), {}, "two columns, their sources and their sinks: source, sink = zip(*pairs)"),
    ("flow_map", (), {"fields": ["value"]}, "flow_map() shows the flow and the cut: fields= is for max_flow()"),
    ("flow_map", (), {"sides": False}, "flow_map() shows the flow and the cut: sides= is for max_flow()"),
    ("max_flow", ("s", "t"), {"timeout_s": math.nan}, "timeout_s is a number of seconds"),
    ("patch", (), {"edges": {0, 1}, "set": [1, 2]}, "edges is a set, which has no order"),
    ("patch", (), {"edges": [0, 1], "add": {1, 2}}, "add is a set, which has no order"),
    ("patch", (), {"vertices": [0, 1], "set": [1]}, "set has 1 amount for 2 vertices"),
    ("patch_endpoints", (), {"tail": [0], "head": [1], "set": [1, 2]}, "set has 2 amounts for 1 edge"),
    ("patch", (), {"edges": [0, 1], "set": np.ma.array([1, 2], mask=[False, True])}, "row 1 of a masked array"),
    ("patch", (), {"edges": [0, 1], "scale": Fraction(1, 3)}, "cannot send Fraction Fraction(1, 3): an amount is an"),
    ("apply", ([{"edges": [0], "set": [1]}],), {}, "as in Update(edges=[3], set=[5]), not {'edges'"),
    ("apply", (Update(edges=[0], set=Decimal("sNaN")),), {}, "sNaN is no amount"),
    ("patch", (), {"edges": [0, 1], "set": pd.Series([1, None], dtype="Int64")}, "row 1: set is missing (nan)"),
    ("patch", (), {"edges": [0], "set": None, "add": "inf"}, "add is one amount or a column of them, not 'inf'"),
    ("patch", (), {"edges": [0], "set": 1, "if_version": True}, "a whole number, or the text of an ETag, not True"),
    ("patch", (), {"edges": [0], "set": 1, "if_version": 7.0}, "a whole number, or the text of an ETag, not 7.0"),
    ("patch", (), {"edges": [0], "set": 1, "if_version": "7\n"}, "a whole number, or the text of an ETag, not '7"),
    ("patch", (), {"edges": [0], "set": 1, "if_version": "é"}, "a whole number, or the text of an ETag, not 'é'"),
    ("what_if", ([{"close": [0]}],), {}, "as in Scenario(close=[3]), not {'close'"),
    ("what_if", ([Scenario(updates=[[0]])],), {}, "as in Update(edges=[3], set=[5]), not [0]"),
    ("max_flow", ("s", "t"), {"fields": None}, "or one alone as text: None is neither"),
    ("capacity_expansion", (1, "s", "t"), {"edges": [0], "price": None}, "price is one amount or a column of them"),
    ("patch_endpoints", (), {"tail": {0}, "head": [1], "set": 1}, "tail is a set, which has no order"),
    ("apply", (Update(tail=[0], head={1}, op="close"),), {}, "head is a set, which has no order"),
    ("max_flow", ({"s", "a"}, "t"), {"supply": [3, 4]}, "what supply= goes with is a set, which has no order"),
    ("circulation", ("s", {"t"}), {"min_demand": [3]}, "what min_demand= goes with is a set, which has no order"),
    ("pairs", ({0, 1}, [2, 3]), {}, "source is a set, which has no order"),
    ("capacity_expansion", (1,), {"edges": {0, 1}, "price": [1, 2]}, "edges is a set, which has no order"),
    ("capacity_expansion", (1,), {"edges": [0, 1], "price": 1, "max_add": {1, 2}}, "max_add is a set"),
    ("insert_edges", ([0], [1], [2]), {"undirected": ["false"]}, "undirected is true or false, or a column of these"),
    ("events", (), {"after": b"0"}, "after= is the id of an event, as in events(after=event.id), not b'0'"),
    ("patch", (), {"edges": [0], "set": 1, "dry_run": "false"}, "dry_run is True or False, not 'false'"),
    ("delete_edges", ([0],), {"dry_run": 0}, "dry_run is True or False, not 0"),
    ("patch", (), {"edges": [0], "set": 1, "idempotency_key": ""}, "idempotency_key is 1 to 256 printable ASCII"),
    ("patch", (), {"edges": 0, "set": 5}, "edges is a list, as in edges=[0]"),
    ("patch", (), {"vertices": np.int64(3), "add": 1}, "vertices is a list, as in vertices=[np.int64(3)]"),
    ("patch_endpoints", (), {"tail": 0, "head": 1, "set": 5}, "tail is a list, as in tail=[0]"),
    ("apply", (Update(edges=np.array(7), scale=2),), {}, "edges is a list, as in edges=[array(7)]"),
    ("what_if", ([Scenario(updates=[Update(edges=0, set=5)])],), {}, "edges is a list, as in edges=[0]"),
    ("insert_edges", (0, 1, 5), {}, "tail is a list, as in tail=[0]"),
    ("capacity_expansion", (1,), {"edges": 0, "price": 1}, "edges is a list, as in edges=[0]"),
    ("circulation", (), {"edges": 0, "lower": 1}, "edges is a list, as in edges=[0]"),
    ("closure_study", (), {"candidates": 0}, 'candidates is "all", "cut" or a list, as in candidates=[0]'),
    ("restore", (1,), {"idempotency_key": "x "}, "idempotency_key is 1 to 256 printable ASCII characters, not 'x '"),
    ("delete_edges", ([0],), {"idempotency_key": 7}, "idempotency_key is 1 to 256 printable ASCII characters, not 7"),
    ("close", ([0],), {"idempotency_key": "x", "dry_run": True}, "is for what is applied, and a dry run is not"),
    ("copy", ("my city",), {}, "'my city' is no graph name: that is 1 to 128 of"),
]


@pytest.mark.parametrize(("graph", "columns", "says"), LOADS)
def test_loads(graph: Any, columns: Any, says: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        graph_body(graph, columns)
    assert says in str(refused.value)


@pytest.mark.parametrize(("method", "given", "options", "says"), CALLS)
def test_calls(method: str, given: Any, options: Any, says: str) -> None:
    """Both clients."""

    async def ask() -> None:
        transport = httpx.MockTransport(lambda _: httpx.Response(200, json=GRAPH))
        async with AsyncClient("http://service", transport=transport) as service:
            await getattr(await service.graph("city"), method)(*given, **options)

    with client() as service, pytest.raises(InvalidInput) as refused:
        getattr(service.graph("city"), method)(*given, **options)
    assert says in str(refused.value)
    with pytest.raises(InvalidInput) as refused:
        asyncio.run(ask())
    assert says in str(refused.value)


@pytest.mark.parametrize("name", ["", "a/b", "..", ".", "my graph", "_x", "é", 7, None, "x" * 129])
def test_names_that_no_graph_has(name: Any) -> None:
    """Some would be the path of something else."""
    with client() as service:
        for call in (service.graph, service.delete_graph, lambda name: service.put_graph(name, **GIVEN)):  # type: ignore[arg-type]
            with pytest.raises(InvalidInput, match="is no graph name"):
                call(name)


@pytest.mark.parametrize("name", ["", ".", "..", None, 3])
def test_names_that_would_be_the_path_of_something_else(name: Any) -> None:
    """A DELETE of the watch ".." is one of its graph."""
    asked: list[httpx.Request] = []

    def keep(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(200, json=GRAPH)

    with Client("http://service", transport=httpx.MockTransport(keep)) as service:
        graph = service.graph("city")
        calls: list[Any] = [
            *(lambda: graph.unwatch(name), lambda: graph.watch(name, "s", "t"), lambda: service.drain(name)),
            *(lambda: service.delete_webhook(name), lambda: service.job(name), lambda: service.undrain(name)),
        ]
        for call in calls:
            with pytest.raises(InvalidInput, match="is no name: a name is text"):
                call()
    assert len(asked) == 1  # that of the handle


def test_clients() -> None:
    for given in (
        {"attempts": 0},
        {"attempts": 2.5},
        {"base_s": -1},
        {"longest_s": math.nan},
        {"patience_s": "3"},
        {"restart_s": -2},
        {"first_s": math.nan},
    ):
        with pytest.raises(InvalidInput, match=f"{next(iter(given))} .*, not "):
            Retry(**given)  # type: ignore[arg-type]  # no type checker has seen it
    assert repr(Client("user:secret@host:81/prefix/v1")) == "<Client http://host:81/prefix>"
    assert repr(AsyncClient("https://host")) == "<AsyncClient https://host>"
    with pytest.raises(InvalidInput, match=r"a URL is text, as in .*, not 8080"):
        Client(8080)  # type: ignore[arg-type]
    for kind in (Client, AsyncClient):
        with pytest.raises(InvalidInput, match=r"as in Retry\(attempts=3\), not 3"):
            kind("http://service", retry=3)  # type: ignore[arg-type]
        for silent in (None, 0, -1, math.nan, math.inf, "5", True):
            with pytest.raises(InvalidInput, match="timeout_s"):
                kind("http://service", timeout_s=silent)  # type: ignore[arg-type]  # no type checker has seen it
        for header in ({"X-Town": "Zürich"}, {"X-Town": "a\nb"}, {"X-Town": 5}, {5: "a"}):
            with pytest.raises(InvalidInput, match="a header is printable ASCII"):
                kind("http://service", headers=header)  # type: ignore[arg-type]  # no type checker has seen it
        with pytest.raises(InvalidInput, match="an API key is printable ASCII"):
            kind("http://service", api_key=b"hr_1")  # type: ignore[arg-type]  # no type checker has seen it
        for url in ("http://service/?tenant=1", "http:/service", "https:/service:1"):
            with pytest.raises(InvalidInput, match="without a query"):
                kind(url)


@pytest.mark.parametrize("given", ["service:1", "http://service:1/", "http://service:1/v1", "http://service:1/v1/"])
def test_urls_that_mean_the_service(given: str) -> None:
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(str(request.url))
        return httpx.Response(200, json=GRAPH)

    with Client(given, transport=httpx.MockTransport(answer), retry=Retry(attempts=1)) as service:
        service.graph("city")
    assert asked == ["http://service:1/v1/graphs/city"]


def test_what_looks_like_a_mistake_and_is_none() -> None:
    """One field as text, one update by itself, a set of edges that all get the same, the keys of a mapping, a generator
    of updates or scenarios."""
    bodies: list[dict[str, Any]] = []

    def keep(request: httpx.Request) -> httpx.Response:
        if request.method == "GET":
            return httpx.Response(200, json=GRAPH)
        bodies.append(httpx.Response(200, content=request.content).json())
        return httpx.Response(422, json={"code": "invalid_body", "detail": ""})

    with Client("http://service", transport=httpx.MockTransport(keep)) as service:
        graph = service.graph("city")
        calls: list[Any] = [
            lambda: graph.max_flow(0, 3, fields="cut"),
            lambda: graph.matching(fields="size"),
            lambda: graph.min_cost_flow(0, 3, fields="flow"),
            lambda: graph.apply(Update(edges=[4], set=2)),  # type: ignore[arg-type]
            lambda: graph.patch(edges={4}, set=2),  # type: ignore[arg-type]
            lambda: graph.patch(edges={"a": 1}.keys(), set=[2]),  # type: ignore[arg-type]
            lambda: graph.apply(Update(edges=[row], set=2) for row in (4, 5)),  # type: ignore[arg-type]  # no sequence
            lambda: graph.what_if(Scenario(close=[row]) for row in (4,)),  # type: ignore[call-overload]  # no sequence
            lambda: graph.what_if(Scenario(updates=Update(edges=[4], set=2))),  # type: ignore[call-overload,arg-type]  # by itself
        ]
        for call in calls:
            with pytest.raises(Exception, match="invalid_body"):
                call()
    assert [body["fields"] for body in bodies[:3]] == [["cut"], ["size"], ["flow"]]
    assert bodies[3:6] == [{"edges": [4], "set": [2]}, {"edges": [4], "set": [2]}, {"edges": ["a"], "set": [2]}]
    assert bodies[6]["batch"] == [{"edges": [4], "set": [2]}, {"edges": [5], "set": [2]}]
    assert bodies[7]["scenarios"] == [{"batch": [{"edges": [4], "op": "close"}]}]
    assert bodies[8]["scenarios"] == [{"batch": [{"edges": [4], "set": [2]}]}]


def test_half_precision_warns_of_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        body = graph_body(
            None, {"tail": np.array([0], np.float16), "head": [1], "capacity": np.array([0.5], np.float16)}
        )
    assert as_npz(body)["capacity"] == [0.5]


def test_igraph() -> None:
    """Edges keep their numbers, vertices their names."""
    named = igraph.Graph(directed=True)
    named.add_vertices(["s", "a", "t"])
    named.add_edges([("s", "a"), ("a", "t")], {"capacity": [3, 2], "km": [1, 4]})
    body = as_json(graph_body(named, {"cost": "km", "source": "s"}))
    assert (body["tail"], body["head"], body["vertex_labels"]) == (["s", "a"], ["a", "t"], ["s", "a", "t"])
    assert (body["capacity"], body["cost"], body["undirected"], body["source"]) == ([3, 2], [1, 4], False, "s")
    ring = igraph.Graph.Ring(3)
    ring.es["width"] = [1.5, 2, 3]
    body = as_npz(graph_body(ring, {"capacity": "width"}))
    assert (body["tail"], body["head"], body["n_vertices"]) == ([0, 1, 0], [1, 2, 2], 3)
    assert (body["capacity"], body["undirected"]) == ([1.5, 2, 3], True)
    whole = as_npz(graph_body(None, {"tail": [0], "head": np.ma.array([1]), "capacity": np.ma.array([2.5])}))
    assert (whole["head"], whole["capacity"]) == ([1], [2.5])
    empty = as_npz(graph_body(igraph.Graph(3), {}))  # which has no attributes either
    assert (empty["tail"], empty["capacity"], empty["n_vertices"]) == ([], [], 3)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    """It is named, and not the file beside the wanted one that is written first."""
    with client() as service, pytest.raises(FileNotFoundError) as refused:
        service.graph("city").export(tmp_path / "missing" / "city.npz")
    assert refused.value.filename == str(tmp_path / "missing")


def test_a_file_that_cannot_be_written_is_named_as_it_was_given() -> None:
    """/proc takes no files, of root either. The file beside it, which is written first, has a name that nobody gave."""
    with pytest.raises(OSError, match="town") as refusal, whole_file(Path("/proc/town.npz")):
        pass
    assert refusal.value.filename == "/proc/town.npz"


@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays_one_and_its_file_is_written(tmp_path: Path, there: bool) -> None:
    target, link = tmp_path / "of-today.npz", tmp_path / "latest.npz"
    if there:
        target.write_bytes(b"before")
    link.symlink_to(target.name)
    with whole_file(link) as file:
        file.write(b"after")
    assert link.is_symlink()
    assert target.read_bytes() == b"after"


def test_a_link_to_itself_gives_way(tmp_path: Path) -> None:
    link = tmp_path / "loop.npz"
    link.symlink_to(link.name)
    with whole_file(link) as file:
        file.write(b"after")
    assert link.read_bytes() == b"after"


def test_a_pipe_gets_the_file_and_stays_a_pipe(tmp_path: Path) -> None:
    """Another program reads it meanwhile, and would wait for ever if a file took its name."""
    pipe = tmp_path / "city.max"
    os.mkfifo(pipe)
    reader = subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE)
    try:
        with whole_file(pipe) as file:
            file.write(b"an attempt that broke off")
            rewind(file)
            file.write(b"p max 0 0")
        assert pipe.is_fifo()
        assert reader.communicate(timeout=60)[0] == b"p max 0 0"
    finally:
        reader.kill()
        reader.wait()
    assert [path.name for path in tmp_path.iterdir()] == ["city.max"]
