"""Querying a site about the files in a run's folder: names and sizes, then hashes.

The script of a query prints records `KIND REST`, each ended by a NUL, and finally `end`. Names
cannot contain a NUL, so they cannot fake the end of a record. The commands' standard error becomes
one record `said WORDS`, cut on the site to SAID_BYTES; a command that writes more than
COMPLAINTS_BYTES is ended. `whole` precedes it if no command was ended from outside.

A list reads no file, so a file of a terabyte costs no more than a small one, and the laptop decides
what fits before the site hashes a byte.
"""

import re
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field

from lumitui.remote.site.answer_fields import count, last_words
from lumitui.remote.site.errors import (
    AnswerUnusable,
    InputError,
    LumiError,
    RefusedError,
    folder_gone,
)
from lumitui.remote.site.run_folder import LISTING_SECONDS, SECRETS
from lumitui.remote.site.shell_text import SHA, fill, quote
from lumitui.remote.transfer.results.laptop_files import NameFault, name_of, shown
from lumitui.remote.transport.framing import limited
from lumitui.remote.transport.request_log import purpose
from lumitui.remote.transport.transport import Transport

LONGEST_RECORD = 1 << 16
"""Maximum bytes of one record. Linux allows 4,096 in a path (PATH_MAX); a longer name up to this
limit is reported for its file, and beyond it the answer is not a list of files."""
SAID_BYTES = 2000
"""Maximum bytes of the commands' messages to keep: about twenty messages of `find`."""
COMPLAINTS_BYTES = 4 << 20
"""Bytes of messages after which their writer is ended (SIGPIPE): 20,000 long names."""
SILENT_SECONDS = 120.0
"""Seconds without a byte after which a list fails. `find` prints at least every hundred names, for
which a busy Lustre takes seconds; a hung site stays silent for ever."""

_ENDING_SECONDS = 0.5

_SCRIPT = """\
why=$(cd {folder} 2>&1) || {
  gone=$(LC_ALL=C ls -d {folder} 2>&1) || why=$gone
  printf 'shut %s\\0' "$why"; exit 0
}
cd {folder}
exec 4>&1
said=$( {
{body}
printf 'whole\\0'
} 2>&1 >&4 4>&- | { head -c {most}; head -c {complaints} >/dev/null; } )
[ -z "$said" ] || printf 'said %s\\0' "$said"
printf 'end\\0'
"""


def ask(
    transport: Transport,
    folder: str,
    body: str,
    stop: Callable[[], bool],
    *,
    most: int,
    hashed: float = 0.0,
) -> Generator[tuple[str, bytes], None, None]:
    """Yield the kind and the rest of each record; a stopped query ends early, without error.

    `body`, which runs in `folder`, is sh that prints records of at most `most` bytes in all; its
    standard error is for messages. While the site hashes, it may be silent for `hashed` seconds.

    Raises:
        RefusedError: the folder cannot be entered.
        AnswerUnusable: the answer is not a list of records, too long, or incomplete after the time
            limit.
        LinkError, LinkLost: see `Transport.stream`.
    """
    script = fill(
        _SCRIPT,
        folder=quote(folder),
        body=body,
        most=SAID_BYTES,
        complaints=COMPLAINTS_BYTES,
    )
    whole = False
    with purpose("list files"):
        stream = transport.stream(script, stop=stop)
    with ended(limited(stream, most=most, seconds=LISTING_SECONDS + hashed)) as chunks:
        for record in _records(chunks, SILENT_SECONDS + hashed):
            kind, _, rest = record.partition(b" ")
            if kind == b"end" and whole:
                return
            if kind == b"end":
                raise _unusable("the commands there were killed before they finished")
            if kind == b"whole":
                whole = True
                continue
            if kind == b"shut" and b"No such file" in rest:
                raise folder_gone(folder)
            if kind == b"shut":
                said = f"The site could not read {folder}: {last_words(rest)}."
                raise RefusedError(said, "Check the folder's permissions.")
            yield kind.decode("ascii", "replace"), rest
    if not stop():
        raise _unusable("it is truncated")


@contextmanager
def ended(chunks: Iterator[bytes]) -> Iterator[Iterator[bytes]]:
    """End a stream with the block, so that a stored error keeps no process on the site.

    After its last record, a script ends by itself, which is faster than ending it.
    """
    try:
        yield chunks
        deadline = time.monotonic() + _ENDING_SECONDS
        with suppress(LumiError):
            while time.monotonic() < deadline and not next(chunks, b"over"):
                pass
    finally:
        if isinstance(chunks, Generator):
            chunks.close()


def said_lines(words: bytes) -> list[str]:
    """Return the site's own messages as non-empty lines; at least one."""
    text = words[:SAID_BYTES].decode("utf-8", "replace")
    return [line.strip() for line in text.splitlines() if line.strip()] or ["no reason given"]


def _records(chunks: Iterator[bytes], silence: float) -> Iterator[bytes]:
    held, heard = b"", time.monotonic()
    for chunk in chunks:
        now = time.monotonic()
        if not chunk and now - heard > silence:
            raise _unusable(f"nothing arrived for {now - heard:.0f} s")
        heard = now if chunk else heard
        *whole, held = (held + chunk).split(b"\0")
        yield from whole
        if len(held) > LONGEST_RECORD:
            raise _unusable(f"a record in it is longer than {LONGEST_RECORD:,} bytes")


def _unusable(why: str) -> AnswerUnusable:
    return AnswerUnusable(
        f"lumitui cannot use the site's list of files: {why}.",
        "Try again; if it happens again, check `sh`, `find` and `sha256sum` on the site.",
    )


MOST_FILES = 50_000
"""Maximum names in one list. Ten checkpoints of 1,024 ranks with two files each are 20,480; no user
wants a run with a million files as a whole, and the list alone would take a minute and 1 GB."""
MOST_LIST_BYTES = 32 << 20
"""Maximum bytes of one list: 50,000 names of 600 bytes."""
PORTION = 1 << 18
"""Maximum bytes of names in one request, at four bytes a character: the limit of one command's
words on macOS; also, the site's shell reads its script byte by byte."""
MOST_TROUBLES = 5
"""Maximum lines of the commands' messages to keep."""
_KILLED = 126  # sh's status from 126 on: not started, not found, or 128 and the signal

SIZES = r"""
n=$(printf '\nx'); n=${n%x}
if stat -Lc %s / >/dev/null 2>&1; then size() { stat -Lc %s "$@"; }
elif stat -Lf %z / >/dev/null 2>&1; then size() { stat -Lf %z "$@"; }
else size() { wc -c <"$1"; }; fi
sizes() {
  s=
  [ $# -eq 1 ] || s=$( { size "$@" && echo all; } 2>/dev/null | head -c $((20 * $# + 20)))
  case $s in *"$n"*"${n}all") s=${s%"${n}all"} ;; *) s= ;; esac
  for f; do
    if [ "$s" ]; then z=${s%%"$n"*}; s=${s#*"$n"}
    else
      z=$(size "$f" | head -c 40)
      [ "$z" ] || { printf 'trouble stat\0'; continue; }
    fi
    printf 'file %s %s\0' "${z##* }" "$f"
  done
}
links() {
  for f; do
    case $(readlink -f "$f" | head -c 4200) in
    "$top"/*) if [ -f "$f" ]; then sizes "$f"; else printf 'link %s\0' "$f"; fi ;;
    *) printf 'link %s\0' "$f" ;;
    esac
  done
}
"""
"""Defines `sizes FILE...`, which prints a record `file SIZE NAME` for each, and `links FILE...`.

One process gives the sizes of many files, one a line; when one of them vanished, they are asked one
by one."""

# A link that matches a pattern is followed to any file, and to a folder inside; a link within a
# walked folder only to a file inside. Matches are walked a hundred at a time, because a command's
# arguments are limited.
_LIST = """\
code={code}
eval "$code"
top=$(pwd -P); export top
sizes='sizes "$@"' links='links "$@"'
walk() {{
  [ $# -eq 0 ] || find -H "$@" -type f -exec sh -c "$code$sizes" sh {{}} + \\
    -o -type l -exec sh -c "$code$links" sh {{}} + || printf 'trouble find %d\\0' $?
}}
set --
{patterns}
walk "$@"
"""
_PATTERN = """\
for f in {word}; do
  if [ -d "$f" ]; then
    to=$(cd -P "$f" && pwd -P) || {{ printf 'trouble cd\\0'; continue; }}
    case $to/ in "$top"/*) ;; *) printf 'link %s\\0' "$f"; continue ;; esac
  elif ! [ -f "$f" ]; then continue; fi
  printf 'fits %d %s\\0' {index} "$f"; set -- "$@" "$f"
  [ $# -lt 100 ] || {{ walk "$@"; set --; }}
done"""


@dataclass(frozen=True)
class NotFetched:
    """One remote file that matches a pattern and was not fetched."""

    name: str
    why: str


class FileListing:
    """The matching files, collected from records as they arrive; see `FetchOutcome`."""

    def __init__(self, patterns: Sequence[str] = ()) -> None:
        self.files: dict[str, int] = {}
        """The size of each file in bytes, by its name below the folder."""
        self.left: dict[str, NotFetched] = {}
        """Files that can never be fetched."""
        self.links: dict[str, None] = {}
        self._patterns = patterns
        self._sizeless = set[str]()
        self._matches: dict[str, set[bytes]] = {}  # to the numbers of the patterns
        self._words: list[str] = []
        self._trouble = ""  # the failed command, without its arguments

    @property
    def troubles(self) -> list[str]:
        """The site's own messages about unreadable files."""
        return (self._words or [self._trouble]) if self._trouble else []

    @property
    def unmatched(self) -> list[str]:
        """The patterns without a match."""
        brought = set[bytes]()
        for name in (*self.files, *self.left):
            for above in _above(name):
                brought |= self._matches.get(above, set())
        if self._trouble:  # matching files may be missing from the list
            brought = brought.union(*self._matches.values())
        return [
            pattern
            for index, pattern in enumerate(self._patterns)
            if str(index).encode() not in brought
        ]

    def take(self, kind: str, rest: bytes) -> None:
        """Store one record; raises AnswerUnusable if it does not belong to a list."""
        first, _, second = rest.partition(b" ")
        if kind == "file":
            self._file(first, second)
        elif kind == "link":
            self.links[shown(rest)] = None
        elif kind == "fits" and len(first) < 10:
            parts = [part for part in second.split(b"/") if part not in (b"", b".")]
            name = b"/".join(parts or [b"."]).decode("utf-8", "surrogateescape")
            self._matches.setdefault(name, set()).add(first)
        elif kind == "trouble":
            self._trouble = _failure(rest)
        elif kind == "said":
            self._words = said_lines(rest)[:MOST_TROUBLES]
        else:
            raise AnswerUnusable(
                f"The site's list of files has an unknown record: {shown(kind.encode())}.",
                "Try again; if it happens again, check `sh` on the site.",
            )

    def _file(self, digits: bytes, path: bytes) -> None:
        try:
            name = name_of(path)
        except NameFault as fault:
            self.left[shown(path)] = NotFetched(shown(path), str(fault))
            return
        size = count(digits.decode("ascii", "replace"))
        if name == SECRETS:
            return
        if size is None:
            why = f"the site reports an invalid size: {shown(digits)!r}"
            self.left[name] = NotFetched(shown(path), why)
            self._sizeless.add(name)
            self.files.pop(name, None)
        elif name not in self._sizeless:
            self.files[name] = size


def list_files(
    transport: Transport, folder: str, patterns: Sequence[str], stop: Callable[[], bool]
) -> FileListing:
    """Return the files below `folder` that match `patterns`.

    Raises:
        InputError: a pattern is absolute or leaves the folder, or more than MOST_FILES files match.
        RefusedError: the folder is missing or cannot be entered.
        AnswerUnusable: the answer is not a list of files.
    """
    _check_patterns(patterns)
    loops = [
        _PATTERN.format(word=_word(pattern), index=index) for index, pattern in enumerate(patterns)
    ]
    body = _LIST.format(code=quote(SIZES), patterns="\n".join(loops))
    listing = FileListing(patterns)
    _list(transport, folder, body, listing, stop)
    return listing


def list_again(
    transport: Transport, folder: str, names: Sequence[str], stop: Callable[[], bool]
) -> FileListing:
    """Return those of `names` that still exist, with their current sizes; see `list_files`."""
    listing = FileListing()
    for portion in portions(names):
        body = f"{SIZES}\nsizes {' '.join(quote(f'./{name}') for name in portion)}"
        _list(transport, folder, body, listing, stop)
    listing.files = {name: size for name, size in listing.files.items() if name in set(names)}
    return listing


def portions(names: Sequence[str]) -> Iterator[list[str]]:
    """Yield `names` in portions of about PORTION bytes."""
    portion: list[str] = []
    room = PORTION
    for name in names:
        if portion and 4 * len(name) > room:
            yield portion
            portion, room = [], PORTION
        portion.append(name)
        room -= 4 * len(name) + 16
    if portion:
        yield portion


def _check_patterns(patterns: Sequence[str]) -> None:
    """Refuse `patterns` that lead out of the folder, with an InputError that lists them."""
    outside = [
        repr(pattern)
        for pattern in dict.fromkeys(patterns)
        if pattern.startswith(("/", "~")) or ".." in pattern.split("/")
    ]
    if outside:
        what = "The pattern {} leaves" if len(outside) == 1 else "The patterns {} leave"
        raise InputError(
            f"{what.format(', '.join(outside))} the run's folder.",
            "Write patterns relative to the run, such as checkpoints/*.pt.",
        )


def _word(pattern: str) -> str:
    """Return `pattern` as a shell word in which only `*`, `?` and `[...]` are special."""
    # In brackets, only characters that no shell reads as special; all other text is quoted.
    parts = re.split(r"(\*|\?|\[!?[\w.,:+@%=-]+\])", pattern, flags=re.ASCII)
    special = ((part if index % 2 else quote(part)) for index, part in enumerate(parts) if part)
    return "./" + "".join(special)


def _list(
    transport: Transport, folder: str, body: str, listing: FileListing, stop: Callable[[], bool]
) -> None:
    with closing(ask(transport, folder, body, stop, most=MOST_LIST_BYTES)) as records:
        for number, (kind, rest) in enumerate(records):
            # A file matches or is below a match: at most two records each, plus messages.
            if len(listing.files) + len(listing.left) > MOST_FILES or number > 3 * MOST_FILES:
                raise InputError(
                    f"More than {MOST_FILES:,} files of the run match.",
                    "Select fewer files with a pattern, such as `checkpoints/*.pt`.",
                )
            listing.take(kind, rest)


def _failure(rest: bytes) -> str:
    """Return the message for a command that failed without one; AnswerUnusable if it was ended."""
    command, _, digits = rest[:40].decode("ascii", "replace").partition(" ")
    status = count(digits) or 0
    if status >= _KILLED:
        raise AnswerUnusable(
            f"The site's list of files is incomplete: `{command}` exited with {status} on the "
            "site.",
            "Try again; if it happens again, log in and check this command.",
        )
    ended = f" exited with {status} and" if status else ""
    return f"`{command or 'a command'}` there{ended} gave no reason"


def _above(name: str) -> Iterator[str]:
    """Yield `name` and every folder above it; the run's folder is `.`."""
    yield name
    while name := name.rpartition("/")[0]:
        yield name
    yield "."


HASHED_PER_SECOND = 50_000_000
"""Minimum hashing rate in bytes per second: a busy login node reads Lustre at 100 MB/s."""
_ROOM = 4096 + 200  # bytes of the answer for one file, with messages

# sha256sum escapes odd names, so such files are hashed one at a time, from standard input.
_SUMS = (
    SHA
    + r"""
n=$(printf '\nx'); n=${n%x}
tell() { if [ "$1" ]; then printf 'sum %s %s\0' "${1%% *}" "$2"; else printf 'trouble\0'; fi; }
first() { d=$( { head -c "$1" | sha | head -c 100; } <"$2"); tell "$d" "$2"; }
one() { d=$( { sha | head -c 100; } <"$1"); tell "$d" "$1"; }
sums() {
  case $* in
  *\\*|*"$n"*) for f; do one "$f"; done ;;
  *) { sha "$@" || echo trouble; } | sed 's/^[0-9a-fA-F]\{64\} [ *]/sum &/' | tr '\n' '\000' ;;
  esac
}
"""
)
_SUM = re.compile(rb"([0-9a-f]{64})  ?[ *]?(\./.*)", re.DOTALL)


@dataclass
class Digests:
    """The hashes that a site returned."""

    sums: dict[str, str] = field(default_factory=dict)
    """SHA-256 by file name, without missing and unreadable files."""
    troubles: list[str] = field(default_factory=list)
    """The site's own messages about unreadable files."""

    def why(self, name: str) -> str:
        """Return why the site returned no hash of a file, as the end of a sentence."""
        mine = [words for words in self.troubles if name in words] or self.troubles
        return (
            f"it cannot be read: {mine[0].rstrip('.')}"
            if mine
            else "it does not exist or is unreadable"
        )


def digests_of(
    transport: Transport,
    folder: str,
    sizes: Mapping[str, int],
    growing: Callable[[str], bool],
    stop: Callable[[], bool],
) -> Digests:
    """Return the hashes of the files in `sizes`; for `growing` files, of their first bytes only.

    Raises:
        RefusedError, LinkError: as `list_files`.
    """
    digests = Digests()
    for portion in portions(list(sizes)):
        if stop():
            break
        body = _SUMS + "\n".join(_commands(portion, sizes, growing))
        seconds = sum(sizes[name] for name in portion) / HASHED_PER_SECOND
        trouble, words = False, list[str]()
        query = ask(transport, folder, body, stop, most=len(portion) * _ROOM, hashed=seconds)
        with closing(query) as records:
            for kind, rest in records:
                if kind == "said":
                    words = said_lines(rest)
                elif kind == "sum":
                    _take(rest, sizes, digests.sums)
                else:
                    trouble = True
        if trouble:
            digests.troubles += words or ["`sha256sum` there gave no reason"]
    del digests.troubles[MOST_TROUBLES:]
    return digests


def _commands(
    names: list[str], sizes: Mapping[str, int], growing: Callable[[str], bool]
) -> Iterator[str]:
    cut = [name for name in names if sizes[name] and growing(name)]
    for name in cut:
        yield f"first {sizes[name]} {quote(f'./{name}')}"
    taken = set(cut)
    whole = [quote(f"./{name}") for name in names if name not in taken]
    odd = [word for word in whole if "\\" in word or "\n" in word]
    plain = [word for word in whole if "\\" not in word and "\n" not in word]
    for words in filter(None, (odd, plain)):
        yield f"sums {' '.join(words)}"


def _take(rest: bytes, sizes: Mapping[str, int], sums: dict[str, str]) -> None:
    """Store a hash of a requested file; ignore any other."""
    match = _SUM.fullmatch(rest)
    if match is None:
        return
    try:
        name = name_of(match[2])
    except NameFault:
        return
    if name in sizes:
        sums[name] = match[1].decode()
