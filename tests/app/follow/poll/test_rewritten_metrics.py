"""A program writes its metrics.jsonl anew: the points of the old file are dropped."""

import time
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from lumitui.app.follow.poll import poll_site
from lumitui.app.history.history import History
from lumitui.app.runs import Runs
from lumitui.remote.connect import Connection
from lumitui.remote.scheduler.run_files import poll_files
from lumitui.remote.scheduler.scheduler_protocol import Poll, State
from lumitui.remote.transport.transport import Transport
from tests.support.jobs.endings import send, start_again
from tests.support.jobs.made_runs import a_run
from tests.support.jobs.small_jobs import finish, wait_until
from tests.support.servers.cluster import Cluster

RUN = "vit-tiny-000001"


class Watcher:
    """Polls one run's folder as at a site whose queue says nothing."""

    def __init__(self, transport: Transport, folder: Path) -> None:
        self.file = folder / "run" / "metrics.jsonl"
        self.file.parent.mkdir()
        self.history = History(folder / "history.db")
        self.history.begin(a_run(RUN, folder=str(self.file.parent), job_id="7"))
        scheduler = SimpleNamespace(poll=lambda watches: Poll({}, poll_files(transport, watches)))
        self.connection = cast(
            Connection, SimpleNamespace(transport=transport, scheduler=scheduler)
        )

    def poll(self) -> tuple[str, ...]:
        """Poll once; return the warnings."""
        return poll_site([self.history.get(RUN)], self.connection, self.history).warnings

    def losses(self) -> list[float | None]:
        """Return the loss of each step that is kept."""
        return [point.loss for point in self.history.metrics.of(RUN) if point.event == "step"]


def lines(first: int, count: int) -> str:
    return "".join(f'{{"step": {n - first}, "loss": {n}}}\n' for n in range(first, first + count))


@pytest.mark.parametrize(
    ("count", "head"),
    [(1, ""), (41, ""), (90, '{"event": "start", "n": 1}\n'), (3000, "not json\n")],
)  # fmt: skip
def test_a_file_that_is_written_anew_replaces_the_points(
    transport: Transport, tmp_path: Path, count: int, head: str
) -> None:
    watcher = Watcher(transport, tmp_path)
    watcher.file.write_text(head + "broken\n" + lines(0, 40))
    assert watcher.poll() == ()
    assert watcher.losses() == list(range(40))
    watcher.file.write_text(head + lines(100, count))
    (warning,) = watcher.poll()
    assert "rewritten" in warning
    assert watcher.losses() == list(range(100, 100 + count))
    assert watcher.history.metrics.broken(RUN) == (head == "not json\n")
    assert watcher.history.get(RUN).metrics_offset == watcher.file.stat().st_size
    # It goes on like any other.
    with watcher.file.open("a") as file:
        file.write(lines(7, 2))
    assert watcher.poll() == ()
    assert watcher.losses()[count:] == [7, 8]


def test_another_file_with_lines_of_the_same_length_is_recognised_by_them(
    transport: Transport, tmp_path: Path
) -> None:
    watcher = Watcher(transport, tmp_path)
    for first in (1000, 2000, 3000):
        watcher.file.write_text(lines(first, first // 100))
        assert len(watcher.poll()) == (first > 1000)
        assert watcher.losses() == list(range(first, first + first // 100))


def test_another_file_whose_first_line_is_longer_than_the_whole_old_one(
    transport: Transport, tmp_path: Path
) -> None:
    watcher = Watcher(transport, tmp_path)
    watcher.file.write_text(lines(10, 2))
    watcher.poll()
    watcher.file.write_text('{"note": "' + "x" * 200 + '", "loss": 50}\n' + lines(60, 1))
    (warning,) = watcher.poll()
    assert "rewritten" in warning
    assert watcher.losses() == [50, 60]


def test_a_file_that_grows_is_never_taken_for_another(transport: Transport, tmp_path: Path) -> None:
    watcher = Watcher(transport, tmp_path)
    odd = ['{"loss": 1}', "", '{"loss": 2}\r', "half a li", " [] ", '{"loss": 3}\r{"loss": 4}',
           '{"pad": "' + "é" * 700 + '", "loss": 5}', "\u2028", '{"loss": 6, "x": "é\u2028"} ',
           '{"loss": 7, "x": "\\ud800"}']  # fmt: skip
    content = ("\n".join(odd) + "\n").encode() + b'{"loss": 8, "x": "\xff"}\n\xff\n' + b"x" * 600
    content = (content + b'\n{"loss": 9}\n\n') * 2
    for size in (11, 3, 17, 64, 1, 350, 700, 40, 5, 900) * 2:
        with watcher.file.open("ab") as file:
            at = file.tell()
            file.write(content[at : at + size])
        assert watcher.poll() == ()
    with watcher.file.open("ab") as file:
        file.write(content[file.tell() :])
    assert watcher.poll() == ()
    assert watcher.losses() == [1, 2, 3, 4, 5, 6, 7, 8, 9] * 2
    assert watcher.history.metrics.broken(RUN) == 2 * 5


def test_what_another_process_has_added_meanwhile_stays(
    transport: Transport, tmp_path: Path
) -> None:
    watcher = Watcher(transport, tmp_path)
    watcher.file.write_text(lines(0, 2))
    before = watcher.history.get(RUN)
    watcher.poll()
    watcher.file.write_text(lines(50, 1))
    watcher.poll()
    # The poll was before both, the write comes after.
    watcher.history.metrics.add(RUN, [b"{}"], (0, 3), instead=before.metrics_offset)
    watcher.history.metrics.add(RUN, [b"{}"], (0, 3), instead=999)
    assert watcher.losses() == [50]


# Of its first attempt 40 points, then fewer, then more than those; each waits to be ended.
WRITER = """\
#!/bin/bash
attempt=$((${SLURM_RESTART_COUNT:-0} + 1))
counts=(0 40 15 60)
for step in $(seq ${counts[$attempt]}); do
  echo "{\\"step\\": $step, \\"loss\\": $attempt.$step}"
done >"$RUN_DIR/metrics.jsonl"
[ $attempt -lt 3 ] || exit 0
sleep 600 & wait
"""


def test_a_requeued_job_that_begins_its_metrics_anew(
    cluster_runs: Runs, cluster: Cluster, tmp_path: Path
) -> None:
    runs, project = cluster_runs, tmp_path / "project"
    project.mkdir()
    (project / "program").write_text(WRITER)
    (project / "program").chmod(0o755)
    run = send(runs, project, "anew", gpus_per_node=1)

    def points() -> list[float | None]:
        runs.refresh(run.site)
        assert runs.history.get(run.id).state is not State.FAILED
        return [point.loss for point in runs.history.metrics.of(run.id)]

    for attempt, count in ((1, 40), (2, 15)):
        told = [float(f"{attempt}.{step}") for step in range(1, count + 1)]
        wait_until(lambda told=told: points() == told, 90, f"attempt {attempt}")  # type: ignore[misc]
        assert cluster.admin("scontrol", "requeue", str(run.job_id)).returncode == 0
        # slurmd refuses a start in the second in which it revoked the one before.
        time.sleep(1.5)
        start_again(cluster, run)
    done = finish(runs, run)
    assert (done.state, done.attempt) == (State.DONE, 3)
    assert points() == [float(f"3.{step}") for step in range(1, 61)]
