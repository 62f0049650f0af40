"""Counters of one API process and their Prometheus text."""

from collections import Counter
from collections.abc import Iterable, Mapping

from starlette.types import Scope

Sample = tuple[Mapping[str, str], float]


class Metrics:
    """Requests by method, route and status; seconds by method and route. Bounded: routes are templates."""

    def __init__(self) -> None:
        self.in_flight = 0
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._seconds: Counter[tuple[str, str]] = Counter()

    def observe(self, scope: Scope, status: int, elapsed_s: float) -> None:
        route = getattr(scope.get("route"), "path", "none")
        method = scope["method"] if route != "none" else "none"  # methods are the caller's to invent
        self._requests[method, route, status] += 1
        self._seconds[method, route] += elapsed_s  # type: ignore[assignment]  # Counter adds floats as well

    def families(self) -> str:
        requests = (({"method": m, "route": r, "status": str(s)}, float(n)) for (m, r, s), n in self._requests.items())
        seconds = (({"method": m, "route": r}, float(s)) for (m, r), s in self._seconds.items())
        return "".join(
            (
                family("headrace_requests_total", "counter", "Requests answered.", requests),
                family("headrace_request_seconds_total", "counter", "Time spent on requests.", seconds),
                family("headrace_requests_in_flight", "gauge", "Requests now.", [({}, self.in_flight)]),
            )
        )


def family(name: str, kind: str, text: str, samples: Iterable[Sample]) -> str:
    """One metric family in the Prometheus text format, version 0.0.4."""
    lines = [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
    for labels, value in samples:
        inner = ",".join(f'{key}="{_escape(label)}"' for key, label in labels.items())
        lines.append(f"{name}{{{inner}}} {value:.17g}" if inner else f"{name} {value:.17g}")
    return "\n".join(lines) + "\n"


def _escape(label: str) -> str:
    return label.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
