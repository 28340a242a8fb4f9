"""The first screen: what it says without runs, its columns, bars, pages, filter and cursor."""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from lumitui.app.history.listing.series_runs import RunSeries, SeriesMember
from lumitui.app.history.run import Run
from lumitui.app.job.settings import Settings
from lumitui.app.tui.app import LumiApp
from lumitui.app.tui.screens.new_screen import NewScreen
from lumitui.app.tui.screens.run_screen import RunScreen
from lumitui.app.tui.screens.runs_screen import RunsScreen
from lumitui.app.tui.widgets.tables.run_table import RunTable
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site.errors import LinkError
from lumitui.remote.transfer.results.fetch_files import Fetched, FetchOutcome
from tests.support.jobs.made_runs import a_run
from tests.support.program.driven_tui import (
    app_of,
    keys_below,
    screen_lines,
    sees,
    shown,
    until,
)


async def test_without_runs_the_screen_says_what_to_do(settings: Settings) -> None:
    async with LumiApp(settings).run_test(size=(80, 24)) as pilot:
        await sees(pilot, "Press n to create one from a job file")
        await pilot.pause(0.3)
        assert not app_of(pilot).schedule.requests, "no unfinished run, no request"
        await pilot.press("n")
        await until(pilot, lambda: isinstance(pilot.app.screen, NewScreen), "the New screen")


def many(app: LumiApp, count: int, **changes: object) -> None:
    """Begin runs of one minute after the other, the newest with the highest number."""
    runs = [
        a_run(f"run-{number:06d}", created=1e9 + 60.0 * number, job_id=str(1000 + number),
              **{"state": State.DONE, **changes})
        for number in range(count)
    ]  # fmt: skip
    app.runs.history.adopt(runs)


def row_of(app: LumiApp, run_id: str) -> int:
    """Return the line of the screen that shows a run in the list."""
    rows = [at for at, line in enumerate(screen_lines(app)) if f"{run_id} " in line[8:60]]
    return rows[0] if rows else -1


@contextlib.contextmanager
def statements(app: LumiApp) -> Iterator[list[str]]:
    """Collect what SQLite is asked."""
    asked: list[str] = []
    app.runs.history._file._db.set_trace_callback(asked.append)
    yield asked
    app.runs.history._file._db.set_trace_callback(None)


async def test_a_key_reads_nothing_and_the_list_is_read_as_it_is_scrolled(
    settings: Settings,
) -> None:
    app = LumiApp(settings)
    many(app, 450)
    async with app.run_test(size=(80, 24)) as pilot:
        table = app.screen.query_one(RunTable)
        await until(pilot, lambda: table.selected == "run-000449", "the newest run")
        assert table.row_count == 200
        with statements(app) as asked:
            await pilot.press(*["j"] * 15, *["k"] * 5)
        assert not [query for query in asked if "key_0" in query or "r.id IN" in query]
        with statements(app) as asked:
            await pilot.press(*["pagedown"] * 12)
        pages = [query for query in asked if "key_0" in query]
        rows = [query for query in asked if "r.id IN" in query]
        assert len(pages) <= 3 and len(rows) <= 10, asked
        assert all("LIMIT 200" in query for query in pages)
        await pilot.press("G")
        assert (table.selected, table.row_count) == ("run-000000", 450)
        await sees(pilot, "run-000000")
        await pilot.press("g")
        assert table.selected == "run-000449"


async def test_the_cursor_and_the_scroll_stay_with_the_run(settings: Settings) -> None:
    app = LumiApp(settings)
    many(app, 60)
    async with app.run_test(size=(80, 24)) as pilot:
        table, history = app.screen.query_one(RunTable), app.runs.history
        await pilot.press(*["j"] * 30)
        await until(pilot, lambda: row_of(app, "run-000029") > 0, "the row")
        before = row_of(app, "run-000029")
        history.begin(a_run("another-000001", created=2e9, state=State.DONE))
        app.history_changed()
        await until(pilot, lambda: table.row_count == 61, "the new row")
        await pilot.pause()
        assert table.selected == "run-000029"
        assert row_of(app, "run-000029") == before
        await pilot.press("o", "o")
        await sees(pilot, "by name")
        assert table.selected == "run-000029"
        await pilot.press("escape", "g")
        assert table.selected == "another-000001"
        history.begin(a_run("another-000002", created=3e9, state=State.DONE))
        app.history_changed()
        # At the top the newest run is seen at once, and the cursor stays where it was.
        await until(pilot, lambda: row_of(app, "another-000002") == 3, "the newest run")
        assert table.selected == "another-000001"


async def test_the_filter_finds_what_is_shown_and_says_what_is_wrong(settings: Settings) -> None:
    app = LumiApp(settings)
    many(app, 40)
    app.runs.history.adopt(
        [
            a_run("vit-00000a", created=2e9, state=State.TIMEOUT),
            a_run("vit-00000b", created=2e9 + 1, state=State.FAILED, rc=1, note="#best"),
        ]
    )
    async with app.run_test(size=(80, 24)) as pilot:
        table = app.screen.query_one(RunTable)
        await sees(pilot, "2 failed")
        await pilot.press("slash", *"failed")
        await until(pilot, lambda: table.row_count == 2, "the failed runs")
        await sees(pilot, r"2 runs +failed")
        await sees(pilot, r"1 Runs .* of those shown: +2 failed")
        await pilot.press("space", *"node")
        await pilot.press(*"s:x")
        await sees(pilot, r" {7}nodes:x|\^ 'x' is not a number of nodes. Type nodes:4")
        lines = screen_lines(app)
        typed = next(at for at, line in enumerate(lines) if "failed nodes:x" in line)
        assert lines[typed].index("x") == lines[typed + 1].index("^")
        assert table.row_count == 2, "what was right still counts"
        await pilot.press("backspace", *"2 #best", "enter")
        await until(pilot, lambda: table.row_count == 1, "the best run")
        assert (table.selected, table.has_focus) == ("vit-00000b", True)
        await pilot.press("escape")
        await until(pilot, lambda: table.row_count == 42, "all again")
        await pilot.press("slash", *"zzz", "enter")
        await sees(pilot, "No run matches the filter. Press esc")
        # The run that was just sent is the one that the next key is meant for.
        screen = app.screen
        assert isinstance(screen, RunsScreen)
        screen.choose("run-000007")
        assert screen.chosen == "run-000007"


async def test_marked_runs_are_cancelled_tagged_and_compared(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = LumiApp(settings)
    many(app, 5)
    for number in (2, 3):
        app.runs.history.update(f"run-{number:06d}", state=State.QUEUED)
    cancelled: list[str] = []

    def cancel(run_id: str, warn: object) -> Run:
        cancelled.append(run_id)
        if run_id == "run-000002":
            raise LinkError("The site is gone.", "Try again.")
        return app.runs.history.get(run_id)

    fetched: list[Path] = []

    def fetch(run_id: str, target: Path) -> FetchOutcome:
        fetched.append(target)
        if run_id == "run-000004":
            raise LinkError("The site is gone.", "Try it again.")
        return FetchOutcome((Fetched("out.txt", target / "out.txt", 5, fresh=True),))

    monkeypatch.setattr(app.runs, "cancel", cancel)
    monkeypatch.setattr(app.runs, "fetch", fetch)
    monkeypatch.setattr(app, "tick", lambda *, asked=False: None)
    wanted: list[tuple[str, ...]] = []
    monkeypatch.setattr(app, "open_compare", wanted.append)
    async with app.run_test(size=(80, 24)) as pilot:
        table = app.screen.query_one(RunTable)
        await until(pilot, lambda: table.selected == "run-000003", "the newest that waits")
        await pilot.press("g", "space", "space", "space")
        await sees(pilot, "3 marked")
        assert list(table.marks) == ["run-000004", "run-000003", "run-000002"]
        await pilot.press("c")
        await sees(pilot, "Cancel 2 jobs\\?")
        await sees(pilot, "run-000003 +queued, 2 nodes")
        await sees(pilot, "already ended +1 run")
        assert app.screen.focused is app.screen.query_one("#no")
        await pilot.press("enter", "c", "y")
        await sees(pilot, "run-000002: The site is gone.")
        await sees(pilot, "Press c again when somewhere is back.")
        assert "Cancelled 1 job." in {notice.message for notice in app._notifications}
        await pilot.press("enter")
        assert cancelled == ["run-000003", "run-000002"] and not app.under_way
        await pilot.press("t", *"two#tags", "enter")
        await sees(pilot, "is not a tag. A tag is one word")
        await pilot.press(*["backspace"] * 5, "enter")
        history = app.runs.history
        await until(pilot, lambda: history.get("run-000004").note == "#two", "the tag")
        assert [run.note for run in history.page()] == ["#two", "#two", "#two", "", ""]
        told = {"Tagged 3 runs #two: / #two finds them."}
        await until(pilot, lambda: told <= {one.message for one in app._notifications}, "the words")
        await sees(pilot, r"run-000003 #two")
        assert not table.marks
        await pilot.press("g", "space", "space", "E", "backspace", *"out", "enter")
        targets = [Path("out/run-000004"), Path("out/run-000003")]
        await until(pilot, lambda: len(fetched) == 2, "the fetches")
        assert fetched == targets
        await until(pilot, lambda: "Try it again." in shown(pilot), "why one was not fetched")
        await pilot.press("escape", "j", "space", "C")
        await until(pilot, lambda: wanted, "the comparison")
        assert wanted == [("run-000001", "run-000000")]
        assert not table.marks, "the next key is for the row"
        await pilot.press("escape", "M", *"a note", "enter")
        await until(pilot, lambda: history.get("run-000000").note == "a note", "the note")
        await sees(pilot, "a note")


async def test_the_footer_has_only_keys_that_fit_the_run_and_the_marks(settings: Settings) -> None:
    app = LumiApp(settings)
    async with app.run_test(size=(120, 24)) as pilot:
        await until(pilot, lambda: "n New" in keys_below(pilot), "the keys without runs")
        assert not {"Open", "Mark", "Log", "Cancel", "Why"} & set(keys_below(pilot).split())
    app = LumiApp(settings)
    many(app, 2)
    app.runs.history.update("run-000001", state=State.RUNNING, job_id="81")
    app.runs.history.update("run-000000", state=State.DONE, job_id="80")
    async with app.run_test(size=(120, 24)) as pilot:
        await until(pilot, lambda: "c Cancel   d Why" in shown(pilot), "the keys of a running job")
        await pilot.press("j")
        done = "l Log + Resubmit x2 r Refresh"
        await until(pilot, lambda: done in keys_below(pilot), "those of one that is done")
        app.runs.history.update("run-000000", state=State.FAILED)
        app.history_changed()
        await until(pilot, lambda: "R Resubmit" in keys_below(pilot), "those of a failure")
        assert "x2" not in keys_below(pilot)
        await pilot.press("c")
        await sees(pilot, "There is nothing to cancel")
        await pilot.press("escape", "space")
        await until(pilot, lambda: "C Compare" in keys_below(pilot), "the keys of marked runs")
        assert "Log" not in keys_below(pilot)
        await pilot.press("escape", "g", "l")
        await sees(pilot, "'somewhere' is not a site")
        await pilot.press("escape")
        await until(pilot, lambda: "e Error" in keys_below(pilot), "the log's keys")
        assert not {"Log", "Follow"} & set(keys_below(pilot).split())


def fold(app: LumiApp) -> None:
    """Make a grid of three of the runs of `many`."""
    members = tuple(SeriesMember(place, f"cell {place}", "{}") for place in (1, 2, 3))
    app.runs.history.series.begin(RunSeries("grid-1", "grid", "somewhere", "", 1.0, members))
    for place in (1, 2, 3):
        app.runs.history.series.claim("grid-1", place, f"run-00000{place}")


async def test_the_row_of_a_folded_grid_is_all_of_its_runs(settings: Settings) -> None:
    app = LumiApp(settings)
    many(app, 4)
    fold(app)
    for place in (1, 2, 3):
        app.runs.history.update(f"run-00000{place}", state=State.QUEUED)
    async with app.run_test(size=(80, 24)) as pilot:
        table = app.screen.query_one(RunTable)
        await until(pilot, lambda: table.selected == "run-000001", "the folded grid")
        await pilot.press("c")
        await sees(pilot, "Cancel 3 jobs\\?")
        await pilot.press("n", "space")
        await sees(pilot, "3 marked")
        assert list(table.marks) == ["run-000001", "run-000002", "run-000003"]
        table.choose("run-000001")
        table.changed()
        await pilot.press("space")
        assert not table.marks
        table.choose("run-000001")
        table.changed()
        await pilot.press("enter")
        await sees(pilot, r"─ Settings ─[\s\S]*cell 3 .*run-000003")
        await pilot.press("escape", "right", "enter")
        await until(pilot, lambda: isinstance(app.screen, RunScreen), "a run of the open grid")
        await pilot.press("escape", "left")
        await until(pilot, lambda: "Cancel" in keys_below(pilot), "the key of a grid that runs")
        for place in (1, 2, 3):
            app.runs.history.update(f"run-00000{place}", state=State.DONE)
        app.history_changed()
        await until(pilot, lambda: "Cancel" not in keys_below(pilot), "no key: all have ended", 10)
        await pilot.press("c")
        await sees(pilot, "All 3 runs of this row have ended")
        await pilot.press("escape", "space", "c")
        await sees(pilot, "The 3 marked runs have all ended")


async def test_a_new_run_below_a_folded_grid_is_shown_and_selected(settings: Settings) -> None:
    app = LumiApp(settings)
    many(app, 4)
    fold(app)
    async with app.run_test(size=(100, 30)) as pilot:
        await sees(pilot, r"3 runs +run-000001 \+2")
        app.runs.history.begin(a_run("again-000005", parent="run-000002", created=9e8))
        screen = app.screen
        assert isinstance(screen, RunsScreen)
        screen.choose("again-000005")
        await sees(pilot, r"└ again-000005")
        assert screen.chosen == "again-000005"


async def test_a_folded_grid_is_sent_again_as_a_whole(settings: Settings, tmp_path: Path) -> None:
    job = tmp_path / "grid.yaml"
    app = LumiApp(settings)
    names = [f"run-00000{place}" for place in (1, 2)]
    app.runs.history.adopt(
        [a_run(name, created=2e9, job_file=str(job), state=State.DONE) for name in names]
    )
    members = tuple(SeriesMember(place, f"cell {place}", "{}") for place in (1, 2))
    app.runs.history.series.begin(RunSeries("grid-1", "grid", "somewhere", "", 1.0, members))
    for place in (1, 2):
        app.runs.history.series.claim("grid-1", place, f"run-00000{place}")
    async with app.run_test(size=(80, 24)) as pilot:
        table = app.screen.query_one(RunTable)
        await until(pilot, lambda: table.selected == "run-000001", "the folded grid")
        await pilot.press("R")
        await sees(pilot, "The job file of these 2 runs is missing")
        await pilot.press("escape")
        job.write_text("name: grid\nsite: somewhere\n")
        await pilot.press("R")
        await sees(pilot, r"Send all 2 runs of the grid again\?")
        await pilot.press("y")
        await until(pilot, lambda: isinstance(app.screen, NewScreen), "the job file of the grid")


async def test_resubmissions_are_a_tree_that_folds(settings: Settings) -> None:
    app = LumiApp(settings)
    many(app, 4)
    app.runs.history.adopt(
        [
            a_run("child-00000a", created=2e9, parent="run-000002", state=State.DONE),
            a_run("child-00000b", created=2e9 + 1, parent="child-00000a", state=State.DONE),
        ]
    )
    async with app.run_test(size=(130, 30)) as pilot:
        table = app.screen.query_one(RunTable)
        await sees(pilot, " run-000002[^\\n]*\\n.*└ child-00000a[^\\n]*\\n.* └ child-00000b")
        assert table.selected == "child-00000b", "the newest, not the root of its tree"
        await pilot.press("left", "left")
        assert (table.selected, table.row_count) == ("child-00000a", 5)
        await pilot.press("left")
        assert table.selected == "run-000002"
        await pilot.press("left")
        await sees(pilot, r"run-000002 \+2")
        assert table.row_count == 4
        # Beside the list stands what is known of the run.
        await sees(pilot, "16 ranks, 16 GPUs")
        await pilot.press("right", "z", "z")
        assert table.row_count == 5
        # A click on a heading sorts, a second one turns the order around.
        await pilot.click(RunTable, offset=(20, 1))
        await sees(pilot, "Run▴")  # from a to z
        assert row_of(app, "child-00000b") == 3
        await pilot.click(RunTable, offset=(20, 1))
        await sees(pilot, "Run▾")
        await pilot.click(RunTable, offset=(20, 3))
        assert table.selected == "run-000001"
        await pilot.click(RunTable, offset=(20, 3))
        await until(pilot, lambda: isinstance(app.screen, RunScreen), "the run")


async def test_the_title_bar_has_all_names_of_screens_or_no_digits(settings: Settings) -> None:
    app = LumiApp(settings)
    async with app.run_test(size=(80, 24)) as pilot:
        await sees(pilot, "1 Runs  2 New  3 Sites  4 Cluster  0 Guide")
        app.sub_title = "sending vit-l16"
        await sees(pilot, "● sending vit-l16 +1 Runs")
        assert not re.search("2 |2$", shown(pilot).split("\n")[0])
