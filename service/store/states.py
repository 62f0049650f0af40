"""Which flow states a graph has in its worker's memory, so that they are there again after a restart or a takeover.

Terminals and no flows: these are solved anew. If the list is lost, a first question waits for its solve, and no more.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import zstandard
from numpy.typing import NDArray

from gpu_engine.errors import EngineError
from gpu_engine.networks.terminals import Terminals
from service.protocol import Kind

MAX_BYTES: Final = 64 << 10
"""Longest list of a graph, compressed. States that were asked for the longest ago are left out of a longer one."""

UNPACKED_BYTES: Final = 1 << 20
ROW_BYTES: Final = 12
"""Bytes for each terminal: its vertex and its cap."""

TTL_S: Final = 7 * 24 * 3600
"""How long a list is kept that is not written again. It is written whenever flow states come and go."""

COLUMNS: Final = ("<i4", "<i8", "<i4", "<i8")


@dataclass(frozen=True, slots=True)
class Noted:
    """The kind and the terminals of one flow state."""

    kind: Kind
    terminals: Terminals


def pack_states(noted: Sequence[Noted]) -> bytes:
    """The last of these states, as many as fit. A state that is too large is known by its counts, and not written."""
    kept: list[Noted] = []
    n_bytes = 0
    for state in reversed(noted):
        n_bytes += ROW_BYTES * (len(state.terminals.sources) + len(state.terminals.sinks))
        if n_bytes > UNPACKED_BYTES // 2:
            break
        kept.insert(0, state)
    while len(packed := _packed(kept)) > MAX_BYTES:
        del kept[0]
    return packed


def _packed(noted: Sequence[Noted]) -> bytes:
    """A line of JSON with kinds and lengths, then for each state sources, supply, sinks and demand."""
    head = [(state.kind.value, len(state.terminals.sources), len(state.terminals.sinks)) for state in noted]
    parts = [json.dumps(head).encode() + b"\n"]
    for state in noted:
        t = state.terminals
        columns: tuple[NDArray[np.generic], ...] = (t.sources, t.supply, t.sinks, t.demand)
        parts += [column.astype(kind).tobytes() for column, kind in zip(columns, COLUMNS, strict=True)]
    return zstandard.compress(b"".join(parts))


def unpack_states(packed: bytes | None) -> list[Noted]:
    """The inverse of `pack_states`. A list that cannot be read is empty: the graph does without it."""
    if not packed:
        return []
    try:
        raw = zstandard.ZstdDecompressor().decompress(packed, max_output_size=UNPACKED_BYTES)
        line, _, _ = raw.partition(b"\n")
        at, noted = len(line) + 1, []
        for kind, n_sources, n_sinks in json.loads(line):
            columns = []
            for dtype, count in zip(COLUMNS, (n_sources, n_sources, n_sinks, n_sinks), strict=True):
                columns.append(np.frombuffer(raw, dtype, count, at).astype(np.dtype(dtype).newbyteorder("=")))
                at += columns[-1].nbytes
            sources, supply, sinks, demand = columns
            noted.append(Noted(Kind(kind), Terminals.of(sources, sinks, supply, demand)))
        return noted
    except (zstandard.ZstdError, EngineError, ValueError, TypeError):
        return []
