"""A variable that is only almost a setting stops the start: a door left open by a misspelt name is noticed at once."""

import contextlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from redis.connection import parse_url
from typer.testing import CliRunner

from service.beginning import REFUSED
from service.cli.main import app
from service.connections.redis_address import FILES, OPTIONS, TLS_OPTIONS, heeded, passed_over
from service.host.supervisor import environment_of
from service.settings import (
    MAX_SOCKET_PATH,
    READ_ELSEWHERE,
    Settings,
    SettingsError,
    overruled_redis,
    read_settings,
    refuse_unknown,
)
from service.store.connection import connect, connect_async, connect_listeners
from tests.checkouts import needs_clone

ROOT = Path(__file__).parents[2]
WORD = re.compile(r"\bHEADRACE_([A-Z][A-Z0-9_]*)")
MISSPELT = {"HEADRACE_REQUIRE_KEY": "true"}
HINT = "HEADRACE_REQUIRE_KEY is set in the environment, but nothing reads it: did you mean HEADRACE_REQUIRE_KEYS?"


@pytest.mark.parametrize(
    ("variable", "near"),
    [
        ("HEADRACE_REQUIRE_KEY", "HEADRACE_REQUIRE_KEYS"),
        ("HEADRACE_MAX_EDGE", "HEADRACE_MAX_EDGES"),
        ("HEADRACE_TLS_CERTIFICATE", "HEADRACE_TLS_CERT"),
        ("HEADRACE_REDIS_ULR", "HEADRACE_REDIS_URL"),
        ("HEADRACE_APIKEY", "HEADRACE_API_KEY"),
        ("headrace_require_key", "HEADRACE_REQUIRE_KEYS"),
        ("HEADRACE_", "service/settings.py"),
        ("HEADRACE_QQQQQQ", "service/settings.py"),
    ],
)
def test_a_name_that_nothing_reads(variable: str, near: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "1")
    with pytest.raises(SettingsError) as refused:
        read_settings()
    message = str(refused.value)
    assert message.startswith(variable)
    assert near in message
    assert "\n" not in message


@pytest.mark.parametrize("said", ["inf", "nan", "1e300", "0.0001"])
def test_a_lease_is_a_time_that_redis_can_keep(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_LEASE_S", said)
    with pytest.raises(SettingsError, match=r"^HEADRACE_LEASE_S: [^\n]*$"):
        read_settings()


@pytest.mark.parametrize(
    "name", [name for name, field in Settings.model_fields.items() if "float" in str(field.annotation)]
)
def test_no_time_goes_on_for_ever(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"HEADRACE_{name.upper()}", "inf")
    with pytest.raises(SettingsError, match="finite"):
        read_settings()


@pytest.mark.parametrize("name", [name for name, field in Settings.model_fields.items() if field.annotation is int])
def test_no_number_is_larger_than_redis_and_json_can_keep(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"HEADRACE_{name.upper()}", str(10**26))
    with pytest.raises(SettingsError, match=f"^HEADRACE_{name.upper()}: should be less than or equal to [0-9]+$"):
        read_settings()


def test_a_number_that_is_none_is_refused_in_plain_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_MAX_EDGES", "1e9")
    with pytest.raises(SettingsError, match=r"^HEADRACE_MAX_EDGES: should be a valid integer$"):
        read_settings()


def test_every_setting_is_known_in_either_case_and_so_is_what_others_read() -> None:
    names = [f"HEADRACE_{name.upper()}" for name in Settings.model_fields]
    refuse_unknown([*names, *map(str.lower, names), *(f"HEADRACE_{name}" for name in READ_ELSEWHERE)])
    refuse_unknown(["PATH", "REDIS_URL", "HEADRACEX", "MY_HEADRACE_THING"])


@needs_clone
def test_every_variable_that_this_repository_names_is_known() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files = [ROOT / name for name in listed.splitlines() if name != str(Path(__file__).relative_to(ROOT))]
    texts = (file.read_text("utf-8", "ignore") for file in files if file.suffix != ".npz" and file.is_file())
    named = {word for text in texts for word in WORD.findall(text)}
    assert named >= READ_ELSEWHERE, "what nothing reads any more is taken off the list"
    refuse_unknown(f"HEADRACE_{name}" for name in named)


def test_values_out_of_their_form_are_one_line_that_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_PORT", "eighty")
    monkeypatch.setenv("HEADRACE_FSYNC", "never")
    monkeypatch.setenv("HEADRACE_ENGINE", "gpu")
    with pytest.raises(SettingsError) as refused:
        read_settings()
    message = str(refused.value)
    assert "HEADRACE_PORT: " in message
    assert "HEADRACE_FSYNC: " in message
    assert (
        "HEADRACE_ENGINE: should be auto, cpu, cuda, cuda-peers, or cuda:NAME for a published system, not 'gpu'"
        in message
    )
    assert "\n" not in message


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"default_wait_s": 60, "max_wait_s": 30}, "HEADRACE_DEFAULT_WAIT_S is more than HEADRACE_MAX_WAIT_S"),
        ({"max_json_bytes": 2000, "max_body_bytes": 1000}, "HEADRACE_MAX_JSON_BYTES is more than HEADRACE_MAX_BODY"),
    ],
)
def test_a_bound_beyond_another_one_is_not_clipped(said: dict[str, int], told: str) -> None:
    with pytest.raises(SettingsError, match=told):
        read_settings(**said)
    for name in said:  # a default beyond a bound that is said is nobody's wish
        read_settings(**{name: said[name]})


def test_processes_begin_with_the_settings_that_their_parent_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is written out for them, those too that nobody has said."""
    for said in ({"max_wait_s": 10}, {"max_body_bytes": 1 << 20}):
        settings = read_settings(**said)
        with monkeypatch.context() as patched:
            for name, value in environment_of(settings).items():
                patched.setenv(name, value)
            assert read_settings().model_dump() == settings.model_dump() | {"data_dir": settings.data_dir.absolute()}


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"REDIS_URL": "redis://localhost:1", "HEADRACE_FSYNC": "always"}, "HEADRACE_FSYNC is for the embedded Redis"),
        ({"HEADRACE_REDIS_WAIT_S": "1"}, "HEADRACE_REDIS_WAIT_S is for a Redis of your own"),
        (
            {"REDIS_URL": "redis://localhost:1", "HEADRACE_REDIS_MAXMEMORY": "2gb"},
            "HEADRACE_REDIS_MAXMEMORY is for the embedded Redis",
        ),
        ({"HEADRACE_REDIS_MAXMEMORY": "2 GiB"}, "HEADRACE_REDIS_MAXMEMORY: should be a size"),
        (
            {"HEADRACE_ENGINE": "cpu", "HEADRACE_DEVICE_BUDGET_BYTES": "1000"},
            "HEADRACE_DEVICE_BUDGET_BYTES does",
        ),
    ],
)
def test_a_setting_that_nothing_would_heed_starts_nothing(said: dict[str, str], told: str, tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    done = CliRunner(env=said | {"HEADRACE_DATA_DIR": str(data_dir)}).invoke(app, ["serve", "--port", "0"])
    assert (done.exit_code, done.output.count("\n")) == (2, 1)
    assert done.output.startswith(f"headrace: {told}")
    assert not data_dir.exists(), "nothing was started"


@pytest.mark.parametrize("name", ["headrace_url", "Headrace_Api_Key"])
def test_what_programs_read_by_its_case_is_not_known_in_another(name: str) -> None:
    with pytest.raises(SettingsError, match=f"did you mean {name.upper()}"):
        refuse_unknown([name])


def test_a_key_without_its_certificate_encrypts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_TLS_KEY", "key.pem")
    with pytest.raises(SettingsError, match="HEADRACE_TLS_CERT is not"):
        read_settings()
    monkeypatch.setenv("HEADRACE_TLS_CERT", "cert.pem")
    assert read_settings().tls_cert == Path("cert.pem")


def test_a_certificate_that_cannot_be_read_starts_nothing(tmp_path: Path) -> None:
    """One line, in place of an API process that ends over and over."""
    (tmp_path / "cert.pem").write_text("no certificate")
    for name in ("missing.pem", "cert.pem"):
        environment = {"HEADRACE_DATA_DIR": str(tmp_path / "data"), "HEADRACE_TLS_CERT": str(tmp_path / name)}
        done = CliRunner(env=environment).invoke(app, ["serve", "--port", "0"])
        assert (done.exit_code, done.output.count("\n")) == (1, 1)
        assert "HEADRACE_TLS_CERT or HEADRACE_TLS_KEY cannot be used" in done.output
        assert not (tmp_path / "data").exists()


def test_which_file_of_a_certificate_is_not_there(tmp_path: Path) -> None:
    """OpenSSL says of neither which it is."""
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    cert.write_text("")
    environment = {"HEADRACE_TLS_CERT": str(cert), "HEADRACE_TLS_KEY": str(key), "HEADRACE_DATA_DIR": str(tmp_path)}
    for missing in (key, cert):
        done = CliRunner(env=environment).invoke(app, ["serve", "--port", "0"])
        assert done.exit_code == 1
        assert str(missing) in done.output
        cert.unlink(missing_ok=True)


@pytest.mark.parametrize("url", ["localhost:6379", "http://localhost", "redis://localhost:http", "redis://h:99999", ""])
def test_what_is_no_address_of_a_redis_server_starts_nothing(url: str, tmp_path: Path) -> None:
    """One line, in place of processes that end over and over; without the URL, which may have a password."""
    done = CliRunner(env={"REDIS_URL": url}).invoke(app, ["serve", "--data-dir", str(tmp_path / "data")])
    assert (done.exit_code, done.output.count("\n")) == (2, 1)
    assert "no address of a Redis server: say redis://HOST:PORT" in done.output
    assert not url or url not in done.output
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    "url", ["redis://localhost", "rediss://u:p@h:6380/1", "unix:///run/redis.sock", "unix://headrace@/run/redis.sock"]
)
def test_addresses_of_redis_servers(url: str) -> None:
    assert read_settings(redis_url=url).redis_location == url


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("redis://h/cache", "a database that is no number: say it as in redis://HOST:PORT/0"),  # was database 0
        ("redis://h/0/x", "a database that is no number"),
        ("rediss://h/0?ssl_ca_cert=/ca.pem", "'ssl_ca_cert' that is none of an address: did you mean ssl_ca_certs?"),
        ("redis://h?family=0", "'family' that is none of an address: there are db, username"),
        ("redis://h?ssl=true", "that is none of an address"),
        ("redis://h?Secret-Word=3", "has an option that is none of an address"),
        ("redis://h?ssl_ca_certs=/ca.pem", "'ssl_ca_certs', which is for rediss://"),
        ("rediss://h?ssl_cert_reqs=None", "'ssl_cert_reqs' whose value is out of its form"),
        ("rediss://h?ssl_check_hostname=", "'ssl_check_hostname' whose value is out of its form"),
        ("redis://h?db=two", "'db' whose value is out of its form"),
        ("rediss://h?ssl_ca_certs=/nowhere/ca.pem", "'ssl_ca_certs' with a file that cannot be read: /nowhere/ca.pem"),
        ("rediss://h?ssl_ca_certs=/", "'ssl_ca_certs' with a file that cannot be read: /"),
        ("rediss://h?ssl_ca_path=/nowhere", "'ssl_ca_path' with a folder that cannot be read: /nowhere"),
        ("redis://:p@ss:w/d#x?@h:6379", "is no address of a Redis server: say redis://HOST:PORT"),
        ("redis://:12#w@h:6379", "%23 for #"),
    ],
)
def test_what_no_client_of_redis_heeds_in_an_address_starts_nothing(url: str, told: str, tmp_path: Path) -> None:
    """It was passed over, ended in a traceback, or kept every answer away."""
    for words in (["serve"], ["keys", "list"]):
        done = CliRunner(env={"REDIS_URL": url}).invoke(app, [*words, "--data-dir", str(tmp_path / "data")])
        assert (done.exit_code, done.output.count("\n")) == (2, 1)
        assert told in done.output
        assert url not in done.output
        assert "Secret-Word" not in done.output


def test_options_of_an_address_are_those_of_both_clients(tmp_path: Path) -> None:
    """Of workers and of API processes, with the types that they take."""
    (tmp_path / "pem").touch()
    values = dict.fromkeys(FILES, str(tmp_path / "pem")) | {
        "ssl_cert_reqs": "none",
        "ssl_ca_path": str(tmp_path),
        "db": "3",
        "ssl_min_version": "771",
        "ssl_ca_data": "-----BEGIN CERTIFICATE-----%0A",
        "ssl_include_verify_flags": "VERIFY_CRL_CHECK_LEAF",
        "ssl_exclude_verify_flags": "VERIFY_X509_STRICT, VERIFY_X509_PARTIAL_CHAIN",
    }
    values |= {"health_check_interval": "5", "socket_connect_timeout": "2.5", "socket_keepalive": "yes"}
    values |= {"ssl_check_hostname": "false", "username": "u", "password": "p%40", "client_name": "c"}
    values |= {"ssl_password": "s", "ssl_ciphers": "HIGH"}
    assert values.keys() == {*OPTIONS, *TLS_OPTIONS}
    settings = read_settings(redis_url="rediss://h/1?" + "&".join(f"{name}={value}" for name, value in values.items()))
    with contextlib.closing(connect(settings)) as client:
        pools: list[Any] = [client.connection_pool]
        pools += [client_of(settings).connection_pool for client_of in (connect_async, connect_listeners)]
        for pool in pools:
            connection = pool.make_connection()
            assert (connection.db, connection.password, connection.port) == (3, "p@", 6379)


PLATFORM = "redis://u:p%3Fw@h:6379/2/?socket_timeout=5&protocol=3&max_connections=3&client_name=c%26d&retry_on_timeout"


def test_an_address_that_others_use_too_is_heeded_where_it_can_be() -> None:
    """Each of these was refused, or was heeded and kept answers away: reads that wait for events take longer."""
    settings = read_settings(redis_url=PLATFORM)
    assert settings.redis_location == "redis://u:p%3Fw@h:6379/2/?client_name=c%26d"
    assert passed_over(PLATFORM) == ["max_connections", "protocol", "retry_on_timeout", "socket_timeout"]
    assert heeded("redis://h?decode_responses=True&encoding=latin1&timeout=1") == "redis://h"
    said = parse_url(settings.redis_location)
    assert (said["db"], said["password"], said["client_name"]) == (2, "p?w", "c&d")


@pytest.mark.parametrize("folder", ["C#", "what?db=3", "50%25 off", "two\nlines", "with blank", "a@b:c", "Straße"])
def test_the_embedded_server_is_found_in_a_folder_of_any_name(folder: str, tmp_path: Path) -> None:
    settings = read_settings(data_dir=tmp_path / folder)
    found = parse_url(settings.redis_location)
    assert (found["path"], found["username"]) == (str(settings.redis_socket), "headrace")


@pytest.mark.parametrize("said", ["http://hooks/", "hooks:8080", "10.0.0.0/8", "[::1]", "*.local", "one two", "a, b/"])
def test_hosts_of_webhooks_are_names_and_addresses(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Anything else would be compared with the hosts of URLs, and be none of them."""
    monkeypatch.setenv("HEADRACE_WEBHOOK_HOSTS", said)
    with pytest.raises(SettingsError, match=r"^HEADRACE_WEBHOOK_HOSTS: should be names .* not '"):
        read_settings()


@pytest.mark.parametrize("said", ["", "hooks, Hooks.example.com.", "10.0.0.1,fd00::1,::ffff:10.0.0.1", "xn--9ca.com,"])
def test_hosts_of_webhooks(said: str) -> None:
    assert read_settings(webhook_hosts=said).webhook_hosts == said


@pytest.mark.parametrize("name", ["DATA_DIR", "TLS_CERT", "TLS_KEY"])
def test_an_empty_path_is_no_folder(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a variable that a script forgot to set; data would lie wherever the service was started."""
    monkeypatch.setenv(f"HEADRACE_{name}", "")
    with pytest.raises(SettingsError, match=f"^HEADRACE_{name}: is empty"):
        read_settings()


@pytest.mark.parametrize("words", [["serve", "--port", "0"], ["keys", "list"], ["keys", "create", "x"]])
def test_an_empty_option_is_no_folder(words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, [*words, "--data-dir", ""])
    assert (done.exit_code, done.stderr.split(",")[0]) == (2, "headrace: HEADRACE_DATA_DIR: is empty")
    assert not list(tmp_path.iterdir())


def test_what_is_given_goes_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_PORT", "81")
    monkeypatch.setenv("HEADRACE_WORKERS", "3")
    settings = read_settings(port=82)
    assert (settings.port, settings.workers) == (82, 3)


@pytest.mark.parametrize("words", [["serve", "--port", "0"], ["keys", "list"], ["keys", "create", "x"]])
def test_commands_end_with_that_line(words: list[str], tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    done = CliRunner(env=MISSPELT | {"HEADRACE_DATA_DIR": str(data_dir)}).invoke(app, words)
    assert done.exit_code == 2
    assert done.output == f"headrace: {HINT}\n"
    assert not data_dir.exists(), "nothing was started"


@pytest.mark.parametrize(
    "words", [["service.worker", "--name", "w"], ["service.api", "--port", "0"]], ids=["worker", "api"]
)
def test_processes_end_with_that_line(words: list[str], tmp_path: Path) -> None:
    environment = os.environ | MISSPELT | {"REDIS_URL": f"unix://{tmp_path}/none"}
    command = [sys.executable, "-m", *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (REFUSED, f"headrace: {HINT}\n")


BOTH = {"HEADRACE_REDIS_URL": "redis://a:secret@127.0.0.1:1/0", "REDIS_URL": "redis://b:hidden@127.0.0.1:2/0"}
"""Nobody listens at either."""


@pytest.mark.parametrize(
    ("environment", "given", "told"),
    [
        (BOTH, {}, BOTH["REDIS_URL"]),
        (BOTH | {"REDIS_URL": BOTH["HEADRACE_REDIS_URL"]}, {}, None),
        (BOTH, {"redis_url": "redis://said"}, None),
        ({"REDIS_URL": BOTH["REDIS_URL"]}, {}, None),
        ({"HEADRACE_REDIS_URL": BOTH["HEADRACE_REDIS_URL"]}, {}, None),
        ({}, {}, None),
    ],
    ids=["both", "equal", "an option", "one", "ours", "none"],
)
def test_which_address_of_redis_is_overruled(
    environment: dict[str, str], given: dict[str, str], told: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert overruled_redis(read_settings(**given), environment) == told


def test_two_addresses_of_redis_are_told_of_once_without_passwords(tmp_path: Path) -> None:
    """By the first process alone: those that it starts know of one address."""
    environment = BOTH | {"HEADRACE_DATA_DIR": str(tmp_path / "data"), "HEADRACE_HOST": "0.0.0.0"}
    environment["HEADRACE_REDIS_URL"] += "?socket_timeout=5"
    command = [sys.executable, "-m", "service.cli.main", "serve", "--port", "0"]
    done = subprocess.run(
        command, env=os.environ | environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 1, "it looked for keys, which are out of reach"
    told = [json.loads(line) for line in done.stderr.splitlines() if "two_redis_urls" in line]
    assert [line["level"] for line in told] == ["warning"]
    assert told[0]["headrace_redis_url"] == "redis://a:***@127.0.0.1:1/0?socket_timeout=5"
    assert told[0]["redis_url"] == "redis://b:***@127.0.0.1:2/0"
    passed = [json.loads(line) for line in done.stderr.splitlines() if "redis_options_passed_over" in line]
    assert [(line["level"], line["options"]) for line in passed] == [("warning", "socket_timeout")]
    assert "secret" not in done.stderr
    assert "hidden" not in done.stderr


def test_children_import_nothing_from_where_somebody_stands(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A `redis.py` in the current folder was run by the worker and by API processes."""
    for checked_out, path in ((False, ""), (True, str(ROOT)), (True, os.pathsep.join([str(ROOT), "/other"]))):
        monkeypatch.setattr(sys, "path", [str(ROOT) if checked_out else str(tmp_path), *sys.path])
        monkeypatch.setenv("PYTHONPATH", "/other") if "other" in path else monkeypatch.delenv(
            "PYTHONPATH", raising=False
        )
        environment = environment_of(Settings(redis_url=None))
        assert (environment["PYTHONSAFEPATH"], environment.get("PYTHONPATH", "")) == ("1", path)


def test_a_long_path_to_data_has_its_socket_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is bytes that a socket has room for, and folders of temporary files may have long paths too."""
    assert Settings(data_dir=Path("/", 80 * "x"), redis_url=None).redis_socket.parent.name == 80 * "x"
    long = Path("/", 80 * "é")
    for folder, where in ((Path("/", 50 * "x"), Path("/", 50 * "x")), (Path("/", 90 * "x"), Path("/tmp"))):
        monkeypatch.setattr("tempfile.tempdir", str(folder))
        socket = Settings(data_dir=long, redis_url=None).redis_socket
        assert (socket.parents[1], len(os.fsencode(socket)) <= MAX_SOCKET_PATH) == (where, True)


def test_a_path_that_is_no_text_starts_nothing(tmp_path: Path) -> None:
    """As one with umlauts under LC_ALL=POSIX: it has no place in the address of the embedded server."""
    with pytest.raises(SettingsError, match="no text in UTF-8"):
        read_settings(data_dir=Path(os.fsdecode(bytes(tmp_path) + b"/\xff")))


def test_children_know_of_one_address_of_redis(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in BOTH.items():
        monkeypatch.setenv(name, value)
    children = environment_of(read_settings())
    assert "REDIS_URL" not in children
    assert children["HEADRACE_REDIS_URL"] == BOTH["HEADRACE_REDIS_URL"]


@pytest.mark.parametrize(
    "words", [["service.worker", "--name", "w"], ["service.cli.main", "keys", "list"]], ids=["worker", "keys"]
)
def test_every_process_tells_of_two_addresses(words: list[str], tmp_path: Path) -> None:
    command = [sys.executable, "-m", *words]
    environment = os.environ | BOTH | {"HEADRACE_DATA_DIR": str(tmp_path / "data")}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        process.kill()
    assert "HEADRACE_REDIS_URL counts, and REDIS_URL" in line
