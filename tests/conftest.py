"""Fixtures every test module shares."""

from collections.abc import Iterator

import hypothesis
import pytest

from lumitui.app.runs import Runs
from tests.support.home import Home
from tests.support.servers.cluster import Cluster, cluster

__all__ = ["cluster"]

# A busy machine is no defect: no test asserts how long something takes.
hypothesis.settings.register_profile("patient", deadline=None)
hypothesis.settings.load_profile("patient")


@pytest.fixture
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Home:
    """Keep the developer's own profiles and history out of the tests, and out of `tmp_path`."""
    folder = tmp_path_factory.mktemp("home")
    place = Home(folder / "config", folder / "data")
    (place.config / "sites").mkdir(parents=True)
    for name in ("LUMITUI_CONFIG_DIR", "LUMITUI_DATA_DIR"):
        monkeypatch.setenv(name, place.environ[name])
    monkeypatch.setenv("HOME", str(folder))
    return place


@pytest.fixture
def runs(home: Home) -> Iterator[Runs]:
    """The core without a cluster."""
    core = Runs(home.settings)
    yield core
    core.close()


@pytest.fixture
def cluster_runs(home: Home, cluster: Cluster) -> Iterator[Runs]:
    """The core with the mini cluster as the site `minilumi`."""
    home.add_cluster(cluster)
    core = Runs(home.settings)
    yield core
    core.close()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test that asks for the mini cluster."""
    for item in items:
        if {"cluster", "cluster_runs"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.cluster)
