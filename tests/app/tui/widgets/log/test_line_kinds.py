"""Kinds of lines: errors red, warnings yellow, labels dim; noise is one line until it is opened."""

import pytest
from rich.style import Style

from lumitui.app.tui.widgets.log.line_kinds import DIM, tone_of
from lumitui.app.tui.widgets.log.log_rows import LineLayout, LogRow, segments
from lumitui.app.tui.widgets.log.log_window import KEPT_LINES, LogWindow

BIND = "cpu-bind=MASK - nid005028, task {0} {0} [1234]: mask 0xfe set\n"
NCCL = "{0}: nid005028:71:92 [0] NCCL INFO Channel 00/32 : 0 1 2\n"
LIBRARY = (
    "{0}: /venv/lib/python3.12/site-packages/torch/amp/grad.py:28: FutureWarning: it moves\n"
    "{0}:   return torch.amp.GradScaler()\n"
)


def window_of(text: str) -> LogWindow:
    window = LogWindow()
    window.append(0, text.encode())
    return window


def drawn(window: LogWindow, rank: int | None = None) -> list[str]:
    layout = LineLayout(0, rank)
    return [
        "".join(part.text for part in segments(row, Style(), words, marked=False, found=""))
        for row in layout.rows(window.lines)
        for words in [layout.fold_words(row.line)]
    ]


@pytest.mark.parametrize(
    ("line", "colour"),
    [
        ("torch.OutOfMemoryError: HIP out of memory", "red"),
        ("3: Traceback (most recent call last):", "red"),
        ("srun: error: nid005002: task 9: Exited with exit code 1", "red"),
        ("2026-01-02 ERROR trainer: no data", "red"),
        ("train.py:7: UserWarning: the loader is slow", "yellow"),
        ("7: nid1:2:3 [0] NCCL WARN Call to recv failed", "yellow"),
        ("epoch 1 step 7 loss 0.1, 0 errors", None),
    ],
)
def test_errors_are_red_and_warnings_yellow(line: str, colour: str | None) -> None:
    (shown,) = window_of(f"{line}\n").lines
    style = tone_of(shown)
    assert (style.color.name if style.color else None) == colour


def test_labels_are_dim_and_the_rest_of_the_line_is_not() -> None:
    (line,) = window_of("12: epoch 1\n").lines
    label, rest = segments(LogRow(line, 0, len(line.text)), Style(), "", marked=False, found="")
    assert (label.text, rest.text) == ("12: ", "epoch 1")
    assert label.style and label.style.dim and not (rest.style and rest.style.dim)


def test_noise_is_one_line_until_it_is_opened() -> None:
    noise = "".join(BIND.format(task) for task in range(14))
    window = window_of(f"the launch\n{noise}0: epoch 1\n")
    assert drawn(window) == ["the launch", "▸ 14 lines of cpu-bind", "0: epoch 1"]
    (fold,) = {line.noise for line in window.lines if line.noise}
    fold.open = True
    assert len(drawn(window)) == 16 and drawn(window)[1].endswith("set  ▾ 14 lines of cpu-bind")
    assert tone_of(window.lines[1]) == DIM


def test_noise_of_several_writers_is_one_fold_and_a_rank_has_its_own_count() -> None:
    lines = [NCCL.format(at % 4) for at in range(12)] + [LIBRARY.format(2)]
    window = window_of("".join(lines))
    assert drawn(window) == ["▸ 14 lines of NCCL and Python warnings"]
    assert drawn(window, rank=2) == ["▸ 5 lines of NCCL and Python warnings"]
    assert drawn(window, rank=3) == ["▸ 3 lines of NCCL and Python warnings"]


@pytest.mark.parametrize(
    "line",
    [
        "srun: error: Unable to create step: Requested node configuration is not available",
        "srun: Warning: can't honor --ntasks-per-node set to 8",
        "nid1:2:3 [0] NCCL WARN Call to recv failed",
        "MIOpen(HIP): Error [BuildHip] HIPRTC status = HIPRTC_ERROR_COMPILATION",
        "/me/project/train.py:3: UserWarning: mine",
        "",
    ],
)
def test_what_may_say_why_a_run_failed_is_not_noise(line: str) -> None:
    window = window_of(f"{line}\n" * 5)
    assert drawn(window) == [line] * 5


def test_a_fold_whose_first_lines_are_dropped_has_a_first_line_again() -> None:
    window = window_of(NCCL.format(0) * (KEPT_LINES - 1000))
    window.append(window.end, b"0: step\n" * 2000)
    assert drawn(window)[0].startswith("▸ ") and len(window.lines) == KEPT_LINES
    assert drawn(window)[0] == f"▸ {KEPT_LINES - 2000:,} lines of NCCL"
    window.append(window.end, (BIND.format(1) * 2).encode())
    assert drawn(window)[-1] == BIND.format(1).strip(), "two lines are no fold yet"
    window.append(window.end, BIND.format(1).encode())
    assert drawn(window)[-1] == "▸ 3 lines of cpu-bind"
