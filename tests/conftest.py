"""Fixtures of both halves: a person's home, verbs, the mini cluster, servers, schedulers."""

import gc
import os
import subprocess
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TypeVar

import hypothesis
import pytest

from lumitui.app.cli.main import lumitui
from lumitui.app.cli.process import run_verb
from lumitui.app.runs import Runs
from lumitui.remote.transport.transport import Transport
from tests.repository import skips
from tests.support.jobs.scheduler_bench import Bench, process_bench, slurm_bench
from tests.support.program.command_line import Here
from tests.support.program.home import Home
from tests.support.servers.cluster import Cluster, running_cluster
from tests.support.servers.sshd import Sshd, busy_sshd, running_sshd
from tests.support.servers.transports import KINDS, open_transport

# A busy machine is no defect: no test asserts how long something takes.
hypothesis.settings.register_profile("patient", deadline=None)
hypothesis.settings.load_profile("patient")


@pytest.fixture
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Home:
    """Keep the developer's own profiles and history out of the tests, and out of `tmp_path`."""
    folder = tmp_path_factory.mktemp("home")
    place = Home(folder / "config", folder / "data")
    (place.config / "sites").mkdir(parents=True)
    for name in ("LUMITUI_CONFIG_DIR", "LUMITUI_DATA_DIR", "LUMITUI_SYSTEM_DIR"):
        monkeypatch.setenv(name, place.environ[name])
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("COLUMNS", raising=False)  # a process of pytest-xdist has 80
    return place


@pytest.fixture
def here(home: Home, capsys: pytest.CaptureFixture[str]) -> Here:
    """Run a verb in this process, ten times as fast as in one of its own."""

    def call(*words: str) -> "subprocess.CompletedProcess[str]":
        code = run_verb(lumitui, list(words))
        return subprocess.CompletedProcess(words, code, *capsys.readouterr())

    return call


@pytest.fixture
def runs(home: Home) -> Iterator[Runs]:
    """The core without a cluster."""
    core = Runs(home.settings)
    yield core
    core.close()


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """The running mini cluster; skips where it cannot run."""
    with running_cluster() as found:
        yield found


@pytest.fixture
def cluster_runs(home: Home, cluster: Cluster) -> Iterator[Runs]:
    """The core with the mini cluster as the site `minilumi`."""
    home.add_cluster(cluster)
    core = Runs(home.settings)
    yield core
    core.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    """A real sshd for all tests of a module."""
    with running_sshd(tmp_path_factory.mktemp("sshd")) as server:
        yield server


@pytest.fixture
def server(shared: Sshd) -> Sshd:
    """The module's sshd with nothing left of other tests on the person's side."""
    shared.known_hosts.unlink(missing_ok=True)
    shared.allow(shared.identity)
    shared.configure()
    return shared


@pytest.fixture
def busy(tmp_path: Path) -> Iterator[Sshd]:
    """A real sshd that allows one login at a time."""
    with busy_sshd(tmp_path) as server:
        yield server


@pytest.fixture(scope="module", params=KINDS)
def transport(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Transport]:
    """Each transport in turn: this machine's shell, busybox, SSH."""
    with open_transport(request.param, tmp_path_factory.mktemp("site")) as opened:
        yield opened


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """Plain processes on this machine, with a job store of their own."""
    with process_bench(tmp_path_factory.mktemp("state"), tmp_path_factory.mktemp("runs")) as bench:
        yield bench


@pytest.fixture(scope="module")
def slurm(cluster: Cluster) -> Iterator[Bench]:
    """The mini cluster's Slurm over one SSH connection."""
    with slurm_bench(cluster) as bench:
        yield bench


@pytest.fixture(params=["process", pytest.param("slurm", marks=pytest.mark.cluster)])
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    """Each scheduler in turn."""
    found = request.getfixturevalue("processes" if request.param == "process" else "slurm")
    assert isinstance(found, Bench)
    yield found
    found.transport.before = ""


def pytest_configure() -> None:
    """Collect the tests without looking for garbage: there is none."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Look for garbage again, but seldom, and never among the tests themselves.

    It took a third of the time of a test that shows a screen.
    """
    gc.freeze()
    gc.set_threshold(10_000, 20, 50)
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test that asks for the mini cluster; those that start others take longest."""
    for item in items:
        if {"cluster", "cluster_runs"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.cluster)
    items.sort(key=lambda item: "systems" not in getattr(item, "fixturenames", ()))


Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)


def without_skip(report: Report) -> Report:
    """Make a skip that is not listed a failure, where every test should run."""
    if os.environ.get(skips.VARIABLE) == "1" and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if fault := skips.fault(report.nodeid, reason):
            report.outcome, report.longrepr = "failed", fault
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that skips itself, or bears a mark that skips it."""
    return without_skip((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """A module that skips itself while it is imported."""
    return without_skip((yield))
