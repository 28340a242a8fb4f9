"""How much of a site's answer is kept. Every byte is counted here before it is kept.

| output                             | limit          | beyond it                                 |
|------------------------------------|----------------|-------------------------------------------|
| a request's standard output        | MOST_ANSWER    | the request ends: AnswerUnusable          |
| a stream's output, not yet read    | MOST_ANSWER    | the same                                  |
| a stream's output as a whole       | `limited`      | the same, where the caller says how much  |
| standard error                     | MOST_ERRORS    | the same; KEPT_ERRORS of it are kept      |
| what login files print before that | MOST_NOISE     | the same; its last 4,096 bytes are kept   |

Time is limited too: a request by its `timeout`, from its start to its last byte.
"""

import time
from collections.abc import Generator, Iterator

from lumitui.remote.site.answer_fields import last_words
from lumitui.remote.site.errors import AnswerUnusable, RefusedError
from lumitui.remote.transport.framing import Framing

MOST_ANSWER = 64 << 20
"""Most bytes that one request brings. The largest honest ones are 50 records of a lost history
(1 MB each at most) and a list of 100,000 files (some 15 MB)."""
MOST_ERRORS = 4 << 20
"""Most bytes of standard error. tar names every file that it cannot read: 20,000 long names."""
KEPT_ERRORS = 64 << 10
"""About how many bytes of standard error are kept, of its beginning and of its end: a message
quotes a line or two."""
MOST_NOISE = 8 << 20
"""Most bytes that login files and a banner may print before the script begins, on each output."""
_WITHOUT_END = "Something there prints without end; log in and see what it prints."


class Outputs:
    """The two outputs of one request as they come, within the limits."""

    def __init__(self, framing: Framing) -> None:
        """Wait for the opening marks of `framing`."""
        self.readers = (framing.reader(), framing.reader())
        self._out: list[bytes] = []
        self._held = 0
        self._errors = _Ends(KEPT_ERRORS)

    @property
    def errors(self) -> bytes:
        """Standard error of the script; the middle of a long one is left out."""
        return self._errors.text

    def ended(self, index: int) -> bool:
        """Whether output `index` (1 is standard error) is complete."""
        return self.readers[index].code is not None

    def take(self) -> bytes:
        """Return standard output as far as it has come since the last call."""
        taken = b"".join(self._out)
        self._out, self._held = [], 0
        return taken

    def feed(self, index: int, data: bytes) -> None:
        """Take `data` of output `index`.

        Raises:
            AnswerUnusable: a limit is passed.
        """
        reader = self.readers[index]
        own = reader.feed(data)
        if reader.skipped > MOST_NOISE:
            raise AnswerUnusable(
                f"The login files at the site print more than {_size(MOST_NOISE)}.",
                "Check what your login files there do (.bashrc, .profile).",
            )
        if not own:
            return
        if index == 1:
            if reader.given > MOST_ERRORS:
                raise AnswerUnusable(
                    f"The site reports more than {_size(MOST_ERRORS)} of errors.", _WITHOUT_END
                )
            self._errors.add(own)
            return
        self._held += len(own)
        if self._held > MOST_ANSWER:
            raise AnswerUnusable(
                f"The site's answer is larger than {_size(MOST_ANSWER)}.", _WITHOUT_END
            )
        self._out.append(own)


class _Ends:
    """The beginning and the end of a text of any length."""

    def __init__(self, most: int) -> None:
        self._half, self._first, self._last, self._cut = most // 2, b"", b"", False

    def add(self, data: bytes) -> None:
        room = self._half - len(self._first)
        self._first += data[:room]
        self._last += data[room:]
        if len(self._last) > 2 * self._half:  # not for every piece: each cut copies
            self._last, self._cut = self._last[-self._half :], True

    @property
    def text(self) -> bytes:
        return self._first + (b"\n[...]\n" if self._cut else b"") + self._last


def limited(chunks: Iterator[bytes], *, most: int, seconds: float) -> Iterator[bytes]:
    """Yield the chunks of a stream that should end after `most` bytes and `seconds`.

    Raises:
        AnswerUnusable: more came, or it took longer; what came until then was yielded.
    """
    rest, deadline = most, time.monotonic() + seconds
    try:
        for chunk in chunks:
            rest -= len(chunk)
            if rest < 0:
                raise AnswerUnusable(
                    f"The site sends more than the {most} bytes that were requested.",
                    "Log in and see whether other programs change files there.",
                )
            if time.monotonic() > deadline:
                raise AnswerUnusable(
                    f"The site did not send everything within {seconds:g} s.",
                    "Check your network and try again.",
                )
            yield chunk
    finally:
        if isinstance(chunks, Generator):
            chunks.close()


def check_stream(code: int, errors: bytes) -> None:
    """Raise RefusedError, with the last line it wrote, when a streamed script failed."""
    if code:
        words = last_words(errors, default=f"exit status {code}")
        raise RefusedError(f"The site stopped the transfer: {words}.")


def _size(count: int) -> str:
    return f"{count >> 20} MiB" if count >= 1 << 20 else f"{count} bytes"
