"""Serves the TUI to a browser on this machine.

The tabs share one core, so that a site has one connection however many there are, and what a tab
sends continues when the tab is closed. The page's terminal comes with textual-serve, whose own
server is not used: it starts a process a tab, each with connections of its own, and asks for no
token.
"""

import asyncio
import logging
import socket as socketlib
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path

from aiohttp import WSCloseCode, WSMsgType, web
from aiohttp.typedefs import Handler, Middleware
from rich.console import Console
from textual.driver import Driver

from lumitui.app.runs import Connect, InputError, LoginQuestion, Runs, Settings, connect
from lumitui.app.tui.app import LumiApp
from lumitui.app.tui.terminal import ask_person
from lumitui.app.tui.web.driver import HIGHEST, WIDEST, TabDriver, cells, pieces, told
from lumitui.app.tui.web.gate import PROTOCOL, SAFE_HEADERS, Gate

# Without a handler Python prints a library's errors, with tracebacks, on the user's terminal.
logging.getLogger("aiohttp").addHandler(logging.NullHandler())

MOST_TABS = 4
LARGEST_MESSAGE = 1 << 18
"""Bytes that a tab may send at once: a paste."""
MESSAGES = 200.0
"""Messages that a tab may send in a second: moving the mouse makes 60 to 120."""
CHARACTERS = 1 << 16
"""Characters that a tab may send in a second, after a first paste."""
PATIENCE = 10.0
"""Seconds of sending faster than that, after which a tab is closed."""
PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>lumitui</title>
<link rel="stylesheet" href="/static/css/xterm.css">
<link rel="stylesheet" href="/page.css">
<script src="/page.js"></script>
</head>
<body>
<div id="terminal" class="textual-terminal" data-session-websocket-url="ws://{host}/ws"
 data-font-size="16"></div>
<p id="closed">This tab's lumitui has ended. Reload the page to continue.</p>
<p id="stranger">Open the address that `lumitui tui --web` printed last: each works once.</p>
</body>
</html>
"""
# The terminal's script connects when it is loaded, so it is loaded with the session at hand.
SCRIPT = """"use strict";
const Plain = WebSocket;
async function session() {
  const token = location.hash.slice(1);
  if (token) {
    history.replaceState(null, "", "/");
    const answer = await fetch("/session", {method: "POST", body: token});
    if (answer.ok) sessionStorage.setItem("lumitui", await answer.text());
  }
  return sessionStorage.getItem("lumitui");
}
addEventListener("load", async () => {
  const found = await session();
  if (!found) return document.body.classList.add("-stranger");
  window.WebSocket = class extends Plain {
    constructor(address) { super(address, ["PROTOCOL", found]); }
  };
  const terminal = document.createElement("script");
  terminal.src = "/static/js/textual.js";
  terminal.onload = () => window.onload();
  document.head.append(terminal);
});
addEventListener("hashchange", () => location.reload());
""".replace("PROTOCOL", PROTOCOL)
STYLE = """html, body { margin: 0; height: 100%; background: #0c181f; overflow: hidden }
.textual-terminal { height: 100vh }
#closed, #stranger { display: none; color: #fff; font: 16px sans-serif; text-align: center }
body.-closed .textual-terminal, body.-stranger .textual-terminal { display: none }
body.-closed #closed, body.-stranger #stranger { display: block }
"""


class Tabs:
    """The server's core and its tabs."""

    def __init__(
        self, settings: Settings, job: Path | None, connect: Connect, tell: Callable[[str], None]
    ) -> None:
        """Open the history; each tab opens the job file `job`, if there is one."""
        self._settings, self._job, self._tell = settings, job, tell
        self.flooded: Callable[[], None] = lambda: None
        """Called when a tab has ended that sent more than it may."""
        self._apps: list[LumiApp] = []
        self._open = 0
        self._streams = sys.stdout, sys.stderr
        self.runs = Runs(settings, ask=self._ask, connect=connect)

    def _ask(self, question: LoginQuestion) -> str | None:
        """Ask in the newest tab; without a tab nobody answers."""
        return ask_person(self._apps[-1], question) if self._apps else None

    async def talk(self, request: web.Request) -> web.StreamResponse:
        """Run an app for a tab until one of them ends."""
        if self._open >= MOST_TABS:
            raise web.HTTPServiceUnavailable(text=f"There are {MOST_TABS} tabs already.")
        self._open += 1
        try:
            # Compressed messages would cost memory in each tab, and gain nothing on one machine.
            socket = web.WebSocketResponse(
                heartbeat=15, max_msg_size=LARGEST_MESSAGE, compress=False, protocols=(PROTOCOL,)
            )
            await socket.prepare(request)
            await self._run(request, socket)
        finally:
            self._open -= 1
        return socket

    async def _run(self, request: web.Request, socket: web.WebSocketResponse) -> None:
        app = LumiApp(self._settings, self._job, runs=self.runs)
        app.driver_class = TabDriver
        # The page's terminal has all colours, whatever terminal this server was started in.
        app.console = Console(
            color_system="truecolor", file=app.console.file, highlight=False, emoji=False
        )
        self._apps.append(app)
        width = cells(request.query, "width", 80, WIDEST)
        height = cells(request.query, "height", 24, HIGHEST)
        running = asyncio.create_task(app.run_async(size=(width, height)))
        sending = asyncio.create_task(self._send(app, running, socket))
        try:
            await self._receive(app, running, socket)
        finally:
            # A tab may be gone before its app has begun.
            if isinstance(driver := await _driver_of(app, running), TabDriver):
                driver.leave()
            await asyncio.gather(running, sending, return_exceptions=True)
            self._apps.remove(app)
            if not self._apps:
                # Each app puts back what it found; apps do not end in the order of their begin.
                sys.stdout, sys.stderr = self._streams
            await socket.close()
            if app.defect is not None:
                self._tell(f"A tab ended with an internal error: {type(app.defect).__name__}.")

    async def _send(
        self, app: LumiApp, running: "asyncio.Task[int | None]", socket: web.WebSocketResponse
    ) -> None:
        while isinstance(driver := await _driver_of(app, running), TabDriver):
            data = await driver.drawn.get()
            if data is None:
                break
            if not socket.closed:
                await socket.send_bytes(data)
            driver.sent(data)
        await socket.close()

    async def _receive(
        self, app: LumiApp, running: "asyncio.Task[int | None]", socket: web.WebSocketResponse
    ) -> None:
        """Hand the app what its tab sends, no faster than it may and than the app can take it.

        What is not read yet waits in the browser.
        """
        pace = TabPace()
        async for message in socket:
            size = len(message.data) if isinstance(message.data, str | bytes) else 0
            if not await pace.wait(size):
                await socket.close(code=WSCloseCode.POLICY_VIOLATION, message=b"too many messages")
                break
            if message.type is not WSMsgType.TEXT:
                continue
            kind, value = told(message.data)
            if kind == "ping":
                await socket.send_json(["pong", value if isinstance(value, str) else ""])
                continue
            for piece in pieces(kind, value):
                driver = app._driver
                if not isinstance(driver, TabDriver):
                    break
                driver.take(kind, piece)
                await asyncio.sleep(0)
                while driver.is_behind and not (socket.closed or running.done()):
                    await asyncio.sleep(0.01)
                if socket.closed or running.done():
                    break
        if pace.is_late or socket.close_code == WSCloseCode.MESSAGE_TOO_BIG:
            self.flooded()


async def _driver_of(app: LumiApp, running: "asyncio.Task[int | None]") -> Driver | None:
    """Return what draws the app, once it has begun."""
    while app._driver is None and not running.done():
        await asyncio.sleep(0.01)
    return app._driver


class TabPace:
    """How fast a tab may send; it may be ahead by what two seconds allow.

    A first paste of the largest size passes at once.
    """

    def __init__(self) -> None:
        """Begin with nothing sent."""
        self._free_at = 0.0
        self._late_since: float | None = None

    @property
    def is_late(self) -> bool:
        """Whether the tab sent its last message faster than it may."""
        return self._late_since is not None

    async def wait(self, size: int) -> bool:
        """Wait until a message of `size` may be taken; False: the tab does not stop sending."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        late = self._free_at - now
        self._free_at = max(self._free_at, now - 2) + 1 / MESSAGES + size / CHARACTERS
        if late <= 0:
            self._late_since = None
            return True
        self._late_since = self._late_since or now
        await asyncio.sleep(late)
        return now - self._late_since < PATIENCE


def checked(gate: Gate) -> Middleware:
    """Return what every request passes before it is answered."""

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        page = request.path not in ("/ws", "/session")
        if fault := gate.fault(request.headers, page=page):
            raise web.HTTPForbidden(text=f"{fault}\n", headers=SAFE_HEADERS)
        offered = request.headers.get("Sec-WebSocket-Protocol", "")
        # Page, style and scripts are the same for everybody, and hold nothing of the user.
        if request.path == "/ws" and not gate.has_session(offered):
            raise web.HTTPUnauthorized(text="This tab has no session.\n", headers=SAFE_HEADERS)
        found = await handler(request)
        if not found.prepared:
            found.headers.update(SAFE_HEADERS)
        return found

    return check


async def _page(request: web.Request) -> web.StreamResponse:
    return web.Response(text=PAGE.format(host=request.host), content_type="text/html")


async def _script(request: web.Request) -> web.StreamResponse:
    return web.Response(text=SCRIPT, content_type="text/javascript")


async def _style(request: web.Request) -> web.StreamResponse:
    return web.Response(text=STYLE, content_type="text/css")


@asynccontextmanager
async def serving(
    settings: Settings,
    job: Path | None = None,
    port: int = 0,
    *,
    connect: Connect = connect,
    used: Callable[[str], None] = lambda address: None,
    tell: Callable[[str], None] = lambda words: None,
) -> AsyncIterator[Gate]:
    """Serve on `port` of 127.0.0.1, or a free one; yield the gate, which has the address.

    `used` gets the next address when one has been used; `tell` gets sentences about defects.

    Raises:
        InputError: the port is taken, or may not be used.
    """
    loop = asyncio.get_running_loop()
    application = web.Application(client_max_size=1024)  # a token
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=2)
    tabs = Tabs(settings, job, connect, tell)
    application.router.add_get("/", _page)
    application.router.add_get("/page.css", _style)
    application.router.add_get("/page.js", _script)
    application.router.add_get("/ws", tabs.talk)
    application.router.add_static("/static", Path(str(files("textual_serve") / "static")))
    handler = loop.get_exception_handler()
    loop.set_exception_handler(lambda _, context: _tell_of(context, tell))
    try:
        socket = await loop.run_in_executor(None, _bound, port)
        gate = Gate(socket.getsockname()[1], used)
        tabs.flooded = gate.end_session
        application.router.add_post("/session", _exchange(gate))
        application.middlewares.append(checked(gate))
        await runner.setup()
        await web.SockSite(runner, socket).start()
        yield gate
    finally:
        await runner.cleanup()
        tabs.runs.close()
        loop.set_exception_handler(handler)


def _exchange(gate: Gate) -> Handler:
    async def exchange(request: web.Request) -> web.StreamResponse:
        session = gate.exchange(await request.read())
        if not session:
            raise web.HTTPUnauthorized(text="This is not the token, or it was used.\n")
        return web.Response(text=session)

    return exchange


def _tell_of(context: Mapping[str, object], tell: Callable[[str], None]) -> None:
    """Tell of an exception that nobody awaited in a sentence; asyncio would print its traceback."""
    error = context.get("exception")
    if not isinstance(error, ConnectionError):  # a tab that was closed
        tell(f"The server had an internal error: {type(error).__name__}.")


def _bound(port: int) -> "socketlib.socket":
    try:
        return socketlib.create_server(("127.0.0.1", port))
    except (OSError, OverflowError) as error:
        raise InputError(
            f"Port {port} cannot be used: {error}.", "Choose another one, or leave --port out."
        ) from error
