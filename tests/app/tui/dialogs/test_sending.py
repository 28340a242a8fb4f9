"""The dialog of a send: a transfer's line moves on, and is no silence of the site."""

import asyncio
from types import SimpleNamespace

import pytest
from textual.app import App
from textual.widgets import Static

from lumitui.app.tui.dialogs import sending
from lumitui.app.tui.dialogs.sending import SendingDialog


def test_a_transfer_is_shown_and_counts_as_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    asyncio.run(_shown(monkeypatch))


async def _shown(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(sending, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    app: App[None] = App()
    async with app.run_test(size=(80, 24)) as pilot:
        dialog = SendingDialog("vit", lambda: 1000.0)
        await app.push_screen(dialog)
        line = "staging DATA [##......]  25% 750 MB of 3.0 GB 22 MB/s 1m40 left"
        for done in range(4):
            clock[0] += 2.0
            dialog.report("sync", f"{line} {done}")
            await pilot.pause()
        text = str(dialog.query_one("#steps", Static).render())
        assert f"sync  {line} 3" in text and "no answer" not in text
        clock[0] += 5.0
        dialog._draw()
        await pilot.pause()
        assert "no answer for 5 s" in str(dialog.query_one("#steps", Static).render())
