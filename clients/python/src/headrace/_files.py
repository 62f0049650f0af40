"""Graphs as files on this machine: which format a name means, and a file that is there whole or not at all."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from headrace._calls import GraphFormat
from headrace._errors import InvalidInput

FORMATS: dict[str, GraphFormat] = {
    ".npz": "npz",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".max": "dimacs",
    ".dimacs": "dimacs",
}


def format_of(path: Path) -> GraphFormat:
    """By the suffix. Raises `InvalidInput`."""
    if path.suffix not in FORMATS:
        raise InvalidInput(f"{path.name}: the suffix must be one of {', '.join(FORMATS)}")
    return FORMATS[path.suffix]


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write, which takes its name only if all went well; what had the name before stays until then."""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def rewind(file: BinaryIO) -> None:
    """Forget what an attempt that broke off has written."""
    file.seek(0)
    file.truncate()
