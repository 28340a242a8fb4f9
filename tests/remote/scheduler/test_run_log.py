"""A log on the site: read from anywhere, and searched by its bytes."""

import threading
import time
from pathlib import Path

import pytest

from lumitui.app.knowledge.log_lines import ERROR_PATTERN, first_errors
from lumitui.remote.scheduler import log_search
from lumitui.remote.scheduler.log_search import MOST_MATCHES, WIDTH, Match, Sought, find
from lumitui.remote.scheduler.run_log import LOG_BLOCK, MOST_BLOCKS, read_end, read_page, stream
from lumitui.remote.site.errors import AnswerUnusable, RefusedError
from lumitui.remote.transport.local import Local
from lumitui.remote.transport.transport import Transport
from tests.support.servers.transports import FixedAnswer


def test_the_end_of_a_growing_log_is_read_exactly(tmp_path: Path) -> None:
    log = tmp_path / "attempt-1.out"
    over = threading.Event()

    def write() -> None:
        with log.open("ab", buffering=0) as file:
            for number in range(10**7):
                if over.is_set():
                    return
                file.write(b"%07d\n" % number)

    log.write_bytes(b"")
    writer = threading.Thread(target=write)
    writer.start()
    transport = Local()
    try:
        for _ in range(30):
            found = read_end(transport, str(log), 5000)
            assert found is not None
            start, data = found
            with log.open("rb") as file:
                file.seek(start)
                assert file.read(len(data)) == data
            assert len(data) == min(5000, start + len(data))
        assert start > 0
    finally:
        over.set()
        writer.join()
        transport.close()
    assert read_end(transport, str(log), 10) == (log.stat().st_size - 10, log.read_bytes()[-10:])
    assert read_end(transport, str(tmp_path / "attempt-2.out"), 10) is None


def test_a_log_whose_folder_was_deleted_is_not_one_that_was_never_written(tmp_path: Path) -> None:
    transport, log = Local(), str(tmp_path / "it's gone" / "attempt-1.out")
    try:
        with pytest.raises(RefusedError, match="The run's folder no longer exists at the site"):
            read_end(transport, log, 10)
        with pytest.raises(RefusedError, match="The run's folder no longer exists at the site"):
            read_page(transport, log, 0, 10)
    finally:
        transport.close()


def test_a_stream_waits_for_its_log_and_begins_at_its_byte(tmp_path: Path) -> None:
    log, transport = tmp_path / "a log's own.out", Local()
    deadline = time.monotonic() + 90
    data = b""
    try:
        for chunk in stream(transport, str(log), 3, lambda: time.monotonic() > deadline):
            if not log.exists():
                # Not there yet when the stream began, and at once with all its bytes.
                written = tmp_path / "written"
                written.write_bytes(b"012345")
                written.rename(log)
            data += chunk
            if data:
                break
    finally:
        transport.close()
    assert data == b"345"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"", "no reason given"),
        (b"Welcome to the site\nlog", "Welcome to the site"),
        (b"-5\nlog", "-5"),
        (b"1" * 5000 + b"\nlog", "1111"),
        (b"1e999\nlog", "1e999"),
        (b"\xff\xfe\nlog", "\ufffd"),
        ("\u0663\nlog".encode(), "\u0663"),
        (b"0\n" + b"x" * 11, "more than the 10 requested bytes"),
    ],
)
def test_an_answer_that_is_no_end_of_a_log_is_said(answer: bytes, words: str) -> None:
    with pytest.raises(AnswerUnusable) as raised:
        read_end(FixedAnswer(answer), "/log", 10)
    assert words in raised.value.message and raised.value.hint and raised.value.exit_code == 3
    assert len(raised.value.message) < 500


def test_a_log_that_cannot_be_read_is_said_with_the_sites_words() -> None:
    with pytest.raises(RefusedError, match="Input/output error"):
        read_end(FixedAnswer(b"", 45, b"sh: wc: Input/output error\n"), "/log", 10)
    with pytest.raises(RefusedError, match="exit status 255"):
        read_end(FixedAnswer(b"", 255), "/log", 10)
    assert read_end(FixedAnswer(b"", 44), "/log", 10) is None


def test_any_page_of_a_log_of_two_gigabytes_is_one_bounded_request(
    transport: Transport, tmp_path: Path
) -> None:
    log = tmp_path / "a log's own.out"
    size = (2 << 30) + 12_345
    with log.open("wb") as file:
        file.truncate(size)  # sparse
        for at in (0, 1 << 30, size - 4):
            file.seek(at)
            file.write(b"here")
    page = read_page(transport, str(log), (1 << 30) + 1, 2)
    assert page is not None and page.start == 1 << 30 and page.size == size
    assert page.data[:4] == b"here" and len(page.data) == LOG_BLOCK
    last = read_page(transport, str(log), size - 4, 10**12)
    assert last is not None and last.data.endswith(b"here") and len(last.data) <= 2 * LOG_BLOCK
    first = read_page(transport, str(log), 0, 10**12)
    assert first is not None and len(first.data) == MOST_BLOCKS * LOG_BLOCK
    behind = read_page(transport, str(log), size + LOG_BLOCK, 1)
    assert behind is not None and not behind.data and behind.size == size
    assert read_page(transport, str(tmp_path / "no"), 0, 1) is None


NASTY = "a'b $(touch x) -e * [c \\d"


def test_words_are_found_where_they_are_and_never_run(tmp_path: Path) -> None:
    log, site = tmp_path / "a log's.out", Local()
    lines = [f"line {n} {'Needle' if n % 7 == 0 else 'hay'} é" for n in range(5000)]
    lines[70] = f"here: {NASTY}"
    lines[80] = "x" * 100_000 + "needle"
    data = ("\n".join(lines) + "\n").encode() + b"\0\xff Needle\n"
    log.write_bytes(data)

    def all_of(words: str, *, is_pattern: bool = False) -> list[Match]:
        found = find(site, str(log), Sought(words, is_pattern), 0, forward=True)
        assert found is not None
        return found

    (nasty,) = all_of(NASTY)
    assert data[nasty.offset :].startswith(b"here: ") and not list(Path.cwd().glob("x"))
    found = all_of("needle")
    assert len(found) == MOST_MATCHES and max(len(match.text) for match in found) <= WIDTH
    assert all(b"eedle" in data[m.offset :].split(b"\n")[0] for m in found)
    assert len(all_of("Needle")) == MOST_MATCHES and not all_of("NEEDLE")
    assert len(all_of("^line 7.* N", is_pattern=True)) > 10
    behind = find(site, str(log), Sought("needle"), found[-1].offset + 1, forward=True)
    before = find(site, str(log), Sought("needle"), len(data), forward=False)
    assert behind and before and behind[-1].offset == before[-1].offset
    assert data[before[-1].offset :] == b"\0\xff Needle\n" and len(before) == MOST_MATCHES
    above = find(site, str(log), Sought("needle"), found[3].offset, forward=False)
    assert above is not None and [m.offset for m in above] == [m.offset for m in found[:3]]
    assert find(site, str(tmp_path / "no"), Sought("x"), 0, forward=True) is None
    site.close()


def test_an_answer_that_is_no_list_of_places_is_said() -> None:
    for answer in (b"Welcome\n", b"-1:x\n", b"x:1\n"):
        with pytest.raises(AnswerUnusable):
            find(FixedAnswer(answer), "/log", Sought("x"), 0, forward=True)
    with pytest.raises(RefusedError, match="grep does not report"):
        find(FixedAnswer(b"", log_search._NO_GREP), "/log", Sought("x"), 0, forward=True)
    with pytest.raises(RefusedError, match="memory exhausted"):
        find(FixedAnswer(b"", 0, b"grep: memory exhausted\n"), "/log", Sought("x"), 0, forward=True)


def test_errors_are_found_once_each_in_the_order_of_the_log(tmp_path: Path) -> None:
    lines = [
        "loss_error: 0.4 is no error", "Error rate: 3 %", "3: Traceback (most recent call last):",
        "3: KeyError: 'keys'", "12: [rank12]: KeyError: 'keys'", "5: torch.OutOfMemoryError: HIP 5",
        "4: torch.OutOfMemoryError: HIP 4", "ChildFailedError: ", "RuntimeError",
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",
        "slurmstepd-nid005002: error: Detected 1 oom_kill event",
        "srun: error: nid005002: task 5: Exited with exit code 1",
        "srun: error: nid005003: task 9: Exited with exit code 1",
        "job.sh: line 3: 12 Segmentation fault (core dumped) python",
    ]  # fmt: skip
    log, site = tmp_path / "log", Local()
    log.write_text("\n".join(lines))
    found = find(site, str(log), Sought(ERROR_PATTERN, is_pattern=True), 0, forward=True) or []
    errors = first_errors([(m.offset, m.text) for m in found], label_is_rank=True)
    assert [(error.rank, error.text[:24]) for error in errors] == [
        (3, "KeyError: 'keys'"), (5, "torch.OutOfMemoryError: "), (None, "RuntimeError"),
        (None, "slurmstepd-nid005002: er"), (None, "srun: error: nid005002: "),
        (None, "job.sh: line 3: 12 Segme"),
    ]  # fmt: skip
    site.close()
