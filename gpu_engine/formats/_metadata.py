"""What the schema of an Arrow stream says beside its columns."""

from decimal import Decimal
from typing import Final

from gpu_engine.errors import InvalidNetwork
from gpu_engine.formats._place import refusing
from gpu_engine.networks.rounded import Rounded

MAX_METADATA_DIGITS: Final = 18


class Metadata:
    """The schema's key-value pairs, each checked when it is asked for."""

    def __init__(self, pairs: dict[bytes, bytes]) -> None:
        self._pairs = pairs

    def count(self, name: str) -> int | None:
        text = self._pairs.get(name.encode())
        if text is None:
            return None
        if not text.isdigit() or len(text) > MAX_METADATA_DIGITS:
            raise InvalidNetwork(f"schema metadata {name} must be a whole number, not {text[:20]!r}")
        return int(text)

    def rounded(self, name: str) -> Rounded:
        """What `pack` was told; nothing if it was told of none."""
        rows, _, largest = self._pairs.get(name.encode(), b"0 0").decode().partition(" ")
        return Rounded(int(rows), Decimal(largest))

    def flag(self, name: str) -> bool:
        text = self._pairs.get(name.encode(), b"false")
        if text not in (b"true", b"false"):
            raise InvalidNetwork(f"schema metadata {name} must be true or false, not {text[:20]!r}")
        return text == b"true"

    def text(self, name: str) -> str | None:
        text = self._pairs.get(name.encode())
        if text is None:
            return None
        with refusing(f"schema metadata {name}", UnicodeError):
            return text.decode()
