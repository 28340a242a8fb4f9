"""The TUI in a browser: who is let in, what a tab does, and that tabs share their connections."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest
from aiohttp import ClientSession, ClientWebSocketResponse, CookieJar, WSServerHandshakeError

from lumitui.app.runs import Runs
from lumitui.app.settings import Settings
from lumitui.app.web.gate import Gate
from lumitui.app.web.server import serving
from lumitui.remote.connect import Connection, connect
from lumitui.remote.errors import InputError
from lumitui.remote.scheduler.protocol import State
from lumitui.remote.site.profile import Site
from lumitui.remote.ssh.prompts import Ask
from tests.support.jobs.made_runs import a_run


@asynccontextmanager
async def browser() -> AsyncIterator[ClientSession]:
    """A client that keeps cookies of an address of numbers, as browsers do."""
    async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as session:
        yield session


def base(gate: Gate) -> str:
    return f"http://{urlsplit(gate.address).netloc}"


async def shows(tab: ClientWebSocketResponse, *texts: str) -> None:
    """Wait until a tab has been sent `texts`, in any order; each is sent once, so ask for all."""
    seen = b""
    try:
        async with asyncio.timeout(120):
            while not all(text.encode() in seen for text in texts):
                seen += await tab.receive_bytes()
    except TimeoutError:
        pytest.fail(f"{texts} were not shown: {seen[-2000:]!r}")


async def test_without_token_host_or_origin_nobody_is_let_in(settings: Settings) -> None:
    async with serving(settings) as gate, browser() as session:
        root = base(gate)
        for path in ("/", "/?token=", "/?token=guessed", "/page.css", "/static/js/textual.js"):
            async with session.get(root + path) as answer:
                assert answer.status == 401, path
                assert "Set-Cookie" not in answer.headers
        with pytest.raises(WSServerHandshakeError, match="401"):
            await session.ws_connect(f"{root}/ws", headers={"Origin": root})

        async with session.get(gate.address, allow_redirects=False) as answer:
            assert (answer.status, answer.headers["Location"]) == (303, "/")
            cookie = answer.headers["Set-Cookie"]
        assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
        assert urlsplit(gate.address).query.removeprefix("token=") not in cookie
        async with session.get(f"{root}/") as answer:
            assert answer.status == 200 and "textual-terminal" in await answer.text()
            assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
            assert answer.headers["Cache-Control"] == "no-store"

        # With the cookie, too, another name or another page's request is refused.
        port = urlsplit(gate.address).port
        for headers in (
            {"Host": "evil.example"},
            {"Host": f"evil.example:{port}"},
            {"Host": "127.0.0.1"},
            {"Origin": "http://evil.example"},
            {"Origin": "null"},
            {"Host": f"localhost:{port}", "Origin": root},
        ):
            async with session.get(f"{root}/", headers=headers) as answer:
                assert answer.status == 403, headers
        for origin in ({}, {"Origin": "http://evil.example"}, {"Origin": f"{root}0"}):
            with pytest.raises(WSServerHandshakeError, match="403"):
                await session.ws_connect(f"{root}/ws", headers=origin)


async def test_it_listens_on_loopback_alone(settings: Settings) -> None:
    async with serving(settings) as gate:
        assert urlsplit(gate.address).hostname == "127.0.0.1"
        with pytest.raises(InputError, match="cannot be used"):
            async with serving(settings, port=urlsplit(gate.address).port or 0):
                pass


async def test_tabs_take_keys_and_share_one_connection(settings: Settings, runs: Runs) -> None:
    run = a_run("shared-000001", site="laptop", job_id="1", state=State.RUNNING)
    runs.history.begin(run)
    opened: list[str] = []

    def counted(site: Site, ask: Ask) -> Connection:
        opened.append(site.name)
        return connect(site, ask)

    async with serving(settings, connect=counted) as gate, browser() as session:
        await (await session.get(gate.address)).read()
        root = base(gate)
        where, headers = f"{root}/ws?width=100&height=30", {"Origin": root}
        async with (
            session.ws_connect(where, headers=headers) as one,
            session.ws_connect(where, headers=headers) as two,
        ):
            for tab in (one, two):
                await shows(tab, "shared-000001", "\x1b[38;2;", "1 request")  # in every colour
                for nonsense in ("", "[", "[1]", '["resize", 7]', '["stdin", {}]', '["nothing"]'):
                    await tab.send_str(nonsense)
                await tab.send_json(["resize", {"width": 80, "height": 24}])
                await tab.send_json(["stdin", "?"])
                await shows(tab, "Keys here")
            # A tab that ends takes nothing with it.
            await one.close()
            await two.send_json(["stdin", "\x1b"])
            await shows(two, "Quit")  # escape has closed the dialog: its screen's keys are back
            await two.send_json(["stdin", "3"])
            await shows(two, "Watched")
            await two.send_json(["stdin", "q"])
            async with asyncio.timeout(120):
                async for _ in two:
                    pass
        assert opened == ["laptop"]
