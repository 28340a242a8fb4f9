"""The TUI in a real browser: the page's terminal draws it and takes keys."""

import asyncio
import json
import re
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession, ClientWebSocketResponse

from lumitui.app.job.settings import Settings
from lumitui.app.tui.web.server import serving

CHROMIUM = shutil.which("chromium")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--remote-debugging-port=0", "--window-size=1000,600",
)  # fmt: skip
TERMINAL = "document.querySelector('.xterm-rows, .xterm-screen, canvas') !== null"


@asynccontextmanager
async def chromium(profile: Path, address: str) -> AsyncIterator[ClientWebSocketResponse]:
    """Open an address in Chromium; yield what controls the page (the DevTools protocol)."""
    assert CHROMIUM is not None
    process = await asyncio.create_subprocess_exec(
        CHROMIUM, *FLAGS, f"--user-data-dir={profile}", address,
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        assert process.stderr is not None
        found = None
        while found is None:
            found = re.search(rb"ws://(\S+?)/", await process.stderr.readline())
        async with ClientSession() as session:
            async with session.get(f"http://{found[1].decode()}/json") as answer:
                pages = [page for page in await answer.json() if page["type"] == "page"]
            async with session.ws_connect(pages[0]["webSocketDebuggerUrl"], max_msg_size=0) as page:
                yield page
    finally:
        process.terminate()
        await process.wait()


async def asked(page: ClientWebSocketResponse, method: str, **params: object) -> Any:
    """Return the result of a command."""
    await page.send_json({"id": 1, "method": method, "params": params})
    while True:
        found = json.loads(await page.receive_str())
        if found.get("id") == 1:
            return found.get("result", {})  # while a page is loaded it answers with an error


async def until(page: ClientWebSocketResponse, expression: str) -> None:
    """Wait until an expression of the page is true."""
    async with asyncio.timeout(30):
        while True:
            found = await asked(page, "Runtime.evaluate", expression=expression)
            if found.get("result", {}).get("value") is True:
                return
            await asyncio.sleep(0.1)


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
async def test_a_browser_draws_the_app_and_ends_it(settings: Settings, tmp_path: Path) -> None:
    async with serving(settings) as gate, chromium(tmp_path / "profile", gate.address) as page:
        await until(page, "location.hash === '' && document.cookie === ''")
        await until(page, TERMINAL)
        await until(page, "document.body.classList.contains('-first-byte')")
        await asked(page, "Page.reload")  # the tab keeps its session
        await until(page, "document.body.classList.contains('-first-byte')")
        focus = "document.querySelector('textarea').focus() === undefined"
        await until(page, focus)
        key = {"key": "q", "code": "KeyQ", "text": "q", "windowsVirtualKeyCode": 81}
        await asked(page, "Input.dispatchKeyEvent", type="keyDown", **key)
        await until(page, "document.body.classList.contains('-closed')")
