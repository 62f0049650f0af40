"""What an API process and its parsers take while an attack goes on: memory, and time of the processor."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

EVERY_S: Final = 0.05


def family(pid: int) -> list[int]:
    """A process and all its descendants; those that end meanwhile are left out."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [pid, *(found for child in map(int, children) for found in family(child))]


def field(pid: int, name: str) -> int:
    """Bytes, from /proc/PID/status. Raises OSError and StopIteration for a process that has ended."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(f"{name}:"))


def times_s(pid: int) -> tuple[float, float]:
    """Seconds on a processor, and seconds ready but without one, of all threads of a process that are there now."""
    ran_ns = waited_ns = 0
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            ran, waited, _ = Path(f"/proc/{pid}/task/{thread}/schedstat").read_text().split()
            ran_ns, waited_ns = ran_ns + int(ran), waited_ns + int(waited)
    except OSError:
        pass
    return 1e-9 * ran_ns, 1e-9 * waited_ns


class Usage:
    """Of one attack; filled when the block of `using` ends."""

    def __init__(self, api: int) -> None:
        self._api = api
        self._at_rest: dict[int, int] = {}
        self._peaks: dict[int, int] = {}
        self._ran_s: dict[int, float] = {}
        self._before_s = times_s(api)
        self._parser_bytes = 0
        self.files_bytes = 0
        """The most that files in memory, in which bodies travel, were seen to hold."""
        self.api_s = self.api_waited_s = 0.0
        for pid in family(api):
            try:
                Path(f"/proc/{pid}/clear_refs").write_text("5")  # its peak begins anew
                self._at_rest[pid] = field(pid, "VmRSS")
            except (OSError, StopIteration):
                continue
            self._ran_s[pid] = times_s(pid)[0]
            if pid != api:
                self._parser_bytes = max(self._parser_bytes, self._at_rest[pid])
        self._first_ran_s = dict(self._ran_s)

    @property
    def grew_bytes(self) -> int:
        """The peaks of all processes over what they had, and the files. A process that was started meanwhile had as
        much as the largest parser before. Counted high: the peaks need not have been at one time."""
        grown = {pid: peak - self._at_rest.get(pid, self._parser_bytes) for pid, peak in self._peaks.items()}
        return sum(max(0, n_bytes) for n_bytes in grown.values()) + self.files_bytes

    @property
    def cpu_s(self) -> float:
        """Of the API process and its parsers."""
        return sum(ran_s - self._first_ran_s.get(pid, 0.0) for pid, ran_s in self._ran_s.items())

    def look(self) -> None:
        files: dict[int, int] = {}
        for pid in family(self._api):
            try:
                self._peaks[pid] = max(self._peaks.get(pid, 0), field(pid, "VmHWM"))
                files |= _files(pid)
            except (OSError, StopIteration):
                continue
            self._ran_s[pid] = max(self._ran_s.get(pid, 0.0), times_s(pid)[0])
        self.files_bytes = max(self.files_bytes, sum(files.values()))
        ran_s, waited_s = times_s(self._api)
        self.api_s, self.api_waited_s = ran_s - self._before_s[0], waited_s - self._before_s[1]


def _files(pid: int) -> dict[int, int]:
    """Bytes of the files without names that a process has open, by their inodes."""
    found = {}
    for entry in os.scandir(f"/proc/{pid}/fd"):
        try:
            if "memfd:" in os.readlink(entry.path):
                about = os.stat(entry.path)
                found[about.st_ino] = 512 * about.st_blocks
        except OSError:
            continue
    return found


@contextmanager
def using(api: int) -> Iterator[Usage]:
    """Look every moment; peaks are the kernel's own."""
    usage, over = Usage(api), threading.Event()

    def look() -> None:
        while not over.wait(EVERY_S):
            usage.look()

    looker = threading.Thread(target=look)
    looker.start()
    try:
        yield usage
    finally:
        over.set()
        looker.join()
        usage.look()
