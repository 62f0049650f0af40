"""Whether API keys were ever made: remembered by a process, and in a file beside the data of `headrace serve`.

A Redis that comes back empty has no keys, and looks like one of a service that never had any. What is remembered here
tells them apart: who has once asked for keys goes on asking, until somebody says that it may be open again.
"""

import os
import time
from pathlib import Path
from typing import Final

import structlog

FILE: Final = "api-keys-seen"
"""The name of a file in the data directory. Its time of change is the last moment the keys are known to have been
there."""

TEXT: Final = """This service has API keys. While this file is here, nobody gets in without one, even if they are gone.
To open it on purpose: headrace keys forget --open
"""

log = structlog.get_logger(__name__)


class KeysSeen:
    """Remembers that there were API keys: in a file, or without a path for as long as the process runs."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._seen_at: float | None = None
        self._written = self._is_told = False

    def at(self) -> float | None:
        """When keys were there last, in unix seconds, as far as anybody here knows; None: never."""
        return max(filter(None, (self._seen_at, self._file_time())), default=None)

    def remember(self) -> None:
        """Note that there are keys now."""
        self._seen_at = time.time()
        if self._written:
            return
        try:
            self.write()
        except OSError as error:  # the memory of the process still counts
            if not self._is_told:
                log.error("api_keys_not_remembered", file=str(self._path), error=str(error))
            self._is_told = True

    def write(self) -> None:
        """Write the file, if there is to be one. Raises OSError."""
        if self._path is not None:
            try:
                self._path.write_text(TEXT)
            except PermissionError:  # root's, who has made a key: in a folder of ours another one takes its place
                own = self._path.with_name(f"{self._path.name}.{os.getpid()}")
                own.write_text(TEXT)
                own.replace(self._path)
        self._written = True

    def forget(self) -> None:
        """Forget that there were keys, as somebody has said that the service may be open."""
        self._seen_at, self._written = None, False
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def _file_time(self) -> float | None:
        if self._path is None:
            return None
        try:
            return os.stat(self._path).st_mtime
        except FileNotFoundError:
            return None
