"""The members of an npz archive, whose directory is checked against the bytes there are before any is decompressed.

Read are the methods NumPy writes, stored and deflated: others (bzip2, LZMA) make gigabytes of a few hundred bytes.
"""

import zipfile
from collections.abc import Iterable
from typing import Final

from gpu_engine.errors import InvalidNetwork
from gpu_engine.formats._place import shown
from gpu_engine.formats.limits import Limits, View

READ_BYTES: Final = 128 << 10
"""zipfile reads the directory at once and makes an object of each entry: this bounds them to some thousands."""

PIECE_BYTES: Final = 64 << 10

DEFLATE_RATIO: Final = 1032
"""Deflate never packs more bytes into one (zlib, "Maximum Compression Factor")."""

METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


class Archive:
    """Opened and checked. Raises `InvalidNetwork` and what zipfile raises for archives that are broken."""

    def __init__(self, data: bytes | memoryview, limits: Limits) -> None:
        self._archive = zipfile.ZipFile(View(data, READ_BYTES))
        members = self._archive.infolist()
        for member in members:
            _check(member)
        places = {member.header_offset for member in members}
        if len(places) < len(members) or sum(member.compress_size for member in members) > len(data):
            raise InvalidNetwork("members of the archive overlap")
        limits.check_decompressed(sum(member.file_size for member in members), len(data))
        self._members = {member.filename.removesuffix(".npy"): member for member in members}
        if len(self._members) < len(members):
            raise InvalidNetwork("an array is there twice")

    @property
    def names(self) -> Iterable[str]:
        return self._members.keys()

    def n_bytes(self, name: str) -> int:
        """As declared, which is all that will be read."""
        return self._members[name].file_size

    def head(self, name: str, n_bytes: int) -> bytes:
        """The first bytes of a member."""
        with self._archive.open(self._members[name]) as stream:
            return stream.read(n_bytes)

    def read(self, name: str) -> memoryview:
        """A whole member, in pieces: a stream that holds more than was declared is not decompressed further."""
        content = bytearray()
        with self._archive.open(self._members[name]) as stream:
            while piece := stream.read(PIECE_BYTES):
                content += piece
        return memoryview(content)


def _check(member: zipfile.ZipInfo) -> None:
    name = shown(member.filename)
    if member.compress_type not in METHODS:
        raise InvalidNetwork(f"{name} is neither stored nor deflated, as NumPy does it")
    if member.file_size > DEFLATE_RATIO * (member.compress_size + 1):
        raise InvalidNetwork(f"{name} declares {member.file_size} bytes, which {member.compress_size} cannot hold")
