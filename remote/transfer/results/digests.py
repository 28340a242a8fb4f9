"""The hashes of files on a site: of the whole file, or of its first bytes where a job appends."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field

from lumitui.remote.site.shell_text import SHA, quote
from lumitui.remote.transfer.results.file_queries import ask, said_lines
from lumitui.remote.transfer.results.laptop_names import NameFault, name_of
from lumitui.remote.transfer.results.listing import MOST_TROUBLES, portions
from lumitui.remote.transport.transport import Transport

HASHED_PER_SECOND = 50_000_000
"""Bytes that a site hashes in a second at the least: a busy login node reads Lustre at 100 MB/s."""
_ROOM = 4096 + 200  # bytes of the answer for one file, with the site's own words

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
    """What a site says about the content of files."""

    sums: dict[str, str] = field(default_factory=dict)
    """SHA-256 by name; a file that is gone or cannot be read is not in it."""
    troubles: list[str] = field(default_factory=list)
    """The site's own words about files that it could not read."""

    def why(self, name: str) -> str:
        """Return why the site gave no hash of a file, as the end of a sentence."""
        mine = [words for words in self.troubles if name in words] or self.troubles
        return f"it cannot be read: {mine[0].rstrip('.')}" if mine else "it is gone or unreadable"


def digests_of(
    transport: Transport,
    folder: str,
    sizes: Mapping[str, int],
    growing: Callable[[str], bool],
    stop: Callable[[], bool],
) -> Digests:
    """Return the hashes of the files in `sizes`; of a `growing` file its first bytes only.

    Raises:
        RefusedError, LinkError: as `listing.list_files`.
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
    """Keep a hash of a file that was requested; anything else is as if it had not come."""
    match = _SUM.fullmatch(rest)
    if match is None:
        return
    try:
        name = name_of(match[2])
    except NameFault:
        return
    if name in sizes:
        sums[name] = match[1].decode()
