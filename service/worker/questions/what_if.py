"""What the maximum flow would be in each of many scenarios. The graph itself changes in none of them."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np

from gpu_engine.control import Control
from gpu_engine.errors import Cancelled, EngineError
from gpu_engine.footprint import COMPONENT_BYTES, Footprint
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.networks.updates import vertices_named
from gpu_engine.types import INFINITE
from gpu_engine.vertices.table import VertexChange, vertices_of
from service.collector import held_back
from service.packed import unpacked
from service.protocol import Kind, Scenario, WhatIfArgs
from service.store.jobs.record import Result
from service.worker import answers, json_writer
from service.worker.copies import Copies
from service.worker.graph import Answer, Graph, Solved
from service.worker.questions.max_flow import MaxFlow
from service.worker.questions.supposed import Supposed, Supposer
from service.worker.questions.terminals import read_terminals
from service.worker.questions.tried_rows import TriedRows
from service.worker.running.costs import rows_s
from service.worker.running.rows import BLOCK_ROWS, RowRunner, Sheet, row_or_refusal
from service.worker.running.task import Rest, Task
from service.worker.solving import Solver
from service.worker.supposing import Supposition
from service.worker.time_limit import time_limit

SCENARIO_BYTES: Final = 1_500
"""What a scenario takes while the command is in memory."""
OPERATION_BYTES: Final = 2_500
"""What each of its operations takes then."""
NAME_BYTES: Final = 80
"""What each name or amount in them takes then, or `PACKED_COPIES` of its bytes where it is one of many."""
PACKED_COPIES: Final = 2

FLOWS: Final = frozenset({"flow", "terminals", "paths"})
"""Fields that show the whole flow. Otherwise only the part of the flow that a scenario has changed is proven, since
`base` is proven as a whole."""

NONE: Final = np.empty(0, np.int64)

TERMINALS: Final = ("sources", "sinks", "supply", "demand")


class WhatIf:
    """Answers the command WHAT_IF.

    In the lane of the graph it is solved as it is, and forked. The scenarios are tried on the fork, beside the lane:
    updates do not wait for them, and all are about one version.
    """

    def __init__(
        self, copies: Copies, solver: Solver, supposer: Supposer, runner: RowRunner, max_flow: MaxFlow
    ) -> None:
        self._copies = copies
        self._solver = solver
        self._supposer = supposer
        self._runner = runner
        self._max_flow = max_flow

    def __call__(self, task: Task) -> Rest:
        args, began = read_args(task.command.args), time.perf_counter()
        with time_limit(task.control, args.time_limit_s), ExitStack() as stack:
            graph = self._split(self._copies.at_least(task.command.graph, args.min_version, limited=True), args)
            terminals = read_terminals(graph.network, args)
            base, _, _ = self._solver.ask(
                task, graph, terminals, lambda _: {}, began, complete=True, kind=Kind.MAX_FLOW
            )
            solved, more, short = graph.states[terminals.key], self._of_fields(graph, args), args.fields <= {"value"}
            supposed = self._supposer.suppose(stack, task, graph, solved, more, trials=short)
            rows = Rows(self._solver, self._max_flow, args, supposed.supposition, terminals, base, answers.about(graph))
            used_s = time.perf_counter() - began
            work = partial(self._tried, task, rows, supposed, used_s)
            return Rest(work, stack.pop_all().close, rows_s(len(args.scenarios), graph.network.n_arcs))

    def _split(self, graph: Graph, args: WhatIfArgs) -> Graph:
        """The graph itself, or where scenarios name vertices that have no capacity yet, one of its own in which they
        have, so that all scenarios are tried on one flow. Raises `OutOfMemory` or `TooLarge`."""
        table = vertices_of(graph.vertices, graph.network)
        batches = (unpacked(each).edges for scenario in args.scenarios for each in scenario.vertex_batch or ())
        rows = [vertices_named(graph.network, vertices) for vertices in batches if vertices is not None]
        named = np.unique(np.concatenate([NONE, *rows]))
        vertices = named[named >= 0].astype(np.int32)
        first = vertices[~table.has(vertices)]
        if not len(first):
            return graph
        return self._copies.beside(graph, VertexChange(first, np.full(len(first), INFINITE)))

    def _of_fields(self, graph: Graph, args: WhatIfArgs) -> Footprint:
        """What reading the fields takes beside a solve."""
        of_engine, found = graph.engine.needs, Footprint(held_bytes(args.scenarios))
        if args.fields & {"cut", "bottlenecks"}:
            found += of_engine.cut + Footprint(COMPONENT_BYTES * graph.network.n_vertices)
        return found + of_engine.flow if args.fields & FLOWS else found

    def _tried(self, task: Task, rows: "Rows", supposed: Supposed, used_s: float) -> Result:
        graph, args = supposed.graph, rows.args
        sheet = Sheet(
            rows.head(),
            len(args.scenarios),
            args.lines,
            graph.version,
            graph.generation,
            block_rows=BLOCK_ROWS if supposed.trials else 1,
            between=supposed.settle,
            strings=args.strings,
        )
        tried = [TriedRows(args, rows.base, rows, supposed, trials) for trials in supposed.trials]
        with time_limit(task.control, args.time_limit_s, used_s):
            return self._runner.run(task, sheet, tried or [rows])


def read_args(said: Mapping[str, Any]) -> WhatIfArgs:
    """The arguments of the command. Scenarios are read one by one, as no other thread runs while one is: all of a
    hundred thousand at once would keep every caller of the worker waiting."""
    with held_back():
        scenarios = [Scenario.model_validate(each) for each in said["scenarios"]]
        return WhatIfArgs.model_validate({**said, "scenarios": []}).model_copy(update={"scenarios": scenarios})


@contextmanager
def _told_within(member: str) -> Iterator[None]:
    """Says of a refusal where it is in the scenario: in this member of it, an array, be it of one operation alone."""
    try:
        yield
    except EngineError as error:
        where = error.where
        if where.field is not None:
            operation, inside = where.operation or 0, where.field.removeprefix(f"/batch/{where.operation}")
            error.where = replace(where, operation=operation, field=f"/{member}/{operation}{inside}")
        raise


def held_bytes(scenarios: Sequence[Scenario]) -> int:
    """What these take while the command is in memory."""
    operations = [each for scenario in scenarios for each in (*(scenario.batch or ()), *(scenario.vertex_batch or ()))]
    names = sum(len(getattr(scenario, column) or ()) for scenario in scenarios for column in TERMINALS)
    for each in operations:
        names += sum(len(column) for column in (each.edges, each.tail, each.head, each.amounts) if column is not None)
    packed = sum(len(each.packed) for each in operations if each.packed is not None)
    many = SCENARIO_BYTES * len(scenarios) + OPERATION_BYTES * len(operations)
    return many + NAME_BYTES * names + PACKED_COPIES * packed


@dataclass(frozen=True, slots=True)
class Rows:
    """The answers of one question, one for each scenario, as they are written."""

    solver: Solver
    max_flow: MaxFlow
    args: WhatIfArgs
    supposed: Supposition
    terminals: Terminals
    """Those of the question."""
    base: Answer
    about: dict[str, object]
    """The graph by the name that the caller knows it by, and its version."""

    def head(self) -> dict[str, object]:
        """What stands before the answers."""
        answer, network = self.base, self._network
        return {
            **self.about,
            "base": {
                "value": answers.amount(network, answer.report.value),
                "mode": answer.report.mode.value,
                "engine": answer.report.engine,
                "certificate": answers.certificate(network, answer.certificate),
            },
            "rows": len(self.args.scenarios),
        }

    def __call__(self, block: range, control: Control) -> Iterator[bytes]:
        """These rows. What is wrong with a scenario is the answer of its row, and no other's. Raises `Cancelled`."""
        for number in block:
            scenario = self.args.scenarios[number]
            told: dict[str, object] = {"row": number} if scenario.id is None else {"row": number, "id": scenario.id}
            yield from row_or_refusal(told, self._row(told, scenario, control))
            yield b"\n"

    def _row(self, told: dict[str, object], scenario: Scenario, control: Control) -> Iterator[bytes]:
        terminals = self._terminals_of(scenario)
        batch, table = [unpacked(operation) for operation in scenario.batch or ()], self.supposed.graph.table
        with _told_within("batch"):
            change = table.resolve(batch, on_missing=self.args.on_missing, rounding=self.args.rounding)
        vertices = self._vertices_of(scenario)
        with self.supposed.under(change, terminals, vertices) as solved:
            yield from json_writer.pieces(told | self._answer(solved, control), strings=self.args.strings)

    def _answer(self, solved: Solved, control: Control) -> dict[str, object]:
        graph = self.supposed.graph
        if control.cancelled:
            raise Cancelled("cancelled between two rows")
        answer = self.solver.solve(graph, solved, control, complete=bool(self.args.fields & FLOWS))
        value = answer.report.value
        found: dict[str, object] = {
            "value": answers.amount(self._network, value),
            "change": answers.amount(self._network, value - self.base.report.value),
            "mode": answer.report.mode.value,
            "certificate": answers.certificate(self._network, answer.certificate),
        }
        return found | self.max_flow.fields(graph, solved, self.args, control)

    def _vertices_of(self, scenario: Scenario) -> VertexChange | None:
        """What changes of the capacities of vertices. Raises as `VertexTable.resolve`."""
        if scenario.vertex_batch is None:
            return None
        table = vertices_of(self.supposed.graph.vertices, self._network)
        batch = [unpacked(operation) for operation in scenario.vertex_batch]
        with _told_within("vertex_batch"):
            return table.resolve(batch, on_missing=self.args.on_missing, rounding=self.args.rounding)

    def _terminals_of(self, scenario: Scenario) -> Terminals:
        """Terminals that are named anew have the caps that are named with them, or none."""
        given = {name: value for name in TERMINALS if (value := getattr(scenario, name)) is not None}
        if not given:
            return self.terminals
        uncapped: dict[str, None] = {}
        for side, caps in (("sources", "supply"), ("sinks", "demand")):
            if side in given:
                uncapped[caps] = None
        return read_terminals(self._network, self.args.model_copy(update=uncapped | given))

    @property
    def _network(self) -> Network:
        return self.supposed.graph.network
