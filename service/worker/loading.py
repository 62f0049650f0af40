"""Load and delete: what puts a graph under a name, and what takes it away."""

from functools import partial
from math import inf

import redis

from gpu_engine.errors import InvalidNetwork, OutOfMemory
from gpu_engine.formats import unpack
from gpu_engine.formats.numbering import hint_of_names
from gpu_engine.networks.costs import CostTable
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.lowers import LowerTable
from gpu_engine.networks.updates import CapacityTable
from gpu_engine.vertices.table import VertexTable
from service.errors import ServiceError
from service.protocol import Command, DeleteArgs, Envelope, LoadArgs
from service.settings import Settings
from service.store.applied import Fenced
from service.store.blobs import Blobs, BrokenBlob
from service.store.catalogue import check_version
from service.store.durable import Written
from service.store.feed.writing import Feeds
from service.store.jobs.outcomes import Committed
from service.store.jobs.record import Result
from service.store.keys import Keys, generation_of
from service.store.rounded import RoundedInfo
from service.worker import answers
from service.worker.copies import Copies
from service.worker.graph import Graph, least_footprint
from service.worker.running.task import UNREADABLE, Task
from service.worker.watching import Watcher


class Loader:
    """Loads and deletes graphs of one worker.

    A command leaves its result as its outcome as it commits, and is not run again then.
    """

    def __init__(
        self,
        client: redis.Redis,
        keys: Keys,
        settings: Settings,
        copies: Copies,
        feeds: Feeds,
        watcher: Watcher,
    ) -> None:
        self._written = Written(client, keys)
        self._settings = settings
        self._copies = copies
        self._residents = copies.residents
        self._blobs = Blobs(client, keys)
        self._feeds = feeds
        self._watcher = watcher

    def load(self, task: Task) -> Result:
        """Build the network, then put it under its name."""
        command, args, run = task.command, LoadArgs.model_validate(task.command.args), self._written.run()
        found = self._copies.find(command.graph)
        if found.graph_id == command.id:
            raise Fenced("the load is committed")  # since the command was looked at: its job has the answer
        if args.if_match is not None:  # before the work; `create` looks again
            held = found.held
            version = None if held is None else held.version
            check_version(command.graph, version, args.if_match, generation_of(found.graph_id or ""))
        edges = self._read(task, args)
        graph = self._build(task, edges)
        task.at("storing")
        loaded = self._create(graph, command, args, edges)
        self._residents.keep(graph)
        self._watcher.try_to_catch_up(graph)
        self._written.wait(run)
        graph.unwritten_at = -inf
        return loaded

    def _create(self, graph: Graph, command: Command, args: LoadArgs, edges: EdgeList) -> Result:
        """Put what was built under its name. The answer to the load, also if it was committed by an earlier try."""
        info = answers.graph_info(graph, self._copies.worker, command.created_at)
        try:
            loaded = self._copies.registry.create(
                info,
                graph.graph_id,
                args.blob,
                args.if_match,
                rounded=RoundedInfo.of(edges.rounded),
                rounded_costs=RoundedInfo.of(edges.rounded_costs),
                also=partial(self._feeds.loaded, name=graph.name, graph_id=graph.graph_id),
            )
        except Committed as done:
            return Result.of_commit(done.result)
        envelope = Envelope(version=loaded.version, generation=loaded.generation, replaced=loaded.replaced)
        return Result(loaded.to_json().encode(), envelope=envelope)

    def _read(self, task: Task, args: LoadArgs) -> EdgeList:
        try:
            return unpack(self._blobs.get(args.blob, partial(task.at, "reading")))
        except BrokenBlob as error:
            raise ServiceError(
                "worker_unavailable", "the uploaded edges are no longer in Redis: send the graph again"
            ) from error
        except InvalidNetwork as error:  # the API process has found nothing wrong with them
            raise ServiceError("internal_error", f"{UNREADABLE}: {error}") from error

    def _build(self, task: Task, edges: EdgeList) -> Graph:
        command = task.command
        n_limited = 0 if edges.limited is None else len(edges.limited)
        least = least_footprint(self._settings.engine, edges.n_vertices, len(edges.tail), n_limited)
        try:
            self._residents.refuse_hopeless(least)
        except OutOfMemory as error:
            raise OutOfMemory(f"{error}{hint_of_names(edges.n_vertices, len(edges.tail))}") from None
        task.at("building")
        network = self._copies.network(edges)
        tables = CostTable.of(network, edges), VertexTable.of(network, edges), LowerTable.of(network, edges)
        try:
            engine = self._copies.engine(command.graph, network, *tables)
        except OutOfMemory:
            if not self._residents.drop(command.graph):  # the graph in whose place this one comes
                raise
            engine = self._copies.engine(command.graph, network, *tables)
        table = CapacityTable(network, edges)
        return Graph(command.graph, command.id, 1, 1, network, engine, table, *tables)

    def delete(self, task: Task) -> Result:
        """Forget the graph, its log and its snapshots."""
        command, args, run = task.command, DeleteArgs.model_validate(task.command.args), self._written.run()
        self._copies.find(command.graph)
        also = partial(self._feeds.deleted, name=command.graph)
        if not self._copies.registry.remove(command.graph, command.id, self._copies.worker, args.if_match, also):
            raise ServiceError("unknown_graph", f"there is no graph {command.graph!r}")
        self._residents.drop(command.graph)
        self._feeds.keep_few()
        self._written.wait(run)
        return Result(b"{}")
