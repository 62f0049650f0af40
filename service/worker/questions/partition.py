"""A resident graph in k parts, kept up to date: each question brings the partition at hand to the present version."""

import time
from fractions import Fraction
from functools import partial
from typing import Final

import numpy as np

from gpu_engine.checks.partitions import PartitionProof, prove_partition
from gpu_engine.errors import InvalidNetwork, OutOfMemory
from gpu_engine.footprint import Footprint
from gpu_engine.networks.network import Network
from gpu_engine.partition.problem import Question, edge_weights
from gpu_engine.partition.resident import KeptPartition, Report, ResidentPartition, Way
from gpu_engine.select import device_partition, device_partition_nbytes
from gpu_engine.text.counted import counted
from gpu_engine.types import UnitArray
from service.protocol import Envelope, PartitionArgs
from service.store.jobs.record import Result
from service.worker import answers
from service.worker.columns import IntegerColumn, each, listed
from service.worker.copies import Copies
from service.worker.graph import Graph, NotProven
from service.worker.json_writer import Raw
from service.worker.questions.terminals import read_distinct_vertices
from service.worker.result_writer import written_as
from service.worker.running.results import Results
from service.worker.running.task import Task
from service.worker.solving import Solver
from service.worker.time_limit import time_limit

MAX_PARTITIONS: Final = 4
"""Partitions kept for one graph; the least recently asked for goes first."""

VERTEX_BYTES: Final = 48
"""Bytes of memory for each vertex while a partition is weighed, compared, checked and written."""
EDGE_BYTES: Final = 17
"""Bytes of memory for each edge while a partition is weighed, compared, checked and written."""


class Partition:
    """Answers the command PARTITION."""

    def __init__(self, copies: Copies, solver: Solver, results: Results) -> None:
        self._copies = copies
        self._solver = solver
        self._results = results

    def __call__(self, task: Task) -> Result:
        args = PartitionArgs.model_validate(task.command.args)
        with time_limit(task.control, args.time_limit_s):
            return self._answer(task, args)

    def _answer(self, task: Task, args: PartitionArgs) -> Result:
        began = time.perf_counter()
        graph = self._copies.at_least(task.command.graph, args.min_version, limited=True)
        network = graph.network
        if args.k > network.n_live_vertices:
            there = counted(network.n_live_vertices, "vertex", "vertices")
            raise InvalidNetwork(f"{counted(args.k, 'part is', 'parts are')} too many for {there}", field="/k")
        question = Question(args.k, Fraction(args.epsilon), args.weights, args.seed)
        found, report, proof = self._solver.giving_way(graph, lambda: self._found(task, graph, question, args))
        solved = time.perf_counter()
        self._solver.hold(graph, 8 * network.n_vertices + 8 * proof.n_cut)
        answer = _answer(graph, found, report, proof) | _fields(network, found, args)
        waited_s = (task.started_at or task.command.created_at) - task.command.created_at
        timings_ms = {"queue": max(0.0, 1e3 * waited_s), "solve": 1e3 * (solved - began)}
        timings_ms["total"] = sum(timings_ms.values()) + 1e3 * (time.perf_counter() - solved)
        answer["timings_ms"] = answers.rounded(timings_ms)
        envelope = Envelope(version=graph.version, generation=graph.generation)
        return written_as(args.encoding, network.decimals, self._results, answer, envelope, task.control)

    def _found(
        self, task: Task, graph: Graph, question: Question, args: PartitionArgs
    ) -> tuple[KeptPartition, Report, PartitionProof]:
        """The partition at the present version, proven. Whatever ends this way forgets the one at hand.

        One that fails its proof is made from nothing, on the host; raises `NotProven` where that fails too.
        """
        network = graph.network
        room = partial(self._copies.residents.take, graph.name)
        room(Footprint(VERTEX_BYTES * network.n_vertices + EDGE_BYTES * network.n_edges))
        weight = vertex_weights(network, args)
        given = None if args.vertices is None else weight
        found = graph.partitions.pop(question, None) or self._opened(network, question)
        for _ in range(2):
            try:
                report = found.bring(network, given, task.control, room)
            except OutOfMemory:
                if isinstance(found, ResidentPartition):
                    raise
                found = ResidentPartition(question)  # the host has more memory, if less speed
                report = found.bring(network, given, task.control, room)
            edge_weight = edge_weights(network, question.weights)
            claimed = found.cut, found.part_weight
            proof = prove_partition(network, edge_weight, weight, found.part, question.k, claimed)
            if proof.valid:
                graph.partitions[question] = found
                while len(graph.partitions) > MAX_PARTITIONS:
                    graph.partitions.popitem(last=False)
                return found, report, proof
            self._solver.count_failure()
            found = ResidentPartition(question)
        raise NotProven(f"the partition could not be proven: {'; '.join(proof.failures)}")

    def _opened(self, network: Network, question: Question) -> KeptPartition:
        """One on the device if there is one, and what nobody else holds of it is enough."""
        residents = self._copies.residents
        if not residents.budget.device:
            return ResidentPartition(question)
        needed = device_partition_nbytes(network, question.k)
        return device_partition(question) if 0 < needed <= residents.unused.device else ResidentPartition(question)


def vertex_weights(network: Network, args: PartitionArgs) -> UnitArray:
    """int64[n]. Raises `UnknownVertex`, and `InvalidTerminals` for a vertex that is named twice."""
    weight = np.ones(network.n_vertices, np.int64)
    if args.vertices is not None:
        rows = read_distinct_vertices(network, args.vertices, "vertex", "/vertices")
        weight[rows] = np.array(args.vertex_weight, np.int64)
    return weight


def _answer(graph: Graph, found: KeptPartition, report: Report, proof: PartitionProof) -> dict[str, object]:
    """All but the fields that were asked for by name."""
    question, balanced = found.question, int(proof.part_weight.max()) <= found.limit
    in_capacity = question.weights == "capacity"
    return {
        "graph": graph.name,
        "version": graph.version,
        "k": question.k,
        "weights": question.weights,
        "value": answers.amount(graph.network, proof.cut) if in_capacity else proof.cut,
        "cut_edges": proof.n_cut,
        "part_weight": [Raw(str(weight)) for weight in proof.part_weight.tolist()],
        "n_vertices": proof.n_of_part.tolist(),
        "limit": Raw(str(found.limit)),
        "balanced": balanced,
        "mode": report.way.value,
        "reason": _reason(found, report, balanced=balanced),
        "moved": report.moved,
        "certificate": {"valid": proof.valid},
    }


def _reason(found: KeptPartition, report: Report, *, balanced: bool) -> str | None:
    if not balanced:
        heavy = f"a vertex weighs {found.heaviest_vertex}, and a part may weigh {found.limit}"
        return f"no division within the limit was found: {heavy}"
    changed = counted(report.changed, "edge or vertex has", "edges and vertices have")
    told = {
        Way.UNCHANGED: "nothing that it depends on has changed since the last answer",
        Way.INCREMENTAL: f"{changed} changed since the last answer",
        Way.FULL: report.reason,
    }
    return told[report.way]


def _fields(network: Network, found: KeptPartition, args: PartitionArgs) -> dict[str, object]:
    parts: dict[str, object] = {}
    if "parts" in args.fields:
        rows = np.flatnonzero(network.there)
        part = found.part[rows].astype(np.int64)
        parts["parts"] = {"vertices": answers.labels(network.vertex_labels, listed(rows)), "part": IntegerColumn(part)}
    if "cut" in args.fields:
        rows, weight = np.arange(network.n_edges), edge_weights(network, args.weights)
        crosses = found.part[network.edge_tail(rows)] != found.part[network.edge_head(rows)]
        rows = np.flatnonzero(crosses & (weight > 0))
        own = weight[rows].astype(np.int64)
        amounts = answers.amounts(network, own, each(own)) if args.weights == "capacity" else IntegerColumn(own)
        parts["cut"] = {"edges": answers.labels(network.edge_ids, listed(rows)), "weight": amounts}
    return parts
