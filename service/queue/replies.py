"""The latest replies, for waits that begin after the end: a bound on their bytes, the oldest go first."""

from collections import OrderedDict
from typing import Final

from service.protocol import Reply

HELD_BYTES: Final = 16 << 20
ONE_BYTES: Final = 64 << 10
"""A longer reply is not kept: Redis has it as well."""

OBJECT_BYTES: Final = 2048
"""Of a reply beside its text, and its place here."""


class LatestReplies:
    """By job. Results that lie in blobs are not in here, but where they are."""

    def __init__(self) -> None:
        self._replies: OrderedDict[str, tuple[Reply, int]] = OrderedDict()
        self.used_bytes = 0

    def __contains__(self, job_id: str) -> bool:
        return job_id in self._replies

    def get(self, job_id: str) -> Reply | None:
        found = self._replies.get(job_id)
        return None if found is None else found[0]

    def keep(self, reply: Reply, text_bytes: int) -> None:
        """`text_bytes`: of the reply as it came."""
        if reply.id in self._replies or text_bytes > ONE_BYTES:
            return
        self._replies[reply.id] = (reply, OBJECT_BYTES + text_bytes)
        self.used_bytes += OBJECT_BYTES + text_bytes
        while self.used_bytes > HELD_BYTES:
            _, (_, n_bytes) = self._replies.popitem(last=False)
            self.used_bytes -= n_bytes
