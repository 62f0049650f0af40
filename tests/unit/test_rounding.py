"""Amounts with more decimals than a graph keeps: refused with a proposal, or rounded exactly, by every format."""

import io
import json
import math
import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from gpu_engine import formats
from gpu_engine.errors import CapacityOverflow, EngineError, InvalidNetwork
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.rounding import OF_DECIMAL, Precision, Rounding
from gpu_engine.types import INFINITE, MAX_TOTAL

MODES: tuple[Rounding, ...] = ("nearest", "down", "up")


def expected(text: str, decimals: int, rounding: Rounding) -> int:
    """The oracle: what the standard library's decimal makes of the digits."""
    return int(Decimal(text).scaleb(decimals).to_integral_value(OF_DECIMAL[rounding]))


def as_json(values: list[float]) -> bytes:
    column = ["inf" if value == math.inf else value for value in values]
    return json.dumps({"tail": [0] * len(values), "head": [1] * len(values), "capacity": column}).encode()


def as_npz(values: list[float]) -> bytes:
    out = io.BytesIO()
    ends = np.zeros(len(values), np.int32)
    np.savez(out, tail=ends, head=ends + 1, capacity=np.array(values, np.float64))
    return out.getvalue()


def as_arrow(values: list[float], kind: pa.DataType | None = None, metadata: dict[str, str] | None = None) -> bytes:
    columns = {"tail": [0] * len(values), "head": [1] * len(values), "capacity": pa.array(values, kind)}
    table = pa.table(columns).replace_schema_metadata(metadata)
    out = io.BytesIO()
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    return out.getvalue()


def as_csv(values: list[float]) -> bytes:
    return b"tail,head,capacity\n" + b"".join(f"0,1,{value!r}\n".encode() for value in values)


def as_matrix_market(values: list[float]) -> bytes:
    lines = [f"1 2 {value!r}" for value in values]
    head = f"%%MatrixMarket matrix coordinate real general\n2 2 {len(values)}"
    return "\n".join([head, *lines]).encode()


FORMATS: dict[str, tuple[Callable[[list[float]], bytes], str]] = {
    "json": (as_json, "application/json"),
    "npz": (as_npz, "application/x-npz"),
    "arrow": (as_arrow, "application/vnd.apache.arrow.stream"),
    "csv": (as_csv, "text/csv"),
    "mtx": (as_matrix_market, "text/x-matrix-market"),
}


def load(name: str, values: list[float], decimals: int | None = None, rounding: Rounding | None = None) -> EdgeList:
    write, media_type = FORMATS[name]
    return formats.read(write(values), media_type, precision=Precision(decimals, rounding))


HARD = [
    1 / 3,
    0.1 + 0.2,
    2 / 3,
    0.15,
    0.25,
    0.35,
    1.005,
    1.015,
    2.675,
    1e-9,
    1e-20,
    5e-324,
    0.5,
    1.5,
    2.5,
    0.3,
    1.1,
    7.0,
]
HARD += [123456789012.34568, 0.1 + 0.7, 4503599627370495.5, 9007199254740991.0, 8.5e14 + 0.0625, 999.9999999999999]


@pytest.mark.parametrize("rounding", MODES)
@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("decimals", [0, 1, 2])
def test_every_format_rounds_as_decimals_do(name: str, decimals: int, rounding: Rounding) -> None:
    edges = load(name, HARD, decimals, rounding)
    assert edges.decimals == decimals
    assert edges.capacity.tolist() == [expected(repr(value), decimals, rounding) for value in HARD]


def test_one_tenth_and_two_tenths_are_three_tenths() -> None:
    """The float is 0.30000000000000004: 0.3 to the nearest tenth and down, 0.4 up."""
    assert [load("npz", [0.1 + 0.2, 0.3], 1, mode).capacity.tolist() for mode in MODES] == [[3, 3], [3, 3], [4, 3]]


@pytest.mark.parametrize("name", ["npz", "json"])
def test_random_floats_round_as_decimals_do(name: str) -> None:
    rng = random.Random(20261122)
    values = [rng.random() * 10 ** rng.randint(-12, 8) for _ in range(4000)]
    values += [rng.randint(0, 10**8) / 10 ** rng.randint(0, 12) for _ in range(4000)]
    values += [(2 * rng.randint(0, 10**6) + 1) / 2 / 10 ** rng.randint(0, 6) for _ in range(4000)]  # ties
    values += [math.nextafter(value, towards) for value in values[-4000:] for towards in (0, math.inf)]
    for decimals in (0, 3, 6):
        for rounding in MODES:
            units = load(name, values, decimals, rounding).capacity.tolist()
            for value, found in zip(values, units, strict=True):
                assert found == expected(repr(value), decimals, rounding), (value, decimals, rounding)


@pytest.mark.parametrize("name", FORMATS)
def test_what_does_not_fit_says_how_it_would(name: str) -> None:
    with pytest.raises(InvalidNetwork, match="more than 9 decimals; decimals=6 and rounding=nearest") as refused:
        load(name, [1.0, 1 / 3])
    assert refused.value.rows or refused.value.where.lines
    with pytest.raises(InvalidNetwork, match="more than 1 decimal; rounding=nearest"):
        load(name, [0.25], 1)
    with pytest.raises(InvalidNetwork, match="more than 1 decimal; rounding=nearest"):
        load(name, [0.25], 1, "error")
    with pytest.raises(InvalidNetwork, match="needs decimals="):
        load(name, [0.25], None, "nearest")


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("rounding", MODES)
def test_rounding_hides_no_mistake(name: str, rounding: Rounding) -> None:
    """What would round to zero or to the limit is refused as ever."""
    for wrong, error in ((-1e-12, InvalidNetwork), (-0.4, InvalidNetwork), (2.0**60 + 256, CapacityOverflow)):
        with pytest.raises(error):
            load(name, [1.0, wrong], 0, rounding)
    with pytest.raises(CapacityOverflow):
        load(name, [float(MAX_TOTAL // 100)], 3, rounding)
    for wrong in (math.nan, -math.inf):
        with pytest.raises(EngineError):
            load(name, [1.0, wrong], 0, rounding)
    if name in ("json", "npz", "arrow", "csv"):
        assert load(name, [1 / 3, math.inf], 2, rounding).capacity[1] == INFINITE


@pytest.mark.parametrize(
    "text", ["0.1e-400000", "1e-40", "00000000000000000000000000000000000000000.05", "+.5", "5.", "1e3"]
)
@pytest.mark.parametrize("rounding", MODES)
def test_text_of_unusual_form_is_rounded_too(text: str, rounding: Rounding) -> None:
    body = f"tail,head,capacity\n0,1,{text}\n".encode()
    edges = formats.read(body, "text/csv", precision=Precision(1, rounding))
    assert edges.capacity.tolist() == [expected(text, 1, rounding)]


def test_floats_of_many_digits_are_read_without_rounding_too() -> None:
    for values in ([123456789012.34568, 0.1], [12345678.123456789, 0.1]):
        assert load("npz", values).capacity.tolist() == load("json", values).capacity.tolist()
        with pytest.raises(InvalidNetwork, match="more than 4 decimals"):
            load("npz", values, 4)


@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_narrow_floats_stand_for_their_own_decimals(kind: Any) -> None:
    out = io.BytesIO()
    np.savez(out, tail=[0, 0], head=[1, 1], capacity=np.array([0.1, 2.5], kind))
    edges = formats.read(out.getvalue(), "application/x-npz")
    assert (edges.decimals, edges.capacity.tolist()) == (1, [1, 25])
    edges = formats.read(as_arrow([0.1, 2.5], pa.float32()), "application/vnd.apache.arrow.stream")
    assert (edges.decimals, edges.capacity.tolist()) == (1, [1, 25])


def test_whole_numbers_are_units_of_the_bodys_own_decimals() -> None:
    """What is asked for beside the body says what is kept."""
    body = as_arrow([1250, 1249], pa.int64(), {"decimals": "3"})
    media_type = "application/vnd.apache.arrow.stream"

    def kept(decimals: int | None, rounding: Rounding | None = None) -> tuple[int, list[int]]:
        edges = formats.read(body, media_type, precision=Precision(decimals, rounding))
        return edges.decimals, edges.capacity.tolist()

    assert kept(None) == (3, [1250, 1249])
    assert kept(5) == (5, [125000, 124900])
    assert kept(1, "nearest") == (1, [12, 12])
    assert kept(1, "up") == (1, [13, 13])
    with pytest.raises(InvalidNetwork, match="more than 1 decimal"):
        kept(1)


def test_decimal_columns_of_arrow_are_rounded() -> None:
    column = [Decimal("0.3333333333333333333333"), Decimal("0.25"), Decimal("12345678901.999")]
    body = as_arrow(column, pa.decimal128(38, 22))  # type: ignore[arg-type]  # the stubs know one type of column
    for rounding in MODES:
        edges = formats.read(body, "application/vnd.apache.arrow.stream", precision=Precision(1, rounding))
        assert edges.capacity.tolist() == [expected(str(amount), 1, rounding) for amount in column]


def test_json_may_say_it_itself() -> None:
    body = {"tail": [0], "head": [1], "capacity": [1 / 3], "decimals": 2, "rounding": "up"}
    assert formats.from_columns(body).capacity.tolist() == [34]
    assert formats.from_columns(body, precision=Precision(1, "down")).capacity.tolist() == [3]
    for wrong in ("exact", 1):
        with pytest.raises(InvalidNetwork):
            formats.from_columns(body | {"rounding": wrong})


def test_whole_amounts_of_dimacs_are_kept_to_the_decimals() -> None:
    body = b"p max 2 1\na 1 2 7\n"
    edges = formats.read(body, "text/x-dimacs", precision=Precision(2, "nearest"))
    assert (edges.decimals, edges.capacity.tolist()) == (2, [700])
