"""The `headrace` command as it is typed: what it prints, and how it ends where there is no service."""

import errno
import io
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TextIO

import pytest
import typer
from headrace import Capacities, Event
from typer.testing import CliRunner

from gpu_engine import kernel_directory, networks
from service import worker
from service.cli import show
from service.cli.connection import MISWRITTEN, NOT_REACHED, REFUSED, connected
from service.cli.edges import OWN_WORDS
from service.cli.feed import _line
from service.cli.main import _readiness, app
from service.cli.meter import Meter

COMMANDS = (
    ["list"],
    ["info", "g"],
    ["delete", "g", "--yes"],
    ["solve", "g"],
    ["cut", "g"],
    ["matching", "g"],
    ["patch", "g", "e=1"],
    ["what-if", "g", "--close", "e"],
    ["closures", "g", "--top", "3"],
    ["pairs", "g", "--among", "0"],
    ["tree", "g"],
    ["global-cut", "g"],
    ["bottlenecks", "g"],
    ["parametric", "g", "--edge", "e", "--to", "2"],
    ["expand", "g", "2", "e=1"],
    ["circulation", "g", "--min-demand", "t=7"],
    ["partition", "g", "4", "--vertices"],
    ["vertices", "g", "--all"],
    ["map", "g", "flow.geojson"],
    ["jobs"],
    ["jobs", "no-such-job"],
    ["snapshots", "g"],
    ["estimate", "4", "5"],
    ["status"],
)


def run(*words: str, **environment: str) -> tuple[int, str, str]:
    """Exit status, standard output, standard error."""
    done = CliRunner(env=environment).invoke(app, list(words))
    return done.exit_code, done.stdout, done.stderr


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def test_version() -> None:
    shown = f"headrace {version('headrace-server')}\nkernels in {kernel_directory()}\n"
    assert run("--version") == (0, shown, "")


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words))
def test_a_service_that_is_not_there_is_named(words: list[str]) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    status, output, error = run(*words, "--url", url)
    assert (status, output) == (NOT_REACHED, "")
    assert error.startswith(f"headrace: no connection to {url}: is it running? (")
    assert error.endswith("); `headrace serve` starts one\n")
    assert error.count("\n") == 1


class Away(BaseHTTPRequestHandler):
    """A service whose Redis is away."""

    def do_GET(self) -> None:
        body = b'{"code": "worker_unavailable", "status": 503, "detail": "Redis has not answered for 2 s"}'
        self.send_response(503)
        self.send_header("Retry-After", "1")
        self.send_header("Content-Type", "application/problem+json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


def test_status_says_at_once_that_redis_is_away() -> None:
    """It is what somebody asks to find out, who was left waiting for three minutes."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Away) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            began = time.monotonic()
            code, out, err = run("status", "--url", f"http://127.0.0.1:{server.server_port}")
        finally:
            server.shutdown()
    assert (code, out) == (REFUSED, "")
    assert "worker_unavailable: Redis has not answered for 2 s" in err
    assert time.monotonic() - began < 10


class Crowded(Away):
    """A service whose Redis takes no writes, so that its worker has lost its lease."""

    def do_GET(self) -> None:
        redis = {"version": "9.1.2", "appendonly": True, "fsync": "always", "used_memory_bytes": 3 << 20}
        redis["maxmemory_bytes"] = 2 << 20
        body = json.dumps({"version": "1", "redis": redis, "workers": [], "graphs": [], "n_graphs": 7}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def test_status_says_that_redis_is_full() -> None:
    """It said that all workers were away, and how much is in use, but not of how much."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Crowded) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            code, out, _ = run("status", "--url", f"http://127.0.0.1:{server.server_port}")
        finally:
            server.shutdown()
    assert code == 0
    assert "9.1.2, 3.0 MiB of 2.0 MiB in use, which is all it has: it takes no writes" in out


def test_the_url_comes_from_the_environment_too() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    assert url in run("list", HEADRACE_URL=url)[2]


def test_url_and_key_stand_before_the_command_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind it they count for more, and in the environment for less."""
    near, far, other = (f"http://127.0.0.1:{free_port()}" for _ in range(3))
    monkeypatch.setenv("HEADRACE_URL", other)
    monkeypatch.setenv("HEADRACE_API_KEY", "k")
    assert near in run("--url", near, "list")[2]
    assert near in run("--url", near, "edges", "insert", "g", "a,b=1")[2]
    assert far in run("--url", near, "list", "--url", far)[2]
    assert "printable ASCII" in run("--key", "two words", "list")[2]


@pytest.mark.parametrize("key", ["two words", "ключ"])
def test_a_key_that_no_header_can_hold(key: str) -> None:
    for status, _, error in (run("list", "--key", key), run("list", HEADRACE_API_KEY=key)):
        assert (status, error) == (MISWRITTEN, "headrace: an API key is printable ASCII without blanks\n")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["patch", "g", "e"], "'e' is not EDGE=CAPACITY"),
        (["patch", "g", "=1"], "'=1' is not EDGE=CAPACITY"),
        (["patch", "g", "e=much"], "'much' is no amount"),
        (["patch", "g", "e=nan"], "'nan' is no amount: that is a number such as 2.5, or inf\n"),
        (["patch", "g", "e=+1"], "2.5, or inf; what is meant is the new one, without a plus"),
        (["solve", "g", "--supply", "s=1,5"], "'1,5' is no amount: that is a number such as 2.5, or inf\n"),
        (["cut", "g", "--demand", "t"], "'t' is not NAME=AMOUNT"),
        (["closures", "g", "--supply", "s=1", "--supply", "s=2"], "--supply names s twice"),
        (["bottlenecks", "g", "--supply", "s=+1"], "'+1' is no amount"),
        (["what-if", "g", "e=1", "--supply", "s=x"], "'x' is no amount"),
        (["circulation", "g", "--supply", "s=x"], "'x' is no amount"),
        (["min-cost", "g", "--value", "all"], "'all' is no amount: that is a number such as 2.5, or inf\n"),
        (["patch", "g", "e=1_0"], "'1_0' is no amount"),
        (["parametric", "g", "--edge", "e", "--to", "abc"], "'abc' is no factor: that is a number, 0 or more, or a"),
        (["parametric", "g", "--edge", "e", "--to", "2", "--from", "-1"], "'-1' is no factor"),
        (["parametric", "g", "--edge", "e", "--to", "1/00"], "'1/00' is no factor"),
        (["patch", "g", "e= 1"], "' 1' is no amount"),
        (["patch", "g", "e=\u0661"], "is no amount"),
        (["circulation", "g", "--lower", "e=1_0"], "'1_0' is no amount"),
        (["jobs", "--cancel"], "--cancel needs the ID of a job"),
        (["load", "g", "no-such-file.npz"], "does not exist"),
        (["load", "g", "-", "--format", "text/csv"], "such as csv or npz, not 'text/csv'"),
        (["estimate", "4"], "Missing argument"),
        (["estimate", "-4", "2"], "-4"),
        (["solve"], "Missing argument"),
        (["solve", "g", "--near", "sinks"], "--near does nothing without --cut"),
        (["what-if", "g", "e=1", "--lines", "--json"], "--json does nothing beside --lines"),
        (["pairs", "g", "--among", "1", "--lines", "--json"], "--json does nothing beside --lines"),
        (["watch", "g", "--source", "s"], "--source does nothing without the name of a watch"),
        (["watch", "g", "w", "--remove", "--on", "cut"], "--on does nothing beside --remove"),
        (["drain", "w", "--undo", "--wait", "3"], "--wait does nothing beside --undo"),
        (["up", "--ray", "h:1", "--workers", "1", "--idle", "9"], "--idle does nothing without --at-most"),
        (["parametric", "g", "--to", "2", "--supply", "s=3", "--supply", "s=5"], "--supply names s twice"),
        (["circulation", "g", "--lower", "e=3", "--lower", "e=5"], "--lower names e twice"),
        (["patch", "g", "e=3", "f=4", "e=reopen", "e=5"], "patch names e twice"),
        (["patch", "g", "e=3", "--cost", "--lower"], "one of --vertices, --lower and --cost, or none"),
        (["patch", "g", "e=2", "f=close", "--cost"], "edges are closed and reopened without --cost"),
        (["parametric", "g", "--to", "2", "--supply", "s=3", "--demand", "t=5"], "--demand VERTEX=AMOUNT"),
        (["watch", "g", "--demand", "t=1"], "--demand does nothing without the name of a watch"),
        (["expand", "g", "1", "e=1", "--supply", "s=x"], "'x' is no amount"),
        (["circulation", "g", "--source", "s", "--sink", "t", "--no-terminals"], "--no-terminals does nothing"),
        (["keys", "create", "x", "--scope", "root"], "--scope is one of"),
        (["keys", "forget"], "say --open"),
        (["soolve", "g"], "soolve"),
        (["--url", "http://localhost:1", "serve"], "headrace serve takes no --url"),
        (["--key", "k", "keys", "list"], "headrace keys takes no --key"),
    ],
)
def test_what_is_not_written_as_it_should_be(words: list[str], says: str) -> None:
    """It is refused before anything is sent."""
    status, output, error = run(*words)
    assert (status, output) == (MISWRITTEN, "")
    assert says in error


@pytest.mark.parametrize("words", [["list"], ["solve"], ["export"], ["jobs"]])
def test_help_names_key_and_url(words: list[str]) -> None:
    status, output, _ = run(*words, "--help", COLUMNS="200")
    assert status == 0
    assert "HEADRACE_API_KEY" in output
    assert "HEADRACE_URL" in output


@pytest.mark.parametrize(("name", "meant"), [("URI", "URL"), ("API_KEYS", "API_KEY")])
def test_a_misspelt_variable(name: str, meant: str) -> None:
    """Another service would be asked than was meant."""
    said = f"HEADRACE_{name} is set in the environment, but nothing reads it: did you mean HEADRACE_{meant}?"
    assert run("list", **{f"HEADRACE_{name}": "x"}) == (MISWRITTEN, "", f"headrace: {said}\n")


def test_a_flag_that_is_off_has_no_option_to_say_so() -> None:
    """It would do nothing, and its name cuts off that of the flag in the help of a narrow terminal."""
    _, output, _ = run("serve", "--help", COLUMNS="100")
    assert "--insecure-any-host" in output
    assert "--no-insecure" not in output


def test_who_reads_no_further_is_told_nothing() -> None:
    """As `headrace list | head -1` does once it has its line."""
    with pytest.raises(BrokenPipeError), connected("http://127.0.0.1:1", None):
        raise BrokenPipeError


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["solve", "--help"], ["keys"]])
def test_what_cannot_be_printed_ends_with_one_line(words: list[str]) -> None:
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "service.cli", *words]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (REFUSED, "headrace: No space left on device\n")


def test_a_name_without_letters_in_the_terminal_is_printed(tmp_path: Path) -> None:
    elsewhere = os.environ | {"PYTHONIOENCODING": "latin-1", "NUMBA_CACHE_DIR": str(tmp_path / "ü日本")}
    command = [sys.executable, "-m", "service.cli", "--version"]
    done = subprocess.run(command, env=elsewhere, capture_output=True, check=True)
    assert "ü\\u65e5\\u672c" in done.stdout.decode("latin-1")


def test_a_service_whose_start_nobody_can_read_of_goes_on() -> None:
    with open("/dev/full", "w") as full:
        told = [sys.executable, "-c", "from service.cli.main import _announce; _announce('http://there')"]
        subprocess.run(told, stdout=full, check=True)


def commands(group: Any, *before: str) -> Iterator[tuple[str, ...]]:
    """All there are, with those of groups."""
    for name, command in group.commands.items():
        yield from commands(command, *before, name) if hasattr(command, "commands") else [(*before, name)]


@pytest.mark.parametrize("words", list(commands(typer.main.get_command(app))), ids=" ".join)
def test_help_ends_its_sentences(words: tuple[str, ...]) -> None:
    """Brackets in help are taken for marks and vanish."""
    assert " . " not in run(*words, "--help", COLUMNS="200")[1]


def test_json_is_exact() -> None:
    """A decimal is a number digit by digit, beyond what a float holds as well; infinity has no number in JSON."""
    huge = Decimal("1152921504606846975.123456789")
    columns = {"edge_ids": ["a", 2], "tail": ["s", 0], "head": ["t", 1], "closed": [True, False]}
    page = Capacities.from_json({"version": 7, "capacity": [huge, "inf"], **columns})
    text = show.as_json({"page": page, "empty": [], "none": None, "at": datetime(2026, 1, 2, tzinfo=UTC), "f": 0.5})
    assert "1152921504606846975.123456789," in text
    read = json.loads(text, parse_float=Decimal)
    assert read["page"]["capacity"] == [huge, "inf"]
    assert read["page"]["edge_ids"] == ["a", 2]
    assert (read["empty"], read["none"], read["at"], read["f"]) == ([], None, "2026-01-02T00:00:00Z", Decimal("0.5"))


def test_a_line_of_many_has_no_more_blanks_than_it_needs(capsys: pytest.CaptureFixture[str]) -> None:
    show.say_line({"row": 1, "certificate": {"valid": True, "ids": ["a", 2]}, "none": []})
    assert capsys.readouterr().out == '{"row": 1, "certificate": {"valid": true, "ids": ["a", 2]}, "none": []}\n'


def test_tables_are_aligned_and_bounded(capsys: pytest.CaptureFixture[str]) -> None:
    show.say_table({"edge": ["a", "long"], "flow": [Decimal("2.5"), 10], "open": [True, None]})
    assert capsys.readouterr().out == "EDGE  FLOW  OPEN\na      2.5  yes\nlong    10  -\n"
    show.say_table({"edge": list(range(show.SHOWN + 3))})
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == show.SHOWN + 2
    assert lines[-1] == "... and 3 more: --json has all of them"
    show.say_table({"edge": ()}, "nothing")
    assert capsys.readouterr().out == "nothing\n"


def test_a_name_is_not_obeyed_by_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """Labels are chosen by whoever has loaded the graph, and may be any text."""
    names = ["\x1b[2J\x1b]0;title\x07", "two\nlines", "Z\u00fcrich \u202edrawkcab", "\x9b31m"]
    show.say_table({"edge": names})
    event = Event("1-0", "cut.changed", {"version": 2, "cut_added": names})
    show.say_facts({"said": _line(event)})
    shown = capsys.readouterr().out
    assert len(shown.splitlines()) == 1 + len(names) + 1
    assert shown.replace("\n", "").isprintable()
    assert "\\x1b[2J" in shown
    assert "Z\u00fcrich \\u202e" in shown


@pytest.mark.parametrize(
    ("n_bytes", "shown"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (5 << 20, "5.0 MiB"), (3 << 52, "12288.0 TiB")],
)
def test_sizes(n_bytes: int, shown: str) -> None:
    assert show.size(n_bytes) == shown


def test_what_refusals_tell_to_do_is_known_by_the_words_that_they_have() -> None:
    """Else members of a body would be told of again, without a word."""
    folders = (Path(networks.__file__).parent, Path(worker.__file__).parent)
    sources = "".join(path.read_text() for folder in folders for path in folder.rglob("*.py"))
    assert [words for words in OWN_WORDS if words not in sources] == []


def test_nobody_can_be_asked_where_standard_input_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a job of cron: it was a traceback. Nothing is asked of the service before."""
    monkeypatch.setattr("service.cli.graphs.sys", SimpleNamespace(stdin=None))
    for words in (["load", "g", "-", "--format", "csv"], ["delete", "g"]):
        done = CliRunner().invoke(app, [*words, "--url", "http://127.0.0.1:9"])
        assert (done.exit_code, done.stderr.startswith("headrace: standard input is closed")) == (2, True), done.output


class Full(io.StringIO):
    """A stream onto a full disk."""

    def flush(self) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("stream", [None, Full()])
def test_work_goes_on_where_nobody_can_be_told_how_far_it_is(stream: TextIO | None) -> None:
    with Meter(stream) as meter:
        meter.show(1, 2, "kernels compiled", 0.0)


@pytest.mark.parametrize(
    ("worker", "shown"),
    [
        ({"alive": True, "ready": True}, True),
        ({"alive": True, "ready": True, "draining": True}, "drained"),
        ({"alive": True, "ready": False, "compiling": {"done": 3, "of": 9}}, "compiling, 3 of 9"),
        ({"alive": False, "ready": True}, "away"),
        ({"alive": False, "ready": True, "draining": True}, "away"),
        ({"ready": True}, True),
    ],
)
def test_how_ready_a_worker_is(worker: dict[str, Any], shown: object) -> None:
    """One that is away was ready once; an older service does not say whether it is."""
    assert _readiness(worker) == shown


def test_a_copy_that_finds_no_room_names_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("service.host.backup.back_up_service", no_room)
    copy = str(tmp_path / "copy")
    assert run("backup", copy) == (1, "", f"headrace: {copy}: No space left on device\n")
