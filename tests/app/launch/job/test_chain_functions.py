"""chain.sh: what a job does after an attempt, with an scontrol that fails as a real one may."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from lumitui.app.history.run import merged
from tests.support.jobs.job_functions import made_folder, run_bash, sourced

SCONTROL = """#!/bin/bash
echo "$1" >>"$CALLS"
reply=$(sed -n "$(wc -l <"$CALLS")p" "$REPLIES")
case $reply in
  running*) echo "JobId=9 JobName=run-1 JobState=RUNNING Restarts=${reply#running } BatchFlag=1" ;;
  cancelled) echo "JobId=9 JobName=run-1 JobState=CANCELLED Reason=None Restarts=0 BatchFlag=1" ;;
  another*) echo "JobId=9 JobName=hers JobState=RUNNING Restarts=0 WorkDir=/home/her " ;;
  renamed) echo "JobId=9 JobName=batch JobState=RUNNING Restarts=0 WorkDir=$RUN_DIR " ;;
  ok) ;;
  term) kill -TERM "$PPID" "$JOB" ;;
  stop) : >"$RUN_DIR/cancelled"; echo "JobId=9 JobName=run-1 JobState=RUNNING Restarts=0 " ;;
  *) echo "$reply" >&2; exit 1 ;;
esac
"""
HEAD = f"""{sourced("chain")}export JOB=$$
sleep() {{ echo "slept $1"; }}
scancel() {{ echo "scancel $*"; }}
lumitui_begin
lumitui_chain "${{LIMITS:-3}}"
launch() {{
  command sleep 0.02
  local saves=checkpoints/${{SAVES:-own/model.pt}}
  if [[ -z ${{SAVES:-}} || -n ${{ELSEWHERE:-}} ]]; then echo '{{"step": 5}}' >>metrics.jsonl; fi
  if [[ -n ${{ELSEWHERE:-}} ]]; then saves=$ELSEWHERE; fi
  mkdir -p "${{saves%/*}}" && : >"$saves"
  return "${{RC:-85}}"
}}
lumitui_run launch
"""
AWAY = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"


@dataclass(frozen=True)
class Done:
    """An attempt that ended."""

    code: int
    out: str
    asked: list[str]
    """What scontrol was asked, in order."""
    notes: list[dict[str, object]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return made_folder(tmp_path, scontrol=SCONTROL)


def attempt(folder: Path, *replies: str, **environ: str) -> Done:
    """Run an attempt; scontrol gives the `replies` one after the other."""
    (folder / "replies").write_text("".join(f"{reply}\n" for reply in replies))
    environ = {
        "REPLIES": f"{folder}/replies", "SLURM_JOB_NAME": "run-1", "SLURM_JOB_NUM_NODES": "1",
        "SLURM_JOB_NODELIST": "nid1",
    } | environ  # fmt: skip
    done = run_bash(folder, HEAD, environ)
    lines = (folder / "attempts.jsonl").read_text().splitlines()
    logs = "".join(path.read_text() for path in folder.glob("attempt-*.out"))
    asked = (folder / "calls").read_text().split()
    notes = [json.loads(line) for line in lines if line.endswith("}")]
    return Done(done.returncode, done.stdout + done.stderr + logs, asked, notes)


def test_a_controller_that_is_away_is_asked_again(folder: Path) -> None:
    done = attempt(folder, AWAY, AWAY, "running 0", AWAY, "running 0", "ok")
    assert (done.code, done.asked) == (85, ["show"] * 3 + ["requeue", "show", "requeue"])
    assert [line["event"] for line in done.notes] == ["began", "ended"]


@pytest.mark.parametrize(
    "replies",
    [
        ["running 1"],  # it runs again elsewhere, and this node was away
        ["cancelled"],
        ["another's"],  # a controller that lost its state gave the id away
        ["running 0", "slurm_requeue error: Socket timed out", "running 1"],  # the reply was lost
        ["renamed", "ok"],  # by the site
        ["running 0", "term"],  # accepted: all processes of the attempt get SIGTERM
    ],
)
def test_it_is_put_back_once(folder: Path, replies: list[str]) -> None:
    done = attempt(folder, *replies)
    assert done.code == 85
    assert done.asked.count("requeue") == replies.count("running 0") + replies.count("renamed")
    assert done.notes[-1]["next"] == "requeue"


@pytest.mark.parametrize(
    ("saves", "following"),
    [
        ("own/model.pt", "requeue"),
        ("start-0001-step-00000004/manifest.json", "requeue"),
        # What no manifest completes, and what is made while a training resumes.
        ("start-0001-step-00000004/state.pt", "no-progress"),
        (".universal/part.pt", "no-progress"),
    ],
)
def test_without_metrics_a_whole_checkpoint_is_progress(
    folder: Path, saves: str, following: str
) -> None:
    done = attempt(folder, "running 0", "ok", SAVES=saves)
    assert done.notes[-1]["next"] == following
    assert ("nothing was saved in checkpoints/" in done.out) is (following != "requeue")


@pytest.mark.parametrize(
    ("saves", "following"),
    [
        ("watch/tensorboard/events", "unsaved"),
        ("code/__pycache__/train.pyc", "unsaved"),
        ("code/train.log", "unsaved"),
        ("checkpoints/.universal/part.pt", "unsaved"),
        ("checkpoints/start-0001-step-00000004/state.pt", "unsaved"),
        ("model.pt", "requeue"),
        ("code/out/model.pt", "requeue"),
        ("checkpoints/there/model.pt", "requeue"),  # `there` is a link
        ("../named-by-path/model.pt", "requeue"),
        ("../by-variable/model.pt", "requeue"),
        ("../named-in-code/model.pt", "requeue"),
        ("../not-named/model.pt", "unsaved"),
    ],
)
def test_steps_without_a_save_end_the_chain_at_once(
    folder: Path, saves: str, following: str
) -> None:
    """Wherever a script saves that its job or its code names: the folder is known."""
    run = folder / "run"
    (run / "attempt-1.submit").mkdir(parents=True)
    (run / "checkpoints").mkdir()
    for name in ("named-by-path", "by-variable", "named-in-code", "not-named", "linked"):
        (folder / name).mkdir()
    (run / "checkpoints" / "there").symlink_to(folder / "linked")
    (run / "code").mkdir()
    (run / "code" / "train.py").write_text(f'OUT = "{folder}/named-in-code/model.pt"\n')
    (run / "job.sh").write_text(f"lumitui_run launch {folder}/named-by-path $MY_OUT\n")
    (run / "attempt-1.out").write_text("")
    (run / "bin").symlink_to(folder / "bin")
    os.utime(run / "code" / "train.py", (1, 1))
    os.utime(run / "job.sh", (1, 1))
    place = f"./{saves}" if "/" not in saves else saves
    done = attempt(run, "running 0", "ok", ELSEWHERE=place, MY_OUT=f"{folder}/by-variable")
    assert done.notes[-1]["next"] == following
    assert ("saved nothing" in done.out) is (following == "unsaved")


def test_nothing_goes_back_after_a_cancel(folder: Path) -> None:
    done = attempt(folder, "stop", "ok")
    assert (done.code, done.asked) == (85, ["show"])
    assert "scancel --name=run-1 9" in done.out
    late = attempt(folder, SLURM_RESTART_COUNT="1")
    assert (late.code, late.asked) == (143, [])
    assert "scancel --name=run-1 9" in late.out
    assert (folder / "metrics.jsonl").read_text() == '{"step": 5}\n'
    assert late.notes[-1]["next"] == "cancelled"


@pytest.mark.parametrize("words", ["Requested operation is presently disabled for job 9",
                                   "Access/permission denied for job 9"])  # fmt: skip
def test_a_refusal_ends_the_chain_with_slurms_words(folder: Path, words: str) -> None:
    done = attempt(folder, "running 0", words)
    assert (done.code, done.asked) == (85, ["show", "requeue"])
    assert done.notes[-1] | {"time": 0} == {
        "attempt": 1, "job": "9", "time": 0, "event": "refused", "said": words,
    }  # fmt: skip
    assert f"the job could not be requeued ({words}). The chain ends here." in done.out


def test_a_controller_that_stays_away_is_given_up(folder: Path) -> None:
    done = attempt(folder, *[AWAY] * 30)
    assert (done.code, set(done.asked)) == (85, {"show"})
    assert done.notes[-1]["event"] == "refused"


def test_the_last_attempt_asks_for_no_other(folder: Path) -> None:
    done = attempt(folder, "running 2", "ok", SLURM_RESTART_COUNT="2")
    assert (done.code, done.asked, done.notes[-1]["next"]) == (85, [], "used-up")
    assert "the run has used its 3 time limits. The chain ends here." in done.out


def test_an_attempt_beyond_the_last_one_does_nothing(folder: Path) -> None:
    """Slurm itself runs a job again after a node failed."""
    done = attempt(folder, SLURM_RESTART_COUNT="3")
    assert (done.code, done.asked, done.notes[-1]["next"]) == (85, [], "used-up")
    assert not (folder / "metrics.jsonl").exists()
    assert json.loads((folder / "attempt-4.exit").read_text())["rc"] == 85


def test_an_attempt_that_was_requeued_by_hand_has_an_end(folder: Path) -> None:
    began = '{"attempt": 3, "job": "9", "time": 5, "event": "began", "nodes": "n1", "alive": null}'
    (folder / "attempts.jsonl").write_text(f"{began}\n")
    notes = attempt(folder, SLURM_RESTART_COUNT="3").notes
    told = [(line["attempt"], line["event"], line.get("next")) for line in notes]
    assert told == [
        (3, "began", None), (3, "ended", "killed"), (4, "began", None), (4, "ended", "used-up")
    ]  # fmt: skip
    lines = (folder / "attempts.jsonl").read_bytes()
    assert [record.end for record in merged((), lines)] == ["killed", "used-up"]


def test_a_killed_attempts_half_line_spoils_no_other(folder: Path) -> None:
    (folder / "attempts.jsonl").write_text('{"attempt": 1, "job"')
    done = attempt(folder, RC="0", SLURM_RESTART_COUNT="1")
    assert [line["event"] for line in done.notes] == ["began", "ended"]


def test_steps_that_a_dead_node_lost_are_no_measure_of_progress(folder: Path) -> None:
    lines = [
        '{"attempt": 1, "event": "ended", "rc": 85, "step": 3, "next": "requeue"}',
        '{"attempt": 2, "event": "ended", "rc": 87, "step": 9, "next": "failed"}',
    ]
    (folder / "attempts.jsonl").write_text("".join(f"{line}\n" for line in lines))
    done = attempt(folder, "running 2", "ok", SLURM_RESTART_COUNT="2", LIMITS="4")
    assert (done.notes[-1]["step"], done.notes[-1]["next"]) == (5, "requeue")
