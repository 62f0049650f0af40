"""The lock by which only one `headrace serve` at a time has a data directory."""

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from service.host.refusal import CannotServe

ORPHANS_S = 30.0
"""How long children of a supervisor that was killed may take to end; they keep the lock until then."""


class DataDirInUse(RuntimeError):
    """Another process serves this directory."""


class Kept:
    """Files and folders as they are now. A server goes on writing files that were removed, which nobody finds again."""

    def __init__(self, *paths: Path) -> None:
        self._known = {path: _identity(path) for path in paths}

    def gone(self) -> Path | None:
        """The first that was removed, or is another one by now, if any."""
        return next((path for path, known in self._known.items() if known and _identity(path) != known), None)


def _identity(path: Path) -> tuple[int, int] | None:
    """The device and the inode of a file; None where there is none, or this process may not look."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


class Lock:
    """The held lock; children inherit `descriptor`, so that none of them can outlive it unseen."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def write(self, **facts: object) -> None:
        """Leave `facts` (the pid, the URL) in the lock file for people and tests to read, and for children that have it
        open whether it is still to be found or not."""
        content = json.dumps({"pid": os.getpid(), **facts}).encode()
        os.pwrite(self.descriptor, content, 0)
        os.ftruncate(self.descriptor, len(content))


@contextmanager
def locked(data_dir: Path) -> Iterator[Lock]:
    """Hold ``data_dir/serve.lock``; raises `DataDirInUse` naming the process that has it, and `CannotServe` if nothing
    can be written there."""
    path = data_dir / "serve.lock"
    with _usable(data_dir):
        data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _acquire(descriptor, path)
        lock = Lock(descriptor)
        with _usable(data_dir):
            lock.write()
        yield lock
    finally:
        os.close(descriptor)


@contextmanager
def _usable(data_dir: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = "it is no folder" if isinstance(error, FileExistsError) else error.strerror
        raise CannotServe(f"no data can be kept in {data_dir}: {reason}; choose another --data-dir") from None


def _acquire(descriptor: int, path: Path) -> None:
    deadline = time.monotonic() + ORPHANS_S
    while True:
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        holder = _facts(path).get("pid")
        if not isinstance(holder, int) or _is_alive(holder):
            by = f"process {holder}" if isinstance(holder, int) else "another process"
            raise DataDirInUse(f"{path.parent} is served by {by}; stop it, or choose another --data-dir")
        if time.monotonic() > deadline:
            raise DataDirInUse(
                f"{path.parent} is in use by processes that process {holder} has left behind, for {ORPHANS_S:g} s now; "
                "stop them (the headrace processes of `ps`), or choose another --data-dir"
            )
        time.sleep(0.05)


def is_not_kept(data_dir: Path) -> bool:
    """Whether a `headrace serve` of this directory runs, and its files were removed or replaced under it."""
    facts = _facts(data_dir / "serve.lock")
    return bool(facts.get("data_gone")) and isinstance(facts.get("pid"), int) and _is_alive(facts["pid"])


def _facts(path: Path) -> dict[str, Any]:
    """What a `Lock` has left in its file; nothing while it is being written."""
    try:
        facts = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return facts if isinstance(facts, dict) else {}


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
