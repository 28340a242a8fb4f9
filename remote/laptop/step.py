"""One step of a job: an srun's tasks as local processes, with their output and signals.

Standard library only, see `supervisor`. The messages are those of srun 22.05, so that programs that
read job logs work here too.
"""

import errno
import os
import selectors
import signal
import subprocess
import time
from dataclasses import dataclass, field

from lumitui.remote.laptop.process_tree import KILL_WAIT
from lumitui.remote.site.core_sets import format_cores

_FORWARDED = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT}
_FORWARDED |= {signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT}
_ENDING = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT}
_LINE = 1 << 16  # a longer line is forwarded in pieces


@dataclass
class Task:
    """One task of a step: a rank of a training run."""

    rank: int
    local: int
    node: int
    process: "subprocess.Popen[bytes] | None" = None
    code: int | None = None
    """Exit code 0 to 255, or a signal as a negative number."""


@dataclass
class LocalStep:
    """One call of srun: its tasks as local processes, each with its own process group."""

    command: list[str]
    tasks: list[Task]
    nodes: list[str]
    number: int
    label: bool = False
    kill_on_bad_exit: bool = False
    cores: "tuple[frozenset[int], ...]" = ()
    """The cores of each local task, from --cpu-bind; empty: all that this process has."""
    deadline: float | None = None
    """The time of SIGKILL; None while nothing is being ended."""
    held: dict[int, bytes] = field(default_factory=dict)
    """The unfinished line of each file descriptor."""
    ended: dict[tuple[int, str], list[int]] = field(default_factory=dict)
    """Failed ranks not yet reported, by node and message."""
    selector: selectors.DefaultSelector = field(default_factory=selectors.DefaultSelector)

    def run(self) -> int:
        """Run all tasks and return the highest exit code, like srun."""
        wake, woken = os.pipe()
        for end in (wake, woken):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
        for handled in (*_FORWARDED, signal.SIGCHLD):
            signal.signal(handled, lambda *_: None)
        self.selector.register(wake, selectors.EVENT_READ)
        everything = os.sched_getaffinity(0) if self.cores else set[int]()
        for task in self.tasks:
            if self.cores:
                _bind(self.cores[task.local % len(self.cores)], everything)
            self._start(task)
        if self.cores:
            os.sched_setaffinity(0, everything)
        while True:
            self._reap()
            if all(task.code is not None for task in self.tasks):
                break
            for key, _ in self.selector.select(self._timeout()):
                if key.fd == wake:
                    for number in os.read(wake, 512):
                        self._signalled(number)
                else:
                    self._read(key.fd)
            if self.deadline and time.monotonic() > self.deadline:
                self._send(signal.SIGKILL)
        self._send(signal.SIGKILL, leftovers=True)
        self._drain()
        self._report()
        codes = [task.code or 0 for task in self.tasks]
        return max(128 - code if code < 0 else code for code in codes)

    def _timeout(self) -> float | None:
        return None if self.deadline is None else max(0.05, self.deadline - time.monotonic())

    def _start(self, task: Task) -> None:
        environment = os.environ | {
            "SLURM_PROCID": str(task.rank),
            "SLURM_LOCALID": str(task.local),
            "SLURM_NODEID": str(task.node),
            "SLURMD_NODENAME": self.nodes[task.node],
            # torchrun sends its address to the others, and the node names have no addresses here.
            "PET_LOCAL_ADDR": "127.0.0.1",
            "LUMITUI_NODE": self.nodes[task.node],
            "SLURM_STEP_ID": str(self.number),
            "SLURM_STEPID": str(self.number),
            "SLURM_NTASKS": str(len(self.tasks)),
            "SLURM_NPROCS": str(len(self.tasks)),
            "SLURM_STEP_NUM_TASKS": str(len(self.tasks)),
            "SLURM_NNODES": str(len({other.node for other in self.tasks})),
            "SLURM_STEP_NUM_NODES": str(len({other.node for other in self.tasks})),
        }
        pipe = subprocess.PIPE if self.label else None
        try:
            task.process = subprocess.Popen(
                self.command, env=environment, stdout=pipe, stderr=pipe, bufsize=0, process_group=0
            )
        except OSError as error:
            words = os.strerror(error.errno or errno.EIO)
            line = f"slurmstepd: error: execve(): {self.command[0]}: {words}\n"
            _write(2, self._prefix(task) + line.encode())
            self._finish(task, error.errno or 1)
            return
        for out, file in ((1, task.process.stdout), (2, task.process.stderr)):
            if file is not None:
                os.set_blocking(file.fileno(), False)
                self.held[file.fileno()] = b""
                self.selector.register(file, selectors.EVENT_READ, (task, out))

    def _prefix(self, task: Task) -> bytes:
        width = len(str(len(self.tasks) - 1))
        return f"{task.rank:{width}d}: ".encode() if self.label else b""

    def _read(self, fd: int) -> bool:
        """Forward complete lines of one pipe; return False if there is nothing to read."""
        key = self.selector.get_map().get(fd)
        if key is None:
            return False
        task, out = key.data
        try:
            data = os.read(fd, _LINE)
        except BlockingIOError:
            return False
        *lines, rest = (self.held[fd] + data).split(b"\n")
        if rest and (not data or len(rest) >= _LINE):
            lines, rest = [*lines, rest], b""
        self.held[fd] = rest
        if lines:
            prefix = self._prefix(task)
            _write(out, b"".join(prefix + line + b"\n" for line in lines))
        if not data:
            self.selector.unregister(fd)
        return bool(data)

    def _drain(self) -> None:
        for key in list(self.selector.get_map().values()):
            if key.data is not None:
                while self._read(key.fd):
                    pass
                if self.held[key.fd]:  # a process outside the group still holds the pipe
                    _write(key.data[1], self._prefix(key.data[0]) + self.held[key.fd] + b"\n")

    def _reap(self) -> None:
        for task in self.tasks:
            if task.code is None and task.process is not None and task.process.poll() is not None:
                for file in (task.process.stdout, task.process.stderr):
                    while file is not None and self._read(file.fileno()):
                        pass
                self._finish(task, task.process.returncode)
        if self.deadline is None:
            self._report()

    def _finish(self, task: Task, code: int) -> None:
        task.code = code
        if code == 0:
            return
        words = f"Exited with exit code {code}" if code > 0 else signal.strsignal(-code)
        self.ended.setdefault((task.node, str(words).partition(":")[0]), []).append(task.rank)

    def _report(self) -> None:
        """Report failed tasks; with --kill-on-bad-exit, end the others."""
        failed = bool(self.ended)
        for (node, words), ranks in self.ended.items():
            noun = "task" if len(ranks) == 1 else "tasks"
            report(f"error: {self.nodes[node]}: {noun} {format_cores(ranks)}: {words}")
        self.ended.clear()
        if failed and self.kill_on_bad_exit and self.deadline is None:
            if any(task.code is None for task in self.tasks):
                job = os.environ.get("SLURM_JOB_ID", "0")
                report(f"launch/slurm: _step_signal: Terminating StepId={job}.{self.number}")
            self._end()

    def _end(self) -> None:
        if self.deadline is None:
            self.deadline = time.monotonic() + KILL_WAIT
            self._send(signal.SIGCONT)
            self._send(signal.SIGTERM)

    def _signalled(self, number: int) -> None:
        if number in _ENDING:
            if self.deadline is None:
                report("forcing job termination")
            self._end()
        elif number in _FORWARDED:
            self._send(signal.Signals(number))

    def _send(self, number: signal.Signals, *, leftovers: bool = False) -> None:
        """Signal the group of every running task; with `leftovers`, also of ended ones."""
        for task in self.tasks:
            if task.process is not None and (leftovers or task.code is None):
                try:
                    os.killpg(task.process.pid, number)
                except (ProcessLookupError, PermissionError):  # macOS: for a group of zombies
                    continue


def _bind(cores: frozenset[int], everything: set[int]) -> None:
    """Bind to a task's cores, which the next started process inherits."""
    try:
        os.sched_setaffinity(0, cores)
    except OSError as error:  # as with slurmstepd, the task runs unbound, which the proof shows
        os.sched_setaffinity(0, everything)
        why = os.strerror(error.errno or errno.EINVAL)
        line = f"slurmstepd: error: sched_setaffinity({format_cores(cores)}): {why}\n"
        _write(2, line.encode())


def report(words: str) -> None:
    """Write `words` to standard error like srun."""
    _write(2, f"srun: {words}\n".encode())


def _write(out: int, data: bytes) -> None:
    while data:
        try:
            data = data[os.write(out, data) :]
        except BlockingIOError:
            time.sleep(0.01)
        except BrokenPipeError:  # `srun … | head`: the tasks continue, as under Slurm
            return
