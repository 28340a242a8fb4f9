"""A log of any length on the screen: both ways, from its start to its end, a page at a time."""

from pathlib import Path

from textual.pilot import Pilot

from lumitui.app.job.settings import Settings
from lumitui.app.tui.app import LumiApp
from lumitui.app.tui.screens.run_screen import RunScreen
from lumitui.app.tui.screens.sites_screen import SitesScreen
from lumitui.app.tui.widgets.log.log_view import LogView
from lumitui.app.tui.widgets.log.log_window import KEPT_LINES
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.made_runs import a_run
from tests.support.program.driven_tui import sees, until


def the_log_of(app: LumiApp, folder: Path) -> Path:
    """Put a run that goes on into the history; return the path of its log."""
    app.runs.history.begin(
        a_run("r1", site="laptop", state=State.RUNNING, job_id="7", folder=str(folder))
    )
    return folder / "attempt-1.out"


async def opened(pilot: Pilot[int], app: LumiApp) -> LogView:
    await app.push_screen(RunScreen(app.runs, "r1", "log"))
    await until(pilot, lambda: app.screen.query(LogView), "the log")
    return app.screen.query_one(LogView)


async def test_a_log_of_two_gigabytes_is_read_from_anywhere_in_bounded_memory(
    settings: Settings, tmp_path: Path
) -> None:
    app = LumiApp(settings)
    log = the_log_of(app, tmp_path)
    with log.open("wb") as file:
        file.write(b"".join(b"first %d\n" % number for number in range(100)))
        file.seek(2 << 30)  # sparse
        file.write(b"\n" + b"".join(b"line %d\n" % number for number in range(60_000)))
    async with app.run_test(size=(100, 30)) as pilot:
        view = await opened(pilot, app)
        await sees(pilot, "line 59999")
        await sees(pilot, r"● live  last lines of 2\.1 GB")
        before = view.window.start
        await pilot.press("pageup", *["pageup"] * 3)
        view.go_to(before + 20, mark=False)
        await until(pilot, lambda: view.window.start < before, "the page before")
        await sees(pilot, r"kB below \(G\) .* of 2\.1 GB, 99 %")
        with log.open("ab") as file:
            file.write(b"new\n" * 1234)
        await sees(pilot, r"below, 1,234 new \(G\)")
        await pilot.press("g")
        await sees(pilot, "first 0")
        await sees(pilot, "line 2[0-9] ")
        assert len(view.window.lines) <= KEPT_LINES and not view.follow
        await pilot.press("G")
        await until(pilot, lambda: view.lines[-1:] == ["new"], "the end")
        await sees(pilot, "● live")
        with log.open("ab") as file:
            file.write(b"the very last")
        await sees(pilot, "the very last")


async def the_needle_is_found(pilot: Pilot[int], view: LogView) -> None:
    await sees(pilot, "step 23999")
    await sees(pilot, r"ranks \(, \.\) \[all\] +0 +1 ")
    await pilot.press("slash", *"ZZ", "enter")
    await sees(pilot, "“ZZ” is not in the log")
    await pilot.press("slash", "ctrl+u", *"needle ", "enter")
    await sees(pilot, r"match 1 of 1 of “needle ”")
    assert view.marked is not None and view.marked.text == " 3: the needle [b]"
    await sees(pilot, r"\n.*nN Match")
    await pilot.press("n")
    await sees(pilot, "“needle ” is nowhere else in the log")
    await pilot.press("full_stop", "g", "slash", "ctrl+u", *"step 7 ", "enter")
    await sees(pilot, "match 1 of 1 of “step 7 ”, not from rank 0: showing all ranks")
    await sees(pilot, r"\[all\]")
    await pilot.press("G", "pageup", "slash", "ctrl+u", *" needle  ", "enter")
    await sees(pilot, "“needle” is not below this line, but above it")


async def the_errors_and_ranks_are_found(pilot: Pilot[int], view: LogView) -> None:
    await pilot.press("e")
    await sees(pilot, "first error 1/2, rank 9")
    await sees(pilot, r" 8  9 traceback +10 ")
    await sees(pilot, r" 9: KeyError: 'k' +.2 ranks the same ▸")
    assert " 4: KeyError: 'k'" not in view.lines
    await pilot.press("enter")
    await until(pilot, lambda: " 4: KeyError: 'k'" in view.lines, "the others")
    await pilot.press("e")
    await sees(pilot, "error 2/2, rank 5")
    await pilot.press("full_stop")
    await sees(pilot, r"\[0\]")
    await until(
        pilot, lambda: {line.split(":")[0].strip() for line in view.lines} == {"0"}, "one rank"
    )
    await pilot.press("comma")
    await sees(pilot, r"\[all\]")
    await pilot.click("#ranks", offset=(21, 0))
    await sees(pilot, r"\[1\]")
    await sees(pilot, r"\n.*,\. Rank .*esc Clear")


async def what_is_chosen_stays_until_esc(pilot: Pilot[int], app: LumiApp, view: LogView) -> None:
    # What is chosen stays when the log is left, until esc clears it.
    await pilot.press("g", "slash", "ctrl+u", *"rank 99", "enter")
    await sees(pilot, "no lines from rank 99 so far")
    await pilot.press("slash", "ctrl+u", *"rank 14", "enter")
    await sees(pilot, r"\[14\]")
    await pilot.press("slash", "ctrl+u", *"step 30 ", "enter")
    await sees(pilot, "match of “step 30 ” ")
    app.action_go("sites")
    await until(pilot, lambda: isinstance(app.screen, SitesScreen), "the sites")
    await pilot.press("escape")
    await until(pilot, lambda: isinstance(app.screen, RunScreen), "the log again")
    await pilot.press("g")
    place = view.on_screen()[0].offset
    app.action_go("runs")
    await until(pilot, lambda: len(app.screen_stack) == 1, "the list")
    view = await opened(pilot, app)
    await until(pilot, lambda: [line.offset for line in view.on_screen()][:1] == [place], "it")
    assert view.rank == 14 and not view.follow
    await pilot.press("escape")
    await sees(pilot, r"\[all\]")
    assert not view.found and len(app.screen_stack) == 2
    await sees(pilot, "esc Back")
    await pilot.press("escape")
    await until(pilot, lambda: len(app.screen_stack) == 1, "the list")


async def test_what_is_searched_and_the_errors_are_found_wherever_they_are(
    settings: Settings, tmp_path: Path
) -> None:
    app = LumiApp(settings)
    log = the_log_of(app, tmp_path)
    app.runs.history.update("r1", failed_rank=9)  # of an attempt before: the run goes on
    lines = [f"{n % 16:2d}: step {n} loss .4" for n in range(24_000)]
    lines[500] = " 3: the needle [b]"
    lines[9_000:9_008] = [
        f"{rank:2d}: {text}"
        for rank in (9, 4)
        for text in ("Traceback (most recent call last):", '  File "a.py"', "  x", "KeyError: 'k'")
    ]
    lines[11_000] = " 5: ValueError: later"
    log.write_text("\n".join(lines) + "\n")
    async with app.run_test(size=(100, 14)) as pilot:
        view = await opened(pilot, app)
        await the_needle_is_found(pilot, view)
        await the_errors_and_ranks_are_found(pilot, view)
        await what_is_chosen_stays_until_esc(pilot, app, view)


async def test_attempts_are_chosen_and_what_is_marked_is_copied(
    settings: Settings, tmp_path: Path
) -> None:
    app = LumiApp(settings)
    log = the_log_of(app, tmp_path)
    app.runs.history.update("r1", attempt=2)
    log.write_text("of the first\nKeyError: it\n")
    (tmp_path / "attempt-2.out").write_text("of the second\n")
    async with app.run_test(size=(100, 14)) as pilot:
        view = await opened(pilot, app)
        await sees(pilot, "attempt 2 of 2")
        await until(pilot, lambda: view.lines == ["of the second"], "the newest")
        await pilot.press("left_curly_bracket")
        await until(pilot, lambda: view.lines == ["of the first", "KeyError: it"], "the first")
        await sees(pilot, r"ended +attempt 1 of 2 \({ }\)")
        await pilot.press("y")
        assert app.clipboard == "of the first\nKeyError: it"
        await pilot.press("e")
        await sees(pilot, "first error 1/1")
        await pilot.press("y")
        assert app.clipboard == "KeyError: it"
        await pilot.press("right_curly_bracket")
        await until(pilot, lambda: view.lines == ["of the second"], "the newest again")


async def test_enter_below_a_cause_shows_its_line_in_the_log(
    settings: Settings, tmp_path: Path
) -> None:
    app = LumiApp(settings)
    log = the_log_of(app, tmp_path)
    app.runs.history.update("r1", state=State.FAILED, started=1.0, ended=2.0, rc=1)
    error = "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB."
    lines = [f"3: step {at}" for at in range(60)]
    trace = ["3: Traceback (most recent call last):", '3:   File "train.py", line 5, in <module>']
    log.write_text("\n".join([*lines, *trace, f"3: {error}", *lines, ""]))
    async with app.run_test(size=(100, 24)) as pilot:
        await app.push_screen(RunScreen(app.runs, "r1", "why"))
        await sees(pilot, "enter: show it in the log")
        await pilot.press("enter")
        await sees(pilot, "match 1 of 1 of “torch.OutOfMemoryError: HIP")
        view = app.screen.query_one(LogView)
        assert view.marked is not None and view.marked.text.endswith(error)
        assert view.marked in view.on_screen() and not view.follow
        above = view.on_screen().index(view.marked)
        assert above == view.scrollable_content_region.height * 2 // 3, "below its traceback"
        await pilot.press("G", "d")
        await sees(pilot, "enter: show it in the log")
        await pilot.press("enter")
        await until(pilot, lambda: view.marked in view.on_screen(), "it again")


async def test_why_reads_the_log_of_a_running_run_and_again_when_its_state_changes(
    settings: Settings, tmp_path: Path
) -> None:
    app = LumiApp(settings)
    log = the_log_of(app, tmp_path)
    log.write_text("1: step 1\n")
    async with app.run_test(size=(100, 24)) as pilot:
        await app.push_screen(RunScreen(app.runs, "r1", "why"))
        await sees(pilot, "It is running, and the end of its log shows no failure.")
        trace = '1: Traceback (most recent call last):\n1:   File "train.py", line 53, in <module>'
        log.write_text(f"1: step 1\n{trace}\n1: NameError: name 'yy' is not defined\n")
        await pilot.press("d")
        await sees(pilot, r"Rank 1 raised an exception at train\.py:53")
        log.write_text("1: step 1\n1: torch.OutOfMemoryError: HIP out of memory.\n")
        app.runs.history.update("r1", state=State.FAILED, started=1.0, ended=2.0, rc=1)
        await sees(pilot, "GPU ran out of memory")
        app.runs.history.update("r1", state=State.DONE, rc=0)
        await sees(pilot, "It did not fail: it is done.")
