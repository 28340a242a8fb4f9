"""A log's bytes become safe lines, of which a bounded window is kept."""

import random

from lumitui.app.tui.widgets.log import log_window
from lumitui.app.tui.widgets.log.line_kinds import ShownLine
from lumitui.app.tui.widgets.log.log_text import MAX_LINE, LogText
from lumitui.app.tui.widgets.log.log_window import KEPT_LINES, PAGE, LogWindow


def log(lines: int, seed: int = 1) -> bytes:
    chance = random.Random(seed)
    return b"".join(b"%d %s\n" % (n, b"x" * chance.choice([0, 9, 90])) for n in range(lines))


def texts(window: LogWindow) -> list[str]:
    return [line.text for line in window.lines]


def between(data: bytes, window: LogWindow) -> list[str]:
    return data[window.start : window.end].decode().splitlines()


def test_pages_before_the_window_join_it_without_a_seam() -> None:
    data = log(3000)
    window = LogWindow(len(data) - 5000)
    window.append(len(data) - 5000, data[-5000:])
    while before := window.before():
        first, stop = before
        assert first % PAGE == 0 and stop - first <= PAGE
        window.prepend(first, data[first:stop])
        assert texts(window)[-50:] == data.decode().splitlines()[-50:]
        assert all(line.offset >= window.start for line in window.lines)
    assert texts(window) == data.decode().splitlines() and window.is_at_end


def test_a_window_is_bounded_both_ways_and_comes_back_to_the_end() -> None:
    data = log(KEPT_LINES * 3, seed=2)
    window = LogWindow(len(data))
    while before := window.before():
        window.prepend(before[0], data[before[0] : before[1]])
        assert len(window.lines) <= KEPT_LINES
    assert not window.is_at_end and texts(window) == between(data, window)
    window.append(len(data), b"new\n" * 3)
    assert window.unseen == 3 and window.size == len(data) + 12, "it is not in the window"
    data += b"new\n" * 3
    while not window.is_at_end:
        window.append(window.end, data[window.end : window.end + 2 * PAGE])
        assert len(window.lines) <= KEPT_LINES + log_window._SLACK
    assert texts(window)[-2:] == ["new", "new"] and texts(window) == between(data, window)
    assert window.append(3, b"what is known") == log_window.LineChange()


def test_lines_longer_than_a_page_are_no_seam_and_no_end() -> None:
    data = b"a\n" + b"y" * (3 * PAGE) + b"\nb\n" + b"z" * 10
    window = LogWindow(len(data) - 12)
    window.append(len(data) - 12, data[-12:])
    for _ in range(10):
        if before := window.before():
            window.prepend(before[0], data[before[0] : before[1]])
    assert window.start == 0
    shown = [*texts(window), *([window.partial.text] if window.partial else [])]
    assert shown[0] == "a" and shown[-2:] == ["b", "z" * 10]
    assert sum(text.count("y") for text in shown) == 3 * PAGE
    partial = LogWindow(5)
    partial.append(5, b"no end")
    partial.prepend(0, b"there")
    assert partial.partial is not None and partial.partial.text == "thereno end"


def test_a_window_that_must_not_grow_counts_what_comes() -> None:
    window = LogWindow()
    window.append(0, b"a\nb\n")
    window.append(4, b"c\nd", grows=False)
    assert (window.end, window.size, window.unseen) == (4, 7, 3)
    window.append(4, b"c\nd\n")
    assert [line.text for line in window.lines] == ["a", "b", "c", "d"] and window.is_at_end


def shown(*chunks: bytes) -> list[ShownLine]:
    text, lines, partial = LogText(), list[ShownLine](), None
    for chunk in chunks:
        grown = text.feed(chunk)
        lines, partial = [*lines, *grown.lines], grown.partial
    return [*lines, partial] if partial else lines


def feed(*chunks: bytes) -> list[str]:
    return [line.text for line in shown(*chunks)]


def test_a_log_may_be_cut_anywhere() -> None:
    data = "ä\tb\r\nzwei 🙂\nbar 1\rbar 2\r\x1b[1mbar 3\x1b[0m\ntail".encode()
    whole = shown(data)
    assert feed(data) == ["ä       b", "zwei 🙂", "bar 3", "tail"]
    for at in range(len(data)):
        cut = shown(data[:at], data[at:])
        assert [(line.text, line.offset) for line in cut] == [
            (line.text, line.offset) for line in whole
        ]


def test_a_line_without_an_end_does_not_grow_for_ever() -> None:
    lines = feed(*[b"x" * 10_000] * 20)
    assert max(map(len, lines)) <= MAX_LINE
    assert sum(map(len, lines)) == 200_000
    bar = feed(*[b"\r" + b"=" * 100] * 2_000)
    assert bar == ["=" * 100]


def labelled(rank: int, written: bytes) -> list[bytes]:
    """Return what srun --label makes of a task's output: lines, a long one in pieces."""
    pieces = []
    for line in written.removesuffix(b"\n").split(b"\n"):
        pieces += [line[at : at + 1024] for at in range(0, len(line), 1024)]
    return [b"%2d: " % rank + piece + b"\n" for piece in pieces]


def test_a_bar_under_srun_label_is_one_line_a_rank_with_its_prefix() -> None:
    def bar(first: int) -> bytes:
        return b"".join(b"\r%3d%%|%-20s| %d/60" % (at, b"#" * (at // 5), at) for at in range(100))

    first = labelled(0, bar(0) + b"\r100%|####################| 60/60\nepoch 1 is over\n")
    other = labelled(11, bar(0))
    assert len(first) > 4 and len(other) > 3, "the bars are in pieces"
    mixed = [piece for pair in zip(first, other, strict=False) for piece in pair]
    mixed += [*first[len(other) :], *labelled(0, b"\r  0%|  |\n")]
    lines = feed(*mixed)
    assert lines == [
        " 0: 100%|####################| 60/60",
        "11:  99%|################### | 99/60",
        " 0: epoch 1 is over",
        " 0:   0%|  |",
    ]


def test_colours_stay_and_nothing_else_does() -> None:
    (line,) = shown(b"a\t\x1b[1;31mred\x1b[0m \x1b[2Jb\x1b[38;5;7mc\x1b[8mhidden\x1b[30mblack\n")
    assert line.text == "a       red ^[[2Jbchiddenblack"
    bold, *others = line.spans
    assert (
        bold[:2] == (8, 11) and bold[2].bold and str(bold[2].color and bold[2].color.number) == "1"
    )
    assert [span[:2] for span in others] == [(18, 19), (19, 25)], "black text is as any other"
    assert all(style.color is None or style.color.number for *_, style in line.spans)


def test_labels_are_ranks_or_launchers() -> None:
    data = b" 3: a\n[rank12]: b\n 1: [rank5]: c\nd  \n"
    assert [(line.rank, line.label) for line in shown(data)] == [
        (3, 4),
        (12, 10),
        (5, 13),
        (None, 0),
    ]
    (line,) = LogText(label_is_rank=False).feed(b"1: x\n").lines
    assert (line.rank, line.source) == (None, "1:")
