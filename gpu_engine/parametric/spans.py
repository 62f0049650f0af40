"""The maximum flow at one factor after the other, each solved in what is left of the network between two that are
known: vertices that no minimum cut there divides (`gpu_engine.parametric.together`) are drawn together.

Where cuts only grow with the factor, or only shrink (`gpu_engine.checks.nested`), a vertex that is on the source side
at both ends of a span of factors is there all along it, and so is one on the sink side: Gallo, Grigoriadis, Tarjan, "A
fast parametric maximum flow algorithm", SIAM Journal on Computing 18 (1989), section 3.3.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, NamedTuple

import numpy as np

from gpu_engine.checks.nested import Way, way_of_cuts
from gpu_engine.checks.together import Drawn, End, Rows, known_sides, together_failures
from gpu_engine.cpu.engine import CpuEngine
from gpu_engine.errors import EngineError
from gpu_engine.networks.free import free_roles
from gpu_engine.networks.terminals import Terminals
from gpu_engine.parametric.curve import Point
from gpu_engine.parametric.links import (
    SINK,
    SOURCE,
    TERMINALS,
    Links,
    Whole,
    drawn_together,
    flow_within,
    whole_of,
)
from gpu_engine.parametric.probes import Answer, Prober, overflow
from gpu_engine.parametric.together import together
from gpu_engine.types import INFINITE_RESIDUAL, MAX_TOTAL, ArcArray, BoolArray, UnitArray, VertexArray

WORTH_IT: Final = 0.75
"""Vertices are contracted only where no more than this part of them, and of the arcs, is left. So all networks that
wait have no more than four times the vertices and the arcs of the whole one."""

ENDS: Final = Terminals.of([SOURCE], [SINK])


class Span(NamedTuple):
    """The factors between two at which the network was solved."""

    links: Links
    """The network that is left between these factors, or between two that lie farther apart."""
    first: End
    last: End


@dataclass(eq=False, slots=True)
class SpanProber:
    """Asks a `Prober` for the first two factors, and between these solves in spans.

    `gpu_engine.parametric.curve` asks: first for both ends, and then never to the left of what it is through with. One
    thread at a time.
    """

    prober: Prober
    _ends: list[Answer] = field(default_factory=list)
    _waiting: list[Span] = field(default_factory=list)
    """The spans that wait, from right to left."""
    _way: Way = Way.EITHER

    def __call__(self, factor: Fraction) -> Point:
        """The value at a factor, and the line of a minimum cut there. Raises as `Prober.__call__`, and `EngineError`
        where a proof fails. O(n + m), and a solve of the network that is left in the span."""
        while self._waiting and self._waiting[-1].last.factor <= factor:
            self._waiting.pop()
        if self._waiting and self._waiting[-1].first.factor < factor:
            return self._between(self._waiting.pop(), factor)
        answer = self.prober.ask(factor)
        if len(self._ends) < 2:
            self._ends.append(answer)
            if len(self._ends) == 2:
                self._begin(*sorted(self._ends, key=lambda end: end.point.factor))
        return answer.point

    def _begin(self, first: Answer, last: Answer) -> None:
        prober = self.prober
        network, ends, scaled = prober.network, prober.terminals, prober.scaled
        role = free_roles(network, ends)
        self._way = way_of_cuts(network, role, prober.rows, supply=scaled.supply, demand=scaled.demand)
        whole = whole_of(network, ends, prober.rows, supply=scaled.supply, demand=scaled.demand)
        if whole.links.total(0, 1) >= INFINITE_RESIDUAL:
            raise overflow(Fraction(1))
        self._waiting.append(Span(whole.links, _found(whole, first), _found(whole, last)))

    def _between(self, span: Span, factor: Fraction) -> Point:
        """The point of a factor inside a span. O(n + arcs) of the network that is left there, beside the solve."""
        span = self._narrowed(span)
        links, p, q = span.links, factor.numerator, factor.denominator
        if links.total(p, q) > MAX_TOTAL:
            raise overflow(factor)
        flow, side = self._flow(links, links.capacity(p, q))
        line = links.line(side)
        made = End(factor, line.at(factor), line, flow, side)
        self._waiting += Span(links, made, span.last), Span(links, span.first, made)
        return Point(factor, made.value, line)

    def _narrowed(self, span: Span) -> Span:
        """The span with its vertices contracted, if that is worth it. Raises `EngineError` if the proof of a
        contraction fails."""
        links, first, last = span
        label, k = together(links, first, last, *known_sides(self._way, first.side, last.side))
        if k > WORTH_IT * links.n_vertices:
            return span
        made, into = drawn_together(links, label, k)
        failures = together_failures(Rows(*links), first, last, self._way, Drawn(label, into, Rows(*made)))
        if failures:
            raise EngineError(f"what is left between two factors could not be proven: {'; '.join(failures)}")
        if len(made.head) > WORTH_IT * len(links.head):
            return span
        return Span(made, *(_drawn_end(end, made, label, into) for end in (first, last)))

    def _flow(self, links: Links, capacity: UnitArray) -> tuple[UnitArray, BoolArray]:
        """int64[arcs]: a maximum flow, proven, and bool[n]: the source side of the minimum cut nearest the source."""
        if links.n_vertices == TERMINALS + 1:
            return through_one(links, capacity)
        engine = CpuEngine(links.network(capacity), self.prober.room)
        state = engine.open(ENDS)
        value = self.prober.solve(engine, state, ENDS)
        cut = engine.cut(state)
        if cut.value != value:
            raise EngineError(f"between two factors a cut is {cut.value}, and the flow {value}")
        return engine.export(state)["flow"].astype(np.int64), cut.source_side


def through_one(links: Links, capacity: UnitArray) -> tuple[UnitArray, BoolArray]:
    """The maximum flow of a network with one vertex beside the source and the sink, and the source side of its nearest
    cut. What cannot leave the vertex stays there; it is on the source side if anything stays."""
    flow, tail = np.zeros_like(capacity), links.head[links.reverse_arc]
    ahead = (tail == SOURCE) | (links.head == SINK)
    flow[ahead] = capacity[ahead]
    flow[links.reverse_arc[ahead]] = -capacity[ahead]
    enters, leaves = (int(capacity[ahead & (end == TERMINALS)].sum()) for end in (links.head, tail))
    return flow, np.array([True, False, enters > leaves])


def _drawn_end(end: End, made: Links, label: VertexArray, into: ArcArray) -> End:
    side = np.zeros(made.n_vertices, np.bool_)
    side[label] = end.side
    return end._replace(flow=flow_within(end.flow, into, len(made.head)), side=side)


def _found(whole: Whole, answer: Answer) -> End:
    """The end of a span, from what was found in the whole network."""
    point, side = answer.point, np.zeros(whole.links.n_vertices, np.bool_)
    side[whole.label[TERMINALS:]] = answer.side
    side[SOURCE], side[SINK] = True, False
    flow = whole.flow(answer.flow, point.factor.numerator, point.factor.denominator)
    return End(point.factor, point.value, point.line, flow, side)
