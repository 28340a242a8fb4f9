"""The mini clusters that rows run on: started for those of a site, stopped after them."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.servers.cluster import Cluster, running_cluster
from tests.support.systems.outcome import Outcome
from tests.support.systems.resources import put_resources
from tests.support.systems.rows import SHAPES, Row


@dataclass(frozen=True)
class System:
    """A site's mini cluster, and what has run there."""

    site: str
    cluster: Cluster
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    """By the script that ran: one run stands for all rows whose script of ours is the same."""

    @property
    def profile(self) -> str:
        """The profile of the mini cluster, in tests/cluster/sites."""
        return "minilumi" if self.site == "lumi" else f"mini-{self.site}"


class Systems:
    """The mini clusters of the sites: while another one starts, the one before stops."""

    def __init__(self, items: list[pytest.Item], folder: Path) -> None:
        self._items, self._folder = items, folder
        self._stack = ExitStack()
        self._system: System | None = None
        self._threads, self._stops = ThreadPoolExecutor(1), list[Future[None]]()

    def of(self, site: str) -> System:
        """Return the site's cluster, started unless it runs, with the nodes that its rows need."""
        if self._system is None or self._system.site != site:
            self._stop()
            nodes = 8 if site == "lumi" else max(_nodes_of(self._items, site))
            cluster = self._stack.enter_context(running_cluster(SHAPES[site], nodes))
            if site == "lumi":
                put_resources(cluster, self._folder)
            self._system = System(site, cluster)
        return self._system

    def _stop(self) -> None:
        # It takes 7 seconds, in which nothing computes.
        self._stops.append(self._threads.submit(self._stack.close))
        self._stack, self._system = ExitStack(), None

    def close(self) -> None:
        """Stop what was started, and wait for all."""
        self._stop()
        for stop in self._stops:
            stop.result()
        self._threads.shutdown()


def _nodes_of(items: list[pytest.Item], site: str) -> Iterator[int]:
    """Yield the nodes of the rows of `site` that this session runs, and a 2."""
    yield 2
    for item in items:
        callspec = getattr(item, "callspec", None)
        if callspec and callspec.params.get("site") == site:
            row = callspec.params["row"]
            assert isinstance(row, Row)
            yield row.nodes
