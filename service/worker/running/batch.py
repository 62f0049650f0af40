"""Updates of one graph that are done in its copy in memory, and are committed together with the ends of their jobs."""

from typing import Any, Protocol

from service.store.jobs.record import Result


class Batch(Protocol):
    """What is to be committed, either by `queue` and `arrived` or by `commit`.

    An error that prevents it has to be passed on: then the copy in memory is dropped, since it has changes that the log
    does not have, or may not have.
    """

    @property
    def results(self) -> list[Result]:
        """What the first of the commands that were given are answered, one for each update."""
        ...

    def queue(self, pipe: Any) -> None:
        """Queue the commit on a pipeline in its MULTI, which watches the graph and the outcomes of the commands since
        they were looked at."""
        ...

    def arrived(self, took_s: float) -> None:
        """What was queued is done, and took so many seconds. Redis may still lose it with its process."""
        ...

    def commit(self) -> None:
        """Commit by itself, each update as the outcome of its command, and wait until Redis cannot lose it.

        Raises RedisError or `Fenced`; then nothing is committed, or it is not known whether it is. Raises `Cancelled`,
        `Committed` or `Over` for a command that has been decided otherwise, and then nothing is committed.
        """
        ...
