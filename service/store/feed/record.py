"""What lies in Redis for the change feed of one graph name.

The feed is a stream with one entry for each event: its `id`, its type (`event`) and its `data` as JSON. The watches are
a hash from their names to their arguments. What they have been told is a second hash: `at` is the version that all of
them have been told of, ``=NAME`` the value of a watch, ``#NAME`` its cut and ``~NAME`` whether lower bounds were
passed over for it: a field of its own, since an earlier release takes no more of the others. These hang on the name
and not on the graph's id, so that they outlive a new load of the name.
"""

import hashlib
import json
import re
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import zstandard
from numpy.typing import NDArray

from service.protocol import WatchArgs
from service.store.keys import Keys, generation_of
from service.store.unreadable import readable

VERSION: Final = "version"
VALUE_CHANGED: Final = "value.changed"
CUT_CHANGED: Final = "cut.changed"
DELETED: Final = "graph.deleted"
RESET: Final = "reset"
TYPES: Final = (VERSION, VALUE_CHANGED, CUT_CHANGED, DELETED)
"""What a feed holds. A reader may get a `reset` beside these, which stands in no feed."""

MAX_CUT_KEPT: Final = 65_536
"""Edges of a cut that are kept for the next comparison. Of a larger cut a digest is kept: that it has changed is told,
and not in which edges."""

AT: Final = "at"


TAG: Final = re.compile(r"[0-9a-f]{8}-[0-9]+")


def version_tag(graph_id: str, version: int) -> str:
    """What names one version of one load."""
    return f"{generation_of(graph_id)}-{version}"


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a feed. `id` is the same however often it is delivered."""

    id: str
    type: str
    data: str
    """A JSON object."""

    @property
    def fields(self) -> dict[Any, Any]:
        """The event as an entry of the stream."""
        return {"id": self.id, "event": self.type, "data": self.data}

    @classmethod
    def of_fields(cls, fields: dict[bytes, bytes]) -> "Event":
        """Raises `unreadable.NOT_READ`."""
        return cls(fields[b"id"].decode(), fields[b"event"].decode(), fields[b"data"].decode())


def version_event(name: str, graph_id: str, version: int) -> Event:
    """A graph has come to a version: the first one of a load, or the next one by an update."""
    return Event(f"{version_tag(graph_id, version)}-version", VERSION, _about(name, graph_id, version))


def deleted_event(name: str, graph_id: str, version: int) -> Event:
    """A graph has been deleted; this was its last version."""
    return Event(f"{version_tag(graph_id, version)}-deleted", DELETED, _about(name, graph_id, version))


def reset_event(name: str, event_id: str = "") -> Event:
    """What a reader gets who was too late for some events. It stands in no feed."""
    return Event(event_id, RESET, json.dumps({"graph": name}))


def _about(name: str, graph_id: str, version: int) -> str:
    return json.dumps({"graph": name, "generation": generation_of(graph_id), "version": version})


@dataclass(frozen=True, slots=True)
class CutSeen:
    """The edges of a minimum cut, as a watch was told of them."""

    digest: bytes
    rows: NDArray[np.int64] | None = field(compare=False)
    """None: there are more than `MAX_CUT_KEPT`."""

    @classmethod
    def of(cls, rows: NDArray[np.int64]) -> "CutSeen":
        raw = np.sort(rows).astype("<i8")
        digest = hashlib.sha256(raw.tobytes()).digest()
        return cls(digest, raw.astype(np.int64) if len(raw) <= MAX_CUT_KEPT else None)

    def packed(self) -> bytes:
        rows = b"" if self.rows is None else zstandard.compress(self.rows.astype("<i8").tobytes())
        return self.digest + rows

    @classmethod
    def unpack(cls, packed: bytes) -> "CutSeen":
        digest, rest = packed[:32], packed[32:]
        if not rest:
            return cls(digest, None)
        raw = zstandard.ZstdDecompressor().decompress(rest, max_output_size=8 * MAX_CUT_KEPT)
        return cls(digest, np.frombuffer(raw, "<i8").astype(np.int64))


@dataclass(frozen=True, slots=True)
class Seen:
    """What a watch sees at one version."""

    value: str | None
    """JSON of the amount; None if there is none, as `error` says."""
    error: str | None = None
    """The code of the refusal that a question for the same flow would get."""
    cut: CutSeen | None = None
    """None: the watch does not look at the cut, or there is none."""
    ignores_lower: bool = False
    """Edges have lower bounds, which the flow does not keep."""

    def fields(self, watch: str) -> dict[Any, Any]:
        """The fields of a watch in the hash of what was told."""
        value = json.dumps({"value": self.value, "error": self.error})
        cut = b"" if self.cut is None else self.cut.packed()
        return {f"={watch}": value, f"#{watch}": cut, f"~{watch}": b"1" if self.ignores_lower else b""}

    @classmethod
    def of_fields(cls, watch: str, told: dict[bytes, bytes]) -> "Seen | None":
        """None: the watch was told nothing yet. Raises `unreadable.NOT_READ`."""
        row = told.get(f"={watch}".encode())
        if row is None:
            return None
        packed, ignores_lower = told.get(f"#{watch}".encode()), bool(told.get(f"~{watch}".encode()))
        return cls(**json.loads(row), cut=CutSeen.unpack(packed) if packed else None, ignores_lower=ignores_lower)


def read_watches(
    name: str, keys: Keys, watches: dict[bytes, bytes], told: dict[bytes, bytes]
) -> tuple[dict[str, tuple[WatchArgs, Seen | None]], str | None]:
    """The watches of a graph by name, each with what it was told, and the version that all were told of.

    A watch that cannot be read is left out. One of which it cannot be read what it was told was told nothing.
    """

    def seen(watch: str) -> Seen | None:
        rows = [(f"={watch}".encode(), told)]
        return next(readable(rows, keys.told(name), lambda _, fields: Seen.of_fields(watch, fields)), None)

    def read(watch: str, row: bytes) -> tuple[str, tuple[WatchArgs, Seen | None]]:
        return watch, (WatchArgs.model_validate_json(row), seen(watch))

    at = told.get(AT.encode(), b"").decode(errors="replace")
    return dict(readable(sorted(watches.items()), keys.watches(name), read)), at if TAG.fullmatch(at) else None
