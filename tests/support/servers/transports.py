"""The transports that what crosses the wire is tested over."""

import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lumitui.remote.site.errors import LinkError
from lumitui.remote.transport.framing import check_stream
from lumitui.remote.transport.local import Local
from lumitui.remote.transport.transport import Result, Transport
from tests.support.servers.sshd import running_sshd

KINDS = ("sh", "busybox", "ssh")
"""This machine's shell, busybox with its own programs, and a real sshd."""

SHELLS = [("dash",), ("busybox", "sh"), ("bash", "--posix"), ("ksh",), ("zsh", "--emulate", "sh")]
"""The shells that may be a machine's /bin/sh."""


@contextmanager
def open_transport(kind: str, folder: Path) -> Iterator[Transport]:
    """Open one of KINDS; skips where its program is not installed."""
    if kind == "ssh":
        with running_sshd(folder) as server:
            connection = server.connect()
            yield connection
            connection.close()
        return
    if kind == "sh":
        yield Local()
        return
    busybox = shutil.which("busybox")
    if busybox is None:
        pytest.skip("busybox is not installed")
    subprocess.run([busybox, "--install", "-s", folder], check=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(folder))  # busybox's own tar, cp, find, mv, sha256sum
        yield Local([busybox, "sh"])


class Cut:
    """A transport whose input ends half way, as when the link is cut."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    def run(
        self, script: str, *, stdin: bytes | Iterable[bytes] = b"", timeout: float = 60.0
    ) -> Result:
        whole = stdin if isinstance(stdin, bytes) else b"".join(stdin)
        return self.transport.run(script, stdin=whole[: len(whole) // 2], timeout=timeout)

    def stream(self, script: str, *, stop: Callable[[], bool]) -> Iterator[bytes]:
        yield from list(self.transport.stream(script, stop=stop))[:1]
        raise LinkError("cut")

    def close(self) -> None:
        self.transport.close()


class FixedAnswer:
    """A site that answers every request with the same bytes, MARKER being the request's marker."""

    def __init__(self, out: bytes, code: int = 0, err: bytes = b"") -> None:
        self.out, self.code, self.err = out, code, err

    def run(
        self, script: str, *, stdin: bytes | Iterable[bytes] = b"", timeout: float = 60.0
    ) -> Result:
        marker = re.search(r"lumitui-[0-9a-f]{16}", script)
        out = self.out.replace(b"MARKER", marker[0].encode()) if marker else self.out
        return Result(self.code, out, self.err)

    def stream(self, script: str, *, stop: Callable[[], bool]) -> Iterator[bytes]:
        yield self.out
        check_stream(self.code, self.err)

    def close(self) -> None:
        pass
