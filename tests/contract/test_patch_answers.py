"""Updates of capacities: JSON and Arrow, what the worker is told, and the digest that a key stands for."""

import gzip
from typing import Any

import pyarrow as pa
import pytest

from service.protocol import PatchArgs
from tests import bombs
from tests.contract.bodies import ARROW, EDGES, JSON, arrow
from tests.contract.fakes import Api


def test_patch_as_json(api: Api) -> None:
    api.fakes.dispatcher.answer = lambda _: {"version": 8, "applied": 2}
    body = b'{"batch": [{"edges": ["a"], "add": [-2.50]}, {"tail": ["A"], "head": ["B"], "op": "close"}]}'
    headers = JSON | {"If-Match": '"7"', "Idempotency-Key": "k 1"}
    response = api.http.patch("/v1/graphs/city/capacities?solve=none", content=body, headers=headers)
    assert (response.status_code, response.headers["etag"]) == (200, '"8"')
    (sent,) = api.fakes.dispatcher.sent
    args = PatchArgs.model_validate_json(sent.args.model_dump_json())
    assert (args.if_match, args.solve) == (7, "none")
    assert args.batch[0].amounts == ["-2.50"]
    assert sent.idempotency_key == "k 1"


@pytest.mark.parametrize(
    ("columns", "op", "amounts"),
    [
        ({"edge": [5, 6], "set": [1, 2]}, "set", ["1", "2"]),
        ({"edges": [5, 6], "set": [1, 2]}, "set", ["1", "2"]),
        ({"edge": ["a", "b"], "set": [0.1, float("inf")]}, "set", ["0.1", "inf"]),
        ({"edge": [5, 6], "set": [1, 0], "unlimited": [False, True]}, "set", ["1", "inf"]),
        ({"tail": [0, 1], "head": [1, 2], "add": [-1e-7, 1e22]}, "add", ["-0.0000001", "10000000000000000000000"]),
        ({"edge": pa.array(["a", "b"]).dictionary_encode(), "scale": [2.0, 0.5]}, "scale", ["2.0", "0.5"]),
        ({"edge": [1, 2], "set": pa.array([3, 4], pa.decimal128(10, 2))}, "set", ["3.00", "4.00"]),
    ],
)
def test_patch_as_arrow(api: Api, columns: dict[str, Any], op: str, amounts: list[str]) -> None:
    response = api.http.patch("/v1/graphs/city/capacities", content=arrow(**columns), headers={"Content-Type": ARROW})
    assert response.status_code == 200, response.text
    operation = api.fakes.dispatcher.sent[0].args.batch[0]
    assert (operation.op, operation.amounts) == (op, amounts)


@pytest.mark.parametrize("column", ["capacities", "costs", "lower", "vertices"])
def test_the_query_says_what_becomes_of_names_that_are_missing(api: Api, column: str) -> None:
    names = "vertices" if column == "vertices" else "edges"
    stream, path = arrow(**{names: [5, 6], "set": [1, 2]}), f"/v1/graphs/city/{column}"
    for query, wanted in (("", "error"), ("?on_missing=skip", "skip"), ("?on_missing=error", "error")):
        assert api.http.patch(path + query, content=stream, headers={"Content-Type": ARROW}).status_code == 200
        assert api.fakes.dispatcher.sent[-1].args.on_missing == wanted
    body = f'{{"{names}": [5], "set": [1], "on_missing": "skip"}}'.encode()
    for query, wanted in (("", "skip"), ("?on_missing=error", "error")):
        assert api.http.patch(path + query, content=body, headers=JSON).status_code == 200
        assert api.fakes.dispatcher.sent[-1].args.on_missing == wanted
    refused = api.http.patch(path + "?on_missing=ignore", content=stream, headers={"Content-Type": ARROW})
    assert refused.status_code == 400, refused.text
    assert "on_missing" in refused.json()["detail"]


@pytest.mark.parametrize("key", ["on_missing", "on_missin", "roundin", "Rounding", "dryrun"])
def test_what_the_query_says_is_no_metadata(api: Api, key: str) -> None:
    table, sink = pa.table({"edges": [5], "set": [1]}).replace_schema_metadata({key: "skip"}), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    body = sink.getvalue().to_pybytes()
    refused = api.http.patch("/v1/graphs/city/capacities", content=body, headers={"Content-Type": ARROW})
    assert refused.status_code == 422, refused.text
    assert "the query of the request may say" in refused.json()["detail"]


@pytest.mark.parametrize(
    ("column", "verb", "amounts"),
    [
        (pa.array([150, 7, 2**60], pa.int64()), "set", ["1.50", "0.07", "11529215046068469.76"]),
        (pa.array([150, 2**63 - 1], pa.int64()), "set", ["1.50", "92233720368547758.07"]),
        (pa.array([-150, 1], pa.int16()), "add", ["-1.50", "0.01"]),
        (pa.array([2**64 - 1], pa.uint64()), "add", ["184467440737095516.15"]),
        (pa.array([150, 7]), "scale", ["150", "7"]),
        (pa.array([150.0, 0.1], pa.float32()), "set", ["150.0", "0.1"]),
        (pa.array([1, 2], pa.decimal128(4, 0)), "set", ["1", "2"]),
    ],
)
def test_whole_numbers_of_an_arrow_patch_are_units_of_its_decimals(
    api: Api, column: pa.Array, verb: str, amounts: list[str]
) -> None:
    """As in a load, so that a page of capacities can be sent back as it came."""
    content = bombs.stream({"edge": list(range(len(column))), verb: column}, metadata={"decimals": "2", "version": "7"})
    response = api.http.patch("/v1/graphs/city/capacities", content=content, headers={"Content-Type": ARROW})
    assert response.status_code == 200, response.text
    assert api.fakes.dispatcher.sent[0].args.batch[0].amounts == amounts


def test_decimals_of_an_arrow_patch_that_are_misspelt_are_refused(api: Api) -> None:
    content = bombs.stream({"edge": [0], "set": [100]}, metadata={"decimal": "2"})
    response = api.http.patch("/v1/graphs/city/capacities", content=content, headers={"Content-Type": ARROW})
    assert (response.status_code, response.json()["code"]) == (422, "invalid_body")
    assert "did you mean 'decimals'" in response.json()["detail"]
    assert not api.fakes.dispatcher.sent


@pytest.mark.parametrize(
    ("route", "metadata", "amounts"),
    [
        ("costs", {"cost_decimals": "1", "decimals": "2"}, ["15.0"]),  # as a page of the edges says both
        ("costs", {"cost_decimals": "0", "decimals": "2"}, ["150"]),
        ("costs", {"decimals": "2"}, ["1.50"]),
        ("costs", {}, ["150"]),
        ("capacities", {"cost_decimals": "1", "decimals": "2"}, ["1.50"]),
        ("lower", {"cost_decimals": "1", "decimals": "2"}, ["1.50"]),
    ],
)
def test_whole_costs_count_in_places_of_their_own(
    api: Api, route: str, metadata: dict[str, str], amounts: list[str]
) -> None:
    content = bombs.stream({"edges": [0], "set": [150]}, metadata=metadata)
    response = api.http.patch(f"/v1/graphs/city/{route}", content=content, headers={"Content-Type": ARROW})
    assert response.status_code == 200, response.text
    assert api.fakes.dispatcher.sent[-1].args.batch[0].amounts == amounts


@pytest.mark.parametrize(
    ("route", "metadata", "told"),
    [
        ("costs", {"cost_decimal": "1"}, "did you mean 'cost_decimals'"),
        ("costs", {"cost_decimals": "1", "decimal": "1"}, "did you mean 'decimals'"),
        ("costs", {"cost_decimals": "10"}, "decimals must be"),
        ("costs", {"cost_decimals": "one"}, "metadata cost_decimals must be a whole number"),
        ("costs", {"cost_decimals": "1", "decimals": "-2"}, "metadata decimals must be a whole number"),
        ("capacities", {"cost_decimals": "1"}, "cost_decimals is not read here: did you mean 'decimals'"),
        ("vertices", {"cost_decimals": "1"}, "cost_decimals is not read here: did you mean 'decimals'"),
        ("lower", {"cost_decimals": "1"}, "cost_decimals is not read here: did you mean 'decimals'"),
    ],
)
def test_places_that_are_said_wrongly_are_refused(api: Api, route: str, metadata: dict[str, str], told: str) -> None:
    rows = "vertices" if route == "vertices" else "edges"
    content = bombs.stream({rows: [0], "set": [150]}, metadata=metadata)
    response = api.http.patch(f"/v1/graphs/city/{route}", content=content, headers={"Content-Type": ARROW})
    assert (response.status_code, response.json()["code"]) == (422, "invalid_body")
    assert told in response.json()["detail"]
    assert not api.fakes.dispatcher.sent


@pytest.mark.parametrize("decimals", ["10", "-1", "two", ""])
def test_decimals_of_an_arrow_patch_are_checked(api: Api, decimals: str) -> None:
    content = bombs.stream({"edge": [0], "set": [1]}, metadata={"decimals": decimals})
    response = api.http.patch("/v1/graphs/city/capacities", content=content, headers={"Content-Type": ARROW})
    assert (response.status_code, response.json()["code"]) == (422, "invalid_body")


def test_rounding_beside_the_body(api: Api) -> None:
    """It counts for more than the body's own, and Arrow has no other."""
    url = "/v1/graphs/city/capacities"
    for query, body, meant in (
        ("", {}, "error"),
        ("", {"rounding": "up"}, "up"),
        ("?rounding=down", {"rounding": "up"}, "down"),
        ("?rounding=error", {"rounding": "up"}, "error"),
    ):
        assert api.http.patch(url + query, json={"edges": [1], "set": [2], **body}).status_code == 200
        assert api.fakes.dispatcher.sent[-1].args.rounding == meant
    content = arrow(edge=[5], set=[1 / 3])
    assert (
        api.http.patch(f"{url}?rounding=nearest", content=content, headers={"Content-Type": ARROW}).status_code == 200
    )
    assert api.fakes.dispatcher.sent[-1].args.rounding == "nearest"
    for query in ("?rounding=exact", "?rounding="):
        assert api.http.patch(url + query, json={"edges": [1], "set": [2]}).status_code == 400
    assert api.http.patch(url, json={"edges": [1], "set": [2], "rounding": "exact"}).status_code == 422


def test_the_smallest_amounts_reach_the_worker(api: Api) -> None:
    """It refuses them as too fine or rounds them: both alike for whatever is below every unit."""
    for literal, sent in (("1e-99", "0.000000000000000000001"), ("-1e-999999999", "-0.000000000000000000001")):
        body = f'{{"edges": [1], "add": [{literal}]}}'
        assert api.http.patch("/v1/graphs/city/capacities", content=body, headers=JSON).status_code == 200
        assert api.fakes.dispatcher.sent[-1].args.batch[0].amounts == [sent]


@pytest.mark.parametrize("tag", ["*", '"7"'])
def test_a_condition_that_would_not_be_looked_at_is_refused(api: Api, tag: str) -> None:
    headers = {"If-None-Match": tag}
    patched = api.http.patch("/v1/graphs/city/capacities", json={"edges": [1], "set": [2]}, headers=headers)
    for response in (patched, api.http.delete("/v1/graphs/city", headers=headers)):
        assert (response.status_code, response.json()["code"]) == (400, "invalid_request")
    assert not api.fakes.dispatcher.sent


@pytest.mark.parametrize(
    "columns",
    [
        {"edges": [5, 6], "edge": [5, 6], "set": [1, 2]},
        {"edge": [5, 6]},
        {"edge": [5, None], "set": [1, 2]},
        {"edge": [5, 6], "set": [1, None]},
        {"edge": [5, 6], "set": [1.0, float("nan")]},
        {"edge": [5, 6], "add": [1.0, float("-inf")]},
        {"edge": [5, 6], "set": [1, -2]},
        {"edge": [5, 6], "set": [True, False]},
        {"edge": [5, 6], "set": ["1", "2"]},
        {"edge": [5.0, 6.0], "set": [1, 2]},
        {"edge": pa.array([2**63, 6], pa.uint64()), "set": [1, 2]},
        {"edge": [5, 6], "set": [1, 2], "add": [1, 2]},
        {"edge": [5, 6], "set": [1, 2], "colour": [1, 2]},
        {"tail": [5, 6], "set": [1, 2]},
        {"edge": [5, 6], "set": [1, 2], "unlimited": [0, 1]},
        {"edge": [5, 6], "set": [1, 2], "unlimited": [True, None]},
        {"edge": [5, 6], "add": [1, 2], "unlimited": [True, False]},
        {"edge": [5, 6], "unlimited": [True, False]},
    ],
)
def test_bad_arrow_patches(api: Api, columns: dict[str, Any]) -> None:
    response = api.http.patch("/v1/graphs/city/capacities", content=arrow(**columns), headers={"Content-Type": ARROW})
    assert (response.status_code, response.json()["code"]) == (422, "invalid_body")


def test_the_digest_is_of_the_meaning(api: Api) -> None:
    def digest(path: str, content: bytes, **headers: str) -> str | None:
        response = api.http.patch(path, content=content, headers=JSON | {"Idempotency-Key": "k"} | headers)
        assert response.status_code == 200
        return api.fakes.dispatcher.sent[-1].body_digest

    url = "/v1/graphs/city/capacities"
    first = digest(url, b'{"edges": [1], "set": [2]}')
    assert first is not None
    assert digest(url, b'{"set":[2],"edges":[1],"on_missing":"error"}') == first
    assert digest(url, gzip.compress(b'{"edges": [1], "set": [2]}'), **{"Content-Encoding": "gzip"}) == first
    assert digest(url, b'{"edges": [1], "set": [3]}') != first
    api.http.put("/v1/graphs/city", json=EDGES, headers={"Idempotency-Key": "k"})
    put = api.fakes.dispatcher.sent[-1].body_digest
    assert put is not None
    api.http.put("/v1/graphs/city", json=EDGES | {"sink": 1}, headers={"Idempotency-Key": "k"})
    assert api.fakes.dispatcher.sent[-1].body_digest not in (put, None)
