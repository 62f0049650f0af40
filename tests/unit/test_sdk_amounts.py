"""Amounts cross the wire without rounding."""

import json
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from headrace import InvalidInput, ParametricResult, Update
from headrace._amounts import amount_column, dumps, exact, loads
from headrace._bodies import graph_body


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (3, "3"),
        (10**30, "1" + "0" * 30),
        (Decimal("2.10"), "2.10"),
        (Decimal("1E+3"), "1000"),
        (Decimal("0.000000001"), "0.000000001"),
        (Decimal("1E+999999999999"), "1E+999999999999"),
        (Decimal("1E-999999999999"), "1E-999999999999"),
        (0.1, "0.1"),
        (1e-7, "0.0000001"),
        (math.inf, '"inf"'),
        (Decimal("Infinity"), '"inf"'),
        (np.int32(7), "7"),
        (np.float64(0.3), "0.3"),
    ],
)
def test_an_amount_is_sent_exactly(amount: object, text: str) -> None:
    assert dumps(amount) == text
    assert dumps([amount, 1]) == f"[{text},1]"


def test_long_doubles_mean_their_shortest_decimals() -> None:
    assert dumps(np.array(["0.1", "2.5", "inf"], dtype=np.longdouble)) == '[0.1,2.5,"inf"]'
    assert dumps(np.longdouble("0.1")) == "0.1"
    with pytest.raises(InvalidInput, match="cannot send ndarray"):
        dumps(np.array([1j], dtype=np.clongdouble))


@pytest.mark.parametrize("unit", ["ns", "us", "D"])
@pytest.mark.parametrize("kind", ["m8", "M8"])
def test_times_are_neither_names_nor_amounts(kind: str, unit: str) -> None:
    """NumPy makes integers of those in nanoseconds, which is how pandas has them."""
    times = np.array([5, 6], f"{kind}[{unit}]")
    series = pd.Series(times.astype(f"{kind}[ns]"))
    for column in (times, series, list(times)):
        for given in ({"capacity": column}, {"cost": column}, {"tail": column}):
            with pytest.raises(InvalidInput, match="cannot send"):
                graph_body(None, {"tail": [0, 1], "head": [1, 2], "capacity": [1, 1]} | given)  # type: ignore[arg-type]
        with pytest.raises(InvalidInput, match="cannot send"):
            dumps(Update(edges=[0, 1], set=column).as_json())


def test_float32_columns_mean_their_shortest_decimals() -> None:
    assert dumps(np.array([0.1, 2.5], dtype=np.float32)) == "[0.1,2.5]"


@pytest.mark.parametrize("amount", [math.nan, -math.inf, Decimal("NaN"), object()])
def test_what_is_no_amount_stays_here(amount: object) -> None:
    with pytest.raises(InvalidInput):
        dumps({"capacity": [amount]})


def test_nested_bodies_are_json() -> None:
    body = {"batch": [{"edges": ["a", "ü"], "set": [Decimal("1.5"), 2]}], "zeros": False, "none": None}
    assert json.loads(dumps(body)) == {
        "batch": [{"edges": ["a", "ü"], "set": [1.5, 2]}],
        "zeros": False,
        "none": None,
    }


def test_received_numbers_are_exact() -> None:
    assert loads("[0.1, 3, 1234567890123456789]") == [Decimal("0.1"), 3, 1234567890123456789]
    assert exact("inf") == math.inf
    for wrong in (True, "3", None):
        with pytest.raises(ValueError, match="no amount"):
            exact(wrong)


def test_one_amount_serves_all_rows() -> None:
    assert amount_column(2, 3, "set") == [2, 2, 2]
    assert amount_column([1, 2], 2, "set") == [1, 2]
    with pytest.raises(InvalidInput, match="set has 1 amount for 2 edges"):
        amount_column([1], 2, "set")


def test_a_float_is_the_same_factor_at_a_curve_as_in_its_question() -> None:
    """1.1 is 11/10 where it is sent, and not the fraction beside it that a float is, which lies behind the end."""
    segments = {"from": ["0", "1/2"], "to": ["1/2", "11/10"], "constant": [0, 4], "rate": [8, 0]}
    answer = {"graph": "g", "version": 1, "value": 4, "segments": segments, "complete": True, "engine": "cpu"}
    curve = ParametricResult.from_json(answer | {"certificate": {"valid": True, "flows": 5}})
    assert [curve.at(factor) for factor in (1.1, np.float32(1.1), Decimal("1.1"), "11/10")] == [4] * 4
    assert (curve.at(0.1), curve.segments[0].at(0.1)) == (Fraction(4, 5), Fraction(4, 5))
    for wrong in ("x", "1/0", math.nan, None, True):
        with pytest.raises(InvalidInput, match="no factor"):
            curve.at(wrong)  # type: ignore[arg-type]  # what a caller must not ask for
    with pytest.raises(InvalidInput, match="the curve is from 0 to 11/10, not at 6/5"):
        curve.at(1.2)
