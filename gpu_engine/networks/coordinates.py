"""Where the vertices of a network lie: two numbers for each, and what they are numbers of. No solver looks at them."""

import reprlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from gpu_engine.errors import InvalidNetwork, TooLarge, pointer
from gpu_engine.text.counted import counted

Floats = NDArray[np.float64]

WGS84: Final = "EPSG:4326"
"""x is the longitude and y the latitude, in degrees."""

SAME_AS_WGS84: Final = frozenset({WGS84, "OGC:CRS84", "WGS84", "URN:OGC:DEF:CRS:OGC:1.3:CRS84"})
"""Names of the same in capitals; the last is what QGIS and GDAL write into GeoJSON."""

MAX_CRS_CHARS: Final = 64
VERTEX_BYTES: Final = 16
"""Bytes that the coordinates of one vertex take."""


def is_wgs84(crs: str) -> bool:
    """Whether this name of a coordinate reference system stands for longitudes and latitudes as GPS has them."""
    return crs.upper() in SAME_AS_WGS84


@dataclass(frozen=True, slots=True)
class Coordinates:
    """x and y of each vertex, float64[n] each, finite, in the order of the vertices."""

    x: Floats
    y: Floats
    crs: str = WGS84
    """The name of the coordinate reference system, 1 to 64 characters."""

    @property
    def nbytes(self) -> int:
        return self.x.nbytes + self.y.nbytes

    @property
    def is_wgs84(self) -> bool:
        """Whether they are longitudes and latitudes as GPS has them."""
        return is_wgs84(self.crs)

    def taken(self, vertices: NDArray[np.int64]) -> Self:
        """The coordinates of some vertices, int32[k], in this order."""
        return type(self)(self.x[vertices], self.y[vertices], self.crs)

    def extended(self, x: Floats, y: Floats) -> Self:
        """These coordinates followed by those of more vertices, float64[k] each. O(n)."""
        return type(self)(np.concatenate([self.x, x]), np.concatenate([self.y, y]), self.crs)


def check_coordinates(coordinates: Coordinates | None, n_vertices: int) -> None:
    """Raise `InvalidNetwork` naming the column and its rows, unless there are none or all vertices have finite ones.
    O(n)."""
    if coordinates is None:
        return
    check_crs(coordinates.crs)
    for name, column in (("x", coordinates.x), ("y", coordinates.y)):
        if len(column) != n_vertices:
            rows, vertices = counted(len(column), "row"), counted(n_vertices, "vertex", "vertices")
            raise InvalidNetwork(f"{name} has {rows} for {vertices}: it has one for each", field=pointer(name))
        check_finite(column, name)


def check_finite(column: Floats, name: str) -> None:
    """Raise `InvalidNetwork` with the first rows that are NaN or infinite."""
    rows = np.flatnonzero(~np.isfinite(column))
    if len(rows):
        more = f" (and {len(rows) - 1} more)" if len(rows) > 1 else ""
        detail = f"row {rows[0]}: {name} is not finite ({column[rows[0]]}){more}"
        raise InvalidNetwork(detail, rows.tolist(), field=pointer(name))


def check_crs(crs: object) -> None:
    """Raise `InvalidNetwork` or `TooLarge` for what names no coordinate reference system."""
    if not isinstance(crs, str) or not crs.strip() or not crs.isprintable():
        raise InvalidNetwork(f"crs is a text such as {WGS84!r}, not {reprlib.repr(crs)}", field="/crs")
    if len(crs) > MAX_CRS_CHARS:
        raise TooLarge(f"crs has at most {MAX_CRS_CHARS} characters, not {len(crs)}", field="/crs")


def coordinates_of(x: Floats | None, y: Floats | None, crs: object = None) -> Coordinates | None:
    """What the columns and the name of a body say together. Spaces around the name are no part of it. Raises
    `InvalidNetwork` where one of them is missing."""
    if x is None or y is None:
        if x is not None or y is not None:
            given, missing = ("x", "y") if y is None else ("y", "x")
            raise InvalidNetwork(f"{given} and {missing} come together: {missing} is missing", field=pointer(missing))
        if crs is not None:
            raise InvalidNetwork("crs says what x and y are, and there are none", field="/crs")
        return None
    found = WGS84 if crs is None else crs.strip(" ") if isinstance(crs, str) else crs
    check_crs(found)
    return Coordinates(x, y, str(found))


Columns = tuple[Sequence[float] | Floats | None, Sequence[float] | Floats | None]


def joined_places(
    here: Coordinates | None, so_far: tuple[Floats | None, Floats | None], given: Columns, count: int
) -> tuple[Floats | None, Floats | None]:
    """x and y of all vertices that are to come: those ``so_far``, and of ``count`` more as they were given.

    Raises `InvalidNetwork` unless they are given just where the vertices that are ``here`` have them.
    """
    x, y = (None if column is None else np.asarray(column, np.float64) for column in given)
    found = coordinates_of(x, y)
    if here is None or found is None:
        if found is not None:
            raise InvalidNetwork("the vertices of this graph have no coordinates: leave `x` and `y` out", field="/x")
        if here is not None:
            raise InvalidNetwork("the vertices of this graph have coordinates: give those of new ones", field="/x")
        return None, None
    check_coordinates(found, count)
    if so_far[0] is None or so_far[1] is None:
        return found.x, found.y
    return np.concatenate([so_far[0], found.x]), np.concatenate([so_far[1], found.y])
