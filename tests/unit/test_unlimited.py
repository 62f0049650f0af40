"""Unlimited is said in words, never by a number: 2**63 - 1 is over the limit like its neighbours, by every road."""

import io
import json
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from headrace._bodies import graph_body

from gpu_engine import formats
from gpu_engine.errors import CapacityOverflow, EngineError, InvalidNetwork
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.networks.rounding import Precision, Rounding
from gpu_engine.networks.updates import CapacityTable
from gpu_engine.types import INFINITE, MAX_TOTAL
from service.api.bodies.arrow import PatchLimits, patch_from_arrow
from service.models.body import parse_body
from service.models.capacities import PatchBody
from service.protocol import MaxFlowArgs
from service.worker.questions.terminals import read_terminals

ARROW = "application/vnd.apache.arrow.stream"
TOO_LARGE = [MAX_TOTAL + 1, 2**62, 2**63 - 2, 2**63 - 1, 2**63, 2**64 - 1]
ENDS = {"tail": [0, 0], "head": [1, 1]}


def arrow(**columns: Any) -> bytes:
    table, sink = pa.table(columns), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    stream: bytes = sink.getvalue().to_pybytes()
    return stream


def npz(**members: Any) -> bytes:
    archive = io.BytesIO()
    np.savez(archive, **{name: np.asarray(column) for name, column in members.items()})
    return archive.getvalue()


def whole(amount: int) -> np.ndarray:
    return np.array([1, amount], np.uint64 if amount >= 2**63 else np.int64)


def sdk(capacity: Any) -> tuple[str, bytes]:
    body = graph_body(None, {**ENDS, "capacity": capacity})  # type: ignore[typeddict-item]
    assert isinstance(body.data, bytes)
    return body.media_type, body.data


NUMBERS: dict[str, Callable[[int], tuple[str, bytes]]] = {
    "json": lambda n: ("application/json", json.dumps(ENDS | {"capacity": [1, n]}).encode()),
    "json text": lambda n: ("application/json", json.dumps(ENDS | {"capacity": [1, str(n)]}).encode()),
    "json fraction": lambda n: ("application/json", json.dumps(ENDS | {"capacity": [1.5, n]}).encode()),
    "npz": lambda n: ("application/x-npz", npz(**ENDS, capacity=whole(n))),
    "npz of research": lambda n: (
        "application/x-npz",
        npz(n=2, src=[0, 0], dst=[1, 1], cap=whole(n), s=0, t=1, undirected=False),
    ),
    "arrow": lambda n: (ARROW, arrow(**ENDS, capacity=whole(n))),
    "arrow decimal": lambda n: (ARROW, arrow(**ENDS, capacity=pa.array([1, n], pa.decimal128(38, 0)))),
    "csv": lambda n: ("text/csv", f"tail,head,capacity\na,b,1\na,b,{n}\n".encode()),
    "dimacs": lambda n: ("text/x-dimacs", f"p max 2 2\nn 1 s\nn 2 t\na 1 2 1\na 1 2 {n}\n".encode()),
    "matrix market": lambda n: (
        "text/x-matrix-market",
        f"%%MatrixMarket matrix coordinate integer general\n2 2 2\n1 1 1\n1 2 {n}\n".encode(),
    ),
    "adjacency": lambda n: ("text/x-adjacency-matrix", f"0 {n}\n0 0\n".encode()),
    "npy": lambda n: ("application/x-npy", npy(n)),
    "sdk list": lambda n: sdk([1, n]),
    "sdk array": lambda n: sdk(whole(n)),
}


def npy(amount: int) -> bytes:
    file = io.BytesIO()
    np.save(file, np.array([[0, amount], [0, 0]], np.uint64))
    return file.getvalue()


@pytest.mark.parametrize("amount", TOO_LARGE)
@pytest.mark.parametrize("road", NUMBERS)
def test_no_number_means_unlimited_in_a_graph(road: str, amount: int) -> None:
    media_type, body = NUMBERS[road](amount)
    with pytest.raises(CapacityOverflow):
        formats.read(body, media_type)
    media_type, body = NUMBERS[road](MAX_TOTAL // 16)
    assert formats.read(body, media_type).capacity.max() >= MAX_TOTAL // 16, "what fits is read"


WORDS: dict[str, tuple[str, bytes]] = {
    "json": ("application/json", json.dumps(ENDS | {"capacity": [1, "inf"]}).encode()),
    "npz": ("application/x-npz", npz(**ENDS, capacity=[1, 0], unlimited=[False, True])),
    "npz, whatever stands there": ("application/x-npz", npz(**ENDS, capacity=[1, 7], unlimited=[False, True])),
    "npz float": ("application/x-npz", npz(**ENDS, capacity=[1.0, math.inf])),
    "npz float and flag": ("application/x-npz", npz(**ENDS, capacity=[1.0, 0.0], unlimited=[False, True])),
    "arrow": (ARROW, arrow(**ENDS, capacity=[1, 0], unlimited=[False, True])),
    "arrow float": (ARROW, arrow(**ENDS, capacity=[1.0, math.inf])),
    "arrow decimal": (ARROW, arrow(**ENDS, capacity=pa.array([1, 0], pa.decimal128(9, 0)), unlimited=[False, True])),
    "csv": ("text/csv", b"tail,head,capacity\na,b,1\na,b,inf\n"),
    "sdk list": sdk([1, math.inf]),
    "sdk array": sdk(np.array([1.0, math.inf])),
}


@pytest.mark.parametrize("road", WORDS)
def test_unlimited_by_its_word_or_flag(road: str) -> None:
    media_type, body = WORDS[road]
    edges = formats.read(body, media_type)
    assert (edges.capacity.tolist(), edges.decimals) == ([1, INFINITE], 0)


BESIDE: list[Any] = [
    *np.array([math.nan, -1.0, -math.inf, 1e17, 0.05, 1e-30]),
    *(-1, MAX_TOTAL + 1, 2**63 - 1),
]
"""What no edge can have as a capacity, or only with more decimals than the others."""


@pytest.mark.parametrize("rounding", ["error", "nearest"])
@pytest.mark.parametrize("decimals", [None, 0, 1])
@pytest.mark.parametrize("form", ["npz", "arrow", "arrow decimal", "npz vertices", "arrow vertices"])
def test_what_stands_beside_a_true_flag_counts_for_nothing(form: str, decimals: int | None, rounding: Rounding) -> None:
    for amount in BESIDE:
        column, flags = np.array([2, amount], np.asarray(amount).dtype), np.array([False, True])
        if form == "arrow decimal":
            if isinstance(amount, float) and not (math.isfinite(amount) and abs(amount) > 1e-12):
                continue
            column = pa.array([Decimal(2), Decimal(str(amount))], pa.decimal128(38, 12))
        if form.endswith("vertices"):
            of_vertices = {"label": [0, 1], "capacity": column, "unlimited": flags}
            names = {"label": "vertices", "capacity": "vertex_capacity", "unlimited": "vertex_unlimited"}
            if form.startswith("npz"):
                body = npz(**ENDS, capacity=[1, 1], **{names[name]: part for name, part in of_vertices.items()})
            else:
                body = arrow(**ENDS, capacity=[1, 1]) + arrow(**of_vertices)
        else:
            body = (npz if form == "npz" else arrow)(**ENDS, capacity=column, unlimited=flags)
        precision = Precision(decimals, rounding if decimals is not None else "error")
        edges = formats.read(body, "application/x-npz" if form.startswith("npz") else ARROW, precision=precision)
        read = edges.vertex_capacity if form.endswith("vertices") else edges.capacity
        assert read is not None
        assert (read.tolist(), edges.decimals) == ([2 * 10 ** (decimals or 0), INFINITE], decimals or 0), amount
        assert edges.rounded.rows == 0, amount


@pytest.mark.parametrize(
    ("form", "flags"),
    [(npz, [True]), (npz, [True, False, True]), (npz, [0, 1]), (npz, [[True, False]]), (arrow, [0, 1])],
)
def test_flags_of_another_shape_are_refused(form: Callable[..., bytes], flags: list[Any]) -> None:
    body = form(**ENDS, capacity=[1, 2], unlimited=flags)
    with pytest.raises(InvalidNetwork, match="unlimited"):
        formats.read(body, ARROW if form is arrow else "application/x-npz")


def test_what_is_packed_comes_back_and_cannot_be_sent() -> None:
    """Snapshots hold the engine's own number for unlimited, also those of earlier versions; a body may not."""
    edges = formats.read(*reversed(WORDS["npz"]))
    packed = formats.pack(edges)
    assert formats.unpack(packed).capacity.tolist() == [1, INFINITE]
    with pytest.raises(CapacityOverflow):
        formats.read(packed, ARROW)
    for write, media_type in ((formats.write_arrow, ARROW), (formats.write_npz, "application/x-npz")):
        assert formats.read(write(edges), media_type).capacity.tolist() == [1, INFINITE]


def set_json(amount: object) -> PatchBody:
    return parse_body(PatchBody, json.dumps({"edges": [1], "set": [amount]}).encode())


def set_arrow(amount: Any, **more: Any) -> PatchBody:
    column = pa.array([amount], pa.uint64() if isinstance(amount, int) and amount >= 2**63 else None)
    return patch_from_arrow(PatchBody, PatchLimits(10, 1 << 20), memoryview(arrow(edge=[1], set=column, **more)))


def patched(body: PatchBody) -> list[int]:
    edges = EdgeList(2, np.array([0, 0], np.int32), np.array([1, 1], np.int32), np.array([1, 2]))
    args = body.args(if_match=None, solve="none", max_rows=10)
    return CapacityTable(Network(edges)).resolve(args.batch).own.tolist()


@pytest.mark.parametrize("amount", TOO_LARGE)
@pytest.mark.parametrize("road", [set_json, set_arrow])
def test_no_number_means_unlimited_in_a_patch(road: Callable[[Any], PatchBody], amount: int) -> None:
    with pytest.raises(EngineError) as refused:
        patched(road(amount))
    assert refused.value.code == "capacity_overflow"


def test_unlimited_in_a_patch() -> None:
    assert patched(set_json("inf")) == [INFINITE]
    assert patched(set_arrow(math.inf)) == [INFINITE]
    assert patched(set_arrow(0, unlimited=[True])) == [INFINITE]
    assert patched(set_arrow(3, unlimited=[False])) == [3]


@pytest.mark.parametrize("amount", TOO_LARGE)
def test_no_number_means_unlimited_in_a_cap(amount: int) -> None:
    edges = EdgeList(2, np.array([0], np.int32), np.array([1], np.int32), np.array([1]))
    with pytest.raises(CapacityOverflow):
        read_terminals(Network(edges), MaxFlowArgs(sources=[0], sinks=[1], supply=[str(amount)]))
