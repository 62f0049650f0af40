"""Long columns read from the text of a body: as the exact parser reads them, or left to it."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_engine.text.texts import Texts
from service.errors import ServiceError
from service.models.body import parse_body
from service.models.capacities import COLUMNS, PatchBody
from service.models.flat import LEAST_BYTES, LEAST_ROWS, read_flat
from tests.cases import cases

ROWS = 2 * LEAST_ROWS
LABELS = [f"road {i:05}" for i in range(ROWS)]
SEPARATORS = [",", ", ", ",\n    ", " ,", "\t,\r\n"]


def args(body: bytes, *, fast: bool) -> str:
    """What the worker would get, or the refusal."""
    try:
        patch = parse_body(PatchBody, body, COLUMNS) if fast else parse_body(PatchBody, body)
        return patch.args(if_match=None, solve="all", max_rows=10 * ROWS).model_dump_json()
    except ServiceError as error:
        return repr((error.code, error.detail, error.where))


def same(body: bytes) -> bool:
    """Whether both ways agree on the body; and whether the columns were read from its text."""
    assert args(body, fast=True) == args(body, fast=False)
    return read_flat(body, COLUMNS) is not None


def array(items: list[str], separator: str = ",") -> str:
    return f"[{separator.join(items)}]"


def body_of(edges: str, amounts: str, more: str = "") -> bytes:
    return f'{{"edges":{edges},"set":{amounts}{more}}}'.encode()


NUMBERS = array([str(i) for i in range(ROWS)])
AMOUNTS = array([f"{i}.25" for i in range(ROWS)])
WORDS = array([json.dumps(label) for label in LABELS])


@pytest.mark.parametrize("separator", SEPARATORS)
@pytest.mark.parametrize("edges", [[str(7 * i) for i in range(ROWS)], [f'"é {i}]"' for i in range(ROWS)]])
def test_plain_columns_are_read_from_the_text(edges: list[str], separator: str) -> None:
    amounts = [f"{i}" if i % 3 else f"{i}.50" for i in range(ROWS)]
    is_read = same(body_of(array(edges, separator), array(amounts, separator), ', "rounding": "down"'))
    assert is_read == separator.startswith(",")


def test_what_it_gives() -> None:
    members = read_flat(body_of(NUMBERS, AMOUNTS, ',"on_missing":"skip","x":-12,"y":null'), COLUMNS)
    assert members is not None
    assert isinstance(members["edges"], np.ndarray)
    assert isinstance(members["set"], Texts)
    assert members["edges"].tolist() == list(range(ROWS))
    assert list(members["set"]) == [f"{i}.25" for i in range(ROWS)]
    assert (members["on_missing"], members["x"], members["y"]) == ("skip", -12, None)
    words = read_flat(body_of(WORDS, AMOUNTS), COLUMNS)
    assert words is not None
    assert list(words["edges"]) == LABELS


def test_end_points_and_factors() -> None:
    assert same(f'{{"tail":{NUMBERS},"head":{NUMBERS},"scale":{AMOUNTS}}}'.encode())
    assert same(f'{{"tail":{WORDS},"head":{WORDS},"add":{array(["-1.5"] * ROWS)}}}'.encode())
    assert same(f'{{"edges":{WORDS},"op":"close"}}'.encode())


@pytest.mark.parametrize(
    "wrong",
    [
        *(
            "01",
            "-01",
            "1.",
            ".5",
            "-",
            "+1",
            "1.2.3",
            "1-2",
            "1 2",
            "",
            " ",
            "1e3",
            "0x1",
            "NaN",
            "inf",
            '"inf"',
            "true",
        ),
        *(
            "null",
            "[1]",
            "{}",
            "-1",
            "-0",
            "-0.0",
            "1.5",
            "9" * 19,
            "9" * 45,
            "9" * 200,
            "9" * 5000,
            '"7"',
            "1_000",
            "1,",
        ),
        *('"a"', '"\\n"', '"\\ud800"', '"a\x01"', '"a" "b"', '"a"b"', '""', f'"{"x" * 2000}"', "“7”"),
    ],
)
@pytest.mark.parametrize("row", [0, 1, ROWS // 2, ROWS - 1])
def test_one_odd_value_is_treated_as_ever(wrong: str, row: int) -> None:
    for column, other in ((NUMBERS, AMOUNTS), (WORDS, AMOUNTS), (AMOUNTS, NUMBERS)):
        items = column[1:-1].split(",")
        items[row] = wrong
        body = body_of(other, array(items)) if column is AMOUNTS else body_of(array(items), other)
        same(body)


@pytest.mark.parametrize(
    "text",
    [
        f'{{"edges":{NUMBERS},"set":{AMOUNTS}',
        f'{{"edges":{NUMBERS},"set":{AMOUNTS}}} x',
        f'{{"edges":{NUMBERS},"set":{AMOUNTS},}}',
        f'{{"edges":{NUMBERS},"edges":{NUMBERS},"set":{AMOUNTS}}}',
        f'{{"edges":{NUMBERS} "set":{AMOUNTS}}}',
        f'{{"edges":{NUMBERS[:-1]}',
        f'{{"edges":{WORDS[:-1]}',
        f'{{"edges":{WORDS[:-2]},"set":{AMOUNTS}}}',
        f'{{"batch":[{{"edges":{NUMBERS},"set":{AMOUNTS}}}]}}',
        f'[{{"edges":{NUMBERS},"set":{AMOUNTS}}}]',
        f'\ufeff{{"edges":{NUMBERS},"set":{AMOUNTS}}}',
        f' \n{{ "edges" : {NUMBERS} , "set" :{AMOUNTS} }}\n',
        f'{{"edges":{NUMBERS},"set":{AMOUNTS},"op":"close"}}',
        f'{{"edges":{NUMBERS},"sett":{AMOUNTS}}}',
        f'{{"edges":{NUMBERS},"set":{AMOUNTS[:-6]}]}}',
        f'{{"edges":{NUMBERS},"set":{AMOUNTS},"rounding":"do\\u0077n"}}',
        f'{{"edges":{NUMBERS},"set":{AMOUNTS},"rounding":["down"]}}',
        f'{{"edges":{NUMBERS},"set":{AMOUNTS},"rounding":1.0}}',
        f'{{"edges":{NUMBERS},"set":{AMOUNTS},"rounding":01}}',
        f'{{"edges":[],"set":[],"on_missing":"{"x" * LEAST_BYTES}"}}',
    ],
)
def test_odd_bodies_are_treated_as_ever(text: str) -> None:
    same(text.encode())


@pytest.mark.parametrize("between", [",x", ",,", ", ,", ":", ",\x0b"])
def test_something_else_between_two_texts(between: str) -> None:
    spaced = WORDS.replace('","', '", "')
    assert same(body_of(spaced, AMOUNTS))
    assert not same(body_of(spaced.replace('", "road 00100', f'"{between}"road 00100'), AMOUNTS))


def test_bytes_that_are_no_text() -> None:
    body = body_of(WORDS, AMOUNTS)
    same(body.replace(b"road 00100", b"road \xff\xfe\xfd"))
    same(body.replace(b'"set"', b'"s\xfft"'))


def test_halves_of_a_character_in_two_texts_make_none() -> None:
    """Without the quotes between them they would: each text has to be one by itself."""
    halves = body_of(WORDS, AMOUNTS).replace(b'00007","road', b'00007\xc3","\xa9 road')
    assert "é".encode() in halves.replace(b'","', b"")
    assert not same(halves)
    assert "invalid_body" in args(halves, fast=True)
    empty = body_of(WORDS, AMOUNTS).replace(b'"road 00007"', b'""').replace(b"00008", "é".encode())
    assert same(empty)


def test_short_bodies_and_columns_are_left_to_the_parser() -> None:
    assert read_flat(b'{"edges":[1],"set":[2]}', COLUMNS) is None
    few = array([json.dumps(f"{i} {'x' * 100}") for i in range(LEAST_ROWS - 1)])
    body = body_of(few, array(["1"] * (LEAST_ROWS - 1)))
    assert len(body) > LEAST_BYTES
    assert not same(body)


values = st.one_of(
    st.integers(-(10**20), 10**20).map(str),
    st.decimals(allow_nan=False, allow_infinity=False).map(str),
    st.floats(allow_nan=True).map(json.dumps),
    st.text(max_size=5).map(lambda text: json.dumps(text, ensure_ascii=False)),
    st.text(alphabet='0123456789.,-+eE"[]{} \\', max_size=6),
)


@pytest.mark.parametrize(
    "value", ['"Zürich"', '"\x7f"', "-0", "NaN", "1e3", "1" * 198, "1" * 199, '"' + 198 * "a" + '"']
)
def test_short_values_beside_columns(value: str) -> None:
    same(body_of(NUMBERS, AMOUNTS, f', "rounding": {value}'))


@settings(max_examples=cases(150), deadline=None)
@given(
    mixed=st.lists(st.tuples(st.integers(0, ROWS - 1), values), max_size=3),
    scalar=values,
    column=st.sampled_from([NUMBERS, WORDS, AMOUNTS]),
    separator=st.sampled_from(SEPARATORS),
)
def test_whatever_is_mixed_in(mixed: list[tuple[int, str]], scalar: str, column: str, separator: str) -> None:
    items: list[Any] = column[1:-1].split(",")
    for row, value in mixed:
        items[row] = value
    text = array(items, separator)
    for body in (body_of(text, AMOUNTS), body_of(NUMBERS, text), body_of(NUMBERS, AMOUNTS, f', "x": {scalar}')):
        try:
            body.decode()
        except UnicodeDecodeError:
            continue
        same(body)
