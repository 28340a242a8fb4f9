"""An agent: the SDK's own client, of `lumitui mcp` or of its server in this process."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters

from lumitui.app.job.settings import Settings
from lumitui.app.mcp.mcp_server import server_of
from lumitui.app.runs import Runs
from tests.support.program.command_line import PROGRAM, environ
from tests.support.program.home import Home


class Agent:
    """What calls the tools of one server."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def call(self, tool: str, **arguments: object) -> dict[str, Any]:
        """Call a tool that answers; return its data."""
        result = await self.client.call_tool(tool, arguments)
        assert not result.is_error, result.content
        assert result.structured_content is not None
        return dict(result.structured_content)

    async def refused(self, tool: str, **arguments: object) -> str:
        """Call a tool that must refuse; return what it says."""
        result = await self.client.call_tool(tool, arguments)
        assert result.is_error, result.structured_content
        text = " ".join(getattr(part, "text", "") for part in result.content)
        assert "Traceback" not in text, text
        return text

    async def token(self, path: str = "job.yaml") -> str:
        """Preview a job file that may be sent; return the token."""
        preview = await self.call("preview_job", path=path)
        assert preview["token"], preview["refused"]
        return str(preview["token"])

    async def read(self, uri: str) -> str:
        """Read a resource."""
        (content,) = (await self.client.read_resource(uri)).contents
        return str(getattr(content, "text", ""))


@asynccontextmanager
async def agent_in(home: Home, folder: Path, **variables: str) -> AsyncIterator[Agent]:
    """Start `lumitui mcp` for a person's `home` in `folder`, and connect to it."""
    server = StdioServerParameters(
        command=sys.executable,
        args=[*PROGRAM[1:], "mcp"],
        cwd=folder,
        env=environ(home, **variables),
    )
    async with Client(server) as client:
        yield Agent(client)


@asynccontextmanager
async def agent_here(settings: Settings, folder: Path) -> AsyncIterator[Agent]:
    """Connect to a server in this process: one of its own takes a second and a half to start."""
    with Runs(settings) as runs:
        async with Client(server_of(runs, settings, folder)) as client:
            yield Agent(client)


def allow(home: Home, words: str) -> None:
    """Write `agents:` of the person's settings file."""
    (home.config / "settings.yaml").write_text(f"agents: {words}\n")
