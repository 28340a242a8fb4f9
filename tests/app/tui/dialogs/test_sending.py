"""The dialog of a send, with the style sheets of every screen."""

import pytest

from lumitui.app.job.settings import Settings
from lumitui.app.tui.app import LumiApp
from lumitui.app.tui.dialogs.sending import SendingDialog
from tests.support.program.driven_tui import sees


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_a_send_shows_all_its_steps(settings: Settings, size: tuple[int, int]) -> None:
    app = LumiApp(settings)
    async with app.run_test(size=size) as pilot:
        dialog = SendingDialog("vit")
        await app.push_screen(dialog)
        for step in ("now   record the run in the history", "submit the job"):
            await sees(pilot, step)
        dialog.report("sync", "sending 3 of 9 MB")
        for step in ("done  record the run", "now   sending 3 of 9 MB", "create the run's folder"):
            await sees(pilot, step)
