"""Every name inside a run's folder on a site, and the time limits of the steps that work there.

Standard library only: the supervisor of the embedded site imports this module with `python -I -S`.

The scripts in `templates/job/` spell these names themselves. They are texts that a user reads;
a test checks that they and this module agree.
"""

import re

JOB_SCRIPT = "job.sh"
"""The batch script as it was composed."""
MACHINERY = "lumitui.sh"
"""The functions that job.sh calls (templates/job/lumitui.sh); older folders do not have it."""
RECORD = "lumitui.json"
"""What the run is; a lost history is rebuilt from it. Not `run.json`: a user's own script may
write such a file beside it."""
RECORD_FROM_SCRATCH = ".record-from-scratch"
"""The record of a resubmission, for the case that there are no checkpoints to continue from."""
SECRETS = ".secrets"
"""The values of `secrets:`, which are never brought back to the laptop."""
PROBE_SCRIPT = "probe.sh"
"""What measures the binding of every rank (templates/job/probe.sh)."""
PREFLIGHT = "preflight.json"
"""What the preflight found; binding.json has it too."""
PREFLIGHT_SCRIPTS = ("preflight.py", "preflight_verdict.py")
"""What measures GPUs and network before the launch (trainers/preflight), in a job that asks."""
VENV_SCRIPT = "venv.sh"
"""What builds the environment of `venv:`, in a job that has one; `venv.log` is what it said."""
VENVS = "venvs"
"""The folder of environments: beside the projects' folders, and in an exported job's own."""
SCRIPTS = (JOB_SCRIPT, MACHINERY, PROBE_SCRIPT)
"""What a job runs of lumitui's, in the order in which it is hashed."""
HOSTFILE = "hostfile"
"""The job's nodes and their ranks, in a job that asks for it."""
DEEPSPEED_CONFIG = "ds_config.json"
"""DeepSpeed's configuration, with the batch sizes of this run."""

CODE = "code"
"""The run's own copy of the code, a folder."""

LOCK = "attempt-1.submit"
"""A folder. Making it is the lock of the submit step, which keeps its notes inside."""
RECEIPT = "attempt-1.receipt"
"""The job's id, as the submit command printed it."""
CLAIM = "attempt-1.claim"
"""A link to the id of the one job that may run; to `void` when none may run any more."""
STATE = "attempt-1.state"
"""The embedded site's record of the job; it takes the place of Slurm's queue and accounting."""

STAGE = "stage"
"""A folder of links, each called as in `stage:` of the job file, to what the site's runs share. The
store of that, beside the projects' folders, has the same name."""

ATTEMPTS = "attempts.jsonl"
"""What a run with `chain:` writes of each attempt, one JSON object a line: its start, its end."""
CANCELLED = "cancelled"
"""Made by a cancel, so that no attempt goes back into the queue any more."""
BINDING = "binding.json"
"""What the probe measured."""
METRICS = "metrics.jsonl"
"""What a training reports, one JSON object a line."""
GPU_USE = "gpu_use.json"
"""How busy the GPUs of the job's first node are in this attempt (templates/job/gpus.sh)."""
WATCHED = "watch"
"""What a training writes for TensorBoard, MLflow and W&B, a folder for each."""
PROFILE = "profile"
"""Traces of some steps, in PyTorch's profiler."""
CHECKPOINTS = "checkpoints"
"""The folder that a continued run gets a copy of."""
HUNG = "hung.json"
"""Names what hangs, while it hangs, by a bundled trainer (trainers/monitor/watchdog.py)."""
STOP = "stop"
"""Made by the job when its time limit is near; the bundled trainers then save and end."""

PREPARING_SECONDS = 300.0
"""Time limit for making a run's folder with its copy of the code."""
COPYING_SECONDS = 3600.0
"""The same when checkpoints are copied too: they may be tens of gigabytes."""
SUBMIT_SECONDS = 300.0
"""Time limit for the submit step, and for reading its evidence. While the site's queue is full,
sbatch sleeps 1 + 2 + … + 15 = 120 s between its tries (sbatch.c, MAX_RETRIES)."""
POLL_SECONDS = 90.0
"""Time limit for one poll of all runs of a site."""
LISTING_SECONDS = 900.0
"""Time limit for listing the files that a fetch asks for; hashing large ones gets more."""


def attempt_log(number: int | str) -> str:
    """Return the name of an attempt's log; `number` may be a shell's `*` or `$n`."""
    return f"attempt-{number}.out"


def attempt_exit(number: int | str) -> str:
    """Return the name of an attempt's exit file; `number` may be a shell's `*` or `$n`."""
    return f"attempt-{number}.exit"


def attempt_of_log(name: str) -> int | None:
    """Return the attempt whose log is called `name`; None for any other file."""
    match = re.fullmatch(r"attempt-([0-9]{1,15})\.out", name)
    return int(match[1]) if match else None


def preparing_seconds(*, copies_checkpoints: bool) -> float:
    """Return the time limit for making a run's folder; a younger one may be in the making."""
    return COPYING_SECONDS if copies_checkpoints else PREPARING_SECONDS
