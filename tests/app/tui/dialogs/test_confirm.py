"""The yes-or-no question: what a yes does, what enter presses, and the word after a no."""

from lumitui.app.job.settings import Settings
from lumitui.app.tui.app import LumiApp
from lumitui.app.tui.dialogs.confirm_dialog import Confirm
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.made_runs import a_run
from tests.support.program.driven_tui import sees, shown, until


async def test_a_question_names_the_deed_the_price_and_the_focus_and_a_no_is_confirmed(
    settings: Settings,
) -> None:
    app = LumiApp(settings)
    app.runs.history.begin(a_run(state=State.QUEUED, job_id="40"))
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        for answer in ("n", "enter", "escape"):
            await pilot.press("c")
            await sees(pilot, r"billed [\s\S]*yes +ends the job for good[\s\S]* enter: No ─")
            await pilot.press("right")
            await sees(pilot, "enter: Cancel the job ─")
            await pilot.press("left", answer)
            await sees(pilot, r"Nothing was cancelled\.")
            app.clear_notifications()
        await pilot.press("c")
        await until(pilot, lambda: isinstance(app.screen, Confirm), "the question")
        # It closes by itself: nobody has said no.
        app.runs.history.update(app.runs.history.page()[0].id, state=State.DONE)
        await sees(pilot, "has ended: done")
        assert "Nothing was" not in str([one.message for one in app._notifications])


async def test_on_a_low_terminal_the_facts_scroll_and_the_buttons_stay(settings: Settings) -> None:
    app = LumiApp(settings)
    app.runs.history.begin(a_run(state=State.QUEUED, job_id="40"))
    async with app.run_test(size=(40, 10)) as pilot:
        await pilot.press("c")
        await sees(pilot, r"state +queued[\s\S]*No \(n\) +Cancel the job \(y\)")
        assert "ends the job" not in shown(pilot)
        await pilot.press("down", "pagedown", "down", "down", "down")
        await sees(pilot, r"ends the job for good[\s\S]*No \(n\) +Cancel the job \(y\)")
        await pilot.press("up")
        await sees(pilot, r"No \(n\) +Cancel the job \(y\)")
        await pilot.resize_terminal(80, 24)
        await sees(pilot, r"state +queued[\s\S]*ends the job for good[\s\S]*No \(n\)")
