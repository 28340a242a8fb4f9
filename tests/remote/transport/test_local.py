"""Requests to this machine and over SSH, and the framing under every shell a site may have."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lumitui.remote.site.errors import AnswerUnusable, InputError, LinkError, LinkLost, RefusedError
from lumitui.remote.transport.framing import Framing, pieces
from lumitui.remote.transport.local import Local
from lumitui.remote.transport.transport import Transport
from tests.support.servers.sshd import gone, wait_for
from tests.support.servers.transports import SHELLS, open_transport

LOGIN_SHELLS = [("bash",), ("dash",), ("tcsh",), ("csh",), ("zsh",), ("fish",), ("busybox", "sh")]
# Every byte a script can hold but a quote, which would end the word it stands in below.
EVERY_BYTE = "".join(map(chr, range(1, 0x250))).replace("'", "") + "\u20ac\U0001f600"


@pytest.fixture(scope="module", params=[*SHELLS, ("ssh",)], ids=lambda words: str(words[0]))
def transport(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Transport]:
    """Each shell of this machine, and a real sshd."""
    words: tuple[str, ...] = request.param
    if words == ("ssh",):
        with open_transport("ssh", tmp_path_factory.mktemp("site")) as ssh:
            yield ssh
    elif shutil.which(words[0]) is None:
        pytest.skip(f"{words[0]} is not installed")
    else:
        yield Local(words)


def test_a_request_gives_status_output_and_errors(transport: Transport) -> None:
    result = transport.run("printf 'no newline'; echo why >&2; exit 3")
    assert (result.code, result.out, result.err) == (3, b"no newline", b"why\n")


def test_every_character_arrives_in_script_and_input(transport: Transport) -> None:
    data = bytes(range(256)) * 2000
    result = transport.run(f"printf %s '{EVERY_BYTE}'; cat", stdin=[b"", data[:9], b"", data[9:]])
    assert result.out == EVERY_BYTE.encode() + data


def test_a_script_that_does_not_parse_says_so(transport: Transport) -> None:
    result = transport.run("if; fi")
    assert result.code != 0 and result.err


def test_output_that_looks_like_the_framing_is_output(transport: Transport) -> None:
    result = transport.run(
        "printf ':lumitui-'; printf ':lumitui-0123456789abcdef: 0\\n'; printf ':'"
    )
    assert result.out == b":lumitui-:lumitui-0123456789abcdef: 0\n:"


def test_a_failing_script_leaves_no_trace_of_its_input(transport: Transport) -> None:
    endless = (bytes(1 << 16) for _ in iter(int, 1))
    assert transport.run("exit 4", stdin=endless).code == 4


def test_a_stream_that_is_left_ends_its_processes(transport: Transport) -> None:
    stream = transport.stream("echo $$; trap '' TERM; tail -f /dev/null", stop=lambda: False)
    first = next(chunk for chunk in stream if chunk)
    assert next(chunk for chunk in stream) == b""
    stream.close()  # type: ignore[attr-defined]  # a generator
    wait_for(lambda: gone(int(first)), "the shell to end")


def test_a_stream_ends_with_the_program_that_reads_it(tmp_path: Path) -> None:
    """The process that reads is killed: its watched script sees the end of its input."""
    framing = Framing()
    with subprocess.Popen(
        ["/bin/sh", "-c", framing.program(watched=True)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
    ) as process:  # fmt: skip
        assert process.stdin and process.stdout
        process.stdin.write(framing.payload("sleep 60 & echo $!; wait"))
        process.stdin.flush()
        assert process.stdout.readline().decode() == framing.mark + "\n"
        child = int(process.stdout.readline())
        assert not gone(child)
        process.stdin.close()
        wait_for(lambda: gone(child), "the script's own child to end")


def test_a_stream_comes_as_it_is_written_and_stops_when_told(transport: Transport) -> None:
    seen: list[bytes] = []
    script = "echo $$; while :; do echo tick; sleep 0.05; done"
    for chunk in transport.stream(script, stop=lambda: b"".join(seen).count(b"tick") > 3):
        seen.append(chunk)
    pid, *ticks = b"".join(seen).split()
    assert set(ticks) == {b"tick"}
    wait_for(lambda: gone(int(pid)), "the loop to end")


def test_a_failed_stream_carries_its_last_words(transport: Transport) -> None:
    seen: list[bytes] = []
    with pytest.raises(RefusedError, match="really bad"):
        seen += transport.stream("echo first; echo really bad >&2; exit 1", stop=lambda: False)


def test_a_slow_script_is_ended(tmp_path: Path) -> None:
    with pytest.raises(LinkLost, match=r"within 0\.5 s"):
        Local().run(f"echo $$ >{tmp_path}/pid; sleep 30", timeout=0.5)
    wait_for(lambda: gone(int((tmp_path / "pid").read_text())), "the script to end")


def test_a_script_ended_from_outside_is_lost() -> None:
    with pytest.raises(LinkLost):
        Local().run("kill -9 $$")


def test_an_error_while_reading_the_input_lets_the_script_clean_up(tmp_path: Path) -> None:
    def broken() -> Iterator[bytes]:
        yield b"x"
        wait_for((tmp_path / "work").exists, "the script to start")
        raise InputError("changed", "")

    script = f"cd {tmp_path}; trap 'rm work' EXIT; trap 'exit 1' TERM; : >work; cat >/dev/null"
    with pytest.raises(InputError):
        Local().run(script, stdin=broken())
    wait_for(lambda: not (tmp_path / "work").exists(), "the script's trap")


def test_a_missing_shell_is_said() -> None:
    with pytest.raises(LinkError, match="/no/such could not be started"):
        Local(["/no/such"]).run("true")


def test_a_script_with_a_nul_is_refused() -> None:
    with pytest.raises(InputError, match="NUL"):
        Local().run("echo \0")


def test_detached_processes_do_not_hold_the_answer() -> None:
    began = time.monotonic()
    result = Local().run("sleep 20 & echo $!")
    assert time.monotonic() - began < 15
    os.kill(int(result.text), 9)


@pytest.mark.parametrize("shell", LOGIN_SHELLS, ids=lambda shell: shell[0])
def test_any_login_shell_runs_the_command(shell: tuple[str, ...], tmp_path: Path) -> None:
    if shutil.which(shell[0]) is None:
        pytest.skip(f"{shell[0]} is not installed")
    framing = Framing()
    done = subprocess.run(
        [*shell, "-c", framing.command()],
        input=framing.payload('echo "it\'s ! $((1 + 1))"; cat; exit 5') + b"rest\0\xff",
        capture_output=True,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        timeout=20,
    )
    reader = framing.reader()
    assert reader.feed(b"motd without an end" + done.stdout) == b"it's ! 2\nrest\0\xff"
    assert reader.code == 5


def test_half_a_script_runs_nothing(tmp_path: Path) -> None:
    framing = Framing()
    payload = framing.payload(f"touch {tmp_path}/ran\n" * 3)
    for cut in range(0, len(payload), 7):
        done = subprocess.run(
            ["/bin/sh", "-c", framing.program()], input=payload[:cut], capture_output=True
        )
        assert (done.returncode, done.stdout) == (125, b"")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_a_reader_takes_pieces_of_any_size(size: int) -> None:
    framing = Framing()
    mark = framing.mark.encode()
    body = b"\n" + mark[:5] + b"\0" + mark[:-1] + b"\n:"
    text = b"noise" + mark + b"\n" + body + mark + b" 17\nlater"
    reader = framing.reader()
    own = b"".join(reader.feed(text[i : i + size]) for i in range(0, len(text), size))
    assert (own, reader.code) == (body, 17)


def test_a_reader_holds_back_no_finished_line() -> None:
    framing = Framing()
    reader = framing.reader()
    reader.feed(framing.mark.encode() + b"\n")
    assert reader.feed(b"a line\n") == b"a line\n"


def test_pieces_are_never_empty() -> None:
    assert list(pieces(b"")) == [] and list(pieces([b"", b"a", b""])) == [b"a"]


def test_an_answer_without_end_is_ended(
    transport: Transport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lumitui.remote.transport.framing.MOST_ANSWER", 1_000_000)
    with pytest.raises(AnswerUnusable, match="larger than"):
        transport.run("yes 2>/dev/null")
    assert len(transport.run("head -c 900000 /dev/zero").out) == 900_000
