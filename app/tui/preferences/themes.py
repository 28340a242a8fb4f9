"""The offered themes, the last chosen one, and their common parts."""

import os
from pathlib import Path

from rich.terminal_theme import TerminalTheme
from textual.app import App
from textual.color import Color
from textual.theme import Theme

from lumitui.app.runs import write_whole

DARK = Theme(
    name="lumitui-dark", dark=True,
    primary="#a99bf5", secondary="#7fa8e6", accent="#a99bf5", foreground="#dfe2ee",
    background="#11131b", surface="#171a24", panel="#232838",
    warning="#e8b85c", error="#ff7a85", success="#6fd69a",
)  # fmt: skip
LIGHT = Theme(
    name="lumitui-light", dark=False,
    primary="#5b45c9", secondary="#1f5fb8", accent="#5b45c9", foreground="#23252e",
    background="#f8f8fb", surface="#ffffff", panel="#e6e7f0",
    warning="#8a5a00", error="#b3261e", success="#1a7037",
)  # fmt: skip
CONTRAST = Theme(
    name="lumitui-contrast", dark=True,
    primary="#7cc7ff", secondary="#c0b3ff", accent="#7cc7ff", foreground="#ffffff",
    background="#000000", surface="#000000", panel="#303030",
    warning="#ffd75f", error="#ff9d96", success="#7dff9c",
    variables={"text": "#ffffff", "text-muted": "#e4e4e4", "text-disabled": "#c6c6c6"},
)  # fmt: skip
OWN = (DARK, LIGHT, CONTRAST)

UNKNOWN_COLOURS = ("ansi-dark", "ansi-light", "textual-ansi")
"""Textual's themes in the terminal's own colours, which have an unknown contrast."""


def calm(colours: dict[str, str]) -> dict[str, str]:
    """Return the `colours` of a theme with muted cursors, scrollbars and footer.

    The accent colour is reserved for the focused widget.
    """
    panel, ground = colours["panel"], colours["background"]
    edge = Color.parse(panel).blend(Color.parse(colours["foreground"]), 0.2).hex
    bar = Color.parse(panel).blend(Color.parse(colours["foreground"]), 0.08).hex
    cursor = Color.parse(ground).blend(Color.parse(colours["primary"]), 0.36).hex
    return colours | {
        "block-cursor-background": cursor,
        "block-cursor-foreground": colours["foreground"],
        "block-cursor-blurred-background": panel,
        "block-cursor-blurred-foreground": colours["foreground"],
        "border": colours["primary"], "border-blurred": edge,
        "scrollbar": bar, "scrollbar-hover": edge, "scrollbar-active": colours["primary"],
        "scrollbar-background": ground, "scrollbar-background-hover": ground,
        "scrollbar-background-active": ground, "scrollbar-corner-color": ground,
        "footer-background": panel, "footer-key-foreground": colours["primary"],
        "footer-description-foreground": colours["text-muted"],
    }  # fmt: skip


_COLOURS = (
    "panel", "error", "success", "warning", "secondary", "accent", "foreground", "background",
)  # fmt: skip

_MADE: dict[str, TerminalTheme] = {}
"""Cached, because each drawn widget requests them and Textual caches by object."""


def terminal_colours(theme: Theme) -> TerminalTheme:
    """Return the theme's values of `red`, `bright_black` …, the colours of states."""
    if theme.name not in _MADE:
        _MADE[theme.name] = _terminal_colours(theme)
    return _MADE[theme.name]


def _terminal_colours(theme: Theme) -> TerminalTheme:
    named = theme.to_color_system().generate()
    panel, error, success, warning, blue, accent, front, ground = (
        Color.parse(named[name]) for name in _COLOURS
    )
    cyan = blue.blend(success, 0.5)
    colours = (panel, error, success, warning, blue, accent, cyan, front)
    bright = (front.blend(ground, 0.4), *(colour.blend(front, 0.3) for colour in colours[1:]))
    return TerminalTheme(
        ground.rgb, front.rgb, [one.rgb for one in colours], [one.rgb for one in bright]
    )


def offer_themes(app: App[int], kept: str | None) -> None:
    """Offer our themes and Textual's; start with `kept`, else TEXTUAL_THEME, else ours."""
    for theme in OWN:
        app.register_theme(theme)
    for name in UNKNOWN_COLOURS:
        app.unregister_theme(name)
    names = (kept, os.environ.get("TEXTUAL_THEME"), DARK.name)
    app.theme = next(name for name in names if name in app.available_themes)


def kept_theme(file: Path) -> str | None:
    """Return the last chosen theme; None if unset or if the file is unreadable."""
    try:
        with file.open(encoding="utf-8", errors="replace") as opened:
            return opened.read(80).strip() or None
    except OSError:
        return None


def keep_theme(file: Path, name: str) -> None:
    """Write the choice to `file` atomically, readable only by its owner.

    Raises:
        OSError: the file cannot be written.
    """
    write_whole(file, f"{name}\n")
