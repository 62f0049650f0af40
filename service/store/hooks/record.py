"""What lies in Redis for one webhook.

The webhook itself is a field of one hash of all. How far it has read the feed of each graph is a hash of its own, from
the graph's name to an entry of the stream. What is to be sent is a hash of deliveries by their ids, which are those of
the events; two sorted sets say which are pending, by the time of the next try, and which are dead, by the time when
they were given up.
"""

import base64
import json
import secrets
import time
from dataclasses import dataclass
from typing import Final, Literal

from pydantic import BaseModel

from service.store.feed.record import RESET, Event

SECRET_PREFIX: Final = "whsec_"
SECRET_BYTES: Final = 32

OLD_SECRET_S: Final = 24 * 3600.0
"""How long deliveries are signed with the secret before as well, once it was rotated."""


def new_secret() -> str:
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


class Webhook(BaseModel):
    """An address, and what is sent there."""

    id: str
    url: str
    graphs: list[str]
    types: list[str]
    secret: str
    old_secret: str | None = None
    rotated_at: float = 0.0
    created_at: float
    disabled: str | None = None
    """Why nothing is sent there any more; None: it is."""

    def secrets_at(self, now: float) -> list[str]:
        """The secrets that a delivery is signed with, the newest first."""
        is_fresh = self.old_secret is not None and now - self.rotated_at < OLD_SECRET_S
        return [self.secret, self.old_secret] if is_fresh and self.old_secret is not None else [self.secret]

    def wants(self, delivery: "Delivery") -> bool:
        """Whether it is for events of this graph and type. A `reset` says that events were lost, of whatever type."""
        return delivery.graph in self.graphs and delivery.type in (*self.types, RESET)

    def rotated(self, now: float) -> "Webhook":
        """The webhook with a new secret."""
        return self.model_copy(update={"secret": new_secret(), "old_secret": self.secret, "rotated_at": now})


class Delivery(BaseModel):
    """An event on its way to one webhook."""

    id: str
    """The id of the event."""
    type: str
    graph: str
    body: str
    """The body as it is sent, the same at each try."""
    created_at: float
    status: Literal["pending", "dead"] = "pending"
    attempts: int = 0
    tried_at: float | None = None
    next_at: float | None = None
    answer: int | None = None
    """The HTTP status of the last answer."""
    error: str | None = None
    """What was wrong at the last try."""

    @classmethod
    def of(cls, graph: str, event: Event, happened_at: float) -> "Delivery":
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(happened_at))
        said = json.dumps({"type": event.type, "timestamp": stamp, "id": event.id})
        body = f'{said[:-1]}, "data": {event.data}}}'  # whose numbers are exact
        return cls(id=event.id, type=event.type, graph=graph, body=body, created_at=time.time())


@dataclass(frozen=True, slots=True)
class Standing:
    """How the deliveries to one webhook stand."""

    webhook: str
    pending: int
    failing: int
    """How many of these were tried in vain and wait for another try."""
    dead: int
    late_s: float
    """How long ago the try that should come next was due; 0 where nothing is sent any more."""
