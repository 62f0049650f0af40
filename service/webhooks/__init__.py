"""Sends events to webhooks: which addresses are allowed, how a delivery is signed, and when it is tried again."""
