"""Text for screens: where it breaks."""

from rich.console import Console

from lumitui.app.tui.widgets.styled import labelled


def lines(value: str, width: int) -> list[str]:
    console = Console(width=width + 8)
    return [
        "".join(segment.text for segment in line)[8:].rstrip()
        for line in console.render_lines(labelled([("folder", value)]))
    ]


def test_a_long_path_breaks_after_a_slash_and_loses_nothing() -> None:
    path = "/scratch/project_465000001/vision-transformer/runs/vit-2n-003b96"
    assert lines(path, 30) == [
        "/scratch/project_465000001/",
        "vision-transformer/runs/",
        "vit-2n-003b96",
    ]
    assert lines("in 9 s, /a/b", 30) == ["in 9 s, /a/b"]
    for width in range(1, 70):
        assert "".join(lines(path, width)) == path
    assert lines("/" + "a" * 40, 30) == ["/" + "a" * 29, "a" * 11]
