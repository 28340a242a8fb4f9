"""`chain:` with Slurm: one job, its attempts one after the other, whatever comes between.

The jobs run side by side. Nobody polls while they go on: the laptop may be off.
"""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from lumitui.app.cli.views import show
from lumitui.app.history.run import KILLED, Run
from lumitui.app.runs import Runs
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.chained_runs import chained, hurry, retrained, steps_of
from tests.support.jobs.endings import in_shell, opened, queue
from tests.support.jobs.small_jobs import finish, wait_until
from tests.support.servers.cluster import Cluster

pytestmark = pytest.mark.cluster


@dataclass(frozen=True)
class Chain:
    """How a run's attempts end, and what must be known of it then."""

    plan: str
    state: State
    rc: int | None
    ends: list[str]
    limits: int = 4
    packed: bool = False
    """Its code is unpacked on the node for each attempt, and it has a secret."""


CHAINS = {
    "well": Chain("85 lost 0", State.DONE, 0, ["requeue", "requeue", "done"]),
    "used-up": Chain("85 85 0", State.FAILED, 85, ["requeue", "used-up"], 2),
    # Requeued by the administrator: what was not saved is trained again.
    "requeued": Chain("85 wait 0", State.DONE, 0, ["requeue", KILLED, "done"]),
    # By the administrator and by the job in the same moment.
    "crossing": Chain("hold 0 0", State.DONE, 0, ["requeue", "done"]),
    "packed": Chain("85 0", State.DONE, 0, ["requeue", "done"], packed=True),
    # It says that it saved, and did not: nobody pays for a second time.
    "lied": Chain("lie 0", State.FAILED, 85, ["unsaved"]),
    "cancelled": Chain("85 0", State.CANCELLED, None, ["requeue"]),
}


@pytest.fixture(scope="module")
def chains(
    cluster: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Runs, dict[str, Run]]]:
    """All of CHAINS, ended."""
    folder = tmp_path_factory.mktemp("chains")
    with opened(cluster, folder) as runs, pytest.MonkeyPatch.context() as patch:
        patch.setenv("TOKEN", "known to both attempts")
        sent = {}
        for name, chain in CHAINS.items():
            changes: dict[str, object] = {"name": name, "chain": chain.limits}
            if chain.packed:
                changes |= {"secrets": ["TOKEN"]}
            sent[name] = chained(runs, folder / "project", chain.plan, **changes)
        jobs = " ".join(run.job_id or "" for run in sent.values())
        try:
            _go_on(cluster, sent)
            yield runs, {name: finish(runs, run, 30) for name, run in sent.items()}
        finally:
            cluster.login(f"scancel {jobs}")


def _go_on(cluster: Cluster, sent: dict[str, Run]) -> None:
    """Disturb those that are to be disturbed, and wait until no job is left."""
    undone = {"requeued", "crossing", "cancelled"}

    def says(name: str, attempt: int, words: str) -> bool:
        file = f"{sent[name].folder}/attempt-{attempt}.out"
        return words in cluster.login(f"cat {file}").stdout

    def waits_again(name: str) -> bool:
        return queue(cluster, sent[name]) == "PENDING" and says(name, 1, "is requeued")

    def over() -> bool:
        if "cancelled" in undone and waits_again("cancelled"):
            in_shell(cluster, f"scancel {sent['cancelled'].job_id}")
            undone.remove("cancelled")
        if "requeued" in undone and says("requeued", 2, "trained to step 6"):
            cluster.admin("scontrol", "requeue", sent["requeued"].job_id or "")
            undone.remove("requeued")
        if "crossing" in undone and says("crossing", 1, "trained to step 3"):
            in_shell(cluster, f": >{sent['crossing'].folder}/go-on-1")
            wait_until(lambda: says("crossing", 1, "is requeued"), 30)
            cluster.admin("scontrol", "requeue", sent["crossing"].job_id or "")
            undone.remove("crossing")
        hurry(cluster, [run for name, run in sent.items() if name != "cancelled"])
        going = ("PENDING", "RUNNING", "COMPLETING", "CONFIGURING")
        return not undone and not any(queue(cluster, run) in going for run in sent.values())

    wait_until(over, 120, "all ended")


@pytest.mark.parametrize("name", CHAINS)
def test_how_it_ended(chains: tuple[Runs, dict[str, Run]], name: str) -> None:
    runs, sent = chains
    run, chain = sent[name], CHAINS[name]
    assert (run.state, run.rc) == (chain.state, chain.rc)
    assert [record.end for record in run.attempts] == chain.ends
    assert {record.job_id for record in run.attempts} == {run.job_id}
    # One after the other, each on nodes that Slurm gave it.
    times = [moment for record in run.attempts for moment in (record.started, record.ended or 0)]
    assert times == sorted(times)
    assert all(record.nodes.startswith("nid") for record in run.attempts)
    most = run.price.per_hour * chain.limits * 300 / 3600
    assert run.price.amount == pytest.approx(most, abs=0.001)
    assert 0 <= run.billed(time.time()) < run.price.amount / chain.limits
    page = show.page_text(show.gather(runs, run.id), time.time(), 100)
    assert f"attempt 1 started as job {run.job_id} on nid" in page


def test_no_step_is_left_out_and_none_is_trained_twice(
    cluster: Cluster, chains: tuple[Runs, dict[str, Run]]
) -> None:
    """But for those after the last checkpoint of an attempt that was killed."""
    files = " ".join(f"{run.folder}/metrics.jsonl" for run in chains[1].values())
    said = in_shell(cluster, f"for f in {files}; do cat $f; echo; done")
    for run, text in zip(chains[1].values(), said.split("\n\n"), strict=True):
        steps = steps_of(text)
        killed = {record.number for record in run.attempts if record.end == KILLED}
        assert retrained(steps) <= {step for step, attempt in steps if attempt in killed}
        assert {step for step, _ in steps} == set(range(1, max(steps)[0] + 1))


def test_a_poll_at_any_time_sees_one_job_that_goes_on(
    cluster: Cluster, tmp_path: Path, chains: tuple[Runs, dict[str, Run]]
) -> None:
    """And a cancel by lumitui ends all that would follow."""
    runs, _ = chains
    run = chained(runs, tmp_path / "project", "85 wait 0", name="polled")
    seen: list[tuple[int, State]] = []

    def waits_again() -> bool:
        assert runs.refresh("minilumi").warnings == ()
        known = runs.history.get(run.id)
        seen.append((len(known.attempts), known.state))
        return known.state is State.QUEUED and len(known.attempts) == 1

    wait_until(waits_again, 60, "the job is in the queue again")
    assert not {state for _, state in seen if state.is_final}
    runs.cancel(run.id)
    run = finish(runs, run, 30)
    assert (run.state, [record.end for record in run.attempts]) == (State.CANCELLED, ["requeue"])
    notes = in_shell(cluster, f"cat {run.folder}/attempts.jsonl; ls {run.folder}/cancelled")
    assert [json.loads(line)["event"] for line in notes.splitlines()[:-1]] == ["began", "ended"]


def test_each_attempt_has_the_secrets_and_the_last_one_removes_them(
    cluster: Cluster, chains: tuple[Runs, dict[str, Run]]
) -> None:
    folder = chains[1]["packed"].folder
    told = in_shell(cluster, f"cat {folder}/attempt-[12].out; ls -A {folder}")
    assert told.count("with a secret") == 2
    assert ".secrets" not in told.split()
