"""Lines as rows: equal tracebacks of many ranks are one, until they are opened."""

import random

from rich.style import Style

from lumitui.app.tui.widgets.log.log_rows import LineLayout, segments
from lumitui.app.tui.widgets.log.log_window import LogWindow

TRACEBACK = """\
Traceback (most recent call last):
  File "train.py", line 5, in attention
    return batch["keys"] at 0x7f00{rank:04x}
KeyError: 'keys of rank {rank}'
"""


def mixed(ranks: int) -> bytes:
    """Return a log in which each rank but one writes the same traceback, lines in any order."""
    left = {
        rank: (TRACEBACK.format(rank=rank) if rank != 2 else "fine\n").splitlines()
        for rank in range(ranks)
    }
    chance, lines = random.Random(3), ["the launch"]
    while left:
        rank = chance.choice(list(left))
        lines.append(f"{rank:2d}: {left[rank].pop(0)}")
        if not left[rank]:
            del left[rank]
    return "\n".join(
        [*lines, "srun: error: nid005002: task 9: Exited with exit code 1", ""]
    ).encode()


def drawn(window: LogWindow, layout: LineLayout) -> list[str]:
    rows = layout.rows(window.lines)
    return [
        "".join(s.text for s in segments(row, Style(), words, marked=False, found=""))
        for row in rows
        for words in [layout.fold_words(row.line)]
    ]


def test_equal_tracebacks_of_many_ranks_are_one_that_opens() -> None:
    data, window = mixed(16), LogWindow()
    for at in range(0, len(data), 97):
        window.append(at, data[at : at + 97])
    closed = drawn(window, LineLayout(0))
    assert len(closed) == 1 + 4 + 1 + 1
    (head,) = [text for text in closed if "\N{MULTIPLICATION SIGN}15 ranks the same ▸" in text]
    assert "KeyError: 'keys of rank" in head
    assert len(drawn(window, LineLayout(0, rank=9))) == 4, (
        "of a chosen rank its own lines are shown"
    )
    (row,) = [r for r in LineLayout(0).rows(window.lines) if LineLayout(0).fold_words(r.line)]
    assert row.line.fold is not None
    row.line.fold.open = True
    assert len(drawn(window, LineLayout(0))) == 1 + 15 * 4 + 1 + 1
    window.prepend(0, b"")  # nothing: it begins at the log's start


def test_a_number_that_all_ranks_write_is_not_taken_for_the_rank() -> None:
    window = LogWindow()
    for rank in range(4):
        text = TRACEBACK.format(rank=rank).replace("rank ", f"2.00 GiB, 0.2 of rank {rank}: ")
        lines = (f"{rank}: {line}\n" for line in text.splitlines())
        window.append(window.end, "".join(lines).encode())
    assert {line.fold.words[3:11] for line in window.lines if line.fold} == {"4 ranks "}


def test_other_lines_of_code_are_other_tracebacks() -> None:
    window = LogWindow()
    for rank in (0, 5):
        text = TRACEBACK.format(rank=rank).replace("line 5", f"line {rank}")
        lines = (f"{rank}: {line}\n" for line in text.splitlines())
        window.append(window.end, "".join(lines).encode())
    assert not any(line.fold and line.fold.words for line in window.lines)


def test_folds_that_are_open_stay_open_when_a_page_comes_before_them() -> None:
    data = b"first\n" + mixed(4)
    window = LogWindow(6)
    window.append(6, data[6:])
    fold = next(line.fold for line in window.lines if line.fold)
    fold.open = True
    window.prepend(0, data[:6])
    assert window.lines[0].text == "first"
    assert any(line.fold.open for line in window.lines if line.fold)


def test_wrapped_rows_are_the_line_and_what_is_found_stands_out() -> None:
    window = LogWindow()
    window.append(0, "a \x1b[31mred\x1b[0m Needle 漢漢漢漢 end\n".encode())
    rows = LineLayout(8).rows(window.lines)
    assert "".join(row.line.text[row.first : row.last] for row in rows) == window.lines[0].text
    (row,) = LineLayout(0).rows(window.lines)
    parts = segments(row, Style(), "", marked=False, found="needle")
    assert [p.text for p in parts if p.style and p.style.reverse] == ["Needle"]
    assert [p.text for p in parts if p.style and p.style.color] == ["red"]
    assert not [
        p
        for p in segments(row, Style(), "", marked=False, found="NEEDLE")
        if p.style and p.style.reverse
    ]
