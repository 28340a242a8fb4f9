"""What shows a training: event files for TensorBoard, the other watchers, a trace of some steps."""

import gzip
import json
import math
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.trainers.ranks import Load, events, losses, reported, train_alone

SHORT = ("ddp.py", "--limit", "320", "--epochs", "1", "--eval", "never")


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a protocol buffer: numbers of varints, bytes of all others."""
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            value, shift, at = value | (byte & 0x7F) << shift, shift + 7, at + 1
            if byte < 0x80:
                return value

    while at < len(data):
        key = varint()
        size = {1: 8, 5: 4}.get(key & 7)
        if key & 7 == 0:
            yield key >> 3, varint()
            continue
        length = size or varint()
        yield key >> 3, data[at : at + length]
        at += length


def numbers_in(path: Path) -> dict[tuple[str, int], float]:
    """What an event file says, by tag and step; real TensorBoard reads it alike."""
    data, found = path.read_bytes(), {}
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        event = dict(fields(data[12 : 12 + length]))
        data = data[16 + length :]
        step = event.get(2, 0)
        summary = event.get(5, b"")
        assert isinstance(step, int) and isinstance(summary, bytes)
        for _, value in fields(summary):
            assert isinstance(value, bytes)
            parts = dict(fields(value))
            tag, number = parts[1], parts[2]
            assert isinstance(tag, bytes) and isinstance(number, bytes)
            (found[tag.decode(), step],) = struct.unpack("<f", number)
    return found


@pytest.mark.usefixtures("needs_torch")
def test_a_training_is_shown_in_tensorboard_and_some_steps_are_traced(tmp_path: Path) -> None:
    code, said = train_alone(tmp_path, *SHORT, "--watch", "tensorboard", "--profile", "3:5")
    assert code == 0, said
    (path,) = (tmp_path / "watch" / "tensorboard").iterdir()
    shown = numbers_in(path)
    for step, loss in losses(tmp_path).items():
        assert shown["loss", step] == pytest.approx(loss, rel=1e-6)
    (end,) = events(tmp_path, "end")
    assert shown["samples_per_s", 10] == pytest.approx(end["samples_per_s"], rel=1e-6)
    (trace,) = (tmp_path / "profile").iterdir()
    assert trace.name == "rank-0-steps-3-5.json.gz"
    traced = json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"]
    names = {item.get("name", "") for item in traced}
    assert {name for name in names if name.startswith("step ")} == {"step 3", "step 4", "step 5"}
    assert any("backward" in name.lower() for name in names)


@pytest.mark.usefixtures("needs_torch")
def test_a_package_that_is_missing_is_told_before_anything_starts(tmp_path: Path) -> None:
    code, said = train_alone(tmp_path, *SHORT, "--watch", "tensorboard,mlflow", before=ABSENT)
    assert code == 2 and "--watch mlflow needs the Python package mlflow" in said
    assert "leave mlflow out" in said and "Traceback" not in said
    assert reported(tmp_path) == [] and not (tmp_path / "watch").exists()


ABSENT = """
import sys
sys.modules["mlflow"] = None
"""

# The real packages are too large for these tests, and neither fails when it is asked to.
STAND_INS = """
import json, sys, types
mlflow, wandb = types.ModuleType("mlflow"), types.ModuleType("wandb")
def note(what):
    return lambda *args, **named: open("called", "a").write(
        json.dumps([what, args, named], default=str) + "\\n")
for name in ("set_tracking_uri", "set_experiment", "start_run", "log_params", "log_metrics",
             "end_run"):
    setattr(mlflow, name, note(name))
class Run:
    def log(self, numbers, step):
        if step == 4:
            raise ConnectionError("the service ended")
        note("log")(numbers, step)
wandb.init = lambda **named: note("init")(**named) and Run()
wandb.Settings = dict
sys.modules |= {"mlflow": mlflow, "wandb": wandb}
"""


@pytest.mark.usefixtures("needs_torch")
def test_a_watcher_that_fails_is_left_out_and_the_training_goes_on(tmp_path: Path) -> None:
    code, said = train_alone(tmp_path, *SHORT, "--watch", "mlflow,wandb", before=STAND_INS)
    assert code == 0 and said.count("wandb failed (the service ended).") == 1
    calls = [json.loads(line) for line in (tmp_path / "called").read_text().splitlines()]
    names = [name for name, _, _ in calls]
    assert names.count("log") == 3 and names[-1] == "end_run"
    assert calls[0][1] == [(tmp_path / "watch" / "mlflow").as_uri()]
    ((_, _, begun),) = (call for call in calls if call[0] == "init")
    assert begun["mode"] == "offline" and begun["dir"] == str(tmp_path / "watch" / "wandb")
    logged = {call[2]["step"] for call in calls if call[0] == "log_metrics"}
    assert logged >= set(range(1, 11))


def test_a_number_that_an_event_cannot_hold_is_left_out(load: Load) -> None:
    line = {"step": 3, "loss": 1e300, "lr": math.nan, "whole": 10**400, "best": True, "grad": 0.5}
    assert load("monitor.event_file").numbers_of(line) == {"grad": 0.5}


def test_the_checksum_is_crc_32c(load: Load) -> None:
    found = load("monitor.event_file")
    # RFC 3720, B.4: 32 bytes of zeros; masked as record_writer.h does.
    crc = 0x8A9136AA
    assert found.checksum(bytes(32)) == ((crc >> 15 | crc << 17) + 0xA282EAD8) % 2**32
