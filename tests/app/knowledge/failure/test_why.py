"""What is said of a job that fails behind much that looks worse, and of a cancelled one."""

from pathlib import Path

from lumitui.app.cli.views.show import gather, page_text
from lumitui.app.explain.actions import action_of
from lumitui.app.knowledge.failure.diagnose import diagnose
from lumitui.app.knowledge.failure.diagnosis import RunEnd
from lumitui.app.runs import Runs
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site.states import BY_YOU
from tests.support.jobs.small_jobs import finish, hello_job

TRAIN = """\
import os, sys, time, traceback

rank = int(os.environ["RANK"])
said = [
    "flash-attn not used (ModuleNotFoundError: No module named 'flash_attn')",
    "CUDA out of memory. Trying batch size 16",
    "[W socket.cpp:436] [c10d] The server socket has failed to bind to [::]:29500 (errno: 98 - "
    "Address already in use).",
    "memory.events: low 0 high 0 max 0 oom 0 oom_kill 0",
    "train FATAL: validation loss diverged",
]
for line in said:
    print(line, flush=True)
try:
    raise ConnectionError("api.wandb.ai: connect timed out")
except ConnectionError:
    traceback.print_exc()
if rank == 2:
    {}["missing"]
time.sleep(60)
"""


def test_the_exception_of_the_rank_that_failed_comes_first(
    cluster_runs: Runs, tmp_path: Path
) -> None:
    runs = cluster_runs
    (tmp_path / "train.py").write_text(TRAIN)
    spec = hello_job(name="why", script="train.py", gpus_per_node=4)
    run = finish(runs, runs.send(runs.preview(spec, tmp_path)))
    assert (run.state, run.failed_rank) == (State.FAILED, 2)
    found = runs.why(run.id)
    assert [(item.id, item.rank, item.line) for item in found] == [
        ("exception", 2, "KeyError: 'missing'")
    ]
    text = page_text(gather(runs, run.id), 0.0, 100)
    assert "Rank 2 raised an exception at train.py:" in " ".join(text.split())
    assert "out of memory" not in text and "container" not in text.split("why")[-1].split("\n\n")[0]


BROKEN = """\
import os, time

if int(os.environ["RANK"]) == 1:
    raise RuntimeError("HIP error: uncorrectable ECC error encountered")
time.sleep(60)
"""


def test_a_run_whose_gpu_is_broken_is_sent_again_to_other_nodes(
    cluster_runs: Runs, tmp_path: Path
) -> None:
    runs = cluster_runs
    (tmp_path / "train.py").write_text(BROKEN)
    spec = hello_job(name="broken", script="train.py", gpus_per_node=2)
    run = finish(runs, runs.send(runs.preview(spec, tmp_path)))
    found = runs.why(run.id)
    assert (found[0].id, found[0].rank, found[0].node) == ("gpu-hardware", 1, run.nodes_used)
    action = action_of(found, run)
    assert action is not None
    assert action.command(run.id) == f"lumitui resubmit {run.id} --exclude {run.nodes_used}"
    again = runs.plan_resubmission(run.id, settings=action.settings)
    second = finish(runs, runs.resubmit(again))
    assert second.nodes_used and second.nodes_used != run.nodes_used


CANCELLED = "slurmstepd: error: *** JOB 77 ON nid1 CANCELLED AT 2026-11-01T10:00:00 ***\n"
AFTERMATH = f"""\
0: torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB
{CANCELLED}0: Traceback (most recent call last):
0:   File "train.py", line 5, in <module>
0: KeyboardInterrupt
srun: error: nid1: task 0: Terminated
"""


def test_no_cause_is_searched_for_what_its_owner_cancelled() -> None:
    found = diagnose(RunEnd(State.CANCELLED, "CANCELLED", BY_YOU, 143, log=AFTERMATH))
    assert [(one.id, one.sentence) for one in found] == [("cancelled", "You cancelled it.")]
    other = diagnose(RunEnd(State.CANCELLED, "CANCELLED", "by 0", 143, log=AFTERMATH))
    assert other[0].sentence == "The job was cancelled." and len(other) > 1


def test_a_step_that_waited_is_still_why_it_was_cancelled() -> None:
    log = "srun: Job step creation temporarily disabled, retrying\n" + CANCELLED
    found = diagnose(RunEnd(State.CANCELLED, "CANCELLED", BY_YOU, log=log))
    assert [one.id for one in found] == ["step-waited", "cancelled"]


def test_the_log_alone_says_that_it_was_cancelled() -> None:
    assert diagnose(RunEnd(State.FAILED, log=f"step 3\n{CANCELLED}"))[0].id == "cancelled"
    late = CANCELLED.replace(" ***\n", " DUE TO TIME LIMIT ***\n")
    assert diagnose(RunEnd(State.FAILED, log=late))[0].id == "time-limit"
