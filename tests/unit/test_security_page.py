"""docs/security.md is true: its tests are there, its limits are those of the code."""

import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from gpu_engine import paths
from gpu_engine.formats import FREE_BYTES
from gpu_engine.formats import _arrow_check as arrow_check
from gpu_engine.networks import coordinates
from service.api import accept, headers, questions
from service.api.app import create_app
from service.api.bodies import arrow, encodings, parsing
from service.api.bodies import receive as bodies
from service.api.guards import admission, refusals, shares, shields, wrong_keys
from service.api.headers import REQUEST_ID
from service.api.http import chunks as http_chunks
from service.api.http import closing as http_closing
from service.api.http import connections as http_connections
from service.api.http import protocol as http_protocol
from service.api.http import server as http_server
from service.api.replies import repeats, sending
from service.api.routes import graphs, sessions, status_page
from service.models import bottlenecks, closure_study, columns, numbers, parametric, partition, webhooks, what_if
from service.models import flows as models
from service.models.capacities import MAX_OPERATIONS
from service.models.watches import WATCH_NAME
from service.models.webhooks import WEBHOOK_NAME
from service.models.what_if import WhatIfBody
from service.queue import dispatcher, grouped, replies
from service.settings import Settings
from service.store import graphs as listed
from service.store import room
from service.store.api_keys import MAX_KEYS
from service.store.blobs import READ_AT_ONCE, RESULT_CHUNK_BYTES
from service.store.feed import left as feed_left
from service.store.feed import reading as feed_reading
from service.store.feed import record as feed_record
from service.store.feed import writing as feed_writing
from service.store.hooks import hooks
from service.store.jobs import listing, transitions
from service.store.sessions import SESSION_S, SESSIONS_OF_A_KEY
from service.webhooks import courier, metered, posting, targets
from service.worker import answers, watch_events
from service.worker.graph import MAX_KNOWN, MAX_STATES
from service.worker.membership import heartbeat
from service.worker.questions.partition import MAX_PARTITIONS
from service.worker.running import drafts, lanes, results, rows, together, tries

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text()

FIXED = {
    "body of a question about a graph": questions.MAX_QUESTION_BYTES,
    "bytes of the rows of one answer of `what-if`, `closure-study` or `pairs`": rows.MOST_BYTES,
    "candidates that an answer of `closure-study` lists, unless it lists all": closure_study.MAX_TOP,
    "segments of one `parametric`": parametric.MAX_SEGMENTS,
    "parts of one `partition`": partition.MAX_PARTS,
    "partitions kept of one graph": MAX_PARTITIONS,
    "bottlenecks that are solved without a limit, `up_to`": bottlenecks.MAX_UP_TO,
    "forms named in `Accept` that are looked at": accept.MAX_RANGES,
    "characters of the `crs` of coordinates": coordinates.MAX_CRS_CHARS,
    "body of `:estimate`": graphs.MAX_SMALL_BODY_BYTES,
    "time for a body, after the first 30 s": bodies.MIN_BYTES_PER_S,
    "body of a watch, or of a webhook": graphs.MAX_SMALL_BODY_BYTES,
    "memory of the events of one graph": feed_writing.FEED_BYTES,
    "pages of older events that an API process reads at once for readers who come back": feed_reading.PAGES_AT_ONCE,
    "edges in each list of an event": watch_events.IDS_TOLD,
    "edges of a cut that are compared one by one": feed_record.MAX_CUT_KEPT,
    "how long the watches and events of a deleted graph are kept": feed_writing.ORPHANED_TTL_S,
    "deleted graphs whose events are kept so long, unless they have watches or a webhook": feed_left.MOST_LEFT,
    "graphs of one webhook": webhooks.MAX_GRAPHS,
    "deliveries to one webhook that wait": hooks.MOST_PENDING,
    "deliveries to one webhook that were given up and are kept": hooks.MOST_DEAD,
    "webhooks that are sent to at a time": courier.AT_ONCE,
    "time for one try to deliver": posting.TRY_S,
    "bytes of an answer to a delivery that are read": metered.MAX_HEAD_BYTES,
    "characters of a label or an edge id": columns.MAX_LABEL_CHARS,
    "sources, sinks, left vertices of one question": models.MAX_TERMINALS,
    "sources, and sinks, of each flow state that the answer of an update lists": answers.TERMINALS_SHOWN,
    "graphs in one answer of `GET /v1/graphs`": listed.MAX_LISTED,
    "graphs in one answer of `/status`": status_page.GRAPHS_SHOWN,
    "paths in one answer": models.MAX_PATHS,
    "edges of all paths in one answer, if the graph has no more": paths.MOST_EDGES,
    "members of a JSON object": numbers.MAX_MEMBERS,
    "operations of one `batch`": MAX_OPERATIONS,
    "characters of the id of a scenario": columns.MAX_LABEL_CHARS,
    "characters of the URL of a webhook": targets.MAX_URL_CHARS,
    "zstd window": encodings.MAX_WINDOW_BYTES,
    "bytes for each byte of a compressed body, beyond the first 8 MiB": encodings.MAX_EXPANSION,
    "messages of an Arrow stream": arrow_check.MAX_MESSAGES,
    "columns of an Arrow stream": arrow_check.MAX_COLUMNS,
    "head of an Arrow message": arrow_check.MAX_HEAD_BYTES,
    "words of a dictionary in an Arrow PATCH, written out": arrow.MAX_WORDS_BYTES,
    "body of JSON that the event loop reads itself": parsing.HERE_BYTES,
    "bodies read at a time by one API process": parsing.PROCESSES,
    "of those, such as take 64 MiB or more": parsing.LONG,
    "memory of a parser process over what was told of its body": parsing.SLACK_BYTES,
    "time to read a body": parsing.READ_S,
    "replies kept by one API process": replies.HELD_BYTES,
    "flow states kept of one graph": MAX_STATES,
    "keys of updates that a worker remembers for a graph in memory": MAX_KNOWN,
    "the same once it has been full, until the graph is idle at times": admission.BUSY,
    "or as many as are over within, once it has been full": admission.AHEAD_S,
    "refusals a second for full graphs and keys, further ones being held back": refusals.PER_S,
    "how long a refusal is held back": refusals.HELD_S,
    "refusals held back at a time": refusals.HELD,
    "slots for short work alone, which is expected to take 100 ms": lanes.SPARE,
    "slots for such questions that are short: all rows 100 ms, each 1 ms and 0.1 µs for each arc": lanes.SPARE,
    "time in such a slot, after which the work is long": lanes.SHORT_S,
    "works that have been found to be long at a time, beyond the slots for long work": lanes.OVERRUNS,
    "time without a sign of life of a worker that runs": heartbeat.HUNG_S,
    "bytes of unfinished commands of over 4 KiB, at one API process; one alone may have more": shares.QUEUED_BYTES,
    "of these, of the event streams, and of the bytes of unfinished commands, with one API key": 1 / shares.KEY_SHARE,
    "connections of one API process, or as many as its open files allow": http_connections.MAX_CONNECTIONS,
    "head of a request": http_protocol.MAX_HEAD_BYTES,
    "URL of a request": http_protocol.MAX_URL_BYTES,
    "headers of a request": http_protocol.MAX_HEADERS,
    "time for a head, or a TLS handshake": http_protocol.HEAD_TIMEOUT_S,
    "scrapes of `/metrics` at a time beside them": shields.SCRAPES,
    "time for the next request on a connection": http_server.KEEP_ALIVE_S,
    "line before a chunk of a body": http_chunks.MAX_LENGTH_LINE,
    "lines behind the last chunk": http_chunks.MAX_TRAILER_BYTES,
    "bytes of an answer handed over at once": sending.PIECE_BYTES,
    "time for them to be taken": http_protocol.WRITE_TIMEOUT_S,
    "bytes of a body that come after its answer": http_protocol.MAX_UNREAD_BYTES,
    "time for a caller to read the refusal of what is no HTTP, and to close": http_closing.LINGER_S,
    "jobs kept": dispatcher.JOBS_KEPT,
    "pieces of stored results read from Redis at a time by one API process": READ_AT_ONCE,
    "bytes of results kept by one worker, beside the latest one": results.RESULTS_BYTES,
    "lines of a question that failed behind its first row, kept for those who are reading them": drafts.LEFT_S,
    "jobs looked at for one page of `GET /v1/jobs`": listing.LOOKED_AT,
    "operations of all scenarios of one `what-if`, for each of `max_question_rows`": what_if.OPERATIONS_PER_ROW,
    "progress events of a job": transitions.EVENTS_KEPT,
    "memory of Redis kept for what frees it, where `maxmemory` is set": room.RESERVE_LEAST_BYTES >> 20,
    "deliveries of a command": tries.MAX_ATTEMPTS,
    "commands that one API process queues together": grouped.AT_ONCE,
    "bytes of a command that is queued together with others": grouped.SHORT_BYTES,
    "short questions of one graph that are answered together": together.MOST,
    "time after which no further one of these begins": together.LONGEST_S,
    "API keys, revoked included": MAX_KEYS,
    "sessions of one API key": SESSIONS_OF_A_KEY,
    "life of a session": SESSION_S,
    "unchanged answers kept by one API process, for a second, of 64 KiB at most each": repeats.HELD_BYTES,
    "wrong keys typed a second at the log-in page of one API process": wrong_keys.PER_S,
    "and as many more in a moment": wrong_keys.AT_ONCE,
    "form of the log-in page": sessions.MAX_FORM_BYTES,
}
NO_LIMITS = {"port", "workers", "lease_s", "snapshot_every_updates", "snapshot_every_s"}
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def table(heading: str) -> list[list[str]]:
    """The rows of the first table below a heading."""
    lines = PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0].splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows[2:]]


def amount(text: str) -> float:
    found = re.match(r"([\d,.]+)(?: (KiB|MiB|GiB))?", text)
    assert found is not None, text
    return float(found[1].replace(",", "")) * UNITS.get(found[2], 1)


def test_every_test_it_names_is_there() -> None:
    for threat, _, shown in (row for row in table("Threats") if len(row) == 3):
        file = ""
        for name in re.findall(r"`([^`]+)`", shown):
            if name.startswith("make "):
                assert re.search(rf"^{name.removeprefix('make ')}:", (ROOT / "Makefile").read_text(), re.M), threat
                continue
            if "::" not in name:
                assert (ROOT / name).is_file(), name
                continue
            file, test = name.split("::")[0] or file, name.split("::")[1]
            (path,) = (ROOT / "tests").rglob(file)
            assert re.search(rf"^def {test}\(", path.read_text(), re.M), name


def test_each_threat_is_shown() -> None:
    rows = table("Threats")
    assert len(rows) > 20
    assert [row[0] for row in rows if "`" not in row[-1]] == []


@pytest.mark.parametrize("row", table("Limits"), ids=lambda row: row[0])
def test_each_limit_has_the_default_it_says(row: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    what, setting, default, _ = row
    if setting != "fixed":
        monkeypatch.setattr("service.settings.memory_bytes", lambda: 1 << 40)  # some limits are lower where it is less
        field = Settings.model_fields[setting.strip("`")]
        assert amount(default) == field.get_default(call_default_factory=True, validated_data={})
    elif what in FIXED:
        assert amount(default) == FIXED[what]


def test_what_is_fixed_elsewhere() -> None:
    """In a pattern, in a schema, or as a multiple."""
    rows = {row[0]: row[2] for row in table("Limits") if row[1] == "fixed" and row[0] not in FIXED}
    parameters: list[dict[str, Any]] = create_app(Settings()).openapi()["paths"]["/v1/graphs/{name}/capacities"]["get"][
        "parameters"
    ]
    (limit,) = (parameter for parameter in parameters if parameter["name"] == "limit")
    assert amount(rows.pop("page of capacities")) == limit["schema"]["maximum"]
    key = "characters of an Idempotency-Key, which is kept until its command ends, and `job_ttl_s` more"
    characters = int(amount(rows.pop(key)))
    assert headers.IDEMPOTENCY_KEY.fullmatch("x" * characters)
    assert not headers.IDEMPOTENCY_KEY.fullmatch("x" * (characters + 1))
    for row, pattern, one in (
        ("characters of the name of a watch or a webhook", re.compile(WATCH_NAME), "x"),
        ("characters of the name of a watch or a webhook", re.compile(WEBHOOK_NAME), "x"),
        ("characters of an `X-Request-Id`", REQUEST_ID, "x"),
    ):
        characters = int(amount(rows[row]))
        assert pattern.fullmatch(one * characters)
        assert not pattern.fullmatch(one * (characters + 1))
    seconds = int(amount(rows["`time_limit_s` of a question"]))
    assert WhatIfBody.model_validate({"sources": [0], "sinks": [1], "scenarios": [{}], "time_limit_s": seconds})
    with pytest.raises(ValidationError):
        WhatIfBody.model_validate({"sources": [0], "sinks": [1], "scenarios": [{}], "time_limit_s": seconds + 1})
    of_redis = rows.pop("memory of the embedded Redis, unless `HEADRACE_REDIS_MAXMEMORY` says another")
    assert of_redis == "half of what there is"
    by_pattern = {"characters of the name of a watch or a webhook", "characters of an `X-Request-Id`"}
    assert set(rows) == by_pattern | {"`time_limit_s` of a question"}


def test_limits_named_in_other_rows() -> None:
    assert (FREE_BYTES, parsing.LONG_BYTES, RESULT_CHUNK_BYTES) == (8 << 20, 64 << 20, 256 << 10)


def test_every_limit_of_the_settings_is_listed() -> None:
    listed = {row[1].strip("`") for row in table("Limits")} - {"fixed"}
    numbers = {name for name, field in Settings.model_fields.items() if field.annotation in (int, float)}
    assert listed == numbers - NO_LIMITS
