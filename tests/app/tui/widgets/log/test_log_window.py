"""A window on a log: any page can come before or after it, and its memory is bounded."""

import random

from lumitui.app.tui.widgets.log import log_window
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
