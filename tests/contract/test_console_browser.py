"""The console in a headless Chromium, on a real service with keys. Skipped where there is no Chromium.

One walk through all that an operator does, so that one service and one browser serve all of it.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import httpx
import pytest
from headrace import Client

from tests.browser import NONE, Page, browser, find
from tests.serving import serving

EXAMPLES = Path(__file__).parents[2] / "examples"
HOSTILE = "<img src=x onerror=alert(1)>"
UNREADABLE = """(() => {
  const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const linear = (v) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const behind = (e) => {
    for (; e; e = e.parentElement) {
      const colour = parts(getComputedStyle(e).backgroundColor);
      if (colour.length < 4 || colour[3] === 1) return colour;
    }
    return matchMedia('(prefers-color-scheme: dark)').matches ? [18, 18, 18] : [255, 255, 255];
  };
  const hasText = (e) => [...e.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
  return [...document.querySelectorAll('body *')].filter((e) => {
    if (!e.getClientRects().length || e.disabled || !(e.placeholder || hasText(e))) return false;
    const ink = light(parts(getComputedStyle(e, e.placeholder && !e.value ? '::placeholder' : null).color));
    const paper = light(behind(e));
    return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05) < 4.5;
  }).map((e) => e.outerHTML.slice(0, 120));
})()"""
"""Texts with less contrast than 4.5 to what lies behind them (WCAG 2.2, 1.4.3)."""

PROGRAM = find()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason=NONE)


class Walk:
    """A service with keys, a browser, and an API client beside it."""

    def __init__(self, url: str, folder: Path, page: Page) -> None:
        self.url, self.folder, self.page = url, folder, page
        self.admin, self.reader = self.key("admin"), self.key("read")

    def key(self, scope: str) -> str:
        own = {"HEADRACE_DATA_DIR": str(self.folder)}
        command = [sys.executable, "-m", "service.cli", "keys", "create", scope, "--scope", scope]
        done = subprocess.run(command, env=os.environ | own, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def log_in(self, key: str) -> None:
        self.page.type("input[name=key]", key)
        self.page.press("Enter")

    def log_out(self) -> None:
        self.page.press_button("Log out")
        self.page.until("location.pathname === '/login'")

    def open(self, path: str) -> None:
        self.page.goto(f"{self.url}{path}")

    def value(self) -> str:
        value: str = self.page.until("document.getElementById('value')?.innerText.replace(/\\s/g, '')")
        return value

    def column(self, panel: str, place: int) -> list[str]:
        """The texts of one column of a table, without blanks, once it has rows."""
        rows = f"[...document.querySelectorAll('#panel-{panel} tbody tr')]"
        cells: list[str] = self.page.until(
            f"{rows}.length && {rows}.map((row) => row.cells[{place}].innerText.replace(/\\s/g, ''))"
        )
        return cells

    def until_value(self, value: str) -> None:
        self.page.until(f"document.getElementById('value')?.innerText.replace(/\\s/g, '') === '{value}'")


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Walk]:
    assert PROGRAM is not None
    folder, profile = tmp_path_factory.mktemp("console"), tmp_path_factory.mktemp("profile")
    with serving(folder, folder / "serve.log") as service, browser(profile, PROGRAM) as page:
        page.size(1280, 900)
        yield Walk(service.url, folder, page)


def test_a_day_of_an_operator(walk: Walk) -> None:
    a_wrong_key_is_refused_and_a_right_one_leads_to_the_console(walk)
    the_sample_is_loaded_and_solved(walk)
    an_edge_is_closed_as_what_if_and_then_for_real(walk)
    the_flow_is_shown_as_paths(walk)
    a_closure_study_ranks_the_edges(walk)
    the_vertices_are_shown_in_parts(walk)
    the_table_is_reached_from_the_keyboard(walk)
    a_file_is_loaded_and_drawn_around_its_cut(walk)
    a_job_is_cancelled(walk)
    what_strangers_have_named_is_text_and_exact(walk)
    integers_that_scripts_round_name_vertices(walk)
    names_are_found_by_a_part_and_drawn_whole(walk)
    long_names_leave_room_for_the_rest(walk)
    what_was_refused_is_gone_once_another_file_is_chosen(walk)
    a_graph_without_edges_says_so_and_a_name_that_is_cut_shows_it(walk)
    the_table_shows_the_edges_as_they_are_without_an_answer_too(walk)
    vertices_that_pay_for_the_cut_are_named(walk)
    lower_bounds_are_said_to_be_ignored(walk)
    small_values_are_seen_in_the_history(walk)
    three_vertices_are_shown_in_three_parts(walk)
    no_page_is_a_dead_end(walk)
    it_fits_a_phone(walk)
    its_texts_are_readable(walk)
    a_reader_cannot_change_anything(walk)
    assert walk.page.complaints == []


def a_wrong_key_is_refused_and_a_right_one_leads_to_the_console(walk: Walk) -> None:
    walk.open("/")
    seen = "[...document.querySelectorAll('input')].filter((e) => e.getClientRects().length).map((e) => e.name)"
    assert walk.page.js(seen) == ["key"]
    walk.log_in(walk.admin[:-1] + ("A" if walk.admin[-1] != "A" else "B"))
    walk.page.shows("This key is unknown or revoked.")
    walk.log_in(walk.admin)
    walk.page.shows("1 worker at work")
    assert walk.page.js("location.pathname") == "/console"
    assert walk.page.js("document.cookie + Object.keys(localStorage) + Object.keys(sessionStorage)") == ""
    walk.page.shows("No graph is loaded.")


def the_sample_is_loaded_and_solved(walk: Walk) -> None:
    walk.page.press_button("Load the sample town")
    walk.page.shows("Open sample-town")
    walk.open("/console/graphs/sample-town")
    with Client(walk.url, api_key=walk.admin) as client:
        expected = client.graph("sample-town").min_cut()
    assert walk.value() == str(expected.value)
    assert expected.cut is not None
    walk.page.shows("edges at their coordinates")
    assert walk.page.until("document.querySelectorAll('#panel-edges button.row').length") == len(expected.cut.edges)
    walk.page.until(
        "[...document.querySelectorAll('.canvas canvas')].some((c) => c.getContext('2d')"
        ".getImageData(0, 0, c.width, c.height).data.some((v) => v > 0))"
    )


def an_edge_is_closed_as_what_if_and_then_for_real(walk: Walk) -> None:
    before = int(walk.value())
    walk.page.click("button.row")
    walk.page.press_button("Try closing it")
    told = walk.page.until("document.getElementById('tried')?.innerText")
    assert "the graph is as it was" in told
    with Client(walk.url, api_key=walk.admin) as client:
        town = client.graph("sample-town")
        assert town.refresh().version == 1, "a scenario changes nothing"
        walk.page.press_button("Apply for real")
        walk.page.shows("Applied: the graph is at version 2.")
        after = town.max_flow().value
    assert after is not None
    assert int(after) < before
    walk.until_value(str(after))  # the page has heard of it by the feed
    walk.page.press_button("Events")
    walk.page.shows("Connected to the change feed.")
    walk.page.shows("new version")
    walk.page.press_button("History")
    walk.page.until("document.querySelectorAll('svg.chart .curve').length === 1")
    walk.page.shows("warm")
    edge = int(walk.page.js("document.querySelector('.one strong').innerText"))
    with Client(walk.url, api_key=walk.admin) as client:  # somebody else opens it again
        client.graph("sample-town").reopen([edge])
    walk.until_value(str(before))


def the_flow_is_shown_as_paths(walk: Walk) -> None:
    walk.page.press_button("Paths")
    walk.page.press_button("Show the paths")
    assert sum(map(int, walk.column("paths", 1))) == int(walk.value())
    walk.page.press_button("Show path 1 in the picture")


def a_closure_study_ranks_the_edges(walk: Walk) -> None:
    walk.page.press_button("Closure study")
    walk.page.press_button("Run the study")
    walk.page.shows("candidates")
    with Client(walk.url, api_key=walk.admin) as client:
        worst = client.graph("sample-town").closure_study(top=10)
    assert walk.column("study", 3) == [str(row.loss) for row in worst]


def the_vertices_are_shown_in_parts(walk: Walk) -> None:
    """With a legend of their own, until the flow is shown again."""
    legend = "[...document.querySelectorAll('.legend li')].map((item) => item.innerText)"
    of_flow = walk.page.js(legend)
    walk.page.press_button("Parts")
    walk.page.press_button("Divide")
    with Client(walk.url, api_key=walk.admin) as client:
        expected = client.graph("sample-town").partition(4, weights="one")
    assert walk.column("parts", 1) == [str(count) for count in expected.n_vertices]
    walk.page.shows(f"{expected.cut_edges} edges between parts")
    assert walk.page.js(legend) == ["part 1", "part 2", "part 3", "part 4", "between parts", "closed"]
    walk.page.press_button("Show the flow again")
    assert walk.page.js(legend) == of_flow
    walk.page.press_button("Divide")
    walk.page.until(f"{legend}.includes('part 4')")
    walk.page.press_button("Show the cut")
    assert walk.page.js(legend) == of_flow


def the_table_is_reached_from_the_keyboard(walk: Walk) -> None:
    tab = "document.activeElement.innerText"
    walk.page.press_button("Parts")
    walk.page.js("document.getElementById('tab-parts').focus()")
    for key, name in (("End", "Events"), ("ArrowRight", "Edges"), ("ArrowLeft", "Events"), ("Home", "Edges")):
        walk.page.press(key)
        assert walk.page.js(tab) == name
    assert walk.page.js("document.querySelectorAll('[role=tabpanel]:not([hidden])').length") == 1
    walk.page.js("document.getElementById('search').focus()")
    for _ in range(4):  # the table itself can be scrolled with keys, so it is on the way
        walk.page.press("Tab")
        if walk.page.js("document.activeElement.className") == "row":
            break
    row = walk.page.js("document.activeElement.innerText")
    walk.page.press("Enter")
    walk.page.until(f"document.querySelector('.one strong').innerText === '{row}'")
    unnamed = (
        "[...document.querySelectorAll('input, select, canvas, button, progress')].filter((e) => !e.innerText &&"
        " !e.labels?.length && !e.getAttribute('aria-label') && !e.hasAttribute('aria-hidden')).map((e) => e.outerHTML)"
    )
    assert walk.page.js(unnamed) == []


def a_file_is_loaded_and_drawn_around_its_cut(walk: Walk) -> None:
    walk.open("/console")
    walk.page.until("document.getElementById('file')")
    walk.page.choose_file("#file", EXAMPLES / "osm-andorra.npz")
    assert walk.page.until("document.getElementById('name').value") == "osm-andorra"
    walk.page.press_button("Load")
    walk.page.shows("Open osm-andorra")
    walk.page.until(  # else the row that comes moves the button away from under the mouse
        "[...document.querySelectorAll('td')].some((cell) => cell.innerText.includes('osm-andorra'))"
    )
    walk.page.press_button("Load")
    walk.page.shows("There is a graph osm-andorra already. Open osm-andorra, replace it, or choose another name.")
    walk.open("/console/graphs/osm-andorra")
    walk.page.shows("around the minimum cut")  # drawn now, or once that of the file's own terminals is known
    walk.page.type("#source", "16541")
    walk.page.type("#sink", "16542")
    walk.page.press_button("Solve")
    walk.page.shows("edges around the minimum cut, of 32")
    with Client(walk.url, api_key=walk.admin) as client:
        assert walk.value() == str(client.graph("osm-andorra").max_flow(16541, 16542).value)
    walk.page.press_button("Show all")
    walk.page.until(  # the text at the lower edge lies on nothing that is drawn
        "(() => { const c = document.querySelector('.canvas canvas'), n = document.getElementById('map-help');"
        " const under = Math.floor((n.offsetHeight * c.height) / c.clientHeight), above = c.height - under;"
        " const drawn = (y, h) => c.getContext('2d').getImageData(0, y, c.width, h).data.some((v) => v > 0);"
        " return under > 0 && drawn(0, above) && !drawn(above, under); })()"
    )


def a_job_is_cancelled(walk: Walk) -> None:
    with Client(walk.url, api_key=walk.admin) as client:
        scenarios = [{"batch": [{"edges": [row], "op": "close"}]} for row in range(20_000)]
        body = {"sources": [16541], "sinks": [16542], "fields": ["value", "cut"], "scenarios": scenarios}
        headers = {"X-API-Key": walk.admin, "Prefer": "respond-async"}
        path = f"{walk.url}/v1/graphs/osm-andorra/what-if"
        job = client.job(httpx.post(path, json=body, headers=headers, trust_env=False, timeout=60).json()["id"])
        walk.open("/console")
        walk.page.press_button("Cancel what-if of osm-andorra")
        walk.page.until("document.querySelector('td .tag.bad')?.innerText === 'cancelled'")
        assert job.refresh().status == "cancelled"


def what_strangers_have_named_is_text_and_exact(walk: Walk) -> None:
    with Client(walk.url, api_key=walk.admin) as client:
        client.put_graph("odd", tail=["s", HOSTILE], head=[HOSTILE, "t"], capacity=["90071992547409.93", "inf"],
                         edge_ids=[HOSTILE + "1", "</script>"], source="s", sink="t")  # fmt: skip
    walk.open("/console/graphs/odd")
    walk.until_value("90071992547409.93")
    walk.page.shows(HOSTILE)
    walk.page.shows("In layers from the source")
    walk.page.click("button.row")
    for typed, told in (("x", "A capacity is a number such as 12"), ("0.0001", "This cannot be tried.")):
        walk.page.type("#amount", typed)
        walk.page.press("Enter")
        walk.page.shows(told)
    assert walk.page.js("document.querySelectorAll('main img').length") == 0
    walk.open("/console/graphs/none")
    walk.page.shows("No such graph: there is no graph 'none'")


def integers_that_scripts_round_name_vertices(walk: Walk) -> None:
    """As cells of H3 do, of 60 bits. One that is small stands beside them, and blanks belong to a name of text."""
    cell = 617700169957507071
    with Client(walk.url, api_key=walk.admin) as client:
        columns = {"head": [cell + 1, 7], "capacity": [3, 2], "edge_ids": [cell + 2, cell + 3]}
        client.put_graph(
            "cells", tail=[cell, cell], vertex_labels=[cell, cell + 1, 7], source=cell, sink=cell + 1, **columns
        )
        client.put_graph("blanks", tail=[" s"], head=["t "], capacity=[4], source=" s", sink="t ")
    walk.open("/console/graphs/cells")
    walk.until_value("3")
    assert walk.page.js("document.querySelector('#source').value") == str(cell)
    walk.page.click("button.row")
    walk.page.press_button("Try closing it")
    walk.page.shows(f"With {cell + 2} closed, the flow would be 0:")
    walk.page.type("#sink", "7")
    walk.page.press_button("Solve")
    walk.until_value("2")
    walk.open("/console/graphs/blanks")
    walk.until_value("4")


def names_are_found_by_a_part_and_drawn_whole(walk: Walk) -> None:
    """Seattle and New York lie at the border of the map; no name of a vertex is cut off there."""
    with Client(walk.url, api_key=walk.admin) as client:
        client.put_graph("backbone", EXAMPLES / "backbone-abilene.json")
    walk.open("/console/graphs/backbone")
    walk.value()
    walk.page.type("#search", "york")
    ends = zip(walk.column("edges", 1), walk.column("edges", 2), strict=True)
    assert all("NewYork" in pair for pair in ends)
    walk.page.type("#search", "Timbuktu")
    walk.page.shows("No edge and no vertex has this in its name.")
    walk.page.js(
        "(() => { window.drawn = {}; CanvasRenderingContext2D.prototype.fillText = function (text, x) {"
        " const half = this.measureText(text).width / 2;"
        " window.drawn[text] = x - half >= 0 && x + half <= this.canvas.clientWidth; }; })()"
    )
    walk.page.press_button("Show all")
    drawn = walk.page.until("window.drawn['New York'] !== undefined && window.drawn")
    assert {"Seattle", "Sunnyvale", "New York"} <= drawn.keys()
    assert all(drawn.values())
    walk.page.press_button("Pick the source in the picture")
    walk.page.shows("Click a vertex to be the source, or press Escape.")
    walk.page.press("Escape")
    walk.page.shows("Drag, scroll or use the arrow keys")
    shown = "import('/console/assets/dom.js').then((dom) => [0.004, 4.26].map(dom.milliseconds))"
    assert walk.page.js(shown) == ["under 0.1 ms", "4.3 ms"]


def long_names_leave_room_for_the_rest(walk: Walk) -> None:
    """In tables, whose cells have the whole name on hovering, and in the picture, where no name lies over another."""
    edge, names = "e" * 200, ["a", "b", "c", "Straßenbahnhaltestelle", "t"]
    with Client(walk.url, api_key=walk.admin) as client:
        ends = {"tail": names[:-1], "head": names[1:], "source": "a", "sink": "t"}
        client.put_graph("n" * 128, **ends, capacity=[1, 2, 2, 2], edge_ids=[edge, "x", "y", "z"])
    in_sight = (
        "(() => { const right = (e) => e.getBoundingClientRect().right, box = document.querySelector('.wide'); return"
        " box && [...box.querySelectorAll('th')].filter((e) => right(e) <= right(box)).map((e) => e.innerText); })()"
    )
    walk.open(f"/console/graphs/{'n' * 128}")
    walk.until_value("1")
    assert walk.page.until(in_sight)[:6] == ["Edge", "From", "To", "Capacity", "Flow", "Used"]
    assert walk.page.js("document.querySelector('#panel-edges td').title") == edge
    walk.page.size(390, 844, mobile=True)
    walk.page.js(
        "(() => { const to = CanvasRenderingContext2D.prototype, clear = to.clearRect; window.drawn = [];"
        " to.clearRect = function (...box) { window.drawn = []; clear.apply(this, box); };"  # each picture by itself
        " to.strokeText = function (text, x, y) {"
        " const half = this.measureText(text).width / 2; window.drawn.push([x - half, x + half, y]); }; })()"
    )
    walk.page.press_button("Show all")
    drawn = walk.page.until("window.drawn.length && window.drawn")
    assert not [
        (one, other)
        for one, other in combinations(drawn, 2)
        if one[0] < other[1] and other[0] < one[1] and abs(one[2] - other[2]) < 12
    ]
    walk.open("/console")
    assert walk.page.until(in_sight)[:2] == ["Graph", "Version"]
    walk.page.size(1280, 900)


def what_was_refused_is_gone_once_another_file_is_chosen(walk: Walk) -> None:
    file = walk.folder / "decimal-comma.csv"
    file.write_text('tail,head,capacity\na,b,"1,5"\n')
    walk.open("/console")
    walk.page.choose_file("#file", file)
    walk.page.type("#name", "comma")
    walk.page.press_button("Load")
    walk.page.shows("the decimals stand behind a point")
    walk.page.choose_file("#file", EXAMPLES / "osm-neckar.npz")
    walk.page.until("!document.body.innerText.includes('the decimals stand behind a point')")


def a_graph_without_edges_says_so_and_a_name_that_is_cut_shows_it(walk: Walk) -> None:
    with Client(walk.url, api_key=walk.admin) as client:
        client.put_graph("bare", tail=[], head=[], capacity=[], n_vertices=1)
        client.put_graph("long", tail=["🚗" * 24], head=["🚗" * 25], capacity=[1])
    walk.open("/console/graphs/bare")
    walk.page.shows("There is nothing to draw: the graph has no edges.")
    empty = "[...document.querySelectorAll('.one .empty, #panel-edges .empty')].map((e) => e.innerText)"
    assert walk.page.until(f"{empty}.length === 2 && {empty}") == ["The graph has no edges."] * 2
    walk.open("/console/graphs/long")
    walk.page.shows("In layers from the source")
    walk.page.js(
        "(() => { window.drawn = [];"
        " CanvasRenderingContext2D.prototype.fillText = (text) => window.drawn.push(text); })()"
    )
    walk.page.press_button("Show all")
    walk.page.until("window.drawn.length > 1")
    assert set(walk.page.js("window.drawn")) == {"🚗" * 24, "🚗" * 23 + "…"}


def the_table_shows_the_edges_as_they_are_without_an_answer_too(walk: Walk) -> None:
    """Before anything is solved, after somebody else's update, and where the flow has no bound any more."""
    with Client(walk.url, api_key=walk.admin) as client:
        asked = client.put_graph("asked-nothing", tail=["s", "a"], head=["a", "t"], capacity=[3, 4])
        walk.open("/console/graphs/asked-nothing")
        walk.page.shows("Solve, and the edges of the minimum cut are listed here.")
        walk.page.js("(() => { which.value = 'all'; which.dispatchEvent(new Event('change')); })()")
        assert walk.column("edges", 3) == ["3", "4"]
        walk.page.press_button("Events")
        walk.page.shows("Connected to the change feed.")
        walk.page.press_button("Edges")
        asked.patch(edges=[0], set=[7])
        cells = "[...document.querySelectorAll('#panel-edges tbody tr')].map((row) => row.cells[{}].innerText).join()"
        walk.page.until(f"{cells.format(3)} === '7,4'")
        walk.page.type("#source", "s")
        walk.page.type("#sink", "t")
        walk.page.press_button("Solve")
        walk.until_value("4")
        assert walk.column("edges", 4) == ["4", "4"]
        asked.patch(edges=[0, 1], set=["inf", "inf"])
        walk.page.shows("The flow has no bound")
        walk.page.until(f"{cells.format(4)} === '\\u2013,\\u2013'")  # dashes


def vertices_that_pay_for_the_cut_are_named(walk: Walk) -> None:
    """In the summary and the table; "Show the cut" leads to them, and the picture has a ring around each. An edge at
    such a vertex says what it lets through, whether the cut pays for it or not."""
    with Client(walk.url, api_key=walk.admin) as client:
        ends: dict[str, Any] = {"tail": ["s", "u", "s", "v"], "head": ["u", "t", "v", "t"]}
        client.put_graph("passed", **ends, capacity=[9, 9, 0.5, 9], vertex_capacities={"u": 2.5}, source="s", sink="t")
    walk.open("/console/graphs/passed")
    walk.until_value("3")
    walk.page.shows("1 edge and 1 vertex, the only one")
    walk.page.shows("Vertices whose capacity the cut pays")
    assert [walk.column("edges", place) for place in (0, 1)] == [["2", "u"], ["s", "2.5"]]
    walk.page.js(
        "(() => { window.rings = 0; CanvasRenderingContext2D.prototype.arc = function (x, y, radius) {"
        " window.rings += radius === 7; }; })()"
    )
    walk.page.press_button("Show the cut")
    walk.page.until("window.rings === 1 || null")
    walk.page.press_button("u")
    choice = "(() => {{ which.value = '{}'; which.dispatchEvent(new Event('change')); }})()"
    facts = "[...document.querySelectorAll('.one .facts div')].map((fact) => fact.innerText.split(/\\s+/).join(' '))"
    walk.page.js(choice.format("all"))
    walk.page.press_button("0")
    walk.page.until(f"{facts}.join() === 'capacity 9,capacity of u 2.5,flow 2.5,used 28 %'")
    walk.page.js(choice.format("cut"))
    with Client(walk.url, api_key=walk.admin) as client:
        client.graph("passed").patch(vertices=["u"], set=[0])
    walk.until_value("0.5")
    with Client(walk.url, api_key=walk.admin) as client:
        client.graph("passed").close([2])
    walk.page.shows("0 edges")
    with Client(walk.url, api_key=walk.admin) as client:
        client.graph("passed").patch(vertices=["u"], set=[100])
    walk.until_value("9")
    walk.page.until(f"{facts}.includes('capacity of u 100') || null")


def lower_bounds_are_said_to_be_ignored(walk: Walk) -> None:
    """An edge shows its own, and its cost; a graph without any shows neither."""
    ends: dict[str, Any] = {"tail": ["s", "a"], "head": ["a", "t"]}
    with Client(walk.url, api_key=walk.admin) as client:
        client.put_graph(
            "bounded-below", **ends, capacity=[3, 4], lower=[0.5, 2], cost=[1.25, -2], source="s", sink="t"
        )
        client.put_graph("bounded-above", **ends, capacity=[3, 4], source="s", sink="t")
    facts = "[...document.querySelectorAll('.{} .facts div')].map((fact) => fact.innerText.split(/\\s+/).join(' '))"
    walk.open("/console/graphs/bounded-below")
    walk.until_value("3")
    assert "lower bounds ignored: headrace circulation keeps them" in walk.page.js(facts.format("ask"))
    walk.page.click("button.row")
    told = ["capacity 3", "lower bound 0.5", "cost 1.25", "flow 3", "used 100 %"]
    assert walk.page.until(f"{facts.format('one')}.length && {facts.format('one')}") == told
    walk.open("/console/graphs/bounded-above")
    walk.until_value("3")
    assert "lower bounds" not in walk.page.text()
    walk.page.click("button.row")
    walk.page.until(f"{facts.format('one')}.join() === 'capacity 3,flow 3,used 100 %'")


def small_values_are_seen_in_the_history(walk: Walk) -> None:
    """The greatest value is at the top of the chart, whatever it is, and the axis has three numbers that differ."""
    with Client(walk.url, api_key=walk.admin) as client:
        client.put_graph("small", tail=["s"], head=["t"], capacity=[0.05], source="s", sink="t")
    walk.open("/console/graphs/small")
    walk.until_value("0.05")
    walk.page.press_button("History")
    walk.page.until("document.querySelectorAll('svg.chart rect').length === 1")
    ticks = "[...document.querySelectorAll('svg.chart text[text-anchor=end]')].map((text) => text.textContent)"
    assert walk.page.js(ticks) == ["0", "0.025", "0.05"]
    top = "document.querySelector('svg.chart rect').getAttribute('y') < 20"
    assert walk.page.js(top) is True
    ticks = "import('/console/assets/history.js').then(({ tick }) => [[0, 1], [5951, 11902], [0.4, 0.8], [3.75, 7.5],"
    ticks += " [2.5e-10, 5e-10], [2 ** 59, 2 ** 60]].map(([value, range]) => tick(value, range)))"
    assert walk.page.js(ticks) == ["0", "5\u202f951", "0.4", "3.75", "2.50e-10", "5.76e17"]


def three_vertices_are_shown_in_three_parts(walk: Walk) -> None:
    """Of which all are seen, though an edge was chosen before and the picture had gone there."""
    with Client(walk.url, api_key=walk.admin) as client:
        client.put_graph("three", tail=["s", "a"], head=["a", "t"], capacity=[3, 4], source="s", sink="t")
    walk.open("/console/graphs/three")
    walk.until_value("3")
    walk.page.click("button.row")
    walk.page.press_button("Parts")
    walk.page.js(
        "(() => { window.seen = {}; CanvasRenderingContext2D.prototype.fillText = function (text, x) {"
        " window.seen[text] = x >= 0 && x <= this.canvas.clientWidth; }; })()"
    )
    walk.page.press_button("Divide")
    assert walk.column("parts", 1) == ["1", "1", "1"]
    walk.page.until("window.seen.s && window.seen.a && window.seen.t")


def no_page_is_a_dead_end(walk: Walk) -> None:
    for path in ("/docs", "/status"):
        walk.open(path)
        walk.page.click("a[href$='console']")
        walk.page.until("location.pathname === '/console' && document.getElementById('graphs')")


def it_fits_a_phone(walk: Walk) -> None:
    walk.page.size(360, 740, mobile=True, dark=True)
    for path in ("/docs", "/status", "/console", "/console/graphs/sample-town"):
        walk.open(path)
        walk.page.until("document.querySelector('h1')?.innerText")
        walk.page.until("document.querySelectorAll('tbody tr').length")
        assert walk.page.js("document.documentElement.scrollWidth") <= 360, path
        bare = "[...document.querySelectorAll('table')].filter((table) => table.scrollWidth > innerWidth && {}).length"
        shaded = "getComputedStyle(table.parentElement).backgroundAttachment !== 'local, local, scroll, scroll'"
        assert walk.page.js(bare.format(shaded)) == 0, f"{path}: a table goes on beyond the edge, and nothing says so"
    walk.page.press_button("History")
    walk.page.until("document.querySelector('.chart text')?.getBoundingClientRect().height > 10")
    cut = "[...document.querySelectorAll('#panel-history td')].filter((e) => e.scrollWidth > e.clientWidth).length"
    assert walk.page.js(cut) == 0
    walk.page.size(1280, 900)


def its_texts_are_readable(walk: Walk) -> None:
    for dark in (False, True):
        walk.page.size(1280, 900, dark=dark)
        for path in ("/docs", "/status", "/console", "/console/graphs/sample-town"):
            walk.open(path)
            walk.page.until("document.querySelectorAll('tbody tr').length")
            assert walk.page.js(UNREADABLE) == [], path
    walk.page.size(1280, 900)


def a_reader_cannot_change_anything(walk: Walk) -> None:
    walk.log_out()
    walk.open("/console/graphs/sample-town")
    walk.log_in(walk.reader)
    walk.value()
    walk.page.click("button.row")
    walk.page.press_button("Try closing it")
    walk.page.shows("Applying needs a key with the scope update.")
    assert walk.page.js("document.querySelector('#tried button').disabled") is True
    walk.open("/console")
    walk.page.shows("Loading a graph needs a key with the scope admin.")
