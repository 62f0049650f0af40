"""The `headrace` command against a real service: API process, worker and Redis."""

import json
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from headrace import Client
from typer.testing import CliRunner

from service.cli import edges, places
from service.cli.connection import MISWRITTEN, REFUSED
from service.cli.main import app
from tests.serving import serving

#        3        4
#   s ------> a ------> t
#    \                  ^
# 2.5 \         2      /
#      +-----> b -----+
CITY = {
    "tail": ["s", "s", "a", "b"],
    "head": ["a", "b", "t", "t"],
    "capacity": [3, 2.5, 4, 2],
    "edge_ids": ["s-a", "s-b", "a-t", "b-t"],
    "source": "s",
    "sink": "t",
}


@pytest.fixture
def city(service_url: str, tmp_path: Path) -> Path:
    file = tmp_path / "city.json"
    file.write_text(json.dumps(CITY))
    with Client(service_url) as client:
        client.put_graph("city", file)
    return file


class Shell:
    def __init__(self, url: str) -> None:
        self.url = url

    def __call__(self, *words: str, expect: int = 0, typed: str = "") -> str:
        """What a command prints, to either stream."""
        return self._run(words, expect, typed).output

    def json(self, *words: str, typed: str = "") -> Any:
        """What a program reads; a bar for people, where the command takes long, goes to the other stream."""
        return json.loads(self._run((*words, "--json"), 0, typed).stdout, parse_float=Decimal)

    def _run(self, words: Sequence[str], expect: int, typed: str) -> Result:
        done = CliRunner(env={"HEADRACE_URL": self.url}).invoke(app, list(words), input=typed)
        assert done.exit_code == expect, done.output
        return done


@pytest.fixture
def shell(service_url: str) -> Shell:
    return Shell(service_url)


def test_graphs(shell: Shell, city: Path) -> None:
    loaded = shell.json("load", "town", str(city))
    assert (loaded["name"], loaded["version"], loaded["decimals"]) == ("town", 1, 1)
    assert {"city", "town"} <= {graph["name"] for graph in shell.json("list")}
    lines = shell("list").splitlines()
    assert lines[0].split() == ["NAME", "VERSION", "VERTICES", "EDGES", "MEMORY", "ENGINE", "WORKER", "UPDATED"]
    (town,) = [line.split() for line in lines if line.startswith("town")]
    assert town[1:4] == ["1", "4", "4"]
    assert shell.json("info", "town")["n_edges"] == 4
    assert "vertices  4\n" in shell("info", "town")
    assert "is kept" in shell("delete", "town", typed="n\n", expect=MISWRITTEN)
    assert "is at version 1" in shell("delete", "town", typed="y\n")
    assert shell("info", "town", expect=REFUSED).startswith("headrace: unknown_graph: ")
    shell("delete", "town", "--yes", expect=REFUSED)


def test_questions(shell: Shell, city: Path) -> None:
    answer = shell.json("solve", "city", "--flow")
    assert (answer["value"], answer["certificate"]["valid"]) == (5, True)
    assert answer["flow"]["amount"] == [3, 2, 3, 2]
    shown = shell("solve", "city", "--source", "s", "--sink", "t", "--flow")
    assert "flow     5\n" in shown
    assert "yes: a cut of 5 proves it" in shown
    assert [line.split() for line in shown.splitlines()[-4:]] == [
        ["s-a", "3"],
        ["s-b", "2"],
        ["a-t", "3"],
        ["b-t", "2"],
    ]
    cut = shell.json("cut", "city")["cut"]
    assert (cut["value"], set(cut["edges"]), cut["unique"]) == (5, {"s-a", "b-t"}, True)
    shown = shell("cut", "city")
    assert "the only minimum cut" in shown
    assert {"s-a", "b-t"} <= set(shown.split())
    assert [line.split() for line in shown.splitlines()[-3:]] == [
        ["EDGE", "OF", "THE", "CUT", "PAYS"],
        ["s-a", "3"],
        ["b-t", "2"],
    ]
    assert "headrace: source_is_sink: " in shell("cut", "city", "--source", "s", "--sink", "s", expect=REFUSED)


def test_amounts_are_numbers(shell: Shell, city: Path) -> None:
    changed = shell.json("patch", "city", "b-t=3.5", "s-a=close")
    assert changed["version"] == 2
    assert shell.json("solve", "city")["value"] == Decimal("2.5")
    assert "flow     2.5\n" in shell("solve", "city")
    shown = shell("patch", "city", "s-a=reopen", "a-t=inf").splitlines()
    assert shown[0] == "version    3"
    assert shown[-2].split() == ["FLOW", "BEFORE", "NOW", "FOUND"]
    assert shown[-1].split()[:5] == ["s", "to", "t", "2.5", "5.5"]
    assert "unknown_edge" in shell("patch", "city", "x=1", expect=REFUSED)


def test_matching(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "shift.json"
    pairs = {"tail": ["Ann", "Ann", "Bob"], "head": ["L1", "L2", "L1"], "capacity": [1, 1, 1]}
    file.write_text(json.dumps(pairs))
    shell("load", "shift", str(file))
    assert shell.json("matching", "shift")["size"] == 2
    shown = shell("matching", "shift", "--cover").splitlines()
    assert shown[0] == "pairs    2"
    assert sorted(line.split()[:2] for line in shown[6:8]) == [["Ann", "L2"], ["Bob", "L1"]]
    assert shown[9].split() == ["COVER", "SIDE"]
    assert "not_bipartite" in shell("matching", "shift", "--left", "Ann", "--left", "L1", expect=REFUSED)


def test_jobs(shell: Shell, city: Path) -> None:
    shell("solve", "city")
    listed = shell.json("jobs")
    newest = listed[0]
    assert (newest["kind"], newest["graph"], newest["status"]) == ("max-flow", "city", "succeeded")
    assert shell("jobs").splitlines()[1].split()[:4] == [newest["id"], "max-flow", "city", "succeeded"]
    assert shell.json("jobs", newest["id"])["result"]["value"] == 5
    assert "status    succeeded\n" in shell("jobs", newest["id"])
    assert "too late" in shell("jobs", newest["id"], "--cancel", expect=REFUSED)
    assert "unknown_job" in shell("jobs", "nobody", expect=REFUSED)


def test_snapshots_estimate_and_status(shell: Shell, city: Path) -> None:
    assert "there are no snapshots" in shell("snapshots", "city")
    (snapshot,) = shell.json("snapshots", "city", "--write")
    assert snapshot["version"] == 1
    assert shell("snapshots", "city").splitlines()[1].split()[0] == "1"
    needs = shell.json("estimate", "50000", "120000", "--links", "110000")
    assert needs["host"]["fits"] is True
    assert needs["device"]["fits"] is False
    assert shell("estimate", "50000", "120000").splitlines()[1].split()[0] == "host"
    assert shell.json("status")["workers"][0]["ready"] is True
    assert "yes" in shell("status")


def test_a_service_with_keys(tmp_path: Path) -> None:
    """The key of the option goes before the one of the environment."""
    data = tmp_path / "keyed"
    environment = {"HEADRACE_DATA_DIR": str(data)}
    made = CliRunner(env=environment).invoke(app, ["keys", "create", "reader", "--scope", "read"])
    assert made.exit_code == 0, made.output
    key = made.stdout.strip()
    with serving(data, tmp_path / "serve.log") as service:
        url, shell = service.url, Shell(service.url)
        asked = shell("list", expect=REFUSED)
        assert asked.startswith("headrace: unauthorised: send an API key")
        assert asked.endswith("with --key or HEADRACE_API_KEY\n")
        assert shell("list", "--key", key) == "there are no graphs\n"
        keyed = CliRunner(env={"HEADRACE_URL": url, "HEADRACE_API_KEY": key})
        assert keyed.invoke(app, ["list"]).exit_code == 0
        assert "unknown or revoked" in keyed.invoke(app, ["list", "--key", "hr_wrong"]).output


def test_the_cheapest_flow(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "priced.csv"
    file.write_text("tail,head,capacity,id,cost\ns,t,2,dear,2.5\ns,t,3,cheap,-1\n")
    shell("load", "priced", str(file))
    ends = ("--source", "s", "--sink", "t")
    found = shell.json("min-cost", "priced", *ends, "--value", "4", "--flow")
    assert (found["cost"], found["value"], found["maximum"]) == (Decimal("-0.5"), 4, 5)
    assert found["flow"] == {"edges": ["dear", "cheap"], "amount": [1, 3], "acyclic": False}
    shown = shell("min-cost", "priced", *ends, "--paths", "1")
    assert "s     t        3  cheap" in shown
    assert "EDGE OF A CYCLE" not in shown
    paths = shell.json("min-cost", "priced", *ends, "--paths", "2")["paths"]
    assert (paths["amount"], paths["edges"]) == ([3, 2], ["cheap", "dear"])
    file.write_text("tail,head,capacity,id,cost\ns,t,2,way,1\ns,a,1,out,-3\na,s,1,back,1\n")
    shell("load", "round", str(file))
    assert "EDGE OF A CYCLE" in shell("min-cost", "round", *ends, "--paths", "1")
    assert "potentials prove 2" in shown
    assert "infeasible" in shell("min-cost", "priced", *ends, "--value", "9", expect=REFUSED)


def test_caps_on_supply_and_demand(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "roads.csv"
    file.write_text("tail,head,capacity,cost\nnorth,hub,6.5,2\nsouth,hub,4,1\nhub,A,3,3\nhub,B,7.5,2\n")
    shell("load", "supplied", str(file))
    caps = ("--supply", "north=8", "--supply", "south=2.5", "--demand", "A=1", "--demand", "B=8")
    found = shell.json("solve", "supplied", *caps)
    assert found["value"] == Decimal("8.5")
    assert dict(zip(found["terminals"]["sinks"], found["terminals"]["delivered"], strict=True)) == {"A": 1, "B": 7.5}
    assert "A        1\nB      7.5\n" in shell("solve", "supplied", *caps)
    shown = shell("cut", "supplied", *caps)
    assert "SINK WHOSE CAP IS IN THE CUT  PAYS\nA                                1\n" in shown
    assert shell.json("min-cost", "supplied", *caps)["cost"] == Decimal("32.5")
    assert "GETS" in shell("min-cost", "supplied", *caps)
    assert shell("solve", "supplied", "--supply", "north=8", "--supply", "north=1", expect=MISWRITTEN)
    assert shell.json("solve", "supplied", "--supply", "south=2.5", "--sink", "B")["value"] == Decimal("2.5")


def test_caps_of_scenarios_closures_and_bottlenecks(shell: Shell, city: Path) -> None:
    """Of what s may supply nothing is left for the second edge; without the cap each scenario loses something."""
    caps = ("--supply", "s=2", "--demand", "t=inf")
    (row,) = shell.json("what-if", "city", "--close", "s-b", *caps)["rows"]
    assert (row["value"], row["change"]) == (2, 0)
    (line,) = shell("what-if", "city", "--close", "s-a", *caps, "--lines").splitlines()
    assert json.loads(line)["value"] == 2
    (row,) = shell.json("what-if", "city", "--close", "s-b")["rows"]
    assert row["change"] == -2
    study = shell.json("closures", "city", "--top", "0", *caps)
    assert (study["value"], [row["loss"] for row in study["rows"]]) == (2, [0, 0, 0, 0])
    shown = shell("bottlenecks", "city", *caps)
    assert "flow     2\n" in shown
    assert shown.splitlines()[-1].split()[:2] == ["source", "s"]
    assert "names s twice" in shell("closures", "city", "--supply", "s=2", "--supply", "s=3", expect=MISWRITTEN)


def test_vertices_that_pay_for_the_cut(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "passed.json"
    capacities = {"vertices": ["u"], "vertex_capacity": [2.5]}
    file.write_text(json.dumps({"tail": ["s", "u"], "head": ["u", "t"], "capacity": [9, 9]} | capacities))
    shell("load", "passed", str(file))
    shown = shell("cut", "passed", "--source", "s", "--sink", "t")
    assert "no edge is in the cut\n\nVERTEX WHOSE CAPACITY IS IN THE CUT  PAYS\nu" in shown
    assert shown.splitlines()[-1].split() == ["u", "2.5"]


def test_names_that_are_digits(shell: Shell, tmp_path: Path) -> None:
    """Postal codes are text: one with zeros in front as it is, others in double quotes. Numbers may be negative."""
    (tmp_path / "codes.csv").write_text("tail,head,capacity,edge_ids\n01067,10115,4,7\n10115,20095,3,08\n")
    shell("load", "codes", str(tmp_path / "codes.csv"))
    ends = ("--source", "01067", "--sink", '"20095"')
    assert shell.json("solve", "codes", *ends)["value"] == 3
    shell("patch", "codes", '"7"=2', "08=close")
    assert shell.json("cut", "codes", "--source", "01067", "--sink", '"10115"')["cut"]["edges"] == ["7"]
    shell("edges", "insert", "codes", '09:"10115","20095"=5')
    assert shell.json("solve", "codes", *ends)["value"] == 2
    (tmp_path / "levels.csv").write_text("tail,head,capacity\n-1,4,4\n4,7,3\n")
    shell("load", "levels", str(tmp_path / "levels.csv"))
    assert shell.json("solve", "levels", "--source", "-1", "--sink", "7")["value"] == 3


def test_a_graph_is_loaded_from_a_pipe(shell: Shell, city: Path) -> None:
    rows = "tail,head,capacity\n01067,s,3\ns,t,2.5\n"
    assert shell.json("load", "piped", "-", "--format", "csv", typed=rows)["n_edges"] == 2
    assert shell.json("solve", "piped", "--source", "01067", "--sink", "t")["value"] == Decimal("2.5")
    assert "say what standard input has" in shell("load", "piped", "-", typed=rows, expect=MISWRITTEN)
    assert "does nothing beside a file" in shell("load", "piped", str(city), "--format", "csv", expect=MISWRITTEN)
    assert "the suffix must be one of" in shell("load", "piped", "-", "--format", "xls", typed=rows, expect=MISWRITTEN)


def test_edges_are_listed_as_of_one_version(shell: Shell, city: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edges, "PAGE", 3)
    shell("patch", "city", "s-b=close", "b-t=inf")
    assert [line.split() for line in shell("edges", "list", "city").splitlines()] == [
        ["EDGE", "TAIL", "HEAD", "CAPACITY", "CLOSED", "UNDIRECTED"],
        ["s-a", "s", "a", "3", "no", "no"],
        ["s-b", "s", "b", "2.5", "yes", "no"],
        ["a-t", "a", "t", "4", "no", "no"],
        ["b-t", "b", "t", "inf", "no", "no"],
    ]
    listed = shell.json("edges", "list", "city")
    assert (listed["graph"], listed["version"], listed["edge_ids"]) == ("city", 2, CITY["edge_ids"])
    assert listed["capacity"] == [3, Decimal("2.5"), 4, "inf"]
    rows = [json.loads(line) for line in shell("edges", "list", "city", "--lines").splitlines()]
    assert [row["edge"] for row in rows] == CITY["edge_ids"]
    assert rows[1] == {"edge": "s-b", "tail": "s", "head": "b", "capacity": 2.5, "closed": True, "undirected": False}
    assert "does nothing beside --lines" in shell("edges", "list", "city", "--lines", "--json", expect=MISWRITTEN)
    shell("edges", "delete", "city", *map(str, CITY["edge_ids"]))
    assert shell("edges", "list", "city") == "there are no edges\n"


def test_edges_of_paths_whose_names_have_blanks_are_told_apart(shell: Shell, tmp_path: Path) -> None:
    shown = []
    for ids in (["High Street 1", "Mill Lane 2"], [4, 7]):
        file = tmp_path / "streets.json"
        file.write_text(json.dumps({"tail": [0, 1], "head": [1, 2], "capacity": [2, 2], "edge_ids": ids}))
        shell("load", "streets", str(file))
        told = shell("solve", "streets", "--source", "0", "--sink", "2", "--paths", "1")
        shown.append(told.splitlines()[-1].split(maxsplit=3)[3])
    assert shown == ["High Street 1, Mill Lane 2", "4 7"]


def test_vertices_are_listed_as_of_one_version(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "PAGE", 2)
    file = tmp_path / "places.json"
    lies = {"vertex_labels": ["s", "a", "b", "t"], "x": [8.5, 8.6, 8.7, 8.8], "y": [49, 49.1, 49, 49.1]}
    file.write_text(json.dumps(CITY | lies | {"vertices": ["a"], "vertex_capacity": [2.5]}))
    shell("load", "places", str(file))
    assert [line.split() for line in shell("vertices", "places").splitlines()] == [
        ["VERTEX", "CAPACITY", "X", "Y"],
        ["a", "2.5", "8.6", "49.1"],
    ]
    listed = shell.json("vertices", "places", "--all")
    assert (listed["vertices"], listed["capacity"]) == (["s", "a", "b", "t"], ["inf", Decimal("2.5"), "inf", "inf"])
    assert (listed["graph"], listed["version"], listed["x"][3]) == ("places", 1, Decimal("8.8"))
    assert "--all lists them" in shell("vertices", "city")


def test_a_flow_is_written_as_a_map(shell: Shell, city: Path, tmp_path: Path) -> None:
    file, drawn = tmp_path / "drawn.json", tmp_path / "flow.geojson"
    lies = {"vertex_labels": ["s", "a", "b", "t"], "x": [8.5, 8.6, 8.7, 8.8], "y": [49, 49.1, 49, 49.1]}
    file.write_text(json.dumps(CITY | lies))
    shell("load", "drawn", str(file))
    assert "at version 1 is in" in shell("map", "drawn", str(drawn))
    streets = json.loads(drawn.read_text())["features"]
    assert {street["properties"]["id"] for street in streets if street["properties"]["in_cut"]} == {"s-a", "b-t"}
    shown = json.loads(shell("map", "drawn", "-", "--supply", "s=0", "--zeros"))
    assert (shown["value"], len(shown["features"])) == (0, 4)
    assert "not_acceptable" in shell("map", "city", str(drawn), expect=REFUSED)
    assert "No such file" in shell("map", "drawn", str(tmp_path / "nowhere" / "flow.geojson"), expect=REFUSED)


def test_edges_between_names_with_a_comma_or_a_colon(shell: Shell, tmp_path: Path) -> None:
    """In double quotes, as they stand in CSV; without them all is read as before."""
    file = tmp_path / "stations.csv"
    file.write_text('tail,head,capacity,edge_ids\n"Mannheim, Hbf",s:1,4,a\ns:1,"5"" pipe",3,b:c\n')
    shell("load", "stations", str(file))
    ends = ("--vertex", "s", "--vertex", "x,y")
    shell("edges", "insert", "stations", '"d:1":"Mannheim, Hbf","s:1"=2', 'e:f:"s:1","5"" pipe"=1', "g:s,x,y=1", *ends)
    shell("edges", "insert", "stations", '"h=1":"x,y",s=1')
    with Client(shell.url) as client:
        edges = client.graph("stations").capacities()
    assert list(edges.edge_ids) == ["a", "b:c", "d:1", "e:f", "g", "h=1"]
    assert list(edges.tail) == ["Mannheim, Hbf", "s:1", "Mannheim, Hbf", "s:1", "s", "x,y"]
    assert list(edges.head) == ["s:1", '5" pipe', "s:1", '5" pipe', "x,y", "s"]
    ends = ("--source", '"Mannheim, Hbf"', "--sink", '5" pipe')
    assert shell.json("solve", "stations", *ends)["value"] == 4
    assert "double quotes" in shell("edges", "insert", "--help")


def test_refusals_of_insertions_are_in_the_words_of_the_command(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "named.csv"
    file.write_text("tail,head,capacity,edge_ids\ns,a,4,x\na,t,3,y\n")
    shell("load", "named", str(file))
    (tmp_path / "numbered.csv").write_text("tail,head,capacity,cost\n0,1,4,1\n")
    shell("load", "numbered", str(tmp_path / "numbered.csv"))
    for words, told in [
        (("named", "s,a=3"), "have ids: write ID:TAIL,HEAD=CAPACITY"),
        (("named", "z:s,a=3", "w:s,a=-3"), "invalid_body: w:s,a=-3: -3 is negative"),
        (("named", "z:s,a=3", "--cost", "1"), "leave --cost out"),
        (("named", "z:s,b=3", "--vertex", "b", "--x", "1", "--y", "2"), "leave --x and --y out"),
        (("numbered", "z:0,1=3", "--cost", "1"), "are numbered: write TAIL,HEAD=CAPACITY"),
        (("numbered", "0,1=3"), "say --cost"),
    ]:
        assert told in shell("edges", "insert", *words, expect=REFUSED)
    assert "is not TAIL,HEAD" in shell("edges", "insert", "named", ":s,a=3", expect=MISWRITTEN)  # an ID that was empty
    assert shell.json("info", "named")["version"] == shell.json("info", "numbered")["version"] == 1


def test_closures(shell: Shell, city: Path) -> None:
    told = shell("closures", "city", "--top", "2")
    assert "LOSS" in told
    study = shell.json("closures", "city", "--top", "0")
    assert study["candidates"] == len(study["rows"]) == study["solved"] + study["skipped"]
    assert [row["loss"] for row in study["rows"]] == sorted((row["loss"] for row in study["rows"]), reverse=True)
    (worst,) = shell.json("closures", "city", "--top", "1")["rows"]
    assert worst == study["rows"][0]
    assert worst["certificate"]["valid"]
    cut = shell.json("closures", "city", "--cut", "--top", "0")["rows"]
    assert all(row["loss"] > 0 for row in cut)
    named = [word for row in cut for word in ("--close", str(row["edges"][0]))]
    assert shell.json("closures", "city", *named)["rows"][0]["loss"] == cut[0]["loss"]
    of_vertices = shell.json("closures", "city", "--vertices", "--top", "1")["rows"]
    assert (of_vertices[0]["edges"], len(of_vertices[0]["vertices"])) == ([], 1)
    shell("closures", "city", "--cut", "--close", "b-t", expect=MISWRITTEN)


def test_what_if(shell: Shell, city: Path) -> None:
    told = shell("what-if", "city", "a-t=1", "--close", "b-t", "--close", "zz")
    assert "a-t=1" in told
    assert "unknown_edge" in told
    rows = shell.json("what-if", "city", "a-t=1", "b-t=close")["rows"]
    assert [(row["id"], row["value"], row["change"]) for row in rows] == [("a-t=1", 3, -2), ("b-t=close", 3, -2)]
    lines = shell("what-if", "city", "a-t=1", "b-t=close", "--lines").splitlines()
    assert [json.loads(line) for line in lines] == rows
    (row,) = shell.json("what-if", "city", "a-t=1", "b-t=close", "--together")["rows"]
    assert row["value"] == 1
    assert shell.json("what-if", "city", "--close", "zz")["rows"][0]["error"]["code"] == "unknown_edge"
    assert "otherwise" in shell("what-if", "city", expect=MISWRITTEN)
    assert shell.json("info", "city")["version"] == 1


def test_pairs_trees_and_global_cuts(shell: Shell, city: Path, tmp_path: Path) -> None:
    file = tmp_path / "ring.csv"
    file.write_text("tail,head,capacity,undirected\nx,y,3,true\ny,z,2,true\nx,z,1,true\n")
    shell("load", "ring", str(file))
    rows = shell.json("pairs", "ring", "--among", "x", "--among", "y", "--among", "z")["rows"]
    assert [(row["source"], row["sink"], row["value"]) for row in rows] == [("x", "y", 4), ("x", "z", 3), ("y", "z", 3)]
    lines = shell("pairs", "ring", "--among", "x", "--among", "y", "--among", "z", "--lines").splitlines()
    assert [json.loads(line) for line in lines] == rows
    assert "unknown_vertex" not in shell("pairs", "ring", "--source", "x", "--sink", "z")
    assert shell.json("pairs", "ring", "--source", "x", "--sink", "x")["rows"][0]["error"]["code"] == "source_is_sink"
    assert "which pairs" in shell("pairs", "ring", "--source", "x", expect=MISWRITTEN)
    assert sorted(shell.json("tree", "ring")["tree"]["value"]) == [3, 4]
    assert "HANGS ON" in shell("tree", "ring", "--terminal", "x", "--terminal", "z")
    assert shell.json("global-cut", "ring")["value"] == 3
    assert "no open edge leads from the source side to the sink side" in shell("global-cut", "city")
    assert "2 from 1" in shell("global-cut", "ring") or "1 from 2" in shell("global-cut", "ring")


def test_what_limits_a_flow(shell: Shell, city: Path) -> None:
    told = shell("bottlenecks", "city", "--up-to", "9")
    assert "UP TO" in told
    assert "IN EVERY CUT" in told
    found = shell.json("bottlenecks", "city")["bottlenecks"]
    assert found["up_to"] is None
    edge = found["edges"][0]
    drawn = shell.json("parametric", "city", "--edge", edge, "--from", "1/3", "--to", "7/6")
    assert (drawn["segments"][0]["from"], drawn["segments"][-1]["to"], drawn["valid"]) == ("1/3", "7/6", True)
    curve = shell("parametric", "city", "--edge", "s-a", "--edge", "s-b", "--to", "3").splitlines()[-3:]
    assert [line.split(maxsplit=2)[2] for line in curve] == ["5.5 x factor", "2 + 3 x factor", "6"]
    assert "--supply" in shell("parametric", "city", "--to", "2", expect=MISWRITTEN)
    assert "no factor" in shell("parametric", "city", "--edge", edge, "--to", "much", expect=MISWRITTEN)
    every = [f"{each}=1.5" for each in ("s-a", "s-b", "a-t", "b-t")]
    found = shell.json("expand", "city", "1", *every)
    assert (found["value"], found["price"], sum(found["add"])) == (6, Decimal("1.5"), 1)
    assert "potentials prove" in shell("expand", "city", "1", *every)
    assert "infeasible" in shell("expand", "city", "9", *every, "--max-add", "1", expect=REFUSED)
    assert "NAME=AMOUNT" in shell("expand", "city", "1", "a-t", expect=MISWRITTEN)
    assert shell.json("info", "city")["version"] == 1


def test_what_must_flow(shell: Shell, city: Path) -> None:
    assert "s-b" in shell("circulation", "city", "--lower", "s-b=1", "--min-demand", "t=3")
    found = shell.json("circulation", "city", "--lower", "s-b=1", "--demand", "t=3")
    assert (found["feasible"], found["terminals"]["delivered"][0] <= 3) == (True, True)
    told = shell("circulation", "city", "--min-demand", "t=99")
    assert "99 must enter" in told
    assert "CAN, ALONG" in told
    found = shell.json("circulation", "city", "--no-terminals", "--lower", "s-b=1")
    assert (found["feasible"], found["proof"]["way"], found["proof"]["must"]) == (False, "enter", 1)
    assert "NAME=AMOUNT" in shell("circulation", "city", "--lower", "s-b", expect=MISWRITTEN)
    assert "unknown_edge" in shell("circulation", "city", "--lower", "x=1", expect=REFUSED)


def test_what_caps_of_terminals_limit(shell: Shell, city: Path) -> None:
    drawn = shell.json("parametric", "city", "--demand", "t=2", "--to", "3")
    assert [(one["to"], one["rate"]) for one in drawn["segments"]] == [("5/2", 2), ("3", 0)]
    found = shell.json("expand", "city", "0.5", "b-t=1", "--demand", "t=5.5")
    assert (found["maximum"], found["value"], found["edges"]) == (5, Decimal("5.5"), ["b-t"])
    assert "infeasible" in shell("expand", "city", "0.5", "b-t=1", "--supply", "s=5", expect=REFUSED)
    made = shell.json("watch", "city", "short", "--supply", "s=1.5", "--on", "value")
    assert made["value"] == Decimal("1.5")
    shell("watch", "city", "short", "--remove")


def test_costs_are_changed(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "priced.json"
    file.write_text(json.dumps(CITY | {"cost": [1, 1, 1, 1], "cost_decimals": 1}))
    shell("load", "priced", str(file))
    assert shell.json("min-cost", "priced")["cost"] == 10
    assert shell.json("patch", "priced", "s-a=2.5", "b-t=-1", "--cost")["applied"] == 2
    assert shell.json("min-cost", "priced")["cost"] == Decimal("10.5")
    assert "no_costs" in shell("patch", "city", "s-a=1", "--cost", expect=REFUSED)


def test_a_dry_run(shell: Shell, city: Path) -> None:
    shell("solve", "city")
    assert "nothing was changed" in shell("patch", "city", "b-t=9", "--dry-run")
    assert shell.json("patch", "city", "b-t=9", "--dry-run")["flow_states"][0]["value"] == Decimal("5.5")
    assert shell.json("info", "city")["version"] == 1
