"""`make footprint`: what an hour of lumitui costs a login node, measured on the mini cluster's.

Jobs stand in the queue (held: the queue's answer is as long as for running ones), and each run's
folder grows by a line of metrics a tick. Some ticks are counted where they arrive: channels at
sshd, calls of Slurm's commands, bytes on the link, CPU seconds of the connection's processes and
of slurmctld beyond what it uses by itself. An hour has 3600 / `poll_seconds` ticks (of the
profile `lumi`); what goes by time and not by tick (keep-alive, an open log) is measured by time.
"""

import os
import shlex
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from lumitui.app.history.run import Run
from lumitui.app.runs import Runs
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site.shell_text import quote
from lumitui.remote.site.sites import BUILT_IN, Sites
from tests.support.jobs.small_jobs import finish, hello_job, hello_project
from tests.support.program.home import Home
from tests.support.servers.cluster import Cluster, read_cluster, start
from tests.support.servers.link_proxy import LinkProxy

TICKS, SECONDS = 12, 70.0
"""Ticks that are counted, and the seconds that an open connection is (two keep-alives of 30 s)."""
METRICS = '{"step": 1, "loss": 0.1234, "lr": 0.02, "samples_per_s": 8123.4, "seconds": 0.031}\n'
CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Cost:
    """What was counted on the server during one measurement."""

    channels: int
    commands: int
    bytes: int
    login_cpu: float
    """CPU seconds of sshd's processes for the connection, and of all they started."""
    controller_cpu: float

    def times(self, factor: float) -> "Cost":
        """Return the same for `factor` times as much."""
        return Cost(
            round(self.channels * factor),
            round(self.commands * factor),
            round(self.bytes * factor),
            self.login_cpu * factor,
            self.controller_cpu * factor,
        )

    def plus(self, other: "Cost") -> "Cost":
        """Return both together."""
        return Cost(
            self.channels + other.channels,
            self.commands + other.commands,
            self.bytes + other.bytes,
            self.login_cpu + other.login_cpu,
            self.controller_cpu + other.controller_cpu,
        )


def cpu_seconds(pid: int) -> float:
    """Return the CPU seconds of a process and of the children it has waited for; 0 when gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / CLOCK_TICKS


def below(pid: int) -> Iterator[int]:
    """Yield the living descendants of a process."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return
    for child in map(int, children):
        yield child
        yield from below(child)


class Server:
    """The login node and the controller, looked at from outside."""

    def __init__(self, cluster: Cluster, proxy: LinkProxy) -> None:
        """Count what reaches `cluster` through `proxy`."""
        self.cluster, self.proxy = cluster, proxy
        self._sshd = int((cluster.root / "run" / "sshd.pid").read_text())
        self._controller = int((cluster.root / "run" / "slurmctld.pid").read_text())

    def login_cpu(self) -> float:
        """Return the CPU seconds of the connections that are open now."""
        return sum(map(cpu_seconds, below(self._sshd)))

    def controller_rate(self, seconds: float = 10.0) -> float:
        """Return the CPU seconds a second that slurmctld uses by itself."""
        before = cpu_seconds(self._controller)
        time.sleep(seconds)
        return (cpu_seconds(self._controller) - before) / seconds

    @contextmanager
    def counting(self, found: list[Cost], resting: float) -> Iterator[None]:
        """Append to `found` what the block cost; `resting` is slurmctld's own rate."""
        self.cluster.clear_calls()
        self.proxy.reset()
        login, controller = self.login_cpu(), cpu_seconds(self._controller)
        began = time.monotonic()
        yield
        time.sleep(0.5)  # sshd writes its log after the answer
        own = resting * (time.monotonic() - began)
        moved = self.proxy.stats()
        found.append(
            Cost(
                channels=self.cluster.sessions().commands,
                commands=len(self.cluster.calls()),
                bytes=moved.up + moved.down,
                login_cpu=self.login_cpu() - login,
                controller_cpu=max(0.0, cpu_seconds(self._controller) - controller - own),
            )
        )


def make_active(runs: Runs, cluster: Cluster, done: Run, count: int) -> list[str]:
    """Make `count` runs with held jobs and folders that look like running ones'."""
    line = "sbatch --parsable --hold -A project_462000001 -p small-g -t 1 --wrap true"
    ids = cluster.login(f"for i in $(seq {count}); do {line}; done", 300).stdout.split()
    names = [f"vit-{count}-{number:06x}" for number in range(count)]
    parent = quote(f"{done.root}/runs")
    cluster.login(
        f"cd {parent} && for n in {' '.join(names)}; do mkdir -p $n; "
        f"printf 'a line\\n' >$n/attempt-1.out; cp {quote(done.folder)}/binding.json $n/; done"
    )
    for name, job_id in zip(names, ids, strict=True):
        folder = f"{done.root}/runs/{name}"
        runs.history.begin(
            replace(
                done, id=name, state=State.QUEUED, job_id=job_id, folder=folder, exits=0, rc=None
            )
        )
    return ids


def ticks(runs: Runs, cluster: Cluster, done: Run) -> None:
    """Look at the site TICKS times; before each look every run wrote a line of metrics."""
    grow = f"cd {quote(done.root)}/runs && for d in vit-*; do echo {shlex.quote(METRICS.strip())}"
    for _ in range(TICKS):
        refreshed = runs.refresh("minilumi")
        assert refreshed.requests == 1 and not refreshed.warnings, refreshed
        # As root from outside: not counted, and not by the connection that is measured.
        cluster.admin("sh", "-c", f"{grow} >>$d/metrics.jsonl; done")


def report(rows: list[tuple[str, Cost]]) -> str:
    """Return the table of docs/footprint.md."""
    lines = [
        "| an hour with | requests | Slurm commands | MB on the link "
        "| CPU s on the login node | CPU s of slurmctld |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name, cost in rows:
        lines.append(
            f"| {name} | {cost.channels} | {cost.commands} | {cost.bytes / 1e6:.2f} "
            f"| {cost.login_cpu:.1f} | {cost.controller_cpu:.1f} |"
        )
    return "\n".join(lines)


def follow_for(runs: Runs, run_id: str, seconds: float) -> None:
    """Keep a log open, as the screen that shows it does."""
    deadline = time.monotonic() + seconds
    for _ in runs.show_log(run_id, attempt=1, stop=lambda: time.monotonic() > deadline):
        pass


def measure(cluster: Cluster, counts: tuple[int, ...] = (1, 20, 200)) -> list[tuple[str, Cost]]:
    """Return what an hour costs: a connection that rests, and with some numbers of runs."""
    an_hour = 3600.0 / Sites([BUILT_IN]).load("lumi").poll_seconds / TICKS
    rows: list[tuple[str, Cost]] = []
    with cluster.proxy() as proxy, pytest.MonkeyPatch.context() as patch, places() as folder:
        home = Home(folder / "config", folder / "data")
        (home.config / "sites").mkdir(parents=True)
        patch.setenv("HOME", str(folder))
        home.add_cluster(cluster.behind(proxy))
        runs = Runs(home.settings)
        server = Server(cluster, proxy)
        done = finish(runs, runs.send(runs.preview(hello_job(), hello_project(folder / "p"))))
        resting = server.controller_rate()
        found: list[Cost] = []
        with server.counting(found, resting):
            time.sleep(SECONDS)
        open_hour = found.pop().times(3600.0 / SECONDS)
        rows.append(("nothing active, the connection open", open_hour))
        for count in counts:
            ids = make_active(runs, cluster, done, count)
            try:
                runs.refresh("minilumi")  # the first look brings what is known afterwards
                with server.counting(found, resting):
                    ticks(runs, cluster, done)
                watched = found.pop().times(an_hour)
                rows.append((f"{count} active", watched.plus(open_hour)))
                with server.counting(found, resting):
                    follow_for(runs, f"vit-{count}-{0:06x}", SECONDS)
                # The stream's channel is opened once; its bytes include the keep-alive's.
                log = found.pop()
                log_hour = replace(log.times(3600.0 / SECONDS), channels=log.channels)
                rows.append((f"{count} active and a log open", watched.plus(log_hour)))
            finally:
                for at in range(0, len(ids), 50):
                    cluster.login(f"scancel {' '.join(ids[at : at + 50])}", 60)
                for run in runs.history.unfinished():
                    runs.history.update(run.id, state=State.CANCELLED)
                cluster.login(f"rm -rf {quote(done.root)}/runs/vit-*")
        runs.close()
    return rows


@contextmanager
def places() -> Iterator[Path]:
    """A folder for one person's configuration, history and project."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def main() -> int:
    """Print the table."""
    root, _ = start()
    counts = tuple(map(int, sys.argv[1:])) or (1, 20, 200)
    print(report(measure(read_cluster(root), counts)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
