"""Answers in each form, read as the JSON answer has them."""

import io
import json
from collections.abc import Mapping
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

NPZ, ARROW, JSON = "application/x-npz", "application/vnd.apache.arrow.stream", "application/json"
OF_ONE_ASKING = ("timings_ms", "mode", "reason", "counters")
"""What two answers to a question need not have in common."""


def of_npz(content: bytes) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """The answer without columns, and the columns by name."""
    arrays = dict(np.load(io.BytesIO(content)))
    columns: dict[str, list[Any]] = {}
    for name, array in arrays.items():
        stem = name.removesuffix(".utf8")
        if stem != name:
            raw, offsets = array.tobytes(), arrays[f"{stem}.offsets"]
            columns[stem] = [raw[i:j].decode() for i, j in pairwise(offsets)]
        elif name != "answer" and f"{name.removesuffix('.offsets')}.utf8" not in arrays:
            columns[name] = array.tolist()
    answer = json.loads(arrays["answer"].tobytes(), parse_float=Decimal)
    if "cut" in answer:
        bits = arrays["cut.source_side"]
        assert bits.dtype == np.uint8
        columns["cut.source_side"] = [bool(bits[i // 8] >> i % 8 & 1) for i in range(answer["cut"]["n_vertices"])]
    return answer, columns


def of_arrow(content: bytes) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    reader, tables = pa.BufferReader(content), []
    while reader.tell() < len(content):
        with pa.ipc.open_stream(reader) as stream:
            tables.append(stream.read_all())
    said = tables[0].schema.metadata
    answer = json.loads(said[b"answer"], parse_float=Decimal)
    assert (said[b"decimals"], said[b"version"]) == (str(answer["decimals"]).encode(), str(answer["version"]).encode())
    columns = {}
    for table in tables:
        table.validate(full=True)
        place = table.schema.metadata[b"table"].decode()
        place = "".join(f"{part}." for part in place.split(".") if part in MEMBERS)
        for name in table.column_names:
            columns["edge_ids" if name == "edge_id" else place + name] = table.column(name).to_pylist()
    return answer, columns


READ = {NPZ: of_npz, ARROW: of_arrow}
MEMBERS = frozenset({"cut", "flow", "terminals", "paths", "cycles", "matching", "cover", "dual"})
UNITS = frozenset({"pays", "source_pays", "sink_pays", "flow", "supplied", "delivered", "amount", "capacity"})
PRICES = frozenset({"potential", "cost"})
"""In units of the costs' decimals."""


def together(answer: dict[str, Any], columns: Mapping[str, list[Any]]) -> dict[str, Any]:
    """As the JSON answer has it."""
    decimals = answer.pop("decimals")
    scales = dict.fromkeys(UNITS, decimals) | dict.fromkeys(PRICES, answer.pop("cost_decimals", 0))
    unlimited = columns.get("unlimited", [])
    for name, column in columns.items():
        *places, last = name.split(".")
        member = answer
        for place in places:
            member = member[place]
        member[last] = [Decimal(units) / 10 ** scales[last] for units in column] if last in scales else column
    if unlimited:
        answer["capacity"] = [
            "inf" if no else amount for no, amount in zip(answer.pop("unlimited"), answer["capacity"], strict=True)
        ]
    answer.pop("unlimited", None)
    if "cut" in answer:
        cut = answer["cut"]
        names = cut.pop("vertices", range(cut.pop("n_vertices")))
        sides = list(zip(names, cut.pop("source_side"), strict=True))
        cut["source_side"], cut["sink_side"] = [v for v, on in sides if on], [v for v, on in sides if not on]
    return answer


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return {k: v for k, v in one.items() if k not in OF_ONE_ASKING} == {
        k: v for k, v in other.items() if k not in OF_ONE_ASKING
    }
