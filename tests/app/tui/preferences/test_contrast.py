"""Every word on the screen can be read, in each theme that is offered and with NO_COLOR."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.color import Color, ColorSystem
from rich.color_triplet import ColorTriplet
from rich.segment import Segment
from rich.style import Style
from rich.terminal_theme import DEFAULT_TERMINAL_THEME
from textual.color import Color as TextualColor
from textual.pilot import Pilot

from lumitui.app.job.settings import Settings
from lumitui.app.tui.app import LumiApp
from lumitui.app.tui.preferences.contrast import LEAST_CONTRAST, SixteenColours, contrast, readable
from lumitui.app.tui.screens.run_screen import RunScreen
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.made_runs import a_run
from tests.support.program.driven_tui import until

COLOUR = st.builds(ColorTriplet, *(st.integers(0, 255),) * 3)


@given(COLOUR, COLOUR)
def test_any_colour_can_be_read_on_any_other(colour: ColorTriplet, ground: ColorTriplet) -> None:
    moved = readable(colour, ground)
    assert contrast(moved, ground) >= LEAST_CONTRAST
    if contrast(colour, ground) >= LEAST_CONTRAST:
        assert moved == colour


def test_contrast_is_that_of_the_standard() -> None:
    black, white = ColorTriplet(0, 0, 0), ColorTriplet(255, 255, 255)
    assert contrast(black, white) == pytest.approx(21)
    # WCAG's own example of a grey that just passes on white, #767676.
    assert contrast(ColorTriplet(118, 118, 118), white) == pytest.approx(4.54, abs=0.01)


@given(COLOUR, COLOUR)
def test_in_sixteen_colours_words_can_still_be_told_from_their_ground(
    colour: ColorTriplet, ground: ColorTriplet
) -> None:
    style = Style(color=Color.from_triplet(colour), bgcolor=Color.from_triplet(ground))
    (shown,) = SixteenColours().apply([Segment("word", style)], TextualColor(0, 0, 0))
    assert shown.style and shown.style.color and shown.style.bgcolor
    front, behind = (
        one.downgrade(ColorSystem.STANDARD).get_truecolor(DEFAULT_TERMINAL_THEME)
        for one in (shown.style.color, shown.style.bgcolor)
    )
    assert contrast(front, behind) >= LEAST_CONTRAST


def faint(pilot: Pilot[int]) -> set[tuple[str, float]]:
    """Return the words on the screen with less contrast than they need."""
    found = set()
    for line in pilot.app.screen._compositor.render_strips(pilot.app.screen.size):
        for text, style, _ in line:
            if style and style.color and style.bgcolor and any(map(str.isalnum, text)):
                one, other = style.color.triplet, style.bgcolor.triplet
                assert one and other, f"{text!r}: colours of the terminal: {style}"
                if (ratio := contrast(one, other)) < LEAST_CONTRAST:
                    found.add((text.strip(), round(ratio, 1)))
    return found


SOME = ("lumitui-dark", "lumitui-light", "dracula")


@pytest.mark.parametrize("no_color", [False, pytest.param(True, marks=pytest.mark.slow)])
async def test_every_word_has_contrast(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, no_color: bool
) -> None:
    await _look(settings, monkeypatch, no_color, SOME)


@pytest.mark.slow
@pytest.mark.parametrize("no_color", [False, True])
async def test_every_word_has_contrast_in_every_theme(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, no_color: bool
) -> None:
    await _look(settings, monkeypatch, no_color, ())


async def _look(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, no_color: bool, themes: tuple[str, ...]
) -> None:
    """Look at the list in `themes`, or in all; then at other screens in the last of them."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    if no_color:
        monkeypatch.setenv("NO_COLOR", "1")
    app = LumiApp(settings)
    for number, state in enumerate(State):
        app.runs.history.begin(
            a_run(f"run-{number:06d}", state=state, job_id="41", word="Resources")
        )
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        assert set(SOME) < set(app.available_themes)
        assert not [name for name in app.available_themes if "ansi" in name]
        app.notify("Something to know.", severity="warning", timeout=60)
        screens = []
        for theme in themes or tuple(app.available_themes):
            app.theme = theme
            await pilot.pause()
            assert app.has_class(f"-theme-{theme}")
            screens.append(faint(pilot))
        app.push_screen(RunScreen(app.runs, "run-000008"))
        await until(pilot, lambda: isinstance(app.screen, RunScreen), "the run")
        for keys in (("d",), ("plus",), ("escape", "question_mark")):
            await pilot.press(*keys)
            await pilot.pause()
            screens.append(faint(pilot))
        assert screens == [set()] * len(screens)
