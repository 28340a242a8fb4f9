"""How one script travels: a fixed short command, the script on stdin, a fence round its output.

The command line of the remote process is the same for every script but for a random mark, so a
process list shows nothing of it. The shell reads the script from its own input with `read`, which
POSIX lets take nothing beyond the line (busybox's `head -c` swallows what follows), and evaluates
it only when the closing line has arrived, and only when the opening one was the first: half a
script runs nothing, nor does one whose beginning a login file has read. What stands after the
closing line is the script's own input. Output counts only between the mark and `mark status`,
because login files print.
"""

import re
import secrets
import shlex
from collections.abc import Iterable, Iterator

from lumitui.remote.errors import InputError, RefusedError

# CDPATH lets `cd` print a path, TAR_OPTIONS leaves files out, GREP_OPTIONS changes what is found.
_READ = (
    r'unset CDPATH TAR_OPTIONS GREP_OPTIONS; m={mark}; n=$(printf "\nx"); n=${{n%x}}; s=; '
    r'IFS= read -r l; [ "$l" = "exit 125 #$m" ] || exit 125; while IFS= read -r l; '
    r'do if [ "$l" = "#$m" ]; then printf "%s\n" $m; printf "%s\n" $m >&2; {run} '
    r"exit 0; fi; s=$s$l$n; done; exit 125"
)
_CLOSE = r'printf "%s %d\n" $m $r; printf "%s %d\n" $m $r >&2;'
_RUN = r'(eval "$s"); r=$?; ' + _CLOSE
# A watched script ends with the connection: sshd signals nothing to a command without a terminal,
# so a `tail -f` that prints nothing would live on. The input stays open as long as someone reads;
# its end takes the process group (sshd and Local start a new session for each command).
_WATCHED = (
    r'exec 3<&0; (trap "" TERM; read x; kill -TERM 0; sleep 1; kill -KILL 0) '
    r'<&3 3<&- >/dev/null 2>&1 & w=$!; (eval "$s") </dev/null 3<&-; r=$?; '
    + _CLOSE
    + r" kill -KILL $w;"
)
_NOISE = 4096
_STATUS = re.compile(rb"[0-9]{0,3}")


class Fence:
    """The mark of one request and what is made of it.

    No character of the command needs more than single quotes: it survives csh, where `!` and a
    line end inside quotes would not, and fish.
    """

    def __init__(self) -> None:
        """Draw a new mark."""
        self.mark = f":lumitui-{secrets.token_hex(8)}:"

    def program(self, *, watched: bool = False) -> str:
        """Text for `sh -c`; a `watched` script gets no input and ends when its input does."""
        return _READ.format(mark=self.mark, run=_WATCHED if watched else _RUN)

    def command(self, *, watched: bool = False) -> str:
        """`program` as a line for any login shell."""
        return "exec /bin/sh -c " + shlex.quote(self.program(watched=watched))

    def payload(self, script: str) -> bytes:
        """The script as it is sent, between its opening and its closing line.

        The opening line ends any other shell that may read it: a `.bashrc` with `exec zsh` would
        else run the script with nobody to listen.

        Raises:
            InputError: the script has a NUL, which no shell can hold, or a lone surrogate.
        """
        if "\0" in script:
            raise InputError(
                "A command for the site has a NUL character, which no shell can hold.",
                "Remove it from the job file.",
            )
        try:
            return f"exit 125 #{self.mark}\n{script}\n#{self.mark}\n".encode()
        except UnicodeEncodeError as error:
            raise InputError(
                "A command for the site has bytes that are not UTF-8.",
                "Look at the names and settings that were typed.",
            ) from error

    def reader(self) -> "Reader":
        """A reader for one of the two outputs."""
        return Reader(self.mark.encode())


MOST_ANSWER = 256 << 20
"""Bytes of an answer that is kept whole; what only streams has no limit."""


def check_answer(readers: "Iterable[Reader]") -> None:
    """Raise RefusedError when more has come of an answer than memory is for."""
    if sum(reader.given for reader in readers) > MOST_ANSWER:
        raise RefusedError(
            f"The site's answer is larger than {MOST_ANSWER >> 20} MiB.",
            "A command there prints without end; log in and look what it says.",
        )


class Reader:
    """Takes one output as it comes and gives what stands inside the fence."""

    def __init__(self, mark: bytes) -> None:
        """Wait for the opening `mark`."""
        self._open, self._close = mark + b"\n", mark + b" "
        self._held = b""
        self.given = 0
        """Bytes of the script's own so far."""
        self.opened = False
        """Whether the script was started."""
        self.code: int | None = None
        """Exit status of the script, once the closing mark has come."""

    @property
    def noise(self) -> str:
        """What came instead of the opening mark: the login shell's own words."""
        return "" if self.opened else self._held.decode("utf-8", "replace").strip()

    def feed(self, data: bytes) -> bytes:
        """Take `data`; return the bytes now known to be the script's own."""
        if self.code is not None:
            return b""
        self._held += data
        if not self.opened:
            _, found, after = self._held.partition(self._open)
            if not found:
                self._held = self._held[-_NOISE:]
                return b""
            self.opened, self._held = True, after
        at = self._held.find(self._close)
        if at < 0:
            return self._give(len(self._held) - self._begun())
        status, ended, _ = self._held[at + len(self._close) :].partition(b"\n")
        if not _STATUS.fullmatch(status):
            # No closing line: the shell writes nothing else after this mark.
            return self._give(at + len(self._close))
        own = self._give(at)
        if ended:
            self.code, self._held = int(status), b""
        return own

    def _give(self, count: int) -> bytes:
        own, self._held = self._held[:count], self._held[count:]
        self.given += len(own)
        return own

    def _begun(self) -> int:
        """Length of the beginning of a closing mark at the end of what is held."""
        longest = min(len(self._close) - 1, len(self._held))
        lengths = range(longest, 0, -1)
        return next((n for n in lengths if self._held.endswith(self._close[:n])), 0)


def pieces(stdin: bytes | Iterable[bytes]) -> Iterator[bytes]:
    """`stdin` as pieces that are not empty."""
    yield from filter(None, [stdin] if isinstance(stdin, bytes) else stdin)


def check_stream(code: int, err: bytes) -> None:
    """Raise RefusedError when a streamed script failed, with the last line it wrote."""
    if code:
        words = err.decode("utf-8", "replace").strip().splitlines() or [f"exit status {code}"]
        raise RefusedError(f"The site ended what was being read: {words[-1]}")
