"""Results on disk: one JSON object per run with the machine, the settings and one row per measurement."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.machine import describe

Row: TypeAlias = dict[str, Any]
"""One measurement: flat, JSON types only, a unit at the end of every name that has one."""

DIRECTORY = Path(__file__).parent / "results"


class Results:
    """Rows of one run, on disk after every instance, so that a run that is stopped has not been in vain."""

    def __init__(self, kind: str, settings: Row, path: Path | None = None) -> None:
        self.path = path or DIRECTORY / f"{kind}-{settings.get('size', 'any')}.json"
        self.document: Row = {
            "kind": kind,
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": describe(),
            "settings": settings,
            "rows": [],
        }

    @property
    def rows(self) -> list[Row]:
        rows: list[Row] = self.document["rows"]
        return rows

    def extend(self, rows: list[Row]) -> None:
        """Add rows and replace the file as a whole."""
        self.rows.extend(rows)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps(self.document, indent=1) + "\n")
        os.replace(part, self.path)


def read(path: Path) -> Row:
    """A document written by `Results`."""
    document: Row = json.loads(path.read_text())
    return document
