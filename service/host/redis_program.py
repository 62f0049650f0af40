"""The programs that may serve as Redis, and whether one can read what another left in the data directory.

Redis and Valkey no longer read each other's newest dumps, and neither reads a dump of a later version of itself.
The first bytes of a dump name its format. A server that starts with an empty dump of that format reads the real one.
"""

import re
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from service.host.manifest import FOLDER, TEMPORARY, manifest_of
from service.settings import folder_of_sockets

FORMAT: Final = re.compile(rb"REDIS\d{4}|VALKEY\d{3}")
WRITER: Final = re.compile(rb"(redis|valkey)-ver.(\d+\.\d+\.\d+)", re.DOTALL)
HEAD_BYTES: Final = 128
"""The format is in the first nine bytes, the writer in the field after them."""
END_OF_EMPTY_DUMP: Final = b"\xff" + bytes(8)
"""The mark of the end, and a checksum of zero, which stands for none."""

SEVERAL_FILES_SINCE: Final = (7, 0)
"""The first Redis with ``appendonlydir``. Earlier ones do not look into it, and would start with nothing."""
TRIAL_S: Final = 10.0
POLL_S: Final = 0.005


@dataclass(frozen=True, slots=True)
class Program:
    """A server program. `name` is ``redis`` or ``valkey``; `version` is () if it is neither."""

    path: str
    name: str
    version: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.path} ({self.writes_as})" if self.version else self.path

    @property
    def writes_as(self) -> str:
        """Name and version, as they stand in its dumps."""
        return f"{self.name} {'.'.join(map(str, self.version))}"


EMPTY_BYTES: Final = 1024
"""A base file of fewer bytes may hold no data. A server that was killed in its very first start leaves such a one
without a manifest."""

DATABASE: Final = b"\xfe\x00\xfb"
"""What stands before the keys of the first database in a dump, and in none that has no keys."""


def identify(path: str) -> Program:
    """What the program says of itself, as in ``Valkey server v=9.1.2 sha=...``. Cost: a process, a few milliseconds."""
    try:
        text = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=10, check=False).stdout
    except (OSError, subprocess.SubprocessError):
        text = ""
    found = re.match(r"(Redis|Valkey) server v=(\d+)\.(\d+)\.(\d+)", text)
    if found is None:
        return Program(path, "", ())
    return Program(path, found[1].lower(), tuple(map(int, found.groups()[1:])))


def unreadable(program: Program, data: Path) -> str | None:
    """Why `program` cannot read the append-only files in `data`; None if it can, or if there are none.

    Cost: a look at the dump they begin with; if another program wrote it, a start on an empty one, 0.1 s.
    """
    files = data / FOLDER
    if not files.is_dir():
        return None
    if program.version < SEVERAL_FILES_SINCE:
        return f"{program} does not know of {files}"
    for dump in files.glob("*.base.rdb"):
        with dump.open("rb") as file:
            head = file.read(HEAD_BYTES)
        format_, writer = FORMAT.match(head), _writer(head)
        if format_ and writer != program.writes_as and not _starts_on(program, format_[0]):
            return f"{program} cannot read {files}, which {writer or 'another server'} wrote"
    return None


def without_manifest(data: Path) -> str | None:
    """Why no server may start on the append-only files in `data` as they are: one that finds no manifest begins with
    nothing, and may go on in a file that is there. None if there is a manifest, or no file either."""
    files = data / FOLDER
    left = sorted(path.name for path in files.glob("*.aof.*.*") if _holds_data(path))
    if not left or manifest_of(data) is not None:
        return None
    return (
        f"{files} has {left[0]} and no manifest, so a server would begin with nothing: put the whole folder back, or "
        "write the manifest as docs/operations.md says"
    )


def _holds_data(path: Path) -> bool:
    """Whether an append-only file has more than the dump of no data. In a file of commands one byte is data."""
    if path.name.startswith(TEMPORARY):
        return False
    try:
        size = path.stat().st_size
        if path.suffix != ".rdb" or not 0 < size < EMPTY_BYTES:
            return size > 0
        return DATABASE in path.read_bytes()
    except FileNotFoundError:  # a live server has removed it
        return False


def _writer(head: bytes) -> str | None:
    """Name and version of the program that wrote a dump which begins with `head`, if it says so."""
    found = WRITER.search(head)
    return f"{found[1].decode()} {found[2].decode()}" if found else None


def _starts_on(program: Program, format_: bytes) -> bool:
    """Whether the program comes up with an empty dump that begins with `format_`."""
    with tempfile.TemporaryDirectory(prefix="headrace-", dir=folder_of_sockets()) as folder:
        Path(folder, "dump.rdb").write_bytes(format_ + END_OF_EMPTY_DUMP)
        socket = f"{folder}/s"
        command = [program.path, "--port", "0", "--unixsocket", socket, "--dir", folder, "--dbfilename", "dump.rdb"]
        quiet = subprocess.DEVNULL
        process = subprocess.Popen(
            [*command, "--daemonize", "no", "--save", ""], stdin=quiet, stdout=quiet, stderr=quiet
        )
        try:
            return _answers(process, socket)
        finally:
            process.kill()
            process.wait()


def _answers(process: "subprocess.Popen[bytes]", socket: str) -> bool:
    deadline = time.monotonic() + TRIAL_S
    with redis.Redis(unix_socket_path=socket, retry=Retry(NoBackoff(), 0)) as client:
        while process.poll() is None and time.monotonic() < deadline:
            try:
                return bool(client.ping())
            except redis.ConnectionError:
                time.sleep(POLL_S)
    return False
