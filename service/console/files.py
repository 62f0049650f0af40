"""The scripts and styles of the console, as they lie in the package: read once, known by name, and no other file."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from types import MappingProxyType
from typing import Final

MEDIA: Final[Mapping[str, str]] = MappingProxyType(
    {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}
)


@dataclass(frozen=True, slots=True)
class Asset:
    """One file, as a browser gets it."""

    content: bytes
    media_type: str
    etag: str
    """A digest of the content, in quotes: a browser asks whether it is still good, and sees a new release at once."""


@lru_cache(1)
def assets() -> Mapping[str, Asset]:
    """All files by name; about 100 KiB."""
    found = {}
    for file in files("service.console").joinpath("assets").iterdir():
        media_type = MEDIA.get(file.name[file.name.rfind(".") :])
        if media_type is not None:
            content = file.read_bytes()
            found[file.name] = Asset(content, media_type, f'"{hashlib.sha256(content).hexdigest()[:32]}"')
    return MappingProxyType(found)
