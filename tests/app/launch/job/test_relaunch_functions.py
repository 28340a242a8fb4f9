"""relaunch.sh: when a job launches its program again, with stand-ins for srun and scontrol.

app/follow/chain/test_relaunch.py has the same on this machine, test_relaunch_cluster.py with Slurm.
"""

import json
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.jobs.job_functions import made_folder, run_bash, sourced

SRUN = """#!/bin/bash
echo "srun ${*: -1}" >>"$CALLS"
exit "${AWAY:-0}"
"""
SCONTROL = """#!/bin/bash
echo scontrol >>"$CALLS"
[[ -z ${CONTROLLER_AWAY:-} ]] || exit 1
format=$SLURM_TIME_FORMAT end=Unknown
[[ $format == %* ]] || format=%Y-%m-%dT%H:%M:%S
[[ -z ${END_IN:-} ]] || end=$(date -d "$END_IN seconds" "+$format")
echo "JobId=9 JobState=${STATE:-RUNNING} Restarts=${RESTARTS:-0} EndTime=$end "
"""
HEAD = f"""{sourced("relaunch")}sleep() {{ echo "slept $1"; }}
save() {{
  mkdir -p "$RUN_DIR/checkpoints/$1"
  command sleep 0.02
  : >"$RUN_DIR/checkpoints/$1/${{2:-x.pt}}"
}}
lumitui_begin
exec >>attempt-1.out 2>&1
export JOB=$$ MASTER_PORT=19000 WORLD_SIZE=2
lumitui_stop_on USR1
lumitui_relaunch 2 "${{LIMIT:-600}}" 60
"""
TORCHRUN = """
0: ============================================================
0: train.py FAILED
0: Failures:
0: [1]:
0:   rank      : 0 (local_rank: 0)
0:   exitcode  : 85 (pid: 41)
0: Root Cause (first observed failure):
0: [0]:
0:   rank      : {rank} (local_rank: 1)
0:   exitcode  : {code} (pid: 42)
0:   traceback : Signal 9 (SIGKILL) received by PID 42
"""


@dataclass(frozen=True)
class Done:
    """A job that ended."""

    rc: int
    out: str
    launches: list[str]
    """What each launch had as MASTER_PORT."""
    asked: list[str]
    exit: dict[str, object]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return made_folder(tmp_path, srun=SRUN, scontrol=SCONTROL)


def job(folder: Path, *launches: str, **environ: str) -> Done:
    """Run a job whose launches do one after the other what the texts say, in bash."""
    cases = "".join(f"    {number}) {text} ;;\n" for number, text in enumerate(launches, 1))
    text = f'launch() {{\n  echo "port $MASTER_PORT"\n  case $launch in\n{cases}  esac\n}}\n'
    done = run_bash(folder, f"{HEAD}{text}lumitui_run launch", environ)
    out = (folder / "attempt-1.out").read_text() + done.stdout + done.stderr
    calls, exit_file = folder / "calls", folder / "attempt-1.exit"
    return Done(
        done.returncode,
        out,
        [line.split()[1] for line in out.splitlines() if line.startswith("port ")],
        calls.read_text().splitlines() if calls.exists() else [],
        json.loads(exit_file.read_text()) if exit_file.exists() else {},
    )


KILLED = "echo 'srun: error: nid1: task 1: Killed'; return 137"


def test_it_goes_on_from_what_was_saved_and_the_last_launch_counts(folder: Path) -> None:
    step = """echo '{"step": 812, "loss": 1}' >>"$RUN_DIR/metrics.jsonl"; save a"""
    done = job(folder, f"{step}; {KILLED}", "save b; return 1", "save c; return 7")
    assert (done.rc, done.exit["rc"], done.exit["rank"]) == (7, 7, None)
    assert done.launches == ["19000", "12571", "16142"]
    assert (
        "launch 2 of 3: rank 1 ended with 137 after step 812; it restarts from its last checkpoint."
    ) in done.out
    assert "launch 3 of 3: the program ended with 1 after step 812; it restarts" in done.out
    assert "the program is not restarted: it has used its 3 launches." in done.out
    assert done.asked == ["scontrol", "srun true"] * 2


def test_a_launch_that_ends_well_ends_the_job(folder: Path) -> None:
    done = job(folder, f"save a; {KILLED}", "return 0")
    assert (done.rc, done.exit["rc"], len(done.launches)) == (0, 0, 2)
    assert "srun: error" in done.out  # of the first launch: it counts no more
    assert done.exit["rank"] is None


@pytest.mark.parametrize("code", [0, 2, 85, 86, 87])
def test_what_is_no_fault_is_not_launched_again(folder: Path, code: int) -> None:
    done = job(folder, f"save a; return {code}")
    assert (done.rc, done.launches, done.asked) == (code, ["19000"], [])
    assert "restarted" not in done.out


@pytest.mark.parametrize(
    ("code", "launches", "words"),
    [(-9, 2, "rank 1 ended with 137;"), (88, 2, "rank 1 ended with 88;"), (86, 1, ""), (2, 1, "")],
)
def test_torchrun_hides_how_its_ranks_ended(
    folder: Path, code: int, launches: int, words: str
) -> None:
    """Of those that it ended itself nothing follows: they may have saved."""
    reports = TORCHRUN.format(rank=0, code=1) + TORCHRUN.format(rank=1, code=code)
    said = f"unset WORLD_SIZE; save a; cat <<'END'{reports}END\nreturn 1"
    done = job(folder, f"{said}\n", "return 0")
    assert (len(done.launches), done.rc) == (launches, code if launches == 1 else 0)
    assert words in done.out


@pytest.mark.parametrize(
    ("launch", "environ", "why"),
    [
        ("return 1", {}, "it saved nothing in checkpoints/ since its launch"),
        # What no manifest completes, and what is made while a training resumes.
        ("save start-0001-step-00000004; return 1", {}, "it saved nothing"),
        ("save .universal; return 1", {}, "it saved nothing"),
        ("save a; kill -USR1 $$; command sleep 0.2; return 1", {}, "it got a stop request"),
        ("save a; : >$RUN_DIR/cancelled; return 1", {}, "it got a stop request"),
        ("save a; : >$RUN_DIR/stop; return 1", {}, "it got a stop request"),  # by hand
        ("save a; return 1", {"AWAY": "1"}, "not all of its nodes answer"),
        ("save a; return 1", {"LIMIT": "120"}, "too soon for another launch"),
        (
            "save a; return 1",
            {"END_IN": "-9", "SLURM_TIME_FORMAT": "relative"},
            "too soon for another launch",
        ),
        (
            "save a; return 1",
            {"STATE": "CANCELLED"},
            "Slurm does not report that the job continues",
        ),
        # Another attempt runs, and this node was given up.
        ("save a; return 1", {"RESTARTS": "1"}, "Slurm does not report that the job continues"),
        ("save a; return 1", {"CONTROLLER_AWAY": "1"}, "Slurm does not report"),
    ],
)
def test_it_says_why_the_job_ends(
    folder: Path, launch: str, environ: dict[str, str], why: str
) -> None:
    done = job(folder, launch, **environ)
    assert (done.rc, done.exit["rc"], done.launches) == (1, 1, ["19000"])
    assert "lumitui: the program is not restarted: " in done.out and why in done.out


@pytest.mark.parametrize(("change", "end", "launches"), [(900, 30, 1), (-900, 600, 2)])
def test_the_hour_that_the_clock_shows_twice_moves_no_end(
    folder: Path, change: int, end: int, launches: int
) -> None:
    """The clock is set back in or was set back before a quarter of an hour."""
    at = time.gmtime(time.time() + 3600 + change)
    zone = f"WIN0SUM-1,{(at.tm_yday + 200) % 365},"
    zone += f"{at.tm_yday - 1}/{at.tm_hour}:{at.tm_min}:{at.tm_sec}"
    done = job(folder, "save a; return 1", "return 0", TZ=zone, END_IN=str(end))
    assert len(done.launches) == launches, done.out


def test_a_manifest_of_a_bundled_trainer_makes_a_checkpoint(folder: Path) -> None:
    done = job(folder, "save start-0001-step-00000004 manifest.json; return 1", "return 1")
    assert len(done.launches) == 2
    # What the first launch saved is no progress of the second.
    assert "it saved nothing in checkpoints/ since its launch" in done.out


def test_a_cancel_ends_the_job_without_an_exit_file(folder: Path) -> None:
    """While it runs, and while the nodes are asked."""
    done = job(folder, "save a; kill -TERM $$; command sleep 0.2; return 1")
    assert (done.rc, len(done.launches), done.exit) == (143, 1, {})
    (folder / "bin" / "srun").write_text("#!/bin/bash\nkill -TERM $JOB; sleep 0.2\n")
    done = job(folder, "save b; return 1")
    assert (done.rc, done.exit) == (143, {})


def test_what_the_ranks_collectives_did_is_kept_of_each_launch(folder: Path) -> None:
    said = 'echo "flight $TORCH_FR_DUMP_TEMP_FILE"; save $launch; return 1'
    done = job(folder, said, said, said)
    names = [Path(line.split()[1]).name for line in done.out.splitlines() if "flight " in line]
    assert names == ["flight-1-rank-", "flight-1-launch-2-rank-", "flight-1-launch-3-rank-"]
