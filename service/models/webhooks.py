"""The body of a webhook, and what is answered of webhooks and their deliveries."""

from datetime import datetime
from typing import Any, Final, Literal

from pydantic import BaseModel, Field, field_validator

from service.models.body import Body
from service.models.columns import Text
from service.models.faults import ColumnFault
from service.models.graphs import GraphNameText
from service.store.feed.record import TYPES

WEBHOOK_NAME: Final = r"^[A-Za-z0-9_-]{1,64}$"
"""What the id of a webhook matches."""

MAX_GRAPHS: Final = 100
"""Graphs that one webhook is told of."""

EventType = Literal["version", "value.changed", "cut.changed", "graph.deleted"]

EXAMPLES: dict[str, Any] = {
    "two kinds of events of one graph": {
        "value": {
            "url": "https://example.com/hook",
            "graphs": ["city"],
            "types": ["value.changed", "graph.deleted"],
        }
    },
}


class WebhookBody(Body):
    url: Text = Field(min_length=1, description="By https, to a public address, without user and password.")
    graphs: list[GraphNameText] = Field(
        min_length=1, max_length=MAX_GRAPHS, description="Names of graphs, which need not be there yet."
    )
    types: list[EventType] | None = Field(
        default=None, min_length=1, max_length=len(TYPES), description="Events that are sent; all by default."
    )

    @field_validator("graphs")
    @classmethod
    def _check_graphs(cls, graphs: list[str]) -> list[str]:
        if len(set(graphs)) < len(graphs):
            repeated = [row for row, graph in enumerate(graphs) if graphs.count(graph) > 1]
            raise ColumnFault("names a graph twice", repeated)
        return graphs


class WebhookInfo(BaseModel):
    """A webhook. Its secret is shown when it is made, and never again."""

    id: str
    url: str
    graphs: list[str]
    types: list[EventType]
    created_at: datetime
    disabled: str | None = None
    """Why nothing is sent any more; a PUT begins anew."""
    pending: int
    """Deliveries that wait, for their first try or another one."""
    dead: int
    """Deliveries that were given up."""
    secret: str | None = None


class WebhookList(BaseModel):
    webhooks: list[WebhookInfo]


class SecretInfo(BaseModel):
    secret: str
    """Signs from now on; the one before signs as well, for a day."""


class DeliveryInfo(BaseModel):
    """An event on its way to one webhook."""

    id: str
    """The id of the event, and the header `webhook-id`."""
    type: str
    graph: str
    status: Literal["pending", "dead"]
    attempts: int
    created_at: datetime
    tried_at: datetime | None = None
    next_at: datetime | None = None
    answer: int | None = None
    """The HTTP status of the last answer."""
    error: str | None = None


class DeliveryList(BaseModel):
    deliveries: list[DeliveryInfo]
