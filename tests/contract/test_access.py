"""API keys over HTTP: who gets in, what each scope and prefix covers, and how soon a revoked key is refused."""

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import structlog
from starlette.datastructures import Headers

from service.api.app import create_app
from service.api.guards import access
from service.api.guards.access import NEEDED, OPEN, _may_be_asked_for
from service.api.replies.signposts import QUESTION
from service.errors import ServiceError
from service.protocol import Kind
from service.settings import Settings
from service.store.api_keys import KeyRing, Scope, new_key
from service.store.keys_seen import TEXT, KeysSeen
from tests.contract.fakes import Api
from tests.contract.test_codes import check_problem

PATCH = {"edges": [0], "set": [1]}
CALLS: list[tuple[Scope, str, str, Any]] = [
    (Scope.READ, "GET", "/v1/graphs", None),
    (Scope.READ, "GET", "/v1/graphs/city", None),
    (Scope.READ, "POST", "/v1/graphs/city/max-flow", {}),
    (Scope.READ, "POST", "/v1/graphs/city/matching", {}),
    (Scope.READ, "POST", "/v1/graphs/city/min-cost-flow", {}),
    (Scope.READ, "POST", "/v1/graphs/city/circulation", {}),
    (Scope.READ, "POST", "/v1/graphs/city/partition", {"k": 2}),
    (Scope.UPDATE, "PATCH", "/v1/graphs/city/costs", {"edges": [0], "set": [1]}),
    (Scope.READ, "GET", "/v1/graphs/city/vertices", None),
    (Scope.UPDATE, "PATCH", "/v1/graphs/city/vertices", {"vertices": [0], "set": [1]}),
    (Scope.UPDATE, "PATCH", "/v1/graphs/city/edges", {"op": "delete", "edges": [0]}),
    (Scope.READ, "GET", "/status", None),
    (Scope.READ, "GET", "/metrics", None),
    (Scope.UPDATE, "PATCH", "/v1/graphs/city/capacities", PATCH),
    (Scope.UPDATE, "POST", "/v1/graphs/city/snapshots", None),
    (Scope.ADMIN, "PUT", "/v1/graphs/city", {"tail": [0], "head": [1], "capacity": [3]}),
    (Scope.ADMIN, "DELETE", "/v1/graphs/city", None),
]


def make_key(api: Api, scope: Scope = Scope.ADMIN, prefix: str = "") -> dict[str, str]:
    """The headers of a new key that the server knows at once."""
    key, token = new_key("test", scope, prefix)
    api.fakes.api_keys.keys[key.id] = key
    forget(api)
    return {"Authorization": f"Bearer {token}"}


def forget(api: Api) -> None:
    """As if the keys were read long ago."""
    assert api.fakes.key_table is not None
    api.fakes.key_table._read_at = -1e9


@pytest.fixture(autouse=True)
def no_keys_left(api: Api) -> Any:
    forget(api)
    yield
    api.fakes.api_keys.keys.clear()
    forget(api)
    api.fakes.reset()
    forget(api)


def test_without_keys_everything_is_open_to_this_machine(api: Api) -> None:
    for _, method, path, body in CALLS:
        assert api.http.request(method, path, json=body).status_code < 300, path


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", "10.0.0.1", ""])
def test_without_keys_other_names_are_refused(api: Api, host: str) -> None:
    """A page whose name was pointed at 127.0.0.1 is kept out; with a key any name will do."""
    check_problem(api.http.get("/v1/graphs", headers={"Host": host}), "forbidden")
    key = make_key(api)
    assert api.http.get("/v1/graphs", headers={"Host": host} | key).status_code == 200


@pytest.mark.parametrize("local", ["172.18.0.4", "fd00::4", "0.0.0.0"])
def test_without_keys_a_container_answers_to_no_domain(local: str) -> None:
    """Its port may be published on loopback, where a page can point a name of its own; a number or a name without a
    dot is none that a page can have."""
    scope = {"type": "http", "server": (local, 8080)}

    def answers(host: str, any_host: bool = False) -> bool:
        return _may_be_asked_for(scope, Headers({"host": host}), any_host)

    for host in ("evil.example", "evil.example:8080", "127.0.0.1.evil.example", "evil.example.", "a.b:80"):
        assert not answers(host), host
        assert answers(host, any_host=True), host
    for host in ("127.0.0.1:8080", "localhost:8080", "api:8080", "10.0.0.7", "[::1]:8080", "[fd00::4]", ""):
        assert answers(host), host


@pytest.mark.parametrize(
    "host",
    ["localhost", "localhost:80", "LOCALHOST:8080", "LocalHost", "127.0.0.1", "127.8.8.8:1", "[::1]:8080", "[::1]"],
)
def test_names_of_this_machine(api: Api, host: str) -> None:
    """They are the same in capitals (RFC 9110, section 4.2.3)."""
    assert api.http.get("/v1/graphs", headers={"Host": host}).status_code == 200


def test_query_is_post_where_post_asks(api: Api) -> None:
    """With the same scope, and refused in the same way; everywhere else it is no method."""
    page = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}
    for needed, method, path, body in CALLS:
        key = make_key(api, Scope.ADMIN)
        response = api.http.request("QUERY", path, json=body, headers=key)
        if method != "POST" or needed is not Scope.READ:
            check_problem(response, "method_not_allowed")
            continue
        assert response.content == api.http.request("POST", path, json=body, headers=key).content
        check_problem(api.http.request("QUERY", path, json=body), "unauthorised")
        check_problem(api.http.request("QUERY", path, json=body, headers=make_key(api, needed, "other")), "forbidden")
        check_problem(api.http.request("QUERY", path, json=body, headers=key | page), "forbidden")
        assert api.http.get(path, headers=key).headers["Allow"] == "POST, QUERY"
    assert {sent.kind for sent in api.fakes.dispatcher.sent} == {
        *(Kind.MAX_FLOW, Kind.MATCHING, Kind.MIN_COST_FLOW, Kind.CIRCULATION, Kind.PARTITION)
    }


def test_query_asks_all_questions_that_there_are() -> None:
    """Those whose key is ignored, as the description of the API says."""
    document = create_app(Settings()).openapi()["paths"]
    asks = {
        path
        for path, operations in document.items()
        for parameter in operations.get("post", {}).get("parameters", ())
        if parameter["name"] == "Idempotency-Key" and parameter["description"].startswith("Ignored")
    }
    assert asks == {path for path in document if QUESTION.fullmatch(path)}


@pytest.mark.parametrize(("needed", "method", "path", "body"), CALLS)
def test_scopes(api: Api, needed: Scope, method: str, path: str, body: Any) -> None:
    for scope in Scope:
        response = api.http.request(method, path, json=body, headers=make_key(api, scope))
        if scope.covers(needed):
            assert response.status_code < 300, (scope, response.text)
        else:
            check_problem(response, "forbidden")


def test_a_copy_stays_within_the_key_s_names(api: Api) -> None:
    """Its scope, the name it is made of and the name it is to have: each is looked at before anything is done."""
    path, body = "/v1/graphs/city:copy", {"to": "city-2"}
    for scope in (Scope.READ, Scope.UPDATE):
        check_problem(api.http.post(path, json=body, headers=make_key(api, scope)), "forbidden")
    admin = make_key(api, prefix="city")
    check_problem(api.http.post(path, json={"to": "town"}, headers=admin), "forbidden")
    check_problem(api.http.post("/v1/graphs/town:copy", json=body, headers=admin), "forbidden")
    assert api.fakes.dispatcher.sent == []


def test_an_export_is_for_who_may_read_the_graph(api: Api) -> None:
    """DELETE of another graph is what the same key may not, so it is the names that count."""
    check_problem(api.http.get("/v1/graphs/town/export", headers=make_key(api, Scope.READ, "city")), "forbidden")
    refused = api.http.get("/v1/graphs/nobody/export", headers=make_key(api, Scope.READ) | {"Prefer": "respond-async"})
    check_problem(refused, "invalid_request")


def test_scopes_of_jobs(api: Api) -> None:
    """Who may only look may follow a job, and not end it."""
    asked = {"Prefer": "respond-async"}
    location = api.http.post("/v1/graphs/city/max-flow", headers=make_key(api) | asked).headers["location"]
    for path in ("/v1/jobs", location, f"{location}/events"):
        assert api.http.get(path, headers=make_key(api, Scope.READ)).status_code == 200
    check_problem(api.http.delete(location, headers=make_key(api, Scope.READ)), "forbidden")
    assert api.http.delete(location, headers=make_key(api, Scope.UPDATE)).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer hr_000000000000_" + 43 * "A"},
        {"Authorization": "Basic aHI6aHI="},
        {"Authorization": "hr_"},
        {"X-API-Key": "nonsense"},
        {"X-API-Key": 10_000 * "x"},
    ],
)
def test_no_key_or_a_wrong_one(api: Api, headers: dict[str, str]) -> None:
    make_key(api)
    for path in ("/v1/graphs", "/status", "/metrics", "/v1/jobs/x/events"):
        response = api.http.get(path, headers=headers)
        check_problem(response, "unauthorised")
        assert response.headers["www-authenticate"] == "Bearer"
    assert not api.fakes.dispatcher.sent


def test_the_secret_counts_not_the_id(api: Api) -> None:
    token = make_key(api)["Authorization"].removeprefix("Bearer ")
    other = token[:-1] + ("A" if token[-1] != "A" else "B")
    check_problem(api.http.get("/v1/graphs", headers={"X-API-Key": other}), "unauthorised")
    assert api.http.get("/v1/graphs", headers={"X-API-Key": token}).status_code == 200


@pytest.mark.parametrize("passed_on", ["Basic aHI6aHI=", "Bearer eyJhbGciOiJIUzI.e30.x", "Negotiate abc", "Bearer"])
def test_credentials_of_a_proxy_stand_in_nobodys_way(api: Api, passed_on: str) -> None:
    """As nginx passes on what `auth_basic` has asked for; or another gateway its own `X-API-Key`."""
    token = make_key(api)["Authorization"].removeprefix("Bearer ")
    assert api.http.get("/v1/graphs", headers={"Authorization": passed_on, "X-API-Key": token}).status_code == 200
    other = {"Authorization": f"Bearer {token}", "X-API-Key": "of-another-gateway"}
    assert api.http.get("/v1/graphs", headers=other).status_code == 200
    check_problem(api.http.get("/v1/graphs", headers={"Authorization": passed_on, "X-API-Key": "x"}), "unauthorised")


def test_probes_need_no_key(api: Api) -> None:
    make_key(api)
    assert {api.http.get(path).status_code for path in OPEN} <= {200, 307}


def test_a_prefix_hides_all_other_graphs(api: Api) -> None:
    town, city = make_key(api, prefix="town-"), make_key(api, prefix="ci")
    assert api.http.get("/v1/graphs", headers=town).json() == {"graphs": [], "next": None}
    assert len(api.http.get("/v1/graphs", headers=city).json()["graphs"]) == 1
    assert api.http.get("/status", headers=town).json()["graphs"] == []
    for _, method, path, body in CALLS:
        if "city" in path:
            check_problem(api.http.request(method, path, json=body, headers=town), "forbidden")
    location = api.http.post("/v1/graphs/city/max-flow", headers=city | {"Prefer": "respond-async"}).headers["location"]
    assert api.http.get(location, headers=city).status_code == 200
    for path, method in ((location, "GET"), (location, "DELETE"), (f"{location}/events", "GET")):
        check_problem(api.http.request(method, path, headers=town), "unknown_job")
    assert api.http.get("/v1/jobs", headers=town).json() == {"jobs": [], "next": None}
    assert len(api.http.get("/v1/jobs", headers=city).json()["jobs"]) == 1


def test_jobs_come_in_pages(api: Api) -> None:
    """The marks of pages are read as we wrote them, or refused."""
    for _ in range(5):
        api.http.post("/v1/graphs/city/max-flow", headers={"Prefer": "respond-async"})
    seen, query = [], ""
    while True:
        answer = api.http.get(f"/v1/jobs?limit=2{query}").json()
        seen += [job["id"] for job in answer["jobs"]]
        if answer["next"] is None:
            break
        query = f"&after={answer['next']}"
    assert seen == sorted(set(seen), reverse=True)
    assert len(seen) == 5
    for mark in ("", "x", "1_", "nan_x", "-1_x", "1e9_x", "1.5", "9" * 40 + "_x"):
        check_problem(api.http.get("/v1/jobs", params={"after": mark}), "invalid_request")


def test_a_revoked_key_is_refused_within_five_seconds(api: Api) -> None:
    """And the service does not open up when its last key is revoked."""
    headers = make_key(api)
    assert api.http.get("/v1/graphs", headers=headers).status_code == 200
    (key_id,) = api.fakes.api_keys.keys
    key = api.fakes.api_keys.keys[key_id].model_copy(update={"revoked_at": datetime.now(UTC)})
    api.fakes.api_keys.keys[key_id] = key
    assert access.FRESH_S <= access.STALE_S <= 5
    time.sleep(access.FRESH_S)
    check_problem(api.http.get("/v1/graphs", headers=headers), "unauthorised")
    check_problem(api.http.get("/v1/graphs"), "unauthorised")


def test_keys_that_are_gone_open_nothing(api: Api) -> None:
    """Redis came back empty. Neither a stranger nor who has a key gets in, and it is said what is the matter."""
    headers = make_key(api)
    assert api.http.get("/v1/graphs", headers=headers).status_code == 200
    kept = dict(api.fakes.api_keys.keys)
    api.fakes.api_keys.keys.clear()
    for opened_at in (None, time.time() - 60):
        api.fakes.api_keys.opened_at = opened_at  # said before the key was made, by a Redis of then
        forget(api)
        for shown in ({}, headers):
            for method, path, body in [(m, p, b) for _, m, p, b in CALLS] + [("GET", "/v1/jobs/x/events", None)]:
                refused = api.http.request(method, path, json=body, headers=shown)
                check_problem(refused, "worker_unavailable")
                assert "keys of this service are gone" in refused.json()["detail"]
    assert not api.fakes.dispatcher.sent
    assert {api.http.get(path).status_code for path in OPEN} <= {200, 307}
    api.fakes.api_keys.keys.update(kept)
    forget(api)
    assert api.http.get("/v1/graphs", headers=headers).status_code == 200
    check_problem(api.http.get("/v1/graphs"), "unauthorised")


def test_the_operator_can_open_it_again(api: Api) -> None:
    make_key(api)
    check_problem(api.http.get("/v1/graphs"), "unauthorised")
    api.fakes.api_keys.keys.clear()
    api.fakes.api_keys.opened_at = time.time()
    forget(api)
    assert api.http.get("/v1/graphs").status_code == 200
    make_key(api)
    check_problem(api.http.get("/v1/graphs"), "unauthorised")


def test_what_was_seen_is_remembered_in_a_file(tmp_path: Path) -> None:
    """By the next process, which finds a Redis without keys; until one that has been told to open."""
    import asyncio

    rings = [KeyRing({"k": new_key("test", Scope.READ)[0]})]
    path = tmp_path / "seen"

    async def fetch() -> KeyRing:
        return rings[-1]

    def ask() -> access.Caller:
        return asyncio.run(access.KeyTable(fetch, required=False, seen=KeysSeen(path)).caller(None))

    for _ in range(2):
        with pytest.raises(ServiceError) as refused:
            ask()
        assert refused.value.code == "unauthorised"
    for nothing in (KeyRing({}), KeyRing({}, time.time() - 3600)):
        rings.append(nothing)
        with pytest.raises(ServiceError, match="are gone"):
            ask()
    rings.append(KeyRing({}, time.time() + 1))
    assert ask() is access.ANYONE
    rings.append(KeyRing({}))
    assert ask() is access.ANYONE
    assert not path.exists()


def test_a_file_that_cannot_be_written_keeps_nobody_out(tmp_path: Path) -> None:
    """And what the process itself has seen still counts. The log has it once, not with each look at the keys."""
    seen = KeysSeen(tmp_path / "no such folder" / "seen")
    assert seen.at() is None
    with structlog.testing.capture_logs() as lines:
        seen.remember()
        seen.remember()
    assert [line["event"] for line in lines] == ["api_keys_not_remembered"]
    assert seen.at() is not None
    seen.forget()
    assert seen.at() is None


def test_a_file_of_root_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As that of a key which root made for a service of a user that systemd has made up."""
    path, write = tmp_path / "seen", Path.write_text

    def write_own(self: Path, text: str) -> int:
        if self == path:
            raise PermissionError(13, "Permission denied")
        return write(self, text)

    write(path, "of root")
    monkeypatch.setattr(Path, "write_text", write_own)
    KeysSeen(path).write()
    assert path.read_text() == TEXT
    assert [*tmp_path.iterdir()] == [path]


def test_while_redis_is_away_the_keys_are_good_for_a_few_seconds(api: Api) -> None:
    headers = make_key(api)
    assert api.http.get("/v1/graphs", headers=headers).status_code == 200
    api.fakes.api_keys.away = True
    assert api.http.get("/v1/graphs", headers=headers).status_code == 200
    forget(api)
    check_problem(api.http.get("/v1/graphs", headers=headers), "worker_unavailable")
    assert api.http.get("/metrics", headers=headers).status_code == 200  # the counters are worth having just then
    check_problem(api.http.get("/metrics"), "unauthorised")


def test_every_route_has_its_scope() -> None:
    """One that has none needs `admin`; it is better to say so."""
    paths = create_app(Settings()).openapi()["paths"]
    routes = {(method.upper(), path) for path, operations in paths.items() for method in operations}
    assert {route for route in routes if route[1] not in OPEN} == set(NEEDED)


def test_required_keys_let_nobody_in_while_there_are_none() -> None:
    import asyncio

    async def no_keys() -> KeyRing:
        return KeyRing({})

    table = access.KeyTable(no_keys, required=True)
    with pytest.raises(ServiceError, match="API key") as refused:
        asyncio.run(table.caller(None))
    assert refused.value.code == "unauthorised"


def test_a_new_key_is_good_at_once_and_wrong_ones_cost_few_looks() -> None:
    import asyncio

    (first, _), (second, token) = new_key("first", Scope.READ), new_key("second", Scope.READ)
    keys, looks = {first.id: first}, 0

    async def fetch() -> KeyRing:
        nonlocal looks
        looks += 1
        return KeyRing(dict(keys))

    async def story() -> None:
        table = access.KeyTable(fetch, required=False)

        async def is_refused(shown: str) -> bool:
            try:
                return (await table.caller(shown)).key_id != second.id
            except ServiceError as error:
                return error.code == "unauthorised"

        assert await is_refused(token)
        keys[second.id] = second
        await asyncio.sleep(access.NEW_S)
        assert looks == 1
        assert not await is_refused(token)
        assert looks == 2
        stranger = new_key("nobody's", Scope.ADMIN)[1]
        assert all([await is_refused(shown) for shown in (stranger, "hr_", "", stranger) * 50])
        assert looks <= 3  # however many are tried in a moment

    asyncio.run(story())
