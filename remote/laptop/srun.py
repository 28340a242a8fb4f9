"""Stand-ins for srun, scontrol and timeout, for jobs that run as plain processes.

A script of its own, started by path: standard library only, nothing of the package. Each is a
command in the folder that stands first in the job's PATH. The texts of srun are those of Slurm
22.05, so that what reads a job's log reads this one too.
"""

import errno
import os
import selectors
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

ADDRESS = "127.0.0.1"
"""What every node is called as an address: `localhost` may be ::1 for one and not for another."""
KILL_WAIT = float(os.environ.get("LUMITUI_KILL_WAIT", "10"))
"""Seconds from SIGTERM to SIGKILL."""

_FORWARDED = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT}
_FORWARDED |= {signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT}
_ENDING = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT}
_LINE = 1 << 16  # a longer line is given in pieces
_VALUED = """
account chdir constraint cpu-bind cpus-per-gpu cpus-per-task distribution error exclude export
export-file gpu-bind gpus gpus-per-node gpus-per-task gres hint input jobid job-name mem
mem-bind mem-per-cpu mem-per-gpu mpi network nodelist nodes ntasks ntasks-per-gpu
ntasks-per-node open-mode output partition qos relative reservation signal threads-per-core time
wait
"""
_SHORT = {"n": "ntasks", "N": "nodes", "K": "kill-on-bad-exit", "l": "label"}
_SHORT_VALUED = "ACDGJLMNRSTWceimnopqrtwx"


@dataclass
class Task:
    """One rank of a step."""

    rank: int
    local: int
    node: int
    process: "subprocess.Popen[bytes] | None" = None
    code: int | None = None
    """0 to 255 as the program gave it, negative for a signal."""


@dataclass
class Step:
    """One call of srun: tasks as local processes, each with a group of its own."""

    command: list[str]
    tasks: list[Task]
    nodes: list[str]
    number: int
    label: bool = False
    kill_on_bad_exit: bool = False
    deadline: float | None = None
    """When SIGKILL follows; None while nothing is being ended."""
    held: dict[int, bytes] = field(default_factory=dict)
    """File descriptor to the line that has not ended yet."""
    ended: dict[tuple[int, str], list[int]] = field(default_factory=dict)
    """(node, words) to ranks: what is still to be said."""
    selector: selectors.DefaultSelector = field(default_factory=selectors.DefaultSelector)

    def run(self) -> int:
        """Run all tasks and return the highest code, like srun."""
        wake, woken = os.pipe()
        for end in (wake, woken):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
        for handled in (*_FORWARDED, signal.SIGCHLD):
            signal.signal(handled, lambda *_: None)
        self.selector.register(wake, selectors.EVENT_READ)
        for task in self.tasks:
            self._start(task)
        while True:
            self._reap()
            if all(task.code is not None for task in self.tasks):
                break
            for key, _ in self.selector.select(self._patience()):
                if key.fd == wake:
                    for number in os.read(wake, 512):
                        self._signalled(number)
                else:
                    self._read(key.fd)
            if self.deadline and time.monotonic() > self.deadline:
                self._send(signal.SIGKILL)
        self._send(signal.SIGKILL, leftovers=True)
        self._drain()
        self._tell()
        codes = [task.code or 0 for task in self.tasks]
        return max(128 - code if code < 0 else code for code in codes)

    def _patience(self) -> float | None:
        return None if self.deadline is None else max(0.05, self.deadline - time.monotonic())

    def _start(self, task: Task) -> None:
        environment = os.environ | {
            "SLURM_PROCID": str(task.rank),
            "SLURM_LOCALID": str(task.local),
            "SLURM_NODEID": str(task.node),
            "SLURMD_NODENAME": self.nodes[task.node],
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
        """Pass on whole lines of one pipe; false when there is nothing to read now."""
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
            self._tell()

    def _finish(self, task: Task, code: int) -> None:
        task.code = code
        if code == 0:
            return
        words = f"Exited with exit code {code}" if code > 0 else signal.strsignal(-code)
        self.ended.setdefault((task.node, str(words).partition(":")[0]), []).append(task.rank)

    def _tell(self) -> None:
        """Say who ended badly; the first to do so ends the others when that was asked for."""
        failed = bool(self.ended)
        for (node, words), ranks in self.ended.items():
            noun = "task" if len(ranks) == 1 else "tasks"
            _say(f"error: {self.nodes[node]}: {noun} {_ranges(ranks)}: {words}")
        self.ended.clear()
        if failed and self.kill_on_bad_exit and self.deadline is None:
            if any(task.code is None for task in self.tasks):
                job = os.environ.get("SLURM_JOB_ID", "0")
                _say(f"launch/slurm: _step_signal: Terminating StepId={job}.{self.number}")
            self._end()

    def _end(self) -> None:
        if self.deadline is None:
            self.deadline = time.monotonic() + KILL_WAIT
            self._send(signal.SIGCONT)
            self._send(signal.SIGTERM)

    def _signalled(self, number: int) -> None:
        if number in _ENDING:
            if self.deadline is None:
                _say("forcing job termination")
            self._end()
        elif number in _FORWARDED:
            self._send(signal.Signals(number))

    def _send(self, number: signal.Signals, *, leftovers: bool = False) -> None:
        """Signal the group of every task that runs; with `leftovers` of those that ended too."""
        for task in self.tasks:
            if task.process is not None and (leftovers or task.code is None):
                try:
                    os.killpg(task.process.pid, number)
                except (ProcessLookupError, PermissionError):  # macOS: of a group of zombies
                    continue


def _say(words: str) -> None:
    _write(2, f"srun: {words}\n".encode())


def _write(out: int, data: bytes) -> None:
    while data:
        try:
            data = data[os.write(out, data) :]
        except BlockingIOError:
            time.sleep(0.01)
        except BrokenPipeError:  # `srun … | head`: the tasks go on, as under Slurm
            return


def _ranges(ranks: list[int]) -> str:
    """Return ranks as `0-2,4`."""
    parts: list[list[int]] = []
    for rank in sorted(ranks):
        if parts and rank == parts[-1][1] + 1:
            parts[-1][1] = rank
        else:
            parts.append([rank, rank])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)


def parse(arguments: list[str]) -> tuple[dict[str, str], list[str]]:
    """Return srun's options and the command; what has no meaning here is accepted unused."""
    options: dict[str, str] = {}
    words = list(arguments)
    while words and words[0].startswith("-") and words[0] != "-":
        word = words.pop(0)
        if word == "--":
            break
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            if not equals and name in _VALUED.split() and words:
                value = words.pop(0)
        else:
            name, value = _SHORT.get(word[1], word[1]), word[2:]
            if not value and word[1] in _SHORT_VALUED and words:
                value = words.pop(0)
        options[name] = value
    return options, words


def layout(options: dict[str, str], environment: dict[str, str]) -> list[Task]:
    """Return the tasks of a step over the job's nodes, block by block.

    Raises:
        ValueError: a number is none, or less than 1.
    """
    job_nodes = int(environment.get("SLURM_JOB_NUM_NODES", "1"))
    nodes = int(options["nodes"].partition("-")[0]) if "nodes" in options else job_nodes
    per_node = int(options["ntasks-per-node"]) if "ntasks-per-node" in options else None
    if "ntasks" in options:
        count = int(options["ntasks"])
    elif per_node is not None:
        count = nodes * per_node
    else:
        count = int(environment.get("SLURM_NTASKS", "1")) if nodes == job_nodes else nodes
    if min(count, nodes, per_node or 1) < 1 or nodes > job_nodes:
        raise ValueError("Unable to create step: Requested node configuration is not available")
    nodes = min(nodes, count)
    if per_node is not None and count > nodes * per_node:
        raise ValueError("Unable to create step: More processors requested than permitted")
    sizes = [count // nodes + (node < count % nodes) for node in range(nodes)]
    places = [(node, local) for node, size in enumerate(sizes) for local in range(size)]
    return [Task(rank, local, node) for rank, (node, local) in enumerate(places)]


def srun(arguments: list[str]) -> int:
    """Run a command as the tasks of a step."""
    options, command = parse(arguments)
    try:
        tasks = layout(options, dict(os.environ))
    except ValueError as error:
        _say(f"error: {error}")
        return 1
    if not command:
        _say("fatal: No command given to execute.")
        return 1
    names = os.environ.get("SLURM_JOB_NODELIST", "node1").split(",")
    number, mark = 0, None
    if folder := os.environ.get("LUMITUI_STEPS"):
        # The mark tells the supervisor which processes are tasks: those below this one.
        mark = Path(folder) / str(os.getpid())
        mark.touch()
        number = _number(Path(folder))
    bad_exit = options.get("kill-on-bad-exit", "0") != "0"
    try:
        return Step(command, tasks, names, number, "label" in options, bad_exit).run()
    finally:
        if mark is not None:
            mark.unlink(missing_ok=True)


def _number(folder: Path) -> int:
    """Return the step's number: the first that no other step of the job has."""
    number = 0
    while True:
        try:
            (folder / f"step.{number}").touch(exist_ok=False)
        except FileExistsError:
            number += 1
        else:
            return number


def scontrol(arguments: list[str]) -> int:
    """Print the nodes' addresses (`show hostnames LIST`)."""
    if [word.lower() for word in arguments[:2]] not in (
        ["show", "hostnames"],
        ["show", "hostname"],
    ):
        print("scontrol: error: only `show hostnames` is available here.", file=sys.stderr)
        return 1
    names = arguments[2] if len(arguments) > 2 else os.environ.get("SLURM_JOB_NODELIST", "node1")
    print("\n".join(ADDRESS for _ in names.split(",")))
    return 0


def timeout(arguments: list[str]) -> int:
    """Run a command for at most so many seconds; 124 when that passed, like GNU's."""
    seconds, *command = arguments
    with subprocess.Popen(command) as process:
        try:
            code = process.wait(float(seconds))
        except subprocess.TimeoutExpired:
            process.terminate()
            try:
                process.wait(KILL_WAIT + 2)
            except subprocess.TimeoutExpired:
                process.kill()
            return 124
    return 128 - code if code < 0 else code


if __name__ == "__main__":
    program = {"srun": srun, "scontrol": scontrol, "timeout": timeout}[sys.argv[1]]
    sys.exit(program(sys.argv[2:]))
