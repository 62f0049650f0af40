"""Operations of a batch against a table: exact, all or nothing, each refusal with its code."""

from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from gpu_engine.errors import CapacityOverflow, EngineError, InvalidNetwork
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.networks.units import read_amounts, read_decimal, to_units, write_units
from gpu_engine.networks.updates import CapacityTable, Change
from gpu_engine.text.json_text import write_amounts
from gpu_engine.types import INFINITE, MAX_TOTAL
from service.models.columns import check_amounts
from service.models.numbers import Number
from service.protocol import Operation


def table(**more: Any) -> CapacityTable:
    """
    ::

        a --(2)--> b --(inf)--> c      rows: 0 a>b, 1 b>c, 2 a>c twice as 2 and 3, 4 c~b undirected, 5 a>a
    """
    columns: dict[str, Any] = {
        "n_vertices": 3,
        "tail": np.array([0, 1, 0, 0, 2, 0], np.int32),
        "head": np.array([1, 2, 2, 2, 1, 0], np.int32),
        "capacity": np.array([20, INFINITE, 5, 7, 9, 4]),
        "undirected": np.array([False, False, False, False, True, False]),
        "decimals": 1,
        "vertex_labels": ["a", "b", "c"],
    }
    return CapacityTable(Network(EdgeList(**columns | more)))


@pytest.mark.parametrize("literal", ["1e15", "1e12", "2000000000"])
def test_an_amount_beyond_the_limit_says_how_small_the_unit_is(literal: str) -> None:
    """It may be small itself: the decimals of the graph are what makes so many units of it."""
    said = f"is beyond the limit of {MAX_TOTAL} units"
    with pytest.raises(CapacityOverflow) as refused:
        to_units(read_decimal(literal), 9)
    assert str(refused.value).endswith(f" {said} of 10^-9; the decimals were fixed when the graph was loaded")
    with pytest.raises(CapacityOverflow) as refused:
        to_units(read_decimal("1e19"), 0)
    assert str(refused.value) == f"1E+19 {said}"


def run(t: CapacityTable, *operations: dict[str, Any], **options: Any) -> Change:
    change = t.resolve([Operation(**operation) for operation in operations], **options)
    t.network.set_capacity(change.rows, change.effective)
    t.apply(change)
    return change


def test_set_add_and_scale_are_exact() -> None:
    t = table()
    change = run(t, {"op": "set", "edges": [0, 2], "amounts": ["0.3", "1e1"]})
    assert change.rows.tolist() == [0, 2]
    assert change.own.tolist() == [3, 100]
    run(t, {"op": "add", "edges": [0, 1], "amounts": ["0.7", "5"]}, {"op": "scale", "edges": [0], "amounts": ["1.5"]})
    assert t.own(np.array([0, 1])).tolist() == [15, INFINITE]


def test_operations_run_in_order_on_the_same_edge() -> None:
    change = run(table(), {"op": "set", "edges": [0], "amounts": ["4"]}, {"op": "add", "edges": [0], "amounts": ["-4"]})
    assert change.own.tolist() == [0]


def test_a_closed_edge_keeps_its_own_capacity() -> None:
    t = table()
    change = run(t, {"op": "close", "edges": [0, 1]})
    assert change.effective.tolist() == [0, 0]
    assert t.network.capacity[:2].tolist() == [0, 0]
    run(t, {"op": "add", "edges": [0], "amounts": ["1"]})
    assert t.network.capacity[0] == 0
    assert t.own(np.array([0, 1])).tolist() == [30, INFINITE]
    assert run(t, {"op": "reopen", "edges": [0, 1, 2]}).unchanged == 1
    assert t.network.capacity[:2].tolist() == [30, INFINITE]


def test_edges_by_their_ends() -> None:
    t = table()
    change = run(t, {"op": "set", "tail": ["a", "b", "a"], "head": ["b", "b", "a"], "amounts": ["1", "1", "2"]}, **SKIP)
    assert (change.rows.tolist(), change.skipped) == ([0, 5], 1)
    with pytest.raises(EngineError) as error:
        run(t, {"op": "close", "tail": ["a"], "head": ["c"]})
    assert (error.value.code, error.value.where.edges, error.value.rows) == ("ambiguous_edge", [2, 3], [0])
    assert run(t, {"op": "close", "tail": ["c"], "head": ["b"]}).rows.tolist() == [4]
    with pytest.raises(EngineError, match="parallel"):  # b>c and the undirected c~b
        run(t, {"op": "close", "tail": ["b"], "head": ["c"]})


SKIP: dict[str, Any] = {"on_missing": "skip"}


@pytest.mark.parametrize(
    ("operation", "code", "rows", "edges"),
    [
        ({"op": "set", "edges": [0, 99], "amounts": ["1", "1"]}, "unknown_edge", [1], [99]),
        ({"op": "close", "edges": ["x"]}, "unknown_edge", [0], ["x"]),
        ({"op": "close", "edges": [2**70]}, "unknown_edge", [0], [2**70]),
        ({"op": "close", "tail": ["a", "z"], "head": ["b", "b"]}, "unknown_vertex", [1], []),
        ({"op": "set", "edges": [0], "amounts": ["0.25"]}, "invalid_body", [0], [0]),
        ({"op": "set", "edges": [0], "amounts": ["-1"]}, "invalid_body", [0], [0]),
        ({"op": "set", "edges": [0], "amounts": ["nan"]}, "invalid_body", [0], [0]),
        ({"op": "set", "edges": [0], "amounts": ["Infinity"]}, "invalid_body", [0], [0]),
        ({"op": "set", "edges": [0], "amounts": ["1_0"]}, "invalid_body", [0], [0]),
        ({"op": "set", "edges": [0], "amounts": ["1" * 41]}, "capacity_overflow", [0], [0]),
        ({"op": "set", "edges": [0], "amounts": ["0." + "0" * 50 + "1"]}, "invalid_body", [0], [0]),
        ({"op": "set", "edges": [0], "amounts": ["1e999999"]}, "capacity_overflow", [0], [0]),
        ({"op": "set", "edges": [0], "amounts": ["1e-999999"]}, "invalid_body", [0], [0]),
        ({"op": "set", "edges": [0], "amounts": ["0.000000000000000000001"]}, "invalid_body", [0], [0]),
        ({"op": "set", "edges": [0, 0], "amounts": ["1", "2"]}, "invalid_body", [0, 1], [0]),
        ({"op": "close", "edges": [4, 2, 0, 2, 4]}, "invalid_body", [0, 1, 3, 4], [2, 4]),
        ({"op": "close", "tail": ["a", "c", "a"], "head": ["b", "b", "b"]}, "invalid_body", [0, 2], [0]),
        ({"op": "set", "edges": [0, 2], "amounts": ["1"]}, "invalid_body", [], []),
        ({"op": "set", "edges": [0]}, "invalid_body", [], []),
        ({"op": "close", "edges": [0], "amounts": ["1"]}, "invalid_body", [], []),
        ({"op": "close", "edges": [0], "tail": ["a"], "head": ["b"]}, "invalid_body", [], []),
        ({"op": "add", "edges": [0], "amounts": ["-2.1"]}, "invalid_body", [0], [0]),
        ({"op": "add", "edges": [0], "amounts": ["inf"]}, "invalid_body", [0], [0]),
        ({"op": "add", "edges": [0], "amounts": [str(MAX_TOTAL // 10)]}, "capacity_overflow", [0], [0]),
        ({"op": "scale", "edges": [0], "amounts": ["0.33"]}, "invalid_body", [0], [0]),
        ({"op": "scale", "edges": [0], "amounts": ["-1"]}, "invalid_body", [0], [0]),
        ({"op": "scale", "edges": [1], "amounts": ["0"]}, "invalid_body", [0], [1]),
        ({"op": "scale", "edges": [0], "amounts": ["1e40"]}, "capacity_overflow", [0], [0]),
    ],
)
def test_refusals(operation: dict[str, Any], code: str, rows: list[int], edges: list[object]) -> None:
    t = table()
    before = t.network.capacity.copy()
    with pytest.raises(EngineError) as error:
        run(t, {"op": "close", "edges": [3]}, operation)
    where = error.value.where
    assert (error.value.code, where.operation, where.rows, where.edges) == (code, 1, rows, edges)
    assert np.array_equal(t.network.capacity, before)
    assert not t.closed.any()


@pytest.mark.parametrize("text", ["1e-400", "1e-39", "0." + "0" * 50 + "1", "0." + "0" * 100 + "1"])
@pytest.mark.parametrize("op", ["set", "add", "scale"])
def test_the_smallest_numbers_are_refused_or_rounded(text: str, op: str) -> None:
    """As numbers and as texts of a body, however they are written."""
    for value in (text, Number(text)):
        operation = {"op": op, "edges": [0], "amounts": check_amounts([value])}
        with pytest.raises(
            InvalidNetwork, match=r"so small a number .*rounding=nearest \(or down, up\) rounds it"
        ) as error:
            run(table(), operation)
        assert error.value.rows == [0]
        for mode, more in (("nearest", 0), ("down", 0), ("up", 1)):
            t = table()
            rounded = run(t, operation, rounding=mode).rounded
            assert t.own(np.array([0])).tolist() == [more + (20 if op == "add" else 0)]
            assert (rounded.rows, rounded.largest > 0, rounded.largest < Decimal("0.1")) == (1, True, True)


@pytest.mark.parametrize("text", ["3." + "0" * 100, "0" * 60 + "3", "3e0", "300e-2"])
def test_zeros_that_say_nothing_are_no_decimals(text: str) -> None:
    for op, units in (("set", 30), ("add", 50), ("scale", 60)):
        assert run(table(), {"op": op, "edges": [0], "amounts": check_amounts([text])}).own.tolist() == [units]


def test_scale_rounds_down_only_on_request() -> None:
    change = run(table(), {"op": "scale", "edges": [0, 2], "amounts": ["0.33", "0.5"]}, rounding="down")
    assert change.own.tolist() == [6, 2]


@pytest.mark.parametrize(
    ("operation", "nearest", "down", "up"),
    [
        ({"op": "set", "edges": [0], "amounts": ["0.25"]}, 2, 2, 3),
        ({"op": "set", "edges": [0], "amounts": ["0.35"]}, 4, 3, 4),
        ({"op": "set", "edges": [0], "amounts": ["0.30000000000000004"]}, 3, 3, 4),
        ({"op": "set", "edges": [0], "amounts": ["0." + "0" * 100 + "12345678901234567"]}, 0, 0, 1),
        ({"op": "set", "edges": [0], "amounts": ["1e-30"]}, 0, 0, 1),
        ({"op": "add", "edges": [0], "amounts": ["0.05"]}, 20, 20, 21),  # 2.05: the tie goes to the even 2.0
        ({"op": "add", "edges": [0], "amounts": ["0.15"]}, 22, 21, 22),
        ({"op": "add", "edges": [2], "amounts": ["0.05"]}, 6, 5, 6),  # 0.55: to the even 0.6
        ({"op": "add", "edges": [0], "amounts": ["-0.15"]}, 18, 18, 19),
        ({"op": "add", "edges": [0], "amounts": ["-1.99"]}, 0, 0, 1),
        ({"op": "add", "edges": [1], "amounts": ["0.05"]}, INFINITE, INFINITE, INFINITE),
        ({"op": "scale", "edges": [0], "amounts": ["0.33"]}, 7, 6, 7),
        ({"op": "scale", "edges": [0], "amounts": ["0.025"]}, 0, 0, 1),
    ],
)
def test_results_are_rounded_only_on_request(operation: dict[str, Any], nearest: int, down: int, up: int) -> None:
    """Edge 0 has 2.0, with one decimal. What is added is not rounded itself: the sum is."""
    found = [table().resolve([Operation(**operation)], rounding=mode) for mode in ("nearest", "down", "up")]
    own = [(change.own.tolist() or table().own(np.array(operation["edges"])).tolist())[0] for change in found]
    assert own == [nearest, down, up]
    if operation["edges"] == [0]:
        with pytest.raises(EngineError) as refused:
            run(table(), operation)
        assert (refused.value.code, refused.value.rows) == ("invalid_body", [0])
        assert ("rounding=nearest" in str(refused.value)) or len(operation["amounts"][0]) > 40


@pytest.mark.parametrize("rounding", ["nearest", "down", "up"])
@pytest.mark.parametrize(
    ("operation", "code"),
    [
        ({"op": "set", "edges": [0], "amounts": ["-0.01"]}, "invalid_body"),
        ({"op": "add", "edges": [0], "amounts": ["-2.01"]}, "invalid_body"),
        ({"op": "set", "edges": [0], "amounts": ["nan"]}, "invalid_body"),
        ({"op": "set", "edges": [0], "amounts": ["1e40"]}, "capacity_overflow"),
        ({"op": "add", "edges": [0], "amounts": ["1e18"]}, "capacity_overflow"),
        ({"op": "scale", "edges": [0], "amounts": ["1e18"]}, "capacity_overflow"),
        ({"op": "scale", "edges": [1], "amounts": ["0"]}, "invalid_body"),
    ],
)
def test_rounding_hides_no_mistake(operation: dict[str, Any], code: str, rounding: Any) -> None:
    with pytest.raises(EngineError) as refused:
        run(table(), operation, rounding=rounding)
    assert (refused.value.code, refused.value.where.edges) == (code, operation["edges"])


def test_at_most_ten_rows_are_shown() -> None:
    with pytest.raises(EngineError) as error:
        run(table(), {"op": "close", "edges": list(range(100, 130))})
    assert len(error.value.rows) == len(error.value.where.edges) == 10


@pytest.mark.parametrize("seed", range(20))
def test_amounts_survive_writing_and_reading(seed: int) -> None:
    rng = np.random.default_rng(seed)
    decimals = int(rng.integers(0, 10))
    units = [0, 1, MAX_TOTAL, *rng.integers(0, MAX_TOTAL, 50).tolist()]
    literals = [write_units(amount, decimals) for amount in units]
    assert read_amounts(literals, decimals, range(len(units))) == units
    assert not any(literal.endswith("0") for literal in literals if "." in literal)


@pytest.mark.parametrize(
    ("units", "decimals", "text"),
    [
        (2**53 + 1, 0, "9007199254740993"),
        (MAX_TOTAL - 1, 0, str(MAX_TOTAL - 1)),
        (-(2**53) - 1, 0, "-9007199254740993"),
        (2**53 + 1, 3, "9007199254740.993"),
    ],
)
def test_amounts_that_no_float_holds(units: int, decimals: int, text: str) -> None:
    assert write_units(units, decimals) == text
    assert write_amounts(np.array([units]), decimals) == text.encode()
    assert to_units(read_decimal(text), decimals) == units


def test_infinite_is_written_as_inf() -> None:
    assert write_units(INFINITE, 3) == '"inf"'
    assert read_amounts(["inf"], 3, [0]) == [INFINITE]
