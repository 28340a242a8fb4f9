"""The site of the recording: local folders that grow while its jobs train, and a queue.

It answers polls, logs and lists of files, and refuses everything else.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from lumitui.app.runs.tour.recording import RecordedJob
from lumitui.remote.connect import Connection
from lumitui.remote.laptop.scheduler import Process
from lumitui.remote.scheduler.cluster_overview import ClusterOverview, Nodes, QueuedJob
from lumitui.remote.scheduler.run_files import files_script, parse_files
from lumitui.remote.scheduler.scheduler_protocol import JobStatus, Poll, Watch
from lumitui.remote.scheduler.slurm import Slurm
from lumitui.remote.site.errors import RefusedError
from lumitui.remote.site.profile import Site
from lumitui.remote.site.run_folder import BINDING, METRICS, attempt_exit, attempt_log
from lumitui.remote.site.states import STATES, State
from lumitui.remote.ssh.prompts import Ask
from lumitui.remote.transport.local import Local
from lumitui.remote.transport.records import new_marker, record_functions
from lumitui.remote.transport.request_log import Logged, RequestLog, current_purpose, purpose
from lumitui.remote.transport.transport import Result

_ANSWERED = frozenset({"poll", "metrics", "log", "list files"})
"""The purposes of requests that only read files of the recording."""
_BETWEEN = 0.25
"""Seconds between two writes of the jobs' output."""
_WORDS = {state: word for word, state in reversed([*STATES.items()])}


class TourRefusal(RefusedError):
    """The tour refuses what would reach a cluster."""

    heading = "The tour only shows"


def refused() -> TourRefusal:
    """Return the error for everything that would reach a cluster."""
    return TourRefusal(
        "This is a recording without a cluster: lumitui sends nothing.",
        "Leave the tour with q. `lumitui demo` trains on this machine; `lumitui` opens your own "
        "history, where 0 connects your cluster.",
    )


class RecordedFiles:
    """A transport to the recording's folders below `folder`, which appear below `root`."""

    def __init__(self, folder: Path, root: str) -> None:
        self.log = RequestLog()
        self._local, self._folder, self._root = Logged(Local(), self.log), str(folder), root

    def run(
        self, script: str, *, stdin: bytes | Iterable[bytes] = b"", timeout: float = 60.0
    ) -> Result:
        """Run a script that reads; see `Transport.run`.

        Raises:
            RefusedError: the script has another purpose.
        """
        result = self._local.run(self._here(script), timeout=timeout)
        out = result.out.replace(self._folder.encode(), self._root.encode())
        return Result(result.code, out, result.err)

    def stream(self, script: str, *, stop: Callable[[], bool]) -> Iterator[bytes]:
        """Yield the output of a script that reads; see `Transport.stream`."""
        return self._local.stream(self._here(script), stop=stop)

    def close(self) -> None:
        """Nothing is open."""

    def _here(self, script: str) -> str:
        if current_purpose() not in _ANSWERED:
            raise refused()
        return script.replace(self._root, self._folder)


class RecordedSlurm(Slurm):
    """The recording's Slurm; its transport refuses all other requests."""

    def __init__(
        self, transport: RecordedFiles, jobs: Mapping[str, RecordedJob], nodes: tuple[Nodes, ...]
    ) -> None:
        """Use `jobs`, by the ids of their runs."""
        super().__init__(transport)
        self._jobs, self._nodes = jobs, nodes

    @purpose("poll")
    def poll(self, watches: Sequence[Watch]) -> Poll:
        """See Scheduler.poll."""
        marker, now = new_marker(), time.time()
        script = f"{record_functions(marker)}\n{files_script(watches)}"
        files = parse_files(self._transport.run(script).out, marker, watches)
        ids = [watch.run for watch in watches if watch.run in self._jobs]
        return Poll({run: status(self._jobs[run], now) for run in ids}, files, clock=now)

    def overview(self, budget: str) -> ClusterOverview:
        """See Scheduler.overview."""
        now = time.time()
        queue = (_queued(job, now) for job in self._jobs.values() if job.ended > now)
        return ClusterOverview(self._nodes, tuple(queue))


def status(job: RecordedJob, now: float) -> JobStatus:
    """Return Slurm's status of a job at `now`."""
    state = job.facts.state if now >= job.ended else State.RUNNING
    waits = now < job.started
    if waits:
        state = State.QUEUED
    return JobStatus(
        job_id=job.run.job_id or "",
        state=state,
        word=_WORDS[state],
        reason="Priority" if waits else "",
        submitted=job.submitted,
        started=job.started,
        ended=job.ended if state.is_final else None,
        nodes="" if waits else job.hosts,
        exit_code=f"{job.facts.exit}:0",
        partition=job.run.spec.partition,
    )


def _queued(job: RecordedJob, now: float) -> QueuedJob:
    row = status(job, now)
    minutes = max(0, int(now - job.started)) // 60
    return QueuedJob(
        row.job_id, row.word, row.partition, job.run.layout.nodes, f"{minutes}:00",
        job.run.spec.time, row.started, row.reason or "None", job.run.name,
    )  # fmt: skip


class Player:
    """Writes the jobs' output into the folders of their runs at the recorded times."""

    def __init__(self, jobs: Mapping[Path, RecordedJob]) -> None:
        """Play the jobs, each in its folder."""
        self._left = {folder: iter(job.lines) for folder, job in jobs.items()}
        self._held = {folder: next(lines, None) for folder, lines in self._left.items()}
        self._jobs, self._stop = dict(jobs), threading.Event()
        self._thread = threading.Thread(target=self._play, name="recording", daemon=True)

    def start(self) -> None:
        """Write the output up to now, and continue in a thread."""
        self._write()
        self._thread.start()

    def close(self) -> None:
        """Stop writing."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _play(self) -> None:
        while not self._stop.wait(_BETWEEN):
            self._write()

    def _write(self) -> None:
        now = time.time()
        for folder, job in list(self._jobs.items()):
            folder.mkdir(parents=True, exist_ok=True)
            if now < job.started:
                continue
            if not (folder / BINDING).exists():
                (folder / BINDING).write_text(job.binding)
            self._append(folder, now - job.started)
            if now >= job.ended:
                (folder / attempt_exit(1)).write_text(job.exit_file)
                del self._jobs[folder]

    def _append(self, folder: Path, seconds: float) -> None:
        metrics, log = list[str](), list[str]()
        line = self._held[folder]
        while line is not None and line.at <= seconds:
            metrics += [line.metrics] if line.metrics else []
            log += [line.log] if line.log else []
            line = next(self._left[folder], None)
        self._held[folder] = line
        for name, texts in ((METRICS, metrics), (attempt_log(1), log)):
            with (folder / name).open("a", encoding="utf-8") as file:
                file.write("".join(f"{text}\n" for text in texts))


def connection(
    site: Site, ask: Ask, files: RecordedFiles, slurm: Callable[[RecordedFiles], Slurm], user: str
) -> Connection:
    """Return the connection to the recording, for any site."""
    scheduler = Process(files) if site.scheduler == "process" else slurm(files)
    return Connection(files, scheduler, lambda: user, "~", log=files.log)
