"""The names inside a run's folder: one home, and templates that agree with it."""

import re
from pathlib import Path

import lumitui
from lumitui.remote.site import run_folder
from lumitui.remote.site.run_folder import attempt_exit, attempt_log, attempt_of_log

TEMPLATES = Path(lumitui.__file__).parent / "templates" / "job"
SCRIPTS = (
    "job.sh.j2",
    "lumitui.sh",
    "proof.sh",
    "failed_rank.sh",
    "chain.sh",
    "relaunch.sh",
    "compiled.sh",
    "gpus.sh",
)
TEXT = "".join((TEMPLATES / name).read_text() for name in SCRIPTS)
SCRATCH = {
    ".began", ".binding.json", ".exit-$attempt", ".launched", ".proof-$attempt",
    "flight-$attempt-rank-", "flight-$attempt-launch-$launch-rank-",
}  # fmt: skip
"""What a job alone makes, renames and removes; PyTorch adds the rank to the last."""
NAMES = {
    value for name, value in vars(run_folder).items() if name.isupper() and isinstance(value, str)
}


def test_the_templates_name_nothing_that_the_module_does_not_know() -> None:
    named = set(re.findall(r"(?:\$RUN_DIR|SUBMIT_DIR:-\})/([\w.$-]+)", TEXT))
    logs = {attempt_log("$attempt"), attempt_exit("$attempt"), attempt_log("$before")}
    assert named <= NAMES | logs | SCRATCH
    assert {run_folder.LOCK, run_folder.CLAIM, run_folder.SECRETS, run_folder.BINDING} <= named
    assert run_folder.CHECKPOINTS in named and logs <= named


def test_only_an_attempts_log_has_an_attempt() -> None:
    assert [attempt_of_log(attempt_log(number)) for number in (1, 2, 37)] == [1, 2, 37]
    for name in ("attempt-.out", "attempt-1.exit", "attempt-1.out.new", "attempt-x.out", "total"):
        assert attempt_of_log(name) is None


def test_a_folder_that_gets_checkpoints_may_take_longer() -> None:
    assert run_folder.preparing_seconds(copies_checkpoints=False) == run_folder.PREPARING_SECONDS
    assert run_folder.preparing_seconds(copies_checkpoints=True) == run_folder.COPYING_SECONDS
