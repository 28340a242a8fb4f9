"""`lumitui tui --web`: the address of a server that lives until Ctrl-C."""

import asyncio
import sys
from contextlib import redirect_stderr
from pathlib import Path

from lumitui.app.cli.output import put, say
from lumitui.app.cli.session import own_settings
from lumitui.app.runs import LumiError


def serve_web(job: Path | None, port: int) -> None:
    """Serve the TUI on this machine until a user interrupts it.

    Raises:
        LumiError: the optional packages are not installed.
        InputError: the port cannot be used.
    """
    try:
        from lumitui.app.tui.web.server import serving
    except ModuleNotFoundError as error:
        raise LumiError(
            f"The browser's side is not installed: {error.name} is missing.",
            "Install it with: pip install 'lumitui[web]'",
        ) from error

    terminal = sys.stderr  # an app that runs takes the stream

    def tell(words: str) -> None:
        with redirect_stderr(terminal):
            say(words)

    def used(address: str) -> None:
        tell(f"A tab was opened. For another tab: {address}")

    async def serve() -> None:
        async with serving(own_settings(), job, port, used=used, tell=tell) as gate:
            put(gate.address)
            say("Open this address in a browser on this machine; it works once. Ctrl-C ends it.")
            await asyncio.Event().wait()

    asyncio.run(serve())
