"""Fixtures every test module shares."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import hypothesis
import pytest

from lumitui.app.runs import Runs
from lumitui.app.settings import Settings, settings
from tests.cluster_fixture import Cluster, cluster

__all__ = ["cluster"]

# A busy machine is no defect: no test asserts how long something takes.
hypothesis.settings.register_profile("patient", deadline=None)
hypothesis.settings.load_profile("patient")

SITES = Path(__file__).resolve().parent / "cluster" / "sites"


@dataclass(frozen=True)
class Home:
    """A person's own configuration and data folders, new for each test."""

    config: Path
    data: Path

    @property
    def environ(self) -> dict[str, str]:
        """The environment of a lumitui that lives here."""
        return {
            **os.environ,
            "LUMITUI_CONFIG_DIR": str(self.config),
            "LUMITUI_DATA_DIR": str(self.data),
        }

    @property
    def settings(self) -> Settings:
        """The same as settings."""
        return settings(self.environ)

    def add_cluster(self, cluster: Cluster, name: str = "minilumi") -> None:
        """Make the mini cluster (perhaps behind a proxy) the site `name`."""
        text = (SITES / "minilumi.yaml").read_text()
        text = text.replace("/tmp/minilumi/ssh/config", str(cluster.ssh_config))
        text = text.replace("22.05.8", cluster.slurm_version)
        (self.config / "sites" / f"{name}.yaml").write_text(
            text.replace("name: minilumi", f"name: {name}", 1)
        )


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
