"""Answers of several rows."""

from collections.abc import Iterator, Sequence
from typing import TypeVar, overload

Row_co = TypeVar("Row_co", covariant=True)


class Rows(Sequence[Row_co]):
    """The sequence of an answer's `rows`."""

    __slots__ = ()
    rows: tuple[Row_co, ...]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row_co]:
        return iter(self.rows)

    @overload
    def __getitem__(self, at: int) -> Row_co: ...

    @overload
    def __getitem__(self, at: slice) -> tuple[Row_co, ...]: ...

    def __getitem__(self, at: int | slice) -> Row_co | tuple[Row_co, ...]:
        return self.rows[at]
