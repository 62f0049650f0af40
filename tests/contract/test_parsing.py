"""Long JSON is parsed in another process; what it refuses is refused just so."""

import os
from collections.abc import Iterator
from typing import Any

import anyio
import anyio.from_thread
import pytest

from gpu_engine.errors import InvalidNetwork
from service.api import parsing
from service.api.graphs import _read_and_pack
from service.api.parsing import JSON, Parsers, limit_of
from service.errors import ServiceError
from service.models.body import parse_body
from service.models.capacities import PatchBody
from service.settings import Settings

SETTINGS = Settings(max_json_bytes=10_000)


@pytest.fixture
def parse(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """`Parsers.run` from ordinary code, in one event loop."""
    monkeypatch.setattr(parsing, "INLINE_BYTES", 100)
    monkeypatch.setattr(parsing, "THREAD_BYTES", 1000)
    with anyio.from_thread.start_blocking_portal() as portal:
        parsers = Parsers()
        yield lambda *args: portal.call(parsers.run, *args)


def test_where_a_body_is_parsed(parse: Any) -> None:
    here = os.getpid()
    assert parse(JSON, bytearray(100), os.getpid) == here
    assert parse(JSON, bytearray(1000), os.getpid) == here
    other = parse(JSON, bytearray(1001), os.getpid)
    assert other != here
    assert parse(JSON, bytearray(1001), os.getpid) == other  # it stays
    assert parse("text/csv", bytearray(1001), os.getpid) == here


def test_refusals_cross_over(parse: Any) -> None:
    columns = bytearray(b'{"tail":[0],"head":[1],"capacity":[-1]}' + b" " * 2000)
    with pytest.raises(InvalidNetwork, match="row 0: capacity is negative") as refusal:
        parse(JSON, columns, _read_and_pack, columns, JSON, SETTINGS)
    assert refusal.value.rows == [0]
    patch = bytearray(b'{"edges":["a", 1],"set":[1, 2]}' + b" " * 2000)
    with pytest.raises(ServiceError) as error:
        parse(JSON, patch, parse_body, PatchBody, patch)
    assert (error.value.code, error.value.rows) == ("invalid_body", [0])
    good = bytearray(b'{"edges":["a"],"set":[1.50]}' + b" " * 2000)
    assert parse(JSON, good, parse_body, PatchBody, good).set == ["1.50"]


def test_json_has_a_limit_of_its_own() -> None:
    assert limit_of(JSON, SETTINGS) == 10_000
    assert limit_of("text/csv", SETTINGS) == SETTINGS.max_body_bytes
    assert limit_of(JSON, Settings(max_body_bytes=7)) == 7
