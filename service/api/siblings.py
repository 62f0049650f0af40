"""The API processes that share one port: whichever is asked for its figures shows those of all of them.

Each keeps its own in a file, beside those of the others. They do not travel through Redis: API processes at other
addresses are scraped there, and each must be counted once.
"""

import asyncio
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import structlog
from prometheus_client import Metric

from service.api.metrics import Metrics

KEPT_EVERY_S: Final = 2.0
GONE_AFTER_S: Final = 60.0
"""A process whose file is older than this is not shown: fewer processes share the port now."""

MOST_BYTES: Final = 16 << 20
"""The limit of one file. Metrics are bounded, so an API process has not written a longer one."""

log = structlog.get_logger("headrace.api")


class Siblings:
    """The figures of the processes that share this one's port. Without a file there are none but this one."""

    def __init__(self, file: Path | None, metrics: Metrics) -> None:
        self._file = file
        self._metrics = metrics
        self._keeping: asyncio.Task[None] | None = None
        self._fails = False

    def start(self) -> None:
        if self._file is not None:
            self._keeping = asyncio.create_task(self._keep_on(self._file))

    async def close(self) -> None:
        """Stop writing the figures."""
        if self._keeping is not None:
            self._keeping.cancel()
            with suppress(asyncio.CancelledError):
                await self._keeping

    async def _keep_on(self, file: Path) -> None:
        while True:
            try:
                await asyncio.to_thread(self._keep, file)
                self._fails = False
            except OSError as error:  # a full disk, say: the others show what was kept last
                if not self._fails:
                    log.warning("metrics_not_kept", file=str(file), error=str(error))
                self._fails = True
            await asyncio.sleep(KEPT_EVERY_S)

    def _keep(self, file: Path) -> None:
        """Write the figures of now, so that a reader finds a whole file at any time."""
        families = list(self._metrics.registry.collect())
        unfinished = file.with_suffix(".tmp")
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(descriptor, "w") as stream:
            json.dump([_written(family) for family in families], stream)
        unfinished.replace(file)

    def families(self) -> Mapping[str, Sequence[Metric]]:
        """The families of each process by its number, this one's as they are now; empty if it is alone.

        May run in any thread. It takes milliseconds for each process.
        """
        if self._file is None:
            return {}
        own = {self._file.stem: list(self._metrics.registry.collect())}
        return own | {path.stem: families for path, families in self._others(self._file)}

    def _others(self, own: Path) -> Iterator[tuple[Path, Sequence[Metric]]]:
        for path in sorted(own.parent.glob("*.json")):
            if path == own:
                continue
            try:
                kept = path.stat()
                if time.time() - kept.st_mtime < GONE_AFTER_S and kept.st_size <= MOST_BYTES:
                    yield path, [_read(*family) for family in json.loads(path.read_text())]
            except (OSError, ValueError, TypeError) as error:
                log.warning("unreadable_metrics", file=str(path), error=str(error))


def _written(family: Metric) -> list[object]:
    samples = [[sample.name, sample.labels, sample.value] for sample in family.samples]
    return [family.name, family.documentation, family.type, samples]


def _read(name: str, documentation: str, kind: str, samples: list[tuple[str, dict[str, str], float]]) -> Metric:
    family = Metric(name, documentation, kind)
    for sample in samples:
        family.add_sample(*sample)
    return family
