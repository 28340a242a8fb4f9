"""Every fault at every step of a send, and after the recovery exactly one job, or certainly none.

What is slow is one fault at each step; the rest is left to `-m slow` and to `make chaos`.
"""

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from lumitui.app.launch.send import settle as settling
from lumitui.app.launch.send.submit import SEND_STEPS
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.attacks.broken_sends import (
    SITE,
    Laptop,
    accidents,
    judge,
    look,
    settle,
    slurmctld_stopped,
)
from tests.support.attacks.faults import (
    FAULTS,
    Case,
    Uses,
    broken,
    matrix,
    watch_steps,
    why_impossible,
)
from tests.support.attacks.sending_client import PATIENCE
from tests.support.jobs.small_jobs import wait_until
from tests.support.places import CLUSTER
from tests.support.program.command_line import lt
from tests.support.servers.cluster import Cluster

GRACE = 3.0


@pytest.fixture(scope="module")
def laptop(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Laptop]:
    """A laptop whose sends are broken; one for all cases, as a person has one."""
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        # Nothing in a send waits for it but those that came to nothing: not two minutes each.
        patch.setattr(settling, "GRACE_SECONDS", GRACE)
        stack.enter_context(accidents(cluster))
        proxy = stack.enter_context(cluster.proxy())
        made = Laptop(tmp_path_factory.mktemp("laptop"), cluster, proxy)
        stack.callback(made.close)
        yield made


@pytest.fixture(scope="module")
def uses(laptop: Laptop) -> Mapping[str, Uses]:
    """What each step of a send does when nothing is broken."""
    return watch_steps(laptop)


def lean(case: Case) -> bool:
    """Whether a case is in every run: each fault once, and each step once."""
    return case.step == "submit" or case.fault.name in ("client killed before", "link cut")


def marks(case: Case) -> list[pytest.MarkDecorator]:
    """Return when a case is run: where Slurm's part counts, on either release."""
    lost = ("link cut", "sbatch killed after acceptance", "slurmctld stopped and continued")
    both = case.step == "submit" and case.fault.name in lost
    return [pytest.mark.both_slurms] * both + [pytest.mark.slow] * (not lean(case))


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=str(case), marks=marks(case)) for case in matrix()]
)
def test_a_broken_send_is_one_job_or_certainly_none(
    laptop: Laptop, uses: Mapping[str, Uses], case: Case
) -> None:
    if why := why_impossible(case, uses):
        pytest.skip(why)
    judge([broken(case, laptop, uses)], laptop.hosts[0])


def test_the_matrix_is_made_of_the_steps_of_a_send(
    laptop: Laptop, uses: Mapping[str, Uses]
) -> None:
    # A send tells exactly the steps of the list, in its order ...
    assert tuple(uses) == SEND_STEPS
    # ... and whatever is in the list meets every fault.
    assert [case.step for case in matrix()[:: len(FAULTS)]] == list(SEND_STEPS)
    added = matrix((*SEND_STEPS, "notify"))
    assert {case.fault.name for case in added if case.step == "notify"} == {
        fault.name for fault in FAULTS
    }
    # What is impossible follows from what a step does, and each fault is possible somewhere.
    possible = [case for case in matrix() if not why_impossible(case, uses)]
    assert {case.fault.name for case in possible} == {fault.name for fault in FAULTS}
    assert {case.step for case in possible if lean(case)} == set(SEND_STEPS)
    assert {case.fault.name for case in possible if lean(case)} == {fault.name for fault in FAULTS}
    impossible = {str(case) for case in matrix()} - {str(case) for case in possible}
    assert "begin: link cut after N bytes" in impossible
    assert "prepare: sbatch killed after acceptance" in impossible


def test_the_oracle_finds_what_is_wrong(laptop: Laptop, uses: Mapping[str, Uses]) -> None:
    with laptop.client() as client:
        run_id = laptop.being_sent()
        client.finish()
    seen = look(laptop, run_id)
    judge([seen], laptop.hosts[0])
    run = laptop.history.get(run_id)
    trained = Path(run.folder) / "trained"
    for wrong in (f"{run.job_id}\n{run.job_id}\n", "1\n", ""):  # twice, by another, never
        trained.write_text(wrong)
        with pytest.raises(AssertionError, match=run_id):
            judge([seen], laptop.hosts[0], limit=1.0)
    trained.write_text(f"{run.job_id}\n")
    judge([seen], laptop.hosts[0])
    for state, job_id in ((State.DONE, "1"), (State.NOT_SENT, None)):
        laptop.history.update(run_id, state=state, job_id=job_id)
        with pytest.raises(AssertionError, match=run_id):
            judge([seen], laptop.hosts[0], limit=1.0)
    laptop.history.update(run_id, state=State.DONE, job_id=run.job_id)
    lock = laptop.locks / "left.sending"
    with lock.open("w") as held:
        # A lock of a living process, which no sweep takes.
        subprocess.run(["flock", "--exclusive", str(held.fileno())], pass_fds=[held.fileno()])
        with pytest.raises(AssertionError, match="locks are left"):
            judge([seen], laptop.hosts[0])
    lock.unlink(missing_ok=True)


JOB = f"""\
name: counted
site: {SITE}
account: project_462000001
partition: small-g
gpus_per_node: 1
cpus_per_task: 1
memory: 500M
time: "00:05:00"
launcher: plain
strategy: single
script: program
proof: "off"
container: {{none: true}}
"""


def test_unknown_is_shown_and_settled_later(laptop: Laptop) -> None:
    job = laptop.work / "job.yaml"
    job.write_text(JOB)
    note = laptop.accident("any", "session-killed-before")
    try:
        sent = lt(laptop.home, "submit", str(job), "--yes")
    finally:
        note.unlink()
        job.unlink()
    assert sent.returncode == 6, sent.stderr
    assert "still unknown" in sent.stderr and ".." not in sent.stderr
    # Another process, with the true grace of two minutes.
    status = lt(laptop.home, "status")
    assert status.returncode == 0, status.stderr
    assert "unknown" in status.stdout
    # Not the newest run: sends with a wrong clock have made runs of tomorrow.
    named = re.search(r"counted-[0-9a-f]{6}", sent.stderr)
    assert named
    run = laptop.history.get(named[0])
    assert run.state is State.UNKNOWN
    seen = settle(look(laptop, run.id), laptop.hosts)
    assert [outcome.word for outcome in judge([seen], laptop.hosts[0])] == [
        "no job, and none can start"
    ]
    assert "not sent" in lt(laptop.home, "show", run.id).stdout


@pytest.mark.slow
@pytest.mark.parametrize("killed", [False, True], ids=["client stays", "client killed"])
def test_slurmctld_is_stopped_until_sbatch_gives_up(laptop: Laptop, killed: bool) -> None:
    with laptop.client() as client:
        run_id = laptop.being_sent()
        client.advance("submit")
        folder = Path(laptop.history.get(run_id).folder)
        with slurmctld_stopped(laptop.cluster):
            client.release()
            given_up = folder / "attempt-1.submit" / "rc"
            if killed:
                wait_until(given_up.with_name("err").exists, 30, "sbatch")
                client.kill()
            wait_until(given_up.exists, PATIENCE, "sbatch gives up")
        if not killed:
            client.await_step()
            client.finish()
    judge([settle(look(laptop, run_id), laptop.hosts)], laptop.hosts[0])


@pytest.fixture
def forgetful(cluster: Cluster) -> Iterator[None]:
    """The cluster without comments in accounting, whose queue forgets a job at once."""
    up = [CLUSTER / "up"]
    other = {**os.environ, "STORE_COMMENT": "0", "MIN_JOB_AGE": "2"}
    subprocess.run(up, env=other, check=True, capture_output=True, timeout=120)
    try:
        yield
    finally:
        subprocess.run(up, check=True, capture_output=True, timeout=120)


@pytest.mark.slow
def test_every_fault_of_the_submit_without_comments_in_accounting(
    laptop: Laptop, uses: Mapping[str, Uses], forgetful: None
) -> None:
    cases = [case for case in matrix() if case.step == "submit" and not why_impossible(case, uses)]
    seen = [broken(case, laptop, uses) for case in cases]
    judge(seen, laptop.hosts[0])
    names = ",".join(item.run_id for item in seen)
    kept = laptop.cluster.admin(
        "sacct", "-nXaP", "-S", "now-1hour", "--name", names, "-o", "Comment"
    )
    assert kept.stdout.split() == []
    assert len(kept.stdout.splitlines()) >= len(cases) // 2


@pytest.mark.slow
def test_a_job_that_only_accounting_knows_is_found_by_its_name(
    laptop: Laptop, forgetful: None
) -> None:
    cluster = laptop.cluster
    cluster.admin("scontrol", "update", "partition=small-g", "state=down")  # it stays pending
    try:
        with laptop.client() as client:
            run_id = laptop.being_sent()
            client.advance("submit")
            laptop.accident(run_id, "killed")
            client.release()
            name = ("--name", run_id, "-o", "%A")
            wait_until(lambda: cluster.admin("squeue", "-h", *name).stdout != "", 30, "the job")
            client.kill()
        job_id = cluster.admin("squeue", "-h", *name).stdout.strip()
        cluster.admin("scancel", job_id)
        wait_until(
            lambda: cluster.admin("squeue", "-h", "-t", "all", *name).stdout == "", 60, "forgotten"
        )
    finally:
        cluster.admin("scontrol", "update", "partition=small-g", "state=up")
    began = time.monotonic()
    settle(look(laptop, run_id), laptop.hosts[:1])
    run = laptop.history.get(run_id)
    assert run.job_id == job_id, (run.state, run.reason, time.monotonic() - began)
    wait_until(lambda: bool(laptop.hosts[0].refresh()) and _is_final(laptop, run_id), 60, "its end")
    assert laptop.history.get(run_id).state is State.CANCELLED


def _is_final(laptop: Laptop, run_id: str) -> bool:
    return laptop.history.get(run_id).state.is_final


def test_sigkill_is_what_ends_a_client(laptop: Laptop) -> None:
    with laptop.client() as client:
        run_id = laptop.being_sent()
        client.kill()
        assert client.ended_by == signal.SIGKILL
    assert laptop.find(run_id) is None
    laptop.hosts[0].refresh()
