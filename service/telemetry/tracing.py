"""Spans of the API and of the workers, joined by the `traceparent` that a command carries.

They cost nothing until OpenTelemetry is installed (the extra `otel`) and one of its own environment variables says
where spans go, as in OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318. Nothing is set globally.
"""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Final, Literal, Protocol

import structlog

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import Span as OtelSpan

CONFIGURED_BY: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
TRACEPARENT: Final = re.compile(r"00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")

Attribute = str | int | float | bool

log = structlog.get_logger(__name__)


class Span(Protocol):
    """Something that is being done."""

    @property
    def traceparent(self) -> str | None:
        """W3C trace context for what is done on its behalf elsewhere."""

    def note(self, **attributes: Attribute | None) -> None:
        """Add what is known by now; None says nothing. Names are put under `headrace.`."""

    def rename(self, name: str) -> None: ...

    def failed(self, code: str) -> None: ...


class Tracing(Protocol):
    """What the API and the workers ask of tracing, whether it is on or off."""

    def span(
        self, name: str, kind: Literal["server", "consumer"], parent: str | None
    ) -> AbstractContextManager[Span]: ...

    def close(self) -> None:
        """Send what is left."""


class NoSpan:
    """A span that is not recorded. It hands its parent on, so that a trace through untraced processes stays whole."""

    def __init__(self, parent: str | None) -> None:
        self.traceparent = parent

    def note(self, **attributes: Attribute | None) -> None: ...

    def rename(self, name: str) -> None: ...

    def failed(self, code: str) -> None: ...


class NoTracing:
    def span(self, name: str, kind: Literal["server", "consumer"], parent: str | None) -> AbstractContextManager[Span]:
        return nullcontext(NoSpan(parent))

    def close(self) -> None: ...


class OtelTracing:
    """Batches spans and exports them in a thread of its own. Raises ImportError without the extra `otel`."""

    def __init__(self, process: str, exporter: "SpanExporter | None" = None) -> None:
        from opentelemetry.context import Context
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.trace import SpanKind
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        name = os.environ.get("OTEL_SERVICE_NAME", "headrace")
        resource = Resource.create({"service.name": name, "service.instance.id": process})
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(exporter or OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("headrace")
        self._context = TraceContextTextMapPropagator()
        self._outside = Context()
        self._kinds = {"server": SpanKind.SERVER, "consumer": SpanKind.CONSUMER}

    @contextmanager
    def span(self, name: str, kind: Literal["server", "consumer"], parent: str | None) -> Iterator[Span]:
        # One without a parent begins a trace, also while a worker answers several commands together.
        context = self._context.extract({} if parent is None else {"traceparent": parent}, self._outside)
        with self._tracer.start_as_current_span(name, context, self._kinds[kind]) as span:
            carrier: dict[str, str] = {}
            self._context.inject(carrier)
            yield _OtelSpan(span, carrier.get("traceparent"))

    def close(self) -> None:
        self._provider.shutdown()


class _OtelSpan:
    def __init__(self, span: "OtelSpan", traceparent: str | None) -> None:
        self._span = span
        self.traceparent = traceparent

    def note(self, **attributes: Attribute | None) -> None:
        for name, value in attributes.items():
            if value is not None:
                self._span.set_attribute(f"headrace.{name}", value)

    def rename(self, name: str) -> None:
        self._span.update_name(name)

    def failed(self, code: str) -> None:
        from opentelemetry.trace import StatusCode

        self._span.set_status(StatusCode.ERROR, code)


def open_tracing(process: str, environment: Mapping[str, str] = os.environ) -> Tracing:
    """What the environment asks for; asked for but not installed, it is left out with a warning."""
    wanted = any(environment.get(name) for name in CONFIGURED_BY)
    if not wanted or environment.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return NoTracing()
    try:
        return OtelTracing(process)
    except ImportError as error:
        log.warning("no_tracing", error=str(error), hint="install headrace-server[otel]")
        return NoTracing()


def read_traceparent(header: str | None) -> str | None:
    """The header if it has the form of W3C trace context, else None."""
    return header if header and TRACEPARENT.fullmatch(header) else None
