"""The least of finitely many lines, found by asking for its value and a line at one place at a time.

The capacity of a cut is a line in the factor, so the value of a maximum flow is the least of such lines: concave, and
linear between breakpoints. Eisner and Severance, "Mathematical techniques for efficient record segmentation in large
shared databases", Journal of the ACM 23 (1976): ask where the lines of both ends of an interval meet. If the value
there is theirs, it is a breakpoint, and the interval has two segments; else the line of a minimum cut there is a new
one, and both parts are looked at alike. Each answer finds a line or proves a breakpoint: about two for each segment.
Gallo, Grigoriadis and Tarjan, "A fast parametric maximum flow algorithm", SIAM Journal on Computing 18 (1989), section
3.3, do the same where the scaled edges are those of the terminals.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

PROBES_A_SEGMENT: Final = 4
PROBES_BESIDE: Final = 200
"""The search ends after `PROBES_A_SEGMENT` solves for each segment that was asked for, and `PROBES_BESIDE` more. Two
solves find a segment in the mean. The first segment takes more, as Newton's method needs a number of steps that grows
with the logarithm of the amounts."""


@dataclass(frozen=True, slots=True)
class Line:
    """``constant + rate * factor``, in units."""

    constant: int
    rate: int

    def at(self, factor: Fraction) -> Fraction:
        return self.constant + self.rate * factor


@dataclass(frozen=True, slots=True)
class Point:
    """A factor at which the value is known, and a line that has the value there and lies below it nowhere."""

    factor: Fraction
    value: Fraction
    line: Line


@dataclass(frozen=True, slots=True)
class Curve:
    """Segment i has ``lines[i]`` from ``factors[i]`` to ``factors[i + 1]``."""

    factors: tuple[Fraction, ...]
    lines: tuple[Line, ...]
    complete: bool
    """False if the last segment ends before the end of the range that was asked for."""
    probes: int
    """At how many factors the network was solved."""


Probe = Callable[[Fraction], Point]
"""Solves the network at one factor, and tells the value with its line there."""
Told = Callable[[int, float], None]
"""Is called with the number of segments so far and the share of the range that they cover."""


def curve(probe: Probe, first: Fraction, last: Fraction, limit: int, tell: Told = lambda _, __: None) -> Curve:
    """The value from ``first`` to ``last``, in at most ``limit`` segments, from left to right.

    The ends of every segment are places where ``probe`` has told the value, and there its line has it. A concave
    function that a line bounds from above and meets at both ends of a segment is that line between them.
    """
    at, waiting = probe(first), [probe(last)]
    factors, lines, probes = [first], list[Line](), 2
    while waiting:
        to = waiting[-1]
        if to.line.at(at.factor) == at.value:
            line = to.line
        elif at.line.at(to.factor) == to.value:
            line = at.line
        elif probes >= PROBES_A_SEGMENT * limit + PROBES_BESIDE:
            break
        else:
            waiting.append(_between(probe, at, to))
            probes += 1
            continue
        if lines and lines[-1] == line:
            factors[-1] = to.factor
        elif len(lines) == limit:
            break
        else:
            lines.append(line)
            factors.append(to.factor)
        at = waiting.pop()
        tell(len(lines), float((at.factor - first) / (last - first)))
    return Curve(tuple(factors), tuple(lines), not waiting, probes)


def _between(probe: Probe, at: Point, to: Point) -> Point:
    """The point where the lines of two points intersect. They do so between the points, because each line is above the
    value of the other point."""
    factor = Fraction(to.line.constant - at.line.constant, at.line.rate - to.line.rate)
    found = probe(factor)
    return Point(factor, found.value, at.line) if found.value == at.line.at(factor) else found
