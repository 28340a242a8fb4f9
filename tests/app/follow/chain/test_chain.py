"""`chain:` on this machine: attempts that continue one another, and what ends them.

test_chain_cluster.py has the same with Slurm.
"""

import json
import time
from pathlib import Path

from lumitui.app.explain.run_facts import facts
from lumitui.app.history.run import Run
from lumitui.app.runs import Runs
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.chained_runs import chained, steps_of
from tests.support.jobs.small_jobs import finish, wait_until

HERE = {"site": "laptop", "account": "none", "partition": "local", "container": {}}


def ends(run: Run) -> list[str]:
    return [record.end for record in run.attempts]


def test_a_training_goes_on_over_several_time_limits_as_one_run(runs: Runs, tmp_path: Path) -> None:
    """And all that ends a chain. No poll is needed for it to go on."""
    plans = {
        "85 lost 0": (4, State.DONE, 0, ["requeue", "requeue", "done"]),
        "85 85 85": (2, State.FAILED, 85, ["requeue", "used-up"]),
        "85 7 0": (4, State.FAILED, 7, ["requeue", "failed"]),
        "85 stay 0": (4, State.FAILED, 85, ["requeue", "no-progress"]),
    }
    sent = {
        plan: chained(runs, tmp_path / "project", plan, chain=chain, **HERE)
        for plan, (chain, *_) in plans.items()
    }
    first = sent["85 lost 0"]
    wait_until(lambda: '"done"' in _text(first, "attempts.jsonl"), 30)
    for plan, (_, state, rc, how) in plans.items():
        run = finish(runs, sent[plan], 30)
        assert (run.state, run.rc, run.attempt, ends(run)) == (state, rc, len(how), how), plan
        assert [why.id for why in runs.why(run.id)][:1] == {
            "used-up": ["chain-used-up"], "no-progress": ["chain-no-progress"], "done": [],
        }.get(how[-1], ["unknown"])  # fmt: skip
    run = runs.history.get(first.id)
    assert steps_of(_text(run, "metrics.jsonl")) == [(n, 1 + (n - 1) // 3) for n in range(1, 10)]
    assert [(item.step, item.job_id) for item in run.attempts] == [
        (step, run.job_id) for step in (3, 6, 9)
    ]
    assert len(runs.history.page()) == len(plans)
    assert ("job", f"{run.job_id}, attempt 3 of at most 4") in facts(run, time.time())


def test_a_cancel_ends_the_whole_chain(runs: Runs, tmp_path: Path) -> None:
    sent = chained(runs, tmp_path / "project", "85 wait 0", **HERE)
    wait_until(lambda: "trained to step 6" in _text(sent, "attempt-2.out"), 30)
    runs.cancel(sent.id)
    run = finish(runs, sent, 30)
    assert (run.state, run.attempt, ends(run)) == (State.CANCELLED, 2, ["requeue", ""])
    assert len(_text(run, "attempts.jsonl").splitlines()) == 3


def _text(run: Run, name: str) -> str:
    path = Path(run.folder) / name
    return path.read_text() if path.exists() else ""


def test_the_script_says_in_the_log_why_it_ended(runs: Runs, tmp_path: Path) -> None:
    run = finish(runs, chained(runs, tmp_path / "project", "stay 0", **HERE), 30)
    assert json.loads(_text(run, "attempts.jsonl").splitlines()[-1])["next"] == "no-progress"
    assert "no step was trained after step 0; another time limit would change nothing" in _text(
        run, "attempt-1.out"
    )
