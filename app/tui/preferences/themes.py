"""The themes that are offered, and the one that was chosen last."""

import os
from pathlib import Path

from rich.terminal_theme import TerminalTheme
from textual.app import App
from textual.color import Color
from textual.theme import Theme

from lumitui.app.runs import write_whole

DARK = Theme(
    name="lumitui-dark", dark=True,
    primary="#58a6ff", secondary="#8b9cf4", accent="#e3b341", foreground="#e6edf3",
    background="#0f1419", surface="#161b22", panel="#212932",
    warning="#e3b341", error="#ff7b72", success="#5fd383",
)  # fmt: skip
LIGHT = Theme(
    name="lumitui-light", dark=False,
    primary="#0b57c4", secondary="#5046c9", accent="#8a5a00", foreground="#1c2128",
    background="#f4f6f8", surface="#ffffff", panel="#e4e9ee",
    warning="#8a5a00", error="#b3261e", success="#1a7037",
)  # fmt: skip
CONTRAST = Theme(
    name="lumitui-contrast", dark=True,
    primary="#7cc7ff", secondary="#c0b3ff", accent="#ffd75f", foreground="#ffffff",
    background="#000000", surface="#000000", panel="#1c1c1c",
    warning="#ffd75f", error="#ff9d96", success="#7dff9c",
    variables={"text": "#ffffff", "text-muted": "#e4e4e4", "text-disabled": "#c6c6c6"},
)  # fmt: skip
OWN = (DARK, LIGHT, CONTRAST)

UNKNOWN_COLOURS = ("ansi-dark", "ansi-light", "textual-ansi")
"""Textual's themes in the terminal's own colours: nobody can say whether their text is readable."""


def _palette(background: str, foreground: str, normal: str, bright: str) -> TerminalTheme:
    """Return what `red`, `bright_black` … are: eight colours and their bright variants."""

    def rgb(text: str) -> tuple[int, int, int]:
        return Color.parse(text).rgb

    return TerminalTheme(
        rgb(background),
        rgb(foreground),
        [rgb(colour) for colour in normal.split()],
        [rgb(colour) for colour in bright.split()],
    )


# Black, red, green, yellow, blue, magenta, cyan, white.
ON_DARK = _palette(
    "#0f1419", "#e6edf3",
    "#161b22 #ff7b72 #5fd383 #e3b341 #79b8ff #d2a8ff #56d4dd #d0d7de",
    "#9aa4af #ffa198 #7ee29c #f2cc60 #a5d0ff #e2c5ff #8be9f0 #ffffff",
)  # fmt: skip
ON_LIGHT = _palette(
    "#ffffff", "#1c2128",
    "#1c2128 #b3261e #1a7037 #8a5a00 #0b57c4 #8439b8 #0b6a77 #57606a",
    "#5b646e #c4302b #1f7f3f #946200 #1a66d6 #9450c4 #0f7684 #424a53",
)  # fmt: skip


def offer_themes(app: App[int], kept: str | None) -> None:
    """Offer our own themes and Textual's; begin with `kept`, else with TEXTUAL_THEME, else ours."""
    for theme in OWN:
        app.register_theme(theme)
    for name in UNKNOWN_COLOURS:
        app.unregister_theme(name)
    app.ansi_theme_dark, app.ansi_theme_light = ON_DARK, ON_LIGHT
    names = (kept, os.environ.get("TEXTUAL_THEME"), DARK.name)
    app.theme = next(name for name in names if name in app.available_themes)


def kept_theme(file: Path) -> str | None:
    """Return the theme that was chosen last; None: none was, or the file cannot be read."""
    try:
        with file.open(encoding="utf-8", errors="replace") as opened:
            return opened.read(80).strip() or None
    except OSError:
        return None


def keep_theme(file: Path, name: str) -> None:
    """Write the choice into `file`, for its owner alone, whole or not at all.

    Raises:
        OSError: it cannot be written.
    """
    write_whole(file, f"{name}\n")
