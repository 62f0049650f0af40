"""Answers as npz and Arrow, by a real service: each says what the JSON answer says."""

import io
import json
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import headrace
import httpx
import numpy as np
import pytest
from headrace import Client, Grid, UnexpectedAnswer
from numpy.typing import NDArray

from gpu_engine import formats
from tests.contract.columns import ARROW, JSON, NPZ, READ, of_npz, same, together
from tests.contract.test_codes import check_problem
from tests.serving import Service
from tests.shared_services import Services

MANY = 20_000
"""Edges, more than are written at a time."""

FIELDS = ["value", "cut", "flow", "terminals", "paths"]
COST_FIELDS = ["value", "cost", "flow", "terminals", "dual", "paths"]
QUESTION = {"fields": FIELDS, "paths": {"top": 7}}

GRAPHS: dict[str, dict[str, Any]] = {
    "plain": {
        "tail": [0, 0, 1, 2, 1],
        "head": [1, 2, 3, 3, 2],
        "capacity": [3, 2.5, "inf", 2, 1],
        "source": 0,
        "sink": 3,
    },
    "labelled": {
        "tail": ["s", "s", "a", 'é"', "a"],
        "head": ["a", 'é"', "t", "t", 'é"'],
        "capacity": [3, 2.5, 4, 2, 1],
        "undirected": [False, True, False, False, True],
        "edge_ids": ["s-a", "s-b", "a-t", "", "a-b\n"],
        "source": "s",
        "sink": "t",
    },
    "numbered": {
        "tail": [10, 10, 20],
        "head": [20, 30, 30],
        "capacity": [1, 2, 3],
        "vertex_labels": [30, 20, 10],
        "edge_ids": [2**62, 7, 0],
        "source": 10,
        "sink": 30,
    },
    "priced": {
        "tail": ["s", "s", "a", 'é"', "a"],
        "head": ["a", 'é"', "t", "t", 'é"'],
        "capacity": [3, 2.5, 4, 2, 1],
        "undirected": [False, True, False, False, True],
        "cost": [-1, 0.25, 2, "1.125", 0],
        "source": "s",
        "sink": "t",
    },
    "many": {"tail": [0] * MANY, "head": [*range(1, MANY + 1)], "capacity": [1] * MANY, "source": 0, "sink": MANY},
    "nothing": {"n_vertices": 2, "tail": [], "head": [], "capacity": [], "source": 0, "sink": 1},
}


@pytest.fixture(scope="module")
def service(services: Services) -> Iterator[Service]:
    """Its log has no errors at the end."""
    with services.lent() as service:
        assert service.log is not None
        lines_before = len(service.log.read_text().splitlines())
        for name, graph in GRAPHS.items():
            assert service.http.put(f"/v1/graphs/{name}", json=graph).status_code == 201
        yield service
        assert not [line for line in service.log.read_text().splitlines()[lines_before:] if '"level": "error"' in line]


@pytest.fixture
def service_url(service: Service) -> str:
    return service.url


@pytest.fixture
def http(service_url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=service_url, timeout=60) as http:
        yield http


@pytest.fixture
def client(service_url: str) -> Iterator[Client]:
    with Client(service_url) as client:
        yield client


def asked(http: httpx.Client, path: str, accept: str, body: Any) -> bytes:
    if body is None:
        response = http.get(f"/v1/graphs/{path}", headers={"Accept": accept})
    else:
        response = http.post(f"/v1/graphs/{path}", headers={"Accept": accept}, json=body)
    assert response.status_code == 200, response.text
    assert (response.headers["content-type"], response.headers["etag"][-3:]) == (accept, '-1"')
    return response.content


@pytest.mark.parametrize("accept", [NPZ, ARROW])
@pytest.mark.parametrize("name", GRAPHS)
def test_each_form_says_the_same(http: httpx.Client, name: str, accept: str) -> None:
    questions: list[tuple[str, Any]] = [("max-flow", QUESTION), ("min-cut", {}), ("max-flow", {}), ("capacities", None)]
    for path, body in questions:
        told = json.loads(asked(http, f"{name}/{path}", JSON, body), parse_float=Decimal)
        read = together(*READ[accept](asked(http, f"{name}/{path}", accept, body)))
        assert same(read, told), (name, path)


@pytest.mark.parametrize("accept", [NPZ, ARROW])
def test_a_matching_in_each_form(http: httpx.Client, accept: str) -> None:
    for name, body in (("many", {}), ("numbered", {"left": [10]}), ("nothing", {}), ("many", {"fields": ["size"]})):
        if name == "numbered":
            http.put("/v1/graphs/pairs", json={"tail": ["A", "A", "B"], "head": ["x", "y", "x"], "capacity": [1, 1, 1]})
            name, body = "pairs", {"left": ["A", "B"]}
        told = json.loads(asked(http, f"{name}/matching", JSON, body))
        assert same(together(*READ[accept](asked(http, f"{name}/matching", accept, body))), told), name


@pytest.mark.parametrize("accept", [NPZ, ARROW])
def test_a_cheapest_flow_in_each_form(http: httpx.Client, accept: str) -> None:
    many = GRAPHS["many"] | {"cost": [i % 7 for i in range(MANY)]}
    assert http.put("/v1/graphs/many-priced", json=many).status_code in (200, 201)
    whole = {"fields": COST_FIELDS, "value": 2.5, "flow": {"zeros": True}}
    questions = [
        ("priced", whole),
        ("priced", {}),
        ("priced", {"fields": ["dual"]}),
        ("many-priced", whole | {"value": 1}),
    ]
    for name, body in questions:
        told = json.loads(asked(http, f"{name}/min-cost-flow", JSON, body), parse_float=Decimal)
        assert "cost_decimals" not in told
        read = together(*READ[accept](asked(http, f"{name}/min-cost-flow", accept, body)))
        assert same(read, told), (name, body)


@pytest.mark.parametrize("accept", [NPZ, ARROW])
def test_a_global_cut_in_each_form(http: httpx.Client, accept: str) -> None:
    ring = {"tail": ["s", "a", "t"], "head": ["a", "t", "s"], "capacity": [5, 3, 4], "vertex_labels": ["s", "a", "t"]}
    assert http.put("/v1/graphs/named-ring", json=ring).status_code in (200, 201)
    for name in ("plain", "named-ring"):
        told = json.loads(asked(http, f"{name}/global-min-cut", JSON, {}), parse_float=Decimal)
        read = together(*READ[accept](asked(http, f"{name}/global-min-cut", accept, {})))
        assert same(read, told), name


STRINGS = "application/json; numbers=string"


def test_strings_have_the_members_of_numbers(http: httpx.Client) -> None:
    """What marks unlimited rows in columns has no place where they are "inf"."""
    joined = {"tail": [0, 1], "head": [1, 2], "capacity": ["inf", 1.5], "undirected": True, "source": 0, "sink": 2}
    assert http.put("/v1/graphs/joined", json=joined).status_code in (200, 201)
    limits = {"fields": ["bottlenecks"], "bottlenecks": {"up_to": 5}}
    for path, body, member in (("gomory-hu-tree", {}, "tree"), ("max-flow", limits, "bottlenecks")):
        told, texts = (
            http.post(f"/v1/graphs/joined/{path}", headers={"Accept": accept}, json=body).raise_for_status().json()
            for accept in (JSON, STRINGS)
        )
        assert told[member].keys() == texts[member].keys()


def test_caps_in_each_form(http: httpx.Client) -> None:
    body = {"sources": ["s"], "sinks": ["t", "a"], "supply": [1.5], "demand": ["inf", 0.5], "fields": FIELDS}
    told = json.loads(asked(http, "labelled/max-flow", JSON, body), parse_float=Decimal)
    assert told["cut"]["source_pays"] == [Decimal("1.5")]
    for accept, read in READ.items():
        assert same(together(*read(asked(http, "labelled/max-flow", accept, body))), told)


@pytest.mark.parametrize("accept", [NPZ, ARROW])
@pytest.mark.parametrize("name", ["plain", "labelled"])
def test_a_page_of_the_whole_graph_is_a_graph(http: httpx.Client, name: str, accept: str) -> None:
    """Arrow needs no change; in npz text is in two arrays, and `answer` is no column of a graph."""
    content = asked(http, f"{name}/capacities", accept, None)
    if accept == NPZ and name == "labelled":
        return
    if accept == NPZ:
        arrays = dict(np.load(io.BytesIO(content)))
        decimals = json.loads(arrays.pop("answer").tobytes())["decimals"]
        buffer = io.BytesIO()
        np.savez(buffer, decimals=decimals, **arrays)
        content = buffer.getvalue()
    edges = formats.read(content, accept)
    told = json.loads(asked(http, f"{name}/capacities", JSON, None))
    assert (edges.n_edges, edges.decimals) == (len(told["tail"]), 1)
    amounts = [None if units == 2**63 - 1 else units / 10 for units in edges.capacity.tolist()]
    assert amounts == [None if amount == "inf" else amount for amount in told["capacity"]]


def test_what_cannot_be_answered_is_refused_before_any_work(http: httpx.Client) -> None:
    before = len(http.get("/v1/jobs").json()["jobs"])
    asked = [("POST", path) for path in ("max-flow", "min-cut", "matching", "min-cost-flow")] + [("GET", "capacities")]
    for method, path in asked:
        response = http.request(method, f"/v1/graphs/plain/{path}", headers={"Accept": "image/png, text/html;q=0.9"})
        assert ARROW in check_problem(response, "not_acceptable")["detail"]
    assert len(http.get("/v1/jobs").json()["jobs"]) == before


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PATCH", "capacities", {"edges": [0], "set": [1]}),
        ("PATCH", "costs", {"edges": [0], "set": [1]}),
        ("PATCH", "edges", {"op": "delete", "edges": [0]}),
        ("PATCH", "vertices", {"vertices": [0], "set": [1]}),
        ("POST", "parametric", {"edges": [0], "to": 2}),
        ("PUT", "watches/main", {"sources": [0], "sinks": [1]}),
        ("POST", "gomory-hu-tree", {}),
        ("POST", "global-min-cut", {}),
        ("GET", "vertices", None),
    ],
)
def test_updates_and_further_questions_refuse_it_as_well(http: httpx.Client, method: str, path: str, body: Any) -> None:
    version = http.get("/v1/graphs/plain").json()["version"]
    response = http.request(method, f"/v1/graphs/plain/{path}", json=body, headers={"Accept": "image/png"})
    assert "application/json" in check_problem(response, "not_acceptable")["detail"]
    assert http.get("/v1/graphs/plain").json()["version"] == version


@pytest.mark.parametrize("path", ["graphs", "graphs/plain", "jobs", "graphs/plain/snapshots", "webhooks"])
def test_what_has_one_form_comes_in_it(http: httpx.Client, path: str) -> None:
    answer = http.get(f"/v1/{path}", headers={"Accept": "image/png"})
    assert (answer.status_code, answer.headers["content-type"]) == (200, JSON)


def test_a_key_does_not_bind_a_question_to_one_form(http: httpx.Client) -> None:
    for accept in (NPZ, JSON):
        headers = {"Idempotency-Key": "form", "Accept": accept}
        answer = http.post("/v1/graphs/plain/min-cut", headers=headers, json={})
        assert (answer.status_code, answer.headers["content-type"]) == (200, accept)


@pytest.mark.parametrize("name", ["labelled", "many"])
def test_a_job_keeps_its_file(http: httpx.Client, name: str) -> None:
    """One that is in the reply, and one that lies in a blob."""
    headers = {"Accept": NPZ, "Prefer": "respond-async"}
    location = http.post(f"/v1/graphs/{name}/max-flow", json=QUESTION, headers=headers).headers["location"]
    result = http.get(f"{location}/result", headers={"Prefer": "wait=30"})
    assert (result.status_code, result.headers["content-type"]) == (200, NPZ)
    assert of_npz(result.content)[0]["certificate"]["valid"]
    job = http.get(location).json()
    assert job["result"] == {"version": 1, "media_type": NPZ, "bytes": len(result.content)}
    check_problem(http.get(f"{location}/result", headers={"Accept": JSON}), "not_acceptable")


def test_what_compresses_well_is_compressed(http: httpx.Client) -> None:
    content = asked(http, "many/max-flow", NPZ, {"fields": ["flow"], "flow": {"zeros": True}})
    arrays = np.load(io.BytesIO(content))
    kinds = {info.filename: info.compress_type for info in arrays.zip.infolist()}
    assert (kinds["flow.amount.npy"], kinds["flow.edges.npy"]) == (8, 0), "flows of zero and one, and edges by number"
    assert (arrays["flow.amount"].dtype, arrays["flow.edges"].dtype) == (np.int8, np.int16)
    assert len(content) < 3 * MANY


def test_the_examples_of_the_page(http: httpx.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = json.loads(asked(http, "labelled/min-cut", JSON, {}))["cut"]
    page = (Path(__file__).parents[2] / "docs" / "formats.md").read_text().partition("## Answers")[2]
    examples = re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S)
    assert len(examples) == len(READ)
    monkeypatch.chdir(tmp_path)
    for suffix, accept, example in zip(("npz", "arrow"), READ, examples, strict=True):
        Path(f"answer.{suffix}").write_bytes(asked(http, "labelled/min-cut", accept, {}))
        found: dict[str, Any] = {}
        exec(compile(example, "docs/formats.md", "exec"), found)
        assert found["edges"] == told["edges"]
        assert found["pays"].tolist() == told["pays"]
        assert int(found["side"].sum()) == len(told["source_side"])


def test_an_image_is_cut_and_patched_by_arrays(client: Client) -> None:
    rng = np.random.default_rng(3)
    inside, outside, brighter = rng.integers(0, 100, (3, 20, 30))
    grid = Grid(inside, outside, 20, neighbourhood=8)
    picture = client.put_graph("picture", grid)
    assert picture.info.source == 600
    before = grid.mask(picture.min_cut())
    picture.apply([grid.update(source=brighter, links=rng.integers(0, 50, (20, 30)))])
    patched = picture.min_cut()
    assert (grid.mask(patched).shape, patched.mode) == ((20, 30), "unchanged")
    assert (before != grid.mask(patched)).any()
    where = np.zeros((20, 30), bool)
    where[5:10, 5:10] = True
    picture.apply([grid.update(sink=np.full((20, 30), 10_000), where=where)])
    assert not grid.mask(picture.min_cut())[where].any(), "nothing is worth leaving them with the source"
    picture.delete()


class TestClient:
    """What the client makes of it."""

    def test_arrays(self, client: Client) -> None:
        answer = client.graph("plain").max_flow(fields=["cut", "flow", "paths"])
        assert answer.cut is not None
        assert answer.flow is not None
        assert answer.paths is not None
        mask: NDArray[np.bool_] = answer.cut.mask
        assert (mask.dtype, mask.shape) == (np.bool_, (4,))
        assert mask[0]
        assert not mask[3]
        assert answer.cut.source_side == np.flatnonzero(mask).tolist()
        assert answer.cut.sink_side == np.flatnonzero(~mask).tolist()
        assert sum(answer.cut.pays) == answer.cut.value == answer.value
        assert np.asarray(answer.flow.amount).dtype in (np.float64, np.int64)
        assert answer.flow.amount.decimals == 1
        assert sum(path.amount for path in answer.paths) == answer.value

    def test_a_cut_without_its_sides_has_no_mask(self, client: Client) -> None:
        cut = client.graph("plain").min_cut(sides=False).cut
        assert cut is not None
        assert (len(cut.source_side), len(cut.sink_side)) == (0, 0)
        with pytest.raises(UnexpectedAnswer, match="without its sides, as `sides=False` asks for"):
            cut.mask  # noqa: B018  # it is a property that raises

    def test_labels(self, client: Client) -> None:
        cut = client.graph("labelled").min_cut().cut
        assert cut is not None
        assert "s" in cut.source_side
        assert "t" in cut.sink_side
        assert len(cut.source_side) == int(cut.mask.sum())
        assert set(cut.source_side) | set(cut.sink_side) == {"s", "a", 'é"', "t"}
        assert set(cut.edges) <= {"s-a", "s-b", "a-t", "", "a-b\n"}

    def test_pages_and_matchings(self, client: Client) -> None:
        page = client.graph("plain").capacities()
        assert page.capacity == [3, Decimal("2.5"), headrace._amounts.INFINITY, 2, 1]
        assert list(map(type, page.capacity)) == [int, Decimal, Decimal, int, int]
        assert np.asarray(page.capacity).tolist() == [3, 2.5, np.inf, 2, 1]
        assert page.closed == [False] * 5
        assert client.graph("labelled").capacities().undirected == [False, True, False, False, True]
        pairs = client.put_graph("two", tail=["A", "B"], head=["x", "y"], capacity=[1, 1])
        assert pairs.matching().pairs == {"A": "x", "B": "y"}

    def test_cheapest_flows(self, client: Client) -> None:
        """Costs have decimals of their own."""
        for job in (False, True):
            graph, fields = client.graph("priced"), ["flow", "dual"]
            found = (
                graph.min_cost_flow(wait=False, fields=fields).wait(60) if job else graph.min_cost_flow(fields=fields)
            )
            assert found.flow is not None
            assert found.dual is not None
            assert found.terminals is not None
            assert isinstance(found.flow.amount.units, np.ndarray)
            assert (found.flow.amount.decimals, found.dual.potential.decimals) == (1, 3)
            assert sum(found.terminals.delivered) == found.value == Decimal("5.5")
            costs = dict(zip(range(5), map(Decimal, ("-1", "0.25", "2", "1.125", "0")), strict=True))
            flows = zip(found.flow.edges, found.flow.amount, strict=True)
            assert sum(costs[int(edge)] * abs(amount) for edge, amount in flows) == found.cost
            assert dict(zip(found.dual.vertices, found.dual.potential, strict=True))["s"] <= 0
        plain = client.graph("priced").min_cost_flow(value=1)
        assert (plain.flow, plain.dual) == (None, None)

    def test_a_job(self, client: Client) -> None:
        for name in ("plain", "many"):
            job = client.graph(name).max_flow(wait=False, fields=["cut", "flow"])
            answer = job.wait(30)
            assert answer.cut is not None
            assert answer.cut.mask[0]
            again = client.job(job.id).wait(30)
            assert (again.value, again.cut) == (answer.value, answer.cut)
