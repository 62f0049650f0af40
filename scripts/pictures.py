"""``python -m scripts.pictures``: the pictures of the console in docs/, taken in a headless Chromium.

It starts a service of its own. The map, the figures and the words are those of the console as it is.
"""

import tempfile
from pathlib import Path

import numpy as np
from headrace import Client
from PIL import Image

from tests.browser import NONE, Page, browser, find
from tests.serving import serving

ROOT = Path(__file__).parents[1]
CONSOLE = ROOT / "docs/console"
EXAMPLES = ROOT / "examples"
TOWN = "heidelberg"
BRIDGE = "Theodor-Heuss-Brücke 1"
COLOURS = 256
DRAWN = "!document.querySelector('progress') && document.getElementById('value')"


def main() -> None:
    program = find()
    if program is None:
        raise SystemExit(NONE)
    with tempfile.TemporaryDirectory(prefix="pictures-") as folder:
        data, profile = Path(folder, "data"), Path(folder, "profile")
        with serving(data, Path(folder, "log")) as service, browser(profile, program) as page:
            with Client(service.url) as client:
                client.put_graph("backbone", EXAMPLES / "backbone-abilene.json")
                client.put_graph("andorra", EXAMPLES / "osm-andorra.npz")
                client.put_graph(TOWN, EXAMPLES / "osm-neckar.npz")
            town(page, service.url)
            overview(page, service.url)


def town(page: Page, url: str) -> None:
    """The map with its minimum cut, a bridge closed in thought, the districts, and all of it on a phone."""
    page.size(1280, 820)
    page.goto(f"{url}/console/graphs/{TOWN}")
    page.until(DRAWN)
    settled(page, ROOT / "docs/images/quick-start.png")
    page.type("#search", BRIDGE)
    page.press_button(BRIDGE)
    page.press_button("Try closing it")
    page.until("document.getElementById('tried')")
    page.press_button("Show the cut")
    page.size(1280, 960)
    settled(page, CONSOLE / "what-if.png")
    page.press_button("Parts")
    page.type("#k", "6")
    page.press_button("Divide")
    page.until("document.querySelectorAll('#panel-parts tbody tr').length === 6")
    page.press_button("Show all")
    page.size(1280, 1120)
    settled(page, CONSOLE / "parts.png")
    page.press_button("Closure study")
    page.press_button("Run the study")
    page.until("document.querySelectorAll('#panel-study tbody tr').length")
    page.size(390, 844, mobile=True, dark=True)
    page.goto(f"{url}/console/graphs/{TOWN}")
    page.until(DRAWN)
    settled(page, CONSOLE / "phone-dark.png", top="#value")


def overview(page: Page, url: str) -> None:
    page.size(1280, 820)
    page.goto(f"{url}/console")
    page.until("document.querySelectorAll('tbody tr').length")
    settled(page, CONSOLE / "overview.png")


def settled(page: Page, file: Path, top: str = "body") -> None:
    """A picture from `top` downwards, in its most frequent colours, once the map rests and nothing is said any more."""
    page.js("new Promise((done) => setTimeout(done, 1000))")
    page.until("!document.querySelector('.said.shown')")
    page.js(f"document.querySelector('{top}').scrollIntoView()")
    page.js("document.activeElement.blur()")
    page.picture(file)
    image = Image.open(file).convert("RGB")
    colours, counts = np.unique(np.asarray(image).reshape(-1, 3), axis=0, return_counts=True)
    palette = Image.new("P", (1, 1))
    palette.putpalette(colours[np.argsort(-counts)[:COLOURS]].ravel().tolist())
    image.quantize(palette=palette, dither=Image.Dither.NONE).save(file, optimize=True)


if __name__ == "__main__":
    main()
