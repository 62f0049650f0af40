"""What the schema of an Arrow stream says beside its columns."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from difflib import SequenceMatcher
from itertools import islice
from typing import Final

from gpu_engine.errors import InvalidNetwork
from gpu_engine.formats._place import refusing
from gpu_engine.networks.rounded import Rounded
from gpu_engine.text.near import MAX_CHARS

MAX_METADATA_DIGITS: Final = 18
KNOWN: Final = ("n_vertices", "decimals", "cost_decimals", "source", "sink", "crs", "undirected", "labelled")
MEANT: Final[Mapping[str, str]] = {
    **dict.fromkeys(("vertex", "n_vertex", "num_vertices", "nodes", "n_nodes", "num_nodes"), "n_vertices"),
    **dict.fromkeys(("capacity_decimals", "lower_decimals", "vertex_decimals"), "decimals"),
    **dict.fromkeys(("target", "dst", "destination"), "sink"),
    "src": "source",
}
"""Names that other tools use, and the key that is meant."""
NEAR: Final = 0.85
"""Keys that are at least this similar to a known one are refused as misspelt. The bound is above the similarity of
`source_file` and `source`, so that keys which a writer adds for itself are passed over."""
MAX_KEYS: Final = 64
"""How many keys are looked at, since a caller may send any number."""
ELSEWHERE: Final = ("rounding", "on_missing", "solve", "dry_run")
"""Options that belong into the query or into a body of JSON, and are refused as keys of a stream."""
OPERATION: Final = "op"
"""The member by which an update in JSON closes or reopens edges, which a stream cannot."""


class Metadata:
    """The schema's key-value pairs, each checked when it is asked for."""

    def __init__(self, pairs: dict[bytes, bytes]) -> None:
        self._pairs = pairs

    def refuse_misspelt(self, known: Sequence[str] = KNOWN) -> None:
        """Raise `InvalidNetwork` for a key that is almost one of the ``known``, or another tool's name of one. If it
        were passed over, amounts could be read in other units than the caller meant."""
        for key in islice(self._pairs, MAX_KEYS):
            name = key[:MAX_CHARS].decode("utf-8", "replace")
            if name in known:
                continue
            plain = name.lower().replace("-", "_").replace(" ", "_")
            all_known = (*known, *ELSEWHERE)
            ratios = {other: SequenceMatcher(None, plain, other, autojunk=False).ratio() for other in all_known}
            near = max(all_known, key=ratios.__getitem__)
            if ratios[near] < NEAR:
                near = MEANT.get(plain, "")
            if near in ELSEWHERE:
                raise InvalidNetwork(f"schema metadata {name} is not read: the query of the request may say {near}")
            if near in known:
                raise InvalidNetwork(f"schema metadata {name!r} is not read: did you mean {near!r}?")

    def refuse_operation(self) -> None:
        """Raise `InvalidNetwork` if the stream of an update says that it closes or reopens edges."""
        if OPERATION.encode() in self._pairs:
            raise InvalidNetwork(f"schema metadata {OPERATION} is not read: an update in JSON closes and reopens edges")

    def refuse_lone(self, name: str, meant: str) -> None:
        """Raise `InvalidNetwork` if ``name`` is there, which counts for other columns, and ``meant`` is not."""
        if name.encode() in self._pairs and meant.encode() not in self._pairs:
            raise InvalidNetwork(f"schema metadata {name} is not read here: did you mean {meant!r}?")

    def refuse_unlike(self, first: "Metadata") -> None:
        """Raise `InvalidNetwork` for a known key of the second stream that the first stream lacks or has with another
        value. If it were passed over, capacities of vertices could be read in other units than the caller meant."""
        self.refuse_misspelt()
        for name in KNOWN:
            own = self._pairs.get(name.encode())
            if own is not None and own != first._pairs.get(name.encode()):
                told = f"schema metadata {name} of the second stream ({_shown(own)}) is not read"
                raise InvalidNetwork(f"{told}: say it in that of the first")

    def count(self, name: str) -> int | None:
        """The whole number under this key; None if it is not there. Raises `InvalidNetwork` for anything else."""
        text = self._pairs.get(name.encode())
        if text is None:
            return None
        if not text.isdigit() or len(text) > MAX_METADATA_DIGITS:
            raise InvalidNetwork(f"schema metadata {name} must be a whole number, not {_shown(text)}")
        return int(text)

    def rounded(self, name: str) -> Rounded:
        """The `Rounded` of the network that `pack` was given; no rounding if the key is absent."""
        rows, _, largest = self._pairs.get(name.encode(), b"0 0").decode().partition(" ")
        return Rounded(int(rows), Decimal(largest))

    def flag(self, name: str) -> bool:
        """Whether the key says true; False if it is not there. Raises `InvalidNetwork` for anything else."""
        text = self._pairs.get(name.encode(), b"false")
        if text not in (b"true", b"false"):
            raise InvalidNetwork(f"schema metadata {name} must be true or false, not {_shown(text)}")
        return text == b"true"

    def text(self, name: str) -> str | None:
        """The text under this key; None if it is not there. Raises `InvalidNetwork` for what is not UTF-8."""
        text = self._pairs.get(name.encode())
        if text is None:
            return None
        with refusing(f"schema metadata {name}", UnicodeError):
            return text.decode()


def _shown(text: bytes) -> str:
    return repr(text[:20].decode("utf-8", "replace"))
