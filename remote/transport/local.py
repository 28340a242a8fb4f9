"""Requests to this machine: the same scripts, run by /bin/sh."""

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

from lumitui.remote.errors import LinkError, LinkLost
from lumitui.remote.transport.framing import Fence, Reader, check_answer, check_stream, pieces
from lumitui.remote.transport.protocol import Result

_POLL = 0.3
_CHUNK = 1 << 16


class Local:
    """A transport to the machine lumitui runs on (Linux, macOS).

    Each request is a new session, so that it can be ended as a group. The counters are for the
    footprint on the screen; a process needs no connection, so `connections` stays 0.
    """

    def __init__(self, shell: Sequence[str] = ("/bin/sh",)) -> None:
        """Nothing is started before the first request; `shell` is any POSIX shell."""
        self._shell = tuple(shell)
        self.requests = 0
        self.connections = 0
        self.bytes_up = 0
        self.bytes_down = 0

    def run(
        self, script: str, *, stdin: bytes | Iterable[bytes] = b"", timeout: float = 60.0
    ) -> Result:
        """Run `script` with `stdin`; see `Transport.run`."""
        fence = Fence()
        todo = chain([fence.payload(script)], pieces(stdin))
        talk = _Talk(self, fence, self._start(fence.program()), todo)
        self.requests += 1
        deadline = time.monotonic() + timeout
        try:
            while not talk.ended:
                if time.monotonic() > deadline:
                    raise LinkLost(
                        f"A command on this machine did not end within {timeout:g} s.",
                        "Whether it did its work is not known; look before repeating it.",
                    )
                talk.step(min(_POLL, timeout))
                check_answer(talk.readers)
            return Result(talk.code, b"".join(talk.out), b"".join(talk.err))
        except BaseException:
            talk.kill(1.0)
            raise
        finally:
            talk.close()

    def stream(self, script: str, *, stop: Callable[[], bool]) -> Iterator[bytes]:
        """Yield the output of `script` as it comes; see `Transport.stream`.

        Raises:
            RefusedError: the script ended with a status other than 0; carries its last words.
        """
        fence = Fence()
        talk = _Talk(
            self, fence, self._start(fence.program(watched=True)), iter([fence.payload(script)])
        )
        talk.keep_open = True
        self.requests += 1
        try:
            while not stop():
                talk.step(_POLL)
                chunk = b"".join(talk.out)
                talk.out.clear()
                if talk.ended:
                    if chunk:
                        yield chunk
                    check_stream(talk.code, b"".join(talk.err))
                    return
                yield chunk
        finally:
            talk.kill(0.1)
            talk.close()

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


class _Talk:
    """One process being fed and read without blocking on either."""

    def __init__(
        self, owner: Local, fence: Fence, process: subprocess.Popen[bytes], todo: Iterator[bytes]
    ) -> None:
        self.owner, self.process, self.todo = owner, process, todo
        self.out: list[bytes] = []
        self.err: list[bytes] = []
        self.keep_open = False
        self._piece = memoryview(b"")
        assert process.stdin and process.stdout and process.stderr
        self._stdin, self._files = process.stdin, (process.stdout, process.stderr)
        self.readers = (fence.reader(), fence.reader())
        self._waiting = selectors.DefaultSelector()
        for file, reader, kept in zip(self._files, self.readers, (self.out, self.err), strict=True):
            self._waiting.register(file, selectors.EVENT_READ, (reader, kept))
        os.set_blocking(self._stdin.fileno(), False)
        self._waiting.register(self._stdin, selectors.EVENT_WRITE)

    @property
    def ended(self) -> bool:
        """Both outputs are complete, or nothing more can come."""
        at_end = not any(file.fileno() in self._waiting.get_map() for file in self._files)
        return at_end or all(reader.code is not None for reader in self.readers)

    @property
    def code(self) -> int:
        """Exit status; LinkLost when the shell was ended before it could tell."""
        code = self.readers[0].code
        if code is None:
            raise LinkLost(
                "A command on this machine was ended from outside.",
                "Whether it did its work is not known; look before repeating it.",
            )
        return code

    def step(self, seconds: float) -> None:
        """Wait at most `seconds` for something to read or room to write, and do it."""
        for key, _ in self._waiting.select(seconds):
            if key.data is None:
                self._write()
                continue
            data = os.read(key.fd, _CHUNK)
            self.owner.bytes_down += len(data)
            if not data:
                self._waiting.unregister(key.fd)
            reader, kept = key.data
            _keep(kept, reader, data)

    def _write(self) -> None:
        if not self._piece:
            self._piece = memoryview(next(self.todo, b""))
        try:
            sent = os.write(self._stdin.fileno(), self._piece[:_CHUNK]) if self._piece else 0
        except BlockingIOError:
            return
        except BrokenPipeError:  # it needed no more input; its answer tells why
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

    def kill(self, patience: float) -> None:
        """End the whole session: politely, and what is left after `patience` seconds for good."""
        deadline = time.monotonic() + patience
        try:
            os.killpg(self.process.pid, signal.SIGTERM)
            while time.monotonic() < deadline:
                self.process.poll()  # collects the leader, whose group may live on
                os.killpg(self.process.pid, 0)
                time.sleep(0.01)
            os.killpg(self.process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):  # macOS says the latter of a dead group
            return

    def close(self) -> None:
        """Let go of the pipes and of the ended process."""
        self._waiting.close()
        for file in (self._stdin, *self._files):
            file.close()
        self.process.wait()


def _keep(kept: list[bytes], reader: Reader, data: bytes) -> None:
    own = reader.feed(data)
    if own:
        kept.append(own)
