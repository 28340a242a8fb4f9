"""A text that changes each second must not have the whole screen laid out each second."""

import pytest
from rich.table import Table
from textual.app import App, ComposeResult

from lumitui.app.tui.widgets.steady import Steady


class Shown(App[None]):
    """An app of one text that counts how often it asks for a new layout."""

    layouts = 0

    def compose(self) -> ComposeResult:
        text = Steady(classes="facts")
        refresh = text.refresh

        def counted(*regions: object, layout: bool = False, **more: bool) -> Steady:
            self.layouts += layout
            return refresh(*regions, layout=layout, **more)  # type: ignore[arg-type]

        text.refresh = counted  # type: ignore[method-assign]
        yield text


def facts(*rows: str) -> Table:
    table = Table.grid(padding=(0, 2))
    for row in rows:
        table.add_row("label", row)
    return table


async def test_it_is_laid_out_again_only_for_another_number_of_lines_or_width() -> None:
    app = Shown()
    async with app.run_test(size=(30, 10)) as pilot:
        text = app.query_one(Steady)

        async def lines() -> list[str]:
            await pilot.pause()
            return [strip.text.rstrip() for strip in text.render_lines(text.size.region)]

        text.show(facts("1 second", "running"))
        assert await lines() == ["label  1 second", "label  running"]
        before = app.layouts
        text.show(facts("2 seconds", "running"))
        assert await lines() == ["label  2 seconds", "label  running"]
        assert app.layouts == before
        text.show(facts("3 seconds", "it is running, and it has been for long"))
        assert len(await lines()) == 3 and app.layouts > before
        await pilot.resize_terminal(60, 10)
        assert len(await lines()) == 2


async def test_the_first_paint_shows_it_though_no_resize_has_arrived(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Steady, "on_resize", lambda *_: None)

    class Early(App[None]):
        def compose(self) -> ComposeResult:
            yield Steady(classes="facts")

        def on_mount(self) -> None:
            self.query_one(Steady).show(facts("waits"))

    app = Early()
    async with app.run_test(size=(30, 10)) as pilot:
        await pilot.pause()
        text = app.query_one(Steady)
        assert [strip.text.strip() for strip in text.render_lines(text.size.region)] == [
            "label  waits"
        ]
