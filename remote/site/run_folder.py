"""Every name inside a run's folder on a site, and the time limits of its steps.

Standard library only: the supervisor of the embedded site imports this module with `python -I -S`.

The scripts in `templates/job/` spell these names themselves. They are texts that a user reads;
a test checks that they and this module agree.
"""

import re

JOB_SCRIPT = "job.sh"
"""The composed batch script."""
MACHINERY = "lumitui.sh"
"""The functions that job.sh calls (templates/job/lumitui.sh); older folders do not have it."""
RECORD = "lumitui.json"
"""The run's record, from which a lost history is rebuilt. Not `run.json`: a user's script may write
such a file beside it."""
RECORD_FROM_SCRATCH = ".record-from-scratch"
"""The record of a resubmission, for the case without checkpoints to resume from."""
SECRETS = ".secrets"
"""The values of `secrets:`, which are never brought back to the laptop."""
PROBE_SCRIPT = "probe.sh"
"""Measures the binding of every rank (templates/job/probe.sh)."""
PREFLIGHT = "preflight.json"
"""The preflight's result, also in binding.json."""
PREFLIGHT_SCRIPTS = ("preflight.py", "preflight_verdict.py")
"""Measures GPUs and network before the launch (trainers/preflight), if the job file requests it."""
VENV_SCRIPT = "venv.sh"
"""Builds the environment of `venv:`, if the job has one; `venv.log` has its output."""
VENVS = "venvs"
"""The folder of environments: beside the projects' folders, and in an exported job's own."""
SCRIPTS = (JOB_SCRIPT, MACHINERY, PROBE_SCRIPT)
"""lumitui's files that a job runs, in the order of hashing."""
HOSTFILE = "hostfile"
"""The job's nodes and their ranks, if the job requests it."""
DEEPSPEED_CONFIG = "ds_config.json"
"""DeepSpeed's configuration, with the batch sizes of this run."""

CODE = "code"
"""The run's own copy of the code, a folder."""

LOCK = "attempt-1.submit"
"""A folder, whose creation is the lock of the submit step; contains its notes."""
RECEIPT = "attempt-1.receipt"
"""The job's id, as the submit command printed it."""
CLAIM = "attempt-1.claim"
"""A link to the id of the only job that may run; to `void` if none may run any more."""
STATE = "attempt-1.state"
"""The embedded site's record of the job; it takes the place of Slurm's queue and accounting."""

STAGE = "stage"
"""A folder of links, named as in `stage:` of the job file, to data that the site's runs share.
Their store, beside the projects' folders, has the same name."""

ATTEMPTS = "attempts.jsonl"
"""The attempts of a run with `chain:`, one JSON object per line: their starts and ends."""
CANCELLED = "cancelled"
"""Created by a cancel, so that no attempt requeues itself any more."""
BINDING = "binding.json"
"""The probe's measurements."""
METRICS = "metrics.jsonl"
"""A training run's reports, one JSON object per line."""
GPU_USE = "gpu_use.json"
"""How busy the GPUs of the job's first node are in this attempt (templates/job/gpus.sh)."""
WATCHED = "watch"
"""A training run's output for TensorBoard, MLflow and W&B, a folder for each."""
PROFILE = "profile"
"""Traces of some steps, in PyTorch's profiler."""
CHECKPOINTS = "checkpoints"
"""The folder that a resumed run gets a copy of."""
HUNG = "hung.json"
"""The hung rank, during the hang, from a bundled trainer (trainers/monitor/watchdog.py)."""
STOP = "stop"
"""Created by the job near its time limit; the bundled trainers then save and end."""

PREPARING_SECONDS = 300.0
"""Time limit for making a run's folder with its copy of the code."""
COPYING_SECONDS = 3600.0
"""The same if checkpoints are also copied: they may be tens of gigabytes."""
SUBMIT_SECONDS = 300.0
"""Time limit for the submit step, and for reading its evidence. While the site's queue is full,
sbatch sleeps 1 + 2 + … + 15 = 120 s between its tries (sbatch.c, MAX_RETRIES)."""
POLL_SECONDS = 90.0
"""Time limit for one poll of all runs of a site."""
LISTING_SECONDS = 900.0
"""Time limit for listing the requested files of a fetch; hashing large ones gets more."""


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
