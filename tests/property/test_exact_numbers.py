"""A capacity is read as exactly the number that was written, or refused: whatever its digits and exponent."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_engine import formats
from gpu_engine.errors import EngineError
from gpu_engine.types import MAX_DECIMALS, MAX_TOTAL

BODIES = {
    "text/csv": "tail,head,capacity\n0,1,{}\n",
    "text/x-matrix-market": "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 {}\n",
    "text/x-dimacs": "p max 2 1\nn 1 s\nn 2 t\na 1 2 {}\n",
    "application/json": '{{"tail":[0],"head":[1],"capacity":[{}]}}',
}
DIGITS = st.sampled_from([1, 2, 9, 19, 20, 28, 37, 38, 39, 48, 100]).flatmap(
    lambda count: st.text("0123456789", min_size=count, max_size=count) | st.just("0" * (count - 1) + "5")
)
EXPONENTS = st.sampled_from([0, 1, 8, 9, 10, 19, 28, 37, 38, 39, 40, 48, 400, 999_999]) | st.integers(0, 60)


@st.composite
def numbers(draw: st.DrawFn) -> str:
    text = draw(DIGITS).lstrip("0") or "0"
    if draw(st.booleans()):
        text += "." + draw(DIGITS)
    if draw(st.booleans()):
        text += draw(st.sampled_from(["e", "E", "e+", "e-"])) + str(draw(EXPONENTS))
    return text


def holds(text: str) -> bool:
    """Whether a graph can have this capacity at all."""
    number = Decimal(text)
    if number.is_zero():
        return True
    if number.adjusted() > 30 or number.adjusted() < -MAX_DECIMALS:
        return False
    exact = Fraction(number)
    decimals = next((k for k in range(MAX_DECIMALS + 1) if (exact * 10**k).denominator == 1), None)
    return decimals is not None and exact * 10**decimals <= MAX_TOTAL


def capacity_of(body: bytes, media_type: str) -> Fraction | None:
    """None if it is refused."""
    try:
        edges = formats.read(body, media_type)
    except EngineError:
        return None
    return Fraction(int(edges.capacity[0]), 10**edges.decimals)


@pytest.mark.parametrize("media_type", [kind for kind in BODIES if kind != "text/x-dimacs"])
@given(numbers())
def test_a_number_is_read_exactly_or_refused(media_type: str, text: str) -> None:
    assert capacity_of(BODIES[media_type].format(text).encode(), media_type) == (
        Fraction(Decimal(text)) if holds(text) else None
    )


@pytest.mark.parametrize("media_type", BODIES)
@pytest.mark.parametrize("text", ["1554903151124695302e-48", "0." + "4" * 48, "1" * 60, "7" * 5000])
def test_what_arrow_would_have_wrapped_around(media_type: str, text: str) -> None:
    """Found by hand: these became 0, or something negative."""
    with pytest.raises(EngineError):
        formats.read(BODIES[media_type].format(text).encode(), media_type)
