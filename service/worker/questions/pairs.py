"""Maximum flows of many pairs of vertices. None of them is kept as a flow state."""

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from gpu_engine.control import Control
from gpu_engine.errors import Cancelled, EngineError, OutOfMemory, Unbounded
from gpu_engine.footprint import Footprint, on_cpu
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.pairs import solver as places
from gpu_engine.pairs.solver import PairSolver, Seat, seat_nbytes, solver_nbytes
from gpu_engine.select import device_seat, device_seat_nbytes
from gpu_engine.text.json_text import write_amounts
from gpu_engine.types import INFINITE, UnitArray, VertexArray
from service.protocol import Kind, PairsArgs
from service.store.jobs.record import Result
from service.worker import answers, json_writer
from service.worker.copies import Copies
from service.worker.graph import Graph
from service.worker.pinned import pin_for, pinned_name
from service.worker.questions.listed_pairs import ListedPairs, list_pairs
from service.worker.questions.max_flow import MaxFlow
from service.worker.running.costs import rows_s
from service.worker.running.rows import BLOCK_ROWS, RowRunner, Sheet, refused, row_or_refusal
from service.worker.running.task import Rest, Task
from service.worker.solving import Solver
from service.worker.time_limit import time_limit

ROW_BYTES: Final = 256
"""Bytes of memory for each pair of a command."""

DEVICE_FROM: Final = 1024
"""From this many pairs on, values are solved on a device if there is one. Fewer are solved on the host before a device
has begun."""

DEVICE_SHARE: Final = 8
"""The largest share of the device's memory that a question takes, of what is free."""

DEVICE_ROWS: Final = 16_384
"""How many pairs a device solves at once."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How the pairs of a question are solved."""

    makers: int
    """The number of makers on the host, each on a thread with its own memory."""
    device: int = 0
    """Bytes of device memory for the maker, which is the only one then; 0 if no device is used."""


class Pairs:
    """Answers the command PAIRS, beside the graph's lane and on several threads: all rows are about one version."""

    def __init__(self, copies: Copies, solver: Solver, runner: RowRunner, max_flow: MaxFlow, threads: int) -> None:
        self._copies = copies
        self._residents = copies.residents
        self._solver = solver
        self._runner = runner
        self._max_flow = max_flow
        self._threads = threads

    def __call__(self, task: Task) -> Rest:
        args, began = PairsArgs.model_validate(task.command.args), time.perf_counter()
        with time_limit(task.control, args.time_limit_s), ExitStack() as stack:
            graph = self._copies.at_least(task.command.graph, args.min_version)
            pairs = list_pairs(graph.network, args)
            plans = self._plans(graph.network, args, len(pairs.sources))
            wishes = [self._needed(graph.network, args, len(pairs.sources), plan) for plan in plans]
            network, which = pin_for(graph, task, self._residents, self._solver, wishes, stack)
            name = pinned_name(graph, task)
            ours = Graph(name, graph.graph_id, graph.epoch, graph.version, network, graph.engine, graph.table)
            promised = wishes[which] + Footprint(network.nbytes)
            used_s = time.perf_counter() - began
            about = answers.about(graph)
            work = partial(self._answered, task, args, ours, about, pairs, promised, plans[which], used_s)
            return Rest(work, stack.pop_all().close, rows_s(len(pairs.sources), network.n_arcs))

    def _plans(self, network: Network, args: PairsArgs, count: int) -> list["Plan"]:
        """The possible plans, from the fastest to the one that takes the least memory. Rows with fields are made one by
        one, because they may be long. A device counts as one maker."""
        device = self._of_device(network, args, count)
        if device:
            return [Plan(1, device), Plan(1)]
        most = 1 if args.fields != {"value"} else max(1, min(self._threads, count // BLOCK_ROWS))
        return [Plan(makers) for makers in range(most, 0, -1)]

    def _of_device(self, network: Network, args: PairsArgs, count: int) -> int:
        """How many bytes of a device are taken; 0 if the pairs are solved on the host."""
        budget = self._residents.budget.device
        if not budget or args.fields != {"value"} or count < DEVICE_FROM:
            return 0
        nbytes = min(budget // DEVICE_SHARE, device_seat_nbytes(network))
        return nbytes if nbytes <= self._residents.unused.device else 0

    def _needed(self, network: Network, args: PairsArgs, count: int, plan: "Plan") -> Footprint:
        seats = seat_nbytes(network) * plan.makers
        fields = on_cpu(network.counts).flow if args.fields & {"flow", "terminals", "paths"} else Footprint()
        return Footprint(solver_nbytes(network) + seats + ROW_BYTES * count, plan.device) + fields

    def _answered(
        self,
        task: Task,
        args: PairsArgs,
        graph: Graph,
        about: dict[str, object],
        pairs: ListedPairs,
        promised: Footprint,
        plan: "Plan",
        used_s: float,
    ) -> Result:
        count, short = len(pairs.sources), args.fields == {"value"}
        sheet = Sheet(
            about | {"rows": count},
            count,
            args.lines,
            graph.version,
            graph.generation,
            block_rows=DEVICE_ROWS if plan.device else BLOCK_ROWS if short else 1,
            between=partial(self._residents.promise, graph.name, promised),
            strings=args.strings,
        )
        with time_limit(task.control, args.time_limit_s, used_s):
            task.row(0, count)
            solver = PairSolver.of(graph.network, pairs.known)
            seats = [solver.seat() for _ in range(plan.makers)]
            if not short:
                return self._runner.run(task, sheet, [self._whole(graph, pairs, seats[0], args)])
            found = [_with_device(solver, seats[0], plan.device)] if plan.device else seats
            return self._runner.run(task, sheet, [Values(graph.network, pairs, seat, sheet.strings) for seat in found])

    def _whole(self, graph: Graph, pairs: ListedPairs, seat: Seat, args: PairsArgs) -> "Answers":
        own = Graph(graph.name, graph.graph_id, graph.epoch, graph.version, graph.network, seat.engine, graph.table)
        return Answers(self._solver, self._max_flow, own, pairs, args)


def _with_device(solver: PairSolver, host: Seat, nbytes: int) -> places.Values:
    """The host alone if that is too little for the network."""
    try:
        return device_seat(solver, host, nbytes)
    except OutOfMemory:
        return host


@dataclass(frozen=True, slots=True)
class Values:
    """Writes rows of values alone."""

    network: Network
    pairs: ListedPairs
    seat: places.Values
    strings: bool
    """Whether amounts are decimal strings."""

    def __call__(self, block: range, control: Control) -> Iterator[bytes]:
        sources, sinks = self.pairs.sources[block.start : block.stop], self.pairs.sinks[block.start : block.stop]
        good = (sources >= 0) & (sinks >= 0) & (sources != sinks)
        values = np.zeros(len(block), np.int64)
        values[good], faults = self._solved(np.flatnonzero(good).tolist(), sources, sinks, control)
        literals = write_amounts(values, self.network.decimals).decode().split(",")
        quote = '"' if self.strings else ""
        names = zip(*self.pairs.names(self.network, block), strict=True)
        for i, (source, sink) in enumerate(names):
            told = f'{{"row":{block[i]},"source":{json.dumps(source)},"sink":{json.dumps(sink)}'
            if not good[i]:
                faults[i] = self.pairs.fault(self.network, block[i])
            elif values[i] == INFINITE:
                faults[i] = Unbounded("unlimited edges lead from the source to the sink", vertices=[source, sink])
            if i in faults:
                yield f'{told},"error":{json_writer.dumps(refused(faults[i]))}}}\n'.encode()
            else:
                yield f'{told},"value":{quote}{literals[i]}{quote}}}\n'.encode()

    def _solved(
        self, rows: list[int], sources: VertexArray, sinks: VertexArray, control: Control
    ) -> tuple[UnitArray, dict[int, EngineError | MemoryError]]:
        """The values of some rows of a block, and why a row has none: if one fails they are tried one by one."""
        try:
            return self.seat.values(sources[rows], sinks[rows], control), {}
        except Cancelled:
            raise
        except (EngineError, MemoryError) as error:
            if len(rows) == 1:
                return np.zeros(1, np.int64), {rows[0]: error}
        found: list[int] = []
        faults: dict[int, EngineError | MemoryError] = {}
        for row in rows:
            value, fault = self._solved([row], sources, sinks, control)
            found += value.tolist()
            faults |= fault
        return np.array(found, np.int64), faults


@dataclass(frozen=True, slots=True)
class Answers:
    """Writes rows with fields, each solved from zero by an engine of its own."""

    solver: Solver
    max_flow: MaxFlow
    graph: Graph
    pairs: ListedPairs
    args: PairsArgs

    def __call__(self, block: range, control: Control) -> Iterator[bytes]:
        for row in block:
            (source,), (sink,) = self.pairs.names(self.graph.network, range(row, row + 1))
            told: dict[str, object] = {"row": row, "source": source, "sink": sink}
            yield from row_or_refusal(told, self._row(told, row, control))
            yield b"\n"

    def _row(self, told: dict[str, object], row: int, control: Control) -> Iterator[bytes]:
        yield from json_writer.pieces(told | self._answer(row, control), strings=self.args.strings)

    def _answer(self, row: int, control: Control) -> dict[str, object]:
        graph, source, sink = self.graph, int(self.pairs.sources[row]), int(self.pairs.sinks[row])
        if source < 0 or sink < 0 or source == sink:
            raise self.pairs.fault(graph.network, row)
        if control.cancelled:
            raise Cancelled("cancelled between two rows")
        solved = graph.open(Terminals.of([source], [sink]), Kind.MAX_FLOW)
        try:
            answer = self.solver.solve(graph, solved, control, complete=True)
            found: dict[str, object] = {
                "value": answers.amount(graph.network, answer.report.value),
                "certificate": answers.certificate(graph.network, answer.certificate),
            }
            return found | self.max_flow.fields(graph, solved, self.args, control)
        finally:
            if solved.terminals.key in graph.states:
                graph.close(solved)
