"""Where Numba keeps compiled kernels: in a directory of its own for each state of the sources.

Numba compiles a kernel anew when the file it stands in has changed, but not when a kernel it calls, in another file,
has: the old machine code of the callee would live on inside the caller. So the name of the directory is a digest of all
modules that kernels are made of.
"""

import os
import shutil
from hashlib import sha256
from pathlib import Path
from typing import Final

VARIABLE: Final = "NUMBA_CACHE_DIR"
PACKAGE: Final = Path(__file__).parent
CONSTANTS: Final = ("types.py", "engine.py", "free.py")
"""Modules without kernels whose constants are compiled into kernels."""

PREFIX: Final = "headrace-"
KEPT: Final = 4
"""Directories of so many states of the sources are kept, a few megabytes each."""


def set_directory() -> None:
    """Name this state's directory in the environment, inside of what stands there or else of ``__pycache__``.

    If it cannot be made Numba falls back on its own rules. Without effect once Numba is imported.
    """
    given = os.environ.get(VARIABLE)
    name = PREFIX + digest()
    parent = Path(given) if given else PACKAGE / "__pycache__"
    if parent.name.startswith(PREFIX):
        parent = parent.parent  # it was set by the process that started this one
    directory = parent / name
    if not directory.is_dir():
        _forget_oldest(parent)
    os.environ[VARIABLE] = str(directory)


def digest() -> str:
    """Of the modules that kernels are made of, by name and content."""
    found = sha256()
    for path in sorted([*PACKAGE.glob("*.py"), *PACKAGE.glob("cpu/*.py")]):
        source = path.read_bytes()
        if b"njit(" in source or path.name in CONSTANTS:
            found.update(path.name.encode() + b"\0" + source)
    return found.hexdigest()[:16]


def _forget_oldest(parent: Path) -> None:
    try:
        others = sorted(parent.glob(PREFIX + "*"), key=lambda path: path.stat().st_mtime)
    except OSError:
        return
    for path in others[: max(0, len(others) + 1 - KEPT)]:
        shutil.rmtree(path, ignore_errors=True)
