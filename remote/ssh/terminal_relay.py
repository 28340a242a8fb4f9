"""Relays a terminal of the site: sends bytes and window sizes, and prints the output."""

import os
import select
import signal
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress

from lumitui.remote.site.errors import LinkLost
from lumitui.remote.ssh.link import Channel

_CHUNK = 1 << 16


def request_terminal(channel: Channel) -> None:
    """Request a terminal of this one's type and size from the server."""
    columns, rows = _window_size()
    channel.inner.get_pty(os.environ.get("TERM", "xterm"), columns, rows)


def _window_size() -> tuple[int, int]:
    """Return the window's columns and rows; COLUMNS and LINES may be outdated."""
    columns, rows = os.get_terminal_size(sys.stdin.fileno())
    return columns or 80, rows or 24


def relay(channel: Channel, *, terminal: bool) -> int:
    """Connect a started command to this process's streams until it ends; return its exit status.

    With a `terminal`, send each key at once, even Ctrl-C.

    Raises:
        LinkLost: the connection ended first.
    """
    keys: int | None = sys.stdin.fileno()
    outputs = (
        (sys.stdout.fileno(), channel.recv_ready, channel.recv),
        (sys.stderr.fileno(), channel.recv_stderr_ready, channel.recv_stderr),
    )
    unsized = terminal
    with _raw() if terminal else nullcontext() as resized:
        while True:
            sources = [channel.inner.fileno(), *(s for s in (keys, resized) if s is not None)]
            ready = select.select(sources, [], [], 0.5)[0]
            for target, is_ready, receive in outputs:
                while is_ready():
                    _write(target, receive(_CHUNK))
                    if unsized:
                        _tell_first_size(channel)
                        unsized = False
            if resized is not None and resized in ready:
                os.read(resized, _CHUNK)
                _tell_size(channel, *_window_size())
            if keys is not None and keys in ready:
                typed = os.read(keys, _CHUNK)
                with suppress(OSError):  # the command has ended, and its status follows
                    _send(channel, typed)
                keys = keys if typed else None
            if channel.exit_status_ready() or channel.closed:
                break
        for target, _, receive in outputs:
            while data := receive(_CHUNK):
                _write(target, data)
    if not channel.exit_status_ready() or (code := channel.recv_exit_status()) < 0:
        raise LinkLost("The connection ended before the command did.", "The job keeps running.")
    return int(code)


def _tell_first_size(channel: Channel) -> None:
    """Send the window's size once the command has started.

    srun passes on only changes, and 22.05 may start its step with 24 rows: so send another size
    first.
    """
    columns, rows = _window_size()
    for height in (rows - 1, rows):
        _tell_size(channel, columns, max(1, height))


def _tell_size(channel: Channel, columns: int, rows: int) -> None:
    with suppress(Exception):  # the next change repeats a lost size
        channel.inner.resize_pty(columns, rows)


def _send(channel: Channel, data: bytes) -> None:
    if not data:
        channel.shutdown_write()
    while data:
        data = data[channel.send(data) :]


def _write(target: int, data: bytes) -> None:
    while data:
        data = data[os.write(target, data) :]


@contextmanager
def _raw() -> Iterator[int]:
    """Make this terminal send each key immediately, and restore it at the end.

    Yields:
        a descriptor that becomes readable when the window has a new size. The signal handler only
        writes to that descriptor: it may interrupt a send or itself, and would wait forever for
        their lock.
    """
    resized, sizes = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def note_size(*_: object) -> None:
        with suppress(BlockingIOError):  # full, so it is readable
            os.write(sizes, b"\0")

    keys = sys.stdin.fileno()
    modes, handler = termios.tcgetattr(keys), signal.signal(signal.SIGWINCH, note_size)
    try:
        tty.setraw(keys, termios.TCSADRAIN)  # keep keys typed ahead for the shell
        yield resized
    finally:
        termios.tcsetattr(keys, termios.TCSADRAIN, modes)
        signal.signal(signal.SIGWINCH, handler)
        os.close(resized)
        os.close(sizes)
