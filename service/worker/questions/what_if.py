"""What the maximum flow would be in each of many scenarios. The graph itself changes in none of them."""

import time
from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from typing import Final

from gpu_engine.engine import Control
from gpu_engine.errors import Cancelled, EngineError, OutOfMemory
from gpu_engine.footprint import Footprint
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from service.errors import STATUS, ServiceError
from service.packed import unpacked
from service.protocol import JSON_TYPE, LINES_TYPE, Envelope, Kind, Scenario, WhatIfArgs
from service.store.jobs.record import Result
from service.worker import answers, json_writer
from service.worker.copies import Copies
from service.worker.graph import Answer, Graph, Solved, time_limit
from service.worker.questions.max_flow import MaxFlow
from service.worker.questions.terminals import read_terminals
from service.worker.running.results import Results
from service.worker.running.task import Rest, Task
from service.worker.solving import Solver
from service.worker.supposing import Supposition, needs
from service.worker.written import unless_cancelled

SCENARIO_BYTES: Final = 4_000
"""What a scenario of one edge takes while the command is in memory."""

MOST_BYTES: Final = 256 << 20
"""What all rows of one answer may take: Redis holds it."""

TERMINALS: Final = ("sources", "sinks", "supply", "demand")


class WhatIf:
    """Answers the command WHAT_IF.

    In the lane of the graph it is solved as it is, and forked. The scenarios are tried on the fork, beside the lane:
    updates do not wait for them, and all are about one version.
    """

    def __init__(self, copies: Copies, solver: Solver, results: Results, max_flow: MaxFlow) -> None:
        self._copies = copies
        self._residents = copies.residents
        self._solver = solver
        self._results = results
        self._max_flow = max_flow

    def __call__(self, task: Task) -> Rest:
        args, began = WhatIfArgs.model_validate(task.command.args), time.perf_counter()
        with time_limit(task.control, args.time_limit_s), ExitStack() as stack:
            graph = self._copies.at_least(task.command.graph, args.min_version)
            terminals = read_terminals(graph.network, args)
            base, _, _ = self._solver.ask(
                task, graph, terminals, lambda _: {}, began, complete=True, kind=Kind.MAX_FLOW
            )
            solved, name = graph.states[terminals.key], f"{graph.name} {task.command.id}"
            promised = needs(graph) + self._of_fields(graph, args)
            self._solver.make_room(graph, promised, but=solved)
            stack.enter_context(self._residents.at_work(name, task.control, displaces=False))
            self._residents.promise(name, promised)
            supposed = Supposition.of(graph, solved, name)
            self._residents.measure(graph)
            rows = Rows(self._solver, self._max_flow, args, supposed, terminals, base, graph.name)
            used_s = time.perf_counter() - began
            return Rest(partial(self._tried, task, rows, promised, used_s), stack.pop_all().close)

    def _of_fields(self, graph: Graph, args: WhatIfArgs) -> Footprint:
        """What reading the fields takes beside a solve."""
        of_engine, found = graph.engine.needs, Footprint(SCENARIO_BYTES * len(args.scenarios))
        if "cut" in args.fields:
            found += of_engine.cut
        return found + of_engine.flow if args.fields & {"flow", "terminals", "paths"} else found

    def _tried(self, task: Task, rows: "Rows", promised: Footprint, used_s: float) -> Result:
        args = rows.args

        def pieces() -> Generator[bytes, None, None]:
            count, n_bytes = len(args.scenarios), 0
            yield rows.head()
            for number in range(count):
                task.row(number, count)
                if number and not args.lines:
                    yield b","
                for piece in rows.pieces(number, task.control):
                    n_bytes += len(piece)
                    if n_bytes > MOST_BYTES:
                        detail = f"more than {MOST_BYTES} bytes after {number} rows: ask for fewer fields or scenarios"
                        raise ServiceError("too_large", detail, field="/fields")
                    yield piece
                self._residents.promise(rows.supposed.graph.name, promised)
            yield rows.tail()

        media_type = LINES_TYPE if args.lines else JSON_TYPE
        graph = rows.supposed.graph
        envelope = Envelope(version=graph.version, generation=graph.generation, media_type=media_type)
        with time_limit(task.control, args.time_limit_s, used_s), closing(pieces()) as written:
            return self._results.keep(unless_cancelled(written, task.control), envelope)


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
    graph: str
    """The name that the caller knows it by."""

    def head(self) -> bytes:
        """What stands before the answers."""
        answer, network = self.base, self._network
        said: dict[str, object] = {
            "graph": self.graph,
            "version": self.supposed.graph.version,
            "base": {
                "value": answers.amount(network, answer.report.value),
                "mode": answer.report.mode.value,
                "engine": answer.report.engine,
                "certificate": answers.certificate(network, answer.certificate),
            },
            "rows": len(self.args.scenarios),
        }
        text = json_writer.dumps(said)
        return f"{text}\n".encode() if self.args.lines else f'{text[:-1]},"answers":['.encode()

    def tail(self) -> bytes:
        """What ends them: without it, an answer was cut off."""
        return b'{"done":true,"rows":%d}\n' % len(self.args.scenarios) if self.args.lines else b"]}"

    def pieces(self, number: int, control: Control) -> Iterator[bytes]:
        """One row. What is wrong with a scenario is the answer of its row, and no other's. Raises `Cancelled`."""
        scenario = self.args.scenarios[number]
        row: dict[str, object] = {"row": number} if scenario.id is None else {"row": number, "id": scenario.id}
        try:
            terminals = self._terminals_of(scenario)
            batch = [unpacked(operation) for operation in scenario.batch or ()]
            change = self.supposed.graph.table.resolve(
                batch, on_missing=self.args.on_missing, rounding=self.args.rounding
            )
            with self.supposed.under(change, terminals) as solved:
                yield from self._written(row | self._answer(solved, control))
        except Cancelled:
            raise
        except (EngineError, ServiceError, MemoryError) as error:
            yield from self._written(row | {"error": _problem(error)})

    def _answer(self, solved: Solved, control: Control) -> dict[str, object]:
        graph = self.supposed.graph
        if control.cancelled:
            raise Cancelled("cancelled between two rows")
        answer = self.solver.solve(graph, solved, control, complete=bool(set(self.args.fields) - {"value"}))
        value = answer.report.value
        found: dict[str, object] = {
            "value": answers.amount(self._network, value),
            "change": answers.amount(self._network, value - self.base.report.value),
            "mode": answer.report.mode.value,
            "certificate": answers.certificate(self._network, answer.certificate),
        }
        return found | self.max_flow.fields(graph, solved, self.args, control)

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

    def _written(self, row: dict[str, object]) -> Iterator[bytes]:
        yield from json_writer.pieces(row)
        if self.args.lines:
            yield b"\n"

    @property
    def _network(self) -> Network:
        return self.supposed.graph.network


def _problem(error: EngineError | ServiceError | MemoryError) -> dict[str, object]:
    """The refusal of a row: its code, what is wrong, and where."""
    if isinstance(error, MemoryError):
        error = OutOfMemory("the machine has no more memory, whatever the budget says")
    if error.code not in STATUS:
        return {"code": "internal_error", "status": 500, "detail": "the worker failed; see its log"}
    return {"code": error.code, "status": STATUS[error.code], "detail": str(error), **error.where.members()}
