"""The programs of `examples/` run against a real service, and what they print is right by other libraries."""

import re
import runpy
import struct
import zlib
from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias
from xml.etree import ElementTree

import numpy as np
import pytest
from numpy.typing import NDArray
from ortools.graph.python import max_flow

EXAMPLES = Path(__file__).parents[2] / "examples"
PROGRAMS = sorted(path.name for path in EXAMPLES.glob("*.py"))
MAX_LINES = 40
PLENTY = 1 << 40

Ran: TypeAlias = tuple[list[str], dict[str, Any]]
"""The lines that a program prints, and its variables."""
Run: TypeAlias = Callable[[str], Ran]


@pytest.fixture
def run(service_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a program as its reader would, in an empty folder."""
    monkeypatch.setenv("HEADRACE_URL", service_url)
    monkeypatch.chdir(tmp_path)

    def run(name: str) -> Ran:
        variables = runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        return capsys.readouterr().out.splitlines(), variables

    return run


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_is_short_and_listed(name: str) -> None:
    text = (EXAMPLES / name).read_text()
    assert len(text.splitlines()) < MAX_LINES
    assert "headrace serve" in text
    assert f"`{name}`" in (EXAMPLES / "README.md").read_text()


def test_no_example_replaces_a_graph_of_another_or_of_the_quick_start() -> None:
    pages = [EXAMPLES / name for name in PROGRAMS] + [EXAMPLES.parent / "docs" / "quick-start.md"]
    named = [re.findall(r'put_graph\(\s*"([^"]+)"', page.read_text()) for page in pages]
    names = [name for names in named for name in names]
    assert all(named)
    assert len(set(names)) == len(names)


def test_quickstart(run: Run) -> None:
    lines, _ = run("quickstart.py")
    assert lines[0].startswith(
        "5 through <Graph quickstart: 4 vertices, 4 edges>, certificate valid: True, cut ('s-a', "
    )
    assert lines[1:] == ["version 2: 5 -> 6 (warm)", "b-t closed: 4"]


def test_town(run: Run) -> None:
    """What `test_notebooks.py` says of the value and of the cut holds for the same graph here."""
    lines, variables = run("town.py")
    assert lines[0] == "6,000 vehicles an hour, proven: True. They queue at:"
    assert len(lines) == 5
    picture = ElementTree.parse("town.svg").getroot()
    assert len(picture) == len(variables["streets"]) - 24
    assert sum(line.get("stroke") == "#f60" for line in picture) == 4


def test_districts(run: Run) -> None:
    """Six parts within the limit, a border as the edges have it, and hardly a junction that moves."""
    lines, variables = run("districts.py")
    assert lines[0].startswith("full: (")
    tail, head, before = variables["tail"], variables["head"], variables["before"]
    part = np.array([before[junction] for junction in range(len(before))])
    assert int((part[tail] != part[head]).sum()) == int(lines[0].split(" street")[0].split()[-1])
    assert np.bincount(part).max() <= 1.03 * len(part) / 6
    assert lines[1].startswith("incremental: ")
    assert variables["kept"] > 0.95 * len(part)
    assert lines[2].startswith("incremental: of equal demand, (")
    assert max(variables["plan"].part_weight) <= variables["plan"].limit


def test_drivers(run: Run) -> None:
    lines, variables = run("drivers.py")
    plan = variables["plan"].pairs
    assert len(plan) == 3
    assert {"Ann", "Bob"} & set(plan) == {"Bob"}
    assert len(variables["cover"]) == 3
    assert all({driver, load} & set(variables["cover"]) for driver, load in variables["rows"] if driver != "Ann")
    assert all(load in variables["CAN_DRIVE"][driver] for driver, load in plan.items())
    assert lines[-1].startswith("3 loads are driven")


def judge(tail: NDArray[Any], head: NDArray[Any], capacity: NDArray[Any]) -> max_flow.SimpleMaxFlow:
    solver = max_flow.SimpleMaxFlow()
    solver.add_arcs_with_capacity(tail, head, capacity)
    return solver


def value(solver: max_flow.SimpleMaxFlow, source: int, sink: int) -> int:
    assert solver.solve(source, sink) == solver.OPTIMAL
    return int(solver.optimal_flow())


def roads(name: str) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], int]:
    with np.load(EXAMPLES / name) as file:
        return file["src"], file["dst"], file["cap"].astype(np.int64), int(file["n"])


def test_warehouses(run: Run) -> None:
    lines, variables = run("warehouses.py")
    plan, supply, demand = (variables[name] for name in ("plan", "supply", "demand"))
    assert (len(supply), len(demand)) == (8, 39)
    tail, head, capacity, n = roads("osm-heidelberg.npz")
    best = capped_value(tail, head, capacity, n, supply, demand)
    assert plan.value == best

    pairs = re.findall(r"^ *(\d+) -> (\d+) +([\d,]+) +(\d+) +(\d+)$", "\n".join(lines), re.M)
    amounts = {(int(a), int(b)): number(amount) for a, b, amount, _, _ in pairs}
    assert sum(amounts.values()) == best
    for warehouse, most in supply.items():
        assert sum(amount for pair, amount in amounts.items() if pair[0] == warehouse) <= most
    short = {}
    for store, most in demand.items():
        missing = most - sum(amount for pair, amount in amounts.items() if pair[1] == store)
        assert missing >= 0
        short |= {store: missing} if missing else {}
    said = re.findall(r"^Store (\d+) is short of ([\d,]+)\.$", "\n".join(lines), re.M)
    assert {int(store): number(missing) for store, missing in said} == short
    check_routes(variables, tail, head, capacity)

    streets = re.findall(r"^  street (\d+) from junction (\d+) to (\d+): ([\d,]+)$", "\n".join(lines), re.M)
    assert all((tail[int(s)], head[int(s)], capacity[int(s)]) == (int(a), int(b), number(c)) for s, a, b, c in streets)
    full, sated = ([int(name) for name in re.findall(r"\d+", line)] for line in lines[-2:])
    pays = sum(number(c) for *_, c in streets) + sum(map(supply.get, full)) + sum(map(demand.get, sated))
    assert pays == best
    assert f"{best:,} of 23,400 vehicles/h arrive" in "\n".join(lines)
    # With these streets closed, none who has something left to send reaches one who wants more.
    open_ = np.ones(len(tail), bool)
    open_[[int(street) for street, *_ in streets]] = False
    left = {name: PLENTY for name in supply if name not in full}, {name: PLENTY for name in demand if name not in sated}
    assert capped_value(tail[open_], head[open_], capacity[open_], n, *left) == 0


def check_routes(variables: Mapping[str, Any], tail: NDArray[Any], head: NDArray[Any], capacity: NDArray[Any]) -> None:
    """Each route is a way through the streets, and together they fit into them."""
    used = np.zeros(len(tail), np.int64)
    for (warehouse, store), ways in variables["routes"].items():
        for way in ways:
            edges = np.array(way.edges)
            assert tail[edges[0]] == warehouse
            assert head[edges[-1]] == store
            assert (head[edges[:-1]] == tail[edges[1:]]).all()
            np.add.at(used, edges, way.amount)
    assert (used <= capacity).all()


def capped_value(
    tail: NDArray[Any],
    head: NDArray[Any],
    capacity: NDArray[Any],
    n: int,
    supply: Mapping[int, int],
    demand: Mapping[int, int],
) -> int:
    """By OR-tools, with an arc to each source and from each sink."""
    solver = judge(tail, head, capacity)
    solver.add_arcs_with_capacity(np.full(len(supply), n), np.array([*supply]), np.array([*supply.values()]))
    solver.add_arcs_with_capacity(np.array([*demand]), np.full(len(demand), n + 1), np.array([*demand.values()]))
    return value(solver, n, n + 1)


def number(text: str) -> int:
    return int(text.replace(",", ""))


def test_pairs(run: Run) -> None:
    lines, variables = run("pairs.py")
    tail, head, capacity, _ = roads("osm-heidelberg.npz")
    solver = judge(tail, head, capacity)
    table = [[number(word) for word in line.split()[1:]] for line in lines[:11]]
    ends, starts = table[0], [int(line.split()[0]) for line in lines[1:11]]
    assert (starts, ends) == (variables["starts"], variables["ends"])
    assert table[1:] == [[value(solver, start, end) for end in ends] for start in starts]

    streets = [edges for _, edges in variables["found"]]
    said = [re.findall(r"\d[\d,]*", line) for line in lines[11:]]
    assert len(said) == 8
    found = np.bincount(np.concatenate(streets))
    assert [int(n_pairs) for _, _, _, n_pairs, _ in said] == sorted(found, reverse=True)[:8]
    for name, start, end, n_pairs, loss in said:
        street = int(name)
        assert (tail[street], head[street], capacity[street]) == (int(start), int(end), number(loss))
        assert sum(street in edges for edges in streets) == int(n_pairs)
    worst = int(said[0][0])
    without = judge(np.delete(tail, worst), np.delete(head, worst), np.delete(capacity, worst))
    for (start, end), edges in zip(product(starts, ends), streets, strict=True):
        if worst in edges:
            assert value(without, start, end) == value(solver, start, end) - capacity[worst]


def test_segmentation(run: Run, tmp_path: Path) -> None:
    lines, variables = run("segmentation.py")
    image, truth, smooth = variables["image"], variables["truth"], variables["SMOOTH"]
    picture = read_png(tmp_path / "segmentation.png")
    assert picture.shape == (512, 1024)
    assert (picture[:, :512] == image).all()
    found = picture[:, 512:] == 255
    assert (found | (picture[:, 512:] == 0)).all()

    # No other division costs less: what this one costs is what flows from source to sink at most.
    lean = image.astype(np.int64) - 128
    outline = (found[:, 1:] != found[:, :-1]).sum() + (found[1:] != found[:-1]).sum()
    cost = int(smooth * outline + abs(lean)[found != (lean > 0)].sum())
    pixel = np.arange(image.size).reshape(image.shape)
    ends = np.r_[pixel[:, :-1].ravel(), pixel[:-1].ravel()], np.r_[pixel[:, 1:].ravel(), pixel[1:].ravel()]
    solver = judge(np.r_[ends], np.r_[ends[::-1]], np.full(2 * len(ends[0]), smooth))
    bright, dark = pixel[lean > 0], pixel[lean < 0]
    solver.add_arcs_with_capacity(np.full(len(bright), image.size), bright, lean[lean > 0])
    solver.add_arcs_with_capacity(dark, np.full(len(dark), image.size + 1), -lean[lean < 0])
    assert cost == value(solver, image.size, image.size + 1)

    rows, columns = np.nonzero(found)
    spans = f"rows {rows.min()}-{rows.max()}, columns {columns.min()}-{columns.max()}"
    wrong, before = np.mean(found != truth), np.mean((lean > 0) != truth)
    assert lines == [
        f"The object: {found.sum():,} pixels, {spans}.",
        f"Pixels told wrongly: {wrong:.2%}; by brightness alone {before:.2%}.",
    ]
    assert wrong < before / 50


def read_png(path: Path) -> NDArray[np.uint8]:
    """The pixels of an 8 bit grey image whose lines are not filtered, after the PNG specification."""
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = [], 8
    while at < len(data):
        (length,) = struct.unpack_from(">I", data, at)
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        assert struct.unpack_from(">I", data, at + 8 + length) == (zlib.crc32(kind + body),)
        chunks.append((kind, body))
        at += 12 + length
    assert [kind for kind, _ in chunks] == [b"IHDR", b"IDAT", b"IEND"]
    width, height, *form = struct.unpack(">2I5B", chunks[0][1])
    assert form == [8, 0, 0, 0, 0]
    lines = np.frombuffer(zlib.decompress(chunks[1][1]), np.uint8).reshape(height, width + 1)
    assert not lines[:, 0].any()
    return lines[:, 1:]


def test_closures(run: Run) -> None:
    lines, variables = run("closures.py")
    tail, head, capacity, _ = roads("osm-heidelberg.npz")
    s, t, cut = variables["s"], variables["t"], variables["bottleneck"]

    def without(*streets: int) -> int:
        closed = capacity.copy()
        closed[list(streets)] = 0
        return value(judge(tail, head, closed), s, t)

    base = without()
    assert base == variables["single"].value == sum(capacity[cut])
    values = {row.id: row.value for row in variables["single"]}
    assert all(values[street] == base - capacity[street] for street in cut)
    assert [values[street] for street in cut[:3]] == [without(street) for street in cut[:3]]
    worst = variables["worst"]
    assert worst.value == without(*variables["pairs"][worst.row].close)
    study = variables["study"]
    assert study.candidates == len(tail)
    assert [street.loss for street in study] == [base - without(street.edges[0]) for street in study]
    assert study[0].loss >= max(capacity[cut])
    assert all(row.certificate.valid for row in [*variables["single"], *variables["double"]])
    assert lines[0].startswith(f"{base:,} vehicles/h get through, proven: True; {len(cut)} streets")
    assert lines[-1].endswith("still at version 1.")
