"""One batch job as plain processes: its environment, its limit, its signals, its end.

Standard library only, see `supervisor`.
"""

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

from lumitui.remote.laptop.batch_options import BatchRequest
from lumitui.remote.laptop.job_store import CANCEL, COMMANDS, REQUEUE, STEPS, JobRecord
from lumitui.remote.laptop.process_tree import (
    KILL_WAIT,
    STEPS_VARIABLE,
    below,
    processes,
    send,
    session_of,
)
from lumitui.remote.site.run_folder import JOB_SCRIPT, attempt_log

REQUEUED = "REQUEUED"
"""Slurm's state of a requeued attempt; no record ends with it."""
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER, prctl(2)
_UNKILLABLE = 60.0  # slurm.conf(5), UnkillableStepTimeout


class BatchJob:
    """One job, in the process that supervises it."""

    def __init__(self, record: JobRecord, request: BatchRequest, run: Path, folder: Path) -> None:
        self.record, self.request, self.run, self.folder = record, request, run, folder
        self.script = 0
        """The pid of bash, which is also its session."""
        self.code: int | None = None
        """The exit code of bash, 0 to 255, or a signal as a negative number."""
        self.stopped = False
        self.wake = -1
        """Becomes readable when a signal arrives."""
        self.restarts = 0
        """Number of times the script requeued its own job, as Slurm counts."""
        self.sessions: set[int] = set()

    def start_again(self) -> None:
        """End the rest of an attempt, and start the next one: `scontrol requeue`.

        Raises:
            OSError: it could not be started.
        """
        self.kill()
        self.code, self.sessions = None, set()
        self.restarts += 1
        self.record.submitted = time.time()
        os.close(self.log)
        self.start()

    def start(self) -> None:
        """Start bash on the copy of the script; OSError if it could not be started."""
        adopt_orphans()
        if self.wake < 0:
            self.wake, woken = os.pipe()
            for end in (self.wake, woken):
                os.set_blocking(end, False)
            signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._stop)
        # The submit step ignores some of these, and every child would ignore them too.
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
            signal.signal(number, signal.SIG_DFL)
        log = os.open(self.run / attempt_log(1), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        bash = "/bin/bash" if os.access("/bin/bash", os.X_OK) else "bash"
        # Kept: a Popen that goes out of scope waits for its child, and the exit code would be lost.
        self.bash = subprocess.Popen(
            [bash, str(self.folder / JOB_SCRIPT)],
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
        self.write_state("RUNNING", started=now, ended=None if limit is None else now + limit)

    def _environment(self) -> dict[str, str]:
        """Return the submitter's environment (sbatch's --export=ALL) with the job's variables."""
        request, record = self.request, self.record
        own = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("SLURM", "SBATCH_", "SRUN_"))
        }
        # Ranks meet on loopback: a laptop's host name may not resolve, or may resolve to a VPN
        # address.
        own.setdefault("GLOO_SOCKET_IFNAME", "lo0" if sys.platform == "darwin" else "lo")
        own.setdefault("PET_LOCAL_ADDR", "127.0.0.1")
        own.setdefault("LUMITUI_PYTHON", sys.executable)
        sizes = [request.tasks // request.nodes] * request.nodes
        sizes[: request.tasks % request.nodes] = [sizes[0] + 1] * (request.tasks % request.nodes)
        derived = {
            "SLURM_CPUS_PER_TASK": request.cpus_per_task,
            "SLURM_NTASKS_PER_NODE": request.tasks_per_node,
            "SLURM_GPUS_PER_NODE": request.gpus_per_node or None,
            "SLURM_JOB_ACCOUNT": request.account or None,
            "SLURM_JOB_PARTITION": request.partition or None,
            "SLURM_RESTART_COUNT": self.restarts or None,
        }
        return (
            own
            | {name: str(value) for name, value in derived.items() if value is not None}
            | {
                "PATH": f"{self.folder / COMMANDS}:{own.get('PATH', os.defpath)}",
                STEPS_VARIABLE: str(self.folder / STEPS),
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

    def write_state(self, word: str, reason: str = "", **times: float | None) -> None:
        """Write the record into the run's folder, with Slurm's new state."""
        self.record.word, self.record.reason = word, reason
        for name, value in times.items():
            setattr(self.record, name, value)
        self.record.write(self.run)

    def watch(self, door: int) -> tuple[str, str]:
        """Wait until the script ends or must end; return Slurm's state and the reason."""
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
            requests = _said_at(door)
            if REQUEUE in requests and CANCEL not in requests:
                return REQUEUED, ""
            if self.code is not None:
                return ("FAILED", "NonZeroExitCode") if self.code else ("COMPLETED", "")
            if CANCEL in requests:
                return "CANCELLED", ""
            if self.stopped:
                return "NODE_FAIL", "its supervisor was stopped: the machine is shutting down"
            if end is not None and time.monotonic() >= end:
                return "TIMEOUT", "TimeLimit"
            if warn is not None and time.monotonic() >= warn:
                warn = None
                self.warn()

    def reap(self) -> None:
        """Collect every child that ended; the job's orphans are also children."""
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] == self.script:
                    self.code = os.waitstatus_to_exitcode(ended[1])

    def warn(self) -> None:
        """Send the signal of `--signal` to all processes of all steps, or only to the script."""
        if self.request.to_script:
            os.kill(self.script, self.request.signal)
            return
        parents = processes()
        steps = {pid for pid in self.steps() if pid in parents}
        send(below(steps, parents), self.request.signal)

    def steps(self) -> set[int]:
        """Return the processes that are srun; their descendants are tasks."""
        return {int(entry.name) for entry in (self.folder / STEPS).glob("[0-9]*")}

    def members(self) -> set[int]:
        """Return all processes of the job: below this one or bash, or in a session seen there.

        torchrun's workers have sessions of their own, and stay when their agent is killed.
        """
        if not self.script:
            return set()
        parents = processes()
        self.sessions.add(self.script)
        pids = below({os.getpid(), self.script} if self.code is None else {os.getpid()}, parents)
        pids |= {pid for pid in parents if session_of(pid) in self.sessions}
        pids -= {os.getpid()}
        self.sessions |= {session_of(pid) for pid in pids} - {session_of(0), 0}
        return pids

    def kill(self) -> None:
        """End every process of the job: SIGTERM, after KILL_WAIT SIGKILL until all have ended."""
        deadline = time.monotonic() + KILL_WAIT
        pids = self.members()
        # srun stays: it passes on what its tasks print at the end, and ends with them.
        for number in (signal.SIGCONT, signal.SIGTERM):
            send(pids - self.steps(), number)
        pause = 0.02
        while pids and time.monotonic() < deadline + _UNKILLABLE:
            time.sleep(pause)
            pause = min(0.5, pause * 1.5)
            self.reap()
            pids = self.members()
            if time.monotonic() > deadline:
                send(pids, signal.SIGKILL)

    def finish(self, word: str, reason: str) -> None:
        """End the rest of the job and record its end."""
        self.sessions = set()
        if self.code is None:
            self.write_state("COMPLETING", reason)
            cause = {"TIMEOUT": " DUE TO TIME LIMIT", "NODE_FAIL": " DUE TO NODE FAILURE"}
            now, node = time.strftime("%Y-%m-%dT%H:%M:%S"), self.record.nodes.partition(",")[0]
            line = f"JOB {self.record.job} ON {node} CANCELLED AT {now}{cause.get(word, '')}"
            os.write(self.log, f"slurmstepd: error: *** {line} ***\n".encode())
        else:
            code = self.code
            self.record.exit_code = f"{code}:0" if code >= 0 else f"0:{-code}"
        self.kill()
        self.write_state(word, reason, ended=time.time())


def _said_at(door: int) -> bytes:
    """Return the message received, after collecting every child that ended before."""
    try:
        return os.read(door, 4096)
    except BlockingIOError:
        return b""


def adopt_orphans() -> None:
    """Become the parent, instead of init, of orphaned descendants; only on Linux."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
