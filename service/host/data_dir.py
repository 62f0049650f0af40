"""The lock by which only one `headrace serve` at a time has a data directory."""

import fcntl
import json
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from service.errors import DATA_GONE
from service.host.refusal import CannotServe

LOCK: Final = "serve.lock"
"""The name of the lock file in the data directory."""

ORPHANS_S = 30.0
"""How long children of a supervisor that was killed may take to end; they keep the lock until then."""


class DataDirInUse(RuntimeError):
    """Another process serves this directory."""


class Lock:
    """The held lock; children inherit `descriptor`, so that none of them can outlive it unseen."""

    def __init__(self, descriptor: int, path: Path) -> None:
        self.descriptor = descriptor
        self._path = path
        self._facts = {"pid": os.getpid(), "data_dir": str(path.parent.resolve())}
        self._beside: int | None = None

    def write(self, **facts: object) -> None:
        """Leave `facts` (the URL), the pid and the directory in the lock file for people and tests to read, and for
        children that have it open whether it is still to be found or not."""
        _put(self.descriptor, self._facts | facts)

    def tell(self, gone: bool, **facts: object) -> None:
        """As `write`, and whether the files of the service are gone; then also in the lock file at the path, if that
        is another one by now, which commands would find. It is locked as well, so that it counts for nothing once this
        process has ended. One that somebody else has locked is left alone."""
        self.write(**facts, data_gone=gone)
        if not gone or _is_at(self._path, self.descriptor):
            self.leave_beside()
            return
        with suppress(OSError):  # no such folder, say: it is tried at the next look
            if self._beside is None or not _is_at(self._path, self._beside):
                self.leave_beside()
                self._beside = _taken(self._path)
            _put(self._beside, self._facts | facts | {"data_gone": True})

    def leave_beside(self) -> None:
        """Let go of the lock file of another folder."""
        if self._beside is not None:
            os.close(self._beside)
        self._beside = None


def _put(descriptor: int, facts: dict[str, Any]) -> None:
    content = json.dumps(facts).encode()
    os.pwrite(descriptor, content, 0)
    os.ftruncate(descriptor, len(content))


def _is_at(path: Path, descriptor: int) -> bool:
    """Whether the open file is the one at `path`."""
    try:
        return os.path.samestat(path.stat(follow_symlinks=False), os.fstat(descriptor))
    except OSError:
        return False


def _taken(path: Path) -> int:
    """A lock file in a folder that somebody else may have made, opened and locked. Raises OSError if another process
    has locked it, or if it is no plain file."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise FileExistsError(f"{path} is no plain file")
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


@contextmanager
def locked(data_dir: Path) -> Iterator[Lock]:
    """Hold ``data_dir/serve.lock``; raises `DataDirInUse` naming the process that has it, or saying that the service
    which runs on it has other files, and `CannotServe` if nothing can be written there."""
    path = data_dir / LOCK
    if files_were_lost(data_dir):
        raise DataDirInUse(other_files(data_dir))
    with _usable(data_dir):
        data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    lock = Lock(descriptor, path)
    try:
        _acquire(descriptor, path)
        with _usable(data_dir):
            lock.write()
        yield lock
    finally:
        lock.leave_beside()
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
                f"{path.parent} is in use by processes left over from process {holder}, which has ended; waited "
                f"{ORPHANS_S:g} s; stop them (the headrace processes of `ps`), or choose another --data-dir"
            )
        time.sleep(0.05)


def files_were_lost(data_dir: Path) -> bool:
    """Whether a `headrace serve` of this directory runs, and its files were removed or replaced under it, so that what
    lies there is not what it has. Cost: where the lock file does not say so, a look at what the processes of this user
    have open, as a directory that was removed can say nothing."""
    path = data_dir / LOCK
    if _facts(path).get("data_gone") and _is_locked(path):
        return True
    wanted = str(data_dir.resolve())
    found = ((opened, _facts(opened)) for opened in _open_locks())
    return any(
        facts.get("data_dir") == wanted and _is_alive(facts.get("pid")) and not _is_same(opened, path)
        for opened, facts in found
    )


def other_files(data_dir: Path) -> str:
    """Why nothing is done with a directory whose files were lost, in words for the person who asked."""
    return f"what lies in {data_dir} is not what the service has that runs on it: {DATA_GONE}"


def _is_locked(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _open_locks() -> Iterator[Path]:
    """Lock files that processes of this user have open, wherever they lie, and if they were removed."""
    for process in filter(str.isdecimal, _listed("/proc")):
        for number in _listed(f"/proc/{process}/fd"):
            opened = Path(f"/proc/{process}/fd/{number}")
            with suppress(OSError):  # it was closed just now
                if LOCK in os.readlink(opened):
                    found = opened.stat()
                    if stat.S_ISREG(found.st_mode) and found.st_uid == os.getuid():
                        yield opened


def _listed(folder: str) -> list[str]:
    """Names in a folder; none where there is no such folder, or it is another user's."""
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def _facts(path: Path) -> dict[str, Any]:
    """What a `Lock` has left in its file; nothing while it is being written."""
    try:
        facts = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return facts if isinstance(facts, dict) else {}


def _is_alive(pid: object) -> bool:
    if not isinstance(pid, int):
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
