"""The little of the flatbuffers encoding that the heads of Arrow messages need: tables, integers, vectors of pairs.

Every access is checked against the bytes there are: `struct.error` or `ValueError` if something points outside.
"""

import struct
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Table:
    """A table at an offset of its buffer; its fields are numbered from 0 as in the schema language."""

    head: memoryview
    at: int

    @classmethod
    def root(cls, head: memoryview) -> "Table":
        return cls(head, _uint32(head, 0))

    def has(self, field: int) -> bool:
        return self._place(field) != 0

    def child(self, field: int) -> "Table":
        return Table(self.head, self._target(field))

    def int64(self, field: int) -> int:
        """0 where it is absent, which is the default of every integer we read."""
        place = self._place(field)
        return struct.unpack_from("<q", self.head, place)[0] if place else 0

    def flag(self, field: int) -> bool:
        place = self._place(field)
        return bool(place) and self.head[place] != 0

    def pairs(self, field: int) -> list[tuple[int, int]]:
        """A vector of structures of two int64."""
        at = self._target(field)
        found = struct.unpack_from(f"<{2 * _uint32(self.head, at)}q", self.head, at + 4)
        return [*zip(found[0::2], found[1::2], strict=True)]

    def int64s(self, field: int) -> tuple[int, ...]:
        """A vector of int64; empty where it is absent."""
        if not self.has(field):
            return ()
        at = self._target(field)
        return struct.unpack_from(f"<{_uint32(self.head, at)}q", self.head, at + 4)

    def _place(self, field: int) -> int:
        """Where a field lies, 0 where it is absent."""
        vtable = self.at - struct.unpack_from("<i", self.head, self.at)[0]
        if vtable < 0:
            raise ValueError("a table points outside")
        if 4 + 2 * field >= struct.unpack_from("<H", self.head, vtable)[0]:
            return 0
        offset: int = struct.unpack_from("<H", self.head, vtable + 4 + 2 * field)[0]
        return self.at + offset if offset else 0

    def _target(self, field: int) -> int:
        """Where a table or vector starts that a field points to."""
        place = self._place(field)
        if not place:
            raise ValueError("a required field is absent")
        return place + _uint32(self.head, place)


def _uint32(head: memoryview, at: int) -> int:
    value: int = struct.unpack_from("<I", head, at)[0]
    return value
