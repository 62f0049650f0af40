"""A headless Chromium, driven over a pipe by the DevTools protocol: no driver, no port, no other package.

`find()` names the browser that is on PATH, or None; tests that need one are skipped then.
"""

import base64
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
NONE: Final = f"no Chromium on PATH ({', '.join(NAMES)}), e.g. of: apt install chromium"
OPTIONS: Final = (
    *("--headless=new", "--no-sandbox", "--remote-debugging-pipe", "--no-first-run", "--disable-extensions"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--mute-audio"),
    *("--disable-dev-shm-usage", "--hide-scrollbars", "--no-proxy-server", "--lang=en-GB", "--in-process-gpu"),
)
PATIENCE_S: Final = 60.0
KEYS: Final[Mapping[str, int]] = {
    "Enter": 13,
    "Tab": 9,
    "ArrowRight": 39,
    "ArrowLeft": 37,
    "Home": 36,
    "End": 35,
    "Escape": 27,
}


def find() -> str | None:
    """The path of a Chromium."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Refused(RuntimeError):
    """The browser says that a command failed, or a script has thrown."""


class Page:
    """One tab."""

    def __init__(self, write: int, read: int) -> None:
        self._write, self._read = write, read
        self._next, self._rest, self._session = 0, b"", ""
        self.complaints: list[str] = []
        """What the page has thrown, or was refused by its Content-Security-Policy; refused requests are none."""

    def open_tab(self) -> None:
        target = self.tell("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.tell("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.tell(f"{domain}.enable")

    def tell(self, method: str, **params: object) -> Any:
        """Send a command and wait for its result. Raises Refused."""
        self._next += 1
        message: dict[str, object] = {"id": self._next, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._next:
                if "error" in answer:
                    raise Refused(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self._note(answer)

    def _receive(self) -> Any:
        ends_at = time.monotonic() + PATIENCE_S
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._read], [], [], ends_at - time.monotonic())
            assert ready, "the browser does not answer"
            piece = os.read(self._read, 1 << 20)
            assert piece, "the browser has ended"
            self._rest += piece
        line, _, self._rest = self._rest.partition(b"\0")
        return json.loads(line)

    def _note(self, event: Any) -> None:
        params = event.get("params", {})
        if event.get("method") == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description") or details["text"])
        elif event.get("method") == "Log.entryAdded":
            entry = params["entry"]
            if entry["level"] == "error" and entry["source"] != "network":
                self.complaints.append(entry["text"])

    def js(self, expression: str) -> Any:
        """The value of an expression, awaited if it is a promise. Raises Refused if it throws."""
        options = {"awaitPromise": True, "returnByValue": True, "userGesture": True}
        done = self.tell("Runtime.evaluate", expression=expression, **options)
        if "exceptionDetails" in done:
            details = done["exceptionDetails"]
            raise Refused(details.get("exception", {}).get("description") or details["text"])
        return done["result"].get("value")

    def goto(self, url: str) -> None:
        self.tell("Page.navigate", url=url)
        self.until("document.readyState === 'complete' && location.href !== 'about:blank'")

    def until(self, expression: str, patience_s: float = PATIENCE_S) -> Any:
        """Wait until it is true, and give what it is. What a navigation takes away is asked for again."""
        ends_at = time.monotonic() + patience_s
        while True:
            value = None
            with suppress(Refused):
                value = self.js(f"(() => {{ const v = {expression}; return v instanceof Node ? true : v; }})()")
            if value:
                return value
            assert time.monotonic() < ends_at, f"not true in time: {expression}\n{self.text()}\n{self.complaints}"
            time.sleep(0.05)

    def text(self) -> str:
        text: str = self.js("document.body ? document.body.innerText : ''")
        return text

    def shows(self, text: str) -> None:
        """Wait until the page has this text."""
        self.until(f"document.body.innerText.includes({json.dumps(text)})")

    def click(self, selector: str) -> None:
        """Click with the mouse in the middle of the first visible element."""
        self.until(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)}); if (!e || e.disabled) return false;"
            " e.scrollIntoView({block: 'center'}); return e.getClientRects().length > 0; })()"
        )
        x, y = self.js(
            f"(() => {{ const r = document.querySelector({json.dumps(selector)}).getBoundingClientRect();"
            " return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        self.click_at(x, y)

    def press_button(self, label: str) -> None:
        """Click the first visible button of this text, or of this name for screen readers."""
        script = (
            "(() => { const found = [...document.querySelectorAll('button')].find((b) => !b.disabled &&"
            f" b.getClientRects().length && [b.innerText, b.getAttribute('aria-label')].includes({json.dumps(label)}));"
            " document.querySelectorAll('[data-found]').forEach((e) => e.removeAttribute('data-found'));"
            " if (found) found.setAttribute('data-found', ''); return !!found; })()"
        )
        self.until(script)
        self.click("[data-found]")

    def click_at(self, x: float, y: float) -> None:
        for kind in ("mousePressed", "mouseReleased"):
            self.tell("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def type(self, selector: str, text: str) -> None:
        """Replace what stands in a field."""
        self.until(f"document.querySelector({json.dumps(selector)})?.getClientRects().length > 0")
        self.js(f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.focus(); e.select(); }})()")
        self.tell("Input.insertText", text=text)

    def press(self, key: str) -> None:
        code = KEYS[key]
        more = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self.tell("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **more)

    def choose_file(self, selector: str, file: Path) -> None:
        """Put a file into an input."""
        document = self.tell("DOM.getDocument")["root"]["nodeId"]
        node = self.tell("DOM.querySelector", nodeId=document, selector=selector)["nodeId"]
        self.tell("DOM.setFileInputFiles", nodeId=node, files=[str(file)])

    def size(self, width: int, height: int, *, mobile: bool = False, dark: bool = False, scale: float = 1) -> None:
        metrics = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": mobile}
        self.tell("Emulation.setDeviceMetricsOverride", **metrics)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.tell("Emulation.setEmulatedMedia", features=[scheme])

    def picture(self, file: Path, *, full: bool = False) -> None:
        """A picture of what is seen, or of the whole page: PNG, or JPEG by the suffix."""
        form = {"format": "png"} if file.suffix == ".png" else {"format": "jpeg", "quality": 85}
        shot = self.tell("Page.captureScreenshot", captureBeyondViewport=full, **form)
        file.write_bytes(base64.b64decode(shot["data"]))


@contextmanager
def browser(profile: Path, program: str) -> Iterator[Page]:
    """A page of a browser of its own, which ends with it."""
    to_read, write = os.pipe()
    read, to_write = os.pipe()
    # The browser reads its commands from 3 and writes its answers to 4.
    shell = f'exec 3<&{to_read} 4>&{to_write} && exec "$0" "$@"'
    command = ["bash", "-c", shell, program, *OPTIONS, f"--user-data-dir={profile}", "about:blank"]
    process = subprocess.Popen(command, pass_fds=[to_read, to_write], stderr=subprocess.DEVNULL)
    os.close(to_read)
    os.close(to_write)
    try:
        page = Page(write, read)
        page.open_tab()
        yield page
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        os.close(write)
        os.close(read)
