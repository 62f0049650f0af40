"""Graphs as files on this machine: which format a name means, and a file that is there whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from errno import ENOENT
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryFile
from typing import BinaryIO
from uuid import uuid4

from headrace._calls import GraphFormat
from headrace._errors import InvalidInput

FORMATS: dict[str, GraphFormat] = {
    ".npz": "npz",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".max": "dimacs",
    ".min": "dimacs-min",
    ".dimacs": "dimacs",
}


def format_of(path: Path) -> GraphFormat:
    """The format that a suffix stands for. Raises `InvalidInput`."""
    if (suffix := path.suffix.lower()) not in FORMATS:
        raise InvalidInput(f"{path.name}: the suffix must be one of {', '.join(FORMATS)}")
    return FORMATS[suffix]


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write, which takes its name only if all went well; what had the name before stays until then.

    Where the name is a link, the file that it leads to is written; a pipe or a device gets all of it at the end.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        with TemporaryFile() as file:
            yield file
            file.seek(0)
            with path.open("wb") as pipe:
                copyfileobj(file, pipe)
        return
    if path.is_symlink():
        path = Path(os.path.realpath(path))  # a link to itself is its own end, where `resolve` raises
    if not path.parent.is_dir():
        raise FileNotFoundError(ENOENT, "there is no such folder", str(path.parent))
    part = path.with_name(f".{path.name}.{uuid4().hex}")
    try:
        with _begun(part, path) as file:
            yield file
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _begun(part: Path, path: Path) -> BinaryIO:
    """The new file `part`. An error names the `path` that was asked for."""
    try:
        return part.open("xb")
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None


def rewind(file: BinaryIO) -> None:
    """Forget what an attempt that broke off has written."""
    file.seek(0)
    file.truncate()
