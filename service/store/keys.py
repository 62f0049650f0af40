"""Every Redis key, named once."""

import hashlib
from dataclasses import dataclass
from typing import Final

LEAVING: Final = b"leave"
"""What is behind the time in `Keys.draining` if a worker is drained as it is about to stop, until it starts again."""


def generation_of(graph_id: str) -> str:
    """What tells a graph from others that have had its name: 8 hexadecimal digits."""
    return hashlib.blake2s(graph_id.encode(), digest_size=4).hexdigest()


@dataclass(frozen=True, slots=True)
class Keys:
    """Key names under one prefix. A graph's name is in the catalogue only; all else hangs on its unique id."""

    prefix: str

    @property
    def nothing(self) -> str:
        """A key that never is: to unlink it changes nothing, and is refused where no writes are taken."""
        return f"{self.prefix}no-such-key"

    @property
    def names(self) -> str:
        """Hash: graph name -> graph id."""
        return f"{self.prefix}names"

    @property
    def owners(self) -> str:
        """Hash: graph name -> worker that serves it."""
        return f"{self.prefix}owners"

    def claim(self, name: str) -> str:
        """String: written by whatever changes this one name in `names` or `owners`.

        Commits watch it in place of the two hashes, which change with every other graph.
        """
        return f"{self.prefix}claim:{name}"

    def changing(self, name: str) -> str:
        """Set that expires: ids of the commands, not yet ended, that may change what the graph of this name answers."""
        return f"{self.prefix}changing:{name}"

    def hold(self, name: str) -> str:
        """String that expires: while it is there no command about this name is queued, as the graph is being moved."""
        return f"{self.prefix}hold:{name}"

    def reply(self, token: str) -> str:
        """String that expires: what a worker that a graph is moved to says to the one that it comes from."""
        return f"{self.prefix}arrival:{token}"

    @property
    def homes(self) -> str:
        """Hash: name of a graph that was taken over -> the worker it was taken from, and goes back to."""
        return f"{self.prefix}homes"

    @property
    def draining(self) -> str:
        """Hash: worker that gives its graphs away and is to get no new ones -> since when, in unix seconds."""
        return f"{self.prefix}draining"

    @property
    def placed(self) -> str:
        """Hash: name of a new graph -> where it was placed, until its worker's report counts it
        (`service.store.placed`)."""
        return f"{self.prefix}placed"

    @property
    def absences(self) -> str:
        """Hash: worker -> how often it has lost its graphs lately, and when last."""
        return f"{self.prefix}absences"

    @property
    def workers(self) -> str:
        """Hash: worker -> `WorkerReport` as JSON, as of its last heartbeat."""
        return f"{self.prefix}workers"

    def restores(self, name: str) -> str:
        """Number that expires: how often this graph was read of late without having been asked for."""
        return f"{self.prefix}restores:{name}"

    def metrics(self, worker: str) -> str:
        """String that expires: the worker's metrics in the Prometheus text format, as of its last heartbeat."""
        return f"{self.prefix}metrics:{worker}"

    @property
    def rewritten(self) -> str:
        """String that expires: for which refusals Redis has written another file (`service.store.durable`)."""
        return f"{self.prefix}rewritten"

    @property
    def rewrite_tried(self) -> str:
        """String that expires: there since one more try to write another file was made, after one had failed."""
        return f"{self.prefix}rewritten:tried"

    @property
    def jobs(self) -> str:
        """Sorted set: job id by its time of creation."""
        return f"{self.prefix}jobs"

    @property
    def api_keys(self) -> str:
        """Hash: id of an API key -> `ApiKey` as JSON."""
        return f"{self.prefix}api_keys"

    def sessions(self, key_id: str) -> str:
        """Hash that expires: id of a session -> `service.store.sessions.Session` as JSON, of one API key's sessions."""
        return f"{self.prefix}sessions:{key_id}"

    @property
    def opened(self) -> str:
        """String: when it was said, in unix seconds, that there are no API keys on purpose; gone with the first key."""
        return f"{self.prefix}opened"

    def graph(self, graph_id: str) -> str:
        """Hash: what the catalogue says about one graph, its version and fencing epoch."""
        return f"{self.prefix}graph:{graph_id}"

    def log(self, graph_id: str) -> str:
        """Stream: updates, entry id ``<version>-0``."""
        return f"{self.prefix}log:{graph_id}"

    def snapshots(self, graph_id: str) -> str:
        """String: JSON list of snapshots, the newest first."""
        return f"{self.prefix}snapshots:{graph_id}"

    def states(self, graph_id: str) -> str:
        """String that expires: the graph's flow states in memory (`service.store.states`)."""
        return f"{self.prefix}states:{graph_id}"

    def feed(self, name: str) -> str:
        """Stream: the events of a graph's name (`service.store.feed`)."""
        return f"{self.prefix}feed:{name}"

    def watches(self, name: str) -> str:
        """Hash: name of a watch -> `WatchArgs` as JSON, of a graph's name."""
        return f"{self.prefix}watches:{name}"

    def told(self, name: str) -> str:
        """Hash: what the watches of a graph's name have been told (`service.store.feed.record`)."""
        return f"{self.prefix}told:{name}"

    @property
    def left_feeds(self) -> str:
        """Sorted set: names of deleted graphs, by when that was (`service.store.feed.left`)."""
        return f"{self.prefix}left-feeds"

    @property
    def webhooks(self) -> str:
        """Hash: id of a webhook -> `service.store.hooks.record.Webhook` as JSON."""
        return f"{self.prefix}webhooks"

    @property
    def courier(self) -> str:
        """String that expires: the API process that sends to webhooks."""
        return f"{self.prefix}courier"

    def cursors(self, hook: str) -> str:
        """Hash: graph name -> the entry of its feed up to which a webhook has read."""
        return f"{self.prefix}hook-cursors:{hook}"

    def deliveries(self, hook: str) -> str:
        """Hash: id of an event -> `service.store.hooks.record.Delivery` as JSON, of one webhook."""
        return f"{self.prefix}hook-deliveries:{hook}"

    def asked(self, hook: str, key: str) -> str:
        """String that expires: `service.store.hooks.asked.Asked` as JSON, of one webhook and Idempotency-Key."""
        return f"{self.prefix}hook-asked:{hook}:{key}"

    def due(self, hook: str) -> str:
        """Sorted set: id of a pending delivery by the time of its next try."""
        return f"{self.prefix}hook-due:{hook}"

    def dead(self, hook: str) -> str:
        """Sorted set: id of a dead delivery by the time when it was given up."""
        return f"{self.prefix}hook-dead:{hook}"

    def blob(self, name: str) -> str:
        """Hash: chunks of one blob, with their count, length and digest."""
        return f"{self.prefix}blob:{name}"

    def job(self, job_id: str) -> str:
        """Hash: one job."""
        return f"{self.prefix}job:{job_id}"

    def outcome(self, job_id: str) -> str:
        """String that expires: what was decided about a command that has not ended (`service.store.jobs.outcomes`)."""
        return f"{self.prefix}outcome:{job_id}"

    def events(self, job_id: str) -> str:
        """Stream: progress of one job."""
        return f"{self.prefix}events:{job_id}"

    def idempotency(self, graph: str, key: str) -> str:
        """String: the job and body digest of an Idempotency-Key."""
        return f"{self.prefix}idem:{graph}:{key}"

    def commands(self, worker: str) -> str:
        """Stream: commands for one worker, read by its one consumer group."""
        return f"{self.prefix}commands:{worker}"

    def waiting(self, worker: str) -> str:
        """Sorted set: jobs not yet done, by their time of creation."""
        return f"{self.prefix}waiting:{worker}"

    def control(self, worker: str) -> str:
        """Stream: what one worker is to cancel, and graphs that were handed over to it."""
        return f"{self.prefix}control:{worker}"

    def lease(self, worker: str) -> str:
        """String that expires: the worker process that may use this name."""
        return f"{self.prefix}lease:{worker}"

    def replies(self, reader: str) -> str:
        """Stream: replies to one API process."""
        return f"{self.prefix}replies:{reader}"
