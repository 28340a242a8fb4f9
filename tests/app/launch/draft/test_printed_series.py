"""The pattern that the form offers finds the number that the program prints."""

import re

import pytest

from lumitui.app.launch.draft.job_form import apply_fix
from lumitui.app.launch.draft.printed_series import scale_offer, undrawn_series
from lumitui.remote.site.reading.yaml_document import Document

LOSS = "loss: x"  # drawn already


@pytest.mark.parametrize(
    ("program", "line", "number"),
    [
        ('print(f"loss {l:.3f} samples/s {s:.0f}")', "loss 1.060 samples/s 9356", "9356"),
        ('print(f"loss {l:.3f}, samples/s={s}")', "loss 1.060, samples/s=9356", "9356"),
        ('print(f"loss {l:.3f} | {s:.0f} samples/s")', "loss 1.060 | 9356 samples/s", "9356"),
        ('print("loss %.3f %d samples/s" % (l, s))', "loss 1.060 9356 samples/s", "9356"),
        ('print(f"{s:.0f} samples/s, loss {l}")', "9356 samples/s, loss 1.060", "9356"),
    ],
)
def test_the_speed_is_the_number_beside_its_word(program: str, line: str, number: str) -> None:
    (note,) = undrawn_series(program, LOSS)
    assert note.fix and isinstance(note.fix.value, str)
    found = re.search(note.fix.value, line)
    assert found and found[1] == number


def test_the_loss_comes_first_and_a_program_with_metrics_of_its_own_needs_no_pattern() -> None:
    (note,) = undrawn_series('print(f"loss {l} samples/s {s}")', "")
    assert note.fix and isinstance(note.fix.value, str)
    found = re.search(note.fix.value, "loss 1.060 samples/s 9356")
    assert found and found[1] == "1.060"
    assert not list(undrawn_series('open("metrics.jsonl")\nprint(f"loss {l}")', ""))


@pytest.mark.parametrize(
    ("args", "scale"),
    [
        ('[--batch-size, "64", --lr=0.1]',
         "scale: {batch: {arg: --batch-size, keep: per_gpu}, lr: {arg: --lr, rule: linear}}\n"),
        ("[--train_batch_size, 8]", "scale: {batch: {arg: --train_batch_size, keep: per_gpu}}\n"),
        ("[--lr, 0.1]", ""), ("[--batch-size, 64]\nscale: {}", ""),
        ("[--batch-size, 64]\ntrainer: ddp", ""),
    ],
)  # fmt: skip
def test_scale_is_offered_for_a_batch_size_that_it_does_not_name(args: str, scale: str) -> None:
    text = f"args: {args}\n"
    offers = list(scale_offer(Document(text, "", plain=True).data))
    assert len(offers) == bool(scale)
    for note in offers:
        assert note.fix and apply_fix(text, note.fix) == text + scale
