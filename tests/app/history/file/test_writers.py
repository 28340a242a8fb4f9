"""Several real processes at one history: the TUI, commands, and kill -9 at any moment."""

import json
import subprocess
from pathlib import Path

import pytest

from lumitui.app.history.file.sqlite_errors import PendingWarnings
from lumitui.app.history.history import History
from lumitui.app.job.settings import Settings
from lumitui.app.tui.app import LumiApp
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.made_runs import a_run
from tests.support.program.child import child
from tests.support.program.command_line import PROGRAM, environ
from tests.support.program.driven_tui import ended, submit, until
from tests.support.program.home import Home

# Two runs that always change together, and a row of runs and metrics of each writer's own.
WRITER = """
import sys
from pathlib import Path
from lumitui.app.history.history import History
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.made_runs import a_run
path, name, rounds = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
history = History(path)
for number in range(rounds):
    run = a_run(f"{name}-{number:06d}", state=State.DONE, script="x" * 20_000)
    history.begin(run)
    history.metrics.add(run.id, [b'{"step": 1}', b'{"step": 2}'], (0, 24))
    words = f"{name} {number}"
    history.update_many([("left", {"note": words}), ("right", {"note": words})])
    history.update(run.id, note="written")
history.close()
assert not history.take_warnings()
"""
READER = """
import sys
from pathlib import Path
from lumitui.app.history.history import History
history = History(Path(sys.argv[1]))
looks = 0
while not Path(sys.argv[2]).exists() or looks < 20:
    notes = {run.id: run.note for run in history.page(limit=1000)}
    assert notes["left"] == notes["right"], notes
    assert len(notes) <= history.count()
    looks += 1
print(looks)
"""


@pytest.mark.slow
async def test_the_tui_and_commands_write_at_once_and_lose_nothing(
    home: Home, settings: Settings, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warned: list[str] = []
    monkeypatch.setattr(PendingWarnings, "add", lambda self, sentence: warned.append(sentence))
    writers, rounds, done = ("a", "b", "c"), 40, tmp_path / "done"
    app = LumiApp(settings)
    async with app.run_test(size=(100, 30)) as pilot:
        for name in ("left", "right"):
            app.runs.history.begin(a_run(name, state=State.DONE))
        path = str(settings.history)
        processes = [child(WRITER, path, name, str(rounds)) for name in writers]
        reader = child(READER, path, str(done))
        commands = [
            subprocess.Popen(
                [*PROGRAM, *words], env=environ(home), stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, text=True, cwd=project,
            )
            for words in (
                ("submit", "job.yaml", "--yes", "--json"), ("history", "--json"), ("status",)
            )
        ]  # fmt: skip
        own = await ended(pilot, (await submit(pilot)).id)
        everything = [*processes, *commands]
        await until(pilot, lambda: all(p.poll() is not None for p in everything), "the end", 120)
        done.touch()
        await until(pilot, lambda: reader.poll() is not None, "the reader's end", 60)
        for process in (*everything, reader):
            out, err = process.communicate()
            assert process.returncode == 0, err
            assert "locked" not in out + err and "held by" not in out + err
        assert len(app.screen_stack) <= 2, "a dialog tells an error"
        assert warned == []
        commanded = json.loads(subprocess.run(
            [*PROGRAM, "history", "--filter", "hello", "--json"], env=environ(home),
            capture_output=True, text=True, check=True,
        ).stdout)["data"]  # fmt: skip
        assert own.state is State.DONE
        assert len(commanded) == 2

    history = History(settings.history)
    assert history.count() == len(writers) * rounds + 2 + len(commanded)
    for name in writers:
        for number in range(rounds):
            run = history.get(f"{name}-{number:06d}")
            assert (run.note, run.metrics_offset) == ("written", 24)
            assert len(history.metrics.of(run.id)) == 2
    assert history.facts(check=True).damage == ""
    history.close()


# It forks what it kills: a new interpreter would spend its second on imports.
KILLER = """
import os, random, signal, sys, time
from pathlib import Path
from lumitui.app.history.file import sqlite_file
from lumitui.app.history.history import History
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.made_runs import a_run

folder, seed, kills = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
sqlite_file.is_shared = lambda path: sys.argv[4] == "shared"
chance = random.Random(seed)
written = 0

def write(path, name, pipe):
    history = History(path)
    for number in range(100_000):
        run = a_run(f"{name}-{number:06d}", script="x" * chance.randrange(50_000))
        history.begin(run)
        os.write(pipe, f"begun {run.id}\\n".encode())
        history.metrics.add(run.id, [b'{"step": 1}'], (0, 12))
        history.update(run.id, note="written", state=State.QUEUED, job_id="1")
        os.write(pipe, f"written {run.id}\\n".encode())

def check(path, told):
    history = History(path)
    warnings = history.take_warnings()
    assert not warnings, warnings
    assert history._file.rows("PRAGMA integrity_check")[0][0] == "ok"
    unfinished = {run.id: run for run in history.unfinished()}
    for what, run_id in told:
        run = unfinished[run_id]
        if what == "written":
            assert (run.note, run.job_id, run.metrics_offset) == ("written", "1", 12), run
            assert len(history.metrics.of(run_id)) == 1
    for run in unfinished.values():
        # Begun, and nobody knows more: shown as what it is.
        assert run.note == "written" or (run.state, run.job_id) == (State.SENDING, None), run
    history.close()

for kill in range(kills):
    # Every fifth one dies while the file is made.
    path = folder / f"{kill - kill % 5}" / "history.db"
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        write(path, f"k{kill:04d}", writing)
    os.close(writing)
    early = kill % 5 == 0
    if not early:
        first = os.read(reading, 1)
    time.sleep(chance.random() * (0.03 if early else 0.06))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with os.fdopen(reading) as pipe:
        text = ("" if early else first.decode()) + pipe.read()
    told = [line.split() for line in text.splitlines()]
    written += len(told)
    check(path, told)

# While a damaged file is set aside.
for kill in range(max(5, kills // 10)):
    path = folder / f"damaged-{kill}" / "history.db"
    path.parent.mkdir()
    path.write_bytes(b"damaged" * 1000)
    child = os.fork()
    if not child:
        History(path)
        os._exit(0)
    time.sleep(chance.random() * 0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    history = History(path)
    history.begin(a_run())
    history.close()
    (kept,) = path.parent.glob("history.db.corrupt-*")
    assert kept.read_bytes() == b"damaged" * 1000
print(written)
"""


def kills(folder: Path, seed: int, count: int, place: str = "local") -> int:
    """Kill `count` writers at random moments; return how many writes they had told before."""
    killer = child(KILLER, str(folder), str(seed), str(count), place)
    out, err = killer.communicate(timeout=500)
    assert killer.returncode == 0, err
    return int(out)


def test_kill_9_at_any_moment_loses_nothing_that_was_told(tmp_path: Path) -> None:
    assert kills(tmp_path, seed=1, count=30) > 30


@pytest.mark.slow
@pytest.mark.parametrize("place", ["local", "shared"])
@pytest.mark.parametrize("seed", [2, 3])
def test_many_kills_at_any_moment_lose_nothing_that_was_told(
    tmp_path: Path, seed: int, place: str
) -> None:
    assert kills(tmp_path, seed=seed, count=200, place=place) > 200
