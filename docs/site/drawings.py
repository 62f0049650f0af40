"""Draw the figures of the pages: ``python docs/site/drawings.py`` writes docs/images/*.svg.

Each figure has paper of its own, so that it can be read on light and on dark pages.
"""

from dataclasses import dataclass, field
from html import escape
from math import hypot
from pathlib import Path

IMAGES = Path(__file__).parents[1] / "images"
INK, DIM, FLOW, CUT = "#1f2933", "#8a949e", "#1f6fb2", "#c14f08"
PAPER, SOURCE, SINK = "#fbfaf7", "#dcebf7", "#f6e3d3"
RADIUS = 19.0
HALO = f' stroke="{PAPER}" stroke-width="5" paint-order="stroke"'
"""Paper around the letters of a label, where it meets a line."""
Point = tuple[float, float]


@dataclass
class Figure:
    """An SVG in the making; y grows downwards."""

    width: int
    height: int
    parts: list[str] = field(default_factory=list)
    places: dict[str, Point] = field(default_factory=dict)

    def text(
        self, at: Point, words: str, color: str = INK, size: int = 15, anchor: str = "middle", halo: str = ""
    ) -> None:
        x, y = at
        self.parts.append(
            f'<text x="{x:g}" y="{y + size / 3:g}" fill="{color}" font-size="{size}" text-anchor="{anchor}"{halo}>'
            f"{escape(words)}</text>"
        )

    def vertex(self, name: str, at: Point, fill: str = "#ffffff", note: str = "") -> None:
        self.places[name] = at
        x, y = at
        self.parts.append(
            f'<circle cx="{x:g}" cy="{y:g}" r="{RADIUS:g}" fill="{fill}" stroke="{INK}" stroke-width="1.5"/>'
        )
        self.text(at, name)
        if note:
            self.text((x, y + RADIUS + 13), note, CUT, 13)

    def edge(self, tail: str, head: str, label: str, color: str = DIM, width: float = 1.5, bend: float = 0) -> None:
        """An arrow between two vertices that are drawn already; `bend` moves its middle to its left side."""
        (x1, y1), (x2, y2) = self.places[tail], self.places[head]
        length = hypot(x2 - x1, y2 - y1)
        ux, uy = (x2 - x1) / length, (y2 - y1) / length
        mx, my = (x1 + x2) / 2 + bend * uy, (y1 + y2) / 2 - bend * ux
        reach = RADIUS + 4
        start, end = _towards((x1, y1), (mx, my), RADIUS), _towards((x2, y2), (mx, my), reach)
        path = f"M{start[0]:.1f} {start[1]:.1f} Q{mx:.1f} {my:.1f} {end[0]:.1f} {end[1]:.1f}"
        self.parts.append(
            f'<path d="{path}" fill="none" stroke="{color}" stroke-width="{width:g}" marker-end="url(#{color[1:]})"/>'
        )
        off = bend / 2 + (17 if bend >= 0 else -17)
        at = (x1 + x2) / 2 + off * uy, (y1 + y2) / 2 - off * ux
        self.text(at, label, INK if color == DIM else color, halo=HALO)

    def line(self, points: list[Point], color: str = CUT, dashes: str = "7 5", width: float = 2.5) -> None:
        path = " ".join(f"{x:g},{y:g}" for x, y in points)
        self.parts.append(
            f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="{width:g}"'
            f' stroke-dasharray="{dashes}"/>'
        )

    def box(self, at: Point, size: Point, words: list[str], fill: str = "#ffffff") -> None:
        (x, y), (w, h) = at, size
        self.parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" rx="9" fill="{fill}" stroke="{INK}"/>'
        )
        for row, line in enumerate(words):
            self.text((x + w / 2, y + h / 2 + 19 * (row - (len(words) - 1) / 2)), line, INK, 15 if row == 0 else 13)

    def arrow(self, start: Point, end: Point, label: str = "", color: str = INK) -> None:
        (x1, y1), (x2, y2) = start, end
        self.parts.append(
            f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{color}" stroke-width="1.8"'
            f' marker-end="url(#{color[1:]})"/>'
        )
        if label:
            self.text(((x1 + x2) / 2, (y1 + y2) / 2 - 11), label, color, 13)

    def svg(self) -> str:
        heads = "".join(
            f'<marker id="{color[1:]}" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="9" markerHeight="9"'
            f' markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0 L8 4 L0 8 z" fill="{color}"/></marker>'
            for color in (INK, DIM, FLOW, CUT)
        )
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" width="{self.width}"'
                f' font-family="system-ui, sans-serif"><defs>{heads}</defs>',
                f'<rect width="{self.width}" height="{self.height}" rx="12" fill="{PAPER}"/>',
                *self.parts,
                "</svg>\n",
            ]
        )


def _towards(start: Point, end: Point, distance: float) -> Point:
    (x1, y1), (x2, y2) = start, end
    length = hypot(x2 - x1, y2 - y1)
    return x1 + (x2 - x1) * distance / length, y1 + (y2 - y1) * distance / length


def flow_and_cut() -> Figure:
    """The network of the quick start: 5 units flow, and the cut behind s is full."""
    figure = Figure(620, 260)
    for name, at in {"s": (70, 130), "a": (300, 60), "b": (300, 200), "t": (540, 130)}.items():
        figure.vertex(name, at, SOURCE if name == "s" else SINK)
    figure.edge("s", "a", "3 of 3", CUT, 5)
    figure.edge("s", "b", "2 of 2", CUT, 3.6, -1)
    figure.edge("a", "t", "3 of 4", FLOW, 5)
    figure.edge("b", "t", "2 of 3", FLOW, 3.6, -1)
    figure.line([(120, 25), (145, 130), (120, 235)])
    figure.text((60, 30), "source side", FLOW, 14)
    figure.text((470, 30), "sink side", CUT, 14)
    return figure


def residual() -> Figure:
    """What is left of each edge, and what can be taken back."""
    figure = Figure(620, 260)
    for name, at in {"s": (70, 130), "a": (300, 60), "b": (300, 200), "t": (540, 130)}.items():
        figure.vertex(name, at, SOURCE if name == "s" else SINK)
    figure.edge("a", "s", "3", FLOW, 1.8, -16)
    figure.edge("b", "s", "2", FLOW, 1.8, 16)
    figure.edge("a", "t", "1", DIM, 1.8, 22)
    figure.edge("t", "a", "3", FLOW, 1.8, 22)
    figure.edge("b", "t", "1", DIM, 1.8, -22)
    figure.edge("t", "b", "2", FLOW, 1.8, -22)
    figure.text((80, 235), "grey: room that is left", DIM, 14, "start")
    figure.text((330, 245), "blue: flow that can be taken back", FLOW, 14, "start")
    return figure


def broken_ends() -> Figure:
    """An edge with flow is closed: an excess before it, a deficit behind it."""
    figure = Figure(640, 290)
    for name, at in {"s": (60, 130), "u": (220, 70), "v": (420, 70), "w": (320, 215), "t": (580, 130)}.items():
        figure.vertex(name, at)
    figure.edge("s", "u", "5 of 6", FLOW, 5)
    figure.edge("u", "v", "closed: 4 to 0", CUT, 2)
    figure.edge("v", "t", "4 of 5", FLOW, 4)
    figure.edge("u", "w", "1 of 3", FLOW, 1.8, -1)
    figure.edge("w", "v", "0 of 2", DIM, 1.5, -1)
    figure.edge("w", "t", "1 of 2", FLOW, 1.8, -1)
    figure.text((220, 30), "excess 4", CUT, 14)
    figure.text((420, 30), "deficit 4", CUT, 14)
    figure.text((60, 262), "2 go on by w to v; then nothing leads on from u: the cut is u to w, 3", INK, 14, "start")
    return figure


def certificate() -> Figure:
    """Why a settled state is optimal: nothing crosses backwards, all that can cross forwards does."""
    figure = Figure(640, 300)
    for x, fill, title in ((30, SOURCE, "S, the source side"), (370, SINK, "T, the sink side")):
        figure.parts.append(f'<ellipse cx="{x + 120}" cy="150" rx="120" ry="125" fill="{fill}" stroke="{INK}"/>')
        figure.text((x + 120, 62), title)
    for name, at in {"s": (90, 120), "p": (210, 100), "q": (205, 200)}.items():
        figure.vertex(name, at)
    for name, at in {"x": (430, 100), "y": (435, 200), "t": (555, 150)}.items():
        figure.vertex(name, at)
    figure.edge("p", "x", "full", CUT, 4)
    figure.edge("q", "y", "full", CUT, 4, -1)
    figure.edge("y", "p", "empty", DIM, 1.5, 6)
    figure.text((140, 245), "excess may stay", FLOW, 13)
    figure.text((500, 245), "deficit may stay", CUT, 13)
    return figure


def cold_solve() -> Figure:
    """The steps of a drain on the CPU, each of which may be the last one."""
    figure = Figure(700, 200)
    steps = [
        ["greedy", "excess beside", "a deficit"],
        ["attempt", "from both sides,", "on a budget"],
        ["pseudoflow", "from the side of", "the tighter bound"],
        ["cut off", "what reaches nothing", "changes sides"],
    ]
    for at, words in enumerate(steps):
        figure.box((20 + 172 * at, 30), (144, 84), words, SOURCE if at < 3 else SINK)
        if at:
            figure.arrow((20 + 172 * at - 26, 72), (20 + 172 * at - 3, 72))
    figure.line([(265, 116), (265, 160), (606, 160), (606, 120)], DIM, "4 4", 1.5)
    figure.text((435, 178), "few paths: over here, after a look at little of the network", DIM, 13)
    return figure


def split_vertex() -> Figure:
    """A vertex with a capacity is two inside, with an edge between them."""
    figure = Figure(640, 190)
    for name, at in {"a": (50, 50), "b": (50, 140), "u": (150, 95), "c": (250, 95)}.items():
        figure.vertex(name, at, note="at most 5" if name == "u" else "")
    figure.edge("a", "u", "4")
    figure.edge("b", "u", "3", DIM, 1.5, -1)
    figure.edge("u", "c", "6")
    figure.arrow((290, 95), (335, 95), "inside")
    for name, at in {"a ": (370, 50), "b ": (370, 140), "in": (460, 95), "out": (545, 95), "c ": (615, 95)}.items():
        figure.vertex(name, at, SINK if name in ("in", "out") else "#ffffff")
    figure.edge("a ", "in", "4")
    figure.edge("b ", "in", "3", DIM, 1.5, -1)
    figure.edge("in", "out", "5", CUT, 4)
    figure.edge("out", "c ", "6")
    return figure


def versions() -> Figure:
    """What a graph goes through: each accepted update is a version, and an entry of the log."""
    figure = Figure(700, 210)
    for at, (title, what) in enumerate([("1", "load"), ("2", "PATCH"), ("3", "close"), ("4", "restore 2")]):
        x = 90.0 + 165 * at
        figure.vertex(title, (x, 70), SOURCE)
        figure.text((x, 110), what)
        if at:
            figure.arrow((x - 142, 70), (x - 25, 70), "warm", FLOW)
    figure.box((30, 145), (640, 40), ["log in Redis: base, snapshot of 2, entries 3 and 4"])
    return figure


def processes() -> Figure:
    """Who talks to whom."""
    figure = Figure(700, 250)
    figure.box((20, 85), (110, 70), ["clients", "HTTP"])
    figure.box((210, 30), (120, 60), ["API process", "no state"], SOURCE)
    figure.box((210, 150), (120, 60), ["API process", "no state"], SOURCE)
    figure.box((400, 85), (110, 70), ["Redis", "log, queue, jobs"], SINK)
    figure.box((570, 20), (115, 85), ["worker", "graphs, flows", "CPU or GPU"], SOURCE)
    figure.box((570, 140), (115, 85), ["worker", "graphs, flows", "CPU or GPU"], SOURCE)
    for start, end in [((130, 110), (205, 65)), ((130, 130), (205, 175))]:
        figure.arrow(start, end)
    for start, end in [
        ((330, 65), (396, 105)),
        ((330, 178), (396, 138)),
        ((510, 108), (566, 68)),
        ((510, 132), (566, 176)),
    ]:
        figure.arrow(start, end)
        figure.arrow(end, start)
    return figure


DRAWINGS = (flow_and_cut, residual, broken_ends, certificate, cold_solve, split_vertex, versions, processes)


def main() -> None:
    for draw in DRAWINGS:
        (IMAGES / f"{draw.__name__.replace('_', '-')}.svg").write_text(draw().svg())


if __name__ == "__main__":
    main()
