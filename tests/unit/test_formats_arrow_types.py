"""Arrow streams with columns of every type there is: read as pyarrow reads them, or refused before that."""

from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal, localcontext
from typing import Any, Final, get_args

import numpy as np
import pyarrow as pa
import pytest

from gpu_engine.errors import EngineError, InvalidNetwork
from gpu_engine.formats import read_arrow
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.rounding import Precision, Rounding
from gpu_engine.types import INFINITE, MAX_DECIMALS
from service.api.bodies.arrow import PatchLimits, patch_bytes, patch_from_arrow
from service.errors import ServiceError
from service.models.capacities import PatchBody
from tests import bombs

ENDS: Final = {"tail": [0, 1, 0], "head": [1, 2, 2], "capacity": [5, 6, 7]}
BASE: Final = {name: pa.array(column) for name, column in ENDS.items()}
AMOUNTS: Final = ("capacity", "cost", "lower")
LIMITS: Final = PatchLimits(max_rows=100, max_bytes=1 << 20)
ROUND: Final = {"nearest": ROUND_HALF_EVEN, "down": ROUND_FLOOR, "up": ROUND_CEILING}


def decimals(
    precision: int, scale: int, units: list[int], make: Callable[..., pa.DataType] = pa.decimal128
) -> pa.Array:
    """A column of these units, whether or not its type is one that anybody would make."""
    kind = make(precision, scale)
    words = b"".join(unit.to_bytes(kind.bit_width // 8, "little", signed=True) for unit in units)
    return pa.Array.from_buffers(kind, len(units), [None, pa.py_buffer(words)])


def dictionary(words: pa.Array, indices: list[int | None] | None = None) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(indices or [0, 1, 2], pa.int8()), words)


def patch(columns: dict[str, Any]) -> PatchBody:
    body = memoryview(bombs.stream(columns))
    patch_bytes(LIMITS, body)
    return patch_from_arrow(PatchBody, LIMITS, body)


TEXT: Final = pa.array(["b", "a", "c"])
RAW: Final = pa.array([b"a", b"b", b"c"])
LISTS: Final = [[1], [2], [3]]
WHOLE: Final = pa.array([1, 2, 0])

NEVER_READ: Final[list[pa.Array]] = [
    *(WHOLE.cast(pa.int32()).cast(kind) for kind in (pa.time32("s"), pa.time32("ms"), pa.date32())),
    *(
        WHOLE.cast(kind)
        for kind in (pa.time64("us"), pa.time64("ns"), pa.date64(), pa.duration("s"), pa.duration("ns"))
    ),
    *(
        WHOLE.cast(kind)
        for kind in (pa.timestamp("s"), pa.timestamp("ns", tz="UTC"), pa.timestamp("us", tz="No/Where"))
    ),
    pa.array([(1, 2, 3)] * 3, pa.month_day_nano_interval()),
    *(decimals(5, 1, [10, 20, 30], make) for make in (pa.decimal32, pa.decimal64, pa.decimal256)),
    *(RAW.cast(kind) for kind in (pa.binary(), pa.large_binary(), pa.binary(1), pa.binary_view())),
    pa.nulls(3),
    *(pa.array(LISTS, kind) for kind in (pa.list_(pa.int64()), pa.large_list(pa.int64()), pa.list_(pa.int64(), 1))),
    *(pa.array(LISTS, kind) for kind in (pa.list_view(pa.int64()), pa.large_list_view(pa.int64()))),
    pa.array([{"a": 1}] * 3),
    pa.array([{}] * 3, pa.struct([])),
    pa.array([[("a", 1)]] * 3, pa.map_(pa.string(), pa.int64())),
    pa.UnionArray.from_dense(pa.array([0] * 3, pa.int8()), pa.array([0, 1, 2], pa.int32()), [WHOLE]),
    pa.UnionArray.from_sparse(pa.array([0] * 3, pa.int8()), [WHOLE]),
    pa.RunEndEncodedArray.from_arrays(pa.array([1, 3], pa.int32()), pa.array([1, 2])),
    pa.array([bytes(16)] * 3, pa.uuid()),
    pa.ExtensionArray.from_storage(pa.opaque(pa.int64(), "a", "b"), WHOLE),
    pa.ExtensionArray.from_storage(pa.bool8(), pa.array([0, 1, 0], pa.int8())),
    *map(dictionary, (RAW, RAW.cast(pa.binary_view()), WHOLE.cast(pa.timestamp("s")), pa.array(LISTS), pa.nulls(3))),
    *(decimals(5, scale, [1, 2, 3]) for scale in (-(2**31), 1 - 2**31, -1000, -39, -1, 6, 39, 1000, 2**31 - 1)),
    *(decimals(38, scale, [0, 0, 0]) for scale in (-(2**31), -1, 39, 2**31 - 1)),
    *(dictionary(decimals(5, scale, [1, 2, 3])) for scale in (-(2**31), -1, 6, 39, 2**31 - 1)),
]


@pytest.mark.parametrize("column", NEVER_READ, ids=[f"{k}-{array.type}" for k, array in enumerate(NEVER_READ)])
def test_a_type_that_is_not_read_is_refused_wherever_it_stands(column: pa.Array) -> None:
    """Also without a row: nothing of it is computed."""
    for array in (column, column[:0]):
        rows = {name: values[: len(array)] for name, values in BASE.items()}
        for name in ("tail", "head", "undirected", "unlimited", "closed", "edge_ids", *AMOUNTS):
            with pytest.raises(InvalidNetwork, match=r"scale of a decimal|are not read") as refusal:
                read_arrow(bombs.stream(rows | {name: array}))
            assert refusal.value.where.field == f"/{name}"
        edges = bombs.stream(rows)
        for name in ("label", "capacity", "x"):
            with pytest.raises(InvalidNetwork, match=r"scale of a decimal|are not read"):
                read_arrow(edges + bombs.stream({name: array}))
        for name in ("set", "add", "scale"):
            with pytest.raises(InvalidNetwork, match=r"scale of a decimal|are not read"):
                patch({"edges": rows["tail"], name: array})
        with pytest.raises(InvalidNetwork, match=r"scale of a decimal|are not read"):
            patch({"edges": array, "set": rows["capacity"]})


READ: Final[list[pa.Array]] = [
    *(
        WHOLE.cast(kind)
        for kind in (pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32(), pa.uint64())
    ),
    *(pa.array([9, 9, *WHOLE.to_pylist()], kind)[2:] for kind in (pa.int8(), pa.int64(), pa.float32(), pa.float64())),
    pa.array(np.array([0.1, 1.5, 2], np.float16)),
    pa.array([0.1, 1.5, 2], pa.float32()),
    pa.array([0.1, float("inf"), -0.0]),
    dictionary(pa.array([0.5, 6, 7])),
    dictionary(pa.array([5, 6, 7]), [2, 0, 2]),
    dictionary(decimals(5, 2, [150, 200, 3])),
    decimals(9, 0, [7, 1, 2, 3])[1:],
    *(decimals(digits, digits, [7, 5, 0]) for digits in (1, 9, 10, 18, 19, 20, 37, 38)),
    *(decimals(digits, digits, [7 * 10 ** (digits - 1), 0, 10 ** (digits - 1)]) for digits in (1, 9, 10, 19, 37, 38)),
    *(decimals(38, scale, [10**scale * 12, 10**scale, 0]) for scale in (0, 1, 9, 18, 19, 20, 35, 36)),
    decimals(38, 5, [10**38 - 1, 1, 2]),
    decimals(19, 9, [-150, 1, 2]),
]


@pytest.mark.parametrize("array", READ, ids=[f"{k}-{array.type}" for k, array in enumerate(READ)])
@pytest.mark.parametrize("name", AMOUNTS)
def test_amounts_are_read_as_pyarrow_reads_them(array: pa.Array, name: str) -> None:
    """Or they are refused for what they are; rounded they are what Python's decimals become."""
    wanted = list(map(amount_of(array.type), array.to_pylist()))
    body = bombs.stream(BASE | {name: array})
    for mode in get_args(Rounding):
        for places in (None,) if mode == "error" else (0, 2, MAX_DECIMALS):
            found = read_amounts(body, name, Precision(places, mode, places if name == "cost" else None))
            assert found == [rounded(amount, places, mode) for amount in wanted] or is_apt(found, wanted)


def read_amounts(body: bytes, name: str, precision: Precision) -> list[Decimal] | str:
    """The amounts, or why they are refused."""
    try:
        return units(read_arrow(body, precision=precision), name)
    except EngineError as error:
        return error.message


def is_apt(refusal: object, amounts: list[Decimal]) -> bool:
    text, largest = str(refusal), max(map(abs, amounts))
    return (
        ("is negative" in text and min(amounts) < 0)
        or ("has more than 9 decimals" in text and any(amount != round(amount, MAX_DECIMALS) for amount in amounts))
        or ("is not finite" in text and not largest.is_finite())
        or ("too large" in text and largest > 10**8)
    )


def units(edges: EdgeList, name: str) -> list[Decimal]:
    column = getattr(edges, name).tolist()
    places = edges.cost_decimals if name == "cost" else edges.decimals
    return [Decimal("Infinity") if unit == INFINITE else Decimal(unit).scaleb(-places) for unit in column]


def amount_of(kind: pa.DataType) -> Callable[[Any], Decimal]:
    """A float stands for its shortest decimal."""
    narrow = {pa.float16(): np.float16, pa.float32(): np.float32}.get(kind)
    return lambda value: Decimal(str(value if narrow is None else narrow(value)))


def rounded(amount: Decimal, places: int | None, mode: Rounding) -> Decimal:
    if places is None or not amount.is_finite():
        return amount
    with localcontext(prec=80):
        return amount.quantize(Decimal(1).scaleb(-places), ROUND[mode])


NAMES: Final[list[pa.Array]] = [
    TEXT,
    TEXT.cast(pa.large_string()),
    pa.array(["x", *TEXT.to_pylist()])[1:],
    pa.array(["", "\0", "\U0001f600"]),
    TEXT.cast(pa.string_view()),
    pa.array(["x" * 13, "y" * 500 + "\U0001f600", "", "é" * 6, "z" * 12], pa.string_view())[1:4],
    dictionary(pa.array(["a", None, "c" * 40, "b"], pa.string_view()), [0, 2, 3]),
    dictionary(TEXT, [2, 0, 1]),
    dictionary(TEXT, [1, 2, 0, 1])[1:],
    dictionary(pa.array(["z", "a", "b", "c"])[1:]),
    dictionary(pa.array(["a", None, "c", "b"]), [0, 2, 3]),
    dictionary(pa.array(["a", "a", "b", "c"]), [1, 2, 3]),
    WHOLE,
    WHOLE.cast(pa.uint8()),
    dictionary(pa.array([2, 1, 0])),
]


@pytest.mark.parametrize("array", NAMES, ids=[f"{k}-{array.type}" for k, array in enumerate(NAMES)])
def test_names_are_read_as_pyarrow_reads_them(array: pa.Array) -> None:
    wanted = array.to_pylist()
    edges = read_arrow(bombs.stream(BASE | {"tail": array, "head": array, "edge_ids": array}))
    labels = range(3) if edges.vertex_labels is None else edges.vertex_labels
    assert edges.edge_ids is not None
    for column in ([labels[k] for k in edges.tail], [labels[k] for k in edges.head], edges.edge_ids):
        assert list(column) == wanted
    assert patch({"edges": array, "set": [1, 2, 3]}).edges == wanted


def shared(rows: int, letters: int) -> pa.Array:
    """Views that all show one text, as those of Polars may after a join."""
    view = np.array([letters, int.from_bytes(b"xxxx", "little"), 0, 0], np.int32)
    buffers = [None, pa.py_buffer(np.tile(view, rows)), pa.py_buffer(letters * b"x")]
    return pa.Array.from_buffers(pa.string_view(), rows, buffers)


@pytest.mark.parametrize("compression", [None, "zstd"])
def test_texts_that_share_their_bytes_are_read_up_to_a_bound(compression: str | None) -> None:
    """Each row shows the same bytes: written out, 12 kB would become a megabyte."""
    few = shared(2000, 1000)
    edges = read_arrow(bombs.stream({"tail": few, "head": few, "capacity": pa.array(np.arange(2000))}, compression))
    assert edges.vertex_labels == ["x" * 1000]
    wide = bombs.stream({"edges": shared(100, 10_000), "set": pa.array(np.arange(100))}, compression)
    with pytest.raises(InvalidNetwork, match=r"'edges' share bytes, .* send them as large_string") as found:
        patch_from_arrow(PatchBody, LIMITS, memoryview(wide))
    assert (found.value.code, found.value.where.field) == ("too_large", "/edges")
    both = {"tail": shared(100, 5000), "head": shared(100, 5000)}  # each by itself would not be too much
    with pytest.raises(InvalidNetwork, match="'head' share bytes"):
        read_arrow(bombs.stream(both | {"capacity": pa.array(np.arange(100))}, compression))
    with pytest.raises(InvalidNetwork, match="share bytes"):
        read_arrow(bombs.stream({"tail": dictionary(shared(3, 1_000_000)), "head": BASE["head"], "capacity": WHOLE}))


def test_views_whose_heads_lie_are_refused() -> None:
    """A stream cannot claim more buffers of text than it has, nor texts outside of them."""
    columns = {"tail": pa.array(["a" * 20, "b" * 20], pa.string_view()), "head": pa.array([0, 1]), "capacity": [1, 2]}
    body = bombs.stream(columns)
    for at in range(0, len(body), 4):
        for wrong in (b"\xff\xff\xff\x7f", b"\0\0\0\0", b"\1\0\0\0", b"\xff\xff\xff\xff"):
            try:
                read_arrow(body[:at] + wrong + body[at + 4 :])
            except InvalidNetwork:
                continue


def test_a_name_of_a_column_that_is_no_text_is_refused() -> None:
    for columns in (BASE, {"edges": dictionary(TEXT), "head": WHOLE, "set": WHOLE}):
        body = bombs.stream(columns).replace(b"head", b"he\xffd")
        for read in (read_arrow, lambda body: patch_bytes(LIMITS, memoryview(body))):
            with pytest.raises((InvalidNetwork, ServiceError), match="name of a column"):
                read(body)
