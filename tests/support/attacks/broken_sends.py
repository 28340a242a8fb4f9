"""Where sends are broken: a laptop, its link, the accidents of the login hosts, and the oracle.

The oracle asks the cluster's administrator for every job of a run's name, and the run's folder
for what its jobs did: what lumitui says of itself is what is judged, never the judge.
"""

import os
import shutil
import signal
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from lumitui.app.history.run import Run
from lumitui.app.runs import Runs
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site.errors import InputError
from tests.support.attacks.sending_client import Client, counted_project
from tests.support.jobs.small_jobs import wait_until
from tests.support.places import CLUSTER
from tests.support.program.home import Home
from tests.support.servers.cluster import Cluster
from tests.support.servers.link_proxy import LinkProxy

SITE, SMALL_SITE = "minilumi", "smalldisk"
ALIVE = ("PENDING", "CONFIGURING", "RUNNING")
UNENDED = "pending,running,completing"


Kind = Literal["doubles", "lost", "wrong ids", "tracebacks", "strangers"]
"""What must never be: two jobs, a run that nobody can settle or that trains though it was given up,
an id that is not the run's job's, a traceback, a job of somebody else that was ended."""


class Violated(AssertionError):
    """A run that is not what it must be after the recovery."""

    def __init__(self, words: str, kind: Kind = "lost") -> None:
        """Keep what was seen, and what it is."""
        super().__init__(words)
        self.kind: Kind = kind


@contextmanager
def accidents(cluster: Cluster) -> Iterator[None]:
    """Make sbatch of the login hosts meet what `Laptop.accident` puts down."""
    folder = cluster.root / "accidents"
    folder.mkdir(exist_ok=True)
    folder.chmod(0o777)
    (folder / "small").write_text(cluster.small)
    options = f"-A {cluster.account} -p small-g -n 1 -c 1 --mem=10M -t 300 -J bystander"
    other = cluster.login(f"sbatch --parsable {options} --wrap 'exec sleep 18000'").stdout.strip()
    (folder / "bystander").write_text(other)
    shutil.copy(CLUSTER / "accident.sh", folder / "sbatch")
    try:
        yield
        if cluster.admin("squeue", "-h", "-j", other, "-o", "%T").stdout.strip() not in ALIVE:
            raise Violated(f"the job {other}, which is no run's, was ended", "strangers")
    finally:
        cluster.admin("scancel", other)
        shutil.rmtree(folder)
        for path in Path(cluster.small).glob("fill-*"):
            empty(path)


def empty(path: Path) -> None:
    """Give back what an accident took of the small disk."""
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)


_stopping = threading.Lock()
_stops = 0


@contextmanager
def slurmctld_stopped(cluster: Cluster) -> Iterator[None]:
    """Stop slurmctld as SIGSTOP does; it goes on when the last of all who stopped it is done."""
    process = int((cluster.root / "run" / "slurmctld.pid").read_text())

    def count(change: int) -> None:
        global _stops
        with _stopping:
            _stops += change
            os.kill(process, signal.SIGSTOP if _stops else signal.SIGCONT)

    count(1)
    try:
        yield
    finally:
        count(-1)


class Laptop:
    """One person's laptop: a history, a link to the cluster through a proxy, and ways round it."""

    def __init__(self, folder: Path, cluster: Cluster, proxy: LinkProxy) -> None:
        """Keep everything in `folder`; both login hosts are also reached without the proxy."""
        self.cluster, self.proxy = cluster, proxy
        self.work = counted_project(folder / "work")
        self._data = folder / "data"
        self.locks = self._data / "sending"
        self.home = self._home(folder / "through", cluster.behind(proxy))
        """What a client sees: the cluster behind the proxy."""
        self.hosts = tuple(
            Runs(self._home(folder / name, place).settings)
            for name, place in (("first", cluster), ("other", cluster.elsewhere()))
        )
        self.history = self.hosts[0].history

    def _home(self, config: Path, cluster: Cluster) -> Home:
        home = Home(config, self._data)
        folder = config / "sites"
        folder.mkdir(parents=True)
        home.add_cluster(cluster, SITE)
        text = (folder / f"{SITE}.yaml").read_text().replace(f"name: {SITE}", "name: smalldisk", 1)
        root = f"\nwork_root: {self.cluster.small}/{{user}}\n"
        (folder / f"{SMALL_SITE}.yaml").write_text(text + root)
        return home

    def close(self) -> None:
        """End the connections."""
        for runs in self.hosts:
            runs.close()

    def client(self, site: str = SITE, ahead: float = 0.0) -> Client:
        """Start a client that sends the counted job; its clock is `ahead` seconds ahead."""
        return Client(self.home.settings, self.work, site, ahead)

    def being_sent(self) -> str:
        """Return the id of the run that a client is sending, from its lock."""
        known = {run.id for run in self.history.page(100) if run.job_id or run.state.is_final}
        paths = sorted(self.locks.glob("*.sending"), key=lambda path: path.stat().st_mtime)
        return [path.stem for path in paths if path.stem not in known][-1]

    def accident(self, run_id: str, kind: str) -> Path:
        """Put down what is to happen to the sbatch of a run; return the note of it."""
        note = self.cluster.root / "accidents" / f"{run_id}.sbatch"
        note.write_text(kind)
        return note

    def find(self, run_id: str) -> Run | None:
        """Return the run, or None when its history was never begun."""
        try:
            return self.history.get(run_id)
        except InputError:
            return None


@dataclass(frozen=True)
class Seen:
    """A run after its send was broken and before it is judged."""

    laptop: Laptop
    run_id: str
    first: str
    """The state that history told as soon as the client was gone."""
    seconds: float = 0.0
    """Until it had a job's id or was certainly none."""


@dataclass(frozen=True)
class Outcome:
    """What a broken send came to; the words are the rows of the table."""

    word: str
    run_id: str
    late: int = 0
    """Jobs that came after they had been given up, and ended at the claim without training."""


def look(laptop: Laptop, run_id: str) -> Seen:
    """Return what history tells as soon as the client is gone."""
    run = laptop.find(run_id)
    if run is None:
        return Seen(laptop, run_id, "")
    if run.state in (State.QUEUED, State.RUNNING, State.FINISHING) and run.job_id is None:
        raise Violated(f"{run_id} is {run.state} without a job")
    return Seen(laptop, run_id, run.state.value)


def settle(seen: Seen, hosts: Sequence[Runs], limit: float = 90.0) -> Seen:
    """Refresh by all `hosts` at once until the run has a job's id or is certainly none."""
    began = time.monotonic()

    def known() -> bool:
        run = seen.laptop.find(seen.run_id)
        return run is None or run.job_id is not None or run.state.is_final

    def go_on(runs: Runs) -> None:
        while not known() and time.monotonic() - began < limit:
            runs.refresh()
            time.sleep(0.05)

    if len(hosts) == 1:
        go_on(hosts[0])
    else:
        with ThreadPoolExecutor() as pool:
            list(pool.map(go_on, hosts))
    if not known():
        raise Violated(
            f"{seen.run_id} is not settled after {limit} s: {seen.laptop.find(seen.run_id)}"
        )
    return replace(seen, seconds=time.monotonic() - began)


def jobs_named(cluster: Cluster, names: Iterable[str], states: str = "all") -> dict[str, set[str]]:
    """Return the ids of all jobs that ever had one of `names`, as the administrator sees them."""
    found: dict[str, set[str]] = {name: set() for name in names}
    joined = ",".join(found)
    queue = cluster.admin("squeue", "-h", "-t", states, "--name", joined, "-o", "%A %j")
    answers = [queue]
    if states == "all":
        fields = ("-S", "now-3hours", "-o", "JobIDRaw,JobName%64")
        answers.append(cluster.admin("sacct", "-nXaD", "--name", joined, *fields))
    for answer in answers:
        assert answer.returncode == 0, answer.stderr
        for line in answer.stdout.splitlines():
            job_id, name = line.split()
            found[name].add(job_id)
    return found


def judge(seen: Sequence[Seen], runs: Runs, limit: float = 120.0) -> list[Outcome]:
    """Wait until all has ended, `limit` seconds at most, and say of each run what it came to.

    Raises:
        Violated: a run is something that it must never be.
    """
    cluster = seen[0].laptop.cluster
    names = [item.run_id for item in seen]

    def over() -> bool:
        runs.refresh()
        if runs.history.unfinished() or any(map(_submitting, seen)):
            return False
        if any(jobs_named(cluster, names, UNENDED).values()):
            return False
        # Accounting knows a job by its name some 5 s later, and the queue forgets it.
        jobs.update(jobs_named(cluster, names))
        known = (seen[0].laptop.find(name) for name in names)
        return all(run is None or run.job_id in {None, *jobs[run.id]} for run in known)

    jobs: dict[str, set[str]] = {}
    wait_until(over, limit, f"the end of {' '.join(names)}")
    outcomes = [_judge(item, jobs[item.run_id]) for item in seen]
    left = [path.name for path in seen[0].laptop.locks.iterdir()]
    if left:
        raise Violated(f"locks are left: {' '.join(left)}")
    return outcomes


def _judge(seen: Seen, jobs: set[str]) -> Outcome:
    run = seen.laptop.find(seen.run_id)
    if run is None:
        _must(not jobs, seen, f"no history, but the jobs {jobs}")
        return Outcome("never begun, no job", seen.run_id)
    folder = Path(run.folder)
    trained = _lines(folder / "trained")
    what = f"{run.state} ({run.reason}), job {run.job_id}; jobs {jobs}, trained by {trained}"
    _must(len(jobs) <= 1 and len(trained) <= 1, seen, what, "doubles")
    if run.state in (State.NOT_SENT, State.REFUSED):
        _must(run.job_id is None and not trained, seen, what)
        word = "no job, and none can start"
        if jobs:
            word = "no job trained: a late one ended at its claim"
            _must(os.readlink(folder / "attempt-1.claim") == "void", seen, what)
        return Outcome(word, seen.run_id, len(jobs))
    _must(jobs == {run.job_id}, seen, what, "wrong ids")
    if run.state is State.DONE:
        _must(trained == [run.job_id], seen, what)
        return Outcome("one job with its id", seen.run_id)
    # The job could not do its work on the full disk, and says so.
    _must(run.state is State.FAILED and run.site == SMALL_SITE and not trained, seen, what)
    return Outcome("one job with its id, failed for want of disk", seen.run_id)


def _must(right: bool, seen: Seen, what: str, kind: Kind = "lost") -> None:
    if not right:
        raise Violated(f"{seen.run_id}: {what}", kind)


def _lines(path: Path) -> list[str]:
    return path.read_text().split() if path.exists() else []


def _submitting(seen: Seen) -> bool:
    """Whether the shell of its submit step lives on, or its sbatch is still to come."""
    run = seen.laptop.find(seen.run_id)
    words = _lines(Path(run.folder, "attempt-1.submit", "shell")) if run else []
    note = seen.laptop.cluster.root / "accidents" / f"{seen.run_id}.sbatch"
    if note.exists() and note.read_text().split()[0] in ("frozen", "late"):
        return True
    if not words:
        return False
    # The login hosts are this machine; another process may have the number by now.
    arguments = Path(f"/proc/{words[0]}/cmdline")
    try:
        return b":lumitui-" in arguments.read_bytes()
    except OSError:
        return False
