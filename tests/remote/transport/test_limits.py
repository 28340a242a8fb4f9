"""Bytes and time are counted before anything is kept, over every transport."""

import resource
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from lumitui.remote.site.errors import AnswerUnusable, LinkLost
from lumitui.remote.transport import framing as limits
from lumitui.remote.transport.framing import Framing
from lumitui.remote.transport.transport import Transport

ENDLESS = [
    pytest.param("yes", id="output", marks=pytest.mark.slow),
    pytest.param("yes >&2", id="errors", marks=pytest.mark.slow),
    pytest.param("yes & yes >&2", id="both"),
    pytest.param("tr '\\0' x </dev/zero", id="one line"),
    pytest.param("tr '\\0' x </dev/zero >&2", id="one line of errors"),
]


@pytest.fixture
def low(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MOST_ANSWER", "MOST_ERRORS", "MOST_NOISE"):
        monkeypatch.setattr(limits, name, 1_000_000)


@pytest.mark.usefixtures("low")
@pytest.mark.parametrize("script", ENDLESS)
def test_an_answer_without_end_ends_with_a_sentence(transport: Transport, script: str) -> None:
    with pytest.raises(AnswerUnusable, match=r"more than|larger than") as raised:
        transport.run(f"{script} 2>/dev/null" if script == "yes" else script)
    assert "log in" in raised.value.hint
    assert transport.run("echo on").text == "on\n"


@pytest.mark.usefixtures("low")
def test_a_stream_of_errors_without_end_ends_with_a_sentence(transport: Transport) -> None:
    with pytest.raises(AnswerUnusable, match="of error messages"):
        for _ in transport.stream("echo begun; yes >&2", stop=lambda: False):
            pass
    assert transport.run("echo on").text == "on\n"


def test_the_middle_of_many_errors_is_left_out(transport: Transport) -> None:
    script = "echo first >&2; head -c 2000000 /dev/zero | tr '\\0' '\\n' >&2; echo last >&2; exit 3"
    result = transport.run(script)
    assert result.code == 3
    assert result.err.startswith(b"first\n") and result.err.endswith(b"last\n")
    assert len(result.err) < 3 * limits.KEPT_ERRORS


def test_few_errors_are_whole(transport: Transport) -> None:
    script = "i=0; while [ $i -lt 3000 ]; do echo $i; i=$((i+1)); done >&2"
    assert transport.run(script).err.split() == [b"%d" % number for number in range(3000)]


def test_an_answer_byte_by_byte_ends_with_its_time(transport: Transport) -> None:
    with pytest.raises(LinkLost, match=r"within 0\.4 s"):
        transport.run("while :; do printf x; sleep 0.1; done", timeout=0.4)


def test_an_input_that_is_taken_byte_by_byte_ends_with_its_time(transport: Transport) -> None:
    endless: Iterator[bytes] = iter(lambda: bytes(1 << 16), None)
    script = "while :; do dd bs=32768 count=1 >/dev/null 2>&1; echo x; sleep 0.02; done"
    with pytest.raises(LinkLost, match=r"within 0\.4 s"):
        transport.run(script, stdin=endless, timeout=0.4)


@pytest.mark.parametrize("place", ["before", "after"])
def test_noise_is_counted_and_not_kept(place: str) -> None:
    framing = Framing()
    outputs, block = limits.Outputs(framing), b"x" * (1 << 20)
    if place == "after":
        outputs.feed(0, f"{framing.mark}\nanswer{framing.mark} 0\n".encode())
    before = _memory()
    with pytest.raises(AnswerUnusable, match="shell startup files"):
        for _ in range(1 << 10):
            outputs.feed(0, block)
    assert outputs.take() == (b"answer" if place == "after" else b"")
    assert _memory() - before < 3 * limits.MOST_NOISE


def test_a_closing_line_without_a_status_is_output() -> None:
    framing = Framing()
    reader = framing.reader()
    mark = framing.mark.encode()
    assert reader.feed(mark + b"\n" + mark + b" \n" + mark + b" 0\n") == mark + b" \n"
    assert reader.code == 0


def test_a_stream_is_limited_in_bytes_and_time() -> None:
    def chunks(closed: list[bool], pause: float = 0.0) -> Iterator[bytes]:
        try:
            while True:
                time.sleep(pause)
                yield b"x" * 10
        finally:
            closed.append(True)

    def taken(seconds: float, pause: float = 0.0) -> Callable[[], int]:
        return lambda: sum(
            map(len, limits.limited(chunks(closed, pause), most=100, seconds=seconds))
        )

    closed: list[bool] = []
    with pytest.raises(AnswerUnusable, match="more than the 100 bytes"):
        taken(60.0)()
    with pytest.raises(AnswerUnusable, match=r"within 0\.1 s"):
        taken(0.1, pause=0.2)()
    assert closed == [True, True]
    whole = iter([b"x" * 60, b"", b"x" * 40])
    assert b"".join(limits.limited(whole, most=100, seconds=60)) == b"x" * 100


def _memory() -> int:
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
