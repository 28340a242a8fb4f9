"""A line of a script that is longer than its pane."""

import pytest
from textual.content import Content

from lumitui.app.tui.widgets.script_view import hung


@pytest.mark.parametrize(
    ("line", "width", "parts"),
    [
        ("set -e", 10, ["set -e"]),
        ("    srun python train.py", 16, ["    srun python ", "    ╰ train.py"]),
        ("A=/appl/local/x.sif", 10, ["A=/appl/", "╰ local/", "╰ x.sif"]),
        ("A=abcdefgh", 6, ["A=", "╰ abcd", "╰ efgh"]),
        ("cd x # a login file", 10, ["cd x", "╰ # a", "╰ login", "╰ file"]),
        ("# 图图图图 图图", 8, ["#", "╰ 图图图", "╰ 图", "╰ 图图"]),
        ("abc", 1, ["abc"]),
    ],
)  # fmt: skip
def test_the_rest_of_a_long_line_hangs_below_its_beginning(
    line: str, width: int, parts: list[str]
) -> None:
    assert [part.plain.rstrip() for part in hung(Content(line), width)] == [
        part.rstrip() for part in parts
    ]
