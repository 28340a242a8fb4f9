"""The pattern that the form offers finds the number that the program prints."""

import re
import time

import pytest

from lumitui.app.follow.results.log_patterns import series_of
from lumitui.app.follow.results.summary import SPEEDS
from lumitui.app.launch.draft.job_form import apply_fix
from lumitui.app.launch.draft.printed_series import logged_speed, scale_offer, undrawn_series
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
        ('print(f"loss {l} Images/sec: {s:.1f}")', "loss 1.060 Images/sec: 9356", "9356"),
        ('print(f"loss {l} ({s:.1f} img/s)")', "loss 1.060 (9356 img/s)", "9356"),
    ],
)
def test_the_speed_is_the_number_beside_its_word(program: str, line: str, number: str) -> None:
    (note,) = undrawn_series(program, LOSS)
    assert note.fix
    ((name, pattern),) = note.fix.below
    found = re.search(pattern, line)
    assert found and found[1] == number
    assert name in SPEEDS


def test_one_offer_has_all_series_and_a_program_with_metrics_of_its_own_needs_none() -> None:
    (note,) = undrawn_series('print(f"loss {l} Images/sec: {s}")', "")
    assert note.fix
    text = apply_fix("name: a\n", note.fix)
    patterns = Document(text, "", plain=True).data["metrics"]
    assert isinstance(patterns, dict)
    found = series_of("loss 1.060 Images/sec: 9356", patterns)
    assert found == {"loss": [1.06], "images_per_s": [9356.0]}
    assert not list(undrawn_series('open("metrics.jsonl")\nprint(f"loss {l}")', ""))


@pytest.mark.parametrize(
    ("args", "scale"),
    [
        ('[--batch-size, "64", --lr=0.1]',
         "scale: {batch: {arg: --batch-size, keep: per_gpu}, lr: {arg: --lr, rule: sqrt}}\n"),
        ("[--train_batch_size, 8]", "scale: {batch: {arg: --train_batch_size, keep: per_gpu}}\n"),
        ("[--global-batch-size, 64]",
         "scale: {batch: {arg: --global-batch-size, arg_is: global, keep: per_gpu}}\n"),
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


@pytest.mark.parametrize(
    ("line", "quoted"),
    [
        ("loss 1.06 Images/sec: 1189.2", "Images/sec: 1189.2"),
        ("epoch 1 123 img/s", "123 img/s"),
        ("throughput 1,189.5 samples/s.", "1,189.5 samples/s"),
    ],
)
def test_a_speed_in_the_log_is_quoted_with_a_pattern_that_finds_it(line: str, quoted: str) -> None:
    sentence = logged_speed(f"loading\n{line}\n")
    assert f"The log prints `{quoted}`" in sentence
    made = re.search(r"`metrics: \{samples_per_s: '(.+)'\}`", sentence)
    assert made and series_of(line, {"x": made[1]})["x"]


def test_steps_per_second_are_not_samples_and_other_logs_have_no_speed() -> None:
    assert "`4.2 it/s`, which counts steps" in logged_speed("60/100 [00:10<00:05, 4.2 it/s]")
    assert logged_speed("reading 4 images from /s3\nimages/second\n") == ""


@pytest.mark.parametrize(
    "line",
    [
        "120.5 samples/s/GPU", "120 samples/s per GPU", "120 images/sec (per device)",  # of one GPU
        "samples/s: 1.2k", "1.2e+04 samples/s", "samples/s: 1.2e+04", "samples/s=1_234",
        "Map: 100%|#| 1000/1000 [00:01<00:00, 5000.12 examples/s]",  # Hugging Face, before training
    ],
)  # fmt: skip
def test_a_number_that_is_not_the_speed_of_the_run_is_not_offered(line: str) -> None:
    assert logged_speed(line) == ""


@pytest.mark.parametrize("text", ["a" * 30_000, "1" * 30_000, "print(" * 10_000])
def test_a_long_word_in_a_program_takes_no_time(text: str) -> None:
    begun = time.process_time()
    assert list(undrawn_series(f"ICON = '{text}'", "")) == []
    assert time.process_time() - begun < 3
