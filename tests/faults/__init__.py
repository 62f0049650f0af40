"""Histories under faults: a whole service, real clients, seeded faults, and a checker that trusts none of it.

``python -m tests.faults --seeds 0:1000``

    clients ----> 2 API processes --\\
       |                             proxy ----> Redis with its append-only file
       v          2 workers --------/                     |
    history (what was asked, what was answered, when)     v
       \\--------------------> checker <---- every commit, read from the append-only file
"""
