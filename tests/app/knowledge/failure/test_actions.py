"""What to do next about a failure: a command that works, and a text for the helpdesk."""

from dataclasses import replace

import pytest

from lumitui.app.explain.actions import HelpfulResubmission, action_of, letter
from lumitui.app.history.run import Run
from lumitui.app.knowledge.failure.diagnose import diagnose
from lumitui.app.knowledge.failure.diagnosis import RunEnd
from lumitui.app.tui.panes.overview_pane import line_of
from lumitui.remote.site.states import State
from tests.support.jobs.failed_logs import why
from tests.support.jobs.made_runs import a_run
from tests.support.jobs.small_jobs import hello_job

ECC = """\
3: RuntimeError: CUDA error: uncorrectable ECC error encountered
srun: error: nid005002: tasks 2,4-5: Killed
srun: error: nid005001: tasks 0-1,3: Aborted
"""


def failed(**changes: object) -> Run:
    spec = hello_job(**changes)
    return a_run("a-1", state=State.FAILED, spec=spec, job_id="77", nodes_used="nid[005001-2]")


def test_a_broken_gpu_is_answered_by_a_run_without_its_node() -> None:
    found = why(ECC)
    assert (found[0].id, found[0].rank, found[0].node) == ("gpu-hardware", 3, "nid005001")
    assert found[0].number == 1
    action = action_of(found, failed())
    assert action is not None
    assert action.command("a-1") == "lumitui resubmit a-1 --exclude nid005001"
    assert action.settings == ('sbatch=["--exclude=nid005001"]',)


def test_torchrun_names_the_node_of_the_rank_that_failed_first() -> None:
    log = """\
[rank5]: torch.AcceleratorError: HIP error: unspecified launch failure
Root Cause (first observed failure):
[0]:
  time      : 2026-11-21_04:51:13
  host      : nid005007
  rank      : 5 (local_rank: 1)
  exitcode  : 1 (pid: 19737)
"""
    assert (why(log)[0].id, why(log)[0].node) == ("gpu-fault", "nid005007")


def test_a_gpu_that_ran_out_of_memory_is_answered_by_half_the_batch() -> None:
    found = why("2: torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB.\n")
    batch = {"args": ["--bs", "8"], "scale": {"batch": {"arg": "--bs"}}}
    expected = HelpfulResubmission("Resubmit with --bs 4", ("--batch", "half"), ("--bs=4",))
    assert action_of(found, failed(**batch)) == expected
    assert action_of(found, failed()) is None, "the job file does not say where the batch is"


@pytest.mark.parametrize(
    ("log", "state", "options"),
    [
        ("", State.TIMEOUT, ("--set", "time=00:20:00")),
        ("", State.PREEMPTED, ()),
        ("0: OSError: [Errno 98] Address already in use\n", State.FAILED, ()),
    ],
)
def test_what_was_not_the_programs_fault_is_sent_again(
    log: str, state: State, options: tuple[str, ...]
) -> None:
    action = action_of(diagnose(RunEnd(state, rc=1, log=log)), failed(time="00:10:00"))
    assert action is not None
    assert action.options == options


def test_a_fault_of_the_program_is_not_sent_again() -> None:
    assert action_of(why("Traceback (most recent call last):\nKeyError: 'x'\n"), failed()) is None
    assert action_of([], failed()) is None


def test_the_helpdesk_gets_job_node_and_lines_and_no_secret() -> None:
    key = "hf_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7cF0hLxR"
    log = f"{ECC}1: OSError: [Errno 28] No space left on device: token {key}\n"
    text = letter(why(log), failed())
    assert "job 77" in text and "Bad node:   nid005001" in text and "nid[005001-2]" in text
    assert "  RuntimeError: CUDA error: uncorrectable ECC error encountered" in text
    assert key not in text
    assert "No space left on device: token …" in text
    (told,) = why(f"ValueError: refused: {key}\n")
    assert told.line == "ValueError: refused: …"
    (unknown,) = why(f"step 1\nusing {key} here\n")
    assert "using … here" in unknown.telling and key not in str(unknown)


def test_the_helpdesk_gets_where_and_when_and_only_lines_of_the_log() -> None:
    line = "slurmstepd: error: *** JOB 77 ON n1 CANCELLED AT 2026-11-26T15:00:00 DUE TO TIME LIMIT"
    words = {"word": "TIMEOUT", "reason": "TimeLimit"}
    run = replace(failed(), **words, started=0.5, ended=3600.0)  # type: ignore[arg-type]
    run = replace(run, layout=replace(run.layout, nodes=1))
    for log, shown in ((line, line), ("", "no line that shows the cause")):
        found = diagnose(RunEnd(State.TIMEOUT, "TIMEOUT", "TimeLimit", log=log))
        text = letter(found, run)
        assert text.endswith(f"From the log:\n  {shown}")
        assert "Job:        77 (TIMEOUT TimeLimit)" in text
        assert ", 1 node\n" in text and f"Folder:     {run.folder}\n" in text
        assert f"Account:    {run.spec.account}\n" in text
        assert "started 1970-01-01 00:00:00 UTC, ended 1970-01-01 01:00:00 UTC" in text
        assert line_of(found, run) == ("" if log == "" else line)


def test_a_program_that_ran_out_of_memory_makes_no_node_bad() -> None:
    log = "srun: error: nid005001: task 3: Out Of Memory\n"
    found = why(log)
    assert found[0].id == "host-memory"
    text = letter(found, failed())
    assert "Bad node" not in text and "Ended on:   nid005001" in text


@pytest.mark.parametrize(
    ("line", "setting"),
    [
        ("Memory access fault by GPU node-4 on address 0x7f0", "AMD_SERIALIZE_KERNEL=3"),
        ("RuntimeError: CUDA error: an illegal memory access was", "CUDA_LAUNCH_BLOCKING=1"),
    ],
)
def test_a_fault_of_a_kernel_is_answered_by_a_run_that_names_its_line(
    line: str, setting: str
) -> None:
    log = f"3: {line}\nsrun: error: nid005001: task 3: Aborted\n"
    action = action_of(why(log), failed())
    assert action is not None
    assert action.command("a-1") == f"lumitui resubmit a-1 --set env.{setting}"
