"""lumitui.sh: what job.sh calls, run by bash with an srun that only runs its command.

The mini cluster runs the same functions with Slurm; here are faults that it cannot be given.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.jobs.job_functions import made_folder, run_bash, sourced
from tests.support.places import ROOT

STRANGER = 54321
"""Another user's number."""
SRUN = """#!/bin/bash
echo srun >>"$CALLS"
if (($(wc -l <"$CALLS") <= REFUSALS)); then
  echo 'srun: error: Unable to create step for job 9: Invalid generic resource' >&2
  exit 1
fi
while [[ $1 == --* ]]; do shift; done
exec "$@"
"""
HEAD = f"""{sourced()}sleep() {{ echo "slept $1"; }}
lumitui_begin
"""


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    folder = made_folder(tmp_path / "run it's-1", srun=SRUN)
    (folder / "node").mkdir()
    return folder


def job(
    run_dir: Path, text: str, refusals: int = 0, **environ: str
) -> "subprocess.CompletedProcess[str]":
    """Run the text of a job in the run's folder; `refusals` steps are refused first."""
    return run_bash(run_dir, HEAD + text, {"REFUSALS": str(refusals)} | environ)


def test_a_job_records_what_hangs_and_forgets_an_earlier_attempts(run_dir: Path) -> None:
    (run_dir / "hung.json").write_text("{}")
    said = 'echo "$TORCH_FR_BUFFER_SIZE $TORCH_NCCL_DUMP_ON_TIMEOUT $TORCH_FR_DUMP_TEMP_FILE"'
    done = job(run_dir, said)
    assert done.stdout == f"2000 1 {run_dir}/flight-1-rank-\n", done.stderr
    assert job(run_dir, said, TORCH_FR_BUFFER_SIZE="0").stdout.startswith("0 1 ")
    assert (run_dir / "hung.json").exists()
    job(run_dir, said, SLURM_RESTART_COUNT="1")
    assert not (run_dir / "hung.json").exists()


def test_a_step_that_is_refused_for_a_while_is_tried_again(run_dir: Path) -> None:
    done = job(run_dir, "lumitui_node_tmp node cache; [[ -d $NODE_TMP/cache ]]; echo on", 3)
    assert (done.returncode, done.stdout) == (0, "slept 5\nslept 10\nslept 20\non\n"), done.stderr
    assert done.stderr.count("could not be made on every node; trying again in ") == 3
    assert list((run_dir / "node").iterdir()) == []  # the job's folder goes with it


def test_a_step_that_is_refused_for_good_names_itself_and_launches_nothing(run_dir: Path) -> None:
    done = job(run_dir, "lumitui_node_tmp node; echo launched", 99)
    assert (done.returncode, "launched" in done.stdout) == (74, False)
    last = done.stderr.splitlines()[-1]
    assert last == (
        "lumitui: a folder in node could not be made on every node; nothing was launched."
    )
    assert (run_dir / "calls").read_text().count("srun") == 5


@pytest.mark.parametrize("made", ["folder", "file", "link"])
def test_what_a_stranger_made_first_is_left_alone(run_dir: Path, made: str) -> None:
    taken = run_dir / "node" / "taken"
    mktemp = run_dir / "bin" / "mktemp"
    names = f'n=$(wc -l <"$CALLS"); if ((n == 0)); then echo "{taken}"; else echo "{taken}-$n"; fi'
    mktemp.write_text(f"#!/bin/bash\n{names}\n")
    mktemp.chmod(0o755)
    if made == "folder":
        taken.mkdir(mode=0o777)
    elif made == "file":
        taken.write_text("theirs")
    else:
        taken.symlink_to(run_dir / "bin")
    os.chown(taken, STRANGER, STRANGER, follow_symlinks=False)
    done = job(run_dir, 'lumitui_node_tmp node x; echo "$NODE_TMP"; ls -ld "$NODE_TMP"')
    assert done.returncode == 0, done.stderr
    assert f"{taken}-1\ndrwx------" in done.stdout
    assert f"{taken} cannot be made, or belongs to another user" in done.stderr
    assert [path.name for path in (run_dir / "node").iterdir()] == ["taken"]
    assert taken.lstat().st_uid == STRANGER


def test_what_the_first_attempt_left_is_removed_and_nothing_of_others(run_dir: Path) -> None:
    node = run_dir / "node"
    mine, theirs = f"lumitui-{run_dir.name}-9-1-abc", f"lumitui-{run_dir.name}-9-1-theirs"
    for name in (mine, theirs, f"lumitui-{run_dir.name}-8-1-other"):
        (node / name).mkdir()
    os.chown(node / theirs, STRANGER, STRANGER)
    (run_dir / "attempt-1.claim").symlink_to("9")
    done = job(run_dir, "lumitui_node_tmp node", SLURM_RESTART_COUNT="1")
    assert done.returncode == 0, (run_dir / "attempt-2.out").read_text()
    left = {path.name.rpartition("-")[2] for path in node.iterdir()}
    assert left == {"theirs", "other"}


def test_without_its_functions_a_job_does_nothing(run_dir: Path) -> None:
    (run_dir / "job.sh").write_text(
        f"set -eo pipefail\n. ./nowhere.sh\nlumitui_begin\ntouch {run_dir.name!r}/launched"
    )
    done = subprocess.run(["bash", "job.sh"], cwd=run_dir, capture_output=True, text=True)
    assert done.returncode == 1 and "nowhere.sh: No such file" in done.stderr
    assert not (run_dir / "launched").exists() and not (run_dir / "attempt-1.claim").exists()


def test_a_login_file_that_went_elsewhere_changes_nothing(run_dir: Path, tmp_path: Path) -> None:
    other = tmp_path / "other-run"
    (other / "attempt-1.submit").mkdir(parents=True)
    done = job(run_dir, 'echo "$RUN_DIR"')
    assert done.stdout == f"{run_dir}\n"
    (run_dir / "attempt-1.claim").unlink()
    text = HEAD.replace("set -eo", f"cd {other}; set -eo") + 'echo "$RUN_DIR $PWD"'
    env = {"PATH": os.environ["PATH"], "SLURM_JOB_ID": "9", "SLURM_SUBMIT_DIR": str(run_dir)}
    done = subprocess.run(["bash", "-c", text], env=env, capture_output=True, text=True)
    assert done.stdout == f"{run_dir} {run_dir}\n", done.stderr
    assert os.readlink(run_dir / "attempt-1.claim") == "9"
    assert not (other / "attempt-1.claim").exists()


def test_a_second_job_of_the_run_ends_before_it_does_anything(run_dir: Path) -> None:
    assert job(run_dir, "lumitui_run echo launched").stdout == "launched\n"
    again = job(run_dir, "lumitui_run echo launched", SLURM_RESTART_COUNT="1")
    assert again.returncode == 0 and "launched" in (run_dir / "attempt-2.out").read_text()
    other = job(run_dir, "lumitui_run echo launched", SLURM_JOB_ID="10")
    assert other.stdout == "lumitui: attempt 1 belongs to job 9; job 10 ends.\n"
    assert (other.returncode, os.readlink(run_dir / "attempt-1.claim")) == (0, "9")


def test_a_job_that_cannot_claim_the_run_does_nothing(run_dir: Path) -> None:
    (run_dir / "bin" / "ln").write_text("#!/bin/sh\nexit 1\n")
    (run_dir / "bin" / "ln").chmod(0o755)
    done = job(run_dir, "lumitui_run echo launched")
    assert (done.returncode, "launched" in done.stdout) == (73, False)


@pytest.mark.parametrize(("code", "kept"), [(0, False), (1, True)])
def test_secrets_stay_for_as_long_as_the_job_may_be_run_again(
    run_dir: Path, code: int, kept: bool
) -> None:
    (run_dir / ".secrets").write_text("TOKEN='a b'\n")
    done = job(run_dir, f"lumitui_secrets; lumitui_run bash -c 'echo $TOKEN; exit {code}'")
    assert (done.returncode, done.stdout) == (code, "a b\n")
    assert (run_dir / ".secrets").exists() == kept


@pytest.mark.parametrize(
    ("words", "rank", "rc"),
    [
        ("task 3: Exited with exit code 7", 3, 7),
        ("tasks 2-3: Killed", 2, 137),
        ("task 1: Segmentation fault (core dumped)", 1, 139),
        ("task 1: Aborted", 1, 134),
        ("task 0: Out Of Memory", 0, 137),
        ("task 3: Terminated", None, 9),
    ],
)
def test_the_first_failure_that_srun_names_is_the_jobs(
    run_dir: Path, words: str, rank: int | None, rc: int
) -> None:
    log = f"srun: error: nid005001: {words}\nsrun: error: nid005002: task 9: Killed\n"
    fails = f"fails() {{ printf %b {log!r} >>attempt-1.out; return 9; }}; WORLD_SIZE=16"
    job(run_dir, f"{fails}\nlumitui_run fails")
    told = json.loads((run_dir / "attempt-1.exit").read_text())
    assert (told["rank"], told["rc"], told["job"], told["attempt"]) == (rank, rc, "9", 1)
    assert told["oom"] == ("Memory" in words)


def test_an_exit_file_is_whole_or_not_there(run_dir: Path) -> None:
    (run_dir / "bin" / "mv").write_text('#!/bin/sh\ncat "$1" >moved\nexit 1\n')
    (run_dir / "bin" / "mv").chmod(0o755)
    assert job(run_dir, "lumitui_run true").returncode == 0
    assert json.loads((run_dir / "moved").read_text())["rc"] == 0
    assert not (run_dir / "attempt-1.exit").exists()


LAUNCHED = "until [[ -e launched ]]; do command sleep 0.01; done"
LAUNCH = """
launch() {
  touch "$RUN_DIR/launched"
  until [[ -e $RUN_DIR/stop ]]; do command sleep 0.01; done
  echo saved
  return 85
}
lumitui_stop_on USR1
lumitui_run launch
"""


def test_a_signal_to_the_script_becomes_a_file_and_the_exit_code_stays(run_dir: Path) -> None:
    """The launch gets no signal, and lives until it has saved."""
    (run_dir / "stop").touch()  # an earlier attempt's asks nobody to stop
    signals = f"({LAUNCHED}; kill -USR1 $$; kill -USR1 $$) &\n"
    done = job(run_dir, LAUNCH.replace("lumitui_run launch", f"{signals}lumitui_run launch"))
    assert (done.returncode, done.stderr) == (85, "")
    assert done.stdout.split()[-1] == "saved"
    assert '"rc": 85' in (run_dir / "attempt-1.exit").read_text()


def test_a_cancelled_job_ends_after_its_launch_and_leaves_no_exit_file(run_dir: Path) -> None:
    signals = f"({LAUNCHED}; kill -TERM $$; command sleep 0.1; touch stop) &\n"
    done = job(run_dir, LAUNCH.replace("lumitui_run launch", f"{signals}lumitui_run launch"))
    assert (done.returncode, done.stdout.split()[-1]) == (143, "saved")
    assert not (run_dir / "attempt-1.exit").exists()


def test_a_cancel_while_the_job_prepares_keeps_it_from_its_launch(run_dir: Path) -> None:
    """scancel does not reach it: the controller is away."""
    text = 'scancel() { echo "scancel $*"; return 1; }; : >cancelled; lumitui_run echo launched'
    done = job(run_dir, text, SLURM_JOB_NAME="run-1")
    assert (done.returncode, "launched" in done.stdout) == (143, False)
    assert "scancel --name=run-1 9" in done.stdout
    assert not (run_dir / "attempt-1.exit").exists()


RANKS = 3
PROGRAM = """
import os, pathlib, time
import lumitui_run as run

meetings = 0

def greatest(values):
    global meetings
    meetings += 1
    place = run.RUN_DIR / f"met-{meetings}"
    place.mkdir(exist_ok=True)
    (place / str(run.RANK)).write_text(repr(values))
    while len(list(place.iterdir())) < run.WORLD_SIZE:
        time.sleep(0.01)
    return values

run.stop_requested(greatest)
time.sleep(0.2 * (run.WORLD_SIZE - 1 - run.RANK))  # rank 0 opens the folder last
with run.saving("step-7") as folder:
    time.sleep(0.2 * run.RANK)  # and is the first to have saved
    (folder / f"part-{run.RANK}").write_text("x")
"""


def test_a_save_without_torch_waits_for_every_rank(tmp_path: Path) -> None:
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "templates" / "examples"),
               "RUN_DIR": str(tmp_path), "WORLD_SIZE": str(RANKS)}  # fmt: skip
    ranks = [
        subprocess.Popen([sys.executable, "-c", PROGRAM], env={**environ, "RANK": str(rank)})
        for rank in range(RANKS)
    ]
    assert [rank.wait(60) for rank in ranks] == [0] * RANKS
    parts = sorted(path.name for path in (tmp_path / "checkpoints" / "step-7").iterdir())
    assert parts == ["part-0", "part-1", "part-2"]
