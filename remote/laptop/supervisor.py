"""Runs one job.sh as plain processes, as Slurm would: limit, signals, cancel, nothing left over.

    supervisor.py submit --job-name=NAME RUN    prints the job's id, like `sbatch --parsable`
    supervisor.py queue RUN...                  prints the record of each run's job, a line each
    supervisor.py cancel ID...

Started by path with the isolated interpreter (`-I -S`): standard library only, whatever the
job's environment. The supervisor is a session of its own and outlives the program that
submitted.
"""

import contextlib
import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from shlex import quote
from typing import NoReturn

# The folder of the package, last: nothing in it may stand before the standard library.
sys.path.append(str(Path(__file__).absolute().parents[3]))

from lumitui.remote.laptop.batch_options import Refused, Request, read_request
from lumitui.remote.laptop.job_store import (
    LIVE,
    Record,
    cancel,
    new_job,
    queue,
    read_record,
    remove_job,
)
from lumitui.remote.laptop.process_tree import below, processes, send, session_of
from lumitui.remote.run_folder import JOB_SCRIPT, attempt_log

KILL_WAIT = float(os.environ.get("LUMITUI_KILL_WAIT", "10"))
"""Seconds from SIGTERM to SIGKILL, Slurm's KillWait (30 by default; here nobody waits for it)."""
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER, prctl(2)
_UNKILLABLE = 60.0  # slurm.conf(5), UnkillableStepTimeout


class Job:
    """One job, in the process that supervises it."""

    def __init__(self, record: Record, request: Request, run: Path, spool: Path) -> None:
        """Prepare the job whose folder is `spool`; nothing is started yet."""
        self.record, self.request, self.run, self.spool = record, request, run, spool
        self.script = 0
        """Process and session of bash."""
        self.code: int | None = None
        """How bash ended: 0 to 255, or a negative signal."""
        self.stopped = False
        self.sessions: set[int] = set()

    def start(self) -> None:
        """Start bash on the copy of the script.

        Raises:
            OSError: it could not be started.
        """
        _adopt_orphans()
        wake, woken = os.pipe()
        for end in (wake, woken):
            os.set_blocking(end, False)
        self.wake = wake
        signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._stop)
        # The submit step ignores some, and what is ignored stays so in every child.
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
            signal.signal(number, signal.SIG_DFL)
        log = os.open(self.run / attempt_log(1), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        bash = "/bin/bash" if os.access("/bin/bash", os.X_OK) else "bash"
        # Kept: a Popen that goes out of scope waits for its child, and the code would be lost.
        self.bash = subprocess.Popen(
            [bash, str(self.spool / JOB_SCRIPT)],
            cwd=self.run,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        self.log, self.script = log, self.bash.pid
        self.record.supervisor, self.record.script = os.getpid(), self.script
        now = time.time()
        limit = self.request.limit
        self.begun = time.monotonic()
        self.say("RUNNING", started=now, ended=None if limit is None else now + limit)

    def _environment(self) -> dict[str, str]:
        """The submitter's environment (sbatch's --export=ALL) with the job's variables."""
        request, record = self.request, self.record
        own = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("SLURM", "SBATCH_", "SRUN_"))
        }
        # Ranks meet on loopback: a laptop's name may lead nowhere, or into a VPN.
        own.setdefault("GLOO_SOCKET_IFNAME", "lo0" if sys.platform == "darwin" else "lo")
        own.setdefault("PET_LOCAL_ADDR", "127.0.0.1")
        own.setdefault("LUMITUI_PYTHON", sys.executable)
        sizes = [request.tasks // request.nodes] * request.nodes
        sizes[: request.tasks % request.nodes] = [sizes[0] + 1] * (request.tasks % request.nodes)
        given = {
            "SLURM_CPUS_PER_TASK": request.cpus_per_task,
            "SLURM_NTASKS_PER_NODE": request.tasks_per_node,
            "SLURM_GPUS_PER_NODE": request.gpus_per_node or None,
            "SLURM_JOB_ACCOUNT": request.account or None,
            "SLURM_JOB_PARTITION": request.partition or None,
        }
        return (
            own
            | {name: str(value) for name, value in given.items() if value is not None}
            | {
                "PATH": f"{self.spool / 'bin'}:{own.get('PATH', os.defpath)}",
                "LUMITUI_STEPS": str(self.spool / "steps"),
                "SLURM_JOB_ID": record.job,
                "SLURM_JOBID": record.job,
                "SLURM_JOB_NAME": record.name,
                "SLURM_JOB_NODELIST": record.nodes,
                "SLURM_NODELIST": record.nodes,
                "SLURM_JOB_NUM_NODES": str(request.nodes),
                "SLURM_NNODES": str(request.nodes),
                "SLURM_NTASKS": str(request.tasks),
                "SLURM_NPROCS": str(request.tasks),
                "SLURM_TASKS_PER_NODE": ",".join(map(str, sizes)),
                "SLURM_SUBMIT_DIR": str(self.run),
                "SLURMD_NODENAME": record.nodes.partition(",")[0],
                "SLURM_PROCID": "0",
                "SLURM_LOCALID": "0",
                "SLURM_NODEID": "0",
            }
        )

    def _stop(self, *_: object) -> None:
        self.stopped = True

    def say(self, word: str, reason: str = "", **times: float | None) -> None:
        """Put the record into the run's folder with another word."""
        self.record.word, self.record.reason = word, reason
        for name, value in times.items():
            setattr(self.record, name, value)
        self.record.write(self.run)

    def watch(self, door: int) -> tuple[str, str]:
        """Wait for the script's end or a reason to end it: Slurm's word for it, and why."""
        limit = self.request.limit
        end = None if limit is None else self.begun + limit
        warn = None if end is None or not self.request.signal else end - self.request.before
        while True:
            times = [moment for moment in (end, warn) if moment is not None]
            wait = max(0.0, min(times) - time.monotonic()) if times else None
            ready, _, _ = select.select([door, self.wake], [], [], wait)
            if self.wake in ready:
                os.read(self.wake, 512)
            self.reap()
            if self.code is not None:
                return ("FAILED", "NonZeroExitCode") if self.code else ("COMPLETED", "")
            if door in ready and b"cancel" in os.read(door, 4096):
                return "CANCELLED", ""
            if self.stopped:
                return "NODE_FAIL", "its supervisor was told to end: the machine goes down"
            if end is not None and time.monotonic() >= end:
                return "TIMEOUT", "TimeLimit"
            if warn is not None and time.monotonic() >= warn:
                warn = None
                self.warn()

    def reap(self) -> None:
        """Take note of every child that ended; orphans of the job are children too."""
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] == self.script:
                    self.code = os.waitstatus_to_exitcode(ended[1])

    def warn(self) -> None:
        """Send the signal of `--signal` to all processes of all steps, or to the script."""
        if self.request.to_script:
            os.kill(self.script, self.request.signal)
            return
        parents = processes()
        steps = {pid for pid in self.steps() if pid in parents}
        send(below(steps, parents), self.request.signal)

    def steps(self) -> set[int]:
        """The processes that are srun: what is below them are tasks."""
        return {int(entry.name) for entry in (self.spool / "steps").glob("[0-9]*")}

    def members(self) -> set[int]:
        """All processes of the job: below this one or bash, or in a session seen among them.

        torchrun's workers are sessions of their own, and stay when their agent is killed.
        """
        if not self.script:
            return set()
        parents = processes()
        self.sessions.add(self.script)
        found = below({os.getpid(), self.script} if self.code is None else {os.getpid()}, parents)
        found |= {pid for pid in parents if session_of(pid) in self.sessions}
        found -= {os.getpid()}
        self.sessions |= {session_of(pid) for pid in found} - {session_of(0), 0}
        return found

    def kill(self) -> None:
        """End every process of the job: SIGTERM, after KILL_WAIT SIGKILL, until none is left."""
        polite = time.monotonic() + KILL_WAIT
        found = self.members()
        # srun stays to write down what its tasks say at the end, and ends with them.
        for number in (signal.SIGCONT, signal.SIGTERM):
            send(found - self.steps(), number)
        pause = 0.02
        while found and time.monotonic() < polite + _UNKILLABLE:
            time.sleep(pause)
            pause = min(0.5, pause * 1.5)
            self.reap()
            found = self.members()
            if time.monotonic() > polite:
                send(found, signal.SIGKILL)

    def finish(self, word: str, reason: str) -> None:
        """End what is left of the job and write down how it ended."""
        self.sessions = set()
        if self.code is None:
            self.say("COMPLETING", reason)
            why = {"TIMEOUT": " DUE TO TIME LIMIT", "NODE_FAIL": " DUE TO NODE FAILURE"}
            now, node = time.strftime("%Y-%m-%dT%H:%M:%S"), self.record.nodes.partition(",")[0]
            line = f"JOB {self.record.job} ON {node} CANCELLED AT {now}{why.get(word, '')}"
            os.write(self.log, f"slurmstepd: error: *** {line} ***\n".encode())
        else:
            code = self.code
            self.record.exit_code = f"{code}:0" if code >= 0 else f"0:{-code}"
        self.kill()
        self.say(word, reason, ended=time.time())


def submit(name: str, run: Path) -> int:
    """Start a job and print its id."""
    try:
        script = (run / JOB_SCRIPT).read_bytes()
        request = read_request(script.decode("utf-8", "replace"))
        spool = _spool(run, script)
    except (Refused, OSError) as error:
        words = error.strerror if isinstance(error, OSError) else error
        print(f"submit: error: {words}", file=sys.stderr)
        return 1
    record = Record(spool.name, name, str(spool / "door"), partition=request.partition)
    record.submitted = time.time()
    record.nodes = ",".join(f"node{number}" for number in range(1, request.nodes + 1))
    # Both ends: with a writer of its own the door never says that all writers left.
    door = os.open(spool / "door", os.O_RDONLY | os.O_NONBLOCK)
    os.open(spool / "door", os.O_WRONLY)
    answer, answered = os.pipe()
    if os.fork() == 0:
        os.close(answer)
        _supervise(Job(record, request, run, spool), door, answered)
    os.close(answered)
    with open(answer, encoding="utf-8") as reader:
        trouble = reader.read()
    if trouble != "started":
        remove_job(spool)
        print(f"submit: error: {trouble or 'the supervisor ended at once'}", file=sys.stderr)
        return 1
    print(spool.name)
    return 0


def _spool(run: Path, script: bytes) -> Path:
    """Make the job's own folder: the script as it is now, the commands, the door."""
    spool = new_job(run)
    (spool / JOB_SCRIPT).write_bytes(script)
    (spool / "steps").mkdir()
    (spool / "bin").mkdir()
    steps = Path(__file__).absolute().with_name("srun.py")
    for command in ("srun", "scontrol", *(() if shutil.which("timeout") else ("timeout",))):
        stand_in = spool / "bin" / command
        call = f"{quote(sys.executable)} -I -S {quote(str(steps))} {command}"
        stand_in.write_text(f'#!/bin/sh\nexec {call} "$@"\n', encoding="utf-8")
        stand_in.chmod(0o700)
    os.mkfifo(spool / "door", 0o600)
    return spool


def _supervise(job: Job, door: int, answered: int) -> NoReturn:
    """The detached processes: the supervisor, and the one that waits should it be killed."""
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    _adopt_orphans()
    if child := os.fork():
        # Nor does it hold the door: whoever knocks must find that the supervisor is gone.
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
        job.finish(*job.watch(door))
    except OSError as error:
        # The run's folder is gone, or its disk is full: the job ends, whatever can be said of it.
        job.kill()
        with contextlib.suppress(OSError):
            job.say("NODE_FAIL", f"its record could not be written: {error.strerror}")
    remove_job(job.spool)
    os._exit(0)


def _clear(job: Job) -> None:
    """End the job of a supervisor that was killed; what was below that is below this one now."""
    data = read_record(job.run)
    if data and data.get("word") in LIVE:
        job.record = Record(**data)
        job.script = job.record.script
        job.kill()
        job.say("NODE_FAIL", "its supervisor was killed", ended=time.time())
    remove_job(job.spool)


def _adopt_orphans() -> None:
    """Become the parent of descendants whose parents end, instead of init; Linux alone has it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)


def main(arguments: list[str]) -> int:
    """Do what the first argument says."""
    match arguments:
        case ["submit", name, run] if name.startswith("--job-name="):
            return submit(name.removeprefix("--job-name="), Path(run))
        case ["queue", *runs]:
            return queue(runs)
        case ["cancel", *ids]:
            return cancel(ids)
        case _:
            print("usage: supervisor.py submit|queue|cancel", file=sys.stderr)
            return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
