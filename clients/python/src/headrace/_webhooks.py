# Made by scripts/synchronous_client.py from _async_webhooks.py: change that one.
"""What the synchronous client has for webhooks."""

from collections.abc import Sequence
from typing import Literal

from headrace import _feed as feed
from headrace._caller import Caller


class Webhooks:
    """Addresses that events are sent to."""

    _caller: Caller

    def put_webhook(
        self,
        webhook: str,
        url: str,
        graphs: str | Sequence[str],
        types: feed.EventType | Sequence[feed.EventType] | None = None,
    ) -> feed.Webhook:
        """Send the events of these graphs to the URL from now on; those of some types, or of all.

        A new webhook has its `secret`, which is shown once: `verify_webhook` wants it. One that was there keeps it.
        """
        return self._caller.command(feed.put_webhook(webhook, url, graphs, types), None)

    def webhooks(self) -> tuple[feed.Webhook, ...]:
        """All webhooks whose graphs the API key is good for, by id."""
        return self._caller.ask(feed.webhooks())

    def delete_webhook(self, webhook: str) -> None:
        """Send nothing there any more. Raises `UnknownWebhook`."""
        self._caller.command(feed.delete_webhook(webhook), None)

    def rotate_webhook(self, webhook: str) -> str:
        """A new secret. For a day deliveries are signed with the one before as well."""
        return self._caller.command(feed.rotate_webhook(webhook), None)

    def deliveries(self, webhook: str, status: Literal["pending", "dead"] = "pending") -> tuple[feed.Delivery, ...]:
        """What waits to be delivered, or what was given up."""
        return self._caller.ask(feed.deliveries(webhook, status))

    def redeliver(self, webhook: str, delivery: str) -> feed.Delivery:
        """Try a delivery now, also one that was given up. Raises `UnknownWebhook`."""
        return self._caller.command(feed.redeliver(webhook, delivery), None)
