"""What is made of a body, as work for a parser process: each task says first how much memory it may take.

Nothing here knows HTTP or Redis: a parser process imports this module, `gpu_engine.formats` and the models, no more.
"""

import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import BinaryIO, Final, Literal, Protocol

import numpy as np

from gpu_engine import formats
from gpu_engine.errors import InvalidNetwork
from gpu_engine.formats.reading import count_arrays, count_objects, json_bytes
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.rounding import AS_WRITTEN, Precision, Rounding
from gpu_engine.networks.validate import check
from service.api.bodies.arrow import PatchLimits, patch_bytes, patch_from_arrow
from service.errors import ServiceError
from service.models.body import parse_body
from service.models.capacities import Batch, OnMissing, PatchBody
from service.models.capacity_expansion import CapacityExpansionBody
from service.models.circulation import CirculationBody
from service.models.closure_study import ClosureStudyBody
from service.models.columns import MAX_LABEL_CHARS
from service.models.edges import EdgesBody
from service.models.flows import FlowField, MaxFlowBody
from service.models.matching import MatchingBody
from service.models.min_cost_flow import MinCostFlowBody
from service.models.parametric import ParametricBody
from service.models.partition import PartitionBody
from service.models.what_if import WhatIfBody, refuse_many
from service.protocol import (
    ARROW_TYPE,
    CapacityExpansionArgs,
    CirculationArgs,
    ClosureStudyArgs,
    EdgesArgs,
    Encoding,
    MatchingArgs,
    MaxFlowArgs,
    Message,
    MinCostFlowArgs,
    ParametricArgs,
    PartitionArgs,
    PatchArgs,
    Wanted,
    WhatIfArgs,
)

JSON: Final = "application/json"
OBJECT_BYTES: Final = 2_500
"""Bytes of memory for each object in a list of scenarios: its model, and what the worker gets of it."""
LIST_BYTES: Final = 200
"""Bytes of memory for each list of edges as a Python list."""
TAKEN_BY_CURL: Final = b"\n\r\0"
BEGINNING_BYTES: Final = 1 << 16
"""How many bytes at the beginning of a body are searched for `TAKEN_BY_CURL`: every longer file has one of them there,
in each format but JSON."""
JOB_LENGTH: Final = struct.Struct("<I")
"""The number that goes before a pickled `Job` on its way: how many bytes it has."""


class Task(Protocol):
    """Raises `ServiceError` and `EngineError` for what is refused."""

    def needed_bytes(self, body: memoryview) -> int:
        """Memory that `run` may take beside the body. Cheap, and takes none itself."""
        ...

    def run(self, body: memoryview, out: BinaryIO) -> None:
        """Write what the body becomes."""
        ...


@dataclass(frozen=True, slots=True)
class Job:
    """One body for a parser process."""

    task: Task
    memory_bytes: int
    """What it may take beside what the process has."""


@dataclass(frozen=True, slots=True)
class GraphTask:
    """PUT of a graph: parsed, checked, packed for the worker."""

    media_type: str
    limits: formats.Limits
    precision: Precision = AS_WRITTEN

    def needed_bytes(self, body: memoryview) -> int:
        with _telling_of_lost_bytes(body, self.media_type):
            return formats.reading_bytes(body, self.media_type, self.limits)

    def run(self, body: memoryview, out: BinaryIO) -> None:
        with _telling_of_lost_bytes(body, self.media_type):
            edges = formats.read(body, self.media_type, self.limits, self.precision)
        check(edges)
        _check_names(edges)
        formats.pack_into(edges, out)


@contextmanager
def _telling_of_lost_bytes(body: memoryview, media_type: str) -> Iterator[None]:
    """Add a hint to a refusal if the body has none of the bytes that `curl -d @FILE` removes from a file."""
    try:
        yield
    except InvalidNetwork as refusal:
        is_json = media_type == JSON or "it begins like JSON" in refusal.message  # which needs no ends of lines
        if is_json or not body or set(TAKEN_BY_CURL) & set(bytes(body[:BEGINNING_BYTES])):
            raise
        said = f"{refusal.message}; it has no ends of lines: curl -d takes them out of a file, --data-binary does not"
        raise type(refusal)(said, **refusal.where.members()) from refusal


@dataclass(frozen=True, slots=True)
class ArgsTask:
    """A body that becomes the arguments of a command."""

    read: Callable[[memoryview], Message]
    """A function of this module, or a partial of one: it goes to another process by its name."""
    needs: Callable[[memoryview], int]
    may_be_read_here: bool
    """Whether a short body takes so little memory that it is read without a process."""

    def needed_bytes(self, body: memoryview) -> int:
        return self.needs(body)

    def run(self, body: memoryview, out: BinaryIO) -> None:
        out.write(self.read(body).to_json())


def flow_task(fields: frozenset[FlowField], forms: Sequence[Encoding]) -> ArgsTask:
    """A question for a flow or a cut, answered with `fields` unless it asks for others, in the first of the `forms`
    that can show what it asks for."""
    return ArgsTask(partial(_flow_args, fields, forms), _json_bytes, may_be_read_here=True)


def matching_task(encoding: Encoding) -> ArgsTask:
    return ArgsTask(partial(_matching_args, encoding), _json_bytes, may_be_read_here=True)


def min_cost_task(encoding: Encoding) -> ArgsTask:
    return ArgsTask(partial(_min_cost_args, encoding), _json_bytes, may_be_read_here=True)


def what_if_task(max_rows: int, max_patch_rows: int, *, lines: bool, encoding: Encoding) -> ArgsTask:
    """A question with so many scenarios at most, answered in ``lines`` or as one object."""
    return ArgsTask(
        partial(_what_if_args, max_rows, max_patch_rows, lines, encoding), _scenario_bytes, may_be_read_here=True
    )


def closure_task(max_rows: int, max_patch_rows: int, *, lines: bool, encoding: Encoding) -> ArgsTask:
    """A closure study of so many candidates and edges at most, where they are named."""
    read = partial(_closure_args, max_rows, max_patch_rows, lines, encoding)
    return ArgsTask(read, _candidate_bytes, may_be_read_here=True)


def parametric_task(max_rows: int, encoding: Encoding) -> ArgsTask:
    """A question about so many edges at most."""
    return ArgsTask(partial(_parametric_args, max_rows, encoding), _json_bytes, may_be_read_here=True)


def expansion_task(max_rows: int, encoding: Encoding) -> ArgsTask:
    """A question about so many edges at most."""
    return ArgsTask(partial(_expansion_args, max_rows, encoding), _json_bytes, may_be_read_here=True)


def circulation_task(max_rows: int, encoding: Encoding) -> ArgsTask:
    """A question with so many lower bounds at most."""
    return ArgsTask(partial(_circulation_args, max_rows, encoding), _json_bytes, may_be_read_here=True)


def partition_task(max_rows: int, encoding: Encoding) -> ArgsTask:
    """A question with the weights of so many vertices at most."""
    return ArgsTask(partial(_partition_args, max_rows, encoding), _json_bytes, may_be_read_here=True)


@dataclass(frozen=True, slots=True)
class Beside:
    """What the headers and the query of a PATCH say beside its body."""

    if_match: Wanted | None = None
    solve: Literal["all", "none"] = "all"
    rounding: Rounding | None = None
    on_missing: OnMissing | None = None


def patch_task(
    media_type: str,
    limits: PatchLimits,
    beside: Beside,
    model: type[Batch] = PatchBody,
    encoding: Encoding = "json",
) -> ArgsTask:
    """A batch of changes; what it refuses with more than `limits` is counted where it is read."""
    is_arrow = media_type == ARROW_TYPE
    read = partial(patch_from_arrow, model, limits) if is_arrow else partial(_patch_from_json, model)
    args = partial(_patch_args, read, limits.max_rows, beside, encoding)
    return ArgsTask(args, partial(patch_bytes, limits) if is_arrow else _json_bytes, may_be_read_here=not is_arrow)


def edges_task(
    max_rows: int,
    if_match: Wanted | None,
    solve: Literal["all", "none"],
    rounding: Rounding | None,
    encoding: Encoding,
) -> ArgsTask:
    """A batch of at most so many insertions and deletions."""
    read = partial(_edges_args, max_rows, if_match, solve, rounding, encoding)
    return ArgsTask(read, _scenario_bytes, may_be_read_here=True)


def _patch_from_json(model: type[Batch], body: memoryview) -> Batch:
    return parse_body(model, body, model.COLUMNS)


def _flow_args(fields: frozenset[FlowField], forms: Sequence[Encoding], body: memoryview) -> MaxFlowArgs:
    question = parse_body(MaxFlowBody, body or b"{}")
    for encoding in forms[:-1]:
        with suppress(ServiceError):
            return question.args(fields, encoding)
    return question.args(fields, forms[-1])


def _matching_args(encoding: Encoding, body: memoryview) -> MatchingArgs:
    return parse_body(MatchingBody, body or b"{}").args(encoding)


def _min_cost_args(encoding: Encoding, body: memoryview) -> MinCostFlowArgs:
    return parse_body(MinCostFlowBody, body or b"{}").args(encoding)


def _what_if_args(max_rows: int, max_patch_rows: int, lines: bool, encoding: Encoding, body: memoryview) -> WhatIfArgs:
    question = parse_body(WhatIfBody, body or b"{}", look=partial(refuse_many, max_rows))
    asked = question.what_if_args(max_patch_rows, lines=lines)
    return asked.model_copy(update={"encoding": encoding})


def _closure_args(
    max_rows: int, max_patch_rows: int, lines: bool, encoding: Encoding, body: memoryview
) -> ClosureStudyArgs:
    asked = parse_body(ClosureStudyBody, body or b"{}").study_args(max_rows, max_patch_rows, lines=lines)
    return asked.model_copy(update={"encoding": encoding})


def _parametric_args(max_rows: int, encoding: Encoding, body: memoryview) -> ParametricArgs:
    asked = parse_body(ParametricBody, body or b"{}").parametric_args(max_rows)
    return asked.model_copy(update={"encoding": encoding})


def _expansion_args(max_rows: int, encoding: Encoding, body: memoryview) -> CapacityExpansionArgs:
    return parse_body(CapacityExpansionBody, body or b"{}").expansion_args(max_rows, encoding)


def _circulation_args(max_rows: int, encoding: Encoding, body: memoryview) -> CirculationArgs:
    return parse_body(CirculationBody, body or b"{}").circulation_args(max_rows, encoding)


def _partition_args(max_rows: int, encoding: Encoding, body: memoryview) -> PartitionArgs:
    return parse_body(PartitionBody, body or b"{}").partition_args(max_rows, encoding)


def _edges_args(
    max_rows: int,
    if_match: Wanted | None,
    solve: Literal["all", "none"],
    rounding: Rounding | None,
    encoding: Encoding,
    body: memoryview,
) -> EdgesArgs:
    args = parse_body(EdgesBody, body).args(if_match=if_match, solve=solve, max_rows=max_rows, rounding=rounding)
    return args.model_copy(update={"encoding": encoding})


def _patch_args(
    read: Callable[[memoryview], Batch],
    max_rows: int,
    beside: Beside,
    encoding: Encoding,
    body: memoryview,
) -> PatchArgs:
    args = read(body).args(
        if_match=beside.if_match,
        solve=beside.solve,
        max_rows=max_rows,
        rounding=beside.rounding,
        on_missing=beside.on_missing,
    )
    return args.model_copy(update={"encoding": encoding})


def _json_bytes(body: memoryview) -> int:
    """Twice what a graph's columns take: the values are written out again as well."""
    return 2 * json_bytes(body)


def _scenario_bytes(body: memoryview) -> int:
    """Scenarios and short operations are many small objects, which take more than columns do."""
    return _json_bytes(body) + OBJECT_BYTES * count_objects(body)


def _candidate_bytes(body: memoryview) -> int:
    """Candidates may be many short lists."""
    return _json_bytes(body) + LIST_BYTES * count_arrays(body)


def _check_names(edges: EdgeList) -> None:
    """Refuse names that no question or PATCH could name later, with the rows of the edges that have them."""
    for names, field in ((edges.edge_ids, "/edge_ids"), (edges.vertex_labels, None)):
        if names is None or isinstance(names, np.ndarray) or max(map(len, names), default=0) <= MAX_LABEL_CHARS:
            continue
        wrong = [at for at, name in enumerate(names) if len(name) > MAX_LABEL_CHARS]
        rows = wrong if field else np.flatnonzero(np.isin(edges.tail, wrong) | np.isin(edges.head, wrong)).tolist()
        where, found = f"row {rows[0]}: " if rows else "", names[wrong[0]]
        most = f"a label or an edge id has at most {MAX_LABEL_CHARS} characters"
        raise ServiceError("too_large", f"{where}{most}, and {found[:20]!r}... has {len(found)}", rows, field=field)
