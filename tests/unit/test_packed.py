"""Long columns of an update travel as bytes, and do what plain ones do."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_engine.errors import EngineError
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.networks.units import read_amounts, read_decimal, to_units
from gpu_engine.networks.updates import CapacityTable, Change
from gpu_engine.text.literals import read_literals
from gpu_engine.text.texts import Texts
from service.models.body import parse_body
from service.models.capacities import PatchBody
from service.packed import PACKED_ROWS, pack, unpack, unpacked
from service.protocol import Command, Kind, Operation, PatchArgs
from tests.unit.test_texts import longest_wait_s

TEXTS = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=10), max_size=20)
INTEGERS = st.lists(st.integers(0, 2**63 - 1), max_size=20)
LITERALS = st.one_of(
    st.from_regex(r"-?[0-9]{1,22}(\.[0-9]{0,12})?", fullmatch=True),
    st.sampled_from(
        ["inf", "-", "", ".", ".5", "5.", "-0", "-0.00", "1e3", "1_0", "+1", "nan", "-inf", "infx", " 1", "٣"]
    ),
    st.decimals(0, 10**10, places=3).map(str),
)
WAIT_S = 0.4
"""A fifth of what a plain update of a million rows kept other threads waiting."""


@given(TEXTS, INTEGERS)
def test_columns_come_back(texts: list[str], integers: list[int]) -> None:
    columns = unpack(pack({"edges": texts, "tail": integers, "head": None}))
    assert set(columns) == {"edges", "tail"}
    assert list(columns["edges"]) == texts
    assert list(columns["tail"]) == integers


@settings(deadline=None)
@given(st.lists(LITERALS, max_size=20), st.integers(0, 9))
def test_a_column_of_literals_is_read_as_one_by_one(literals: list[str], decimals: int) -> None:
    def whole(one: Any) -> object:
        try:
            return [one(literal) for literal in literals]
        except EngineError as error:
            return type(error), error.message

    def columns(one: Any, signed: bool) -> object:
        try:
            return read_literals(literals, decimals, lambda i: one(literals[i]), signed=signed).tolist()
        except EngineError as error:
            return type(error), error.message

    def capacity(literal: str) -> int:
        return read_amounts([literal], decimals, [0])[0]

    def change(literal: str) -> int:
        return to_units(read_decimal(literal), decimals)

    assert columns(capacity, signed=False) == whole(capacity)
    assert columns(change, signed=True) == whole(change)


def read(body: dict[str, Any]) -> PatchBody:
    return parse_body(PatchBody, bytearray(json.dumps(body).encode()))


def street(rows: int) -> EdgeList:
    tail, head = np.arange(rows, dtype=np.int32), np.arange(1, rows + 1, dtype=np.int32)
    names = [f"street-{row}" for row in range(rows)]
    return EdgeList(rows + 1, tail, head, np.full(rows, 50), decimals=1, edge_ids=names)


@pytest.mark.parametrize("by", ["edges", "ends"])
@pytest.mark.parametrize(
    "operation", [{"set": 2.5}, {"set": "inf"}, {"add": -1.5}, {"scale": 0.5}, {"op": "close"}, {"op": "reopen"}]
)
def test_a_packed_update_does_what_a_plain_one_does(by: str, operation: dict[str, Any]) -> None:
    rows = PACKED_ROWS + 5
    network = Network(street(rows))
    order = np.random.default_rng(1).permutation(rows).tolist()
    verb, amount = next(iter(operation.items()))
    named: dict[str, Any] = {"edges": [f"street-{row}" for row in order]}
    if by == "ends":
        named = {"tail": order, "head": [row + 1 for row in order]}
    body = read(named | {verb: amount if verb == "op" else [amount] * rows})
    (packed,) = PatchArgs.model_validate_json(_wire(body)).batch
    assert packed.packed is not None
    assert packed.edges is None
    columns = {"edges": body.edges, "tail": body.tail, "head": body.head, "amounts": body.amounts}
    plain = Operation.model_construct(op=packed.op, packed=None, **columns)
    ours, theirs = (CapacityTable(network).resolve([each]) for each in (unpacked(packed), plain))
    assert _same(ours, theirs)
    assert ours.skipped + ours.unchanged + len(ours.rows) == rows


def _wire(body: PatchBody) -> str:
    args = body.args(if_match=None, solve="all", max_rows=10**6)
    return json.dumps(args.model_dump(mode="json"))


def _same(ours: Change, theirs: Change) -> bool:
    pairs = ((ours.rows, theirs.rows), (ours.own, theirs.own), (ours.closed, theirs.closed))
    return all(np.array_equal(mine, other) for mine, other in pairs)


@pytest.mark.parametrize("by", ["edges", "ends"])
def test_a_packed_update_is_refused_with_the_names_at_fault(by: str) -> None:
    rows = PACKED_ROWS
    table = CapacityTable(Network(street(rows)))
    wrong = [*range(rows - 1), 10**6]
    named: dict[str, Any] = {"edges": [f"street-{row}" for row in wrong]}
    if by == "ends":
        named = {"tail": wrong, "head": [row + 1 for row in wrong]}
    body = read(named | {"set": [1] * rows})
    (packed,) = PatchArgs.model_validate_json(_wire(body)).batch
    with pytest.raises(EngineError, match=r"there is no edge|is no vertex") as refusal:
        table.resolve([unpacked(packed)])
    assert "np." not in refusal.value.message
    where = json.loads(json.dumps(refusal.value.where.members()))
    named = {"vertices": [10**6], "field": "/tail"}
    if by == "edges":
        named = {"edges": ["street-1000000"], "field": "/edges"}
    assert where == {"rows": [rows - 1]} | named
    skipping = table.resolve([unpacked(packed)], on_missing="skip")
    assert (len(skipping.rows), skipping.skipped) == (rows - 1, 1)
    body = read({"edges": [f"street-{row}" for row in range(rows)], "add": [0] * 7 + [-9] * (rows - 7)})
    (packed,) = PatchArgs.model_validate_json(_wire(body)).batch
    with pytest.raises(EngineError, match="negative") as refusal:
        table.resolve([unpacked(packed)])
    assert refusal.value.where.members() == {"field": "/add", "rows": [7], "edges": ["street-7"]}


def test_a_short_update_can_be_read_by_eye() -> None:
    body = read({"edges": ["a"], "set": [1.5]})
    (operation,) = body.args(if_match=None, solve="all", max_rows=10).batch
    assert (operation.edges, operation.amounts, operation.packed) == (["a"], ["1.5"], None)


def test_other_threads_run_while_a_large_update_is_read() -> None:
    rows = 1_000_000
    packed = pack({"edges": [f"street-{row}" for row in range(rows)], "amounts": ["7"] * rows})
    args = PatchArgs(batch=[Operation(op="set", packed=packed)]).model_dump(mode="json")
    text = Command(id="1", kind=Kind.PATCH, graph="g", args=args, reply_to="r", created_at=0.0).model_dump_json()
    table = CapacityTable(Network(street(rows)))
    table.resolve([Operation(op="set", edges=["street-1"], amounts=["1"])])  # loads the kernels
    changes: list[Change] = []

    def run() -> None:
        command = Command.model_validate_json(text)
        (operation,) = PatchArgs.model_validate(command.args).batch
        changes.append(table.resolve([unpacked(operation)]))

    assert longest_wait_s(run) < WAIT_S
    assert len(changes[0].rows) == rows
    assert isinstance(unpack(packed)["edges"], Texts)
