"""More nodes: the screen that says how a run scales, and the dialog that sends it again."""

from __future__ import annotations

from textual import on

from lumitui.app.tui import messages
from lumitui.app.tui.mutations import MutationApp


class ScaleApp(MutationApp):
    """An app that shows how runs scale, and sends them again on other sizes."""

    @on(messages.ScalingWanted)
    def _scaling_wanted(self, event: messages.ScalingWanted) -> None:
        from lumitui.app.tui.screens.scaling import ScalingScreen

        if self._run(event.run_id) is not None:
            self.push_screen(ScalingScreen(self.runs, event.run_id))
