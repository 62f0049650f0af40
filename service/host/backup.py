"""A copy of append-only files while their server writes them: ``python -m service.host.backup FOLDER TARGET``.

Files that are copied one by one while the server rewrites them may not belong together: the manifest names one that was
removed before its turn, or was begun behind it, and no server starts on such a copy. Here all files that one reading of
the manifest names are opened first; if one is gone, the manifest is read again. What is open stays there whatever
becomes of its name, is only ever appended to, and no name is used twice. So the copy has all that was acknowledged
before, and what is torn at its end is mended in the copy.
"""

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, Final

from service.host import torn_log
from service.host.data_dir import files_were_lost, other_files
from service.host.manifest import FOLDER, LINE, SINGLE, manifest_of, named_in
from service.host.redis_program import without_manifest
from service.host.redis_server import data_of
from service.settings import Settings
from service.store import keys_seen

MAX_TRIES: Final = 100
PAUSE_S: Final = 0.05
COPY_BYTES: Final = 1 << 20


class NoBackup(RuntimeError):
    """Why there is no copy, in words for the person who asked."""


def back_up_service(settings: Settings, target: Path) -> int:
    """Copy what the data directory of a `headrace serve` keeps, as `back_up` does, so that another one starts on it."""
    if settings.redis_url is not None:
        raise NoBackup("the data are in a Redis of your own: back up its files, as docs/running.md says")
    if files_were_lost(settings.data_dir):
        raise NoBackup(other_files(settings.data_dir))
    data = data_of(settings)
    return back_up(data, target, within=data.name, beside=[settings.data_dir / keys_seen.FILE])


def back_up(source: Path, target: Path, within: str = "", beside: Iterable[Path] = ()) -> int:
    """Copy the append-only files in `source` to the folder `target`, into its folder `within`, and the files `beside`
    that are there; the bytes of the former. `target` must not be there, or be empty.

    Raises `NoBackup`, and OSError, as for a full disk; then `target` is as it was. Cost: a copy of the files, and a
    look at the end of the last one.
    """
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise NoBackup(f"{target} is there already: a backup is made in a folder of its own")
    if source.resolve() == target.resolve():
        raise NoBackup(f"{target} is what is to be copied: a backup is made in a folder of its own")
    if target.is_mount() or target.is_symlink() or target.resolve() == Path.cwd():
        # The copy is made beside it and renamed in the end. A mount or a folder in use cannot be replaced; of a link
        # the link itself would be, not the folder that it leads to.
        raise NoBackup(f"{target} is a mount, a link or the folder you are in: name a new folder in it")
    target.parent.mkdir(parents=True, exist_ok=True)
    begun = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))  # for this user alone
    try:
        (begun / within).mkdir(mode=0o700, exist_ok=True)
        n_bytes = _copy(source, begun / within)
        torn_log.mend_all(begun / within)
        for path in beside:
            with suppress(FileNotFoundError):
                _write(begun / path.name, [path.read_bytes()])
        begun.rename(target)
        _sync(target.parent)
        return n_bytes
    except BaseException:
        shutil.rmtree(begun, ignore_errors=True)
        raise


def _copy(source: Path, begun: Path) -> int:
    n_bytes = 0
    with ExitStack() as stack:
        files, (manifest, lines) = _opened(source, stack)
        sizes = [os.fstat(file.fileno()).st_size for file in files.values()]
        if manifest:
            (begun / FOLDER).mkdir(mode=0o700)
            _write(begun / manifest, [lines])
        for (name, file), size in zip(files.items(), sizes, strict=True):
            _write(begun / name, (file.read(min(COPY_BYTES, size - at)) for at in range(0, size, COPY_BYTES)))
            n_bytes += size
    for folder in {(begun / name).parent for name in files}:
        _sync(folder)
    return n_bytes


def _opened(source: Path, stack: ExitStack) -> tuple[dict[str, IO[bytes]], tuple[str, bytes]]:
    """Files that belong together, by their paths in `source`, and the path and lines of their manifest, if any."""
    for _ in range(MAX_TRIES):
        tried = stack.enter_context(ExitStack())
        manifest = manifest_of(source)
        with suppress(FileNotFoundError):  # the server has just begun other files
            if manifest is None:
                return {SINGLE: tried.enter_context((source / SINGLE).open("rb"))}, ("", b"")
            text = manifest.read_text()
            files: dict[str, IO[bytes]] = {}
            for name in named_in(text):
                files[f"{FOLDER}/{name}"] = tried.enter_context((source / FOLDER / name).open("rb"))
            lines = "".join(f"{line}\n" for line in text.splitlines() if LINE.match(line))
            return files, (f"{FOLDER}/{manifest.name}", lines.encode())
        tried.close()
        if not (source / SINGLE).exists() and not (source / FOLDER).exists():
            raise NoBackup(f"there is nothing to copy in {source}: no server has kept an append-only file there")
        if manifest is None and (lost := without_manifest(source)):
            raise NoBackup(lost)
        time.sleep(PAUSE_S)
    raise NoBackup(f"the server begins other files in {source} again and again; try again when less is written")


def _write(path: Path, pieces: Iterable[bytes]) -> None:
    with path.open("xb") as file:
        file.writelines(pieces)
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def main(words: list[str]) -> str | None:
    """What to say if there is no copy."""
    if len(words) != 2:
        return "usage: python -m service.host.backup FOLDER TARGET"
    try:
        back_up(Path(words[0]), Path(words[1]))
    except (NoBackup, OSError) as error:
        return f"headrace: {error}"
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
