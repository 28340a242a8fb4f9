"""Sending a script: a short fixed command, the script on its stdin, marks around its output.

The command line of the remote process differs from script to script only in a random mark, so a
process list shows nothing of the script. The shell reads the script from its stdin with `read`,
which POSIX forbids to take more than the line (busybox's `head -c` takes more). It evaluates the
script only if the opening line came first and the closing line has arrived, so half a script runs
nothing, and neither does one whose beginning a startup file has read. What follows the closing line
is the script's input. Output counts only between the mark and `mark status`, because the shell's
startup files print too.

Every byte of an answer is counted before it is kept:

| output                             | limit          | beyond it                                 |
|------------------------------------|----------------|-------------------------------------------|
| a request's standard output        | MOST_ANSWER    | the request ends: AnswerUnusable          |
| a stream's output, not yet read    | MOST_ANSWER    | the same                                  |
| a stream's output as a whole       | `limited`      | the same, where the caller says how much  |
| standard error                     | MOST_ERRORS    | the same; KEPT_ERRORS of it are kept      |
| what startup files print before    | MOST_NOISE     | the same; its last 4,096 bytes are kept   |

Time is limited too: a request by its `timeout`, from its start to its last byte.
"""

import re
import secrets
import shlex
import time
from collections.abc import Generator, Iterable, Iterator

from lumitui.remote.site.answer_fields import last_words
from lumitui.remote.site.errors import AnswerUnusable, InputError, RefusedError

# CDPATH makes `cd` print a path, TAR_OPTIONS can omit files, GREP_OPTIONS changes matches.
_READ = (
    r'unset CDPATH TAR_OPTIONS GREP_OPTIONS; m={mark}; n=$(printf "\nx"); n=${{n%x}}; s=; '
    r'IFS= read -r l; [ "$l" = "exit 125 #$m" ] || exit 125; while IFS= read -r l; '
    r'do if [ "$l" = "#$m" ]; then printf "%s\n" $m; printf "%s\n" $m >&2; {run} '
    r"exit 0; fi; s=$s$l$n; done; exit 125"
)
_CLOSE = r'printf "%s %d\n" $m $r; printf "%s %d\n" $m $r >&2;'
_RUN = r'(eval "$s"); r=$?; ' + _CLOSE
# A watched script ends with the connection: sshd sends no signal to a command without a terminal,
# so a silent `tail -f` would keep running. The input stays open while the output is read; its end
# kills the process group (sshd and Local start a new session for each command).
_WATCHED = (
    r'exec 3<&0; (trap "" TERM; read x; kill -TERM 0; sleep 1; kill -KILL 0) '
    r'<&3 3<&- >/dev/null 2>&1 & w=$!; (eval "$s") </dev/null 3<&-; r=$?; '
    + _CLOSE
    + r" kill -KILL $w;"
)
_NOISE = 4096
_STATUS = re.compile(rb"[0-9]{1,3}")


class Framing:
    """The mark of one request, with the command, the payload and the readers that use it.

    No character of the command needs more than single quotes, so it survives fish and csh (in
    csh `!` and a newline do not survive inside quotes).
    """

    def __init__(self) -> None:
        """Choose a new random mark."""
        self.mark = f":lumitui-{secrets.token_hex(8)}:"

    def program(self, *, watched: bool = False) -> str:
        """Return text for `sh -c`; a `watched` script reads nothing and ends with its input."""
        return _READ.format(mark=self.mark, run=_WATCHED if watched else _RUN)

    def command(self, *, watched: bool = False) -> str:
        """Return `program` as a command line for any login shell."""
        return "exec /bin/sh -c " + shlex.quote(self.program(watched=watched))

    def payload(self, script: str) -> bytes:
        """Return the script to send, between its opening and its closing line.

        The opening line ends any other shell that reads it; otherwise a `.bashrc` with `exec zsh`
        would run the script and its output would be lost.

        Raises:
            InputError: the script has a NUL, which no shell supports, or a lone surrogate.
        """
        if "\0" in script:
            raise InputError(
                "A command for the site has a NUL character, which a shell cannot handle.",
                "Remove it from the job file.",
            )
        try:
            return f"exit 125 #{self.mark}\n{script}\n#{self.mark}\n".encode()
        except UnicodeEncodeError as error:
            raise InputError(
                "A command for the site has bytes that are not UTF-8.",
                "Check the names and settings you typed.",
            ) from error

    def reader(self) -> "FrameReader":
        """Return a reader for one of the two outputs."""
        return FrameReader(self.mark.encode())


class FrameReader:
    """Reads one output and returns the bytes between the marks."""

    def __init__(self, mark: bytes) -> None:
        """Wait for the opening `mark`."""
        self._open, self._close = mark + b"\n", mark + b" "
        self._held = b""
        self.given = 0
        """Bytes of the script's own output so far."""
        self.skipped = 0
        """Bytes before the opening mark and after the closing one, which are dropped."""
        self.opened = False
        """Whether the opening mark has arrived: the script has started."""
        self.code: int | None = None
        """Exit status of the script, once the closing mark has arrived."""

    @property
    def noise(self) -> str:
        """The bytes before the opening mark: the output of the login shell."""
        return "" if self.opened else self._held.decode("utf-8", "replace").strip()

    def feed(self, data: bytes) -> bytes:
        """Accept `data`; return the bytes that certainly are the script's output."""
        if self.code is not None or not self.opened:
            self.skipped += len(data)
        if self.code is not None:
            return b""
        self._held += data
        if not self.opened:
            _, opening, after = self._held.partition(self._open)
            if not opening:
                self._held = self._held[-_NOISE:]
                return b""
            self.skipped -= len(after)
            self.opened, self._held = True, after
        sought = 0
        while (at := self._held.find(self._close, sought)) >= 0:
            sought = at + len(self._close)
            status, ended, _ = self._held[sought : sought + 4].partition(b"\n")
            if not _STATUS.fullmatch(status) and (status or ended):
                continue  # not the closing line, where only a status follows the mark
            own = self._give(at)
            if ended:
                self.code, self._held = min(int(status), 255), b""
            return own
        return self._give(len(self._held) - self._begun())

    def _give(self, count: int) -> bytes:
        own, self._held = self._held[:count], self._held[count:]
        self.given += len(own)
        return own

    def _begun(self) -> int:
        """Return how many of the last bytes may be the start of the closing mark."""
        longest = min(len(self._close) - 1, len(self._held))
        lengths = range(longest, 0, -1)
        return next((n for n in lengths if self._held.endswith(self._close[:n])), 0)


def pieces(stdin: bytes | Iterable[bytes]) -> Iterator[bytes]:
    """Yield `stdin` in non-empty pieces."""
    yield from filter(None, [stdin] if isinstance(stdin, bytes) else stdin)


MOST_ANSWER = 64 << 20
"""Maximum bytes of one answer. The largest legitimate ones are 50 records of a lost history (1 MB
each at most) and a list of 100,000 files (about 15 MB)."""
MOST_ERRORS = 4 << 20
"""Maximum bytes of standard error. tar lists every unreadable file: 20,000 long names."""
KEPT_ERRORS = 64 << 10
"""Approximate bytes of standard error to keep at its start and at its end: messages quote a line or
two."""
MOST_NOISE = 8 << 20
"""Maximum bytes that startup files and a banner may print on each output before the script."""
_WITHOUT_END = "Something there prints without end; log in and check the output."


class Outputs:
    """The two outputs of one request, with their limits."""

    def __init__(self, framing: Framing) -> None:
        """Wait for the opening marks of `framing`."""
        self.readers = (framing.reader(), framing.reader())
        self._out: list[bytes] = []
        self._held = 0
        self._errors = _Ends(KEPT_ERRORS)

    @property
    def errors(self) -> bytes:
        """Standard error of the script, without the middle if it is long."""
        return self._errors.text

    def ended(self, index: int) -> bool:
        """Whether output `index` (1 is standard error) is complete."""
        return self.readers[index].code is not None

    def take(self) -> bytes:
        """Return the standard output since the last call."""
        taken = b"".join(self._out)
        self._out, self._held = [], 0
        return taken

    def feed(self, index: int, data: bytes) -> None:
        """Take `data` of output `index`; AnswerUnusable if a limit is exceeded."""
        reader = self.readers[index]
        own = reader.feed(data)
        if reader.skipped > MOST_NOISE:
            raise AnswerUnusable(
                f"The shell startup files at the site print more than {_size(MOST_NOISE)}.",
                "Check what these files do (.bashrc, .profile).",
            )
        if not own:
            return
        if index == 1:
            if reader.given > MOST_ERRORS:
                raise AnswerUnusable(
                    f"The site reports more than {_size(MOST_ERRORS)} of error messages.",
                    _WITHOUT_END,
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
    """The start and the end of a text of any length."""

    def __init__(self, most: int) -> None:
        self._half, self._first, self._last, self._cut = most // 2, b"", b"", False

    def add(self, data: bytes) -> None:
        room = self._half - len(self._first)
        self._first += data[:room]
        self._last += data[room:]
        if len(self._last) > 2 * self._half:  # not after each piece, because each cut copies
            self._last, self._cut = self._last[-self._half :], True

    @property
    def text(self) -> bytes:
        return self._first + (b"\n[...]\n" if self._cut else b"") + self._last


def limited(chunks: Iterator[bytes], *, most: int, seconds: float) -> Iterator[bytes]:
    """Yield the chunks of a stream; AnswerUnusable after `most` bytes or `seconds`."""
    rest, deadline = most, time.monotonic() + seconds
    try:
        for chunk in chunks:
            rest -= len(chunk)
            if rest < 0:
                raise AnswerUnusable(
                    f"The site sent more than the {most} bytes requested.",
                    "Log in and check whether other programs change these files.",
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
    """Raise RefusedError with the script's last line if a streamed script failed."""
    if code:
        words = last_words(errors, default=f"exit status {code}")
        raise RefusedError(f"The site stopped the transfer: {words}.")


def _size(count: int) -> str:
    return f"{count >> 20} MiB" if count >= 1 << 20 else f"{count} bytes"
