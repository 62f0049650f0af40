"""Answers to loads and updates say what rounding has changed: over REST, in the client and in the shell."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
from headrace import Client, Rounded
from typer.testing import CliRunner

from service.cli.main import app

ENDS = {"tail": ["s", "s", "a"], "head": ["a", "t", "t"]}
THIRDS: dict[str, Any] = ENDS | {"capacity": [0.3333333, 2, 1.6666665]}


def put(http: httpx.Client, query: str, **more: Any) -> dict[str, Any]:
    answer = http.put(f"/v1/graphs/rounded{query}", json=THIRDS | more)
    assert answer.status_code in (200, 201), answer.text
    loaded: dict[str, Any] = answer.json()
    return loaded


def test_a_load_says_it_over_rest(service_url: str) -> None:
    with httpx.Client(base_url=service_url, timeout=60) as http:
        assert put(http, "?decimals=6&rounding=nearest")["rounded"] == {"rows": 2, "largest": "0.0000005"}
        again = put(http, "?decimals=6&rounding=nearest&cost_decimals=1", cost=[-0.25, 1, 2.1])
        assert again["rounded_costs"] == {"rows": 1, "largest": "0.05"}
        assert (again["decimals"], again["cost_decimals"]) == (6, 1)
        for query in ("", "?decimals=7", "?decimals=7&rounding=up", "?decimals=8&rounding=error"):
            exact = put(http, query)
            assert exact["cost_decimals"] is None
            assert not {"rounded", "rounded_costs"} & set(exact)
        put(http, "?decimals=0&rounding=up")
        info = http.get("/v1/graphs/rounded").json()
        assert "rounded" not in info
        copied = http.post("/v1/graphs/rounded:copy", json={"to": "rounded-2"})
        assert copied.status_code == 201
        assert "rounded" not in copied.json()
        http.delete("/v1/graphs/rounded-2")


def test_an_update_says_it_over_rest_and_when_it_is_repeated(service_url: str) -> None:
    with httpx.Client(base_url=service_url, timeout=60) as http:
        put(http, "?decimals=2&rounding=nearest", cost=[1, 2, 3])
        body = {"edges": [0, 1], "set": [0.125, 4], "rounding": "nearest"}
        for _ in range(2):
            answer = http.patch(
                "/v1/graphs/rounded/capacities", json=body, headers={"Idempotency-Key": "rounded-1"}
            ).json()
            assert (answer["version"], answer["rounded"]) == (2, {"rows": 1, "largest": "0.005"})
        for exact in ({"edges": [0], "set": [1.25]}, {"edges": [0], "add": [1.25], "rounding": "up"}):
            assert "rounded" not in http.patch("/v1/graphs/rounded/capacities", json=exact).json()
        scaled = {"edges": [0], "scale": ["0.3333"], "rounding": "down"}
        answer = http.patch("/v1/graphs/rounded/capacities", json=scaled).json()
        assert answer["rounded"] == {"rows": 1, "largest": "0.00325"}
        costs = {"edges": [0, 1], "add": [-0.5, 1], "rounding": "up"}
        answer = http.patch("/v1/graphs/rounded/costs", json=costs).json()
        assert answer["rounded"] == {"rows": 1, "largest": "0.5"}


def test_the_client_has_it_typed(service_url: str) -> None:
    with Client(service_url) as client:
        graph = client.put_graph(
            "rounded", **THIRDS, cost=[0.25, 1, 2], decimals=6, rounding="nearest", cost_decimals=1
        )
        assert graph.info.rounded == Rounded(2, Decimal("0.0000005"))
        assert graph.info.rounded_costs == Rounded(1, Decimal("0.05"))
        assert graph.info.cost_decimals == 1
        done = graph.patch(edges=[0], set=[1 / 3], rounding="up")
        assert done.rounded == Rounded(1, Decimal("0.0000006666666667"))
        assert graph.patch(edges=[0], set=[1]).rounded is None
        assert graph.refresh().rounded is None


def test_the_shell_shows_it(service_url: str, tmp_path: Path) -> None:
    file = tmp_path / "costly.csv"
    file.write_text("tail,head,capacity,cost\ns,t,0.25,1.26\ns,t,1,1\n")

    def shell(*words: str) -> str:
        done = CliRunner(env={"HEADRACE_URL": service_url}).invoke(app, list(words))
        assert done.exit_code == 0, done.output
        return done.output

    options = ("--decimals", "1", "--rounding", "down", "--cost-decimals", "1")
    shown = shell("load", "rounded", str(file), *options)
    assert "rounded        1 amount, by 0.05 at most\n" in shown
    assert "costs rounded  1 amount, by 0.06 at most\n" in shown
    assert "costs          yes, with 1 decimal\n" in shown
    loaded = json.loads(shell("load", "rounded", str(file), *options, "--json"), parse_float=Decimal)
    assert loaded["rounded"] == {"rows": 1, "largest": Decimal("0.05")}
    assert "costs  " in shell("info", "rounded")
    assert "rounded" in shell("patch", "rounded", "0=0.33", "--rounding", "up")
    assert "rounded" not in shell("patch", "rounded", "0=0.3")
    shell("delete", "rounded", "--yes")
