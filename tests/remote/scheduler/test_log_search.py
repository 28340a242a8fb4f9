"""A log is searched on the site, by its bytes; real shells, and answers that make no sense."""

from pathlib import Path

import pytest

from lumitui.app.knowledge.log_lines import ERROR_PATTERN, first_errors
from lumitui.remote.scheduler import log_search
from lumitui.remote.scheduler.log_search import MOST_MATCHES, WIDTH, Match, Sought, find
from lumitui.remote.site.errors import AnswerUnusable, RefusedError
from lumitui.remote.transport.local import Local
from tests.support.servers.transports import FixedAnswer

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
