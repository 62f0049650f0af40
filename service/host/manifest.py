"""The manifest of append-only files, as servers since Redis 7 keep one. It names the files a server starts from."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

FOLDER: Final = "appendonlydir"
"""The folder of the append-only files, within the folder of a server."""

SINGLE: Final = "appendonly.aof"
"""The one file of servers before Redis 7, which is replaced as a whole."""

LINE: Final = re.compile(r"file (\S+) seq \d+ type [bi]")
"""A line of a manifest that names a dump or a file of commands. Files of another type a rewrite made useless."""

TEMPORARY: Final = "temp-"
"""Names that begin so are of files that a server had begun to write, and nothing reads them later."""


def manifest_of(data: Path) -> Path | None:
    """The manifest in the folder `data` of a server; None if there is none."""
    return next((path for path in data.glob(f"{FOLDER}/*.manifest") if not path.name.startswith(TEMPORARY)), None)


def named_in(text: str) -> Sequence[str]:
    """The names of the files that a manifest with this text needs, all in the folder that it lies in."""
    return [found[1] for found in map(LINE.match, text.splitlines()) if found is not None]
