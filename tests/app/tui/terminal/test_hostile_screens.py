"""Hostile text on the screens: shown as text, and no control character reaches the terminal."""

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot

from lumitui.app.history.run import Provenance
from lumitui.app.job.settings import Settings
from lumitui.app.job.spec import JobSpec
from lumitui.app.runs import files_here
from lumitui.app.tui.app import LumiApp
from lumitui.app.tui.dialogs.confirm_dialog import Confirm
from lumitui.app.tui.dialogs.line_dialog import LineDialog
from lumitui.app.tui.dialogs.notice_dialogs import ErrorDialog
from lumitui.app.tui.dialogs.resubmit_dialog import ResubmitDialog
from lumitui.app.tui.dialogs.sending import SendingDialog
from lumitui.app.tui.screens.run_screen import PANES, RunScreen
from lumitui.app.tui.widgets.log.log_view import LogView
from lumitui.app.tui.widgets.plot import sparkline
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site.errors import LumiError
from lumitui.remote.site.safe_text import CONTROL_CHARACTERS
from tests.support.attacks.hostile_text import UNPASSABLE, one_line, passable, written
from tests.support.jobs.made_runs import a_run
from tests.support.program.driven_tui import screen_lines, sees, shown, until

WORST = "\x1b]0;owned\x07[bold]x[/] \x1b[2J\x9b31m\u202eabc[$x]\\ [@click=app.quit]q[/]"


async def harmless(pilot: Pilot[int]) -> None:
    """Look at every character that the terminal would get once the screen is drawn whole."""
    screen = pilot.app.screen
    await until(pilot, lambda: len(screen_lines(pilot.app)) == screen.size.height, "drawn whole")
    controls = CONTROL_CHARACTERS & set("".join(screen_lines(pilot.app)))
    assert not controls, f"{sorted(map(repr, controls))} on {screen}"


def fill(app: LumiApp, texts: Iterable[str]) -> list[str]:
    """Put a run a text into the history, with the text wherever a site or a person puts some."""
    ids = []
    harmful = CONTROL_CHARACTERS - set("\n\t")
    for number, text in enumerate(texts):
        line = text.replace("\n", " ").replace("\0", "")
        spec = JobSpec(
            name="hostile", site="laptop", partition="local", time="01:00:00", script="x.py",
            args=tuple(words for words in (text,) if not harmful & set(words)),
        )  # fmt: skip
        run = a_run(
            f"hostile-{number:06d}", name=line, site="laptop", spec=spec, script=f"#!{text}\n",
            command=text, folder=f"/scratch/{line}", project=f"/home/{line}", reason=text,
            word=line, nodes_used=line, note=text, job_file=line, state=State.FAILED,
            provenance=Provenance("abc", line, text, True), job_id="7", binding=text,
        )  # fmt: skip
        app.runs.history.begin(run)
        ids.append(run.id)
    return ids


def many() -> str:
    return "\n".join(("[/]".join(UNPASSABLE), *written(passable, 20)))


def line() -> str:
    return " ".join(("[/]".join(UNPASSABLE), *written(one_line, 20)))


@pytest.mark.parametrize("more", [None, pytest.param(many, marks=pytest.mark.slow)])
async def test_every_pane_shows_hostile_text_as_text(
    settings: Settings, project: Path, more: Callable[[], str] | None
) -> None:
    texts = (more(), WORST) if more else (WORST,)
    app = LumiApp(settings)
    async with app.run_test(size=(120, 40)) as pilot:
        ids = fill(app, texts)
        app.history_changed()
        await sees(pilot, "hostile-000000")
        await harmless(pilot)
        for run_id in ids:
            screen = RunScreen(app.runs, run_id, "overview")
            await app.push_screen(screen)
            for pane in PANES:
                if pane != "log":
                    screen.action_pane(pane)
                    await pilot.pause()
                    await harmless(pilot)
        screen.action_pane("overview")
        await sees(pilot, r"\[bold\]x\[/\]")
        assert "[@click=app.quit]q[/]" in shown(pilot) and "[$x]\\" in shown(pilot)


@pytest.mark.parametrize("more", [None, pytest.param(line, marks=pytest.mark.slow)])
async def test_every_dialog_shows_hostile_text_as_text(
    settings: Settings, project: Path, more: Callable[[], str] | None
) -> None:
    texts = (more(), WORST) if more else (WORST,)
    app = LumiApp(settings)
    async with app.run_test(size=(120, 40)) as pilot:
        for text in texts:
            run = replace(a_run(), id=text[:60] or "x")
            for dialog in (
                ErrorDialog(LumiError(text, text)),
                Confirm(f"Submit {text}?", [("what", text)], "Yes"),
                LineDialog("Question", text, secret=True),
                SendingDialog(text),
                ResubmitDialog(run, 2),
            ):
                await app.push_screen(dialog)
                await pilot.pause()
                await harmless(pilot)
                await app.pop_screen()
        # As markup, the second pair of brackets would be lost.
        title = "Submit ${a}[$x][/]?"
        await app.push_screen(Confirm(title, [("what", WORST)], "Yes"))
        await sees(pilot, re.escape(title))
        assert "[@click=app.quit]q[/]" in shown(pilot)
        app.notify(WORST, markup=False)
        await pilot.pause()
        await harmless(pilot)


async def test_a_log_of_everything_is_drawn_as_text(settings: Settings, project: Path) -> None:
    app = LumiApp(settings)
    async with app.run_test(size=(100, 30)) as pilot:
        view = LogView()
        await app.screen.mount(view)
        for text in (WORST, "\0" * 50, "\r\r\r", "\x1b" * 50, *written(passable, 20)):
            view.feed(text.encode() + b"\xff\xfe\n")
        await until(pilot, lambda: len(view.lines) > 20, "the log")
        await harmless(pilot)
        assert any("[bold]x[/]" in line for line in view.lines)


def test_only_files_are_looked_at_for_jobs(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("site: laptop\n")
    (tmp_path / "b.yaml").write_bytes(b"site: \xff\n" + b"#" * 1000)
    (tmp_path / "folder.yaml").mkdir()
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "gone.yaml").symlink_to("nowhere")
    assert [path.name for path in files_here(tmp_path)[0]] == ["a.yaml", "b.yaml"]


@pytest.mark.parametrize("values", [[1e308] * 9, [1e308, -1e308, 0.0], [5e-324, 0.0], [0.0], []])
def test_losses_beyond_all_measure_are_drawn(values: list[float]) -> None:
    assert len(sparkline(values, 3)) == (3 if any(abs(value) < 1e300 for value in values) else 0)
