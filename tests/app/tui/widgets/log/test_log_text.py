"""A log's bytes become bounded, safe lines, wherever they are cut; bars are one line a rank."""

from lumitui.app.tui.widgets.log.line_kinds import ShownLine
from lumitui.app.tui.widgets.log.log_text import MAX_LINE, LogText


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
