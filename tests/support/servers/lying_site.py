"""A site that lies: a real sshd whose `sh` is replaced, or in this process, for many trials."""

import hashlib
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lumitui.remote.site.errors import LinkLost, RefusedError
from lumitui.remote.transport.framing import pieces
from lumitui.remote.transport.local import Local
from lumitui.remote.transport.transport import Result, Transport
from tests.support.servers import lying_shell
from tests.support.servers.lying_shell import Lie, first_lie, lied, tell
from tests.support.servers.sshd import Sshd, running_sshd

__all__ = ["InventedSite", "Lie", "LyingTransport", "lying_sshd", "tell"]


class LyingTransport:
    """A transport whose answers are lies where a lie fits; it counts the bytes of streams."""

    def __init__(self, *lies: Lie, transport: Transport | None = None) -> None:
        self.lies, self.transport, self.came = lies, transport or Local(), 0

    def run(
        self, script: str, *, stdin: bytes | Iterable[bytes] = b"", timeout: float = 60.0
    ) -> Result:
        lie = first_lie(self.lies, script)
        if lie is None:
            return self.transport.run(script, stdin=stdin, timeout=timeout)
        given = b"".join(pieces(stdin))

        def honest() -> bytes:
            return self.transport.run(script, stdin=given, timeout=timeout).out

        if lie.code is None or lie.silent:
            raise LinkLost("The lying site gave no answer.")
        return Result(lie.code, b"".join(lied(lie, script, honest)), lie.err.encode())

    def stream(self, script: str, *, stop: Callable[[], bool]) -> Iterator[bytes]:
        for chunk in self._stream(script, stop):
            self.came += len(chunk)
            yield chunk
            if stop():
                return

    def _stream(self, script: str, stop: Callable[[], bool]) -> Iterator[bytes]:
        lie = first_lie(self.lies, script)
        if lie is None:
            yield from self.transport.stream(script, stop=stop)
            return
        if not lie.silent:
            yield from lied(
                lie, script, lambda: b"".join(self.transport.stream(script, stop=lambda: False))
            )
        if lie.code is None or lie.silent:
            raise LinkLost("The lying site gave no whole answer.")
        if lie.code:
            raise RefusedError("The lying site failed.")

    def close(self) -> None:
        self.transport.close()


class InventedSite(LyingTransport):
    """A site that answers a fetch with files that no file system can hold, by their paths."""

    def __init__(self, files: dict[bytes, bytes]) -> None:
        super().__init__()
        self.files = files

    def _stream(self, script: str, stop: Callable[[], bool]) -> Iterator[bytes]:
        if "give()" in script:
            yield from self._contents(script)
            return
        for path, content in self.files.items():
            if "sums()" in script:
                yield b"sum %s  %s\0" % (hashlib.sha256(content).hexdigest().encode(), path)
            else:
                yield b"fits 0 %s\0file %d %s\0" % (path, len(content), path)
        yield b"whole\0end\0"

    def _contents(self, script: str) -> Iterator[bytes]:
        mark = re.findall(r"^m=(\S+)", script, re.MULTILINE)[0]
        words = shlex.split(script.split("\n{\n")[1].split("\n} 2>")[0])
        for at, word in enumerate(words):
            if word in ("give", "together"):
                yield f"{mark} {words[at + 1]} 0\n".encode()
            yield self.files.get(word.encode(), b"")
        yield f"{mark} end\n".encode()


@dataclass(frozen=True)
class LyingSshd:
    """A real sshd whose requests are all answered by `lying_shell`."""

    server: Sshd
    folder: Path

    def tell(self, *lies: Lie) -> None:
        """Lie like this from now on; without any it is honest."""
        tell(self.folder, lies)


@contextmanager
def lying_sshd(folder: Path) -> Iterator[LyingSshd]:
    """Run the server for a test; skips where there is no sshd."""
    shell = f"{sys.executable} -I -S {lying_shell.__file__} {folder}"
    folder.mkdir(parents=True, exist_ok=True)
    tell(folder, ())
    with running_sshd(folder / "sshd", f"ForceCommand exec {shell}") as server:
        yield LyingSshd(server, folder)
