"""What the compressed buffers of an Arrow IPC stream say they would grow to, before any is decompressed.

pyarrow has no bound on decompression, so the few fields needed are read from the messages' flatbuffers
(Arrow format 1.x, ``Message.fbs``): a compressed buffer starts with its decompressed length, int64, -1 if it
was stored as it is.
"""

import struct

import numpy as np
import pyarrow as pa

from gpu_engine.errors import InvalidNetwork, TooLarge

MESSAGE_HEADER = 2
RECORD_BATCH_BUFFERS = 2
RECORD_BATCH_COMPRESSION = 3
DICTIONARY_BATCH_DATA = 1
"""Positions of fields in their flatbuffer tables."""


def check_streams(data: pa.Buffer, limit_bytes: int) -> None:
    """Raise `TooLarge` if compressed buffers declare more than `limit_bytes` in all streams of `data`.

    Each stream must end with its end mark: one cut between two batches would otherwise lose the rest in
    silence. Reads message heads only.
    """
    source = pa.BufferReader(data)
    left = limit_bytes
    while source.tell() < data.size:
        left = _check_stream(source, left)


def _check_stream(source: pa.BufferReader, limit_bytes: int) -> int:
    """What is left of the limit after this stream."""
    messages = pa.ipc.MessageReader.open_stream(source)
    while True:
        before = source.tell()
        try:
            message = messages.read_next_message()
        except StopIteration:
            break
        limit_bytes -= _declared_bytes(message)
        if limit_bytes < 0:
            raise TooLarge("the columns decompress to more bytes than the limit")
    if source.tell() == before:
        raise InvalidNetwork("the Arrow IPC stream is cut: its end mark is missing")
    return limit_bytes


def _declared_bytes(message: pa.ipc.Message) -> int:
    if message.type not in ("record batch", "dictionary"):
        return 0
    head = memoryview(message.metadata)
    try:
        batch = _child(head, _root(head), MESSAGE_HEADER)
        if message.type == "dictionary":
            batch = _child(head, batch, DICTIONARY_BATCH_DATA)
        if not _field(head, batch, RECORD_BATCH_COMPRESSION):
            return 0
        vector = _child(head, batch, RECORD_BATCH_BUFFERS)
        (count,) = struct.unpack_from("<I", head, vector)
        places = np.frombuffer(head, dtype="<i8", count=2 * count, offset=vector + 4).reshape(-1, 2)
        body = memoryview(message.body)
        sizes = [struct.unpack_from("<q", body, offset)[0] for offset, length in places.tolist() if length > 0]
    except (struct.error, ValueError) as failure:
        raise InvalidNetwork("not an Arrow IPC stream: a record batch is malformed") from failure
    return sum(max(size, 0) for size in sizes)


def _root(head: memoryview) -> int:
    root: int = struct.unpack_from("<I", head, 0)[0]
    return root


def _field(head: memoryview, table: int, position: int) -> int:
    """Offset of a table's field, 0 where it is absent."""
    vtable = table - struct.unpack_from("<i", head, table)[0]
    if 4 + 2 * position >= struct.unpack_from("<H", head, vtable)[0]:
        return 0
    offset: int = struct.unpack_from("<H", head, vtable + 4 + 2 * position)[0]
    return table + offset if offset else 0


def _child(head: memoryview, table: int, position: int) -> int:
    """Where a field that is a table or vector starts."""
    field = _field(head, table, position)
    if not field:
        raise ValueError("a required field is absent")
    child: int = field + struct.unpack_from("<I", head, field)[0]
    return child
