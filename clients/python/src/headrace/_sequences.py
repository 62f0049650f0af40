"""Columns of answers: sequences of exact values, kept as NumPy arrays.

A Python object is made of a row when it is looked at, and not before. `numpy.asarray(column)` is the whole column as an
array, `list(column)` a list, as `json.dumps` wants it; and a column equals any sequence of the same values.
"""

from collections.abc import Iterator, Sequence
from decimal import Context, Decimal
from typing import Any, Generic, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from headrace._amounts import INFINITY, Exact, exact
from headrace._mistakes import counted

T = TypeVar("T")

WIDE = Context(prec=60)
"""Of amounts no digit is lost in it, whatever the caller's own context keeps."""

SHOWN = 20
"""Values in the `repr` of a column."""


class Texts:
    """Texts as they travel: UTF-8 bytes, uint8[bytes], and where each text begins, int64[n + 1]."""

    def __init__(self, utf8: NDArray[np.uint8], offsets: NDArray[np.int64]) -> None:
        self._utf8 = utf8
        self._offsets = offsets

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def decoded(self, rows: NDArray[np.int64] | None = None) -> NDArray[Any]:
        """object[k]: the texts of these rows, or of all, as `str`."""
        rows = np.arange(len(self)) if rows is None else rows
        raw, begin, end = self._utf8.tobytes(), self._offsets[rows].tolist(), self._offsets[rows + 1].tolist()
        texts = np.empty(len(begin), object)
        texts[:] = [raw[i:j].decode() for i, j in zip(begin, end, strict=True)]
        return texts


class Column(Sequence[T], Generic[T]):
    """Values in a column, which is never changed. A slice of it is a column as well."""

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array

    @property
    def array(self) -> NDArray[Any]:
        """The values as an array; of texts and decimals an array of Python objects."""
        return self._array

    def _values(self, part: slice) -> list[T]:
        values: list[T] = self.array[part].tolist()
        return values

    def _cut(self, part: slice) -> "Column[T]":
        return Column(self.array[part])

    def __len__(self) -> int:
        return len(self._array)

    @overload
    def __getitem__(self, i: int) -> T: ...

    @overload
    def __getitem__(self, i: slice) -> "Column[T]": ...

    def __getitem__(self, i: int | slice) -> "T | Column[T]":
        if isinstance(i, slice):
            return self._cut(i)
        try:
            at = range(len(self))[i]
        except IndexError:
            raise IndexError(f"there is no row {i} in a column of {counted(len(self), 'row')}") from None
        except TypeError:
            rows = "for a list or a mask of rows use numpy.asarray(column)[rows]"
            raise TypeError(
                f"a row of a column is a whole number, or rows are a slice, not {i!r:.80}; {rows}"
            ) from None
        return self._values(slice(at, at + 1))[0]

    def __iter__(self) -> Iterator[T]:
        return iter(self._values(slice(None)))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str) or not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(mine == theirs for mine, theirs in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]  # like a list

    def __repr__(self) -> str:
        if len(self) <= SHOWN:
            return repr(tuple(self))
        return f"({', '.join(map(repr, self[:SHOWN]))}, ... {len(self)} in all)"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.array, dtype=dtype, copy=copy)


class Names(Column[T]):
    """Names of vertices or edges: the rows themselves, or the labels of these rows."""

    def __init__(self, labels: NDArray[Any] | Texts | None, rows: NDArray[np.int64] | None = None) -> None:
        super().__init__(np.empty(0, np.int64))
        self._labels = labels
        self._rows = rows
        self._known: NDArray[Any] | None = None

    @classmethod
    def of(cls, received: Any) -> "Names[T]":
        """The column as it came: an array, texts, or a list of JSON."""
        if isinstance(received, Texts):
            return cls(received)
        if isinstance(received, np.ndarray):
            return cls(received.astype(np.int64))
        names = list(received or ())
        is_whole = all(type(name) is int for name in names)
        array = np.empty(len(names), np.int64 if is_whole else object)
        array[:] = names
        return cls(array)

    @property
    def array(self) -> NDArray[Any]:
        """int64[k], or object[k] of `str`. Labels are decoded when this is first asked for."""
        if self._known is None:
            if isinstance(self._labels, Texts):
                self._known = self._labels.decoded(self._rows)
            elif self._labels is None:
                self._known = np.empty(0, np.int64) if self._rows is None else self._rows
            else:
                self._known = self._labels if self._rows is None else self._labels[self._rows]
        return self._known

    def __len__(self) -> int:
        counted = self._labels if self._rows is None else self._rows
        return 0 if counted is None else len(counted)

    def __contains__(self, name: object) -> bool:
        return bool(np.any(self.array == name)) if self.array.dtype != object else name in self.array.tolist()

    def __reduce__(self) -> Any:
        return type(self), (self.array,)


class Side(Names[T]):
    """The vertices on one side of a cut."""

    mask: NDArray[np.bool_] | None = None
    """bool[n]: for each vertex by its index whether it is on this side; None if the answer came as lists."""

    @classmethod
    def of_mask(cls, mask: NDArray[np.bool_], labels: NDArray[Any] | Texts | None) -> "Side[T]":
        """The vertices that are marked; `labels` are those of all vertices, None without."""
        side: Side[T] = cls(labels, np.flatnonzero(mask))
        side.mask = mask
        return side

    def __reduce__(self) -> Any:
        return type(self), (self.array,), {"mask": self.mask}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


class AmountColumn(Column[Exact]):
    """Exact amounts: a whole number is an `int`, any other a `Decimal`, an unlimited one infinity.

    `numpy.asarray(column)` is int64 where all amounts are whole and limited, else the nearest float64. `units` and
    `decimals` are exact: the amount of row i is ``units[i] / 10 ** decimals``.
    """

    def __init__(self, units: NDArray[Any], decimals: int = 0, unlimited: NDArray[np.bool_] | None = None) -> None:
        super().__init__(units)
        self.units = units
        self.decimals = decimals
        self.unlimited = np.zeros(len(units), np.bool_) if unlimited is None else unlimited

    @classmethod
    def of(cls, received: Any, decimals: int, unlimited: NDArray[np.bool_] | None = None) -> "AmountColumn":
        """The column as it came: units in an array, or a list of JSON. Raises ValueError for what is no amount."""
        if isinstance(received, np.ndarray):
            return cls(received.astype(np.int64), decimals, unlimited)
        amounts = list(map(exact, received or ()))
        limited = [amount if amount != INFINITY else 0 for amount in amounts]
        places = max((-int(part.as_tuple().exponent) for part in limited if isinstance(part, Decimal)), default=0)
        places = max(places, 0)
        whole = [int(Decimal(amount).scaleb(places, WIDE)) for amount in limited]
        fits = all(-(2**63) <= units < 2**63 for units in whole)
        units = np.array(whole, np.int64 if fits else object)
        return cls(units, places, np.array([amount == INFINITY for amount in amounts], np.bool_))

    @property
    def array(self) -> NDArray[Any]:
        if self.unlimited.any():
            return np.where(self.unlimited, np.inf, self.units / 10**self.decimals)
        step = 10**self.decimals
        whole: NDArray[Any] = self.units // step
        return whole if np.array_equal(whole * step, self.units) else np.true_divide(self.units, step)

    def _values(self, part: slice) -> list[Exact]:
        units: list[int] = self.units[part].tolist()
        values: list[Exact] = list(units) if not self.decimals else [_exact(each, self.decimals) for each in units]
        for row in np.flatnonzero(self.unlimited[part]).tolist():
            values[row] = INFINITY
        return values

    def _cut(self, part: slice) -> "AmountColumn":
        return AmountColumn(self.units[part], self.decimals, self.unlimited[part])


def flags(received: Any) -> Column[bool]:
    """A column of booleans as it came."""
    return Column(np.asarray(received, np.bool_))


def _exact(units: int, decimals: int) -> Exact:
    whole, rest = divmod(units, 10**decimals)
    return whole if not rest else Decimal(units).scaleb(-decimals, WIDE).normalize(WIDE)
