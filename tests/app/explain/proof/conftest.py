"""Fixtures of the proof of binding."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.jobs.binding import binding_jobs
from tests.support.jobs.binding.binding_jobs import Proving
from tests.support.program.home import Home
from tests.support.servers.cluster import Cluster


@pytest.fixture
def proving(home: Home, cluster: Cluster, tmp_path: Path) -> Iterator[Proving]:
    """The core with the mini cluster, and a project whose ranks say where they are."""
    with binding_jobs.proving(home, cluster, tmp_path) as opened:
        yield opened
