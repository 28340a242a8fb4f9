"""A bench runs jobs under one scheduler and polls them through the transport, as lumitui does.

Every job is a job.sh that `compose` made.
"""

import hashlib
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from lumitui.app.job.spec import JobSpec
from lumitui.app.launch.compose import compose
from lumitui.remote.laptop.scheduler import Process
from lumitui.remote.scheduler.scheduler_protocol import (
    Answer,
    Poll,
    Scheduler,
    State,
    Submission,
    Watch,
)
from lumitui.remote.scheduler.slurm import Slurm
from lumitui.remote.site.run_folder import SCRIPTS
from lumitui.remote.site.shell_text import quote
from lumitui.remote.site.sites import BUILT_IN, Sites
from lumitui.remote.ssh.config import Login
from lumitui.remote.ssh.connection import Ssh
from lumitui.remote.transport.local import Local
from lumitui.remote.transport.transport import Result, Transport
from tests.support.places import SITES
from tests.support.servers.cluster import Cluster

PROFILES = Sites([SITES, BUILT_IN])
LIMIT = 270.0


class Counting:
    """A transport that counts its requests, and can put a line of sh before each script."""

    def __init__(self, below: Transport) -> None:
        """Pass everything on to `below`."""
        self.below, self.requests, self.before = below, 0, ""

    def run(
        self, script: str, *, stdin: bytes | Iterable[bytes] = b"", timeout: float = 60.0
    ) -> Result:
        """See Transport.run."""
        self.requests += 1
        return self.below.run(f"{self.before}\n{script}", stdin=stdin, timeout=timeout)

    def stream(self, script: str, *, stop: Callable[[], bool]) -> Iterator[bytes]:
        """See Transport.stream."""
        return self.below.stream(script, stop=stop)

    def close(self) -> None:
        """See Transport.close."""
        self.below.close()


@dataclass
class Run:
    """One run on the site: its folder, its submission and what is watched of it."""

    bench: "Bench"
    submission: Submission
    watch: Watch

    def submit(self) -> Answer:
        """Submit, and watch the job."""
        answer = self.bench.scheduler.submit(self.submission)
        self.watch = replace(self.watch, job_id=answer.job_id or "")
        return answer

    def cancel(self) -> frozenset[str]:
        """Cancel the job; return the run where the queue does not have it."""
        return frozenset(self.bench.scheduler.cancel([self.watch]))

    def settle(self, *, deep: bool = False, void: bool = False, grace: float = 0.0) -> Answer:
        """Settle, as after a lost reply."""
        return self.bench.scheduler.settle(self.submission, deep=deep, void=void, grace=grace)

    def until(self, *states: State, limit: float = LIMIT) -> Poll:
        """Poll until the job is in one of `states`."""
        deadline = time.monotonic() + limit
        while True:
            poll = self.bench.scheduler.poll([self.watch])
            job = poll.jobs.get(self.watch.run)
            if job and job.state in states:
                return poll
            assert time.monotonic() < deadline, f"{states} never came: {poll}\n{self.log()}"
            assert not (job and job.state.is_final), f"{poll}\n{self.log()}"
            time.sleep(0.2)

    def here(self, script: str, stdin: bytes = b"") -> str:
        """Run `script` in the folder and return its output."""
        return self.bench.here(
            f"cd {quote(self.submission.folder)} || exit 1\n{script}", stdin=stdin
        )

    def log(self) -> str:
        """What the job wrote."""
        return self.here("cat attempt-1.out 2>/dev/null || :")

    def until_log(self, text: str) -> None:
        """Wait until the job wrote `text`."""
        deadline = time.monotonic() + LIMIT
        while text not in self.log():
            assert time.monotonic() < deadline, self.log()
            time.sleep(0.2)


class Bench:
    """One scheduler with a place for runs."""

    def __init__(self, kind: str, transport: Counting, scheduler: Scheduler, root: str) -> None:
        """Runs lie in folders below `root`."""
        self.kind, self.transport, self.scheduler, self.root = kind, transport, scheduler, root

    def run(self, program: str, *, folder: str = "", probe: str = "", **job: object) -> Run:
        """Make a run whose ranks are the bash text `program`; with another `probe` than ours."""
        site = PROFILES.load("laptop" if self.kind == "process" else "minilumi")
        spec = JobSpec.model_validate(
            {
                "name": "contract",
                "site": site.name,
                "account": "project_462000001",
                "partition": "local" if self.kind == "process" else "small-g",
                "gpus_per_node": 1,
                "cpus_per_task": 1,
                "memory": "500M",
                "time": "00:05:00",
                "launcher": "srun",
                "script": "program",
                "proof": "off",
                "container": {"none": True},
                **job,
            }
        )
        launch = compose(spec, site)
        name = f"run-{secrets.token_hex(6)}"
        path = f"{self.root}/{folder or name}"
        files = {item.name: item.content for item in launch.files} | {"job.sh": launch.script}
        files["probe.sh"] = probe or files["probe.sh"]
        composed = "".join(files[script] for script in SCRIPTS)
        files["code/program"] = f"#!/bin/bash\n{program}\n"
        self.transport.below.run(f"mkdir -p {quote(path)}/code")
        submission = Submission(
            path, name, secrets.token_hex(8), hashlib.sha256(composed.encode()).hexdigest()
        )
        run = Run(self, submission, Watch(name, path, "", submission.token))
        for file, content in files.items():
            run.here(f"cat >{file}; chmod 700 {file}", content.encode())
        return run

    def here(self, script: str, stdin: bytes = b"") -> str:
        """Run `script` on the site and return its output."""
        found = self.transport.below.run(script, stdin=stdin)
        assert found.code == 0, (script, found)
        return found.text

    def jobs(self, run: Run) -> int:
        """How many jobs were ever created for `run`."""
        if self.kind == "process":
            links = '"${XDG_STATE_HOME:?}"/lumitui/jobs/*/run'
            return int(run.here(f'ls -l {links} | grep -cF -- "-> $PWD" || :'))
        return len(run.here(f"squeue --me -h -t all -n {run.submission.name} -o %A").split())


@contextmanager
def process_bench(state: Path, runs: Path) -> Iterator[Bench]:
    """Run jobs as plain processes on this machine; what is known of them lies in `state`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(state))
        patch.setenv("LUMITUI_KILL_WAIT", "1")
        transport = Counting(Local())
        yield Bench("process", transport, Process(transport), str(runs))


@contextmanager
def slurm_bench(cluster: Cluster) -> Iterator[Bench]:
    """Run jobs under Slurm over one SSH connection; cancels what is left of them at the end."""
    transport = Counting(Ssh(Login("minilumi", config=cluster.ssh_config)))
    root = f"{cluster.scratch}/{cluster.user}/contract-{secrets.token_hex(4)}"
    yield Bench("slurm", transport, Slurm(transport), root)
    transport.below.run(f"cat {root}/*/attempt-1.receipt | xargs scancel; rm -rf {root}")
    transport.close()
