"""The cheapest flow between terminals: of the largest value, or of the value that is asked for."""

import time
from functools import partial

import numpy as np

from gpu_engine.checks.costs import CostProof, prove_cheapest
from gpu_engine.errors import ROWS_SHOWN, HasLowerBounds, Infeasible, Unbounded
from gpu_engine.footprint import Footprint
from gpu_engine.mincost.cheapest import CheapestFlow, cheapest_flow
from gpu_engine.networks.costs import costs_of
from gpu_engine.networks.terminals import Terminals
from gpu_engine.networks.units import write_units
from gpu_engine.paths import Paths
from gpu_engine.text.counted import counted
from gpu_engine.types import UnitArray
from service.protocol import TEXTS, Envelope, Kind, MinCostFlowArgs
from service.store.jobs.record import Result
from service.worker import answers
from service.worker.copies import Copies
from service.worker.graph import Answer, Graph, NotProven
from service.worker.questions import flows
from service.worker.questions.terminals import read_terminals, read_unit
from service.worker.result_writer import written_as
from service.worker.running.results import Results
from service.worker.running.task import Task
from service.worker.solving import Parts, Solver
from service.worker.time_limit import time_limit

PROOF_BYTES = 80
"""Bytes of memory for each edge while a flow is proven."""


class MinCostFlow:
    """Answers the command MIN_COST_FLOW.

    The maximum flow comes first, from its flow state, which is warm: it says how much there is to flow, and proves that
    there is no more. The cheapest flow is solved from zero, beside it.
    """

    def __init__(self, copies: Copies, solver: Solver, results: Results) -> None:
        self._copies = copies
        self._solver = solver
        self._results = results

    def __call__(self, task: Task) -> Result:
        args = MinCostFlowArgs.model_validate(task.command.args)
        with time_limit(task.control, args.time_limit_s):
            return self._answer(task, args)

    def _answer(self, task: Task, args: MinCostFlowArgs) -> Result:
        began = time.perf_counter()
        graph = self._copies.at_least(task.command.graph, args.min_version)
        costs_of(graph.costs)
        if args.lower is None:
            _refuse_lower_bounds(graph)
        wanted = None if args.value is None else read_unit(graph.network, args.value, args.rounding, "/value")
        terminals = read_terminals(graph.network, args)
        maximum, timings_ms = self._maximum(task, graph, terminals, began, wanted)
        if maximum is not None and wanted is not None and wanted > maximum.report.value:
            raise _too_much(graph, wanted, maximum.report.value)
        value = wanted
        if value is None:
            assert maximum is not None
            value = maximum.report.value
        solving_since = time.perf_counter()
        found, proof = self._cheapest(task, graph, terminals, value)
        ended = time.perf_counter()
        parts = self._fields(task, graph, terminals, found, proof, args)
        read = time.perf_counter()
        timings_ms |= {"min_cost": 1e3 * (ended - solving_since)} | ({"fields": 1e3 * (read - ended)} if parts else {})
        timings_ms["total"] = timings_ms.get("queue", 0.0) + 1e3 * (read - began)
        whole = answers.min_cost_flow(graph, found, proof, maximum, timings_ms) | parts
        if args.encoding not in TEXTS:
            whole["cost_decimals"] = costs_of(graph.costs).decimals
        envelope = Envelope(version=graph.version, generation=graph.generation)
        return written_as(args.encoding, graph.network.decimals, self._results, whole, envelope, task.control)

    def _maximum(
        self, task: Task, graph: Graph, terminals: Terminals, began: float, wanted: int | None
    ) -> tuple[Answer | None, dict[str, float]]:
        """The maximum flow; None where the flow has no bound, so that each value there is can flow."""
        try:
            answer, _, timings_ms = self._solver.ask(
                task, graph, terminals, lambda _: {}, began, complete=True, kind=Kind.MAX_FLOW
            )
        except Unbounded:
            if wanted is None:
                raise
            return None, {}
        return answer, timings_ms

    def _cheapest(self, task: Task, graph: Graph, terminals: Terminals, value: int) -> tuple[CheapestFlow, CostProof]:
        """The flow with its proof. Raises `NotProven` for one that fails it: a fault of the solver."""
        network, cost = graph.network, costs_of(graph.costs).cost
        room = partial(self._copies.residents.take, graph.name)

        def solve() -> CheapestFlow:
            return cheapest_flow(network, cost, terminals, value, task.control, room)

        found = self._solver.giving_way(graph, solve, but=graph.states.get(terminals.key))
        room(Footprint(PROOF_BYTES * network.n_edges))
        proof = prove_cheapest(network, cost, terminals, found.flow, value, found.potential, found.sink_potential)
        if not proof.valid:
            self._solver.count_failure()
            raise NotProven(f"the cheapest flow could not be proven: {'; '.join(proof.failures)}")
        return found, proof

    def _fields(
        self,
        task: Task,
        graph: Graph,
        terminals: Terminals,
        found: CheapestFlow,
        proof: CostProof,
        args: MinCostFlowArgs,
    ) -> Parts:
        parts: Parts = {}
        if "flow" in args.fields:
            parts["flow"] = answers.flow_by_edge(graph.network, found.flow, zeros=args.zeros)
        if args.fields & {"flow", "terminals", "paths"}:
            parts["terminals"] = answers.terminals(graph.network, terminals, proof.terminals)
        if "dual" in args.fields:
            parts["dual"] = answers.dual(graph, found)
        if "paths" in args.fields:
            parts |= self._paths(task, graph, terminals, found, proof, args.top)
        self._solver.hold(graph, found.flow.nbytes + found.potential.nbytes)
        return parts

    def _paths(
        self, task: Task, graph: Graph, terminals: Terminals, found: CheapestFlow, proof: CostProof, top: int
    ) -> Parts:
        """Paths, and cycles: what goes round because it costs less than nothing, or nothing."""
        room = partial(self._copies.residents.take, graph.name)

        def read() -> tuple[Paths, UnitArray]:
            columns = graph.network, terminals, found.flow, proof.terminals
            return flows.read_paths_and_cycles(*columns, top, task.control, room)

        try:
            paths, cycles = self._solver.giving_way(graph, read, but=graph.states.get(terminals.key))
        except NotProven:
            self._solver.count_failure()
            raise
        columns = paths.sources, paths.sinks, paths.amounts, paths.offsets, paths.edges, cycles
        self._solver.hold(graph, sum(column.nbytes for column in columns))
        around = answers.flow_by_edge(graph.network, cycles, zeros=False)
        return {"paths": answers.paths(graph.network, paths), "cycles": around}


def _refuse_lower_bounds(graph: Graph) -> None:
    """Raises `HasLowerBounds` for a graph that has some: the cheapest flow might not keep them."""
    rows = np.empty(0, np.int64) if graph.lowers is None else graph.lowers.rows
    if len(rows):
        names = graph.network.edge_ids.of(rows[:ROWS_SHOWN])
        several = counted(len(rows), "edge has", "edges have")
        detail = f"{several} a lower bound, which a cheapest flow does not keep, such as {names[0]!r}"
        asked = '"lower": "ignore" asks for one without any, as lower= in Python or --ignore-lower in the shell'
        raise HasLowerBounds(f"{detail}: {asked}", edges=names, field="/lower")


def _too_much(graph: Graph, wanted: int, most: int) -> Infeasible:
    shown, limit = (write_units(units, graph.network.decimals) for units in (wanted, most))
    return Infeasible(f"a value of {shown} is asked for, and the maximum is {limit}", field="/value")
