"""Whether the files of the embedded server are still there while it runs."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import structlog

from service.errors import DATA_GONE
from service.host.manifest import SINGLE, manifest_of, named_in

LOOK_S: Final = 1.0
SAY_S: Final = 60.0
"""Time between two looks at the files of the embedded server, and between two lines which say that they are gone."""

MOST_LOOKS: Final = 10
"""How often in a row the manifest may change under one look, before the look is put off."""

log = structlog.get_logger("headrace.supervisor")


class Kept:
    """Files and folders as they are now. A server goes on writing files that were removed, which nobody finds again."""

    def __init__(self, *paths: Path, data: Path | None = None) -> None:
        """`paths` must stay the same files or folders. `data` is the folder of a server: its append-only files change
        as it writes them anew, so those that its manifest names at the time must be there."""
        found = {path: _found(path) for path in paths}
        self._known = {path: known for path, known in found.items() if known is not None}
        self._manifest = None if data is None else manifest_of(data)
        self._single = data / SINGLE if data is not None and _found(data / SINGLE) is not None else None
        self._gone: Path | None = None

    def gone(self) -> Path | None:
        """The first that was removed, or is another one by now, if any.

        Where the disk does not say, as for an input/output error, the answer is that of the look before. Cost: a look
        at each path, and the manifest's hundred bytes.
        """
        with suppress(OSError):
            self._gone = self._look()
        return self._gone

    def _look(self) -> Path | None:
        for path, known in self._known.items():
            found = _seen(path)
            if found is None or not os.path.samestat(found, known):
                return path
        if self._single is not None and _seen(self._single) is None:
            return self._single
        return None if self._manifest is None else self._missing(self._manifest)

    def _missing(self, manifest: Path) -> Path | None:
        """A file that the manifest names and that is not there, or the manifest.

        A server removes a file after the manifest that named it was replaced. So a file is gone for certain only if
        the manifest is the same behind the look at its files as before.
        """
        text = _text(manifest)
        for _ in range(MOST_LOOKS):
            if text is None:
                return manifest
            files = (manifest.with_name(name) for name in named_in(text))
            missing = next((file for file in files if _seen(file) is None), None)
            if missing is None:
                return None
            before, text = text, _text(manifest)
            if text == before:
                return missing
        return self._gone


def _found(path: Path) -> os.stat_result | None:
    """What is at `path`; None where nothing is, or this process may not look."""
    try:
        return path.stat()
    except OSError:
        return None


def _seen(path: Path) -> os.stat_result | None:
    """What is at `path`; None where nothing is. Raises OSError where that cannot be known."""
    try:
        return path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None


def _text(path: Path) -> str | None:
    try:
        return path.read_text(errors="replace")
    except (FileNotFoundError, NotADirectoryError):
        return None


class FileWatch:
    """Looks each second whether what is kept is there, and says so in the log and to whoever has to know."""

    def __init__(self, kept: Callable[[], Kept], tell: Callable[[bool], None]) -> None:
        """`kept` is asked once the service is ready. `tell` hears after each look while files are gone, and once when
        they are back: what lies at their place may change meanwhile."""
        self._take, self._tell = kept, tell
        self._kept = Kept()
        self._told = False
        self._next_look = self._next_say = 0.0

    def begin(self) -> None:
        """From now on all has to be there."""
        self._kept = self._take()

    def look(self, now: float) -> None:
        """Look if it is time to, on the clock that `now` is from."""
        if now < self._next_look:
            return
        gone, self._next_look = self._kept.gone(), now + LOOK_S
        if gone is not None and now >= self._next_say:
            log.error("data_gone", path=str(gone), hint=DATA_GONE)
            self._next_say = now + SAY_S
        if gone is not None or self._told:
            with suppress(OSError):  # it is told at the next look
                self._tell(gone is not None)
                self._told = gone is not None
