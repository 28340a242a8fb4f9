"""Records and fields of an answer, and the log of requests."""

import json
import math
import shutil
import subprocess
from collections.abc import Generator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lumitui.app.runs import Runs
from lumitui.remote.site import answer_fields
from lumitui.remote.site.errors import AnswerUnusable, LinkLost
from lumitui.remote.transport.local import Local
from lumitui.remote.transport.records import new_marker, parse_records, record_functions
from lumitui.remote.transport.request_log import MOST_REQUESTS, Logged, RequestLog, purpose
from tests.support.servers.transports import SHELLS

ODD = ["", "-1", "+1", "1.5", "1e999", "NaN", "0x10", "1_000", " 1", "\u0663", "\u00b2", "9" * 16]
ODD += ["1" * 5000, "1" + "0" * 5000, "Infinity", "--", "1\n"]


@pytest.mark.parametrize("text", ODD, ids=lambda text: repr(text[:20]))
def test_what_is_no_plain_number_is_none(text: str) -> None:
    assert answer_fields.count(text) is None
    assert answer_fields.moment(text) is None


def test_numbers_are_read() -> None:
    assert answer_fields.count("0") == 0 and answer_fields.count("9" * 15) == 10**15 - 1
    assert answer_fields.moment("1795236600") == answer_fields.moment(1795236600.0) == 1795236600.0
    assert (answer_fields.whole(0, 0, 5), answer_fields.whole(5.0, 0, 5)) == (0, 5)
    others: list[object] = [6, -1, True, "2", None, [], 1.5, math.nan, math.inf, 10**400]
    assert {answer_fields.whole(value, 0, 5) for value in others} == {None}


@given(st.one_of(st.text(), st.integers(), st.floats(), st.booleans(), st.none(), st.binary()))
def test_every_value_is_within_its_bounds_or_none(value: object) -> None:
    for number in (answer_fields.moment(value), answer_fields.whole(value, -5, 10**9)):
        assert number is None or (math.isfinite(number) and -5 <= number < 1e11)


def test_a_value_is_short_text() -> None:
    values: list[object] = ["text", 7, 1.5, "x" * 50, None, [], {"a": 1}]
    assert [answer_fields.short(value, 5) for value in values] == [
        "text",
        "7",
        "1.5",
        "xxxxx",
        "",
        "",
        "",
    ]


def test_lines_end_with_a_line_feed_alone() -> None:
    names = ["a\u2028b", "c\x0bd\x85", "", "e\r", "no end"]
    assert list(answer_fields.lines("\n".join(names))) == names
    assert list(answer_fields.lines(b"\xff\n\n")) == ["\ufffd", ""]
    assert list(answer_fields.lines("")) == []


def test_a_long_line_is_cut_and_too_many_lines_are_refused() -> None:
    long, short = answer_fields.lines(b"x" * 10_000_000 + b"\nshort\n")
    assert (len(long), short) == (answer_fields.LONGEST_LINE, "short")
    with pytest.raises(AnswerUnusable, match="more than 3 lines"):
        list(answer_fields.lines("\n" * 4, most=3))


BAD_JSON = ["", "{", "NaN", "[Infinity]", "-1e999", "1" * 5000, "[" * 100_000, '{"a":' * 50_000]
BAD_JSON += [
    "\ufeff{}",
    '"\ud800',
    "[1,]",
    r'["\ud800"]',
    '"' + "x" * answer_fields.MOST_JSON + '"',
]


@pytest.mark.parametrize("text", BAD_JSON, ids=lambda text: repr(text[:12]))
def test_json_that_cannot_be_read_is_none(text: str) -> None:
    assert answer_fields.json_of(text) is None
    assert answer_fields.json_of(text.encode("utf-8", "surrogatepass")) is None


def test_bytes_that_are_no_text_are_no_json() -> None:
    assert answer_fields.json_of(b'"\xff\xfe\xfd"') is None


@settings(max_examples=40)
@given(st.recursive(st.none() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
                    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))  # fmt: skip
def test_json_is_read_as_it_was_written(value: object) -> None:
    assert answer_fields.json_of(json.dumps(value)) == value


def test_the_last_words_are_one_line_of_bounded_length() -> None:
    assert answer_fields.last_words(b"", "one\n\ntwo.\n \n") == "two"
    assert answer_fields.last_words(b"\xff" * 10_000_000) == "\ufffd" * answer_fields.MOST_WORDS
    assert answer_fields.last_words("", b"\n \n", default="exit status 255") == "exit status 255"


@given(st.binary())
def test_the_last_words_of_anything_fit_a_sentence(said: bytes) -> None:
    words = answer_fields.last_words(said)
    assert words == words.strip() or words.endswith(" ")
    assert len(words) <= answer_fields.MOST_WORDS and "\n" not in words


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_a_record_has_the_words_of_its_first_line_and_what_was_printed(
    shell: tuple[str, ...],
) -> None:
    if shutil.which(shell[0]) is None:
        pytest.skip(f"{shell[0]} is not installed")
    script = (
        f"{record_functions('M')}\n"
        "echo noise; begin exit 0 1; echo content; finish\nbegin empty; finish"
    )
    printed = subprocess.run([*shell, "-c", script], capture_output=True, check=True).stdout
    assert parse_records(b"login file\n" + printed, "M") == [
        (["exit", "0", "1"], b"content\n"),
        (["empty"], b""),
    ]


def test_a_record_without_end_is_left_out() -> None:
    assert parse_records(b"M sizes\n12 /a/attempt-1.out\n", "M") == []
    assert parse_records(b"M", "M") == []
    assert parse_records(b"M sizes", "M") == []


@given(st.binary())
def test_content_without_the_marker_is_never_structure(content: bytes) -> None:
    marker = new_marker()
    line = f"{marker} log\n".encode() + content + f"\n{marker} end\n".encode()
    assert parse_records(line, marker) == [(["log"], content + b"\n")]


def test_records_without_end_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lumitui.remote.transport.records.MOST_RECORDS", 10)
    assert len(parse_records(b"M a\nM end\n" * 10, "M")) == 10
    with pytest.raises(AnswerUnusable, match="more than 10 records"):
        parse_records(b"M a\nM end\n" * 11, "M")


def test_a_record_whose_first_line_is_endless_is_left_out() -> None:
    long = b"M " + b"word " * 1_000_000 + b"\ncontent\nM end\n"
    assert parse_records(long + b"M a\nM end\n", "M") == [(["a"], b"")]


def test_each_request_is_noted_with_its_purpose_and_bytes() -> None:
    log = RequestLog()
    logged = Logged(Local(), log)
    with purpose("send"):
        done = logged.run("cat; echo SECRET >&2; exit 3", stdin=[b"12345", b"", b"678"])
    assert (done.code, done.out) == (3, b"12345678")
    (request,) = log.latest()
    assert (request.kind, request.result) == ("send", "exit 3")
    assert request.up == len("cat; echo SECRET >&2; exit 3") + 8
    assert request.down == len(b"12345678") + len(b"SECRET\n") and request.seconds > 0
    assert "SECRET" not in repr(log.latest())
    with pytest.raises(LinkLost):
        logged.run("sleep 30", timeout=0.2)
    assert log.latest()[0].result == "link lost" and log.latest()[0].kind == "other"


def test_a_stream_is_noted_while_it_runs_and_when_it_ends() -> None:
    log = RequestLog()
    logged = Logged(Local(), log)
    with purpose("log"):
        chunks = logged.stream("echo one; cat >/dev/null", stop=lambda: False)
    assert isinstance(chunks, Generator)
    while not log.latest() or not log.latest()[0].down:
        next(chunks)
    (request,) = log.latest()
    assert (request.kind, request.down, request.result) == ("log", 4, "under way")
    chunks.close()
    assert log.latest()[0].result == "stopped"
    assert b"".join(logged.stream("echo two", stop=lambda: False)) == b"two\n"
    assert log.latest()[0].result == "ok"


def test_the_oldest_go_first() -> None:
    log = RequestLog()
    for number in range(MOST_REQUESTS + 10):
        log.note(log.begin(str(number)), 1.0, (1, 2), "ok")
    kinds = [request.kind for request in log.latest()]
    assert len(kinds) == MOST_REQUESTS and kinds[0] == str(MOST_REQUESTS + 9)
    log.note(1, 1.0, (1, 2), "too late")


def test_every_verb_says_what_its_requests_are_for(runs: Runs) -> None:
    assert runs.requests() == {}
    runs.doctor("laptop")
    runs.prune("laptop", dry=True)
    requests = runs.requests()["laptop"]
    assert len(requests) == runs.footprint("laptop").requests > 0
    assert {request.kind for request in requests} <= {"doctor", "prune", "tidy"}
