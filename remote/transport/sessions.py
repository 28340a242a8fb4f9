"""Interactive work on a site: a command in this process's terminal, and forwarded ports."""

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from lumitui.remote.site.errors import InputError, LumiError

_CHUNK = 1 << 16


class Stream(Protocol):
    """Bytes in both directions, such as a socket or a channel of a connection."""

    def recv(self, nbytes: int, /) -> bytes:
        """Return received bytes; b"" at the end."""
        ...

    def send(self, s: bytes, /) -> int:
        """Send a part of `s`; return its length."""
        ...

    def shutdown(self, how: int, /) -> None:
        """Shut down one or both directions (socket.SHUT_WR); wakes threads waiting for bytes."""
        ...

    def close(self) -> None:
        """Close the stream."""
        ...


class Sessions(Protocol):
    """Requests that need a real connection."""

    def attach(self, path: str, *, terminal: bool) -> int:
        """Run the script at `path` on the site with this process's streams; return its exit status.

        Raises:
            LinkError: there is no connection, or it ended first.
        """
        ...

    def tunnel(self, host: str, port: int) -> Stream:
        """Return a stream to a port, as the site reaches it.

        Raises:
            ConnectionRefusedError: nothing listens there, or the site does not allow forwarding.
            LinkError: no connection could be made.
        """
        ...


class ForwardedPort:
    """A port for this machine only, whose connections are forwarded to a site."""

    def __init__(self, port: int, connect: Callable[[], Stream]) -> None:
        """Listen on `port` (0: any), and `connect` for each client; InputError if it is in use."""
        try:
            self._listener = socket.create_server(("127.0.0.1", port))
        except OSError as error:
            raise InputError(
                f"Port {port} of this machine cannot be used: {error.strerror}.",
                "Choose another port after the colon, such as 6006:16006.",
            ) from error
        self._connect = connect
        self.port = int(self._listener.getsockname()[1])
        """The port of this machine."""
        threading.Thread(target=self._accept, name="forward", daemon=True).start()

    def is_up(self) -> bool:
        """Whether a program listens at the other end; queries the site once."""
        try:
            self._connect().close()
        except OSError:
            return False
        return True

    def close(self) -> None:
        """Take no further connections; those that are open end with the process."""
        with suppress(OSError):  # wakes the thread that waits in accept
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                near = self._listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self._join, args=(near,), daemon=True).start()

    def _join(self, near: socket.socket) -> None:
        try:
            far = self._connect()
        except (OSError, LumiError):
            near.close()  # as if nobody listened: the program asks again
            return
        back = threading.Thread(target=_copy, args=(far, near), daemon=True)
        back.start()
        _copy(near, far)
        back.join()
        for stream in (near, far):
            with suppress(OSError):
                stream.close()


def _copy(source: Stream, target: Stream) -> None:
    """Copy until the source ends, then end the target's input; or end both if it accepts none."""
    try:
        while data := source.recv(_CHUNK):
            while data:
                data = data[target.send(data) :]
        target.shutdown(socket.SHUT_WR)
    except OSError:
        for stream in (source, target):
            with suppress(OSError):
                stream.shutdown(socket.SHUT_RDWR)
