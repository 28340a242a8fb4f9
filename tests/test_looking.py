"""One look at a site, with real processes: metrics before the end, logs read while they grow."""

import threading
from pathlib import Path

import pytest

from lumitui.app import looking
from lumitui.app.runs import Runs
from lumitui.app.tailing import log_path, read_end
from lumitui.remote.local import Local
from lumitui.remote.scheduler import State
from lumitui.remote.watching import parse_files
from tests.jobs import finish, hello_job, wait_until
from tests.runs_made import a_run
from tests.test_slurm_parsers import WATCHES

STEPS = 3000
# 120 kB, a line longer than an answer, 120 kB; written at once, and the job is over.
WRITER = f"""\
#!/bin/bash
line() {{ printf '{{"step": %d, "pad": "%060d"}}\\n' $(seq -f "%g 0" $1 $2); }}
exec >>"$RUN_DIR/metrics.jsonl"
line 1 {STEPS // 2}; printf '{{"step": 0, "pad": "%0200000d"}}\\n' 0
line {STEPS // 2 + 1} {STEPS}
"""


def test_a_run_ends_when_all_its_metrics_are_here(
    runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    project = tmp_path / "project"
    project.mkdir()
    (project / "program").write_text(WRITER)
    (project / "program").chmod(0o755)
    job = hello_job(
        site="laptop", partition="local", gpus_per_node=1, cpus_per_task=1, script="program",
        proof="off", container={"none": True},
    )  # fmt: skip
    run = runs.send(runs.preview(job, project))
    wait_until(Path(run.folder, "attempt-1.exit").exists, 60)
    # As when the link is cut after the poll.
    rounds = looking.MOST_ROUNDS
    monkeypatch.setattr(looking, "MOST_ROUNDS", 0)
    wait_until(lambda: "metrics" in _reason(runs, run.id), 60)
    part = runs.history.get(run.id)
    assert (part.state, part.exits) == (State.FINISHING, 0)
    assert 0 < part.metrics_offset <= 65536
    monkeypatch.setattr(looking, "MOST_ROUNDS", rounds)
    done = finish(runs, run)
    assert (done.state, done.rc) == (State.DONE, 0)
    assert [point.step for point in runs.history.metrics(run.id)] == list(range(1, STEPS + 1))
    assert runs.history.broken_metrics(run.id) == 1
    assert done.metrics_offset == Path(run.folder, "metrics.jsonl").stat().st_size


def _reason(runs: Runs, run_id: str) -> str:
    assert runs.refresh("laptop").requests == 1
    return runs.history.get(run_id).reason


def test_a_line_longer_than_an_answer_is_passed_over() -> None:
    text = b"M metrics 0\n" + b"x" * 20 + b"\nM end\nM metrics 1\nab\ncd\nM end\n"
    first, second = parse_files(text, "M", WATCHES, most=20).values()
    assert (first.metrics, first.more_metrics) == (b"x" * 20, True)
    assert (second.metrics, second.more_metrics) == (b"ab\n", False)


def test_the_end_of_a_growing_log_is_read_exactly(tmp_path: Path) -> None:
    run = a_run(folder=str(tmp_path))
    log = Path(log_path(run))
    over = threading.Event()

    def write() -> None:
        with log.open("ab", buffering=0) as file:
            for number in range(10**7):
                if over.is_set():
                    return
                file.write(b"%07d\n" % number)

    log.write_bytes(b"")
    writer = threading.Thread(target=write)
    writer.start()
    transport = Local()
    try:
        for _ in range(30):
            start, data = read_end(transport, run, None, 5000)
            with log.open("rb") as file:
                file.seek(start)
                assert file.read(len(data)) == data
            assert len(data) == min(5000, start + len(data))
        assert start > 0
    finally:
        over.set()
        writer.join()
        transport.close()
    assert read_end(transport, run, None, 10) == (log.stat().st_size - 10, log.read_bytes()[-10:])
