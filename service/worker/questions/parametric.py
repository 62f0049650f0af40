"""The value of a maximum flow as a function of a factor. The graph itself stays as it is."""

import time
from contextlib import ExitStack
from fractions import Fraction
from functools import partial
from typing import Final

import numpy as np

from gpu_engine.engine import Engine, FlowState
from gpu_engine.networks.terminals import Terminals
from gpu_engine.parametric.curve import Curve, curve
from gpu_engine.parametric.probes import Prober, Scaled, probing
from gpu_engine.parametric.spans import SpanProber
from service.protocol import Envelope, Kind, ParametricArgs
from service.store.jobs.record import Result
from service.worker import answers
from service.worker.copies import Copies
from service.worker.graph import Answer, Graph, Solved
from service.worker.questions.edges import read_edges
from service.worker.questions.terminals import read_terminals
from service.worker.result_writer import written
from service.worker.running.costs import rows_s
from service.worker.running.results import Results
from service.worker.running.task import Rest, Task
from service.worker.solving import Solver
from service.worker.supposing import needs
from service.worker.time_limit import time_limit

FLOWS: Final = 16
"""So many flows a curve is expected to take: four for each of a few segments."""


class Parametric:
    """Answers the command PARAMETRIC.

    In the lane of the graph it is solved as it is, and its flow copied. The curve is found on the copy, beside the
    lane: updates do not wait for it, and all of it is about one version.
    """

    def __init__(self, copies: Copies, solver: Solver, results: Results) -> None:
        self._copies = copies
        self._residents = copies.residents
        self._solver = solver
        self._results = results

    def __call__(self, task: Task) -> Rest:
        args, began = ParametricArgs.model_validate(task.command.args), time.perf_counter()
        with time_limit(task.control, args.time_limit_s), ExitStack() as stack:
            graph = self._copies.at_least(task.command.graph, args.min_version)
            terminals, scaled = read_terminals(graph.network, args), _scaled(graph, args)
            base, _, timings_ms = self._solver.ask(
                task, graph, terminals, lambda _: {}, began, complete=True, kind=Kind.MAX_FLOW
            )
            solved, name = graph.states[terminals.key], f"{graph.name} {task.command.id}"
            promised = needs(graph) + probing(graph.network)
            self._solver.make_room(graph, promised, but=solved)
            stack.enter_context(self._residents.at_work(name, task.control, displaces=False))
            self._residents.promise(name, promised)

            def solve(engine: Engine, state: FlowState, ends: Terminals) -> int:
                about = Graph(name, graph.graph_id, graph.epoch, version, engine.network, engine, table)
                value = self._solver.solve(about, Solved(state, ends), task.control, complete=True).report.value
                self._residents.promise(name, promised)
                return value

            version, table = graph.version, graph.table
            prober = Prober.of(graph.engine, solved.state, terminals, scaled, solve)
            self._residents.measure(graph)
            envelope = Envelope(version=version, generation=graph.generation)
            head = answers.about(graph)
            used_s = time.perf_counter() - began
            work = partial(self._drawn, task, args, prober, base, head, timings_ms, envelope, used_s)
            return Rest(work, stack.pop_all().close, rows_s(FLOWS, graph.network.n_arcs))

    def _drawn(
        self,
        task: Task,
        args: ParametricArgs,
        prober: Prober,
        base: Answer,
        head: dict[str, object],
        timings_ms: dict[str, float],
        envelope: Envelope,
        used_s: float,
    ) -> Result:
        def tell(segments: int, covered: float) -> None:
            task.at("segments", covered)

        with time_limit(task.control, args.time_limit_s, used_s):
            began = time.perf_counter()
            found = curve(SpanProber(prober), Fraction(args.first), Fraction(args.last), args.max_segments, tell)
            took = 1e3 * (time.perf_counter() - began)
            timings = {**timings_ms, "curve": took, "total": timings_ms["total"] + took}
            whole = {**head, **_answer(prober, base, found), "timings_ms": answers.rounded(timings)}
            return written(self._results, whole, envelope, task.control, args.encoding)


def _scaled(graph: Graph, args: ParametricArgs) -> Scaled:
    """What the factor multiplies. Raises `UnknownEdge`, `InvalidNetwork`."""
    if args.edges is None:
        return Scaled(supply=args.scale == "supply", demand=args.scale == "demand")
    return Scaled(np.sort(read_edges(graph, args.edges)))


def _answer(prober: Prober, base: Answer, found: Curve) -> dict[str, object]:
    network, ends = prober.network, list(map(str, found.factors))
    segments = {
        "from": ends[:-1],
        "to": ends[1:],
        "constant": [answers.amount(network, line.constant) for line in found.lines],
        "rate": [answers.amount(network, line.rate) for line in found.lines],
    }
    return {
        "value": answers.amount(network, base.report.value),
        "segments": segments,
        "complete": found.complete,
        "engine": base.report.engine,
        "certificate": {"valid": base.certificate.valid, "flows": found.probes + 1},
    }
