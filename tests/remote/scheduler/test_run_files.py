"""The files of watched runs, as programs and sites may make them: any number, any size."""

import json
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lumitui.app.follow.poll import poll_site
from lumitui.app.history.history import History
from lumitui.remote.connect import Connection
from lumitui.remote.laptop.scheduler import Process
from lumitui.remote.scheduler import run_files
from lumitui.remote.scheduler.run_files import parse_exit, parse_files, poll_files
from lumitui.remote.scheduler.scheduler_protocol import State, Watch
from lumitui.remote.transport.local import Local
from lumitui.remote.transport.transport import Transport
from tests.support.jobs.made_runs import a_run
from tests.support.replies.schedulers import WATCHES

LONG = 100 << 20
EXIT = {"rc": 7, "rank": 3, "job": "317", "attempt": 1, "ended": 1795236600}


class Poller:
    """Polls one run's folder with a history of its own."""

    def __init__(self, transport: Local, folder: Path) -> None:
        self.file = folder / "run" / "metrics.jsonl"
        self.file.parent.mkdir()
        self.history = History(folder / "history.db")
        self.run = a_run(
            "r1", folder=str(self.file.parent), state=State.RUNNING, job_id="7", submitted=1.0
        )
        self.history.begin(self.run)
        self.connection = Connection(transport, Process(transport), lambda: "me", "/")

    def poll(self) -> int:
        """Poll once; return the requests."""
        return poll_site([self.history.get("r1")], self.connection, self.history).requests

    def steps(self) -> list[int | None]:
        return [point.step for point in self.history.metrics.of("r1")]


def test_a_line_of_100_megabytes_stays_at_the_site(tmp_path: Path) -> None:
    transport = Local()
    poller = Poller(transport, tmp_path)
    with poller.file.open("wb") as file:
        file.write(b'{"step": 1}\n{"step": 2, "x": "' + b"x" * LONG + b'"}\n{"step": 3}\n')
    assert poller.poll() <= 4
    assert poller.steps() == [1, 3] and poller.history.metrics.broken("r1") == 1
    assert transport.bytes_down < run_files.REST_BYTES + 2 * run_files.METRICS_BYTES
    with poller.file.open("ab") as file:
        file.write(b'{"step": 4}\n')
    assert poller.poll() == 1 and poller.steps() == [1, 3, 4]
    poller.history.close()


def test_a_line_without_end_is_passed_over_piece_by_piece(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_files, "SKIPPED_BYTES", 1 << 20)
    transport = Local()
    poller = Poller(transport, tmp_path)
    with poller.file.open("wb") as file:
        file.write(b'{"step": 1}\n')
        file.truncate(1 << 40)
    for _ in range(3):
        assert poller.poll() <= 3, "it does not go on for as long as there is more"
    assert transport.bytes_down < run_files.REST_BYTES + 5 * run_files.METRICS_BYTES
    poller.history.close()


def test_a_line_that_is_being_written_comes_when_it_ends(tmp_path: Path) -> None:
    poller = Poller(Local(), tmp_path)
    poller.file.write_bytes(b'{"step": 1}\n{"step"')
    assert poller.poll() == 1 and poller.steps() == [1]
    with poller.file.open("ab") as file:
        file.write(b": 2}\n")
    assert poller.poll() == 1 and poller.steps() == [1, 2]
    poller.history.close()


def test_skipping_counts_every_byte_under_every_shell(transport: Transport, tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_bytes(b"a" * 70_000 + b"\nnext\n")
    for offset, skipped in ((69_000, 1001), (70_001, 0), (70_000, 1)):
        watch = Watch("a", str(tmp_path), "5", metrics_offset=offset)
        found = poll_files(transport, [watch])["a"]
        assert (found.metrics_skipped, found.metrics) == (skipped, b"next\n"), offset


def test_files_without_number_are_passed_over(transport: Transport, tmp_path: Path) -> None:
    for number in (*range(1, 13), 999, 1000, 99999):
        (tmp_path / f"attempt-{number}.exit").write_text(json.dumps(EXIT))
        (tmp_path / f"attempt-{number}.out").write_text("log")
    found = poll_files(transport, [Watch("a", str(tmp_path), "5")])["a"]
    assert [item.attempt for item in found.exits] == [*range(1, 13), 999]
    assert sorted(found.log_sizes) == [*range(1, 13), 999]


def test_what_hangs_is_read_and_what_is_no_sentence_is_not(
    transport: Transport, tmp_path: Path
) -> None:
    file, asked = tmp_path / "hung.json", [Watch("a", str(tmp_path), "5")]
    file.write_text(json.dumps({"sentence": "Rank 9\non n1 hangs.", "time": 1e9, "ranks": [9]}))
    found = poll_files(transport, asked)["a"].hang
    assert found is not None and (found.sentence, found.said) == ("Rank 9 on n1 hangs.", 1e9)
    for content in ("", "[]", '{"sentence": 7}', '{"sentence": "' + "x" * 10_000_000):
        file.write_text(content)
        assert poll_files(transport, asked)["a"].hang is None


def test_an_exit_file_and_a_binding_of_any_size_are_cut(
    transport: Transport, tmp_path: Path
) -> None:
    (tmp_path / "attempt-1.exit").write_bytes(b" " * 10_000_000)
    (tmp_path / "binding.json").write_bytes(b"[" * 10_000_000)
    found = poll_files(transport, [Watch("a", str(tmp_path), "5")])["a"]
    assert found.exits == ()
    assert found.binding is not None and len(found.binding) <= run_files.BINDING_BYTES


def test_a_site_that_brings_more_than_was_asked_for_is_cut() -> None:
    long = b"x" * 5_000_000
    answer = (
        b"M metrics 0 99999999999999\n" + long + b"\nM end\nM binding 0\n" + long + b"\nM end\n"
        b"M exit 0 1\n" + json.dumps(EXIT | {"job": "x" * 10_000}).encode() + b"\nM end\n"
        b"M exit 0 1000000\n" + json.dumps(EXIT).encode() + b"\nM end\nM missing 99\n\nM end\n"
        b"M sizes\n" + b"".join(b"1 /f/attempt-%d.out\n" % n for n in range(5000)) + b"M end\n"
    )
    (found,) = parse_files(answer, "M", [Watch("a", "/f", "5")]).values()
    assert len(found.metrics) == run_files.METRICS_BYTES and found.metrics_skipped == 0
    assert len(found.binding or "") <= run_files.BINDING_BYTES + 1
    assert found.exits == () and max(found.log_sizes) == run_files.MOST_ATTEMPT


ODD = [10**400, 1e999, float("nan"), -1, True, "7", None, [], {}, 1.5, "\ud800", 2**63]


@pytest.mark.parametrize("name", ["rc", "rank", "ended", "started", "job"])
@pytest.mark.parametrize("value", ODD, ids=repr)
def test_an_exit_file_with_an_odd_value_is_read_or_left_out(name: str, value: object) -> None:
    found = parse_exit(json.dumps(EXIT | {name: value}).encode(), 1)
    if found is not None:
        assert abs(found.rc) <= 10**9 and 0 <= (found.rank or 0) <= 10**9
        assert 0 < found.ended < 1e11
        found.job_id.encode()


@settings(max_examples=40)
@given(st.binary() | st.recursive(
    st.none() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from([*EXIT]) | st.text(), inner),
).map(lambda value: json.dumps(value).encode()))  # fmt: skip
def test_no_exit_file_raises(content: bytes) -> None:
    parse_exit(content, 1)


@given(st.binary(max_size=400), st.lists(st.sampled_from(
    [b"M ", b"M end\n", b"metrics 0 1\n", b"exit 0 1\n", b"binding 1\n", b"sizes\n", b"missing 0\n",
     b"missing \xc2\xb2\n", b"9" * 5000, b"1 /f/attempt-1.out\n", json.dumps(EXIT).encode(), b"\n"]
)))  # fmt: skip
def test_no_answer_about_files_raises(noise: bytes, parts: list[bytes]) -> None:
    found = parse_files(noise + b"".join(parts) + noise, "M", WATCHES)
    assert set(found) == {watch.run for watch in WATCHES}


def test_a_poll_ends_after_its_time_however_much_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    poller = Poller(Local(), tmp_path)
    monkeypatch.setattr(run_files, "REST_BYTES", 1 << 18)
    poller.file.write_bytes(b'{"step": 1, "loss": 2.0}\n' * 25_000)
    clock = iter(range(0, 100_000, 60))
    ticking = SimpleNamespace(monotonic=lambda: float(next(clock)), time=time.time)
    monkeypatch.setattr("lumitui.app.follow.poll.time", ticking)
    assert poller.poll() == 2, "without a limit it would be four"
    poller.history.close()
