"""Tracing: nothing when it is not asked for, W3C trace context when it is."""

import sys

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from service.telemetry.tracing import NoTracing, OtelTracing, open_tracing, read_traceparent

CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
ASKED = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}


def test_nothing_is_loaded_unless_asked_for() -> None:
    assert isinstance(open_tracing("api", {}), NoTracing)
    assert isinstance(open_tracing("api", ASKED | {"OTEL_SDK_DISABLED": "true"}), NoTracing)


def test_asked_for_but_not_installed_is_no_reason_not_to_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    assert isinstance(open_tracing("api", ASKED), NoTracing)


def test_an_untraced_process_hands_the_context_on() -> None:
    with NoTracing().span("x", "server", CALLER) as span:
        span.note(a=1)
        span.failed("code")
        assert span.traceparent == CALLER


@pytest.mark.parametrize("header", [None, "", "x", CALLER.upper(), CALLER + "-x", CALLER + "\n", "01" + CALLER[2:]])
def test_a_context_of_another_form_is_none(header: str | None) -> None:
    assert read_traceparent(header) is None
    assert read_traceparent(CALLER) == CALLER


def test_a_span_without_a_parent_begins_a_trace() -> None:
    """Also one within another: a worker answers several commands together."""
    exporter = InMemorySpanExporter()
    worker = OtelTracing("cpu-0", exporter)
    with worker.span("first", "consumer", CALLER), worker.span("second", "consumer", None):
        pass
    worker.close()
    parents = {span.name: span.parent and f"{span.parent.span_id:016x}" for span in exporter.get_finished_spans()}
    assert parents == {"first": CALLER[36:52], "second": None}


def test_spans_of_two_processes_are_one_trace() -> None:
    exporters = InMemorySpanExporter(), InMemorySpanExporter()
    api, worker = OtelTracing("api", exporters[0]), OtelTracing("cpu-0", exporters[1])
    with api.span("GET", "server", CALLER) as outer:
        with worker.span("patch", "consumer", outer.traceparent) as inner:
            inner.note(graph="city", code=None)
            inner.failed("unknown_edge")
        outer.rename("GET /x")
    api.close()
    worker.close()
    by_name = {span.name: span for exporter in exporters for span in exporter.get_finished_spans()}
    assert by_name.keys() == {"GET /x", "patch"}
    assert {f"{span.context.trace_id:032x}" for span in by_name.values() if span.context} == {CALLER[3:35]}
    child, parent = by_name["patch"], by_name["GET /x"]
    assert child.parent is not None
    assert parent.context is not None
    assert child.parent.span_id == parent.context.span_id
    assert dict(child.attributes or {}) == {"headrace.graph": "city"}
    assert child.status.description == "unknown_edge"
