"""Every way a job ends, provoked on the mini cluster: state, reason, exit and times.

The jobs run side by side; what disturbs the cluster itself is in test_true_ends_disturbed.py.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from lumitui.app.cli.views import show
from lumitui.app.follow.results.summary import summarize
from lumitui.app.history.run import Run
from lumitui.app.runs import Runs
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.endings import (
    in_shell,
    limits_memory,
    occupy,
    opened,
    queue,
    send,
    start_again,
    text_of,
    until_it_says,
)
from tests.support.jobs.small_jobs import wait_until
from tests.support.servers.cluster import Cluster

pytestmark = [pytest.mark.cluster, pytest.mark.both_slurms]

ASIDE = {"sbatch": ["--exclude=nid00500[6-8]"]}
SPARE, SCRAP = "nid005007", "nid005008"


@dataclass(frozen=True)
class End:
    """What must be known about a run afterwards."""

    state: State
    word: str
    rc: int | None = None
    rank: int | None = None
    reason: str = ""
    attempts: int = 1
    log: str = ""
    """In the log of the last attempt."""
    why: str | None = None
    """The id of the first diagnosis."""


ENDS = {
    "well": End(State.DONE, "COMPLETED", 0, log="rank 1 of well"),
    "rank-3": End(
        State.FAILED, "FAILED", 7, 3, "NonZeroExitCode", log="task 3: Exited with exit code 7",
        why="unknown",
    ),
    "cancelled-here": End(
        State.CANCELLED, "CANCELLED", reason="by you", log="CANCELLED AT", why="cancelled"
    ),
    "cancelled-there": End(State.CANCELLED, "CANCELLED", log="CANCELLED AT", why="cancelled"),
    "cancelled-waiting": End(
        State.CANCELLED, "CANCELLED", reason="before it started", why="cancelled"
    ),
    "limit": End(
        State.TIMEOUT, "TIMEOUT", reason="TimeLimit", log="DUE TO TIME LIMIT", why="time-limit"
    ),
    "memory": End(
        State.OUT_OF_MEMORY, "FAILED", 137, 1, "srun: task 1 ran out of memory",
        log="task 1: Out Of Memory", why="host-memory",
    ),
    "memory-alone": End(
        State.OUT_OF_MEMORY, "OUT_OF_MEMORY", 137, reason="OutOfMemory", why="host-memory"
    ),
    "again-5": End(
        State.FAILED, "FAILED", 5, 0, "NonZeroExitCode", 2, log="attempt 2", why="unknown"
    ),
    "revived": End(State.FAILED, "FAILED", 3, 0, "NonZeroExitCode", 2, log="attempt 2"),
    "again-0": End(State.DONE, "COMPLETED", 0, attempts=2, log="attempt 2"),
    "preempted": End(
        State.PREEMPTED, "PREEMPTED", log="DUE TO PREEMPTION", why="preempted"
    ),
}  # fmt: skip


@dataclass
class Ended:
    """The runs after their ends, and every state they were seen in."""

    runs: Runs
    begun: float
    sent: dict[str, Run] = field(default_factory=dict)
    seen: dict[str, list[State]] = field(default_factory=dict)

    def poll(self) -> None:
        """Refresh, and note the states."""
        news = self.runs.refresh("minilumi")
        assert news.warnings == ()
        for name, run in self.sent.items():
            state = self.runs.history.get(run.id).state
            states = self.seen.setdefault(name, [])
            if not states or states[-1] is not state:
                states.append(state)

    def run(self, name: str) -> Run:
        """Return a run as it is known now."""
        if name not in self.sent:
            pytest.skip("the kernel has no memory groups for Slurm here (tests/cluster/README.md)")
        return self.runs.history.get(self.sent[name].id)


@pytest.fixture(scope="module")
def ended(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ended]:
    """All jobs of ENDS, ended."""
    folder = tmp_path_factory.mktemp("ends")
    with opened(cluster, folder) as runs:
        case = Ended(runs, time.time())
        others: list[str] = []
        try:
            _send_all(case, cluster, folder / "project")
            _end_all(case, cluster, others)
            wait_until(lambda: _over(case), 120, "all ended")
        finally:
            jobs = [run.job_id or "" for run in case.sent.values()]
            cluster.login(f"scancel {' '.join(jobs + others)}")
        yield case


def _send_all(case: Ended, cluster: Cluster, project: Path) -> None:
    special: dict[str, dict[str, object]] = {
        "rank-3": ASIDE | {"gpus_per_node": 4},
        "cancelled-waiting": {"sbatch": ["--begin=now+1hour"]},
        "memory-alone": ASIDE | {"launcher": "plain", "gpus_per_node": 1},
        "again-0": {"partition": "spare-g", "sbatch": [f"--nodelist={SPARE}"]},
        "preempted": {"partition": "scrap-g", "sbatch": [f"--nodelist={SCRAP}"]},
    }  # fmt: skip
    for name in ENDS:
        if name.startswith("memory") and not limits_memory(cluster):
            continue
        case.sent[name] = send(case.runs, project, name, **special.get(name, ASIDE))


def _end_all(case: Ended, cluster: Cluster, others: list[str]) -> None:
    sent, runs = case.sent, case.runs
    for name in ("again-0", "preempted", "limit", "cancelled-here", "cancelled-there"):
        until_it_says(runs, sent[name], f"rank 1 of {name}, attempt 1")
    others += [occupy(cluster, SPARE), occupy(cluster, SCRAP)]
    until_it_says(runs, sent["again-5"], "rank 1 of again-5, attempt 1")
    # Its first attempt ended by itself, unseen by lumitui, and the job is requeued by hand.
    wait_until(lambda: queue(cluster, sent["revived"]) == "FAILED", 60)
    assert in_shell(cluster, f"cat {sent['revived'].folder}/attempt-1.exit").startswith('{"rc": 9')
    in_shell(cluster, f"scontrol requeue {sent['again-5'].job_id},{sent['revived'].job_id}")
    cluster.admin("scontrol", "update", f"jobid={sent['limit'].job_id}", "EndTime=now+1second")
    assert runs.cancel(sent["cancelled-here"].id).job_id
    in_shell(
        cluster, f"scancel {sent['cancelled-there'].job_id} {sent['cancelled-waiting'].job_id}"
    )
    case.poll()
    assert not case.run("revived").state.is_final
    wait_until(lambda: queue(cluster, sent["preempted"]) == "PREEMPTED", 60)
    in_shell(cluster, f"scancel {' '.join(others)}")
    for name in ("again-5", "revived", "again-0"):
        start_again(cluster, sent[name])


def _over(case: Ended) -> bool:
    case.poll()
    return all(states[-1].is_final for states in case.seen.values())


@pytest.mark.parametrize("name", ENDS)
def test_state_reason_and_exit(ended: Ended, name: str) -> None:
    run, awaited = ended.run(name), ENDS[name]
    assert (run.state, run.word, run.rc, run.failed_rank, run.attempt) == (
        awaited.state, awaited.word, awaited.rc, awaited.rank, awaited.attempts
    ), text_of(ended.runs, run, awaited.attempts)  # fmt: skip
    assert run.reason == awaited.reason
    # No state before the end was taken for an end.
    assert [state for state in ended.seen[name] if state.is_final] == [awaited.state]
    if awaited.log:
        assert awaited.log in text_of(ended.runs, run, awaited.attempts)
    why = ended.runs.why(run.id)
    if awaited.state is State.DONE:
        assert why == []
    elif awaited.why is not None:
        assert why[0].id == awaited.why
    page = show.page_text(show.gather(ended.runs, run.id), time.time(), 100)
    same = awaited.word.replace("_", " ").casefold() == awaited.state
    line = next(line for line in page.splitlines() if line.startswith("state "))
    assert (
        line.removeprefix("state").strip() == f"{awaited.state}{f' ({awaited.word})' * (not same)}"
    )


@pytest.mark.parametrize("name", ENDS)
def test_times(ended: Ended, name: str) -> None:
    run = ended.run(name)
    assert run.submitted is not None
    assert run.ended is not None
    assert ended.begun - 2 <= run.submitted <= run.ended <= time.time() + 2
    if name == "cancelled-waiting":
        assert (run.started, run.nodes_used, run.elapsed(time.time())) == (None, "", 0)
        return
    assert run.started is not None
    assert run.submitted <= run.started <= run.ended
    assert run.nodes_used.startswith("nid")
    assert run.elapsed(time.time()) == run.ended - run.started


@pytest.mark.parametrize("name", ["again-5", "revived", "again-0"])
def test_both_attempts_are_kept(ended: Ended, name: str) -> None:
    run = ended.run(name)
    assert set(run.log_sizes) == {1, 2}
    for attempt in (1, 2):
        log = text_of(ended.runs, run, attempt)
        assert f"of {name}, attempt {attempt}" in log
        assert f"of {name}, attempt {3 - attempt}" not in log
    # Three steps, written twice: the later lines count.
    points = ended.runs.history.metrics.of(run.id)
    assert sum(point.event == "step" for point in points) == 6
    summary = summarize(points)
    assert (summary.steps, summary.last_loss, summary.seconds) == (3, 0.2, 2.0)


def test_the_queue_is_asked_no_more_afterwards(ended: Ended) -> None:
    assert ended.runs.history.unfinished() == []
    assert ended.runs.refresh("minilumi").requests == 0
