"""The record of each job. No other part of the service names its keys or the fields of its hash.

`record.py` says what is in it, `transitions.py` how it changes, `outcomes.py` what decides whether a command is done,
`idempotency.py` what a key stands for. API processes ask `reading.py`, `listing.py` and `events.py`.
"""
