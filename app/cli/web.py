"""`lumitui web`: the address of a server that lives until Ctrl-C."""

import asyncio
from pathlib import Path

from lumitui.app.cli.output import put, say
from lumitui.app.cli.session import own_settings
from lumitui.remote.errors import LumiError


def serve_web(job: Path | None, port: int) -> None:
    """Serve the TUI on this machine until a person interrupts it.

    Raises:
        LumiError: the optional packages are not installed.
        InputError: the port cannot be used.
    """
    try:
        from lumitui.app.web.server import serving
    except ModuleNotFoundError as error:
        raise LumiError(
            f"The browser's side is not installed: {error.name} is missing.",
            "Install it with: pip install 'lumitui[web]'",
        ) from error

    async def serve() -> None:
        async with serving(own_settings(), job, port) as gate:
            put(gate.address)
            say("Open this address in a browser on this machine. Ctrl-C ends it.")
            await asyncio.Event().wait()

    asyncio.run(serve())
