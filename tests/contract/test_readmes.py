"""The programs of the README and of the client's page do what stands beside them, each in a shell of its own."""

import gzip
import pathlib
import re
from pathlib import Path
from typing import Any

import igraph
import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from headrace import Client, Graph, Grid, Scenario, Update

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"```python\n(.*?)```", re.S)
SHOWN = re.compile(r"print\(.*\)  # (.+)")
QUICK = [BLOCK.findall((ROOT / page).read_text())[0] for page in ("README.md", "clients/python/README.md")]
FURTHER = [
    block for block in BLOCK.findall((ROOT / "clients/python/README.md").read_text())[1:] if "drain" not in block
]
"""What needs several workers is in `test_workers_live`."""


def city_of(hr: Client) -> Graph:
    """Two warehouses and 20 roads with one decimal, at version 2, of which there is a snapshot."""
    ends = [("s", "w1"), ("s", "w2"), ("w1", "a"), ("w2", "b"), ("a", "t"), ("b", "t"), ("t", "t1"), ("t", "t2")]
    ends += [("a", f"x{i}") for i in range(6)] + [(f"x{i}", "t") for i in range(6)]
    tail, head = zip(*ends, strict=True)
    city = hr.put_graph("city", tail=tail, head=head, capacity=[10.5] * len(ends))
    city.patch(edges=[0], set=[9])
    city.write_snapshot()
    return city


def names_of(hr: Client) -> dict[str, Any]:
    """What the page has before its programs begin."""
    roads = nx.DiGraph()
    roads.add_edge("s", "t", width=1 / 4, capacity=1 / 3)
    named = igraph.Graph([(0, 1)], directed=True, edge_attrs={"width": [2]})
    table = pd.DataFrame({"from": ["s"], "to": ["t"], "km": [2.5]})
    picture = np.arange(12).reshape(3, 4)
    given = {"tail": [0, 1], "head": [1, 9], "capacity": np.array([3, 2])}
    graphs = {"networkx_graph": roads, "igraph_graph": named, "pandas_table": table}
    images = {"foreground": picture, "background": picture[::-1], "brighter": picture + 1}
    modules = {"np": np, "pathlib": pathlib, "Grid": Grid, "Scenario": Scenario, "Update": Update}
    loaded = {"hr": hr, "city": city_of(hr), "roads": hr.put_graph("roads", **given)}
    return {**given, **graphs, **images, **modules, **loaded, "scipy_sparse_matrix": sp.coo_array(np.eye(3, k=1))}


@pytest.mark.parametrize("program", QUICK, ids=["README", "client"])
def test_quick_starts(program: str, service_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each prints what the comment beside it says."""
    exec(compile(program.replace("http://127.0.0.1:8080", service_url), "README", "exec"), {})
    assert capsys.readouterr().out.splitlines() == SHOWN.findall(program)


@pytest.mark.parametrize("program", FURTHER, ids=lambda program: program.partition("\n")[0][:40])
def test_further_programs(program: str, service_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "roads.max.gz").write_bytes(gzip.compress(b"p max 2 1\nn 1 s\nn 2 t\na 1 2 3\n"))
    with Client(service_url) as hr:
        exec(compile(program.replace("http://127.0.0.1:8080", service_url), "README", "exec"), names_of(hr))


def test_there_are_some() -> None:
    assert len(FURTHER) > 10
    assert all(len(SHOWN.findall(program)) == 2 for program in QUICK)
