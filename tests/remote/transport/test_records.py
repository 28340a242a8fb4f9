"""Records in an answer: only the lines with the marker are structure."""

import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumitui.remote.site.errors import AnswerUnusable
from lumitui.remote.transport.records import new_marker, parse_records, record_functions
from tests.support.servers.transports import SHELLS


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
