"""Answers as npz or Arrow: the columns as arrays, all else as one JSON text beside them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from gpu_engine import formats
from gpu_engine.formats import Part
from service.worker import json_writer
from service.worker.columns import Column


@dataclass(frozen=True, slots=True)
class Placed:
    """A column and the table that it belongs to in the whole answer."""

    column: Column
    table: str

    @property
    def kind(self) -> str:
        return self.column.kind

    def count(self) -> int:
        return self.column.count()

    def parts(self) -> Iterator[Part]:
        return self.column.parts()


def pieces(encoding: Literal["npz", "arrow"], answer: Mapping[str, object], decimals: int) -> Iterator[bytes]:
    """The file, some rows at a time. Amounts in columns are units of ``decimals``, which stand beside them."""
    columns: dict[str, Placed] = {}
    rest = _without_columns({**answer, "decimals": decimals}, "", columns)
    text = json_writer.dumps(rest).encode()
    if encoding == "npz":
        return formats.npz_columns(text, columns)
    stated = {name: str(answer[name]) for name in ("version", "cost_decimals") if name in answer}
    return formats.arrow_columns(text, columns, {"decimals": str(decimals), **stated})


def _without_columns(answer: Mapping[str, object], place: str, columns: dict[str, Placed]) -> dict[str, object]:
    """The answer without its columns, which are put into ``columns``, each by its dotted name. A member that held
    columns alone is left empty."""
    rest: dict[str, object] = {}
    for name, value in answer.items():
        path = f"{place}.{name}" if place else name
        if isinstance(value, Column):
            columns[path] = Placed(value, ".".join(filter(None, (place, value.table))))
        elif isinstance(value, dict):
            rest[name] = _without_columns(value, path, columns)
        else:
            rest[name] = value
    return rest
