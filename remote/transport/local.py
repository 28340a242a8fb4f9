"""Requests to this machine: the same scripts, run by /bin/sh."""

import os
import selectors
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

from lumitui.remote.site.errors import LinkError, LinkLost
from lumitui.remote.transport.framing import Framing, Outputs, check_stream, pieces
from lumitui.remote.transport.transport import Result

_POLL = 0.3
_CHUNK = 1 << 16


class Local:
    """A transport to the machine lumitui runs on (Linux, macOS).

    Each request is a new session, so that it can be ended as a group. The counters are for the
    footprint; a process needs no connection, so `connections` stays 0.
    """

    def __init__(self, shell: Sequence[str] = ("/bin/sh",)) -> None:
        """Use any POSIX `shell`; starts no process yet."""
        self._shell = tuple(shell)
        self.requests = 0
        self.connections = 0
        self.bytes_up = 0
        self.bytes_down = 0

    def run(
        self, script: str, *, stdin: bytes | Iterable[bytes] = b"", timeout: float = 60.0
    ) -> Result:
        """Run `script` with `stdin`; see `Transport.run`."""
        framing = Framing()
        todo = chain([framing.payload(script)], pieces(stdin))
        exchange = _Exchange(self, framing, self._start(framing.program()), todo)
        self.requests += 1
        deadline = time.monotonic() + timeout
        try:
            while not exchange.ended:
                if time.monotonic() > deadline:
                    raise LinkLost(
                        f"A command on this machine did not end within {timeout:g} s.",
                        "Before you repeat it, check whether it took effect.",
                    )
                exchange.step(min(_POLL, timeout))
            return Result(exchange.code, exchange.outputs.take(), exchange.outputs.errors)
        except BaseException:
            exchange.kill(1.0)
            raise
        finally:
            exchange.close()

    def stream(self, script: str, *, stop: Callable[[], bool]) -> Iterator[bytes]:
        """Yield the output of `script` on arrival; see `Transport.stream`.

        Raises:
            RefusedError: the script ended with a nonzero status; the message has its last line.
        """
        framing = Framing()
        exchange = _Exchange(
            self,
            framing,
            self._start(framing.program(watched=True)),
            iter([framing.payload(script)]),
        )
        exchange.keep_open = True
        self.requests += 1
        try:
            while not stop():
                exchange.step(_POLL)
                chunk = exchange.outputs.take()
                if exchange.ended:
                    if chunk:
                        yield chunk
                    check_stream(exchange.code, exchange.outputs.errors)
                    return
                yield chunk
        finally:
            exchange.kill(0.1)
            exchange.close()

    def attach(self, path: str, *, terminal: bool) -> int:
        """Run the script at `path` with this process's own input and outputs; return its status.

        The script has this process's terminal, if any.
        """
        self.requests += 1
        code = subprocess.run([*self._shell, path], check=False).returncode
        return code if code >= 0 else 128 - code

    def tunnel(self, host: str, port: int) -> socket.socket:
        """Return a connection to a port of this machine; ConnectionRefusedError if it is closed."""
        return socket.create_connection((host, port), timeout=10)

    def close(self) -> None:
        """Nothing stays open between requests."""

    def _start(self, program: str) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                [*self._shell, "-c", program],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
        except OSError as error:
            raise LinkError(
                f"{self._shell[0]} could not be started: {error.strerror}.",
                "Close some programs and try again.",
            ) from error


class _Exchange:
    """One process: sends its input and reads its output without blocking on either."""

    def __init__(
        self,
        owner: Local,
        framing: Framing,
        process: subprocess.Popen[bytes],
        todo: Iterator[bytes],
    ) -> None:
        self.owner, self.process, self.todo = owner, process, todo
        self.outputs = Outputs(framing)
        self.keep_open = False
        self._piece = memoryview(b"")
        assert process.stdin and process.stdout and process.stderr
        self._stdin, self._files = process.stdin, (process.stdout, process.stderr)
        self._waiting = selectors.DefaultSelector()
        for index, file in enumerate(self._files):
            self._waiting.register(file, selectors.EVENT_READ, index)
        os.set_blocking(self._stdin.fileno(), False)
        self._waiting.register(self._stdin, selectors.EVENT_WRITE)

    @property
    def ended(self) -> bool:
        """Whether both outputs are complete or cannot continue."""
        at_end = not any(file.fileno() in self._waiting.get_map() for file in self._files)
        return at_end or (self.outputs.ended(0) and self.outputs.ended(1))

    @property
    def code(self) -> int:
        """Exit status; raises LinkLost if the shell ended before reporting one."""
        code = self.outputs.readers[0].code
        if code is None:
            raise LinkLost(
                "Another process killed a command on this machine.",
                "Before you repeat it, check whether it took effect.",
            )
        return code

    def step(self, seconds: float) -> None:
        """Read or write what is possible within `seconds`."""
        for key, _ in self._waiting.select(seconds):
            if key.data is None:
                self._write()
                continue
            data = os.read(key.fd, _CHUNK)
            self.owner.bytes_down += len(data)
            if not data:
                self._waiting.unregister(key.fd)
            self.outputs.feed(key.data, data)

    def _write(self) -> None:
        if not self._piece:
            self._piece = memoryview(next(self.todo, b""))
        try:
            sent = os.write(self._stdin.fileno(), self._piece[:_CHUNK]) if self._piece else 0
        except BlockingIOError:
            return
        except BrokenPipeError:  # the process reads no more input; its answer explains why
            self._done_writing()
            return
        self.owner.bytes_up += sent
        if not self._piece:
            self._done_writing()
        self._piece = self._piece[sent:]

    def _done_writing(self) -> None:
        self._waiting.unregister(self._stdin)
        if not self.keep_open:
            self._stdin.close()

    def kill(self, grace: float) -> None:
        """End the whole session: SIGTERM, and SIGKILL for the rest after `grace` seconds."""
        deadline = time.monotonic() + grace
        try:
            os.killpg(self.process.pid, signal.SIGTERM)
            while time.monotonic() < deadline:
                self.process.poll()  # reaps the leader; its group may live on
                os.killpg(self.process.pid, 0)
                time.sleep(0.01)
            os.killpg(self.process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):  # macOS says the latter of a dead group
            return

    def close(self) -> None:
        """Close the pipes and collect the ended process."""
        self._waiting.close()
        for file in (self._stdin, *self._files):
            file.close()
        self.process.wait()
