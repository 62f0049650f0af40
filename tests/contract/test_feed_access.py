"""Feeds, watches and webhooks show a key what it is good for, and nothing else."""

from pathlib import Path

import httpx

from service.settings import Settings
from service.store.api_keys import ApiKeys, Scope
from service.store.connection import connect
from service.store.keys import Keys
from tests.contract.test_feed_live import CITY
from tests.serving import eventually, serving


def test_a_prefix_hides_feeds_and_webhooks(tmp_path: Path) -> None:
    with serving(tmp_path) as service:
        settings = Settings(data_dir=tmp_path, redis_url=None)
        with connect(settings) as client:
            ring = ApiKeys(client, Keys(settings.redis_prefix))
            made = {
                "admin": ring.create("admin", Scope.ADMIN, "")[1],
                "city": ring.create("city", Scope.UPDATE, "city-")[1],
                "reader": ring.create("reader", Scope.READ, "city-")[1],
            }
        eventually(lambda: service.http.get("/v1/graphs").status_code == 401)

        def ask(who: str, method: str, path: str, body: object = None) -> httpx.Response:
            headers = {"Authorization": f"Bearer {made[who]}"}
            return service.http.request(method, path, json=body, headers=headers)

        def code(who: str, method: str, path: str, body: object = None) -> object:
            answer = ask(who, method, path, body)
            return answer.json()["code"] if answer.status_code >= 400 else answer.status_code

        for name in ("city-a", "other"):
            assert ask("admin", "PUT", f"/v1/graphs/{name}", CITY).status_code == 201
        hook = {"url": "https://example.com/", "graphs": ["city-a"]}
        assert code("city", "PUT", "/v1/graphs/city-a/watches/w", {}) == 201
        assert code("reader", "PUT", "/v1/graphs/city-a/watches/w", {}) == "forbidden"
        assert code("reader", "DELETE", "/v1/graphs/city-a/watches/w") == "forbidden"
        assert code("reader", "GET", "/v1/graphs/city-a/watches") == 200
        for path in ("watches", "watches/w", "events"):
            assert code("city", "GET", f"/v1/graphs/other/{path}") == "forbidden"
        assert code("city", "PUT", "/v1/webhooks/mine", hook) == 201
        assert code("city", "PUT", "/v1/webhooks/theirs", hook | {"graphs": ["city-a", "other"]}) == "forbidden"
        assert code("admin", "PUT", "/v1/webhooks/theirs", hook | {"graphs": ["city-a", "other"]}) == 201
        for method, path in (("GET", ""), ("DELETE", ""), ("POST", ":rotate"), ("GET", "/deliveries")):
            assert code("city", method, f"/v1/webhooks/theirs{path}") == "unknown_webhook"
        assert code("city", "PUT", "/v1/webhooks/theirs", hook) == "already_exists"
        assert [one["id"] for one in ask("city", "GET", "/v1/webhooks").json()["webhooks"]] == ["mine"]
        assert code("reader", "GET", "/v1/webhooks") == "forbidden"
        assert len(ask("admin", "GET", "/v1/webhooks").json()["webhooks"]) == 2
