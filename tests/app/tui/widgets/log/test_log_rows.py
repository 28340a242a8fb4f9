"""Rows of a log: their kinds, folds and ranks."""

import random

from rich.cells import cell_len
from rich.style import Style

from lumitui.app.explain.log_words import RankMark
from lumitui.app.tui.widgets.choice_button import neighbour
from lumitui.app.tui.widgets.log.log_rows import LineLayout, segments
from lumitui.app.tui.widgets.log.log_window import LogWindow
from lumitui.app.tui.widgets.log.rank_chips import chips

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


FAILED, RAISED = RankMark(1, "failed first", failed=True), RankMark(1, "traceback", failed=False)


def test_the_row_fits_and_each_chip_is_where_it_is_drawn() -> None:
    for ranks in (range(2), range(16), range(8192)):
        for chosen in (None, 0, 1, ranks[-1]):
            for width in (40, 80, 200):
                for mark in (FAILED, RAISED, None):
                    fits(ranks, chosen, mark, width)


def fits(ranks: range, chosen: int | None, mark: RankMark | None, width: int) -> None:
    text, places = chips(ranks, chosen, mark, width)
    assert cell_len(text.plain) <= width
    assert chosen in [rank for *_, rank in places], "what is chosen is shown"
    for first, last, rank in places:
        drawn = text.plain[first:last]
        assert str("all" if rank is None else rank) in drawn
        assert drawn.startswith("[") == (rank == chosen)


def test_the_row_names_its_keys_and_only_a_rank_that_failed_leaves_its_place() -> None:
    def row(mark: RankMark | None, width: int = 80, keys: str = ", .") -> str:
        return chips(range(3), None, mark, width, keys)[0].plain

    assert row(FAILED) == "ranks (, .) [all] ●1 failed first  0  2 "
    assert row(RAISED, keys="< ctrl+x") == "ranks (< ctrl+x) [all] 0  1 traceback  2 "
    assert row(None, 40) == "ranks [all] 0  1  2 "


def test_the_keys_go_round() -> None:
    assert [neighbour([None, 0, 3, 9], at, 1) for at in (None, 0, 3, 9)] == [0, 3, 9, None]
    assert neighbour([None, 0, 3, 9], None, -1) == 9 and neighbour([None, 0, 3], 7, 1) == 0
