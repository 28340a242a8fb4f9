"""Runs a job.sh as plain processes like Slurm: time limit, signals, cancel, cleanup.

    supervisor.py submit --job-name=NAME RUN    prints the job's id, like `sbatch --parsable`
    supervisor.py queue RUN...                  prints the record of each run's job, a line each
    supervisor.py cancel ID RUN NAME...         ends the jobs that are these runs'

Started by path with the isolated interpreter (`-I -S`), so that the job's environment has no
effect: it and its imports use only the standard library. The supervisor has its own session and
outlives the program that submitted the job.
"""

import contextlib
import os
import shutil
import signal
import sys
import time
from pathlib import Path
from shlex import quote
from typing import NoReturn

# The package's folder comes last, so that it cannot hide the standard library.
sys.path.append(str(Path(__file__).absolute().parents[3]))

from lumitui.remote.laptop.batch_job import REQUEUED, BatchJob, adopt_orphans
from lumitui.remote.laptop.batch_options import Refused, read_request
from lumitui.remote.laptop.job_store import (
    COMMANDS,
    DOOR,
    LIVE,
    STEPS,
    JobRecord,
    cancel,
    new_job,
    queue,
    read_record,
    remove_job,
)
from lumitui.remote.site.run_folder import JOB_SCRIPT


def submit(name: str, run: Path) -> int:
    """Start a job and print its id."""
    try:
        script = (run / JOB_SCRIPT).read_bytes()
        request = read_request(script.decode("utf-8", "replace"))
        folder = _make_job(run, script)
    except (Refused, OSError) as error:
        words = error.strerror if isinstance(error, OSError) else error
        print(f"submit: error: {words}", file=sys.stderr)
        return 1
    record = JobRecord(folder.name, name, str(folder / DOOR), partition=request.partition)
    record.submitted = time.time()
    record.nodes = ",".join(f"node{number}" for number in range(1, request.nodes + 1))
    # Opened for reading and writing: while this process is a writer, the door never reports end of
    # file.
    door = os.open(folder / DOOR, os.O_RDONLY | os.O_NONBLOCK)
    os.open(folder / DOOR, os.O_WRONLY)
    answer, answered = os.pipe()
    if os.fork() == 0:
        os.close(answer)
        _supervise(BatchJob(record, request, run, folder), door, answered)
    os.close(answered)
    with open(answer, encoding="utf-8") as reader:
        outcome = reader.read()
    if outcome != "started":
        remove_job(folder)
        print(f"submit: error: {outcome or 'the supervisor ended at once'}", file=sys.stderr)
        return 1
    print(folder.name)
    return 0


def _make_job(run: Path, script: bytes) -> Path:
    """Create the job's own folder: a copy of the script, the commands, the door."""
    folder = new_job(run)
    (folder / JOB_SCRIPT).write_bytes(script)
    (folder / STEPS).mkdir()
    (folder / COMMANDS).mkdir()
    stand_ins = Path(__file__).absolute().with_name("srun.py")
    stood_in = ["srun", "scontrol", "scancel", *([] if shutil.which("timeout") else ["timeout"])]
    for command in stood_in:
        path = folder / COMMANDS / command
        call = f"{quote(sys.executable)} -I -S {quote(str(stand_ins))} {command}"
        path.write_text(f'#!/bin/sh\nexec {call} "$@"\n', encoding="utf-8")
        path.chmod(0o700)
    os.mkfifo(folder / DOOR, 0o600)
    return folder


def _supervise(job: BatchJob, door: int, answered: int) -> NoReturn:
    """Become the supervisor, detached, with a parent that cleans up if the supervisor is killed."""
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    adopt_orphans()
    if child := os.fork():
        # The parent must not hold the door open: a knock must show that the supervisor is gone.
        os.closerange(3, max(door, answered, null) + 8)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if os.waitpid(child, 0)[1] != 0:
            _clear(job)
        os._exit(0)
    try:
        job.start()
    except OSError as error:
        job.kill()
        os.write(answered, f"the script could not be started: {error.strerror}".encode())
        os._exit(0)
    os.write(answered, b"started")
    os.close(answered)
    try:
        while (ended := job.watch(door))[0] == REQUEUED:
            job.start_again()
        job.finish(*ended)
    except OSError as error:
        # The run's folder is gone, or its disk is full: the job ends even without a record.
        job.kill()
        with contextlib.suppress(OSError):
            job.write_state("NODE_FAIL", f"its record could not be written: {error.strerror}")
    remove_job(job.folder)
    os._exit(0)


def _clear(job: BatchJob) -> None:
    """End the job of a killed supervisor, whose descendants now belong to this process."""
    data = read_record(job.run)
    if data and data.get("word") in LIVE:
        job.record = JobRecord(**data)
        job.script = job.record.script
        job.kill()
        job.write_state("NODE_FAIL", "its supervisor was killed", ended=time.time())
    remove_job(job.folder)


def main(arguments: list[str]) -> int:
    """Run the command in the first argument; return the exit status."""
    match arguments:
        case ["submit", name, run] if name.startswith("--job-name="):
            return submit(name.removeprefix("--job-name="), Path(run))
        case ["queue", *runs]:
            return queue(runs)
        case ["cancel", *words] if len(words) % 3 == 0:
            return cancel(list(zip(words[::3], words[1::3], words[2::3], strict=True)))
        case _:
            print("usage: supervisor.py submit|queue|cancel", file=sys.stderr)
            return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
