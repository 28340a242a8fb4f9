"""The New screen: a job file as a form, as text, as its script and as a map of its nodes."""

import re
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest
from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.widgets import Button, Input, OptionList

from lumitui.app.explain.run_phrases import Outlook
from lumitui.app.job.settings import Settings
from lumitui.app.job.spec import parse_job
from lumitui.app.launch.draft.job_form import FieldChoice
from lumitui.app.launch.send.draft import Draft, open_draft
from lumitui.app.launch.send.drafts import CheckedDraft
from lumitui.app.runs import Field, Runs
from lumitui.app.tui.app import LumiApp
from lumitui.app.tui.dialogs.confirm_dialog import Confirm
from lumitui.app.tui.dialogs.line_dialog import LineDialog
from lumitui.app.tui.dialogs.notice_dialogs import HelpDialog
from lumitui.app.tui.dialogs.pick import PickDialog
from lumitui.app.tui.panes.compose.compose_views import View, beside
from lumitui.app.tui.panes.compose.field_list import FieldList
from lumitui.app.tui.panes.compose.form_pane import FormPane
from lumitui.app.tui.panes.compose.text_pane import (
    IN_YAML,
    TextEditor,
    field_help,
    hints,
    possible_keys,
)
from lumitui.app.tui.screens import new_screen
from lumitui.app.tui.screens.new_screen import NewScreen
from lumitui.app.tui.screens.runs_screen import RunsScreen
from lumitui.app.tui.widgets import check_wait
from lumitui.app.tui.widgets.launch_text import cost_line
from tests.support.jobs.made_runs import a_run
from tests.support.program.driven_tui import (
    JOB,
    app_of,
    cut_off,
    keys_below,
    runs_of,
    sees,
    shown,
    until,
)

LUMI = """# a trial
name: vit                # short
site: lumi
account: project_462000001
partition: small-g
nodes: 9                 # grows
time: "01:00:00"
script: hello.py
"""


def can_submit(pilot: Pilot[int]) -> bool:
    return not pilot.app.screen.query(".action").first(Button).disabled


def under_cursor(form: FieldList) -> str:
    row = form._row()
    return row.field.key if row and row.field else ""


def text_of(screen: NewScreen) -> str:
    return screen.query_one(TextEditor).text


async def opened(pilot: Pilot[int]) -> NewScreen:
    await until(pilot, lambda: isinstance(pilot.app.screen, NewScreen), "the New screen")
    screen = pilot.app.screen
    assert isinstance(screen, NewScreen)
    return screen


async def test_a_job_given_on_the_command_line_is_open(settings: Settings, project: Path) -> None:
    async with LumiApp(settings, project / "job.yaml").run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "1 node, 2 ranks on CPU" in shown(pilot), "its preview")
        await sees(pilot, "billed +nothing")
        assert not cut_off(pilot)
        # What was said of an earlier text is not shown.
        old = CheckedDraft(Draft("name: old\n", project, "old"), (), (), ())
        (await opened(pilot))._draft_checked(0, old, None)
        await pilot.pause()
        await sees(pilot, "requests")
        assert can_submit(pilot)


async def test_a_typo_stands_at_its_field_and_a_key_fixes_it(
    settings: Settings, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lumitui.app.tui.dialogs.confirm_dialog.PAUSE", 60.0)
    monkeypatch.setattr(check_wait, "UNREAD", 3.0)
    bad = project / "bad.yaml"
    text = JOB.format(launcher="srun", args="") + "nods: 2\nstrategy: [/]\n"
    bad.write_text(text)
    async with LumiApp(settings, bad).run_test(size=(80, 40)) as pilot:
        screen = await opened(pilot)
        await sees(pilot, r"line 9: error: nods: unknown key; did you mean `nodes`")
        await sees(pilot, r"2 errors +\w")
        await sees(pilot, r"bad.yaml\n")
        assert not can_submit(pilot) and pilot.app.screen is screen, "no dialog"
        await pilot.press("enter")  # typed on: applies no fix
        await until(pilot, lambda: len(app_of(pilot)._notifications) > 0, "which key does")
        app_of(pilot).clear_notifications()
        assert not can_submit(pilot)
        await pilot.press("f")
        await sees(pilot, r"nodes +2")
        await pilot.press("s")  # goes to the form and says why
        await until(pilot, lambda: len(app_of(pilot)._notifications) > 0, "the reason")
        form = screen.query_one(FieldList)
        await until(pilot, lambda: form.has_focus, "the form, which the next key reaches", 10)
        await pilot.press("f")
        await until(pilot, lambda: can_submit(pilot), "the second fix")
        await sees(pilot, r"strategy +ddp")
        await sees(pilot, "2 nodes, 4 ranks")
        assert bad.read_text() == text, "nothing is saved by itself"
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, Confirm), "the question")
        assert not cut_off(pilot)
        await pilot.press("y")  # typed fast: not an answer
        assert isinstance(pilot.app.screen, Confirm)
        await pilot.click("#yes")
        await until(pilot, lambda: isinstance(pilot.app.screen, RunsScreen), "the first screen")
        assert runs_of(pilot) == []


async def test_typing_in_a_field_with_a_long_value_appends_to_it() -> None:
    long, short = "{loss: 'loss=([0-9.]+)', lr: 'lr=([0-9.]+)'}", "ddp"
    pane = FormPane()

    class OneForm(App[None]):
        def compose(self) -> ComposeResult:
            yield pane

    async with OneForm().run_test(size=(80, 24)) as pilot:
        for value, typed in ((long, f"{long}x"), (short, "x")):
            row = Field("metrics", "text", value, "", "")
            pane.query_one(FieldList).focus()
            await pilot.pause()
            pane._wanted(FieldList.Wanted(row))
            await pilot.pause()
            await pilot.press("x")
            assert pane.query_one("#field", Input).value == typed


async def test_the_only_note_of_a_field_is_shown_with_its_row(
    settings: Settings, project: Path
) -> None:
    job = project / "lumi.yaml"
    job.write_text(LUMI.replace("nodes: 9 ", "nodes: 1 ") + "gpus_per_node: 2\n")
    (project / "hello.py").write_text('print("loss", 1.5)\n')
    async with LumiApp(settings, job).run_test(size=(120, 50)) as pilot:
        await sees(pilot, r"exclusive +\(false\)[^\n]+\n.*note: Nodes of small-g are")
        await sees(pilot, r"f Fix \(2\)   \^f Fix all")
        await pilot.press("G", "f")  # first what may be wrong, then what a note offers
        await until(pilot, lambda: isinstance(pilot.app.screen, PickDialog), "launchers")
        await pilot.press("escape", *"kkk", "f")
        await sees(pilot, r"metrics +'loss=")


async def test_a_note_below_the_fold_is_counted_and_the_question_shows_it(
    settings: Settings, project: Path
) -> None:
    job, none = project / "lumi.yaml", "The script gets no signal before its time limit of 24:"
    text = LUMI.replace("small-g", "standard-g").replace("01:00", "24:00")
    job.write_text(f"{text}launcher: srun\nstrategy: ddp\nenv: {{A: b}}\n")
    (project / "hello.py").write_text("import os\nprint(os.environ['RANK'])\n")
    async with LumiApp(settings, job).run_test(size=(80, 24)) as pilot:
        await sees(pilot, "1 note .*billed at most")
        assert none not in shown(pilot)
        await pilot.press("s")
        await sees(pilot, f"note +{none}")
        await pilot.press("n")


async def test_help_explains_the_rules_that_the_job_breaks(
    settings: Settings, project: Path
) -> None:
    job = project / "lumi.yaml"
    job.write_text(LUMI)
    async with LumiApp(settings, job).run_test(size=(100, 40)) as pilot:
        await sees(pilot, "9 nodes are more than small-")
        await pilot.press("?")
        await until(pilot, lambda: isinstance(pilot.app.screen, HelpDialog), "the help")
        await pilot.press("G")
        await sees(pilot, r"nodes +error, job files|nodes +error, scripts and job files")


async def test_no_word_is_behind_a_scrollbar_that_comes_with_the_rows(
    settings: Settings, project: Path
) -> None:
    job = project / "lumi.yaml"
    job.write_text(LUMI)
    async with LumiApp(settings, job).run_test(size=(80, 24)) as pilot:
        await sees(pilot, "9 nodes are more than small-")
        form = pilot.app.screen.query_one(FieldList)
        await pilot.press("G", "enter")
        await until(pilot, lambda: form.show_vertical_scrollbar, "a scrollbar")
        room = form.scrollable_content_region.width
        lines = [line for row in form._rows for line in row.lines]
        widest = max(len(line.plain.rstrip()) for line in lines)
        assert lines and widest < room, "a column for the cursor"


@pytest.mark.parametrize("width", [60, 80, 100])
def test_a_likely_price_that_is_too_long_leaves_the_price_at_most(
    settings: Settings, project: Path, width: int
) -> None:
    job = parse_job(LUMI.replace("nodes: 9", "nodes: 1"), "vit.yaml")
    preview = Runs(settings).preview(job, project)
    price = Outlook(preview.launch.price, "0.06", "ddp-af5936", left=100.0, limit=1000.0, asked=0.0)
    line = cost_line((preview,), price, width).plain
    assert re.search(r"^requests .* billed at most [\d.]+ GPU-hours", line), line
    assert "if it runs like ddp-af5936" in cost_line((preview,), price, 200).plain


@pytest.mark.parametrize(
    ("width", "said"),
    [
        (40, "billed at most 1 GPU-hour  time 01:00:00"),
        (58, "1 node, 8 ranks, 8 GPUs  billed at most 1 GPU-hour"),
        (59, "requests 1 node, 8 ranks, 8 GPUs  billed at most 1 GPU-hour"),
    ],
)
def test_the_price_keeps_its_label_in_a_narrow_line(
    settings: Settings, project: Path, width: int, said: str
) -> None:
    preview = Runs(settings).preview(parse_job(LUMI.replace("nodes: 9", "nodes: 1"), ""), project)
    launch = replace(preview.launch, price=replace(preview.launch.price, amount=1.0))
    assert cost_line((replace(preview, launch=launch),), None, width).plain == said


async def test_one_key_asks_the_cluster_about_the_job(settings: Settings, project: Path) -> None:
    async with LumiApp(settings, project / "job.yaml").run_test(size=(100, 30)) as pilot:
        await until(pilot, lambda: can_submit(pilot), "the check")
        await pilot.press("Q")
        said = "The cluster reports no problems."
        await until(
            pilot,
            lambda: said in {toast.message for toast in app_of(pilot)._notifications},
            "the answer",
        )
        assert can_submit(pilot)


async def test_one_key_makes_all_fixes(settings: Settings, project: Path) -> None:
    job = project / "lumi.yaml"
    job.write_text(LUMI + 'luncher: srun\nhang: "00:10:00"\n')
    async with LumiApp(settings, job).run_test(size=(80, 60)) as pilot:
        await sees(pilot, "did you mean `launcher`")
        assert "`hang:` has no effect" not in shown(pilot)  # an effect of the first fix
        await pilot.press("ctrl+f")
        await sees(pilot, r"partition +standard-g")
        (notice,) = app_of(pilot)._notifications
        assert notice.message.startswith("Fixed 3: rename it to launcher, ")
        await until(pilot, lambda: can_submit(pilot), "no error")


@pytest.mark.parametrize("key", ["f", "ctrl+f"])
async def test_a_key_that_finds_nothing_to_fix_says_so(
    key: str, settings: Settings, project: Path
) -> None:
    async with LumiApp(settings, project / "job.yaml").run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: can_submit(pilot), "the check")
        assert "Change" in keys_below(pilot) and "Fix" not in keys_below(pilot)
        await pilot.press(key)
        said = "Nothing here needs fixing."
        await until(
            pilot,
            lambda: said in {toast.message for toast in app_of(pilot)._notifications},
            "the answer",
        )


async def test_a_job_with_an_error_is_sent_after_a_question_that_names_it(
    settings: Settings, project: Path
) -> None:
    job = project / "long.yaml"
    job.write_text(re.sub("time: .*", "time: 2-00:00:00", JOB.format(launcher="srun", args="")))
    async with LumiApp(settings, job).run_test(size=(100, 30)) as pilot:
        await sees(pilot, "1 error  Submit asks for confirmation: ")
        assert can_submit(pilot)
        await pilot.press("ctrl+s")
        await until(pilot, lambda: isinstance(pilot.app.screen, Confirm), "the question")
        await sees(pilot, "Submit hello to laptop with 1 error")
        await sees(pilot, "error +2-00:00:00 is longer than")
        await pilot.press("n")
        assert runs_of(pilot) == []
        await pilot.press("ctrl+s", "y")
        await until(pilot, lambda: len(runs_of(pilot)) == 1, "the run")


async def test_nodes_change_by_a_key_and_everything_follows(
    settings: Settings, project: Path
) -> None:
    job = project / "lumi.yaml"
    job.write_text(LUMI)
    async with LumiApp(settings, job).run_test(size=(140, 44)) as pilot:
        screen = await opened(pilot)
        await sees(pilot, r"9 nodes are more than small-")
        for words in ("#SBATCH --nodes=9", "x9  56 of 64 cores"):
            await sees(pilot, words)
        await pilot.press("f")
        await sees(pilot, r"partition +standard-g")
        await sees(pilot, "0-7   x4444444 GCD4")
        await pilot.press("minus", "minus")
        await sees(pilot, r"nodes +7  - \+")
        await sees(pilot, r"▌ #SBATCH --nodes=7")
        await sees(pilot, r"- #SBATCH --nodes=9")
        await sees(pilot, "at most 28 GPU-hours")
        before = screen.query_one(TextEditor).size.width
        await pilot.press("f2")
        await sees(pilot, r"6  nodes: 7 +# grows")
        assert screen.query_one(TextEditor).has_focus
        assert screen.query_one(TextEditor).size.width > 140 / 3 > before
        await pilot.press("escape", "ctrl+w")
        await until(pilot, lambda: job.read_text() != LUMI, "the saved file")
        saved = LUMI.replace("nodes: 9", "nodes: 7").replace("small-g", "standard-g")
        assert job.read_text() == saved
        await pilot.press("j", "enter", *"3", "enter")
        await sees(pilot, r"gpus_per_node +3")
        await sees(pilot, "warning: standard-g allocates")
        await pilot.press("f2", "ctrl+z")
        await until(pilot, lambda: "gpus_per_node:" not in text_of(screen), "the undone edit")


async def test_a_text_that_is_no_yaml_is_kept_and_its_line_is_named(
    settings: Settings, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check_wait, "UNREAD", 3.0)
    app = LumiApp(settings, project / "job.yaml")
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot)
        await sees(pilot, "requests")
        for words in ("1  name: hello", "#!/bin/bash", "node  2 of"):
            await pilot.press("]")  # types nothing into the text
            await sees(pilot, words)
        await pilot.press("]")
        await sees(pilot, "name +hello")
        await pilot.press("[", "[", "[")
        await sees(pilot, r"⏎ Edit .*\[ \] View")
        await pilot.press("enter")
        area = screen.query_one(TextEditor)
        area.insert("env: {A: [\n", (2, 0))
        await sees(pilot, r"error: line \d+: not valid YAML")
        (wrong,) = area._wrong
        area.move_cursor((0, 0))
        before = area.text
        await pilot.press("ctrl+s", "y", "n")
        await until(pilot, lambda: area.cursor_location == (wrong - 1, 0), "the wrong line")
        await sees(pilot, "Not submitted")
        await until(pilot, lambda: area.has_focus, "the text", 10)
        assert area.text == before and not app._notifications, "meant for the question"
        area.move_cursor((0, 0))
        await pilot.press("escape")
        await sees(pilot, "1 error  ")
        await pilot.press("enter")
        await until(pilot, lambda: area.has_focus, "the text")
        assert area.cursor_location == (wrong - 1, 0)
        await pilot.press("escape")
        assert not can_submit(pilot) and "env: {A: [" in area.text
        await pilot.press("1")  # nothing is lost elsewhere either
        await until(pilot, lambda: isinstance(app.screen, RunsScreen), "the first screen")
        await pilot.press("2")
        screen = await opened(pilot)
        await until(pilot, lambda: "env: {A: [" in screen.query_one(TextEditor).text, "the edits")
        await pilot.press("q")
        await until(pilot, lambda: isinstance(app.screen, Confirm), "the question")
        await sees(pilot, "not saved +job.yaml")
        await pilot.press("n")
        assert app.is_running


async def test_a_run_or_an_example_is_a_beginning(settings: Settings, project: Path) -> None:
    app = LumiApp(settings)
    app.runs.history.begin(a_run("vit-1", note="x"))
    app.runs.history.begin(a_run("node-probe-2", name="node-probe"))
    async with app.run_test(size=(80, 30)) as pilot:
        await pilot.press("2")
        screen = await opened(pilot)
        menu = screen.query_one(OptionList)
        ids = [option.id for option in menu.options]
        assert ids.index(str(project / "job.yaml")) < ids.index("run:vit-1")
        assert ids.index("run:vit-1") < ids.index("example:ddp")
        assert "run:node-probe-2" not in ids
        for option, words in (("run:vit-1", "vit-tiny"), ("example:ddp", r"trainer +ddp")):
            await until(pilot, lambda: menu.display, "the beginnings")
            menu.highlighted = menu.get_option_index(option)
            menu.focus()
            await pilot.press("enter")
            await sees(pilot, words)
            if option.startswith("example"):
                await pilot.press("ctrl+w")
                await until(pilot, lambda: isinstance(app.screen, LineDialog), "where to")
                line = app.screen.query_one("#line", Input)
                line.value = str(project / "from-example.yaml")
                await pilot.press("enter")
                await until(pilot, (project / "from-example.yaml").exists, "the saved file")
                await until(pilot, lambda: app.screen is screen, "the New screen")
            await pilot.press("n")
        # What is typed on the list is a path, whatever the list begins with.
        (project / "off.yaml").write_text(JOB.format(launcher="srun", args="") + "nodes: 2\n")
        await until(pilot, lambda: menu.display and menu.has_focus, "the beginnings")
        await pilot.press(*"off.yaml", "enter")
        await sees(pilot, r"off.yaml\n")
        await pilot.press("n")
        screen.query_one("#path").focus()
        screen.query_one("#path", Input).value = str(project / "l")
        await pilot.press("end", "o")
        await until(pilot, lambda: screen.query_one("#path", Input)._suggestion, "the rest")
        await pilot.press("right", "enter")
        await sees(pilot, "args +--long")


async def test_esc_leads_from_the_starting_points_back_to_the_form(
    settings: Settings, project: Path
) -> None:
    app = LumiApp(settings, project / "job.yaml")
    app.runs.history.begin(a_run("vit-1"))
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot)
        for _ in range(2):
            await until(pilot, lambda: can_submit(pilot), "the form")
            await pilot.press("n")
            await until(pilot, lambda: screen.query_one(OptionList).display, "the list")
            await pilot.press("escape")
        await until(pilot, lambda: can_submit(pilot), "the form again")
        assert app.screen is screen and screen._draft and screen._draft.path
        for keys in (("n", "1"), ("escape", "n", "escape")):  # once from the form, once from Runs
            await pilot.press(*keys)
            await until(pilot, lambda: isinstance(app.screen, RunsScreen), "the first screen")
            await pilot.press("2")
            await opened(pilot)
            await until(pilot, lambda: can_submit(pilot), "the last job file")


async def test_a_field_keeps_its_place_while_it_is_set_and_cleared(
    settings: Settings, project: Path
) -> None:
    async with LumiApp(settings, project / "job.yaml").run_test(size=(80, 24)) as pilot:
        await sees(pilot, "28 more: sweep, longer run, … ▸")
        form = pilot.app.screen.query_one(FieldList)
        await pilot.press("G", "enter", "G", "k", "k", "plus")
        await sees(pilot, r"keep_compiled +false")
        assert under_cursor(form) == "keep_compiled"
        await pilot.press("g", *"jjjjjjjjjjjj", "enter", "k")
        await sees(pilot, r"keep_compiled +false[\s\S]*27 more: sweep, longer run, … ▸")
        assert under_cursor(form) == "keep_compiled"
        await pilot.press("delete")
        await sees(pilot, r"keep_compiled +\(true\)")
        assert under_cursor(form) == "keep_compiled"


async def test_fields_that_unfold_are_seen_and_a_resize_keeps_the_cursor(
    settings: Settings, project: Path
) -> None:
    async with LumiApp(settings, project / "job.yaml").run_test(size=(80, 24)) as pilot:
        await sees(pilot, "28 more: sweep, longer run, … ▸")
        form = pilot.app.screen.query_one(FieldList)
        await pilot.press("G", "enter")
        await sees(pilot, r"longer run, … ▾[\s\S]*modules +\(none\)")
        await pilot.press("G", "k", "k", "k")
        here = under_cursor(form)
        for rows in (40, 24):
            await pilot.resize_terminal(80, rows)
            await pilot.pause()
            assert under_cursor(form) == here


async def test_a_note_with_a_fix_is_not_folded(settings: Settings, project: Path) -> None:
    (project / "lumi.yaml").write_text(LUMI.replace("nodes: 9", "nodes: 1"))
    async with LumiApp(settings, project / "lumi.yaml").run_test(size=(120, 40)) as pilot:
        await sees(pilot, r"use exclusive")
        await until(pilot, lambda: can_submit(pilot), "the check")
        pilot.app.screen.query_one(FieldList).focus()
        await pilot.press("ctrl+f")
        await sees(pilot, r"exclusive +true")


async def test_no_row_moves_when_an_edit_brings_a_finding(
    settings: Settings, project: Path
) -> None:
    job = project / "lumi.yaml"
    job.write_text(LUMI.replace("nodes: 9 ", "nodes: 2 "))
    async with LumiApp(settings, job).run_test(size=(80, 40)) as pilot:
        form = pilot.app.screen.query_one(FieldList)
        await until(pilot, lambda: can_submit(pilot), "the check")
        await pilot.press("G", "enter")
        while under_cursor(form) != "memory":
            await pilot.press("j")
        keys = [row.field.key for row in form._rows if row.is_field and row.field]
        await pilot.press("enter", *"9999G", "enter")
        await sees(pilot, r"▶memory +9999G[^$]*(error|warning|note)")
        assert keys == [row.field.key for row in form._rows if row.is_field and row.field]
        assert under_cursor(form) == "memory"


@pytest.mark.parametrize("size", [(80, 24), (80, 40), (120, 40), (200, 50), (80, 60)])
async def test_the_form_fills_its_rows_with_further_fields(
    size: tuple[int, int], settings: Settings, project: Path
) -> None:
    async with LumiApp(settings, project / "job.yaml").run_test(size=size) as pilot:
        await until(pilot, lambda: can_submit(pilot), "the check")
        form = pilot.app.screen.query_one(FieldList)
        empty = form.size.height - form.virtual_size.height
        assert 0 <= empty <= 2 or " more: " not in shown(pilot)


async def test_what_was_submitted_is_saved_and_its_form_comes_back(
    settings: Settings, project: Path
) -> None:
    app, path = LumiApp(settings), project / "job.yaml"
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("2")
        await pilot.press(*str(path), "enter")
        await until(pilot, lambda: can_submit(pilot), "the check")
        await pilot.press(*"jjjj", "plus", "1", "2")
        await until(pilot, lambda: can_submit(pilot), "the edits that are back")
        await sees(pilot, "not saved")
        await pilot.press("s")
        await sees(pilot, "saves +job.yaml")
        await pilot.press("y")
        await until(pilot, lambda: f"Saved {path}." in said(app), "the message")
        await until(pilot, lambda: len(runs_of(pilot)) == 1, "the run")
        await until(pilot, lambda: not app.under_way, "the end of the send")
        assert "nodes: 2" in path.read_text()
        assert not runs_of(pilot)[0].note, "the file has what was sent"
        await pilot.press("2")
        await sees(pilot, r"nodes +2[^$]+saved")
        path.write_text(path.read_text().replace("nodes: 2", "nodes: 3"))
        await pilot.press("1", "2")
        await sees(pilot, "nodes +3")
        await pilot.press(*"jjjj", "minus", "1")
        app.push_screen(NewScreen(app.runs, path))  # as the guide does
        await sees(pilot, r"nodes +2[^$]+not saved")
        assert "These are your unsaved edits; r reads job.yaml again." in said(app)
        path.write_text(path.read_text() + "# another hand\n")
        await pilot.press("s")
        await sees(pilot, "on disk +job.yaml differs. This sends the text on the screen.")
        assert not re.search("saves +job.yaml", shown(pilot))
        await pilot.press("y")
        await until(pilot, lambda: len(runs_of(pilot)) == 2, "the run")
        await until(pilot, lambda: not app.under_way, "the end of this send")
        assert path.read_text().endswith("# another hand\n")
        assert runs_of(pilot)[0].note == "differs from job.yaml"
        await pilot.press("escape", "1", "n")
        await until(pilot, lambda: isinstance(app.screen, NewScreen), "the first screen")


async def test_kept_edits_are_not_lost_to_those_of_another_job_file(
    settings: Settings, project: Path
) -> None:
    path, other = (project / "job.yaml").resolve(), project / "other.yaml"
    other.write_text(path.read_text())
    ended = LumiApp(settings)
    ended.kept = replace(open_draft(path), text="# edited\n")
    ended.leaving.keep_edits()
    app = LumiApp(settings, other)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: can_submit(pilot), "the other file")
        await pilot.press(*"jjjj", "plus", "1")  # its edits are kept on leaving New
        assert "unsaved edits" not in said(app)
    for job in (path, None):
        app = LumiApp(settings, job)
        async with app.run_test(size=(80, 24)) as pilot:
            await pilot.press(*([] if job else ["2"]))
            await sees(pilot, "# edited|this key is required")
            assert "New (2) has your unsaved edits of job.yaml." in said(app)
            app.leaving.keep_edits()


async def test_a_run_of_a_file_saved_after_its_check_has_no_note(
    settings: Settings, project: Path
) -> None:
    app, path = LumiApp(settings, project / "job.yaml"), project / "job.yaml"
    path.write_text(path.read_text().replace("launcher:", "luncher:"))
    async with app.run_test(size=(100, 40)) as pilot:
        await sees(pilot, "did you mean")
        await pilot.press("ctrl+f")
        await sees(pilot, "not saved")
        await until(pilot, lambda: can_submit(pilot), "the check of the fixed text")
        await pilot.press("ctrl+w")
        await until(pilot, lambda: f"Saved {path}." in said(app), "the message")
        await pilot.press("s", "y")
        await until(pilot, lambda: len(runs_of(pilot)) == 1, "the run")
        await until(pilot, lambda: not app.under_way, "the end of the send")
        await until(pilot, lambda: app.screen.query("LogView"), "the run's screen")
        assert not runs_of(pilot)[0].note


async def test_a_file_that_another_program_changes_is_offered_again(
    settings: Settings, project: Path
) -> None:
    app, path = LumiApp(settings, project / "job.yaml"), project / "job.yaml"
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: can_submit(pilot), "the check")
        path.write_text(path.read_text().replace("hello\n", "changed\n", 1))
        await sees(pilot, r"changed on disk \(f1, r reloads\)")
        assert "Another program changed job.yaml. Press f1, then r to reload it." in said(app)
        assert not cut_off(pilot)
        await pilot.press("f2", "ctrl+w")
        await sees(pilot, r"Another program changed job.yaml. Choose another name.")
        await pilot.press("escape", "f1")
        await pilot.press("s")
        await sees(pilot, "on disk +job.yaml differs")
        await pilot.press("n", "r")
        await sees(pilot, r"name +changed[^$]+ saved")
        path.write_text(path.read_text() + "# another hand\n")
        await until(pilot, lambda: can_submit(pilot), "the check of the new text")
        await pilot.press("s")
        await sees(pilot, "on disk +job.yaml differs")
        await pilot.press("y")
        await until(pilot, lambda: len(runs_of(pilot)) == 1, "the run")
        await until(pilot, lambda: not app.under_way, "the end of the send")
        assert runs_of(pilot)[0].note == "differs from job.yaml"


async def test_a_file_that_changes_while_the_question_is_open_is_noted(
    settings: Settings, project: Path
) -> None:
    app, path = LumiApp(settings, project / "job.yaml"), project / "job.yaml"
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: can_submit(pilot), "the check")
        await pilot.press("ctrl+s")
        await sees(pilot, "submits 1 job")
        text = path.read_text()
        path.write_text(text.replace("00:05:00", "00:09:00"))
        await until(pilot, lambda: "Another program changed" in said(app), "the warning")
        await pilot.press("y")
        await until(pilot, lambda: len(runs_of(pilot)) == 1, "the run")
        await until(pilot, lambda: not app.under_way, "the end of the send")
        (run,) = runs_of(pilot)
        assert (run.spec.time, run.note) == ("00:05:00", "differs from job.yaml")


async def test_a_file_system_that_hangs_stops_no_key(
    settings: Settings, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hangs, released = Event(), Event()

    def hung(draft: Draft) -> bool:
        hangs.set()
        return not released.wait(30)

    monkeypatch.setattr(Draft, "changed_on_disk", hung)
    async with LumiApp(settings, project / "job.yaml").run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: can_submit(pilot) and hangs.is_set(), "the hung read")
        await pilot.press("f2", "enter")
        assert text_of(await opened(pilot)).startswith("\n")
        assert not released.is_set()
        await pilot.press("ctrl+s")
        await sees(pilot, "Checking; a confirmation follows")
        released.set()
        await until(pilot, lambda: isinstance(pilot.app.screen, Confirm), "the question")


async def test_a_late_read_of_the_file_opens_no_question_about_an_older_text(
    settings: Settings, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, hangs, read, checks = LumiApp(settings, project / "job.yaml"), Event(), Event(), Event()
    checked = new_screen._checked

    def hung(draft: Draft) -> bool:
        hangs.set()
        return not read.wait(30)

    def slow(runs: Runs, draft: Draft) -> tuple[CheckedDraft, Outlook | None]:
        assert checks.wait(30)
        return checked(runs, draft)

    monkeypatch.setattr(Draft, "changed_on_disk", hung)
    monkeypatch.setattr(new_screen, "_checked", slow)
    checks.set()
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: can_submit(pilot) and hangs.is_set(), "the hung read")
        await pilot.press("f2", "ctrl+s")
        await sees(pilot, "Checking; a confirmation follows")
        checks.clear()
        await pilot.press("escape", "#", "enter", "ctrl+s")
        await sees(pilot, "Checking; a confirmation follows")
        read.set()
        await pilot.pause(0.5)
        assert not isinstance(app.screen, Confirm)
        checks.set()
        await until(pilot, lambda: isinstance(app.screen, Confirm), "the question")
        await pilot.press("y")
        await until(pilot, lambda: len(runs_of(pilot)) == 1, "the run")
        assert (project / "job.yaml").read_text().startswith("#")


def said(app: LumiApp) -> str:
    return str([notice.message for notice in app._notifications])


async def test_a_submit_right_after_an_edit_waits_for_its_check_and_keeps_the_keys(
    settings: Settings, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, path, released = LumiApp(settings, project / "job.yaml"), project / "job.yaml", Event()
    checked = new_screen._checked

    def slow(runs: Runs, draft: Draft) -> tuple[CheckedDraft, Outlook | None]:
        assert released.wait(30)
        return checked(runs, draft)

    monkeypatch.setattr(new_screen, "_checked", slow)
    monkeypatch.setattr(check_wait, "UNREAD", 60.0)
    released.set()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot)
        await until(pilot, lambda: can_submit(pilot), "the check")
        await pilot.press("f2")
        area = screen.query_one(TextEditor)
        area.move_cursor((0, 0))
        released.clear()
        await pilot.press("#")
        await sees(pilot, "Checking…")  # before a submit, too
        await pilot.press("enter", "ctrl+s", "y")
        await sees(pilot, "Checking; a confirmation follows …")
        await pilot.press("escape", "x")
        assert area.text.startswith("#\nxname"), "escape ends the wait"
        await pilot.press("backspace", *"]:", "ctrl+s", "y")
        released.set()
        await sees(pilot, "error: .*not valid YAML")
        await sees(pilot, "Not submitted")
        await pilot.press("escape")
        await until(pilot, lambda: area.has_focus, "the wrong line")
        assert area.text.startswith("#\n]:name") and not isinstance(app.screen, Confirm)
        area.move_cursor((1, 2))
        released.clear()
        await pilot.press("backspace", "backspace", "ctrl+s", "y")
        released.set()
        await until(pilot, lambda: len(runs_of(pilot)) == 1, "the run")
        assert path.read_text().startswith("#\nname")


def test_each_part_of_a_line_of_yaml_has_its_colour() -> None:
    editor = TextEditor()
    editor.load_text("nodes: [9, 'xy', --lr=0.1]  # few")
    line = editor.get_line(0)
    colours = {line.plain[span.start : span.end]: span.style for span in line.spans if span.style}
    assert (colours["nodes"], colours["9"], colours["xy"]) == ("blue", "yellow", "green")
    assert colours["# few"] == "bright_black" and "0.1" not in colours
    editor.load_text("nodes:" + 1_000_000 * " ")
    editor.mark(frozenset({1}), {})  # a pattern of quadratic time takes an hour


def test_the_help_below_the_text_has_the_syntax_of_yaml(settings: Settings, project: Path) -> None:
    examples = (f"{key}: {words.partition(': ')[2]}\n" for key, words in IN_YAML.items())
    base = JOB.format(launcher="srun", args="").replace("args: []\n", "")
    (project / "job.yaml").write_text(base + "".join(examples))
    runs = Runs(settings)
    checked = runs.drafts.check(runs.drafts.open(project / "job.yaml"))
    runs.close()
    assert not checked.errors and all(one.value for one in checked.fields if one.key in IN_YAML)
    venv = next(one for one in checked.fields if one.key == "venv")
    assert field_help(venv, 80)[0].plain.endswith("requirements file: [A, B]")


async def test_the_key_under_the_cursor_is_explained(settings: Settings, project: Path) -> None:
    (project / "job.yaml").write_text(LUMI + "container:\n  image: /a.sif\n")
    async with LumiApp(settings, project / "job.yaml").run_test(size=(120, 40)) as pilot:
        await sees(pilot, "asks for confirmation")
        await pilot.press("f2")
        await sees(pilot, "name +the job's name in the queue")
        assert pilot.app.screen.query_one(TextEditor).scroll_offset.y == 0, "line 1 is a comment"
        assert "account +project_462000001" not in shown(pilot), "the form is not beside it"
        pilot.app.screen.query_one(TextEditor).move_cursor((9, 0))
        await sees(pilot, r"container.image +the container image in which the ranks run")
        area = pilot.app.screen.query_one(TextEditor)
        area.move_cursor(area.document.end)
        await pilot.press("enter", *"ch")
        await sees(pilot, r"chain +the maximum number of time limits")
        assert "relaunch" not in shown(pilot), "only keys that begin so"
        fields = [Field(key, "text", "", "", "") for key in ("c.x", "c.y", *"abcdefghi")]
        lines = [str(line) for line in possible_keys(fields, "", 40)]
        assert len(lines) == 9 and lines[-1].startswith("1 more"), "keys of mappings do not count"
        area.move_cursor((4, 0))
        await sees(pilot, r"standard-g +up to 1,024 nodes")
        area.move_cursor((0, 0))
        await sees(pilot, r"partition: small-g +up to 4 nodes, 72 h, parts of nodes")
        area.insert("   # mine", (4, len("partition: small-g")), maintain_selection_offset=False)
        area.move_cursor((0, 0))
        await sees(pilot, r"partition: small-g +# mine +│")
    assert not hints(partition("mall-g")) and hints(partition("small-g")) == {
        "partition": "4 nodes"
    }


def partition(value: str) -> list[Field]:
    """The form's field of a partition with this value."""
    return [Field("partition", "choice", value, "", "", (FieldChoice("small-g", "4 nodes"),))]


@pytest.mark.parametrize(
    ("opened", "edited", "size", "shown"),
    [
        ("form", "form", (119, 60), "form"), ("yaml", "yaml", (80, 24, 9), "yaml"),
        ("yaml", "yaml", (80, 24, 8), "yaml node"),
        ("form", "form", (120, 40), "form node script"),
        ("form", "form", (120, 36), "form node script"), ("form", "form", (120, 35), "form script"),
        ("yaml", "yaml", (120, 40), "yaml node"), ("yaml", "yaml", (120, 30, 30), "yaml node"),
        ("yaml", "yaml", (120, 40, 30), "yaml node script"),
        ("node", "yaml", (120, 40, 30), "yaml node"), ("script", "yaml", (120, 24), "yaml script"),
        ("script", "yaml", (200, 50), "yaml node script"),
        ("script", "form", (200, 35), "form script"), ("node", "yaml", (120, 24), "node script"),
    ],
)  # fmt: skip
def test_the_views_that_have_room_are_beside_the_one_that_is_opened(
    opened: View, edited: View, size: tuple[int, ...], shown: str
) -> None:
    assert beside(opened, edited, *size) == tuple(shown.split())


IMPORTED = """#!/bin/bash
#SBATCH --account=project_462000001 --partition=standard-g --nodes=1 --time=15
#SBATCH --gpus-per-node=8 --ntasks-per-node=8 --array=0-3
trap 'echo ended' EXIT
cp -r data /tmp
srun --cpu-bind=mask_cpu:0xfe,0xfe00 python train.py
"""


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_an_import_shows_first_what_it_lost_and_a_key_shows_the_rest(
    settings: Settings, project: Path, size: tuple[int, int]
) -> None:
    (project / "train.sh").write_text(IMPORTED)
    async with LumiApp(settings).run_test(size=size) as pilot:
        await pilot.press("2")
        screen = await opened(pilot)
        screen._open("script", str(project / "train.sh"))
        await sees(pilot, r"From your script, guessed for lumi")
        await sees(pilot, r"3 lost, 8 changed +I read all")
        await sees(pilot, r"lost: --array=0-3: list the values")
        await pilot.press("I")
        await sees(pilot, "lost: cp -r data")
        await pilot.press("G")
        await sees(pilot, "changed: srun --cpu-bind")
        await sees(pilot, r"site: lumi, guessed from the partition standard-g")
        await pilot.press("question_mark")
        await until(pilot, lambda: isinstance(pilot.app.screen, HelpDialog), "the help")
        assert any(active.binding.action == "imported" for active
                   in screen.active_bindings.values())  # fmt: skip
        await pilot.press("escape", "I")
        await until(pilot, lambda: screen.query_one(FieldList).has_focus, "the form again")


@pytest.mark.parametrize(("comments", "cursor"), [(12, 12), (30, 0)])
async def test_a_long_comment_is_read_from_its_first_line(
    settings: Settings, project: Path, comments: int, cursor: int
) -> None:
    job = project / "job.yaml"
    job.write_text("# why\n" * comments + job.read_text())
    app = LumiApp(settings, job)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot)
        await sees(pilot, "requests ")
        await pilot.press("f2")
        await sees(pilot, r" 1  # why[^\n]*\n│ +2  # why")
        area = screen.query_one(TextEditor)
        await until(pilot, lambda: area.cursor_location == (cursor, 0), "the cursor", 10)
        await pilot.press("pagedown")
        await until(pilot, lambda: area.scroll_offset.y > 0, "the rest", 10)
