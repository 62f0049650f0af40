"""Where Numba keeps compiled kernels: in a directory of its own for each state of the sources.

Numba compiles a kernel anew when the file it stands in has changed, but not when a kernel it calls, in another file,
has: the old machine code of the callee would live on inside the caller. So the name of the directory is a digest of all
modules that kernels are made of.
"""

import os
import re
import shutil
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Final

VARIABLE: Final = "NUMBA_CACHE_DIR"
PACKAGE: Final = Path(__file__).parents[1]
CONSTANTS: Final = ("types.py", "control.py", "free.py", "series.py")
"""Modules without kernels whose constants and records are compiled into kernels."""

WITH_KERNELS: Final = (
    "checks/*.py",
    "circulations/*.py",
    "closures/*.py",
    "cpu/*.py",
    "mincost/*.py",
    "networks/*.py",
    "pairs/*.py",
    "parametric/*.py",
    "partition/*.py",
    "text/*.py",
)
"""Packages with kernels, beside the modules of `gpu_engine` itself."""

PREFIX: Final = "headrace-kernels-"
NAME: Final = re.compile(r"headrace-kernels-[0-9a-f]{16}")
"""The names of directories of kernels, and of nothing else: the oldest of them are removed, wherever they lie."""

KEPT: Final = 4
"""Directories of so many states of the sources are kept, a few megabytes each."""


def set_directory() -> None:
    """Name this state's directory in the environment, so that Numba keeps its kernels there.

    If it cannot be made Numba falls back on its own rules. Without effect once Numba is imported.
    """
    found = directory()
    if not os.path.isdir(found):  # Path.is_dir raises where nobody may look
        _forget_oldest(found.parent)
    os.environ[VARIABLE] = str(found)


def directory() -> Path:
    """Where kernels are kept: inside of what stands in the environment, else of the package's ``__pycache__``, or of
    the user's own cache where the package belongs to somebody else."""
    given = os.environ.get(VARIABLE)
    users = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    has_home = not users.startswith("~")  # else there would be a folder of that name, wherever the process is
    if given:
        parent = Path(given)
        if NAME.fullmatch(parent.name):
            parent = parent.parent  # it was set by this process, or by the one that started it
    elif os.access(PACKAGE, os.W_OK) or not has_home:
        parent = PACKAGE / "__pycache__"
    else:
        parent = Path(users) / "headrace"
    return parent / (PREFIX + digest())


def sources() -> Iterator[tuple[Path, bytes]]:
    """The modules that kernels are made of, with their text."""
    for path in sorted(path for pattern in ("*.py", *WITH_KERNELS) for path in PACKAGE.glob(pattern)):
        text = path.read_bytes()
        if b"njit(" in text or path.name in CONSTANTS:
            yield path, text


def digest() -> str:
    """SHA-256 of the names and texts of `sources`, its beginning."""
    found = sha256()
    for path, text in sources():
        found.update(path.name.encode() + b"\0" + text)
    return found.hexdigest()[:16]


def n_kernels() -> int:
    """How many functions are compiled."""
    return sum(text.count(b"\n@njit(") for _, text in sources())


def _forget_oldest(parent: Path) -> None:
    try:
        kernels = [path for path in parent.glob(PREFIX + "*") if NAME.fullmatch(path.name)]
        others = sorted(kernels, key=lambda path: path.stat().st_mtime)
    except OSError:
        return
    for path in others[: max(0, len(others) + 1 - KEPT)]:
        shutil.rmtree(path, ignore_errors=True)
