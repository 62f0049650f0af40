"""The notebooks of `examples/` are made of the programs beside them, run against a real service, and are right."""

import json
from collections.abc import Iterator
from functools import reduce
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib import pyplot
from numpy.typing import NDArray
from ortools.graph.python import min_cost_flow

from scripts.notebooks import notebook, programs
from tests.contract.test_examples import EXAMPLES, Ran, Run, capped_value, judge, value


@pytest.fixture
def run_notebook(
    service_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Run]:
    """Run the cells of a notebook as its reader would, in a folder that has the data of the examples."""
    monkeypatch.setenv("HEADRACE_URL", service_url)
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.chdir(tmp_path)
    for data in (*EXAMPLES.glob("*.npz"), *EXAMPLES.glob("*.json")):
        (tmp_path / data.name).symlink_to(data)

    def run(name: str) -> Ran:
        variables: dict[str, Any] = {"__name__": "__main__"}
        for cell in json.loads((EXAMPLES / name).read_text())["cells"]:
            if cell["cell_type"] == "code":
                exec(compile("".join(cell["source"]), name, "exec"), variables)
        return capsys.readouterr().out.splitlines(), variables

    yield run
    pyplot.close("all")


def check_picture(path: Path) -> None:
    """It has another colour than paper and ink somewhere."""
    picture = pyplot.imread(path)
    assert picture.shape[0] > 300
    assert np.ptp(picture[..., :3], axis=2).max() > 0.5


@pytest.mark.parametrize("program", programs(), ids=lambda program: program.stem)
def test_each_notebook_is_made_of_its_program(program: Path) -> None:
    """Where this fails, a program was changed and `python scripts/notebooks.py` has to follow."""
    assert program.with_suffix(".ipynb").read_text() == notebook(program)
    assert f"`{program.stem}.ipynb`" in (EXAMPLES / "README.md").read_text()


def both_ways(
    tail: NDArray[Any], head: NDArray[Any], capacity: NDArray[Any], undirected: NDArray[np.bool_]
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """The arcs of edges, of which some may be used in either direction."""
    twins = np.broadcast_to(undirected, tail.shape)
    return np.r_[tail, head[twins]], np.r_[head, tail[twins]], np.r_[capacity, capacity[twins]].astype(np.int64)


def test_evacuation(run_notebook: Run) -> None:
    lines, variables = run_notebook("evacuation.ipynb")
    town, plan, worst, wider = (variables[name] for name in ("town", "plan", "worst", "wider"))
    row = {name: at for at, name in enumerate(town["edge_ids"].tolist())}

    def out(capacity: NDArray[Any]) -> int:
        arcs = both_ways(town["tail"], town["head"], capacity, town["undirected"])
        return value(judge(*arcs), int(town["source"]), int(town["sink"]))

    capacity = town["capacity"].astype(np.int64)
    assert plan.value == out(capacity) == sum(capacity[row[street]] for street in plan.cut.edges)
    closed, widened = capacity.copy(), capacity.copy()
    closed[row[worst.edges[0]]] = 0
    assert worst.value == out(closed)
    widened[[row[street] for street in wider.edges]] += np.array(wider.add, np.int64)
    assert wider.value == out(widened) == plan.value + variables["LANE"]
    assert lines[0].startswith(f"{plan.value:,} vehicles/h, proven: True: ")
    check_picture(Path("evacuation.png"))


def test_logistics(run_notebook: Run) -> None:
    """As much as can arrive, and no plan of that much costs less: both by OR-tools, in tenths of a tonne."""
    lines, variables = run_notebook("logistics.ipynb")
    plan, streets = variables["plan"], variables["streets"]
    supply, demand = (
        {place: round(10 * most) for place, most in variables[name].items()} for name in ("supply", "demand")
    )
    tail, head, capacity = both_ways(streets["tail"], streets["head"], 10 * streets["capacity"], streets["undirected"])
    n = len(variables["town"]["x"])
    assert capped_value(tail, head, capacity, n, supply, demand) == 10 * plan.value
    cheapest = min_cost_flow.SimpleMinCostFlow()
    cheapest.add_arcs_with_capacity_and_unit_cost(
        np.r_[tail, [n] * len(supply), [*demand]],
        np.r_[head, [*supply], [n + 1] * len(demand)],
        np.r_[capacity, [*supply.values()], [*demand.values()]],
        np.r_[
            both_ways(
                tail=streets["tail"], head=streets["head"], capacity=streets["cost"], undirected=streets["undirected"]
            )[2],
            [0] * 11,
        ],
    )
    cheapest.set_nodes_supplies([n, n + 1], [int(10 * plan.value), -int(10 * plan.value)])
    assert cheapest.solve() == cheapest.OPTIMAL
    assert cheapest.optimal_cost() == 10 * plan.cost
    assert sum(way.amount for way in plan.paths) == plan.value
    assert lines[-1] == "Store 1698 is short of 1.5 t/h."
    check_picture(Path("logistics.png"))


def test_power_grid(run_notebook: Run) -> None:
    """Each of the 41 and of the 820 scenarios, by OR-tools, in tenths of a megawatt."""
    lines, variables = run_notebook("power_grid.ipynb")
    grid, supply, demand = (variables[name] for name in ("grid", "supply", "demand"))
    number_of = {bus: at for at, bus in enumerate(grid["vertex_labels"])}
    caps = [{number_of[bus]: round(10 * mw) for bus, mw in side.items()} for side in (supply, demand)]
    tail, head = (np.array([number_of[bus] for bus in grid[end]]) for end in ("tail", "head"))

    def without(*closed: str) -> float:
        capacity = np.where(np.isin(grid["edge_ids"], closed), 0, 10 * np.array(grid["capacity"]))
        return capped_value(*both_ways(tail, head, capacity, np.True_), len(number_of), *caps) / 10

    assert float(variables["one"].value) == without() == pytest.approx(sum(demand.values()))
    assert [float(row.value) for row in variables["one"]] == [without(line) for line in grid["edge_ids"]]
    assert [float(row.value) for row in variables["two"]] == [without(*pair) for pair in variables["pairs"]]
    assert lines[-1] == "Of 820 pairs 59 cost something, 30 MW at most."
    check_picture(Path("power_grid.png"))


def test_reliability(run_notebook: Run) -> None:
    """The bounds hold what all 16,384 ways to fail add up to, by union of the cities that are still joined."""
    lines, variables = run_notebook("reliability.ipynb")
    net, links, down = variables["net"], variables["links"], variables["DOWN"]
    ends = [(tail, head) for tail, head in zip(net["tail"], net["head"], strict=True)]
    city = {name: 1 << at for at, name in enumerate(net["vertex_labels"])}
    cut_off = 0.0
    for failed in product((False, True), repeat=len(links)):
        reached, before = city[net["source"]], 0
        open_ = [city[tail] | city[head] for (tail, head), out in zip(ends, failed, strict=True) if not out]
        while reached != before:
            before = reached
            reached = reduce(lambda so_far, link: so_far | link if so_far & link else so_far, open_, reached)
        if not reached & city[net["sink"]]:
            cut_off += down ** sum(failed) * (1 - down) ** (len(links) - sum(failed))
    low, high = variables["minutes"]
    assert low <= cut_off * 525_600 <= high
    assert lines[0].startswith("20 Gbit/s with all links; less than 10 for ")
    check_picture(Path("reliability.png"))
