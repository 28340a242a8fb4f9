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
        dialog.report("sync", "sending the code")
        for step in ("done  begin", "now   sync  sending the code", "prepare", "submit", "record"):
            await sees(pilot, step)
