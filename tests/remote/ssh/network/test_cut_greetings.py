"""A link that is cut or damaged before any check sum protects it is a lost link, and nothing else.

The bytes are those of a real sshd, kept once and sent again with one fault at a chosen place.
"""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from lumitui.remote.site.errors import LinkError
from tests.support.servers.sshd import Sshd

Replay = Callable[[bytes], str]
"""Sends these bytes to the next client, and hangs up; returns what lumitui says."""


@pytest.fixture
def greeting(shared: Sshd) -> bytes:
    """The version line and the lists of algorithms of a real server."""
    with socket.create_connection(("127.0.0.1", shared.port), 5) as sock:
        sock.sendall(b"SSH-2.0-test\r\n")
        data = b""
        while b"\n" not in data or len(data) < data.index(b"\n") + 5:
            data += sock.recv(4096)
        begin = data.index(b"\n") + 1
        whole = begin + 4 + int.from_bytes(data[begin : begin + 4], "big")
        while len(data) < whole:
            data += sock.recv(4096)
    return data[:whole]


@pytest.fixture
def replay(server: Sshd) -> Iterator[Replay]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        sent = [b""]

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    sock, _ = listener.accept()
                    with sock, contextlib.suppress(OSError):
                        sock.sendall(sent[0])
                        sock.shutdown(socket.SHUT_WR)
                        while sock.recv(4096):
                            pass

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        server.configure(f"Port {listener.getsockname()[1]}", "ConnectTimeout 5")

        def once(data: bytes) -> str:
            sent[0] = data
            connection = server.connect()
            with pytest.raises(LinkError) as raised:
                connection.run("true")
            connection.close()
            return raised.value.message

        yield once
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(5)


def test_a_link_that_is_cut_after_the_version_line_is_lost(greeting: bytes, replay: Replay) -> None:
    begin = greeting.index(b"\n") + 1
    for size in (begin - 1, begin, begin + 3, begin + 40, len(greeting) - 1, len(greeting)):
        assert "was lost during the key exchange" in replay(greeting[:size]), size


def test_a_flipped_bit_in_the_greeting_is_a_lost_link(greeting: bytes, replay: Replay) -> None:
    begin = greeting.index(b"\n") + 1
    places = [*range(begin + 8), *range(begin + 8, len(greeting), 41)]
    places += [greeting.rindex(b"none") + n for n in range(4)]
    for place in places:
        flipped = bytearray(greeting)
        flipped[place] ^= 1 << place % 7
        said = replay(bytes(flipped))
        assert "was lost during the key exchange" in said, (place, said)


def _with_one_kex(greeting: bytes, name: bytes) -> bytes:
    """Return the greeting with `name` as the only key exchange."""
    begin = greeting.index(b"\n") + 1
    packet = greeting[begin + 4 :]
    start = 1 + 1 + 16  # length of the padding, type, cookie
    size = int.from_bytes(packet[start : start + 4], "big")
    body = packet[:start] + len(name).to_bytes(4, "big") + name + packet[start + 4 + size :]
    body = bytes([body[0] + -(len(body) + 4) % 8]) + body[1:] + bytes(-(len(body) + 4) % 8)
    return greeting[:begin] + len(body).to_bytes(4, "big") + body


def test_what_is_not_shared_is_said_in_words_unless_its_only_name_is_damaged(
    greeting: bytes, replay: Replay
) -> None:
    said = replay(_with_one_kex(greeting, b"diffie-hellman-group1-sha1"))
    assert (
        "have no common algorithm: as key exchange it offers only diffie-hellman-group1-sha1."
        in said
    )
    for name in (b"diffie-hellman-group14-sha257", b"curve25519-sha25\x16"):
        assert "was lost during the key exchange" in replay(_with_one_kex(greeting, name))


@pytest.mark.parametrize("words", [b"HTTP/1.1 400 Bad Request\r\n", b"220 mail\r\n"])
def test_what_is_said_without_a_version_line_is_no_ssh_server(replay: Replay, words: bytes) -> None:
    assert f"is not an SSH server: it sent {words.decode().strip()!r}" in replay(words)
