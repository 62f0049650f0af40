"""How much rounding has changed is said exactly: how many amounts, and the largest change among them."""

import math
import random
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gpu_engine import formats
from gpu_engine.formats._many_digits import round_floats
from gpu_engine.networks.rounded import EXACT, UNROUNDED, Rounded
from gpu_engine.networks.rounding import OF_DECIMAL, Precision, Rounding
from tests.unit.test_rounding import FORMATS, HARD, MODES, as_arrow, as_npz, load

ARROW = "application/vnd.apache.arrow.stream"


def expected(texts: Sequence[str], decimals: int, rounding: Rounding) -> Rounded:
    """The oracle: the standard library's decimal, amount by amount."""
    changes = []
    for number in map(Decimal, texts):
        kept = number.scaleb(decimals, EXACT).to_integral_value(OF_DECIMAL[rounding]).scaleb(-decimals)
        changes.append(EXACT.subtract(kept, number).copy_abs())
    return Rounded(sum(change != 0 for change in changes), max(changes, default=Decimal(0)))


@pytest.mark.parametrize("rounding", MODES)
@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("decimals", [0, 1, 2])
def test_every_format_says_what_rounding_changed(name: str, decimals: int, rounding: Rounding) -> None:
    for values in (HARD, [value for value in HARD if 1e-9 < value < 9], [1 / 3, 0.25, 7.0], [0.25], [1.5e-7, 1e3]):
        edges = load(name, values, decimals, rounding)
        assert edges.rounded == expected([repr(value) for value in values], decimals, rounding)


@pytest.mark.parametrize("name", FORMATS)
def test_nothing_is_said_where_nothing_was_rounded(name: str) -> None:
    assert load(name, [1.0, 2.5], 1, "nearest").rounded == UNROUNDED
    assert load(name, [1.0, 2.5]).rounded == UNROUNDED


@settings(deadline=None, print_blob=True)
@example([4294967295.875], 0, "nearest", "csv")
@example([1.1198646852134934e-133], 0, "up", "arrow")
@example([1.1198646852134934e-133, 5e-324], 6, "up", "npz")
@example([5e-324], 2, "nearest", "csv")
@given(
    st.lists(st.floats(0, 2.0**40), min_size=1, max_size=30), st.integers(0, 6), st.sampled_from(MODES),
    st.sampled_from(sorted(FORMATS)),
)  # fmt: skip
def test_any_floats(values: list[float], decimals: int, rounding: Rounding, name: str) -> None:
    rounded = load(name, values, decimals, rounding).rounded
    assert rounded == expected([repr(value) for value in values], decimals, rounding)


@pytest.mark.parametrize("rounding", MODES)
@pytest.mark.parametrize("scale", [10, 18, 19, 20, 25, 28])
def test_just_below_powers_of_two(scale: int, rounding: Rounding) -> None:
    """Arrow rounds 4294967295.875 of 19 decimals to 4294967295, whatever it is asked for."""
    rng = random.Random(scale)
    for decimals in (0, 1, 2, 6):
        texts = []
        for bits in range(34):
            whole = Decimal((1 << bits) + rng.randint(-2, 2)).copy_abs() / 10**decimals
            part = Decimal(rng.choice(["0", "0.125", "0.5", "0.875", "0.9999"])) / 10**decimals
            texts.append(f"{(whole + part).quantize(Decimal(1).scaleb(-scale), context=EXACT):f}")
        read = formats.read(
            as_arrow(list(map(Decimal, texts)), pa.decimal128(38, scale)),  # type: ignore[arg-type]
            ARROW,
            precision=Precision(decimals, rounding),
        )
        kept = [Decimal(text).scaleb(decimals).to_integral_value(OF_DECIMAL[rounding]) for text in texts]
        assert read.capacity.tolist() == list(map(int, kept))
        assert read.rounded == expected(texts, decimals, rounding)


@pytest.mark.parametrize("name", FORMATS)
def test_floats_just_below_powers_of_two(name: str) -> None:
    values = [4294967295.875, 8589934591.875, 17179869183.9, 65535.875]
    edges = load(name, values, 0, "nearest")
    assert edges.capacity.tolist() == [round(value) for value in values]
    assert edges.rounded == expected([repr(value) for value in values], 0, "nearest")


SHORT_DIGITS = 15
"""Floats of so many digits or fewer are rounded in another place."""


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 10**7), st.integers(1, 999), st.integers(-3, 3)), min_size=1, max_size=200),
    st.integers(0, 4),
    st.sampled_from(MODES),
)
def test_fractions_that_are_nearly_alike(parts: list[tuple[int, int, int]], decimals: int, rounding: Rounding) -> None:
    """Thirds and sevenths, and their neighbours, of all sizes: the last digits decide which of them changed most."""
    values = []
    for whole, divisor, steps in parts:
        value = whole / divisor
        for _ in range(abs(steps)):
            value = math.nextafter(value, math.inf if steps > 0 else 0)
        values.append(value)
    long = [value for value in values if len(repr(value).replace(".", "").lstrip("0")) > SHORT_DIGITS]
    _, rounded = round_floats(np.array(long), decimals, rounding)
    assert rounded == expected([repr(value) for value in long], decimals, rounding)


@pytest.mark.parametrize("rounding", MODES)
def test_a_long_column_of_thirds(rounding: Rounding) -> None:
    values = (np.arange(30_000) / 3 + 1e6).tolist()
    assert load("npz", values, 2, rounding).rounded == expected(list(map(repr, values)), 2, rounding)
    rng = random.Random(11)
    values = [rng.random() * 10 ** rng.randint(-3, 9) for _ in range(30_000)]
    assert load("npz", values, 4, rounding).rounded == expected(list(map(repr, values)), 4, rounding)


@pytest.mark.parametrize("rounding", MODES)
def test_amounts_of_arrow_and_units(rounding: Rounding) -> None:
    texts = ["0.3333333333333333333333", "0.25", "12345678901.999", "0.9999999999999999999999", "7"]
    body = as_arrow(list(map(Decimal, texts)), pa.decimal128(38, 22))  # type: ignore[arg-type]
    assert formats.read(body, ARROW, precision=Precision(1, rounding)).rounded == expected(texts, 1, rounding)
    body = as_arrow([1250, 1249, 1200], pa.int64(), {"decimals": "3"})
    edges = formats.read(body, ARROW, precision=Precision(1, rounding))
    assert edges.rounded == expected(["1.250", "1.249", "1.200"], 1, rounding)


@pytest.mark.parametrize("text", ["1e-400000", "0.1e-50", "0." + "3" * 150, "+.5", "1e-7", "00.05"])
@pytest.mark.parametrize("rounding", MODES)
def test_text_of_unusual_form(text: str, rounding: Rounding) -> None:
    body = f"tail,head,capacity\n0,1,{text}\n0,1,0.3\n".encode()
    assert formats.read(body, "text/csv", precision=Precision(1, rounding)).rounded == expected([text], 1, rounding)


@pytest.mark.parametrize("rounding", MODES)
def test_dense_matrices(rounding: Rounding) -> None:
    texts = ["0", "0.25", "0.349999", "0"]
    rows = f"{texts[0]} {texts[1]}\n{texts[2]} {texts[3]}\n".encode()
    edges = formats.read(rows, "text/x-adjacency-matrix", precision=Precision(1, rounding))
    assert edges.rounded == expected(texts, 1, rounding)
    array = np.array(list(map(float, texts))).reshape(2, 2)
    assert formats.from_matrix(array, precision=Precision(1, rounding)).rounded == expected(texts, 1, rounding)


def test_what_stands_beside_unlimited_counts_for_nothing() -> None:
    flags = [True, False]
    decimal_column = pa.array([Decimal("0.33"), Decimal("0.5")], pa.decimal128(5, 2))
    for capacity in (np.array([1 / 3, 0.5]), pa.array([1 / 3, 0.5]), decimal_column, pa.array([33, 50], pa.int64())):
        columns: dict[str, Any] = {"tail": [0, 0], "head": [1, 1], "capacity": capacity, "unlimited": flags}
        table = pa.table(columns).replace_schema_metadata({"decimals": "2"})
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        body = sink.getvalue().to_pybytes()
        assert formats.read(body, ARROW, precision=Precision(1, "nearest")).rounded == UNROUNDED
        assert formats.read(body, ARROW, precision=Precision(0, "up")).rounded == Rounded(1, Decimal("0.5"))


@pytest.mark.parametrize("rounding", MODES)
@pytest.mark.parametrize("form", ["json", "csv", "npz", "arrow"])
def test_costs_have_their_own(form: str, rounding: Rounding) -> None:
    """A negative cost is rounded down away from zero."""
    texts = ["-0.26", "0.11", "-0.5", "-0.01", "3", "0.12345"]
    edges = {"tail": [0] * 6, "head": [1] * 6, "capacity": [1] * 6}
    if form == "json":
        body = str(edges | {"cost": [Decimal(text) for text in texts]}).replace("'", '"')
        body = body.replace("Decimal(", "").replace(")", "")
        data, media_type = body.encode(), "application/json"
    elif form == "csv":
        lines = "".join(f"0,1,1,{text}\n" for text in texts)
        data, media_type = f"tail,head,capacity,cost\n{lines}".encode(), "text/csv"
    elif form == "npz":
        import io

        out = io.BytesIO()
        np.savez(out, **{name: np.array(column) for name, column in edges.items()}, cost=np.array(texts, float))
        data, media_type = out.getvalue(), "application/x-npz"
    else:
        table = pa.table(edges | {"cost": pa.array(list(map(Decimal, texts)), pa.decimal128(10, 5))})
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        data, media_type = sink.getvalue().to_pybytes(), ARROW
    read = formats.read(data, media_type, precision=Precision(None, rounding, 1) if rounding == "error" else
                        Precision(0, rounding, 1))  # fmt: skip
    assert (read.rounded, read.rounded_costs) == (UNROUNDED, expected(texts, 1, rounding))
    assert read.cost is not None
    kept = [int(Decimal(text).scaleb(1).to_integral_value(OF_DECIMAL[rounding])) for text in texts]
    assert read.cost.tolist() == kept


def test_the_packed_form_keeps_it_for_the_worker() -> None:
    edges = formats.read(as_npz([1 / 3, 0.25, 7]), "application/x-npz", precision=Precision(1, "up"))
    packed = formats.unpack(formats.pack(edges))
    assert packed.rounded == edges.rounded == Rounded(2, Decimal("0.0666666666666667"))
    assert formats.unpack(formats.pack(load("npz", [0.5]))).rounded == UNROUNDED
    assert formats.read(formats.write_arrow(edges), ARROW).rounded == UNROUNDED
    assert formats.unpack(formats.pack(load("csv", [5e-324], 0, "up"))).rounded.rows == 1


@pytest.mark.parametrize(
    ("number", "text"), [("5E-7", "0.0000005"), ("0.50", "0.5"), ("10", "10"), ("5e-324", "5E-324")]
)
def test_as_text(number: str, text: str) -> None:
    assert Rounded(1, Decimal(number)).largest_text == text
