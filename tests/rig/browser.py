"""A headless Chromium, driven by its own DevTools protocol: open a page, click, look, take a picture."""

from __future__ import annotations

import asyncio
import base64
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Self

import aiohttp

from tests.rig.rig import wait_until

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--remote-debugging-port=0",
    "--window-size=1280,900",
)  # fmt: skip


def missing() -> str:
    return "" if shutil.which("chromium") else "chromium"


class Browser:
    """One tab. It ends with this object."""

    def __init__(self) -> None:
        self._folder = tempfile.mkdtemp(prefix="helio-browser-")
        words = ["chromium", *FLAGS, f"--user-data-dir={self._folder}", "about:blank"]
        # However this process ends, the browser ends with it.
        self._process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._loop = asyncio.new_event_loop()
        self._count = 0
        self._session: aiohttp.ClientSession | None = None
        port = Path(self._folder, "DevToolsActivePort")
        wait_until(lambda: port.exists() and "\n" in port.read_text(), "chromium says its port", 30)
        self._line = self._loop.run_until_complete(self._connect(int(port.read_text().split()[0])))
        self._ask("Page.enable")

    async def _connect(self, port: int) -> aiohttp.ClientWebSocketResponse:
        self._session = aiohttp.ClientSession()
        async with self._session.get(f"http://127.0.0.1:{port}/json") as answer:
            (page,) = (one for one in await answer.json() if one["type"] == "page")
        return await self._session.ws_connect(page["webSocketDebuggerUrl"], max_msg_size=0)

    def _ask(self, method: str, **params: Any) -> dict[str, Any]:
        async def whole() -> dict[str, Any]:
            self._count += 1
            await self._line.send_json({"id": self._count, "method": method, "params": params})
            while True:  # events come in between
                answer = await self._line.receive_json(timeout=60)
                if answer.get("id") == self._count:
                    if "error" in answer:
                        raise RuntimeError(f"{method}: {answer['error']}")
                    return dict(answer["result"])

        return self._loop.run_until_complete(whole())

    def open(self, url: str) -> None:
        self._ask("Page.navigate", url=url)

    def value(self, script: str) -> Any:
        """What a piece of JavaScript says on the page."""
        return self._ask("Runtime.evaluate", expression=script, returnByValue=True)["result"].get("value")

    def wait(self, script: str, what: str, seconds: float = 60) -> Any:
        """Until it says something true."""
        try:
            wait_until(lambda: self.value(script), f"the page shows {what}", seconds)
        except TimeoutError as error:
            error.add_note(f"the page as it is: {self.picture('in-vain')}")
            raise
        return self.value(script)

    def click(self, selector: str) -> None:
        box = self.value(
            f"(() => {{ const b = document.querySelector({selector!r}).getBoundingClientRect();"
            " return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self._ask("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)

    def picture(self, name: str) -> Path:
        """Kept outside of the repository: where HELIO_ARTEFACTS says, else with other temporary files."""
        folder = Path(os.environ.get("HELIO_ARTEFACTS") or Path(tempfile.gettempdir(), "helio-artefacts"))
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{name}.png"
        path.write_bytes(base64.b64decode(self._ask("Page.captureScreenshot", format="png")["data"]))
        return path

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        async def close() -> None:
            await self._line.close()
            if self._session is not None:
                await self._session.close()

        self._loop.run_until_complete(close())
        self._loop.close()
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)
