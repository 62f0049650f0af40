"""Which closure costs most: every candidate is closed by itself, unless the flow shows that it cannot matter."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Final

import numpy as np

from gpu_engine.control import Control
from gpu_engine.engine import Cut
from gpu_engine.errors import Cancelled, EngineError, OutOfMemory
from gpu_engine.footprint import Footprint
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.networks.updates import Change
from gpu_engine.trials import Trials
from gpu_engine.types import UnitArray
from service.protocol import ClosureStudyArgs, Kind
from service.store.jobs.record import Result
from service.worker import answers, json_writer
from service.worker.copies import Copies
from service.worker.graph import Answer, Graph, Solved
from service.worker.questions import flows
from service.worker.questions.closing import (
    CARRIES_NOTHING,
    COLD,
    UNCHANGED,
    WARM,
    Candidates,
    Found,
    Indices,
    Ranking,
    certain_nbytes,
)
from service.worker.questions.closing_vertices import VertexCandidates
from service.worker.questions.supposed import Supposed, Supposer
from service.worker.questions.terminals import read_terminals
from service.worker.running.costs import rows_s
from service.worker.running.rows import TEXTS_KEPT, RowRunner, Sheet, side_by_side
from service.worker.running.task import Rest, Task
from service.worker.solving import Solver
from service.worker.time_limit import time_limit

BLOCK: Final = 64
"""How many candidates are tried before their results decide which ones come next."""

FIRST: Final = 256
"""So many candidates are tried before those that need no trial are looked for: most studies of a few rows have ended
by then."""

LOOK_S: Final = 1e-6
"""Seconds for each vertex and arc of the network that such a look takes, about. It is left out where all the trials to
come are expected to take less."""

CANDIDATE_BYTES: Final = 100
"""Bytes of memory for each candidate: its bounds, its result and its name."""

MODES: Final = {UNCHANGED: "unchanged", WARM: "warm", COLD: "cold"}


class ClosureStudy:
    """Answers the command CLOSURE_STUDY: in the lane of the graph as far as the flow, which says in what order the
    candidates are tried, and beside the lane from there on."""

    def __init__(self, copies: Copies, solver: Solver, supposer: Supposer, runner: RowRunner) -> None:
        self._copies = copies
        self._solver = solver
        self._supposer = supposer
        self._runner = runner

    def __call__(self, task: Task) -> Rest:
        args, began = ClosureStudyArgs.model_validate(task.command.args), time.perf_counter()
        with time_limit(task.control, args.time_limit_s), ExitStack() as stack:
            graph = self._copies.at_least(task.command.graph, args.min_version, limited=True)
            terminals = read_terminals(graph.network, args)
            base, _, _ = self._solver.ask(
                task, graph, terminals, lambda _: {}, began, complete=True, kind=Kind.MAX_FLOW
            )
            solved = graph.states[terminals.key]
            candidates = self._candidates(graph, solved, args, task.control)
            more = Footprint(candidates.nbytes + CANDIDATE_BYTES * len(candidates))
            self._solver.make_room(graph, more, but=solved)
            flow = self._flow(graph, solved, task.control)
            ranking = Ranking(base.report.value, candidates.carried(graph.network, flow, base.report.value), args.most)
            alike = candidates.alike(graph.network, terminals)
            looks = self._looks(graph, candidates, ranking)
            shows: UnitArray | None = flow
            try:
                supposed = self._supposer.suppose(stack, task, graph, solved, more + looks, trials=True)
            except OutOfMemory:  # each is tried then, unless even that takes too much
                shows = None
                supposed = self._supposer.suppose(stack, task, graph, solved, more, trials=True)
            study = Study(self._solver, supposed, terminals, base, candidates, ranking, alike, args.strings, shows)
            used_s = time.perf_counter() - began
            work = partial(self._studied, task, study, args, answers.about(graph), used_s)
            return Rest(work, stack.pop_all().close, rows_s(len(candidates), graph.network.n_arcs))

    def _candidates(self, graph: Graph, solved: Solved, args: ClosureStudyArgs, control: Control) -> Candidates:
        if args.close == "vertices":
            return self._vertices(graph, solved, args, control)
        if args.candidates == "all":
            return Candidates.single(graph.network.live(np.arange(graph.network.n_edges)))
        if args.candidates == "cut":
            return Candidates.single(self._cut(graph, solved, control).edges)
        try:
            return Candidates.named(graph.table, args.candidates)
        except EngineError as error:
            error.where = type(error.where)(edges=error.where.edges, field="/candidates")
            raise

    def _vertices(self, graph: Graph, solved: Solved, args: ClosureStudyArgs, control: Control) -> Candidates:
        network, terminals = graph.network, solved.terminals
        room = partial(self._solver.make_room, graph, but=solved)
        if args.candidates == "all":
            return VertexCandidates.all_but(network, terminals, room)
        if args.candidates == "cut":
            return VertexCandidates.of_cut(network, self._cut(graph, solved, control), terminals, room)
        return VertexCandidates.named_vertices(network, args.candidates, room)

    def _cut(self, graph: Graph, solved: Solved, control: Control) -> Cut:
        return self._solver.giving_way(graph, lambda: graph.engine.cut(solved.state, control), but=solved)

    def _flow(self, graph: Graph, solved: Solved, control: Control) -> UnitArray:
        read = partial(flows.read_proven, graph, solved, control, self._solver.count_failure, acyclic=True)
        flow, _ = self._solver.giving_way(graph, read, but=solved)
        return flow

    def _looks(self, graph: Graph, candidates: Candidates, ranking: Ranking) -> Footprint:
        """What it takes to look for candidates that need no trial, if there may be many to try."""
        if len(ranking.order) <= first_of(ranking.top):
            return Footprint()
        return Footprint(8 * graph.network.n_edges + certain_nbytes(graph.network, candidates))

    def _studied(
        self, task: Task, study: "Study", args: ClosureStudyArgs, about: dict[str, object], used_s: float
    ) -> Result:
        graph = study.supposed.graph
        with time_limit(task.control, args.time_limit_s, used_s):
            study.run(task)
            ranked = study.ranking.ranked
            sheet = Sheet(
                about | study.head(),
                len(ranked),
                args.lines,
                graph.version,
                graph.generation,
                block_rows=1000,
                tells=False,
                strings=study.strings,
            )
            return self._runner.run(task, sheet, [partial(study.rows, ranked)])


@dataclass(eq=False, slots=True)
class Study:
    """One question, from the order of its candidates to the text of its answer."""

    solver: Solver
    supposed: Supposed
    terminals: Terminals
    base: Answer
    candidates: Candidates
    ranking: Ranking
    alike: Indices
    """int64[k]: a number that candidates of the same effect share, of which only one is tried; -1 for all others."""
    strings: bool
    """Whether amounts are decimal strings."""
    shows: UnitArray | None
    """The flow int64[m] that may show what candidates cost, until it has; None where there is no memory to look."""
    known: UnitArray = field(init=False)
    """int64[k]: how much the closure of each candidate is known to cost, -1 where that is not known before it is
    tried."""
    _tried: dict[int, tuple[int, int, bool]] = field(default_factory=dict)
    """What one of those that are alike has come to, what was done for it, and whether everything was looked at."""
    _done: bool = False
    _text: Callable[[int, int, bool], str] = field(init=False)
    """`said_of`, of which `TEXTS_KEPT` are kept; most rows say the same."""

    def __post_init__(self) -> None:
        said = partial(said_of, self.supposed.graph.network, self.base.report.value, self.strings)
        self._text = lru_cache(TEXTS_KEPT)(said)
        self.known = np.full(len(self.candidates), -1, np.int64)

    def run(self, task: Task) -> None:
        """Try candidates until no other can be among the best. Raises `Cancelled`."""
        if self._done:  # the answer could not be kept, and is written again
            return
        order, first = self.ranking.order, first_of(self.ranking.top)
        task.row(0, len(order))
        began = time.perf_counter()
        if self._try(task, order, range(min(first, len(order)))) and first < len(order):
            network, took_s = self.supposed.graph.network, time.perf_counter() - began
            if not first or took_s / first * (len(order) - first) > LOOK_S * (network.n_vertices + network.n_arcs):
                self._look(task.control)
            self._try(task, order, range(first, len(order)))
        task.row(len(order), len(order))
        self._done = True

    def _try(self, task: Task, order: Indices, which: range) -> bool:
        """Try these candidates, block by block; False if neither the rest of them nor any behind them matter."""
        blocks = [which[at : at + BLOCK] for at in range(0, len(which), BLOCK)]
        makers = [partial(self._block, order, trials) for trials in self.supposed.trials or (None,)]
        with closing(side_by_side(task.control, blocks, makers)) as found:
            for block, made in zip(blocks, found, strict=True):
                if made is None:
                    return False
                self.ranking.note(*made)
                self.supposed.settle()
                task.row(block.stop, len(order))
        return True

    def _look(self, control: Control) -> None:
        """Find what candidates cost that need not be tried, as the flow shows."""
        flow, self.shows = self.shows, None
        if flow is None:
            return
        network, candidates, ranking = self.supposed.graph.network, self.candidates, self.ranking
        if self.supposed.graph.vertices is None:  # else a way round an edge may lead through a vertex that is full
            self.known[candidates.costless(network, flow, control)] = 0
        certain = candidates.certain(network, self.terminals, flow, ranking.base, ranking.most, control)
        self.known[certain] = ranking.most[certain]

    def _block(self, order: Indices, trials: Trials | None, block: range, control: Control) -> Found | None:
        """What the candidates of a block come to; None if neither they nor any behind them matter."""
        chosen = self.ranking.mattering(order[block.start : block.stop])
        if not len(chosen):
            return None
        value, done = self.ranking.base - self.known[chosen], np.full(len(chosen), WARM, np.int8)
        complete, left = np.zeros(len(chosen), np.bool_), self.known[chosen] < 0
        grouped = np.flatnonzero(left & (self.alike[chosen] >= 0)).tolist()
        groups, here = self.alike[chosen].tolist(), set[int]()
        for i in grouped:
            left[i] = groups[i] not in self._tried and groups[i] not in here
            here.add(groups[i])
        new = set(np.flatnonzero(left).tolist())
        if trials is not None and left.any():
            some = np.flatnonzero(left)
            tried = trials.run(self.candidates.closing(chosen[some]), control)
            value[some], done[some], left[some] = tried.value, np.where(tried.warm, WARM, UNCHANGED), ~tried.done
        for i in np.flatnonzero(left).tolist():
            answer = self._closed(int(chosen[i]), control)
            value[i], complete[i] = answer.report.value, answer.certificate.complete
            done[i] = next(mark for mark, mode in MODES.items() if mode == answer.report.mode.value)
        for i in grouped:
            if i in new:
                self._tried[groups[i]] = int(value[i]), int(done[i]), bool(complete[i])
            else:
                value[i], done[i], complete[i] = self._tried[groups[i]]
        return chosen, value, done, complete

    def _closed(self, candidate: int, control: Control) -> Answer:
        """One candidate as an overlay, which may take long."""
        if control.cancelled:
            raise Cancelled("cancelled between two closures")
        with self.supposed.lock:
            graph, rows = self.supposed.graph, self.candidates.edges(candidate)
            change = Change(rows, np.zeros(len(rows), np.int64), np.ones(len(rows), np.bool_))
            with self.supposed.supposition.under(change, self.terminals) as solved:
                return self.solver.solve(graph, solved, control)

    def head(self) -> dict[str, object]:
        """What is answered beside the rows."""
        network, base = self.supposed.graph.network, self.base
        return {
            "base": {
                "value": answers.amount(network, base.report.value),
                "mode": base.report.mode.value,
                "engine": base.report.engine,
                "certificate": answers.certificate(network, base.certificate),
            },
            "candidates": len(self.candidates),
            "solved": len(self.candidates) - self.ranking.skipped,
            "skipped": self.ranking.skipped,
            "skipped_at_most": answers.amount(network, self.ranking.skipped_at_most),
        }

    def rows(self, ranked: Indices, block: range, control: Control) -> Iterator[bytes]:
        """These rows of the answer."""
        network, ranking = self.supposed.graph.network, self.ranking
        lines: list[str] = []
        for i in ranked[block.start : block.stop].tolist():
            of, names = self.candidates.told(network, i)
            said = self._text(int(ranking.value[i]), int(ranking.done[i]), bool(ranking.complete[i]))
            closed = json.dumps(names, separators=(",", ":"))
            lines.append(f'{{"row":{i},"{of}":{closed},{said}')
        yield "".join(lines).encode()


def first_of(top: int | None) -> int:
    """How many candidates are tried before those that need no trial are looked for: none where many rows are asked
    for."""
    return 0 if top is None or top > BLOCK else FIRST


def said_of(network: Network, base: int, strings: bool, value: int, done: int, complete: bool) -> str:
    """What a row says beside what it closes, for a closure that leaves this ``value`` of ``base``, both in units."""
    amount = answers.amount(network, value)
    said: dict[str, object] = {"value": amount, "loss": answers.amount(network, base - value)}
    if done != CARRIES_NOTHING:
        proof = {"valid": True, "complete": complete, "value": amount, "flow_across_cut": amount}
        said |= {"mode": MODES[done], "certificate": proof}
    return json_writer.dumps(said, strings=strings)[1:] + "\n"
