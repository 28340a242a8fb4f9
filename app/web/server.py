"""Serves the TUI to a browser on this machine.

The tabs share one core, so that a site has one connection however many there are, and what a tab
sends goes on when the tab is closed. The page's terminal comes with textual-serve, whose own server
is not used: it starts a process a tab, each with connections of its own, and asks for no token.
"""

import asyncio
import socket as socketlib
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path

from aiohttp import WSMsgType, web
from aiohttp.typedefs import Handler, Middleware
from rich.console import Console

from lumitui.app.runs import Runs
from lumitui.app.settings import Settings
from lumitui.app.tui.app import LumiApp
from lumitui.app.web.driver import TabDriver, cells, told
from lumitui.app.web.gate import SAFE_HEADERS, Gate
from lumitui.remote.connect import Connect, connect
from lumitui.remote.errors import InputError
from lumitui.remote.ssh.prompts import Question

MOST_TABS = 8
LARGEST_MESSAGE = 1 << 20
"""Bytes that a tab may send at once: a paste."""
PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>lumitui</title>
<link rel="stylesheet" href="/static/css/xterm.css">
<link rel="stylesheet" href="/page.css">
<script src="/static/js/textual.js"></script>
</head>
<body>
<div id="terminal" class="textual-terminal" data-session-websocket-url="ws://{host}/ws"
 data-font-size="16"></div>
<p id="closed">This tab's lumitui has ended. Reload the page to go on.</p>
</body>
</html>
"""
STYLE = """html, body { margin: 0; height: 100%; background: #0c181f; overflow: hidden }
.textual-terminal { height: 100vh }
#closed { display: none; color: #fff; font: 16px sans-serif; text-align: center }
body.-closed .textual-terminal { display: none }
body.-closed #closed { display: block }
"""


class Tabs:
    """The server's core and its tabs."""

    def __init__(self, settings: Settings, job: Path | None, connect: Connect) -> None:
        """Open the history; each tab opens the job file `job`, if there is one."""
        self._settings, self._job = settings, job
        self._apps: list[LumiApp] = []
        self._streams = sys.stdout, sys.stderr
        self.runs = Runs(settings, ask=self._ask, connect=connect)

    def _ask(self, question: Question) -> str | None:
        """Ask in the newest tab; without a tab nobody answers."""
        return self._apps[-1].ask(question) if self._apps else None

    async def talk(self, request: web.Request) -> web.StreamResponse:
        """Run an app for a tab until one of them ends."""
        if len(self._apps) >= MOST_TABS:
            raise web.HTTPServiceUnavailable(text=f"There are {MOST_TABS} tabs already.")
        socket = web.WebSocketResponse(heartbeat=15, max_msg_size=LARGEST_MESSAGE)
        await socket.prepare(request)
        app = LumiApp(self._settings, self._job, runs=self.runs)
        app.driver_class = TabDriver
        # The page's terminal has all colours, whatever terminal this server was started in.
        app.console = Console(
            color_system="truecolor", file=app.console.file, highlight=False, emoji=False
        )
        self._apps.append(app)
        size = cells(request.query, "width", 80), cells(request.query, "height", 24)
        running = asyncio.create_task(app.run_async(size=size))
        sending = asyncio.create_task(self._send(app, running, socket))
        try:
            await self._receive(app, socket)
        finally:
            if isinstance(app._driver, TabDriver):
                app._driver.leave()
            await asyncio.gather(running, sending, return_exceptions=True)
            self._apps.remove(app)
            if not self._apps:
                # Each app puts back what it found; apps do not end in the order of their begin.
                sys.stdout, sys.stderr = self._streams
            await socket.close()
        return socket

    async def _send(
        self, app: LumiApp, running: "asyncio.Task[int | None]", socket: web.WebSocketResponse
    ) -> None:
        while app._driver is None and not running.done():
            await asyncio.sleep(0.01)
        while isinstance(driver := app._driver, TabDriver):
            data = await driver.drawn.get()
            if data is None:
                break
            if not socket.closed:
                await socket.send_bytes(data)
        await socket.close()

    async def _receive(self, app: LumiApp, socket: web.WebSocketResponse) -> None:
        async for message in socket:
            if message.type is not WSMsgType.TEXT:
                continue
            kind, value = told(message.data)
            if kind == "ping":
                await socket.send_json(["pong", value])
            elif isinstance(app._driver, TabDriver):
                app._driver.take(kind, value)


def checked(gate: Gate) -> Middleware:
    """Return what every request passes before it is answered."""

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        page = request.path != "/ws"
        if fault := gate.fault(request.headers, page=page):
            raise web.HTTPForbidden(text=f"{fault}\n", headers=SAFE_HEADERS)
        if request.path == "/" and gate.has_token(request.query.get("token", "")):
            # The address bar, the history and what a person copies keep no token.
            answer = web.Response(status=303, headers={"Location": "/", **SAFE_HEADERS})
            answer.set_cookie(gate.cookie, gate.session, httponly=True, samesite="Strict")
            return answer
        if not gate.has_session(request.cookies.get(gate.cookie, "")):
            text = "Open the address that `lumitui web` printed: it has the token.\n"
            raise web.HTTPUnauthorized(text=text, headers=SAFE_HEADERS)
        found = await handler(request)
        if not found.prepared:
            found.headers.update(SAFE_HEADERS)
        return found

    return check


async def _page(request: web.Request) -> web.StreamResponse:
    return web.Response(text=PAGE.format(host=request.host), content_type="text/html")


async def _style(request: web.Request) -> web.StreamResponse:
    return web.Response(text=STYLE, content_type="text/css")


@asynccontextmanager
async def serving(
    settings: Settings, job: Path | None = None, port: int = 0, *, connect: Connect = connect
) -> AsyncIterator[Gate]:
    """Serve on `port` of 127.0.0.1, or a free one; yield the gate, which has the address.

    Raises:
        InputError: the port is taken, or may not be used.
    """
    loop = asyncio.get_running_loop()
    application = web.Application()
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=2)
    tabs = Tabs(settings, job, connect)
    application.router.add_get("/", _page)
    application.router.add_get("/page.css", _style)
    application.router.add_get("/ws", tabs.talk)
    application.router.add_static("/static", Path(str(files("textual_serve") / "static")))
    try:
        socket = await loop.run_in_executor(None, _bound, port)
        gate = Gate(socket.getsockname()[1])
        application.middlewares.append(checked(gate))
        await runner.setup()
        await web.SockSite(runner, socket).start()
        yield gate
    finally:
        await runner.cleanup()
        tabs.runs.close()


def _bound(port: int) -> "socketlib.socket":
    try:
        return socketlib.create_server(("127.0.0.1", port))
    except (OSError, OverflowError) as error:
        raise InputError(
            f"Port {port} cannot be used: {error}.", "Choose another one, or leave --port out."
        ) from error
