"""A flow that keeps lower bounds, or what proves that there is none. No flow state has a part in it."""

import time
from dataclasses import dataclass
from functools import partial

import numpy as np

from gpu_engine.checks.circulations import Barrier, prove_circulation
from gpu_engine.checks.flows import FlowProof
from gpu_engine.circulations.solver import PROOF_BYTES, find_circulation
from gpu_engine.footprint import Footprint
from gpu_engine.networks.bounds import LowerBounds
from gpu_engine.networks.network import Network
from gpu_engine.types import UnitArray
from service.protocol import CirculationArgs, Envelope
from service.store.jobs.record import Result
from service.worker import answers
from service.worker.columns import listed
from service.worker.copies import Copies
from service.worker.graph import Graph, NotProven
from service.worker.questions.edges import read_edges
from service.worker.questions.terminals import read_least, read_terminals, read_units
from service.worker.result_writer import written_as
from service.worker.running.results import Results
from service.worker.running.task import Task
from service.worker.solving import Parts, Solver
from service.worker.time_limit import time_limit

BOUND_BYTES = 40
"""Bytes of memory for each edge while its bounds are read."""


@dataclass(frozen=True, slots=True)
class Found:
    """What was found and proven: a flow int64[m], or a barrier."""

    bounds: LowerBounds
    flow: UnitArray | None
    proof: FlowProof | None
    barrier: Barrier | None

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        barrier, flow = self.barrier, 0 if self.flow is None else self.flow.nbytes
        shown = 0 if barrier is None else barrier.vertices.nbytes + barrier.edges.nbytes + barrier.bound.nbytes
        return self.bounds.nbytes + flow + shown


class Circulation:
    """Answers the command CIRCULATION, in the lane of the graph: its other commands wait."""

    def __init__(self, copies: Copies, solver: Solver, results: Results) -> None:
        self._copies = copies
        self._solver = solver
        self._results = results

    def __call__(self, task: Task) -> Result:
        args = CirculationArgs.model_validate(task.command.args)
        with time_limit(task.control, args.time_limit_s):
            return self._answer(task, args)

    def _answer(self, task: Task, args: CirculationArgs) -> Result:
        began, before = time.perf_counter(), task.control.progress()
        graph = self._copies.at_least(task.command.graph, args.min_version)
        found = self._solver.giving_way(graph, partial(self._found, task, graph, args))
        self._solver.hold(graph, found.nbytes)
        ended = time.perf_counter()
        queued_ms = 1e3 * max(0.0, (task.started_at or task.command.created_at) - task.command.created_at)
        timings_ms = {"queue": queued_ms, "solve": 1e3 * (ended - began), "total": queued_ms + 1e3 * (ended - began)}
        whole: dict[str, object] = {
            "graph": graph.name,
            "version": graph.version,
            "feasible": found.barrier is None,
            "mode": "cold",
            "engine": "cpu",
            "reason": "flows with lower bounds are solved from zero",
            "certificate": {"valid": True, "complete": True},
            "counters": {name: count - before[name] for name, count in task.control.progress().items()},
            "timings_ms": answers.rounded(timings_ms),
        }
        whole |= _parts(graph, found, args)
        envelope = Envelope(version=graph.version, generation=graph.generation)
        return written_as(args.encoding, graph.network.decimals, self._results, whole, envelope, task.control)

    def _found(self, task: Task, graph: Graph, args: CirculationArgs) -> Found:
        """Raises `NotProven` for what fails its check, a fault of the solver, and as `read_bounds`."""
        network, room = graph.network, partial(self._copies.residents.take, graph.name)
        room(Footprint(BOUND_BYTES * network.n_edges))
        bounds = read_bounds(graph, args)
        found = find_circulation(network, bounds, task.control, room)
        if isinstance(found, Barrier):
            return Found(bounds, None, None, self._valid(found))
        room(Footprint(PROOF_BYTES * network.n_edges + 16 * network.n_vertices))
        proof = prove_circulation(network, bounds, found)
        if proof.failures:
            self._solver.count_failure()
            raise NotProven(f"the circulation could not be proven: {'; '.join(proof.failures)}")
        return Found(bounds, found, proof, None)

    def _valid(self, barrier: Barrier) -> Barrier:
        if not barrier.valid:
            self._solver.count_failure()
            raise NotProven("that there is no circulation could not be proven")
        return barrier


def read_bounds(graph: Graph, args: CirculationArgs) -> LowerBounds:
    """The terminals and lower bounds that a question names; without edges, the lower bounds of the graph.

    Raises `InvalidTerminals`, `SourceIsSink`, `UnknownVertex`, `UnknownEdge`, `NotDirected`, `InvalidNetwork`,
    `CapacityOverflow`, in the caller's names.
    """
    network, rounding = graph.network, args.rounding
    ends = read_terminals(network, args, may_be_empty=True)
    supply = read_least(network, args.min_supply, args.sources, ends.sources, "min_supply", rounding)
    demand = read_least(network, args.min_demand, args.sinks, ends.sinks, "min_demand", rounding)
    if args.edges is None and graph.lowers is not None:
        rows = graph.lowers.rows
        return LowerBounds.of(network, ends, rows, graph.lowers.lower[rows], supply, demand)
    rows = np.empty(0, np.int64) if args.edges is None else read_edges(graph, args.edges)
    lower = read_units(network, args.lower or [], rounding, "/lower")
    return LowerBounds.of(network, ends, rows, lower, supply, demand)


def _parts(graph: Graph, found: Found, args: CirculationArgs) -> Parts:
    network = graph.network
    if found.barrier is not None:
        return {"proof": _proof(network, found.bounds, found.barrier)}
    if "flow" not in args.fields or found.flow is None or found.proof is None:
        return {}
    return {
        "flow": answers.flow_by_edge(network, found.flow, zeros=args.zeros),
        "terminals": answers.terminals(network, found.bounds.terminals, found.proof),
    }


def _proof(network: Network, bounds: LowerBounds, barrier: Barrier) -> dict[str, object]:
    assert barrier.can is not None
    edges, bound = listed(barrier.edges), listed(barrier.bound)
    return {
        "vertices": answers.labels(network.vertex_labels, listed(barrier.vertices), "vertices"),
        f"must_{barrier.way}": answers.amount(network, barrier.must),
        f"can_{barrier.way}": answers.amount(network, barrier.can),
        "edges": answers.labels(network.edge_ids, edges, "edges"),
        "capacity": answers.amounts(network, network.capacity, edges, "edges"),
        "bound_edges": answers.labels(network.edge_ids, bound, "bound"),
        "lower": answers.amounts(network, bounds.lower, bound, "bound"),
    }
