"""Webhooks: where events are sent to, and what is still to be sent."""
