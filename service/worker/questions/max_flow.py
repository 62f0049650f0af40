"""Maximum flow and minimum cut between terminals."""

import time
from functools import partial

import numpy as np
from numpy.typing import NDArray

from gpu_engine.control import Control
from gpu_engine.engine import Mode
from service.protocol import TEXTS, Envelope, Kind, MaxFlowArgs
from service.store.jobs.record import Result
from service.worker import answers, features
from service.worker.copies import Copies
from service.worker.graph import Graph, Solved
from service.worker.questions import bottlenecks, flows
from service.worker.questions.terminals import read_terminals
from service.worker.result_writer import written_as
from service.worker.running.results import Results
from service.worker.running.task import Task
from service.worker.solving import Parts, Solver
from service.worker.time_limit import time_limit


class MaxFlow:
    """Answers the commands MAX_FLOW and MIN_CUT."""

    def __init__(self, copies: Copies, solver: Solver, results: Results) -> None:
        self._copies = copies
        self._solver = solver
        self._results = results
        self._bottlenecks = bottlenecks.Gains(copies, solver)

    def __call__(self, task: Task) -> Result:
        args = MaxFlowArgs.model_validate(task.command.args)
        with time_limit(task.control, args.time_limit_s):
            return self._answer(task, args)

    def _answer(self, task: Task, args: MaxFlowArgs) -> Result:
        began = time.perf_counter()
        graph = self._copies.at_least(task.command.graph, args.min_version, task.take_found(), limited=True)
        if args.encoding == "geojson":
            args = features.for_a_map(graph.network, args)
        terminals = read_terminals(graph.network, args)

        def read(solved: Solved) -> Parts:
            return self.fields(graph, solved, args, task.control)

        complete = set(args.fields) != {"value"}
        answer, parts, timings_ms = self._solver.ask(
            task, graph, terminals, read, began, complete=complete, kind=Kind.MAX_FLOW
        )
        kind = {"type": "FeatureCollection"} if args.encoding == "geojson" else {}
        whole = kind | answers.max_flow(graph, answer, timings_ms) | parts
        unchanged = answer.report.mode is Mode.UNCHANGED
        envelope = Envelope(version=graph.version, generation=graph.generation, unchanged=unchanged)
        return written_as(args.encoding, graph.network.decimals, self._results, whole, envelope, task.control)

    def fields(self, graph: Graph, solved: Solved, args: MaxFlowArgs, control: Control) -> Parts:
        """The cut and the flow by edge, where they are asked for. About as much work as a solve."""
        if args.up_to and graph.vertices is not None:
            raise graph.vertices.refusal("`up_to` does not know capacities of vertices")
        parts: Parts = {}
        room = partial(self._copies.residents.take, graph.name)
        on_failure = self._solver.count_failure
        columns: list[NDArray[np.generic]] = []
        if "cut" in args.fields:
            cut = self._solver.giving_way(
                graph, lambda: graph.engine.cut(solved.state, control, near=args.near), but=solved
            )
            paid = cut.paid(solved.terminals)
            columns += [cut.source_side, cut.edges, paid.sources, paid.supply, paid.sinks, paid.demand]
            columns += [cut.vertices]
            packed = args.encoding not in TEXTS
            parts["cut"] = answers.cut(graph.network, cut, paid, graph.vertices, packed=packed, sides=args.sides)
        if args.fields & {"flow", "terminals", "paths"}:
            flow, proof = self._solver.giving_way(
                graph,
                lambda: flows.read_proven(graph, solved, control, on_failure, acyclic=args.acyclic),
                but=solved,
            )
            columns += [flow, proof.supplied, proof.delivered]
            parts["terminals"] = answers.terminals(graph.network, solved.terminals, proof)
            if "flow" in args.fields:
                parts["flow"] = answers.flow(graph.network, flow, zeros=args.zeros, acyclic=args.acyclic)
            if args.encoding == "geojson":
                parts = {"features": features.lines(graph.network, cut, flow, zeros=args.zeros)}
            if "paths" in args.fields:
                paths = self._solver.giving_way(
                    graph,
                    lambda: flows.read_paths(graph, solved, flow, proof, args.top, control, room, on_failure),
                    but=solved,
                )
                columns += [paths.sources, paths.sinks, paths.amounts, paths.offsets, paths.edges]
                parts["paths"] = answers.paths(graph.network, paths)
        if "bottlenecks" in args.fields:
            found = self._solver.giving_way(graph, lambda: graph.engine.bottlenecks(solved.state, control), but=solved)
            gains = self._bottlenecks.gains(graph, solved, found, args.up_to, control) if args.up_to else None
            columns += found.columns
            of_vertices = graph.vertices is not None
            packed = args.encoding not in TEXTS
            parts["bottlenecks"] = bottlenecks.shown(graph.network, found, gains, of_vertices, packed=packed)
        self._solver.hold(graph, sum(column.nbytes for column in columns))
        return parts
