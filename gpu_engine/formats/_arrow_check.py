"""The content of Arrow IPC streams, from the heads of their messages alone: nothing is decompressed or made for it.

pyarrow bounds neither decompression nor the rows a batch may claim, and some types have rows without any bytes. So
the types are those of a list, each batch has the buffers its rows need, no two buffers share bytes, and what all of
them decompress to is added up. A compressed buffer starts with its decompressed length, int64, or with -1 if it was
stored as it is (Arrow format 1.x, ``Message.fbs``).
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import pyarrow as pa

from gpu_engine.errors import InvalidNetwork, TooLarge, pointer
from gpu_engine.formats._flatbuffer import Table
from gpu_engine.formats._looks import seems_to_be
from gpu_engine.formats._place import refusing, shown
from gpu_engine.formats.limits import Limits

MAX_COLUMNS: Final = 9
"""As many as a network has: `REQUIRED` and `OPTIONAL` of `gpu_engine.formats.arrow`."""
MAX_MESSAGES: Final = 16_384
FREE_MESSAGES: Final = 1024
ROWS_PER_MESSAGE: Final = 4096
"""A stream has `FREE_MESSAGES`, and one more for so many rows, up to `MAX_MESSAGES`: each costs time, however empty."""

MAX_HEAD_BYTES: Final = 64 << 10
"""The head of one message has so many bytes at most, its metadata included."""

MALFORMED: Final = (pa.ArrowException, OSError, ValueError, KeyError, struct.error)

MESSAGE_HEADER: Final = 2
BATCH_LENGTH, BATCH_NODES, BATCH_BUFFERS, BATCH_COMPRESSION, BATCH_VIEWED = range(5)
DICTIONARY_DATA, DICTIONARY_IS_DELTA = 1, 2
"""Positions of fields in their flatbuffer tables."""

TEXT: Final = 0
VIEWED: Final = -1
Layout: TypeAlias = Sequence[int]
"""The bits that a row of a column takes in each of its buffers, the validity left out; `TEXT`: any number. `VIEWED`
stands for the buffers of a column of views, which are as many as the head of each batch says, with `TEXT` in them."""

VIEW_BITS: Final = 128
WORD_BYTES: Final = 4096
"""Bytes of the longest name, which has 1,024 characters."""
MAX_SHARED_BYTES: Final = 64 << 20
"""Views may show the same bytes again and again: written out, a column has so many bytes more than its buffers."""


@dataclass(slots=True)
class StreamSize:
    """The content of one stream in numbers."""

    schema: pa.Schema
    rows: int = 0
    words: int = 0
    """Entries of dictionaries."""
    decoded_bytes: int = 0
    """Bytes of all buffers, decompressed."""
    decompressed_bytes: int = 0
    """Bytes of the compressed ones, decompressed."""
    text_bytes: int = 0
    """Bytes of the texts in its columns and dictionaries, at most; views are written out."""

    @property
    def names(self) -> int:
        """Texts in its columns, each of which becomes an object; those of dictionaries once."""
        return self.rows * sum(is_text(field.type) for field in self.schema) + self.words


def is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_text_dictionary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_dictionary(kind)) and is_text(kind.value_type)


def has_views(kind: pa.DataType) -> bool:
    """Whether the texts of a column, or the words of its dictionary, are views."""
    return bool(pa.types.is_string_view(kind.value_type if is_text_dictionary(kind) else kind))


def measure(data: pa.Buffer, limits: Limits, max_rows: Sequence[int]) -> list[StreamSize]:
    """The streams of `data`, at most one for each of `max_rows`. Reads the heads of messages only.

    Raises `TooLarge` for more than the limits and `InvalidNetwork` for what is not read: other types, heads that
    contradict themselves or their buffers, additions to dictionaries. Each stream must end with its end mark: one
    cut between two batches would otherwise lose the rest in silence.
    """
    source = pa.BufferReader(data)
    sizes: list[StreamSize] = []
    other = seems_to_be(memoryview(data), "Arrow stream")
    if other:
        raise InvalidNetwork(f"not an Arrow IPC stream{other}")
    with refusing("not an Arrow IPC stream", *MALFORMED):
        while source.tell() < data.size or not sizes:
            if len(sizes) == len(max_rows):
                raise InvalidNetwork("something follows the last Arrow IPC stream")
            sizes.append(_measure_stream(source, max_rows[len(sizes)]))
            limits.check_decompressed(sum(size.decoded_bytes for size in sizes), data.size)
    return sizes


def _measure_stream(source: pa.BufferReader, max_rows: int) -> StreamSize:
    messages = pa.ipc.MessageReader.open_stream(source)
    size = StreamSize(_schema(next(messages, None)))
    layouts = [_layout(field) for field in size.schema]
    for count in range(MAX_MESSAGES):
        before = source.tell()
        message = next(messages, None)
        if message is None:
            if source.tell() == before:
                raise InvalidNetwork("the Arrow IPC stream is cut: its end mark is missing")
            size.text_bytes += _shared_bytes(size)
            return size
        _add(size, message, layouts)
        if size.rows > max_rows:
            raise TooLarge(f"{size.rows} rows are more than the limit of {max_rows}")
        if count >= FREE_MESSAGES + size.rows // ROWS_PER_MESSAGE:
            break
    raise TooLarge("the Arrow IPC stream has too many messages: send larger batches")


def _schema(message: pa.ipc.Message | None) -> pa.Schema:
    if message is None or message.type != "schema" or message.metadata.size > MAX_HEAD_BYTES:
        raise InvalidNetwork(f"an Arrow IPC stream starts with a schema of at most {MAX_HEAD_BYTES} bytes")
    schema = pa.ipc.read_schema(message)
    with refusing("the name of a column", UnicodeError):
        names = schema.names
    if len(names) > MAX_COLUMNS:
        raise InvalidNetwork(f"an Arrow IPC stream has at most {MAX_COLUMNS} columns, not {len(names)}")
    return schema


def _add(size: StreamSize, message: pa.ipc.Message, layouts: Sequence[Layout]) -> None:
    """Count one message."""
    if message.type not in ("record batch", "dictionary") or message.metadata.size > MAX_HEAD_BYTES:
        raise InvalidNetwork(f"an Arrow message of {message.metadata.size} bytes, {message.type}, is not read")
    header = Table.root(memoryview(message.metadata)).child(MESSAGE_HEADER)
    body = memoryview(message.body)
    if message.type == "record batch":
        batch = _read_batch(header, body)
        bits = _bits_of_buffers(batch, layouts)
        _check_rows(batch, bits)
        size.rows += batch.rows
        size.text_bytes += _text_bytes(batch, bits)
    else:
        if header.flag(DICTIONARY_IS_DELTA):  # each batch after it would have a copy of the whole
            raise InvalidNetwork("additions to a dictionary are not read: send each dictionary once")
        batch = _read_batch(header.child(DICTIONARY_DATA), body)
        if batch.n_columns != 1 or batch.rows > sum(batch.decoded):  # no type that is read has two rows in a byte
            raise _claims(batch)
        size.words += batch.rows
        size.text_bytes += sum(batch.decoded)
    size.decoded_bytes += sum(batch.decoded)
    size.decompressed_bytes += sum(batch.decoded) if batch.compressed else 0


@dataclass(frozen=True, slots=True)
class _Batch:
    """The head of a record batch, found to lie within its body."""

    rows: int
    n_columns: int
    decoded: Sequence[int]
    """Bytes of each buffer, decompressed."""
    compressed: bool
    viewed: Sequence[int]
    """How many buffers of text each column of views has."""


def _read_batch(head: Table, body: memoryview) -> _Batch:
    rows, nodes, buffers = head.int64(BATCH_LENGTH), head.pairs(BATCH_NODES), head.pairs(BATCH_BUFFERS)
    if rows < 0 or any(length != rows or not 0 <= nulls <= rows for length, nulls in nodes):
        raise InvalidNetwork("an Arrow batch has columns of other lengths than its own")
    if any(offset < 0 or length < 0 or offset + length > len(body) for offset, length in buffers):
        raise InvalidNetwork("a buffer of an Arrow batch lies outside of it")
    if sum(length for _, length in buffers) > len(body):
        raise InvalidNetwork("buffers of an Arrow batch overlap")
    compressed = head.has(BATCH_COMPRESSION)
    decoded = [_decoded_bytes(body, *buffer) if compressed else buffer[1] for buffer in buffers]
    viewed = head.int64s(BATCH_VIEWED)
    if any(not 0 <= count <= len(buffers) for count in viewed):
        raise InvalidNetwork("an Arrow batch has other buffers than it says")
    return _Batch(rows, len(nodes), decoded, compressed, viewed)


def _check_rows(batch: _Batch, bits: Sequence[int | None]) -> None:
    """The buffers hold as many rows as the batch claims; a validity may be absent."""
    if any(has < (batch.rows * (each or 0) + 7) // 8 for has, each in zip(batch.decoded, bits, strict=True)):
        raise _claims(batch)


def _text_bytes(batch: _Batch, bits: Sequence[int | None]) -> int:
    """Short texts lie in the views themselves."""
    return sum(has for has, each in zip(batch.decoded, bits, strict=True) if each in (TEXT, VIEW_BITS))


def _bits_of_buffers(batch: _Batch, layouts: Sequence[Layout]) -> list[int | None]:
    """The bits that a row takes in each buffer of a batch; None: the buffer is a validity, which may be absent."""
    viewed, found = iter(batch.viewed), list[int | None]()
    for layout in layouts:
        found.append(None)
        for bits in layout:
            found += [TEXT] * next(viewed, 0) if bits == VIEWED else [bits]
    if batch.n_columns != len(layouts) or next(viewed, None) is not None or len(found) != len(batch.decoded):
        raise InvalidNetwork("an Arrow batch has other columns than its schema")
    return found


def _shared_bytes(size: StreamSize) -> int:
    """What texts of views may have beyond their buffers, all columns together."""
    kinds = [field.type for field in size.schema if has_views(field.type)]
    texts = [size.words if is_text_dictionary(kind) else size.rows for kind in kinds]
    return sum(min(WORD_BYTES * count, MAX_SHARED_BYTES) for count in texts)


def _claims(batch: _Batch) -> InvalidNetwork:
    return InvalidNetwork(f"an Arrow batch claims {batch.rows} rows, which its buffers do not hold")


def _decoded_bytes(body: memoryview, offset: int, length: int) -> int:
    if length == 0:
        return 0
    declared: int = struct.unpack_from("<q", body, offset)[0]
    if length < 8 or declared < -1:
        raise InvalidNetwork("a compressed buffer of an Arrow batch is malformed")
    return length - 8 if declared == -1 else declared


def _layout(field: pa.Field) -> Layout:
    """Raises `InvalidNetwork` for types that are not read."""
    kind = field.type
    _check_scale(field)
    if pa.types.is_dictionary(kind) and (is_text(kind.value_type) or _is_number(kind.value_type)):
        return (kind.index_type.bit_width,)
    if pa.types.is_string_view(kind):
        return (VIEW_BITS, VIEWED)
    if is_text(kind):
        return (32 if pa.types.is_string(kind) else 64, TEXT)
    if _is_number(kind) or pa.types.is_boolean(kind):
        return (kind.bit_width,)
    detail = f"columns of type {shown(str(kind))} are not read: {shown(field.name)}"
    raise InvalidNetwork(detail, field=pointer(field.name))


def _check_scale(field: pa.Field) -> None:
    """Raises `InvalidNetwork` for a decimal type that has no digits to say its scale with.

    Arrow makes such types, and looks powers of ten up by the scale without a bound: the process dies of it.
    """
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    if pa.types.is_decimal128(kind) and not 0 <= kind.scale <= kind.precision:
        detail = f"the scale of a decimal column is 0 to its precision, {kind.precision}, not {kind.scale}"
        raise InvalidNetwork(f"{detail}: {shown(field.name)}", field=pointer(field.name))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal128(kind))
