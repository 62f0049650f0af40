"""Webhooks with a real receiver: signatures, tries, dead letters, and one process that delivers at a time."""

import base64
import hashlib
import hmac
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from service.host.backup import back_up_service
from service.settings import Settings
from tests.contract.test_feed_live import load, patch
from tests.receiver import Received, Receiver, receiving
from tests.serving import Service, another_api, eventually, serving
from tests.shared_services import WEBHOOKS, Services


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


@pytest.fixture(scope="module")
def service(services: Services) -> Iterator[Service]:
    with services.lent(WEBHOOKS) as service:
        yield service


@pytest.fixture
def http(service: Service) -> Iterator[httpx.Client]:
    yield service.http
    for hook in service.http.get("/v1/webhooks").json()["webhooks"]:
        service.http.delete(f"/v1/webhooks/{hook['id']}")


def put(http: httpx.Client, receiver: Receiver, *graphs: str, hook: str = "h", **others: Any) -> dict[str, Any]:
    answer = http.put(f"/v1/webhooks/{hook}", json={"url": f"{receiver.url}/in?a=1", "graphs": [*graphs]} | others)
    assert answer.status_code in (200, 201), answer.text
    shown: dict[str, Any] = answer.json()
    return shown


def is_signed(one: Received, secret: str) -> bool:
    """As Standard Webhooks says, by hand."""
    signed = f"{one.id}.{one.headers['webhook-timestamp']}.".encode() + one.body
    key = base64.b64decode(secret.removeprefix("whsec_"))
    wanted = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return wanted in one.headers["webhook-signature"].split()


def test_events_are_delivered_signed_and_in_order(http: httpx.Client, receiver: Receiver) -> None:
    generation = load(http, "signed")
    http.put("/v1/graphs/signed/watches/w", json={"on": ["value"]})
    secret = put(http, receiver, "signed")["secret"]
    assert secret.startswith("whsec_")
    assert "secret" not in http.get("/v1/webhooks/h").json()
    assert "secret" not in put(http, receiver, "signed")
    patch(http, "signed", a=1)
    patch(http, "signed", c=7)
    expected = [f"{generation}-{end}" for end in ("2-version", "2-w-value", "3-version")]
    eventually(lambda: receiver.ids == expected)
    assert all(is_signed(one, secret) for one in receiver.received)
    one = receiver.received[1]
    assert (one.path, one.headers["content-type"]) == ("/in?a=1", "application/json")
    assert abs(int(one.headers["webhook-timestamp"]) - time.time()) < 60
    event = one.event
    assert (event["type"], event["id"], event["data"]["old_value"], event["data"]["value"]) == (
        "value.changed",
        one.id,
        6,
        4,
    )
    eventually(lambda: http.get("/v1/webhooks/h").json()["pending"] == 0)  # once the last answer is noted


def test_types_and_graphs_are_chosen(http: httpx.Client, receiver: Receiver) -> None:
    load(http, "one")
    load(http, "two")
    http.put("/v1/graphs/one/watches/w")
    put(http, receiver, "one", types=["value.changed", "graph.deleted"])
    patch(http, "one", a=1)
    patch(http, "two", a=1)
    http.delete("/v1/graphs/one")
    eventually(lambda: len(receiver.ids) == 2)
    assert [one.event["type"] for one in receiver.received] == ["value.changed", "graph.deleted"]


def test_what_fails_is_tried_again_with_the_same_id(http: httpx.Client, receiver: Receiver) -> None:
    load(http, "again")
    receiver.answers[:] = [500]
    put(http, receiver, "again")
    patch(http, "again", a=1)
    eventually(lambda: len(receiver.ids) == 1)
    eventually(lambda: http.get("/v1/webhooks/h/deliveries").json()["deliveries"][0]["attempts"] == 1)
    (waiting,) = http.get("/v1/webhooks/h/deliveries").json()["deliveries"]
    assert (waiting["answer"], waiting["error"], waiting["status"]) == (500, "answered 500", "pending")
    eventually(lambda: len(receiver.ids) == 2)
    assert len(set(receiver.ids)) == 1
    assert receiver.received[0].body == receiver.received[1].body
    eventually(lambda: http.get("/v1/webhooks/h").json()["pending"] == 0)


def test_a_redirect_is_a_failure_and_leads_nowhere(http: httpx.Client, receiver: Receiver) -> None:
    load(http, "away")
    receiver.answers[:], receiver.location = [302], f"{receiver.url}/elsewhere"
    put(http, receiver, "away")
    patch(http, "away", a=1)
    eventually(lambda: http.get("/v1/webhooks/h/deliveries").json()["deliveries"] != [])
    eventually(lambda: http.get("/v1/webhooks/h/deliveries").json()["deliveries"][0]["answer"] == 302)
    assert [one.path for one in receiver.received] == ["/in?a=1"]


def test_who_is_gone_gets_nothing_more_until_put_again(http: httpx.Client, receiver: Receiver) -> None:
    load(http, "gone")
    receiver.answers[:] = [410]
    put(http, receiver, "gone")
    patch(http, "gone", a=1)
    eventually(lambda: http.get("/v1/webhooks/h").json()["disabled"] is not None)
    patch(http, "gone", a=2)
    (dead,) = http.get("/v1/webhooks/h/deliveries", params={"status": "dead"}).json()["deliveries"]
    assert (dead["answer"], dead["status"]) == (410, "dead")
    assert put(http, receiver, "gone")["disabled"] is None
    eventually(lambda: len(receiver.ids) == 2)
    keyed = {"Idempotency-Key": "once more"}
    again = http.post(f"/v1/webhooks/h/deliveries/{dead['id']}:redeliver", headers=keyed)
    assert again.json()["status"] == "pending"
    eventually(lambda: len(receiver.ids) == 3)
    assert receiver.ids[2] == receiver.ids[0] == dead["id"]
    path = f"/v1/webhooks/h/deliveries/{dead['id']}"
    eventually(lambda: http.post(f"{path}:redeliver").json().get("code") == "unknown_webhook")  # once that is noted
    assert http.post(f"{path}:redeliver", headers=keyed).json() == again.json()


def test_a_rotated_secret_signs_beside_the_one_before(http: httpx.Client, receiver: Receiver) -> None:
    load(http, "turn")
    first = put(http, receiver, "turn")["secret"]
    second = http.post("/v1/webhooks/h:rotate").json()["secret"]
    patch(http, "turn", a=1)
    eventually(lambda: len(receiver.ids) == 1)
    assert first != second
    assert http.post("/v1/webhooks/h:rotate", json={"keep": 1}).json()["code"] == "invalid_body"
    assert all(is_signed(receiver.received[0], secret) for secret in (first, second))


def test_a_repeated_request_changes_nothing_more(http: httpx.Client, receiver: Receiver) -> None:
    """Whoever has not heard the answer asks again, under the same key: a secret that nobody saw would sign."""
    load(http, "once")
    body = {"url": f"{receiver.url}/in", "graphs": ["once"]}

    def ask(method: str, path: str = "", key: str = "k", **more: Any) -> httpx.Response:
        return http.request(method, f"/v1/webhooks/h{path}", headers={"Idempotency-Key": key}, **more)

    made, again = (ask("PUT", key="made", json=body) for _ in range(2))
    assert (made.status_code, again.status_code) == (201, 201)
    first = made.json()["secret"]
    assert again.json()["secret"] == first
    assert ask("PUT", key="changed", json=body).status_code == 200
    second, same = (ask("POST", ":rotate", key="turned").json()["secret"] for _ in range(2))
    assert second == same != first
    patch(http, "once", a=1)
    eventually(lambda: len(receiver.ids) == 1)
    assert all(is_signed(receiver.received[0], secret) for secret in (first, second))
    assert ask("POST", ":rotate", key="another").json()["secret"] != second
    for method, path, more in (("POST", ":rotate", {}), ("PUT", "", {"json": body | {"types": ["version"]}})):
        refused = ask(method, path, key="made", **more)
        assert (refused.status_code, refused.json()["code"]) == (409, "idempotency_conflict")
    assert [ask("DELETE", key="gone").status_code for _ in range(2)] == [204, 204]
    assert ask("DELETE", key="other").json()["code"] == "unknown_webhook"
    assert ask("PUT", key="made", json=body).json()["code"] == "idempotency_conflict"
    third = http.put("/v1/webhooks/h", json=body).json()["secret"]  # another one, of somebody else maybe
    for method, path, key, more in (("PUT", "", "made", {"json": body}), ("POST", ":rotate", "turned", {})):
        refused = ask(method, path, key=key, **more)
        assert (refused.status_code, refused.json()["code"]) == (409, "idempotency_conflict")
        assert third not in refused.text
    assert ask("DELETE", key="x" * 257).json()["code"] == "invalid_request"


def test_what_is_refused(http: httpx.Client, receiver: Receiver) -> None:
    def refused(**body: Any) -> tuple[str, str | None]:
        answer = http.put("/v1/webhooks/h", json={"url": "https://example.com/", "graphs": ["g"]} | body).json()
        return answer["code"], answer.get("field")

    for url in (
        *("http://example.com/", "ftp://example.com/", "https://u:p@example.com/", "https://", "example.com", ""),
        *("https://10.0.0.1/", "https://[::1]/", "https://localhost/", "https://169.254.169.254/latest"),
        *("https://0/", "https://2130706433/", "https://[::ffff:10.0.0.1]/", "https://example.com/#a", "https://a b/"),
    ):
        assert refused(url=url) == ("invalid_body", "/url"), url
    assert refused(graphs=[])[0] == refused(graphs=["a b"])[0] == refused(graphs=["g", "g"])[0] == "invalid_body"
    assert refused(types=["nothing"])[0] == refused(types=[])[0] == refused(more=1)[0] == "invalid_body"
    assert http.get("/v1/webhooks").json() == {"webhooks": []}
    for path in ("", ":rotate", "/deliveries/x:redeliver"):
        method = "GET" if not path else "POST"
        assert http.request(method, f"/v1/webhooks/none{path}").json()["code"] == "unknown_webhook"
    for n in range(3):
        put(http, receiver, "g", hook=f"h{n}")
    assert refused()[0] == "too_large"
    assert http.delete("/v1/webhooks/h0").status_code == 204
    assert http.delete("/v1/webhooks/h0").json()["code"] == "unknown_webhook"


def test_a_dead_letter_is_seen_and_sent_again(tmp_path: Path, receiver: Receiver) -> None:
    with serving(tmp_path, environment=WEBHOOKS | {"HEADRACE_WEBHOOK_GIVE_UP_S": "1e-6"}) as service:
        http = service.http
        load(http, "city")
        receiver.answers[:] = [503, 503]
        put(http, receiver, "city")
        patch(http, "city", a=1)
        eventually(lambda: http.get("/v1/webhooks/h").json()["dead"] == 1)
        (dead,) = http.get("/v1/webhooks/h/deliveries", params={"status": "dead"}).json()["deliveries"]
        assert (dead["attempts"], dead["next_at"]) == (1, None)
        http.post(f"/v1/webhooks/h/deliveries/{dead['id']}:redeliver")
        eventually(lambda: len(receiver.ids) == 2)
        eventually(lambda: http.get("/v1/webhooks/h").json()["dead"] == 1)
        http.post(f"/v1/webhooks/h/deliveries/{dead['id']}:redeliver")
        eventually(lambda: len(receiver.ids) == 3)
        eventually(lambda: (http.get("/v1/webhooks/h").json()["dead"], len(set(receiver.ids))) == (0, 1))


def test_each_event_arrives_through_kills_and_by_one_process(
    service: Service, http: httpx.Client, receiver: Receiver
) -> None:
    assert service.log is not None
    with another_api(service.log.parent / "data", WEBHOOKS) as other:
        generation = load(http, "killed")
        put(http, receiver, "killed", types=["version"])
        version = 1
        for role in ("api", "worker", "redis", "api"):
            for _ in range(3):
                version += 1
                assert patch(http, "killed", a=version)["version"] == version
            os.kill(service.children()[role], signal.SIGKILL)
            service.wait_ready()
        expected = {f"{generation}-{v}-version" for v in range(2, version + 1)}
        eventually(lambda: set(receiver.ids) == expected)
        eventually(lambda: other.get("/v1/webhooks/h").json()["pending"] == 0)
        firsts = [int(id.split("-")[1]) for id in dict.fromkeys(receiver.ids)]
        assert firsts == sorted(firsts)
        assert len(receiver.ids) <= len(expected) + 4  # what was on its way at a kill may come twice


def test_a_copy_that_is_tried_sends_nothing(tmp_path: Path, receiver: Receiver) -> None:
    """Receivers hear of the service alone, and nothing twice; what the copy has to send waits there."""
    with serving(tmp_path / "a", environment=dict(WEBHOOKS)) as service:
        load(service.http, "g")
        put(service.http, receiver, "g")
        patch(service.http, "g", a=5)
        eventually(lambda: len(receiver.received) == 1)
        back_up_service(Settings(data_dir=tmp_path / "a", redis_url=None), tmp_path / "b")
    with serving(tmp_path / "b", environment=dict(WEBHOOKS) | {"HEADRACE_SEND_WEBHOOKS": "false"}) as copy:
        patch(copy.http, "g", a=6)
        time.sleep(3)  # the courier looks every 2 s
        assert len(receiver.received) == 1
    with serving(tmp_path / "b", environment=dict(WEBHOOKS)):
        eventually(lambda: len(receiver.received) >= 2)
