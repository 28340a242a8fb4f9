"""A site that wants a key and a code, in the TUI and on the command line: asked once, on purpose.

Real sshd with PAM in front of the mini cluster's login user, real Slurm behind it.
"""

import re
import shutil
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from textual.pilot import Pilot

from lumitui.app.history.run import Run
from lumitui.app.runs import Runs
from lumitui.app.tui import app as tui
from lumitui.app.tui.app import LumiApp
from lumitui.app.tui.dialogs.line_dialog import LineDialog
from lumitui.app.tui.dialogs.notice_dialogs import ErrorDialog
from lumitui.remote.site.errors import AnswerNeeded
from tests.support.jobs.small_jobs import hello_job, wait_until
from tests.support.program.command_line import lt, on_terminal, told
from tests.support.program.driven_tui import app_of, sees, shown, until
from tests.support.program.home import Home
from tests.support.servers.asking_sshd import CODE, Asking, asking_sshd
from tests.support.servers.cluster import Cluster
from tests.support.servers.sshd import Answers

TICKING = """
import sys, time
for number in range(3000):
    print("tick", number, flush=True)
    time.sleep(0.2)
"""


@dataclass
class Guarded:
    """The mini cluster behind a code, and a run that goes on there."""

    server: Asking
    run: Run
    home: Home

    @property
    def logins(self) -> int:
        return self.server.sshd.logged("Accepted keyboard-interactive/pam")

    @property
    def connections(self) -> int:
        return self.server.sshd.logged("Connection from")

    def lose(self) -> None:
        """End the connection at the server."""
        self.server.sshd.drop()
        wait_until(lambda: not self.server.sshd.sessions(), 10, "the end of the connection")


@pytest.fixture(scope="module")
def guard(cluster: Cluster) -> Iterator[Asking]:
    # Not pytest's folder: the login user must read it.
    folder = Path(tempfile.mkdtemp(prefix="guard-"))
    folder.chmod(0o755)
    config = (cluster.root / "ssh" / "sshd_config").read_text()
    environment = next(line for line in config.splitlines() if line.startswith("SetEnv "))
    ways = "publickey,keyboard-interactive"
    try:
        with asking_sshd(folder, CODE, methods=ways, options=(environment,)) as server:
            server.sshd.trust()
            for name in ("authorized", "codes"):
                (folder / name).touch()
                (folder / name).chmod(0o644)
            yield server
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def guarded(
    guard: Asking,
    cluster: Cluster,
    cluster_runs: Runs,
    home: Home,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Guarded]:
    """A run is under way; then its site is reached through the guard only."""
    monkeypatch.setattr(tui, "TICK", 0.1)
    (tmp_path / "tick.py").write_text(TICKING)
    spec = hello_job(script="tick.py", gpus_per_node=1, launcher="plain", strategy="single")
    run = cluster_runs.send(cluster_runs.preview(spec, tmp_path))
    profile = home.config / "sites" / "minilumi.yaml"
    own = guard.folder / "own"
    own.write_text(
        f"Host minilumi\n  User {cluster.user}\n" + guard.sshd.config.read_text().lstrip()
    )
    direct = profile.read_text()
    text = direct.replace(str(cluster.ssh_config), str(own))
    profile.write_text(re.sub("poll_seconds: .*", "poll_seconds: 0.2", text))
    guard.codes("111111", "222222", "333333")
    yield Guarded(guard, run, home)
    profile.write_text(direct)  # the guard would ask for a code again
    cluster_runs.cancel(run.id)


async def asked(pilot: Pilot[int]) -> None:
    await until(pilot, lambda: isinstance(pilot.app.screen, LineDialog), "the question")
    await sees(pilot, "Verification code:")


async def refreshes(pilot: Pilot[int], count: int = 3) -> None:
    """Wait for `count` more refreshes that the clock starts, begun and ended."""
    counted: list[object] = []
    app = app_of(pilot)
    ended = app.schedule.ended

    def count_them(*given: object, **named: object) -> None:
        counted.append(given)
        app.schedule._sites["minilumi"].failures = 0  # no back-off: the test would wait
        ended(*given, **named)  # type: ignore[arg-type]

    app.schedule.ended = count_them  # type: ignore[method-assign]
    await until(pilot, lambda: len(counted) >= count, f"{count} refreshes")
    del app.schedule.ended


async def test_the_tui_asks_once_for_each_r_and_never_by_itself(guarded: Guarded) -> None:
    before, connections = guarded.logins, guarded.connections
    async with LumiApp(guarded.home.settings).run_test(size=(80, 24)) as pilot:
        await sees(pilot, "(?s)login needed.*Needs your code.*[Pp]ress r")
        first = guarded.connections
        await refreshes(pilot)
        assert guarded.connections == first <= connections + 1, "nothing is sent meanwhile"
        assert app_of(pilot).schedule.requests == 0

        await pilot.press("r")
        await asked(pilot)
        await pilot.press(*"111111", "enter")
        await until(pilot, lambda: "login needed" not in shown(pilot), "a fresh state")
        assert guarded.logins == before + 1

        guarded.lose()
        await sees(pilot, "login needed")
        await refreshes(pilot)
        assert not isinstance(pilot.app.screen, LineDialog)
        assert guarded.connections == first + 1

        await pilot.press("r")
        await asked(pilot)
        await pilot.press("escape")
        await sees(pilot, "was not completed|Needs your code")
        await refreshes(pilot)
        assert not isinstance(pilot.app.screen, LineDialog | ErrorDialog)
        assert guarded.connections == first + 2

        await pilot.press("r")
        await asked(pilot)
        await pilot.press(*"222222", "enter")
        await until(pilot, lambda: "login needed" not in shown(pilot), "a fresh state again")
        assert guarded.logins == before + 2
        assert guarded.server.sshd.logged("Failed keyboard-interactive") == 0


async def test_a_log_on_the_screen_waits_for_the_person_and_goes_on(guarded: Guarded) -> None:
    async with LumiApp(guarded.home.settings).run_test(size=(80, 24)) as pilot:
        await pilot.press("l")
        await asked(pilot)
        await pilot.press(*"111111", "enter")
        await sees(pilot, "tick 1")
        guarded.lose()
        await sees(pilot, "waiting: Needs your code")
        lost = guarded.connections
        await pilot.pause(1.5)
        assert guarded.connections == lost and not isinstance(pilot.app.screen, LineDialog)
        await pilot.press("r")
        await asked(pilot)
        await pilot.press(*"222222", "enter")
        await until(pilot, lambda: "waiting" not in shown(pilot), "the log to go on")
        view = [int(line.split()[1]) for line in pilot.app.screen.query_one("LogView").lines]  # type: ignore[attr-defined]
        assert view == list(range(view[0], view[0] + len(view))), "no line is lost or doubled"


def test_the_command_line_asks_on_the_terminal_and_only_there(guarded: Guarded) -> None:
    home = guarded.home
    code, text = on_terminal(home, ["status"], "111111\n", "Verification code:")
    assert code == 0 and guarded.run.id[:8] in text, text
    assert "111111" not in text, "a code is not shown"
    words = told(lt(home, "logs", guarded.run.id), 3, "was not completed")
    assert "there is no terminal" in words


def test_waiting_and_following_end_with_a_sentence_when_a_code_is_needed(guarded: Guarded) -> None:
    answers = Answers("111111", "222222")
    runs = Runs(guarded.home.settings, ask=answers)
    with ThreadPoolExecutor(2) as threads:
        runs.refresh()
        waiting = threads.submit(runs.wait, guarded.run.id, timeout=60, stop=lambda: False)
        following = threads.submit(lambda: list(runs.follow(guarded.run.id)))
        sessions = guarded.server.sshd.logged("Starting session")
        wait_until(lambda: guarded.server.sshd.logged("Starting session") > sessions + 2, 20)
        guarded.lose()
        for ended in (waiting, following):
            error = ended.exception(30)
            assert isinstance(error, AnswerNeeded) and "lumitui status" in error.hint, error
    assert len(answers.questions) == 1
    runs.refresh()
    assert len(answers.questions) == 2
    runs.close()
