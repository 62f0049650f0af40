"""What rounding has changed in an update, amount by amount as the standard library's decimal has it."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_engine.errors import InvalidNetwork
from gpu_engine.networks.costs import CostTable
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.networks.rounded import EXACT, UNROUNDED, Rounded
from gpu_engine.networks.rounding import OF_DECIMAL, Rounding
from gpu_engine.networks.updates import CapacityTable
from gpu_engine.types import INFINITE
from service.protocol import Operation
from tests.unit.test_rounding import MODES

Op = Literal["set", "add", "scale"]
DECIMALS = 2
LITERALS = st.one_of(
    st.decimals(0, 1000, places=2),
    st.decimals(0, 1000, places=3),
    st.decimals(0, 1000, places=5),
    st.decimals(0, 100, places=15),
    st.decimals(0, 100, places=25),
    st.integers(0, 50).map(lambda k: Decimal(2 * k + 1).scaleb(-3)),  # ties, mostly
).map(lambda number: f"{number:f}")


def table(own: Sequence[int]) -> CapacityTable:
    ends = np.zeros(len(own), np.int32)
    return CapacityTable(Network(EdgeList(2, ends, ends + 1, np.array(own, np.int64), decimals=DECIMALS)))


def results(own: Sequence[int], op: Op, literals: Sequence[str]) -> list[Decimal]:
    """What the amounts would be exactly."""
    amounts = [Decimal(units).scaleb(-DECIMALS) for units in own]
    given = list(map(Decimal, literals))
    if op == "set":
        return given
    act = EXACT.add if op == "add" else EXACT.multiply
    return list(map(act, amounts, given))


def expected(exact: Sequence[Decimal], rounding: Rounding) -> tuple[list[int], Rounded]:
    kept = [number.scaleb(DECIMALS, EXACT).to_integral_value(OF_DECIMAL[rounding], EXACT) for number in exact]
    changes = [
        EXACT.subtract(number, whole.scaleb(-DECIMALS)).copy_abs() for number, whole in zip(exact, kept, strict=True)
    ]
    return list(map(int, kept)), Rounded(sum(change != 0 for change in changes), max(changes))


ROWS = st.lists(st.tuples(st.integers(0, 10**6), LITERALS), min_size=1, max_size=12)


@settings(deadline=None)
@given(ROWS, st.sampled_from(("set", "add", "scale")), st.sampled_from(MODES))
def test_capacities(rows: list[tuple[int, str]], op: Op, rounding: Rounding) -> None:
    own, literals = map(list, zip(*rows, strict=True))
    t = table(own)  # type: ignore[arg-type]
    operation = Operation(op=op, edges=list(range(len(own))), amounts=literals)  # type: ignore[arg-type]
    change = t.resolve([operation], rounding=rounding)
    units, rounded = expected(results(own, op, literals), rounding)  # type: ignore[arg-type]
    t.network.set_capacity(change.rows, change.effective)
    assert t.network.capacity.tolist() == units
    assert change.rounded == rounded


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(-(10**6), 10**6), LITERALS, st.sampled_from(["", "-"])), min_size=1, max_size=12),
    st.sampled_from(("set", "add", "scale")),
    st.sampled_from(MODES),
)
def test_costs(rows: list[tuple[int, str, str]], op: Op, rounding: Rounding) -> None:
    own, literals = [units for units, _, _ in rows], [sign + literal for _, literal, sign in rows]
    t = table([1] * len(own))
    costs = CostTable(t.network, np.array(own, np.int64), DECIMALS)
    change = costs.resolve(t, [Operation(op=op, edges=list(range(len(own))), amounts=literals)], rounding=rounding)
    units, rounded = expected(results(own, op, literals), rounding)
    costs.apply(change)
    assert costs.cost.tolist() == units
    assert change.rounded == rounded


@pytest.mark.parametrize("op", ["set", "add", "scale"])
def test_without_rounding_nothing_is_said(op: Op) -> None:
    change = table([100, 300]).resolve([Operation(op=op, edges=[0, 1], amounts=["2", "0.5"])])
    assert change.rounded == UNROUNDED
    for literal in ("0.001", "0.0000000000000000000000001"):
        with pytest.raises(InvalidNetwork, match="rounding=nearest"):
            table([101, 300]).resolve([Operation(op=op, edges=[0, 1], amounts=["2", literal])])


@pytest.mark.parametrize("rounding", MODES)
def test_a_sum_below_zero_is_refused_before_it_is_rounded(rounding: Rounding) -> None:
    for literal in ("-0.001", "-0.0000000000000000000000001"):
        with pytest.raises(InvalidNetwork, match="negative"):
            table([0]).resolve([Operation(op="add", edges=[0], amounts=[literal])], rounding=rounding)
        with pytest.raises(InvalidNetwork, match="negative"):
            table([0]).resolve([Operation(op="set", edges=[0], amounts=[literal])], rounding=rounding)
    change = table([5]).resolve([Operation(op="add", edges=[0], amounts=["-0.021"])], rounding=rounding)
    assert (change.own.tolist(), change.rounded) == (
        [2 if rounding == "down" else 3],
        Rounded(1, Decimal("0.009" if rounding == "down" else "0.001")),
    )


def test_what_stays_unlimited_is_not_rounded() -> None:
    for op in ("add", "scale"):
        for literal in ("0.001", "0.125", "0.3333333333333333333333333"):
            operation = Operation(op=op, edges=[0], amounts=[literal])  # type: ignore[arg-type]
            change = table([INFINITE]).resolve([operation], rounding="nearest")
            assert (len(change.rows), change.rounded) == (0, UNROUNDED)
    change = table([1]).resolve([Operation(op="set", edges=[0], amounts=["inf"])], rounding="up")
    assert (change.own.tolist(), change.rounded) == ([INFINITE], UNROUNDED)


def test_operations_of_a_batch_add_up() -> None:
    batch: list[dict[str, Any]] = [
        {"op": "set", "edges": [0, 1], "amounts": ["0.125", "1"]},
        {"op": "scale", "edges": [1, 0], "amounts": ["0.999", "1"]},
        {"op": "close", "edges": [0]},
        {"op": "add", "edges": [0, 9], "amounts": ["0.0001", "0.005"]},
    ]
    change = table([7, 7]).resolve(
        [Operation(**operation) for operation in batch], on_missing="skip", rounding="nearest"
    )
    assert change.rounded == Rounded(3, Decimal("0.005"))


@pytest.mark.parametrize("literal", ["0.005", "0.00500000000000000000000"])
def test_what_is_rounded_is_the_sum(literal: str) -> None:
    """0.015 is as far from 0.01 as from 0.02, which is even."""
    change = table([1]).resolve([Operation(op="add", edges=[0], amounts=[literal])], rounding="nearest")
    assert (change.own.tolist(), change.rounded) == ([2], Rounded(1, Decimal("0.005")))
