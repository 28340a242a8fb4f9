"""The dialog that sends a run again: its plan follows the fields, and Close sends nothing."""

from dataclasses import replace
from pathlib import Path
from threading import Event
from time import time
from typing import Any

import pytest
from textual.widgets import Button, Input
from textual.widgets._footer import FooterKey

from lumitui.app.history.listing.series_runs import RunSeries, SeriesMember
from lumitui.app.history.run import Run
from lumitui.app.job.settings import Settings
from lumitui.app.scale.resubmission import CodeNews
from lumitui.app.tui.app import LumiApp
from lumitui.app.tui.dialogs.confirm_dialog import Confirm
from lumitui.app.tui.dialogs.resubmit_dialog import ResubmitDialog, changed_options
from lumitui.app.tui.screens.run_screen import RunScreen
from lumitui.app.tui.widgets.choice_button import ChoiceButton
from lumitui.app.tui.widgets.tables.run_table import RunTable
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.trained_runs import train
from tests.support.program.driven_tui import (
    cut_off,
    ended,
    kept,
    keys_below,
    runs_of,
    sees,
    sent,
    shown,
    submit,
    until,
)


async def test_plus_doubles_the_run_just_sent_and_sends_a_run_with_a_parent(
    settings: Settings, project: Path
) -> None:
    app = LumiApp(settings)
    older = kept(app)
    async with app.run_test(size=(80, 24)) as pilot:
        await sees(pilot, older.id)
        run = await submit(pilot)
        await pilot.press("1", "+")
        await until(pilot, lambda: isinstance(app.screen, ResubmitDialog), "the dialog")
        await sees(pilot, f"Resubmit {run.id}")
        await sees(pilot, "nodes +1 +2")
        await sees(pilot, "ranks +2 +4")
        assert not cut_off(pilot)
        button = app.screen.query_one("#yes", Button)
        await until(pilot, lambda: not button.disabled, "a plan that can be sent")
        # The confirmation is that of New, and a second enter, or a held one, is a no.
        for keys, yes in (("enter enter", "enter"), ("ctrl+s", "y")):
            await pilot.press(*keys.split())
            await sees(pilot, f"(?s)Send {run.id} again.*billed +nothing.*Send \\(y\\)")
            await pilot.press(yes)
        await until(pilot, lambda: len(runs_of(pilot)) == 3, "a second run")
        await until(pilot, lambda: isinstance(app.screen, RunScreen), "its screen")
        child = runs_of(pilot)[0]
        assert child.parent == run.id
        assert (child.layout.nodes, child.layout.world_size) == (2, 4)
        assert child.snapshot == run.snapshot, "the same code"
        assert (await ended(pilot, child.id)).state is State.DONE
        # The cursor is the person's again: what comes later does not move it.
        await pilot.press("1", "G")
        table = app.screen.query_one(RunTable)
        await until(pilot, lambda: table.selected == older.id, "on the older run")


def test_only_the_changed_options_are_shown() -> None:
    before, after = "a.yaml --lr 0.1 --steps 5 --bf16", "a.yaml --lr 0.2 --steps 5"
    assert changed_options(before, after) == ("--lr 0.1 --bf16", "--lr 0.2")


async def test_the_scripts_own_arguments_are_named_with_one_key(
    settings: Settings, project: Path
) -> None:
    (project / "hello.py").write_text(
        "import argparse\nparser = argparse.ArgumentParser()\n"
        "parser.add_argument('--batch-size', type=int, default=8)\nparser.parse_args()\n"
    )
    app = LumiApp(settings)
    run = kept(app)
    app.runs.history.update(run.id, snapshot=None)  # the current code is the only one
    async with app.run_test(size=(100, 30)) as pilot:
        app.sends.resubmit(run.id, 2)
        await sees(pilot, r"Press \^n to set `scale=\{batch: ")
        await until(pilot, lambda: "^n Set scale" in keys_below(pilot), "its key")
        await pilot.press("ctrl+n")
        await sees(pilot, r"args .*--batch-size 8 [\s\S]*global batch +16 +32")
        await pilot.resize_terminal(100, 16)
        await sees(pilot, "▾ more below  ↑↓ choose a size")
        app.screen.query_one("#plan").scroll_end(animate=False)
        await until(pilot, lambda: "▾ more" not in shown(pilot), "no mark at the end")
        app.screen.query_one("#nodes", Input).value = ""
        await sees(pilot, "The number of nodes is missing")
        await pilot.press("ctrl+s")
        await until(pilot, lambda: len(app._notifications) > 0, "why not")
        assert "Nothing was sent." in next(iter(app._notifications)).message


async def test_the_dialog_follows_its_fields_and_a_mouse_is_enough(
    settings: Settings, project: Path
) -> None:
    app = LumiApp(settings)
    async with app.run_test(size=(80, 24)) as pilot:
        run = await sent(pilot, "fail.yaml")
        assert (await ended(pilot, run.id)).state is State.FAILED
        (project / "hello.py").write_text("print('it works now')")
        await sees(pilot, run.id)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, RunScreen), "the run")
        await sees(pilot, "exit +code 1")
        (key,) = [key for key in app.screen.query(FooterKey) if key.description == "Resubmit"]
        await pilot.click(key)
        await sees(pilot, "Send on 1 node ")
        app.screen.query_one("#nodes", Input).value = "2"
        await sees(pilot, "nodes +1 +2")
        close = app.screen.query_one("#no").region
        app.screen.query_one("#nodes", Input).value = "1"
        await sees(pilot, "Send on 1 node ")
        assert app.screen.query_one("#no").region == close, "a click on it must not send"
        await pilot.click("#no")
        await pilot.press("R")
        await until(pilot, lambda: isinstance(app.screen, ResubmitDialog), "the dialog")
        await sees(pilot, "Changed since the run: hello.py. This sends your current code.")
        await sees(pilot, "◂ current code ▸")
        await sees(pilot, "code +the code that failed +your current code")
        await pilot.press("ctrl+s")
        await sees(pilot, f"Send {run.id} again with your current code")
        await pilot.press("n")
        app.screen.query_one("#code").focus()
        await until(pilot, lambda: "◂ ▸ Change" in keys_below(pilot), "its keys")
        for arrow, words in (("left", "same code"), ("right", "current code")):
            await pilot.press(arrow)
            await sees(pilot, f"◂ {words} ▸")
            assert app.screen.focused is app.screen.query_one("#code")
        await pilot.press("ctrl+o")
        await sees(pilot, "◂ same code ▸")
        await sees(pilot, "This sends the code that failed.")
        nodes = app.screen.query_one("#nodes", Input)
        assert nodes.value == "1"
        nodes.value = "3"
        await sees(pilot, "nodes +1 +3")
        nodes.value = "99"
        button = app.screen.query_one("#yes", Button)
        await until(pilot, lambda: "99 nodes are more than" in shown(pilot), "what is wrong")
        assert button.disabled and str(button.label) == "Send ^s", "it names no other size"
        time, args = (app.screen.query_one(name, Input) for name in ("#time", "#args"))
        assert args.value == "--fail"
        for line, text, words in (
            (nodes, "0", "A job cannot have 0 nodes. Give a number from 1 to 10,000."),
            (nodes, "999999", "A job cannot have 999,999 nodes. Give a number"),
            (nodes, "-2", "-2 is not a number of nodes. Type 1 to 10,000."),
            (nodes, "", "The number of nodes is missing. Type one."),
            (time, "soon", "time: 'soon' is not a time"),
            (args, '--name "a', "`args` has a quote that is not closed. Close it"),
        ):
            line.value = text
            await sees(pilot, words)
            assert "--set" not in shown(pilot) and "schema" not in shown(pilot)
            assert line.value == text, "to be corrected"
            nodes.value = "2"
        time.value = "00:05:00"
        args.value, _ = "--fast 'a b", args.focus()
        await pilot.press("end", "?", "'")
        await sees(pilot, r"arguments +--fail +--fast a b\?")
        nodes.value = "1"
        await sees(pilot, "Send on 1 node ")
        app.screen.query_one("#start").focus()
        await pilot.press("space")
        await until(pilot, lambda: "does not define how the script resumes" in shown(pilot), "no")
        await pilot.press("escape")
        assert len(runs_of(pilot)) == 1


async def test_what_followed_a_run_is_named_and_can_be_taken_along(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = LumiApp(settings)
    history = app.runs.history
    run = train(history, {1: 1000.0})[0]
    history.update(run.id, snapshot="0123456789abcdef")
    later = replace(history.get(run.id), id="evaluate-000001", name="evaluate", token="e" * 16)
    history.begin(later)
    history.update(later.id, state=State.DONE, job_id="9")
    members = (SeriesMember(1, "vit", "{}"), SeriesMember(2, "evaluate", '{"follows": "done"}'))
    history.series.begin(RunSeries("vit-1", "then", "lumi", "", 1.0, members))
    history.series.claim("vit-1", 1, run.id)
    history.series.claim("vit-1", 2, later.id)
    parents: list[str] = []

    def send(preview: Any, *, resubmission: Any, begun: Any, **rest: Any) -> Run:
        parents.append(resubmission.plan.parent.id)
        new = replace(later, id=f"again-{len(parents)}", token=f"{len(parents):016x}")
        begun(new)
        history.begin(new)
        history.update(new.id, state=State.QUEUED, job_id=str(80 + len(parents)), updated=time())
        return history.get(new.id)

    monkeypatch.setattr(app.runs, "send", send)
    async with app.run_test(size=(100, 34)) as pilot:
        app.sends.resubmit(run.id, 1)
        await until(pilot, lambda: isinstance(app.screen, ResubmitDialog), "the dialog")
        await sees(pilot, "evaluate-000001 followed it and is not resubmitted.")
        await pilot.click("#then")
        await sees(pilot, "evaluate-000001 followed it and is resubmitted.")
        button = app.screen.query_one("#yes", Button)
        await until(pilot, lambda: not button.disabled, "a plan that can be sent")
        await pilot.press("ctrl+s")
        await until(pilot, lambda: isinstance(app.screen, Confirm), "the question")
        await sees(pilot, "run 2 +vit-tiny")
        await pilot.press("y")
        await until(pilot, lambda: len(parents) == 2, "both are sent")
    assert parents == [run.id, later.id]


async def test_a_letter_typed_while_the_plan_is_made_answers_the_question(
    settings: Settings, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, made = LumiApp(settings), Event()
    run = kept(app)
    app.runs.history.update(run.id, snapshot=None)
    plan = app.runs.plan_resubmission

    def slowly(*given: Any, **options: Any) -> Any:
        assert made.wait(30)
        return plan(*given, **options)

    monkeypatch.setattr(app.runs, "plan_resubmission", slowly)
    async with app.run_test(size=(80, 24)) as pilot:
        app.sends.resubmit(run.id, 1)
        await sees(pilot, "args  ")
        args = app.screen.query_one("#args", Input)
        args.focus()
        before = args.value
        await pilot.press("ctrl+s", "n")
        await sees(pilot, "Checking; a confirmation follows …")
        await pilot.pause(1.0)  # longer than a key waits for a busy app
        assert args.value == before
        asked: list[str] = []
        monkeypatch.setattr(Confirm, "action_close", lambda self: asked.append(self.heading))
        made.set()
        await until(pilot, lambda: bool(asked), "the question got the key")
        assert asked == [f"Send {run.id} again with your current code?"] and args.value == before


async def test_a_choice_of_the_code_stays_when_its_changes_become_known(
    settings: Settings, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, found = LumiApp(settings), Event()
    run, known = kept(app), app.runs.code_news

    def slowly(run_id: str) -> CodeNews:
        assert found.wait(30)
        return known(run_id)

    monkeypatch.setattr(app.runs, "code_news", slowly)
    async with app.run_test(size=(80, 24)) as pilot:
        app.sends.resubmit(run.id, 1)
        await sees(pilot, "same code")
        await pilot.press("ctrl+o")
        await sees(pilot, "current code")
        found.set()
        button = app.screen.query_one("#yes", Button)
        await until(pilot, lambda: not button.disabled, "a plan that can be sent")
        assert app.screen.query_one("#code", ChoiceButton).value == "current"
