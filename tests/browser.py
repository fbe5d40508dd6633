"""Chromium without a window, driven over its DevTools protocol: enough to use a page as a person does."""

import base64
import contextlib
import json
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from websockets.sync.client import connect

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
    "--remote-debugging-port=0", "--remote-allow-origins=*",
)  # fmt: skip
PATIENCE = 30.0
KEYS = {"Enter": 13, "Escape": 27, "ArrowRight": 39, "ArrowLeft": 37, "ArrowDown": 40, "ArrowUp": 38, " ": 32, "Tab": 9}


def chromium() -> str:
    """Return the browser's command; a machine without one fails the test, since nobody would notice it missing."""
    found = next(filter(None, map(shutil.which, CHROMIUM)), None)
    assert found, "the tests of the review page need Chromium: apt-get install chromium"
    return found


class Page:
    """One tab."""

    def __init__(self, address: str) -> None:
        self.socket = connect(address, max_size=2**26)
        self.number = 0
        self.complaints: list[str] = []
        self.requests: list[str] = []  # addresses of all that was loaded
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command and return its answer; what the page complained of meanwhile is kept."""
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": params}))
        while True:
            message = json.loads(self.socket.recv(timeout=PATIENCE))
            if message.get("id") == self.number:
                assert "error" not in message, f"{method}: {message.get('error')}"
                return dict(message["result"])
            self._hear(message)

    def _hear(self, message: dict[str, Any]) -> None:
        params = message.get("params", {})
        if message["method"] == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        if message["method"] == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description", details["text"]))
        elif message["method"] == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.complaints.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")

    def open(self, address: str) -> None:
        """Go to an address."""
        self.call("Page.navigate", url=address)
        self.wait("document.readyState === 'complete'")

    def value(self, expression: str) -> Any:
        """Return what JavaScript makes of ``expression``, waiting for a promise."""
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait(self, expression: str) -> None:
        """Wait until ``expression`` holds."""
        deadline = time.monotonic() + PATIENCE
        while not self.value(f"Boolean({expression})"):
            if time.monotonic() > deadline:
                text = self.value("document.body.innerText.slice(0, 400)")
                raise AssertionError(f"waited in vain for {expression}; {self.complaints}; the page says: {text}")
            time.sleep(0.05)

    def click(self, selector: str, shift: bool = False) -> None:
        """Click the middle of the element, where a person would."""
        found = json.dumps(selector)
        self.wait(f"document.querySelector({found})")
        box = self.value(
            f"(() => {{ const e = document.querySelector({found}); e.scrollIntoView({{block: 'center'}}); "
            "const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        place = {"x": box[0], "y": box[1], "modifiers": 8 if shift else 0}
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            button = {} if kind == "mouseMoved" else {"button": "left", "clickCount": 1}
            self.call("Input.dispatchMouseEvent", type=kind, **place, **button)

    def press(self, key: str, modifiers: int = 0) -> None:
        """Press a key (modifiers: 2 Ctrl, 8 Shift)."""
        code = KEYS.get(key, ord(key.upper()) if len(key) == 1 else 0)
        what = {"key": key, "windowsVirtualKeyCode": code, "modifiers": modifiers}
        text = {"text": "\r" if key == "Enter" else key} if (len(key) == 1 or key == "Enter") and not modifiers else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", **what, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", **what)

    def type(self, text: str) -> None:
        """Type over what is selected in the focused field."""
        self.call("Input.insertText", text=text)

    def look(self, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        """Set size and colour scheme."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        still = {"name": "prefers-reduced-motion", "value": "reduce"}  # a click must not miss what is still scrolling
        self.call("Emulation.setEmulatedMedia", features=[scheme, still])

    def screenshot(self, path: Path) -> None:
        """Save what is visible as PNG."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))


@contextlib.contextmanager
def browsing(profile: Path) -> Iterator[Page]:
    """Start a browser with a fresh profile and yield its one tab."""
    profile.mkdir(parents=True, exist_ok=True)
    log = (profile / "log.txt").open("wb")
    process = subprocess.Popen([chromium(), *OPTIONS, f"--user-data-dir={profile}", "about:blank"], stderr=log)
    try:
        page = Page(_tab(profile / "DevToolsActivePort", process))
        with page.socket:
            yield page
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        log.close()


def _tab(port_file: Path, process: subprocess.Popen[bytes]) -> str:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        assert process.poll() is None, f"Chromium ended: {(port_file.parent / 'log.txt').read_text()[-2000:]}"
        with contextlib.suppress(OSError, IndexError, StopIteration):
            port = port_file.read_text().split()[0]
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=5) as answer:
                return str(next(t["webSocketDebuggerUrl"] for t in json.load(answer) if t["type"] == "page"))
        time.sleep(0.1)
    raise AssertionError("Chromium did not open its debugging port")
