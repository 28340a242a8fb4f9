"""The TUI in a browser: who is let in, what a tab does, and that tabs share their connections."""

import asyncio
import json
import resource
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from aiohttp import (
    ClientConnectionError,
    ClientSession,
    ClientWebSocketResponse,
    WSServerHandshakeError,
)

from lumitui.app.job.settings import Settings
from lumitui.app.runs import Runs
from lumitui.app.tui.web.gate import Gate
from lumitui.app.tui.web.server import MOST_TABS, serving
from lumitui.remote.connect import Connection, connect
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.profile import Site
from lumitui.remote.ssh.prompts import Ask
from tests.support.jobs.made_runs import a_run


def base(gate: Gate) -> str:
    return f"http://{urlsplit(gate.address).netloc}"


def resident() -> int:
    """Return the bytes of memory that this process holds."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


async def session_of(client: ClientSession, gate: Gate) -> str:
    """Exchange the token of the address as the page does."""
    token = urlsplit(gate.address).fragment
    root = base(gate)
    async with client.post(f"{root}/session", data=token, headers={"Origin": root}) as answer:
        assert answer.status == 200
        return await answer.text()


async def shows(tab: ClientWebSocketResponse, *texts: str) -> None:
    """Wait until a tab has been sent `texts`, in any order; each is sent once, so ask for all."""
    seen = b""
    try:
        async with asyncio.timeout(120):
            while not all(text.encode() in seen for text in texts):
                seen += await tab.receive_bytes()
    except TimeoutError:
        pytest.fail(f"{texts} were not shown: {seen[-2000:]!r}")


async def test_without_session_host_or_origin_nobody_is_let_in(settings: Settings) -> None:
    async with serving(settings) as gate, ClientSession() as client:
        root, port = base(gate), urlsplit(gate.address).port
        parts = urlsplit(gate.address)
        assert parts.fragment and not parts.query  # no request has the token
        for path in ("/", "/page.css", "/page.js", "/static/js/textual.js"):
            async with client.get(root + path) as answer:
                text = await answer.text()
                assert answer.status == 200, path
                assert "Set-Cookie" not in answer.headers
                assert parts.fragment not in text
            assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
            assert answer.headers["Cache-Control"] == "no-store"
        origin = {"Origin": root}
        for guessed in ("", "guessed", "x" * 4000):
            async with client.post(f"{root}/session", data=guessed, headers=origin) as answer:
                assert answer.status in (401, 413)
        for protocols in ((), ("lumitui",), ("lumitui", parts.fragment)):
            with pytest.raises(WSServerHandshakeError, match="401"):
                await client.ws_connect(f"{root}/ws", headers=origin, protocols=protocols)

        # A page of another local server, or a name that points here, gets nothing with the token.
        wrong: tuple[dict[str, str], ...] = (
            {},
            {"Origin": "http://evil.example"},
            {"Origin": "null"},
            {"Origin": f"{root}0"},
            {"Origin": f"http://127.0.0.1:{(port or 0) + 1}"},
            {"Origin": f"http://localhost:{port}"},
            {"Host": f"localhost:{port}", "Origin": f"http://localhost:{port}"},
            {"Host": f"evil.example:{port}", "Origin": f"http://evil.example:{port}"},
            {"Host": "127.0.0.1", "Origin": "http://127.0.0.1"},
            {"Origin": root, "Sec-Fetch-Site": "cross-site"},
        )
        for headers in wrong:
            asked = client.post(f"{root}/session", data=parts.fragment, headers=headers)
            async with asked as answer:
                assert answer.status == 403, headers
        session = await session_of(client, gate)
        assert session not in parts.fragment
        for headers in wrong:
            with pytest.raises(WSServerHandshakeError, match="403"):
                await client.ws_connect(
                    f"{root}/ws", headers=headers, protocols=("lumitui", session)
                )


async def test_a_token_works_once_and_the_next_address_is_told(settings: Settings) -> None:
    told: list[str] = []
    async with serving(settings, used=told.append) as gate, ClientSession() as client:
        first, root = gate.address, base(gate)
        session = await session_of(client, gate)
        token = urlsplit(first).fragment
        async with client.post(f"{root}/session", data=token, headers={"Origin": root}) as answer:
            assert answer.status == 401
        assert told == [gate.address] and gate.address != first
        for _ in range(2):  # a reload
            async with client.ws_connect(
                f"{root}/ws", headers={"Origin": root}, protocols=("lumitui", session)
            ) as tab:
                assert tab.protocol == "lumitui"


async def test_a_flood_of_odd_messages_costs_no_memory_and_the_server_answers(
    settings: Settings, capfd: pytest.CaptureFixture[str]
) -> None:
    floods: tuple[object, ...] = (
        ["stdin", "j" * 60_000],
        ["stdin", "\x1b[48;90000;90000;1;1t"],
        ["stdin", "\x1b[48;0;0;1;1t\x1b[<0;1;1M"],
        ["stdin", "\x1b[200~" + "p" * 100_000],
        ["stdin", "\ud800\udfff\x00"],
        ["resize", {"width": 10**9, "height": 10**9}],
        ["ping", ["x" * 60_000]],
        ["focus"],
    )
    odd = [json.dumps(flood) for flood in floods] + ["[" * 200_000, '["resize",{"width":1e999}]']
    async with serving(settings) as gate, ClientSession() as client:
        root = base(gate)
        session = await session_of(client, gate)
        protocols, headers = ("lumitui", session), {"Origin": root}

        async def flood() -> None:
            with suppress(ClientConnectionError, ConnectionError):  # as the server ends it
                async with client.ws_connect(
                    f"{root}/ws", headers=headers, protocols=protocols
                ) as tab:
                    for number in range(1700):
                        await tab.send_str(odd[number % len(odd)])

        async with client.ws_connect(f"{root}/ws", headers=headers, protocols=protocols) as calm:
            await shows(calm, "Runs")
            before = resident()
            flooding = asyncio.create_task(flood())
            await calm.send_json(["stdin", "?"])
            await shows(calm, "Keys here")
            async with asyncio.timeout(120):
                await flooding  # the server ended it
            grown = resident() - before
        assert grown < 60 << 20
        async with asyncio.timeout(120):
            while True:  # a slow server may have closed that tab for another reason: once more
                try:
                    await flood()
                except WSServerHandshakeError as refused:
                    if refused.status == 401:
                        break
                await asyncio.sleep(0.2)
    assert "Traceback" not in capfd.readouterr().err


async def test_no_more_tabs_than_the_limit_even_at_once(settings: Settings) -> None:
    async with serving(settings) as gate, ClientSession() as client:
        root = base(gate)
        session = await session_of(client, gate)
        found = await asyncio.gather(
            *(
                client.ws_connect(
                    f"{root}/ws", headers={"Origin": root}, protocols=("lumitui", session)
                )
                for _ in range(MOST_TABS + 3)
            ),
            return_exceptions=True,
        )
        refused = [tab for tab in found if isinstance(tab, WSServerHandshakeError)]
        assert [error.status for error in refused] == [503] * 3
        for tab in found:
            if isinstance(tab, ClientWebSocketResponse):
                await tab.close()


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

    async with serving(settings, connect=counted) as gate, ClientSession() as client:
        root = base(gate)
        protocols = ("lumitui", await session_of(client, gate))
        where, headers = f"{root}/ws?width=100&height=30", {"Origin": root}
        async with (
            client.ws_connect(where, headers=headers, protocols=protocols) as one,
            client.ws_connect(where, headers=headers, protocols=protocols) as two,
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
            await shows(two, "counted for")
            await two.send_json(["stdin", "q"])
            async with asyncio.timeout(120):
                async for _ in two:
                    pass
        assert opened == ["laptop"]
