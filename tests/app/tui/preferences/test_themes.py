"""The chosen theme is there the next time; one that is gone is not."""

from pathlib import Path

from lumitui.app.job.settings import Settings
from lumitui.app.tui.app import LumiApp
from lumitui.app.tui.preferences.themes import DARK, keep_theme, kept_theme, terminal_colours
from tests.support.program.driven_tui import sees, until


async def test_the_chosen_theme_is_kept_or_said_not_to_be(settings: Settings) -> None:
    app = LumiApp(settings)
    assert app.theme == "lumitui-dark"
    async with app.run_test(notifications=True) as pilot:
        app.search_themes()
        await sees(pilot, "lumitui-contrast")
        await pilot.press(*"nord", "enter")
        await until(pilot, lambda: kept_theme(settings.theme) == "nord", "kept")
        # What people look for under this name is said there.
        await pilot.press("colon", *"settings")
        await sees(pilot, "Settings")
        await pilot.press("enter")
        await sees(pilot, "Set `keys:` and `notify:` in")
        settings.theme.unlink()
        settings.theme.mkdir()
        app.theme = "gruvbox"
        await sees(pilot, "Could not save the theme")
        assert not list(settings.data.glob(".theme-*"))
        settings.theme.rmdir()
        app.theme = "nord"
        await until(pilot, lambda: kept_theme(settings.theme) == "nord", "kept again")
    app.runs.close()
    assert settings.theme.stat().st_mode & 0o777 == 0o600
    assert LumiApp(settings).theme == "nord"
    keep_theme(settings.theme, "no-such-theme")
    assert LumiApp(settings).theme == "lumitui-dark"


def test_an_unreadable_choice_is_none(tmp_path: Path) -> None:
    assert kept_theme(tmp_path / "theme") is None
    (tmp_path / "theme").write_bytes(b"\xff\x00" * 500)
    assert kept_theme(tmp_path / "theme") not in (None, "nord")
    assert kept_theme(tmp_path) is None


def test_the_colours_of_a_theme_are_made_once_since_each_widget_that_is_drawn_asks() -> None:
    """Made anew they took four percent of a processor while a log was followed."""
    assert terminal_colours(DARK) is terminal_colours(DARK)
