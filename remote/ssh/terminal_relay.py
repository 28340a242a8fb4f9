"""A terminal of the site in this one: bytes and window sizes go there, bytes come back."""

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
    """Ask the server for a terminal of this one's kind and size."""
    columns, rows = _window_size()
    channel.inner.get_pty(os.environ.get("TERM", "xterm"), columns, rows)


def _window_size() -> tuple[int, int]:
    """Return columns and rows: the window's own, since COLUMNS and LINES may be old or exported."""
    columns, rows = os.get_terminal_size(sys.stdin.fileno())
    return columns or 80, rows or 24


def relay(channel: Channel, *, terminal: bool) -> int:
    """Join a started command with this process's streams until it ends; return its exit status.

    With a `terminal` each key goes there as it is typed, Ctrl-C too.

    Raises:
        LinkLost: the connection ended first.
    """
    keys: int | None = sys.stdin.fileno()
    outputs = (
        (sys.stdout.fileno(), channel.recv_ready, channel.recv),
        (sys.stderr.fileno(), channel.recv_stderr_ready, channel.recv_stderr),
    )
    unsized = terminal
    with _raw(channel) if terminal else nullcontext():
        while True:
            waiting = [channel.inner.fileno(), *([] if keys is None else [keys])]
            ready = select.select(waiting, [], [], 0.5)[0]
            for target, is_ready, receive in outputs:
                while is_ready():
                    _write(target, receive(_CHUNK))
                    if unsized:
                        _tell_size(channel)
                        unsized = False
            if keys is not None and keys in ready:
                typed = os.read(keys, _CHUNK)
                with suppress(OSError):  # it has ended: its status comes
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


def _tell_size(channel: Channel) -> None:
    """Tell the size of the window once the command is there.

    srun passes on sizes that change, and 22.05 may begin its step with 24 rows: another size first.
    """
    columns, rows = _window_size()
    for height in (rows - 1, rows):
        with suppress(Exception):  # a size that is lost comes again with the next one
            channel.inner.resize_pty(columns, max(1, height))


def _send(channel: Channel, data: bytes) -> None:
    if not data:
        channel.shutdown_write()
    while data:
        data = data[channel.send(data) :]


def _write(target: int, data: bytes) -> None:
    while data:
        data = data[os.write(target, data) :]


@contextmanager
def _raw(channel: Channel) -> Iterator[None]:
    """Let this terminal send each key at once and tell its new sizes; put it back at the end."""

    def send_size(*_: object) -> None:
        with suppress(Exception):  # a size that is lost comes again with the next one
            channel.inner.resize_pty(*_window_size())

    keys = sys.stdin.fileno()
    modes, handler = termios.tcgetattr(keys), signal.signal(signal.SIGWINCH, send_size)
    try:
        tty.setraw(keys, termios.TCSADRAIN)  # what was typed ahead is for the shell
        yield
    finally:
        termios.tcsetattr(keys, termios.TCSADRAIN, modes)
        signal.signal(signal.SIGWINCH, handler)
