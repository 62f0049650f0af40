"""A number given as text is the same amount in PUT, PATCH and questions, or is refused by each of them alike."""

import json

import numpy as np
import pytest

from gpu_engine import formats
from gpu_engine.errors import EngineError
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.networks.updates import CapacityTable
from gpu_engine.types import INFINITE
from service.errors import ServiceError
from service.models.body import parse_body
from service.models.capacities import PatchBody
from service.models.flows import MaxFlowBody
from service.worker.questions.terminals import read_terminals

DECIMALS = 3
READ = {
    "4": 4000,
    "1.5": 1500,
    "+4": 4000,
    "007": 7000,
    "4.": 4000,
    ".5": 500,
    "1.5000": 1500,
    "2e3": 2_000_000,
    "25E-1": 2500,
    "1e+2": 100_000,
    "0": 0,
    "-0": 0,
    **dict.fromkeys(("inf", "Inf", "INF", "Infinity", "infinity"), INFINITE),
}
REFUSED = [
    *(
        "",
        " ",
        "4 ",
        " 4",
        "four",
        "1,5",
        "1_000",
        "0x10",
        "4e",
        "e4",
        ".",
        "+",
        "--4",
        "nan",
        "infinit",
        "\u0131nf",
        "inf ",
        "+inf",
        "-inf",
        "-Infinity",
    ),
    *("\u0664", "-4", "0.0001", "1e30", "9223372036854775807", "true", "4\n", "1e999999999"),
]


def network() -> Network:
    return Network(EdgeList(2, np.array([0], np.int32), np.array([1], np.int32), np.array([1]), decimals=DECIMALS))


def put(amount: str) -> int:
    body = {"tail": [0], "head": [1], "capacity": [amount], "decimals": DECIMALS}
    return int(formats.read(json.dumps(body).encode(), "application/json").capacity[0])


def patch(amount: str) -> int:
    body = parse_body(PatchBody, json.dumps({"edges": [0], "set": [amount]}).encode())
    args = body.args(if_match=None, solve="none", max_rows=10)
    return int(CapacityTable(network()).resolve(args.batch).own[0])


def supply(amount: str) -> int:
    body = parse_body(MaxFlowBody, json.dumps({"sources": [0], "sinks": [1], "supply": [amount]}).encode())
    return int(read_terminals(network(), body.args(frozenset({"value"}))).supply[0])


@pytest.mark.parametrize("road", [put, patch, supply])
@pytest.mark.parametrize("amount", READ)
def test_read_by_every_road(road: type, amount: str) -> None:
    assert road(amount) == READ[amount]


@pytest.mark.parametrize("amount", REFUSED)
def test_refused_by_every_road_with_one_code(amount: str) -> None:
    codes = set()
    for road in (put, patch, supply):
        with pytest.raises((EngineError, ServiceError)) as refused:
            road(amount)
        codes.add(refused.value.code)
    assert len(codes) == 1, codes
    assert codes <= {"invalid_body", "capacity_overflow"}


def test_text_beside_numbers_in_one_column() -> None:
    body = parse_body(PatchBody, b'{"edges": [0, 0, 0], "add": [1, "-0.5", 2.50]}')
    assert body.add == ["1", "-0.5", "2.50"]
