"""Fixtures of the interface for agents: a person who lets agents run jobs on this machine."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lumitui.app.job.settings import Settings
from lumitui.app.mcp.agent_tools import AgentTools
from lumitui.app.runs import Runs
from tests.support.program.agent import allow
from tests.support.program.home import Home

ALL = "{gpu_hours: 1, sites: [laptop], may: [preview, submit, cancel]}"


@pytest.fixture
def work(job: Path, home: Home, settings: Settings) -> Path:
    """A folder with `job.yaml`, which holds two ranks for five minutes: a sixth of a GPU-hour."""
    allow(home, ALL)
    return job.parent


@pytest.fixture
def tools(work: Path, settings: Settings) -> Iterator[AgentTools]:
    """What one server has for an agent in `work`."""
    with Runs(settings) as runs:
        yield AgentTools(runs, settings, work)
