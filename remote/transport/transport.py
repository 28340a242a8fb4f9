"""How requests reach a site: one POSIX sh script in, its output back."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Result:
    """The answer of a remote script."""

    code: int
    """Exit status of the script, 0 to 255."""
    out: bytes
    """Standard output, without the output of shell startup files."""
    err: bytes
    """Standard error, likewise; for messages only, never for data."""

    @property
    def text(self) -> str:
        """`out` as text; bytes that are not UTF-8 are shown as replacement characters."""
        return self.out.decode("utf-8", "replace")


class Transport(Protocol):
    """One connection to one site. Scripts are POSIX sh (dash and busybox run them).

    A script is sent between two lines with a random mark, so that a link that is cut half way runs
    nothing; the same mark frames the reply, because startup files print too. Nothing retries: only
    the caller knows whether a request may be repeated.

    Whatever queries a site raises LinkError if it cannot be reached or gives no usable answer.
    Docstrings name that error only if they add to it.
    """

    def run(
        self,
        script: str,
        *,
        stdin: bytes | Iterable[bytes] = b"",
        timeout: float = 60.0,
    ) -> Result:
        """Run `script` there with `stdin` as its input and return its answer.

        Raises:
            LinkError: no connection could be made; nothing was run.
            LinkLost: after the script was sent, the connection ended, or `timeout` seconds
                passed without the closing mark; the script may or may not have run.
        """
        ...

    def stream(self, script: str, *, stop: Callable[[], bool]) -> Iterator[bytes]:
        """Yield the script's output on arrival, until it ends or `stop()` is true.

        During silence an empty chunk is yielded at least every 0.5 s, so that callers stay
        responsive. Ending the iteration ends the remote process.

        Raises:
            LinkError: no connection could be made.
            LinkLost: the connection ended before the script did.
        """
        ...

    def close(self) -> None:
        """End the connection; a later request opens a new one."""
        ...
