"""`python -m benchmarks.panning`: how fluid the console's map is while it is dragged, with 111 thousand edges and more.

A headless Chromium drags the map back and forth for some seconds. Frames are counted in the page, by the timestamps of
`requestAnimationFrame`, while the map is composed anew in each. Headless means that the processor draws, and not a
graphics card: the figures are those of the slowest machine a planner may have.
"""

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import headrace
import numpy as np

from benchmarks.results import DIRECTORY, Results
from tests.browser import Page, browser, find

SIDES: Final = (100, 236, 500)
"""Of square grids: 20 thousand, 111 thousand and half a million edges."""
DRAG_S: Final = 4.0
STEP_PX: Final = 6
COUNT: Final = """
(() => { window.frames_seen = [];
  const go = (at) => { frames_seen.push(at); window.counting = requestAnimationFrame(go); };
  requestAnimationFrame(go); })()
"""


def grid(side: int) -> dict[str, Any]:
    """A square grid of two-way streets with coordinates, from its first to its last corner."""
    number = np.arange(side * side).reshape(side, side)
    pairs = np.concatenate(
        [
            np.stack([number[:, :-1].ravel(), number[:, 1:].ravel()], 1),
            np.stack([number[:-1].ravel(), number[1:].ravel()], 1),
        ]
    )
    y, x = np.divmod(np.arange(side * side), side)
    capacity = np.random.default_rng(side).integers(1, 100, len(pairs))
    columns = {"tail": pairs[:, 0], "head": pairs[:, 1], "capacity": capacity, "undirected": True}
    return columns | {"x": x * 1e-3, "y": y * 1e-3, "source": 0, "sink": side * side - 1}


def drag(page: Page) -> list[float]:
    """Milliseconds between frames while the map is dragged."""
    box = "document.querySelector('canvas').getBoundingClientRect()"
    x, y = page.js(f"(() => {{ const b = {box}; return [b.x + b.width / 2, b.y + b.height / 2]; }})()")
    page.tell("Input.dispatchMouseEvent", type="mousePressed", x=x, y=y, button="left", buttons=1, clickCount=1)
    page.js(COUNT)
    began, at = time.monotonic(), 0
    while time.monotonic() < began + DRAG_S:
        at += 1
        offset = STEP_PX * (at % 80 if at // 80 % 2 == 0 else 80 - at % 80)
        page.tell("Input.dispatchMouseEvent", type="mouseMoved", x=x + offset, y=y, button="left", buttons=1)
    frames: list[float] = page.js("(() => { cancelAnimationFrame(window.counting); return frames_seen; })()")
    page.tell("Input.dispatchMouseEvent", type="mouseReleased", x=x, y=y, button="left", clickCount=1)
    return [float(gap) for gap in np.diff(frames)]


def measure(client: headrace.Local, page: Page, side: int) -> dict[str, Any]:
    graph = client.put_graph(f"grid-{side}", None, **grid(side))
    graph.min_cut()
    began = time.monotonic()
    page.goto(f"{client.url}/console/graphs/grid-{side}")
    page.until(
        "document.body.innerText.toLowerCase().includes('proven') && document.querySelector('canvas')?.width > 0"
    )
    opened_s = time.monotonic() - began
    time.sleep(3.0)
    gaps = drag(page)
    row = {"edges": graph.info.n_edges, "opened_s": round(opened_s, 2), "frames": len(gaps)}
    times = {
        "frames_per_s": 1e3 * len(gaps) / sum(gaps),
        "median_ms": np.median(gaps),
        "p95_ms": np.percentile(gaps, 95),
    }
    return row | {name: round(float(value), 1) for name, value in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=DIRECTORY / "panning.json")
    parser.add_argument("--picture", type=Path, help="a folder for pictures of the maps")
    options = parser.parse_args()
    program = find()
    if program is None:
        raise SystemExit("no Chromium on PATH")
    results = Results("panning", {"drag_s": DRAG_S}, options.out)
    with headrace.local() as client, tempfile.TemporaryDirectory() as profile, browser(Path(profile), program) as page:
        page.size(1280, 900)
        for side in SIDES:
            results.extend([measure(client, page, side)])
            print(results.rows[-1])
            if options.picture is not None:
                page.picture(options.picture / f"grid-{side}.png")


if __name__ == "__main__":
    main()
