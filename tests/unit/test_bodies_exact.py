"""Bodies: exact numbers, strict columns, and the operations they become."""

import json

import pytest

from service.errors import ServiceError
from service.models.body import Body, parse_body
from service.models.capacities import PatchBody
from service.models.circulation import CirculationBody
from service.models.flows import MaxFlowBody
from service.models.graphs import CopyBody
from service.models.matching import MatchingBody
from service.models.numbers import Number, loads_exact
from service.models.pairs import CutTreeBody
from service.models.webhooks import WebhookBody
from service.models.what_if import WhatIfBody
from service.models.workers import MoveBody

TWICE = '{"edges": [0], "set": [1], "set": [2]}'
"""Each member by itself is one of a batch."""


def patch(text: str) -> PatchBody:
    return parse_body(PatchBody, text.encode())


def refused(text: str, model: type = PatchBody) -> ServiceError:
    with pytest.raises(ServiceError) as caught:
        parse_body(model, text.encode())
    return caught.value


def test_numbers_keep_their_digits() -> None:
    assert loads_exact(b"[1, 2.10, 1e-3]") == [1, "2.10", "1e-3"]
    assert type(loads_exact(b"2.10")) is Number


@pytest.mark.parametrize(
    "text",
    ["{", "\xff", '{"a": 1, "a": 2}', TWICE, "NaN", "[Infinity]", "-Infinity", "[" * 100_000, "1" * 5000, "[]", "null"],
)
def test_what_is_no_json_object_is_refused(text: str) -> None:
    with pytest.raises(ServiceError) as caught:
        parse_body(PatchBody, text.encode("latin-1"))
    assert caught.value.code == "invalid_body"


@pytest.mark.parametrize(
    ("model", "text", "field"),
    [
        (CopyBody, '{"to": 1.5}', "/to"),
        (MoveBody, '{"to": 1e3}', "/to"),
        (WebhookBody, '{"url": 1.5, "graphs": ["a"]}', "/url"),
        (WebhookBody, '{"url": "https://a.example", "graphs": ["a", 1.5]}', "/graphs/1"),
        (WhatIfBody, '{"scenarios": [{"id": 1.5}]}', "/scenarios/0/id"),
    ],
)
def test_a_number_with_a_fraction_is_no_text(model: type[Body], text: str, field: str) -> None:
    refusal = refused(text, model)
    assert (refusal.code, refusal.where.field) == ("invalid_body", field)


def test_amounts_are_literals() -> None:
    body = patch('{"edges": [0, 1, 2, 3, 4], "set": [4, 1.50, "inf", 25e-1, -0.0]}')
    operation = body.args(if_match=7, solve="none", max_rows=5).batch[0]
    assert operation.op == "set"
    assert operation.amounts == ["4", "1.50", "inf", "2.5", "-0.0"]
    assert operation.edges == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("text", "code", "rows"),
    [
        ('{"edges": [0, 1], "set": [1, true]}', "invalid_body", [1]),
        ('{"edges": [0, 1], "set": [1, "seven"]}', "invalid_body", [1]),
        ('{"edges": [0, 1], "set": [1, null]}', "invalid_body", [1]),
        ('{"edges": [0, 1], "set": [1, "+Infinity"]}', "invalid_body", [1]),
        ('{"edges": [0, 1], "add": [1, "Infinity"]}', "invalid_body", [1]),
        ('{"edges": [0, 1], "set": [1, -2]}', "invalid_body", [1]),
        ('{"edges": [0, 1], "set": [1, -1e-3]}', "invalid_body", [1]),
        ('{"edges": [0, 1], "scale": [1, -2]}', "invalid_body", [1]),
        ('{"edges": [0, 1], "add": [1, "inf"]}', "invalid_body", [1]),
        ('{"edges": [0, 1], "scale": ["inf", 2]}', "invalid_body", [0]),
        ('{"edges": [0, 1], "set": [1, 1e999999999]}', "capacity_overflow", [1]),
        ('{"edges": [0, true], "set": [1, 2]}', "invalid_body", [1]),
        ('{"edges": [0, 1.0], "set": [1, 2]}', "invalid_body", [1]),
        ('{"edges": [0, -9223372036854775809], "set": [1, 2]}', "invalid_body", [1]),
        ('{"edges": [0, 9223372036854775808], "set": [1, 2]}', "invalid_body", [1]),
    ],
)
def test_the_rows_at_fault_are_named(text: str, code: str, rows: list[object]) -> None:
    error = refused(text)
    assert (error.code, error.rows) == (code, rows)


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        '{"edges": [0]}',
        '{"set": [1]}',
        '{"edges": [0], "set": [1], "add": [1]}',
        '{"edges": [0], "set": [1], "op": "close"}',
        '{"edges": [0], "op": "open"}',
        '{"edges": [0], "set": [1, 2]}',
        '{"edges": 0, "set": [1]}',
        '{"edges": [0], "set": 1}',
        '{"edges": [0], "tail": [0], "head": [1], "set": [1]}',
        '{"tail": [0], "set": [1]}',
        '{"tail": [0], "head": [1, 2], "set": [1]}',
        '{"edges": [0, "a"], "op": "close"}',
        '{"edges": [0], "op": "close", "extra": 1}',
        '{"edges": [0], "op": "close", "on_missing": "ignore"}',
        '{"batch": [{"edges": [0], "op": "close"}], "edges": [1], "op": "close"}',
        '{"batch": [{"edges": [0]}]}',
        '{"batch": [{"edges": [0], "op": "close", "on_missing": "skip"}]}',
        '{"batch": {"edges": [0], "op": "close"}}',
    ],
)
def test_shapes_that_are_no_patch(text: str) -> None:
    assert refused(text).code == "invalid_body"


def test_a_batch_keeps_its_order_and_options() -> None:
    body = patch(
        '{"batch": [{"edges": ["a"], "op": "close"}, {"tail": [0], "head": [1], "add": [-2]}],'
        ' "on_missing": "skip", "rounding": "down"}'
    )
    args = body.args(if_match=None, solve="all", max_rows=10)
    assert [operation.op for operation in args.batch] == ["close", "add"]
    assert (args.on_missing, args.rounding, args.solve) == ("skip", "down", "all")
    assert json.loads(args.model_dump_json())["batch"][1]["amounts"] == ["-2"]


def test_rows_of_a_batch_are_counted_together() -> None:
    body = patch('{"batch": [{"edges": [0, 1], "op": "close"}, {"edges": [2, 3], "op": "reopen"}]}')
    with pytest.raises(ServiceError) as caught:
        body.args(if_match=None, solve="all", max_rows=3)
    assert caught.value.code == "too_large"


@pytest.mark.parametrize(
    "text",
    [
        '{"sources": []}',
        '{"supply": [1]}',
        '{"sources": [0], "supply": [1, 2]}',
        '{"sources": [0], "supply": [-1]}',
        '{"sources": 0}',
        '{"sources": [1.5]}',
        '{"fields": ["roads"]}',
        '{"fields": "value"}',
        '{"min_version": true}',
        '{"min_version": 0}',
        '{"time_limit_s": 0}',
        '{"time_limit_s": true}',
        '{"time_limit_s": "1"}',
        '{"time_limit_s": 1e9}',
        '{"flow": {"zeros": 1}}',
        '{"flow": {"all": true}}',
        '{"source": [0]}',
    ],
)
def test_shapes_that_are_no_question(text: str) -> None:
    assert refused(text, MaxFlowBody).code == "invalid_body"


@pytest.mark.parametrize(
    ("model", "fields", "told"),
    [
        (CirculationBody, ["flow", "terminals"], '"terminals" is no choice; there is flow'),
        (CutTreeBody, ["tree", "groups", "trees"], "\"trees\" is no choice; did you mean 'tree'?"),
        (MaxFlowBody, ["value"] * 6 + [{"cut": 1}], '{"cut": 1} is no choice; there are value, cut, flow'),
        (MatchingBody, ["size", "matching", "cover", "size"], "names something twice"),
    ],
)
def test_what_makes_a_list_of_choices_too_long(model: type[Body], fields: list[object], told: str) -> None:
    refusal = refused(json.dumps({"fields": fields}), model)
    assert refusal.detail.startswith(f"fields: {told}")
    assert refusal.where.field == "/fields"


def test_another_list_is_too_long() -> None:
    operations = [{"edges": [], "set": []}] * 10_001
    assert refused(json.dumps({"batch": operations})).detail == "batch: should have at most 10000 items, not 10001"


def test_a_question_with_everything() -> None:
    body = parse_body(
        MaxFlowBody,
        b'{"sources": [0, 1], "sinks": ["t"], "supply": [10, 2.50], "demand": ["inf"], "fields": ["flow"],'
        b' "min_version": 2, "flow": {"zeros": true}, "time_limit_s": 0.5}',
    )
    args = body.args(frozenset({"value"}))
    assert (args.supply, args.demand, args.fields) == (["10", "2.50"], ["inf"], {"flow"})
    assert (args.zeros, args.min_version, args.time_limit_s) == (True, 2, 0.5)


@pytest.mark.parametrize("depth", [0, 1, 100, 600, 900, 980, 100_000])
def test_a_member_that_is_there_twice_is_refused_however_deep_it_lies(depth: int) -> None:
    body = b'{"x":' + b"[" * depth + b'{"a":1,"a":2}' + b"]" * depth + b"}"
    with pytest.raises(ServiceError) as refused:
        loads_exact(body)
    assert refused.value.code == "invalid_body"
    if depth <= 100:
        assert refused.value.where.field == "/x" + "/0" * depth + "/a"


@pytest.mark.parametrize(
    ("behind", "told"),
    [("1", "'a' is there twice"), (json.dumps(dict.fromkeys(range(65), 1)), "at most 64"), ("[1", "JSON")],
)
def test_what_stands_behind_a_member_that_is_there_twice(behind: str, told: str) -> None:
    with pytest.raises(ServiceError, match=told):
        loads_exact(f'{{"x": {{"a": 1, "a": 2}}, "y": {behind}}}'.encode())
